/* gpuraid: memory that an idle cache gives back.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CACHE_IDLE_H
#define GPURAID_CACHE_IDLE_H

#include "array/engine/room.h"

extern const struct room room_idle;

#endif
