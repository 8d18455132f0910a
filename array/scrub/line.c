/* gpuraid: scrub of one line: look, count, store anew, look again.
 *
 * What was found is stored anew before anything else can write to the rows: if
 * a block is wrong whose checksum is right, a write that makes new parity from
 * it would take away what proves that.  So the line is held from the look to
 * the repair, and looked at again before the next one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array/cache/cache.h"
#include "array/engine/consistency.h"
#include "array/engine/place.h"
#include "array/engine/state.h"
#include "array/health/lost.h"
#include "array/scrub/internal.h"
#include "common/plant.h"

/* Lines with findings that are logged one by one, in a scrub. */
#define MAX_LOGGED 20u

static void
end_line (struct array *a, struct scrub_line *sl)
{
  if (sl->s.line)
    op_scrub_put (a, &sl->s);
  sl->over (a, sl);
  list_remove (&sl->link);
  pool_put (&a->scrub->line_pool, sl);
}

/* ---- counting ----------------------------------------------------------- */

static void
count_block (struct array *a, const struct scrub_line *sl, unsigned role,
             unsigned b, bool corrupt)
{
  const unsigned slot = line_slot (a, sl->no, role);
  struct seat *s = a->at[slot][0];

  a->scrub->found[slot]++;
  if (a->scrub->count.found++ < MAX_LOGGED)
    log_notice ("scrub: slot %u: block %" PRIu64 " is wrong", slot,
                line_row (a, sl->no) + b);
  if (!corrupt)
    return;
  a->counters.corrupt_found++;
  if (s)
    s->nr_bad_sums++;
}

static uint64_t
wrong_in (const struct scrubbed *s, unsigned b)
{
  return s->bad[b] | s->guilty[b];
}

/* Content is judged first: parity that fits and has another generation is not
 * wrong, but is given that of the data.
 */
static uint64_t
to_store (const struct scrubbed *s, unsigned b)
{
  return wrong_in (s, b) | s->stale[b];
}

static void
count_rows (struct array *a, struct scrub_line *sl)
{
  struct array_scrub_count *c = &a->scrub->count;
  const struct scrubbed *s = &sl->s;
  const uint16_t misfit = s->misfit & ~sl->counted_rows;
  const uint16_t lost = s->lost & ~sl->counted_rows;

  c->unlocated_rows += nr_bits (misfit);
  c->lost_rows += nr_bits (lost);
  FOR_EACH_BIT (b, misfit)
    if (c->unlocated_rows < MAX_LOGGED)
      log_notice ("scrub: the blocks %" PRIu64 " of the members do not fit "
                  "together, and nothing says which is wrong",
                  line_row (a, sl->no) + b);
  sl->counted_rows |= misfit | lost;
  lost_rows_add (a, sl->no, s->lost);
  lost_rows_remove (a, sl->no, ~s->lost);
}

static void
count_repaired (struct array *a, struct scrub_line *sl, unsigned b,
                uint64_t roles)
{
  struct scrub *sc = a->scrub;

  roles &= sl->counted[b] & ~sl->repaired[b];
  sl->repaired[b] |= roles;
  sc->count.repaired += nr_bits (roles);
  FOR_EACH_BIT (role, roles)
    sc->repaired[line_slot (a, sl->no, role)]++;
}

/* What was found, and is good now without a repair of ours: a client has
 * written it, or has read it and so had it repaired.
 */
static void
count_repaired_by_others (struct array *a, struct scrub_line *sl)
{
  const struct scrubbed *s = &sl->s;

  for (unsigned b = 0; a->scrub->repair && b < a->cell_blocks; b++)
    if (!((s->misfit | s->lost) >> b & 1))
      count_repaired (a, sl, b, s->good[b] & ~wrong_in (s, b));
}

static void
count (struct array *a, struct scrub_line *sl)
{
  struct scrubbed *s = &sl->s;

  count_repaired_by_others (a, sl);
  for (unsigned b = 0; b < a->cell_blocks; b++) {
    const uint64_t found = wrong_in (s, b) & ~sl->counted[b];

    FOR_EACH_BIT (role, found)
      count_block (a, sl, role, b, ((s->wrong[b] & s->bad[b]) |
                                    s->guilty[b]) >> role & 1);
    sl->counted[b] |= found;
  }
  count_rows (a, sl);
}

/* ---- storing anew ------------------------------------------------------- */

