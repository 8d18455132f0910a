/* gpuraid: is there a CUDA device?
 *
 * A process that will fork must not touch CUDA, not even to count devices.  So
 * this asks in a child.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_PROBE_H
#define GPURAID_PROBE_H

#include <stdint.h>

/* The devices that we can use, at most 30 s later; bit n: device n.  0: why
 * not, in why (one line, without a newline).  No threads may run yet.
 */
extern uint64_t gpu_probe_devices (char *why, unsigned why_len);

#endif
