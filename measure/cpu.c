/* gpuraid: ask the system about processors.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "common/bits.h"
#include "measure/cpu.h"

unsigned
cpu_count (void)
{
  cpu_set_t set;

  if (sched_getaffinity (0, sizeof set, &set) == 0)
    return CPU_COUNT (&set);
  return MAX (sysconf (_SC_NPROCESSORS_ONLN), 1);
}

char *
cpu_model (char buf[CPU_MODEL_LEN])
{
  FILE *fp = fopen ("/proc/cpuinfo", "r");
  char line[256];

  snprintf (buf, CPU_MODEL_LEN, "unknown processor");
  while (fp && fgets (line, sizeof line, fp))
    if (sscanf (line, "model name : %159[^\n]", buf) == 1)
      break;
  if (fp)
    fclose (fp);
  return buf;
}
