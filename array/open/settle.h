/* gpuraid: make what can be read of members durable, before it is believed.
 *
 * A process that was killed leaves writes in the page cache, or in the cache of
 * a server, that are visible and not durable.  What is decided from them must
 * not be lost when power fails afterwards (M35 and M36 of docs/rules.md).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_SETTLE_H
#define GPURAID_SETTLE_H

#include "member/member.h"

/* Flush these members, all at the same time; also those that are open for
 * reading only.  err[i]: 0, or a positive errno.  Synchronous, before anything
 * else is read of them; any thread.
 */
extern void settle (struct member **m, unsigned nr, int *err);

#endif
