/* gpuraid: the names of members, for array/config/keys.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_NAMES_H
#define GPURAID_NAMES_H

#include "array/config/config.h"

/* Takes over path, also on failure.  0, or -1 reported. */
extern int config_add_member (struct config *c, char *path);

/* Add a glob to c->glob.  0, or -1 reported. */
extern int config_add_glob (struct config *c, const char *glob);

/* Add the members of c->dir; if an array may be created, also those that do
 * not exist yet.  0, or -1 reported.
 */
extern int config_expand_dir (struct config *c);

#endif
