/* gpuraid: what gpuraid create says about the array.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CLI_CREATE_PLAN_H
#define GPURAID_CLI_CREATE_PLAN_H

#include "array/create/create.h"

/* --dry-run: to stdout. */
extern void create_plan_show (const struct create_plan *p);

/* Messages about space that is not used, or may not be there later. */
extern void create_warn_sizes (const struct create_plan *p);
extern void create_warn_space (const struct create_plan *p);

#endif