/* The rows that are stored next: all with the same roles. */
static bool
choose_rows (struct array *a, struct scrub_line *sl)
{
  const struct scrubbed *s = &sl->s;
  const uint16_t left_out = s->misfit | s->lost | sl->given_up;
  unsigned b = 0;

  while (b < a->cell_blocks && (to_store (s, b) == 0 || left_out >> b & 1))
    b++;
  if (b == a->cell_blocks)
    return false;
  sl->b0 = b;
  sl->roles = to_store (s, b);
  while (++b < a->cell_blocks && !(left_out >> b & 1) &&
         to_store (s, b) == sl->roles &&
         (s->guilty[b] == 0) == (s->guilty[sl->b0] == 0))
    ;
  sl->nr = b - sl->b0;
  return true;
}

static void
give_up (struct array *a, struct scrub_line *sl, uint16_t rows, int error)
{
  sl->given_up |= rows;
  FOR_EACH_BIT (b, rows)
    if (a->scrub->given_up_rows++ < MAX_LOGGED)
      log_notice ("scrub: of the blocks %" PRIu64 " of the members some are "
                  "wrong, and can't be repaired: %s",
                  line_row (a, sl->no) + b,
                  error ? strerror (error) : "too few can be read");
}

static void
fixed (struct array *a, const struct fixed *f)
{
  struct scrub_line *sl = f->opaque;
  const uint16_t rows = block_mask (sl->b0, sl->nr);

  sl->phase = SCRUB_TO_LOOK;
  if (f->error == ECANCELED)
    return;
  give_up (a, sl, f->error ? rows : f->lost & rows, f->error);
  FOR_EACH_BIT (b, rows & ~sl->given_up) {
    const uint64_t wrong = sl->roles & wrong_in (&sl->s, b);

    count_repaired (a, sl, b, wrong);
    a->counters.repaired_blocks += nr_bits (wrong);
    a->counters.corrupt_repaired +=
      nr_bits (wrong & (sl->s.wrong[b] | sl->s.guilty[b]));
  }
}

/* Zeroing waits for readers, and keeps others from writing: it goes first. */
static void
fix (struct array *a, struct scrub_line *sl)
{
  if (op_zeroes (a, sl->no, sl->no + 1)) {
    op_scrub_put (a, &sl->s);
    sl->phase = SCRUB_TO_LOOK;
  }
  else if (op_scrub_fix (a, &sl->s, sl->roles, sl->s.guilty[sl->b0] != 0,
                         sl->b0, sl->nr, fixed))
    sl->phase = SCRUB_FIXING;
}

/* ---- looking ------------------------------------------------------------ */

static bool
may_repair (const struct array *a)
{
  return a->scrub->repair && !a->scrub->stop && !a->stopping && !a->failed &&
    !PLANTED ("scrub-only-counts");
}

static void
looked (struct array *a, struct scrubbed *s)
{
  struct scrub_line *sl = s->opaque;

  if (s->error == 0)
    count (a, sl);
  if (s->error || !may_repair (a) || !choose_rows (a, sl)) {
    end_line (a, sl);
    return;
  }
  sl->phase = SCRUB_TO_FIX;
}

static bool
look (struct array *a, struct scrub_line *sl)
{
  struct line *line;

  if (op_zeroes (a, sl->no, sl->no + 1) ||
      (line = line_get (a, sl->no)) == NULL)
    return false;
  sl->s.done = looked;
  sl->s.opaque = sl;
  if (op_scrub (a, line, &sl->s)) {
    sl->phase = SCRUB_LOOKING;
    return true;
  }
  line_settle (a, line);
  return false;
}

bool
scrub_line_begin (struct array *a, uint64_t no,
                  void (*over) (struct array *a, const struct scrub_line *sl))
{
  struct scrub_line *sl = pool_get (&a->scrub->line_pool);

  if (sl == NULL)
    return false;
  sl->no = no;
  sl->over = over;
  if (!look (a, sl)) {
    pool_put (&a->scrub->line_pool, sl);
    return false;
  }
  list_append (&a->scrub->lines, &sl->link);
  return true;
}

void
scrub_lines_decide (struct array *a)
{
  list_for_each (l, &a->scrub->lines) {
    struct scrub_line *sl = list_item (l, struct scrub_line, link);

    if (sl->phase != SCRUB_TO_FIX && sl->phase != SCRUB_TO_LOOK)
      continue;
    if (!may_repair (a))
      end_line (a, sl);
    else if (sl->phase == SCRUB_TO_LOOK)
      (void) look (a, sl);
    else if (array_may_write (a) && a->consistency->is_ready (a))
      fix (a, sl);
  }
}
