/* gpuraid: gpuraid examine of several members: do they open together, and why
 * not?
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CLI_EXAMINE_H
#define GPURAID_CLI_EXAMINE_H

#include "array/membership/membership.h"

struct examined_array {
  struct found *found;          /* nr of them; borrowed */
  size_t nr;
};

/* Print which record each member has accepted, what a server would do with
 * them, and what degraded=force would do if it would not open them.  Changes
 * the second part of x->found.  0, or -1 reported.
 */
extern int examine_array (struct examined_array *x);

#endif
