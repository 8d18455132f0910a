/* gpuraid: the listed members that an array was opened without, and why.
 *
 * For the status; the log has the same in one line (assemble.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_OPEN_LEFT_OUT_H
#define GPURAID_OPEN_LEFT_OUT_H

#include "array/array.h"
#include "array/config/config.h"

struct left_out {
  struct {
    char *path, *why;           /* owned */
  } member[CONFIG_MAX_MEMBERS];
  unsigned nr;
};

/* Both are copied.  Without memory it is not in the list. */
extern void left_out_add (struct left_out *l, const char *path,
                          const char *why);

/* Into st, except for those that are members of it (st->entry) by now.  The
 * texts are borrowed from l.
 */
extern void left_out_status (const struct left_out *l,
                             struct array_status *st);

extern void left_out_free (struct left_out *l);

#endif
