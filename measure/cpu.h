/* gpuraid: the processors of this machine.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_MEASURE_CPU_H
#define GPURAID_MEASURE_CPU_H

/* How many this process may use. */
extern unsigned cpu_count (void);

/* What they are called; buf is returned. */
#define CPU_MODEL_LEN 160
extern char *cpu_model (char buf[CPU_MODEL_LEN]);

#endif
