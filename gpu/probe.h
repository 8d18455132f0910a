/* gpuraid: is there a CUDA device?
 *
 * CUDA must not be touched by a process that will fork, not even to count
 * devices.  So a child is asked.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_PROBE_H
#define GPURAID_PROBE_H

#include <stdint.h>

/* How many devices there are that we can use, at most 30 s later.  0: why
 * not, in why (one line, without a newline).  No threads may run yet.
 */
extern unsigned gpu_probe (char *why, unsigned why_len);
/* The same; bit n: device n. */
extern uint64_t gpu_probe_devices (char *why, unsigned why_len);

#endif
