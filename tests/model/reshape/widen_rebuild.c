/* gpuraid: the model of widening: members that fail, come back or are
 * replaced, and the rebuild that meets the frontier (W11, D2).
 *
 * A rebuild in steps goes over the rows, each in the geometry that it has.  It
 * skips dead rows, NEW's old rows, and of a member that is back those that it
 * did not miss.  Below its end the target is written in place with the others;
 * it writes no records, and is no source.
 *
 * What the model adds to W11:
 *
 *   - A rebuild begins only when the header of the window that was under way
 *     is in force (rebuildearly).  1+1: the window of row 0 is in place and its
 *     header is written, NEW fails, and a spare takes its slot at once.  Row 0
 *     is an old row of NEW, so it is skipped, and the cursor passes it.  The
 *     header is durable: row 0 is new, and the target lacks it.  It is the
 *     same for any slot with the dead rows of a direct window.
 *   - A window begins only while there is no target.  That every slot is active
 *     is not enough: so it is while an active member is replaced (movereplace).
 *     Without a target moves may go on (degraded, moverebuild).
 *   - A direct window is a transaction for D2, also without checksums, when it
 *     has no record: when a member leaves, its rows are marked (unmarkedwin).
 *     A recovery needs no marks of it: what it drops is dead.
 *   - A row that is old in part is copied with the old content of the chunks
 *     that moved (copyclient), so it is made from the members, not from lines
 *     that clients read or wrote.
 *   - A member that comes back may have a header with a greater frontier than
 *     the one in force: it was written, and the array went on without it, and
 *     crashed.  Its header is overwritten in both places before it counts as
 *     active (ownhdr).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "widen.h"

/* The slot of a member, or of a target that replaces an active one. */
int
slot_of (const St *s, int p)
{
  return p == N && s->repl ? s->repl - 1 : p;
}

/* Is p the target, and written in this row?  The row in flight is not: what
 * changes it waits.
 */
int
on_target (const St *s, int p, int row)
{
  return p == s->tgt - 1 && row < s->cursor;
}

/* The rows that transactions change which are not freed. */
unsigned
rows_of_tx (const St *s)
{
  unsigned rows = 0;

  for (int i = 0; i < s->ntx; i++)
    if (!(s->tx[i].type == DIRECT && ON (unmarkedwin)))
      rows |= ((1u << s->tx[i].w) - 1) << s->tx[i].row;
  return rows;
}

static void
no_target (St *s)
{
  s->tgt = s->repl = s->part = s->cursor = s->win = s->dcur = s->pcur = 0;
  s->held = s->held_gen = 0;
}

/* The member that is replaced is gone: the target has the slot. */
void
inherit (St *s)
{
  const int p = s->repl - 1;

  memcpy (s->data[p], s->data[N], SM);
  memcpy (s->te[p], s->te[N], sizeof s->te[p]);
  memcpy (s->pd[p], s->pd[N], SM);
  memcpy (s->pt[p], s->pt[N], sizeof s->pt[p]);
  s->pdm[p] = s->pdm[N];
  s->ptm &= ~(1 << p);
  s->ptm |= (s->ptm >> N & 1) << p;
  s->pdm[N] = 0;
  s->ptm &= ~(1 << N);
  s->tgt = p + 1;
  s->repl = 0;
}

/* A member fails.  Before the record without it is in force, the rows of all
 * transactions that are not freed are durably marked as missed.
 */
static void
fail (const St *s0, int p)
{
  St s = *s0;
  int only = 0;

  if (s.rd && s.rslot == p)
    s.rd = s.rrow = s.rslot = s.rold = s.rmid = 0; /* done again elsewhere */
  if (shape.steps && !ON (unmarkedleave))
    s.miss |= rows_of_tx (&s);
  if (p == s.tgt - 1)
    no_target (&s);
  else if (p == s.repl - 1)
    inherit (&s);
  s.active &= ~(1 << p);
  s.back &= ~(1 << p);
  if (s.phm && !(s.phm & ~(1 << p)))
    only = 1;
  canon (&s);
  if (only)
    s.phm = 0;
  emit (&s, LAB (L_FAIL, p, 0));
}

