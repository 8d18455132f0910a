/* gpuraid: tests: the line that repeats a seed of the simulation.
 *
 * It has every SIM_ variable of the environment, and the planted mistake: a
 * seed is another run with others.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/simulation/sim-run.h"

static char settings[1500];
static const char *program;

/* These change only what is printed. */
static bool
is_setting (const char *s)
{
  static const char *const printing[] = { "SIM_VERBOSE=", "SIM_STATES=" };

  for (unsigned i = 0; i < ARRAY_LEN (printing); i++)
    if (strncmp (s, printing[i], strlen (printing[i])) == 0)
      return false;
  return strncmp (s, "SIM_", 4) == 0 || strncmp (s, "PLANT=", 6) == 0;
}

void
replay_init (const char *argv0)
{
  size_t len = 0;

  program = argv0;
  for (char **e = environ; *e; e++)
    if (is_setting (*e) && len < sizeof settings)
      len += snprintf (settings + len, sizeof settings - len, "%s ", *e);
}

void
replay_line (uint64_t seed, char *line, size_t len)
{
  snprintf (line, len, "replay with: SIM_VERBOSE=1 %s%s 1 %" PRIu64 "\n",
            settings, program, seed);
}
