/* gpuraid: tests: draw the properties of a simulated array.
 *
 * The generator is not the run's own: a seed's run does not change when
 * something more is drawn here.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/bits.h"
#include "tests/simulation/sim-run.h"

/* Whole stripes. */
static uint64_t
draw_geometry (struct sim *d, struct geometry *g)
{
  static const uint32_t chunk[] = { 4096, 8192, 16384 };
  const unsigned kind = sim_below (d, 100);

  *g = (struct geometry) {
    .k = 1 + sim_below (d, 4), .m = 1 + sim_below (d, 3),
    .chunk = chunk[sim_below (d, 3)],
  };
  if (kind < 75)
    return 8 + sim_below (d, 33);
  if (kind < 90) {
    g->k = 1 + sim_below (d, 14);
    g->m = 1 + sim_below (d, 6);
    return 3 + sim_below (d, 8);
  }
  /* Several bands in a chunk, several regions of the usual length. */
  g->chunk = 131072;
  g->k = 1 + sim_below (d, 2);
  g->m = 1 + sim_below (d, 2);
  return 3 + sim_below (d, 10);
}

static void
draw_limits (struct sim *d, const struct geometry *g)
{
  static const unsigned page_regions[] = { 1, 3, 8, 64, 16128 };

  limits = default_limits;
  if (sim_below (d, 5) == 0)
    return;
  limits.region_min_len = UINT32_C (8192) << sim_below (d, 5);
  limits.page_regions = page_regions[sim_below (d, 5)];
  limits.cell_max_len = MAX (BLOCK_LEN << sim_below (d, 5), g->chunk / 8);
  limits.bundle_max_xfers = 1 + sim_below (d, 8);
  limits.request_steps = 5 + sim_below (d, 60);
  limits.inline_max_len = BLOCK_LEN << sim_below (d, 6);
  limits.rebuild_in_flight_len = UINT64_C (65536) << sim_below (d, 6);
  limits.rebuild_trim_len = limits.rebuild_in_flight_len;
  limits.rebuild_max_skipped = 1 + sim_below (d, 8);
  limits.rebuild_max_repairs = 1 + sim_below (d, 16);
  limits.ahead_regions = sim_below (d, 4);
  limits.tick_ns = UINT64_C (20000000) << sim_below (d, 4);
}

/* In a quarter of the runs, or all with SIM_HEDGE=1.  Then small reads go
 * through the loop, too: only those take time here.
 */
static void
draw_hedge (struct sim *d, struct hedge_policy *p)
{
  const bool on = sim_below (d, 4) == 0;

  *p = (struct hedge_policy) {
    .off = getenv ("SIM_HEDGE") ? !atoi (getenv ("SIM_HEDGE")) : !on,
    .delay = sim_below (d, 2) * (1 + sim_below (d, 2000000)),
  };
  limits.hedge_loop_ns = p->off ? default_limits.hedge_loop_ns : 0;
}

uint64_t
draw_array (struct run *r)
{
  struct sim *d = sim_new (r->seed ^ UINT64_C (0x6a09e667f3bcc908));
  uint64_t nr_stripes;

  assert (d != NULL);
  nr_stripes = draw_geometry (d, &r->g);
  draw_limits (d, &r->g);
  r->spare_seats = sim_below (d, 4) ? default_limits.max_seats :
    1 + sim_below (d, 6);
  r->nr_clients = 1 + sim_below (d, sim_below (d, 6) == 0 ? MAX_CLIENTS : 6);
  r->blocks_less = sim_below (d, 3) == 0;
  r->journal = sim_below (d, 2) == 0;
  if (getenv ("SIM_JOURNAL"))
    r->journal = atoi (getenv ("SIM_JOURNAL"));
  r->sums = sim_below (d, 3) > (r->journal ? 0 : 1);
  if (getenv ("SIM_SUMS"))
    r->sums = atoi (getenv ("SIM_SUMS"));
  sim_checksum = r->sums ? CHECKSUM_CRC32C : CHECKSUM_NONE;
  limits.table_page_entries = sim_below (d, 4) == 0 ? TABLE_PAGE_ENTRIES :
    1 + sim_below (d, 40);
  limits.sums_min_pages = 4 * (r->g.chunk / BLOCK_LEN /
                               limits.table_page_entries + 2) +
    sim_below (d, 30);
  sim_consistency = r->journal ? CONSISTENCY_JOURNAL : CONSISTENCY_NONE;
  limits.ring_min_len = UINT32_C (32768) << sim_below (d, 5);
  limits.txn_max_ops = 1 + sim_below (d, 40);
  r->use_spares = sim_below (d, 3) == 0;
  r->spare_delay_ns = 1 + sim_below (d, 2) * sim_below (d, 8 * SECONDS);
  /* A part begins at a whole MiB. */
  r->spare_len = sim_below (d, 5) ? 0 :
    MIB + (8 + sim_below (d, 40)) * (uint64_t) r->g.chunk;
  limits.grow_min_len = 1;
  draw_hedge (d, &r->hedge);
  if (sim_below (d, 4) > 0)
    limits.idle_ns = UINT64_C (1000000) << sim_below (d, 14);
  switch (sim_below (d, 4)) {
  case 0: r->thread = true; break;
  case 1: limits.unlocked_reads = false; break;
  }
  sim_free (d);
  return nr_stripes;
}

void
draw_describe (const struct run *r, char *text, size_t len)
{
  snprintf (text, len, "%u+%u, chunk %u, %" PRIu64 " stripes, %u clients; "
            "regions of %u, %u in a page; cells of %u, %u steps, bundles of "
            "%u, inline %u, rebuild %" PRIu64 ", %u skipped, %u repairs, %u "
            "ahead, tick %" PRIu64 "; ring of %" PRIu64 ", %u in a "
            "transaction; %u entries in a page, %u pages; idle %" PRIu64
            "%s",
            r->g.k, r->g.m, r->g.chunk, r->sa->nr_stripes, r->nr_clients,
            r->sa->l.region_len, limits.page_regions, limits.cell_max_len,
            limits.request_steps, limits.bundle_max_xfers,
            limits.inline_max_len, limits.rebuild_in_flight_len,
            limits.rebuild_max_skipped, limits.rebuild_max_repairs,
            limits.ahead_regions, limits.tick_ns, r->sa->l.ring_len,
            limits.txn_max_ops, r->sums ? limits.table_page_entries : 0,
            limits.sums_min_pages, limits.idle_ns,
            r->thread ? "; an engine thread" :
            limits.unlocked_reads ? "" : "; each read takes the lock");
}
