/* gpuraid: what status and events say of one member.
 *
 * Call all of these with the array lock held.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_ENTRY_H
#define GPURAID_ENTRY_H

#include "array/engine/shared.h"

/* Of a seat with a member.  The caller frees the path. */
extern struct array_entry entry_of_seat (const struct array *a,
                                         const struct seat *s);

/* Set the counts of I/O, of a seat that may have no member any more. */
extern void entry_set_io (struct array_entry *e, const struct seat *s);

/* A copy; NULL of NULL. */
extern char *entry_path (const char *path);
extern struct array_error entry_error (const struct array *a,
                                       const struct seat *s);

#endif
