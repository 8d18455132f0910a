/* gpuraid: work that goes on only once the array is writable.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_WORK_H
#define GPURAID_WORK_H

#include "array/engine/shared.h"

/* As array_has_work; with the array lock held. */
extern bool work_waits (const struct array *a);

#endif