/* Likewise, and it can come back.  Any of what was not flushed is there. */
static void
fail_for_a_while (const St *s0, int p)
{
  const int has_page = s0->ptm >> p & 1, rows = s0->pdm[p];
  const int has_header = ON (ownhdr) && s0->phm >> p & 1;

  for (int how = 0; how < 8; how++) {
    if (((how & 1) && !has_page) || ((how & 2) && !has_header)
        || ((how & 4) && (!shape.tear || !has_page || how & 1)))
      continue;
    for (int kept = rows;; kept = (kept - 1) & rows) {
      St s = *s0;

      for (int r = 0; r < S; r++)
        if (kept >> r & 1)
          s.data[p][r] = s.pd[p][r];
      if (how & 1)
        page_stored (&s, s0, p);
      if (how & 2)
        s.h[p] = s.ph;
      if (how & 4)
        page_torn (&s, p);
      if (!ON (unmarkedleave))
        s.miss |= rows_of_tx (&s);
      if (p == s.tgt - 1)
        no_target (&s);
      s.active &= ~(1 << p);
      s.back |= 1 << p;
      if (s.phm && !(s.phm & ~(1 << p)))
        s.phm = 0;
      emit (&s, LAB (L_LEAVE, p, kept));
      if (!kept)
        break;
    }
  }
}

void
leave (const St *s)
{
  for (int p = 0; p <= N; p++) {
    const int target = p == s->tgt - 1;

    if (!target && (!(s->active >> p & 1) || !may_lose (s, 1u << p)
                    || (s->phase == 0 && s->prep)))
      continue;
    fail (s, p);
    if (shape.steps && s->rejoins && (!target || s->part)
        && p != s->repl - 1)
      fail_for_a_while (s, p);
  }
}

/* A member that was lost is rebuilt in one step, and joins. */
static void
rejoin_one (const St *s0, int p)
{
  St s = *s0;
  s.rejoins--;
  s.active |= 1 << p;
  s.h[p].tail = s.next;
  s.h[p].F = ON (join) ? 0 : s.F;
  s.rec[p] = 0;
  for (int r = 0; r < S; r++) {
    int nw = r < s.F, gen = 0;
    u8 d[8] = { 0 };
    if (!nw && r < dead_end (s.F)) {
      s.data[p][r] = 0xEE;
      s.te[p][r] = 0;
      continue;
    }
    for (int i = 0; i <= K; i++) {
      int c = nw ? r * (K + 1) + i : r * K + i;
      d[i] = nw ? c < NC ? s.cur[c] : 0 : i < K ? s.oldv[c] : 0;
    }
    for (int q = 0; q < N; q++)
      if ((s.active >> q & 1) && q != p && role (nw, r, q) > K)
        gen = s.te[q][r] >> 8;
    for (int q = 0; q < N && !gen; q++)
      if ((s.active >> q & 1) && q != p) {
        int g = s.te[q][r] >> 8;
        if (g > gen)
          gen = g;
      }
    int ro = role (nw, r, p);
    if (!nw && p == K + M) {
      s.data[p][r] = 0xEE;
      s.te[p][r] = 0;
      continue;
    }
    s.data[p][r] = cell (ro, d);
    if (SUMS)
      s.te[p][r] = entry (s.data[p][r], gen, gen == 0);
  }
  emit (&s, LAB (L_JOIN, p, 0));
}

void
rejoin (const St *s)
{
  if (s->phase == 1 && s->rejoins)
    for (int p = 0; p < N; p++)
      if (!(s->active >> p & 1))
        rejoin_one (s, p);
}

/* ---- a rebuild in steps ------------------------------------------------- */

static void
start (const St *s0, int p, int part)
{
  St s = *s0;

  no_target (&s);
  s.tgt = p + 1;
  s.part = part;
  s.back &= ~(1 << p);
  s.rejoins--;
  if (s.torn >> p & 1)
    s.miss = (1 << S) - 1;
  s.torn &= ~(1 << p);
  if (!part) {
    memset (s.data[p], 0xEE, S);
    memset (s.te[p], 0, sizeof s.te[p]);
    memset (&s.h[p], 0, sizeof s.h[p]);
  }
  emit (&s, LAB (part ? L_BACK : L_FULL, p, 0));
}

/* Of an active member: a copy of it, beside it. */
static void
start_copy (const St *s0, int p)
{
  St s = *s0;

  no_target (&s);
  s.tgt = N + 1;
  s.repl = p + 1;
  s.rejoins--;
  memset (s.data[N], 0xEE, S);
  memset (s.te[N], 0, sizeof s.te[N]);
  emit (&s, LAB (L_REPLACE, p, 0));
}

static int
skips (const St *s, int p, int row)
{
  if (!is_new (s, row)
      && ((row < dead_end (s->F) && !ON (copydead))
          || slot_of (s, p) == K + M))
    return 1;
  return s->part && !((s->miss | s->pmiss) >> row & 1);
}

