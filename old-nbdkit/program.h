/* gpuraid: the program that this library was loaded into.
 *
 * In .get_ready, while there is one thread.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_OLD_NBDKIT_PROGRAM_H
#define GPURAID_OLD_NBDKIT_PROGRAM_H

#include <stdbool.h>

/* The first constant string "1.N.N" of the program for which is_wanted is true;
 * NULL if there is none.  It lives as long as the process.
 */
extern const char *program_version (bool (*is_wanted) (const char *version));

/* From now on the program's calls of the library function "name" go to
 * function.  Calls by libraries stay as they are.  0, or -1: it does not call
 * it in a way that is known here, or its table of calls can't be written.
 */
extern int program_replace_calls (const char *name, void (*function) (void));

#endif
