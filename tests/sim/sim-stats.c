/* gpuraid: tests: how often the simulation reached rare states.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "tests/sim/sim-stats.h"

struct stats stats;

void
stats_report (double seconds, bool states)
{
  printf ("%" PRIu64 " runs in %.1f s: %" PRIu64 " sessions (%" PRIu64
          " only looked), %" PRIu64 " crashes, %" PRIu64 " requests, %" PRIu64
          " of them failed, %" PRIu64 " replacements, %" PRIu64 " openings "
          "refused and %" PRIu64 " forced, %" PRIu64 " arrays failed, %" PRIu64
          " given up, %" PRIu64 " blocks may have been lost\n",
          stats.runs, seconds, stats.sessions, stats.readonly, stats.crashes,
          stats.requests, stats.errors, stats.replaced, stats.refused,
          stats.forced, stats.failed_arrays, stats.given_up,
          stats.lost_blocks);
  if (!states)
    return;
  printf ("in 1,000 runs:\n");
#define SIM_STATE(name, what)                                           \
  printf ("%9.1f  %s\n", stats.name * 1000.0 / stats.runs, what);
  SIM_STATES (SIM_STATE)
#undef SIM_STATE
}
