/* gpuraid: consistency=journal: how a transaction begins.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/engine/place.h"
#include "array/io/flush.h"
#include "array/journal/internal.h"
#include "array/ops/logged.h"
#include "array/ops/ops.h"
#include "array/seats/seat.h"
#include "common/plant.h"

bool
journal_waits_to_join (const struct array *a)
{
  for (unsigned i = 0; i < a->nr_seats; i++) {
    const struct seat *s = a->seat[i];

    if (s->state == SEAT_TARGET && s->complete && !s->failing)
      return true;
  }
  return false;
}

bool
journal_is_held (const struct array *a)
{
  return (a->ops_held && a->nr_other_ops == 0) || journal_waits_to_join (a);
}

void
journal_plan_anew (struct array *a, struct logged *lg)
{
  list_remove (&lg->link);
  op_plan_again (a, lg->op);
}

/* At most a quarter of a ring, so that others are freed meanwhile; but one
 * operation always fits.
 */
static uint32_t
max_record (const struct array *a)
{
  return MAX (a->sb.l.ring_len / BLOCK_LEN / 4,
              a->cell_blocks + journal_header_blocks (a->cell_blocks,
                                                      a->cell_blocks));
}

/* A row that was never written, as all members say, has nothing to lose: it is
 * written in place with the records (R11, R12).  Where a client waits for a
 * small write the ring is as good.
 */
static bool
may_be_direct (const struct array *a, const struct journal *j,
               const struct logged *lg)
{
  if (row_moves (a, lg->row))   /* over rows that are dead; or alone */
    return !a->moving.alone && !lg->zeroes;
  if (a->sums == NULL || !op_is_bulk (lg->op))
    return false;
  if (!op_is_first_write (a, lg->op) && !PLANTED ("direct-not-first"))
    return false;
  /* Its zeroes may not be in the stored table yet. */
  return !zeroed_maybe (&j->zeroed, lg->row, lg->row + lg->nr_rows) ||
    PLANTED ("direct-zeroed");
}

/* Are there rows that the next transaction has to zero (withdraw.h)? */
static bool
any_withdrawn (const struct journal *j)
{
  list_for_each (l, &j->gathered)
    if (list_item (l, struct logged, link)->withdrawn)
      return !PLANTED ("withdrawn-not-first");
  return false;
}

/* Zeroes go before what may wait for space, and without it. */
static bool
zeroes_go_first (const struct array *a, const struct journal *j)
{
  bool is_short = false;

  for (unsigned i = 0; i < a->nr_seats; i++)
    is_short |= a->seat[i]->no_space;
  list_for_each (l, &j->gathered)
    if (list_item (l, struct logged, link)->zeroes && is_short)
      return true;
  return false;
}

bool
journal_may_begin (const struct array *a, struct journal *j)
{
  if (list_empty (&j->gathered))
    return false;
  /* While one is live no member becomes active, and it may be waiting for the
   * space that others give back.
   */
  return !journal_is_held (a) || PLANTED ("journal-not-held") ||
    any_withdrawn (j) ||
    (!list_empty (&j->live) && zeroes_go_first (a, j));
}

/* All of them, or none. */
static bool
add_withdrawn (struct array *a, struct journal *j, struct txn *t)
{
  list_for_each (l, &j->gathered) {
    struct logged *lg = list_item (l, struct logged, link);

    if (lg->withdrawn && !txn_add (a, t, lg, max_record (a)))
      return false;
  }
  return true;
}

/* zeroes: no others.  What moves, or what does not, as the first one. */
static void
add_gathered (struct array *a, struct journal *j, struct txn *t, bool zeroes)
{
  bool first = t->nr_ops == 0;

  list_for_each (l, &j->gathered) {
    struct logged *lg = list_item (l, struct logged, link);

    if (lg->withdrawn || (zeroes && !lg->zeroes))
      continue;
    if (first)
      t->moves = row_moves (a, lg->row);
    first = false;
    if (row_moves (a, lg->row) != t->moves)
      continue;
    lg->direct = may_be_direct (a, j, lg);
    if (op_is_outdated (a, lg->op) && !PLANTED ("journal-old-plan"))
      journal_plan_anew (a, lg);
    else if (!txn_add (a, t, lg, max_record (a)))
      break;
  }
}

static void
take_all_back (struct journal *j, struct txn *t)
{
  list_for_each (l, &t->ops)
    list_item (l, struct logged, link)->txn = NULL;
  list_splice (&j->gathered, &t->ops);
  txn_free (t);
}

void
journal_begin (struct array *a, struct journal *j,
               void (*written) (struct array *a, struct txn *t))
{
  struct txn *t = txn_new (a, j->next_seq);
  const bool withdrawn = any_withdrawn (j);
  const bool zeroes = withdrawn || zeroes_go_first (a, j);

  if (t == NULL)
    return;                     /* the next turn tries again */
  t->takes_reserve = zeroes && !PLANTED ("journal-no-reserve");
  if (withdrawn && !add_withdrawn (a, j, t)) {
    take_all_back (j, t);
    return;
  }
  add_gathered (a, j, t, zeroes);
  j->full = t->nr_ops == 0 && !list_empty (&j->gathered);
  if (t->nr_ops == 0) {
    txn_free (t);
    return;
  }
  if (!txn_write (a, t, j->session, written)) {
    take_all_back (j, t);
    return;
  }
  j->next_seq = journal_seq_after (t->seq);
  a->newest_seq = t->seq;
  j->committing = t;
  j->last_commit = engine_now (a);
  list_for_each (l, &t->ops) {
    struct op *op = list_item (l, struct logged, link)->op;

    op_stage_end (a, op, &a->stages.gathered);
    if (PLANTED ("journal-early-ack"))
      op_end_tickets (a, op);
  }
  list_append (&j->live, &t->link);
  if (t->nr_zeroed > 0)
    zeroed_add (&j->zeroed, t->zeroed, t->nr_zeroed);
  j->nr_direct += txn_direct_blocks (t);
  a->counters.journal_commits++;
}