/* The generation of a block that is rebuilt: the parity's, or without any the
 * youngest of the row's data.  Then members that are out may have another.
 */
static int
generation (St *s, int p, int row)
{
  const int nw = is_new (s, row);
  int parity = 0;

  for (int q = 0; q < N; q++)
    parity |= (s->active >> q & 1) && role (nw, row, q) > K;
  if (!parity && (s->active | 1u << slot_of (s, p)) != must (s))
    s->pmiss |= 1 << row & ~s->miss;
  return page_generation (s, nw, row, p);
}

/* The next row, when nothing changes it. */
static void
copy (const St *s0)
{
  St s = *s0;
  const int p = s.tgt - 1;
  unsigned good;
  u8 v[NM], d[8];
  int row, nw, e;

  while (s.cursor < S && skips (&s, p, s.cursor))
    s.cursor++;
  row = s.cursor;
  if (row == S) {
    emit (&s, LAB (L_COPIED, 0, 0));
    return;
  }
  for (int i = 0; i < s.ntx; i++)
    if (s.tx[i].row <= row && row < s.tx[i].row + s.tx[i].w
        && s.tx[i].stage < (ON (copyearly) ? MET : DONE))
      return;
  nw = is_new (&s, row);
  row_in_place (&s, nw, row, s.active, &good, v);
  e = decode (nw, row, good, v, d);
  if (e != 1)
    viol (e ? "a rebuild: row %d does not fit together"
            : "a rebuild: row %d can't be read", row, 0);
  for (int i = 0; i < K && !nw && ON (copyclient); i++)
    d[i] = s.cur[row * K + i];
  if (SUMS)
    s.held_gen = generation (&s, p, row);
  s.held = cell (role (nw, row, slot_of (&s, p)), d);
  s.win = 1;
  emit (&s, LAB (L_COPY, row, 0));
}

/* It is written to the target. */
static void
put (const St *s0)
{
  St s = *s0;
  const int p = s.tgt - 1, row = s.cursor;

  if (s.ptm >> p & 1)
    return;
  if (SUMS) {
    memcpy (s.pt[p], s.te[p], sizeof s.te[p]);
    s.ptm |= 1 << p;
    s.pt[p][row] = entry (s.held, s.held_gen, s.held_gen == 0);
  }
  s.pdm[p] |= 1 << row;
  s.pd[p][row] = s.held;
  s.held = s.held_gen = 0;
  s.win = 2;
  emit (&s, LAB (L_PUT, row, 0));
}

/* It becomes active: only while the journal is empty (R10). */
static void
join (const St *s0)
{
  St s = *s0;
  int p = s.tgt - 1;

  if (s.repl) {
    inherit (&s);
    p = s.tgt - 1;
  }
  s.active |= 1 << p;
  no_target (&s);
  if (!ON (ownhdr))
    s.h[p].F = ON (join) ? 0 : s.F;
  s.h[p].tail = s.next;
  if (shape.tear) {             /* its page is stored in both places */
    s.tseq[p] = s.otseq[p] = s.last[p] = s.next - 1;
    memcpy (s.ote[p], s.te[p], sizeof s.te[p]);
  }
  if (s.active == must (&s) || ON (clearedearly))
    s.miss = 0;
  emit (&s, LAB (L_JOIN, p, 0));
}

void
rebuild (const St *s, int quiet)
{
  int lo, hi;

  if (s->phase != 1)
    return;
  if (!s->tgt) {
    for (int p = 0; p < N && s->rejoins; p++)
      if (!(s->active >> p & 1)
          && (!window (s, &lo, &hi) || ON (rebuildearly))) {
        start (s, p, 0);
        if (s->back >> p & 1)
          start (s, p, 1);
      }
    for (int p = 0; p < N && s->rejoins && shape.steps == 2; p++)
      if ((s->active >> p & 1) && !window (s, &lo, &hi))
        start_copy (s, p);
    return;
  }
  if (!s->win && s->cursor < S)
    copy (s);
  if (!s->win && !s->pcur && s->dcur < s->cursor && s->crashes) {
    St t = *s;

    t.pcur = t.cursor;
    emit (&t, LAB (L_CURSOR, t.cursor, 0));
  }
  if (s->win == 1)
    put (s);
  if (s->win == 2 && !s->pcur && s->crashes && ON (cursorearly)) {
    St t = *s;

    t.pcur = t.cursor + 1;
    emit (&t, LAB (L_CURSOR, t.pcur, 0));
  }
  if (s->cursor == S && quiet)
    join (s);
}
