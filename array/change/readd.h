/* gpuraid: take a member again that was taken out, or was missing.
 *
 * It keeps its uuid and its content.  What it missed is told by the dirty bits
 * if they cover it; otherwise it is rebuilt in full.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CHANGE_READD_H
#define GPURAID_CHANGE_READD_H

#include "array/engine/shared.h"

struct command;

/* What was read from such a member. */
struct readd {
  struct found found;
  uint8_t *page_place;          /* for each bitmap page: the place of its
                                 * newest good copy */
  uint64_t *page_counter;       /* likewise: the counter there, or 0 */
  uint64_t nr_pages;
};

/* With the array lock held: a member that was found when the array was opened,
 * and is not used.  NULL: there is none with this path.
 */
extern struct seat *readd_find_idle (struct array *a, const char *path);
/* Without the lock: take the member from that seat.  NULL likewise. */
extern struct member *readd_take_idle (struct array *a, const char *path);

/* Read a member that the array does not use, with plain reads.  Any thread,
 * without the array lock.  NULL: why has one line, as it has if this is no
 * member of this array.  The name of *m is borrowed.
 */
extern struct readd *readd_new (struct array *a, struct member *m,
                                char why[MEMBERSHIP_TEXT_LEN]);
extern void readd_free (struct readd *rd);

/* Begin the record in which cmd->target is rebuilt onto, and take it over.
 * With the array lock held, while no change is under way.  NULL: refused,
 * nothing was changed, and why says so.
 */
extern struct seat *readd_begin (struct array *a, struct command *cmd,
                                 char why[MEMBERSHIP_TEXT_LEN]);

/* That record is in force: tell how the member is brought up to date. */
extern void readd_say (const struct seat *s);

#endif
