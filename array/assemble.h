/* gpuraid: from members to an array, before anything runs.
 *
 * Reads the superblock copies and dirty bitmaps of the members with
 * synchronous calls, has array/membership decide, checks the geometry
 * keys that were given.  Writes nothing.  Runs before the fork.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_ASSEMBLE_H
#define GPURAID_ASSEMBLE_H

#include "array/assembly.h"
#include "array/config.h"

/* members: opened (array/assemble takes them over, closing them on
 * failure), nr of them; config says policy and geometry.  nr_absent:
 * how many listed paths could not be opened and count as missing; for
 * messages.  0, or -1 reported in one line.  On success, what a person
 * should know (missing, stale members) was said in one notice.  A member
 * that has no readable block, or is too short to be whole, counts as
 * missing too.
 */
extern int assemble (const struct config *c, struct member **members,
                     unsigned nr, unsigned nr_absent, struct assembly *a);
extern void assembly_free (struct assembly *a);

/* Open every member of the configuration: read-write, or all read-only
 * where one of them cannot be written.  ENOENT, ENXIO and EIO count as
 * missing; assemble says so.  Two names of one store are refused.
 * members: room for config->nr_members.  0, or -1 reported, nothing
 * left open.
 */
extern int open_members (const struct config *c, struct member **members,
                         unsigned *nr, unsigned *nr_absent);

#endif
