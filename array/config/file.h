/* gpuraid: config=, for array/config/keys.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CONFIG_FILE_H
#define GPURAID_CONFIG_FILE_H

#include "array/config/config.h"

/* Set the keys of the file that config= names, except for those that are set
 * already: they were on the command line.  Members, and dir=, are one of these:
 * with any of them on the command line all those of the file are ignored.
 *
 * A value of member= that has one of the characters * ? [ is a glob, and kept
 * in c->glob.  Names of files that do not begin with a slash are looked up from
 * the folder of the file.
 *
 * 0, or -1 reported with the file and the number of the line.
 */
extern int config_read_file (struct config *c);

/* The file that config=NAME names.  The caller frees it.  NULL: reported. */
extern char *config_file_path (const char *name);

/* ---- of keys.c -------------------------------------------------------- */

/* The number of a key in the table, also of its bit in c->given; -1: unknown.
 */
extern int config_find_key (const char *key);

#endif
