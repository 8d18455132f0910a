/* gpuraid: what the commands on a real array share.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CONTROL_ARRAY_INTERNAL_H
#define GPURAID_CONTROL_ARRAY_INTERNAL_H

#include "control/control.h"

/* ---- checks.c ---- */

extern bool check_is_number (const char *s);
/* May which name an entry?  The array decides whether a slot has a member. */
extern bool check_is_entry (const struct array_status *st, const char *which);
/* Does the array hold this path?  array_shares_store cannot be asked if our
 * own lock keeps us from opening it again.  A failed member is released, and
 * may be used again.
 */
extern bool check_is_held (const struct array_status *st, const char *path);

/* Are the names in a command right?  which is NULL or a member that must be
 * known, path NULL or a new one.
 */
extern int check_names (struct array *a, const char *which, const char *path,
                        char why[ARRAY_WHY_LEN]);

/* 0, or EROFS and why. */
extern int check_writable (const struct array *a, char why[ARRAY_WHY_LEN]);
extern int make_writable (struct array *a, int (*make) (struct array *a),
                          char why[ARRAY_WHY_LEN]);

/* ---- members.c: commands of struct control_ops ---- */

extern int control_replace (void *opaque, const char *which, const char *path,
                            unsigned flags, char why[ARRAY_WHY_LEN]);
extern int control_spare (void *opaque, const char *path, unsigned flags,
                          char why[ARRAY_WHY_LEN]);
extern int control_add (void *opaque, bool data, const char *path,
                        unsigned flags, char why[ARRAY_WHY_LEN]);
extern int control_readd (void *opaque, const char *which, bool *full,
                          char why[ARRAY_WHY_LEN]);

#endif
