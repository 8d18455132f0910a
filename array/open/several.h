/* gpuraid: more than one whole array among the members.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_SEVERAL_H
#define GPURAID_SEVERAL_H

#include "array/membership/membership.h"

/* Of several arrays that are whole, with a current member in each slot, none is
 * served in silence: nothing says which one is meant.  0, or -1 reported.
 */
extern int refuse_several (const struct found *found, unsigned nr);

#endif
