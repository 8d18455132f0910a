/* gpuraid: can an array be opened for writing without the members that can't be
 * written?
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_ENOUGH_H
#define GPURAID_ENOUGH_H

#include "array/config/config.h"
#include "member/member.h"

/* Looks at the superblocks, without a lock and without a message.
 *
 *   opened      a place for each member of the configuration: those that are
 *               exports are open
 *   unwritable  likewise: NULL if it can be written
 *
 * True if all members together make an array, and those that can be written do
 * too, by the rules of degraded=allow.  Of degraded=refuse that is for assemble
 * to refuse; degraded=force must not go back only because the newest member
 * can't be written.
 */
extern bool enough_without (const struct config *c,
                            struct member *const *opened,
                            const char *const *unwritable);

#endif
