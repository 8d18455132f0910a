/* gpuraid: periodic work.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TICK_H
#define GPURAID_TICK_H

#include "array/engine/shared.h"

/* With the array lock held: arm the timer if something will be due. */
extern void tick_decide (struct array *a);

/* Called by the timer, without the array lock. */
extern void tick_fire (struct timer *t);

#endif
