/* gpuraid: tests: what is asked of each run when it ends.
 *
 *   scrub      the array is healthy and idle: a scrub finds nothing wrong but
 *              on members that the run has spoilt (sim-scrub.c)
 *   check      a scrub of the stopped members, which only reads, finds nothing
 *              (sim-session.c)
 *   table      no place of a page of the checksum table has a bad block
 *   left out   with m members left out all data is there; the sets are drawn,
 *              beside the run's own numbers
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/bits.h"
#include "tests/simulation/sim-run.h"

/* Sets of members that are left out, of each array. */
#define MAX_SETS 2u

/* ---- what was spoilt ---- */

static bool
has_bad_blocks (const struct sim_disk *d)
{
  return memchr (d->bad, 1, d->size / SIM_BLOCK) != NULL;
}

uint64_t
end_spoilt_slots (const struct run *r)
{
  const struct array *a = r->sa->a;
  uint64_t slots = run_slots_of (r, r->spoilt | r->sa->ever_rotted |
                                 r->sums_lost);

  for (unsigned i = 0; i < a->nr_seats; i++)
    if (a->seat[i]->m && a->seat[i]->slot < a->n &&
        has_bad_blocks (sim_array_disk_of (a->seat[i])))
      slots |= BIT (a->seat[i]->slot);
  return slots;
}

/* A scrub has stored anew what could not be read of the table. */
void
end_check_table (struct run *r)
{
  const struct member_layout *l = &r->sa->l;

  for (unsigned slot = 0; r->sums && slot < r->n; slot++)
    for (uint64_t no = 0; no < table_nr_pages (l); no++)
      for (unsigned place = 0; place < 2; place++)
        if (r->sa->at[slot]->bad[table_page_off (l, no, place) / SIM_BLOCK])
          run_die (r, "%s: place %u of page %" PRIu64 " of the table is still "
                   "bad", r->sa->at[slot]->name, place, no);
}

/* ---- members left out ---- */

static uint64_t
draw (struct run *r, uint64_t n)
{
  r->end_state = r->end_state * 6364136223846793005 + 1442695040888963407;
  return (r->end_state >> 33) % n;
}

/* m of the slots. */
static uint64_t
draw_slots (struct run *r)
{
  uint64_t slots = 0;

  while (nr_bits (slots) < r->g.m)
    slots |= BIT (draw (r, r->n));
  return slots;
}

/* All data must be that of the disks, which was compared with the model. */
static void
check_without (struct run *r, struct sim_disk *const *at, uint64_t slots,
               const uint8_t *data, uint8_t *buf)
{
  uint64_t disks = 0, len;

  FOR_EACH_BIT (slot, LOW_BITS (r->n) & ~slots)
    disks |= BIT (sim_array_disk_no (r->sa, at[slot]));
  run_say (r, "slots %#" PRIx64 " are left out", slots);
  /* Where m >= k so few are not a quorum. */
  if (sim_array_open (r->sa, disks, r->g.m < r->g.k ? DEGRADED_ALLOW :
                      DEGRADED_FORCE, true) == -1)
    run_die (r, "without slots %#" PRIx64 ": it does not open: %s", slots,
             r->sa->said);
  for (uint64_t off = 0; off < r->g.size; off += len) {
    len = MIN (r->g.size - off, 1024 * 1024);
    if (sim_array_read (r->sa, buf, len, off) != 0)
      run_die (r, "without slots %#" PRIx64 ": %" PRIu64 "+%" PRIu64
               " can't be read", slots, off, len);
    for (uint64_t i = 0; i < len; i++)
      if (buf[i] != data[off + i])
        run_die (r, "without slots %#" PRIx64 ": other data at %" PRIu64,
                 slots, off + i);
  }
  if (!sim_array_stop (r->sa))
    run_die (r, "it does not stop");
}

void
end_leave_out (struct run *r, const uint8_t *data)
{
  struct sim_disk *at[MAX_SLOTS];
  uint8_t *buf = malloc (r->g.size);

  assert (buf != NULL);
  r->end_state = r->seed * 0x9e3779b97f4a7c15 | 1;
  memcpy (at, r->sa->at, sizeof at);
  for (unsigned i = 0; i < MAX_SETS; i++) {
    check_without (r, at, draw_slots (r), data, buf);
    stats.left_out++;
  }
  free (buf);
}
