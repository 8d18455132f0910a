/* gpuraid: which files were members, as written down on this host.
 *
 * A folder whose file system is not mounted looks like one in which no array
 * was made yet.  So each server that opens an array notes the files of it, and
 * a start that would make a new array in their place is refused.
 *
 * A note is a file for each array, named after its uuid, in
 * /var/lib/gpuraid/known; without root in $XDG_STATE_HOME/gpuraid/known or
 * ~/.local/state/gpuraid/known.  GPURAID_STATE_DIR is instead of that folder
 * without "known", for tests.  Where it can't be written nothing is noted, and
 * all else works.
 *
 * Any thread; plain file I/O, which may wait.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CREATE_KNOWN_H
#define GPURAID_CREATE_KNOWN_H

#include <stdbool.h>

#include "raidmap/superblock.h"

/* These are the members of this array now: nr names, of which only files count.
 * What was noted for it before is forgotten, and these files are taken out of
 * the notes of other arrays.  Nothing is written where the note says so
 * already.
 */
extern void known_write (const uuid_bytes *array, char *const *name,
                         unsigned nr);

/* Was a file of one of these names a member when an array was last opened here?
 * Then it is reported, with what can be done.
 */
extern bool known_refuse (char *const *name, unsigned nr);

#endif
