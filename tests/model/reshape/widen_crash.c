/* gpuraid: the model of widening: a crash, and the steps of a recovery.
 * A crash loses up to m members, and keeps any of what was not flushed.  With
 * tear a page that is being written may be torn; with rot a page of one member
 * more rots at the last crash, if that are m faults at most.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "widen.h"

enum { BLOCK, PAGE, TEAR, HEADER, RECORD, MISSED, CURSOR };
struct item {
  u8 p, kind, a;
};

/* What was written and not flushed, of the members of a mask, and of those
 * that are lost but come back.
 */
static int
in_flight (const St *s, unsigned there, unsigned back, struct item *it)
{
  int n = 0;

  for (int p = 0; p <= N; p++) {
    if (!((there | back) >> p & 1))
      continue;
    for (int r = 0; r < S; r++)
      if (s->pdm[p] >> r & 1)
        it[n++] = (struct item) { p, BLOCK, r };
    if (s->ptm >> p & 1)
      it[n++] = (struct item) { p, PAGE, 0 };
    if (s->ptm >> p & 1 && shape.tear)
      it[n++] = (struct item) { p, TEAR, 0 };
    if (s->phm >> p & 1 && (there >> p & 1 || ON (ownhdr)))
      it[n++] = (struct item) { p, HEADER, 0 };
    for (int b = 0; b < 8; b++)
      if (s->prec[p] >> b & 1 && there >> p & 1)
        it[n++] = (struct item) { p, RECORD, b };
  }
  for (int r = 0; r < S; r++)
    if (s->pmiss >> r & 1)
      it[n++] = (struct item) { 0, MISSED, r };
  if (s->pcur)
    it[n++] = (struct item) { 0, CURSOR, s->pcur };
  if (n > most_pending)
    most_pending = n;
  if (n > 22) {
    printf ("%d writes in flight\n", n);
    exit (3);
  }
  return n;
}

static void
keep (St *s, const St *s0, const struct item *i)
{
  switch (i->kind) {
  case BLOCK:
    s->data[i->p][i->a] = s0->pd[i->p][i->a];
    break;
  case PAGE:
    page_stored (s, s0, i->p);
    break;
  case TEAR:
    page_torn (s, i->p);
    break;
  case HEADER:
    s->h[i->p] = s0->ph;
    break;
  case RECORD:
    s->rec[i->p] |= 1 << i->a;
    break;
  case MISSED:
    s->miss |= 1 << i->a;
    break;
  default:
    s->dcur = i->a;
  }
}

/* Records that are nowhere, or that every header freed. */
static void
forget_records (St *s)
{
  int tail = 255;

  for (int p = 0; p < N; p++)
    if ((s->active >> p & 1) && s->h[p].tail < tail)
      tail = s->h[p].tail;
  for (int i = s->ntx - 1; i >= 0; i--) {
    int any = 0;
    for (int p = 0; p < N; p++)
      if ((s->active >> p & 1) && (s->rec[p] >> 2 * i & 3))
        any = 1;
    if (!any || s->tx[i].seq < tail)
      del_tx (s, i);
    else
      s->tx[i].stage = 0;
  }
  for (int p = 0; p < N; p++)
    if (!(s->active >> p & 1))
      s->rec[p] = 0;
}

/* Nothing explains a bad place of a target's page: it starts over. */
static void
target_page (St *s)
{
  const int p = s->tgt - 1;

  if (p == -1 || !(s->torn >> p & 1))
    return;
  s->torn &= ~(1 << p);
  s->dcur = 0;
  if (s->part)
    s->miss = (1 << S) - 1;
}

/* Was a page both stored and torn? */
static int
is_twofold (const struct item *it, int n, u32 kept)
{
  for (int i = 1; i < n; i++)
    if (it[i].kind == TEAR && (kept >> (i - 1) & 3) == 3)
      return 1;
  return 0;
}

/* Members are lost; some of these come back later.  rots: the member + 1 of
 * which a page rots
 */
static void
crash_with (const St *s0, unsigned lost, unsigned back, int rots)
{
  const unsigned target = s0->tgt ? 1u << (s0->tgt - 1) : 0;
  struct item it[64];
  const int n = in_flight (s0, (s0->active | target) & ~lost, back, it);

  for (u32 sub = 0; sub < 1u << n; sub++) {
    St s = *s0;
    Plan pl;

    if (is_twofold (it, n, sub))
      continue;
    s.active &= ~lost;
    memset (s.pd, 0, sizeof s.pd);
    memset (s.pdm, 0, sizeof s.pdm);
    memset (s.pt, 0, sizeof s.pt);
    memset (s.prec, 0, sizeof s.prec);
    memset (s.ptseq, 0, sizeof s.ptseq);
    s.ptm = s.phm = s.pmiss = s.pcur = s.win = s.held = s.held_gen = 0;
    for (int i = 0; i < n; i++)
      if (sub >> i & 1)
        keep (&s, s0, &it[i]);
    if (rots) {
      if (s.torn >> (rots - 1) & 1)
        continue;               /* m + 1 faults, or one that proves nothing */
      page_rots (&s, rots - 1);
      s.rot--;
    }
    target_page (&s);
    if (s.phase == 0)
      s.prep = 0; /* the new member is a spare again */
    s.back = (s.back & ~lost) | back;
    if (lost & target)
      s.tgt = s.repl = s.part = s.dcur = 0;
    if (s.repl && (lost >> (s.repl - 1) & 1))
      inherit (&s);
    s.mode = REC;
    s.step = 0;
    s.crashes--;
    s.rd = s.rrow = s.rslot = s.rold = s.rmid = 0;
    forget_records (&s);
    s.cursor = s.dcur;
    s.F = 0;
    mkplan (&s, &pl);
    check_plan (&s, &pl);
    emit (&s, LAB (L_CRASH, lost, sub));
  }
}

void
crash (const St *s)
{
  const unsigned target = s->tgt ? 1u << (s->tgt - 1) : 0;

  for (unsigned lost = 0; lost <= (full () | target); lost++) {
    const unsigned can = !shape.steps || !s->rejoins ? 0
      : lost & ~(s->part ? 0 : target) & ~(s->repl ? 1u << (s->repl - 1) : 0);

    if ((lost & ~(s->active | target)) || !may_lose (s, lost & s->active))
      continue;
    for (unsigned back = can;; back = (back - 1) & can) {
      crash_with (s, lost, back, 0);
      for (int p = 0; p < N && s->rot && s->crashes == 1; p++)
        if ((s->active & ~lost) >> p & 1
            && may_lose (s, (lost & s->active) | 1u << p))
          crash_with (s, lost, back, p + 1);
      if (!back)
        break;
    }
  }
}

void
recovery (const St *s0)
{
  St s = *s0;
  Plan pl;
  int any = 0;
  if (pending (&s)) {
    St t = s;
    flush (&t);
    t.step++;
    emit (&t, LAB (L_RSTEP, t.step, 0));
    return;
  }
  if (s.step < 3) {
    mkplan (&s, &pl);
    check_plan (&s, &pl);
  }
  if (s.step == 0) { /* the newest, where it is kept, is written again */
    if (!ON (norelog))
      for (int i = 0; i < s.ntx; i++)
        if ((unsigned) i == pl.newest && !(pl.drop >> i & 1)
            && s.tx[i].type != DIRECT)
          for (int p = 0; p < N; p++)
            if ((s.active >> p & 1) && (s.tx[i].slots >> p & 1)) {
              int all = (s.tx[i].w == 2 ? 3 : 1) << 2 * i;
              if ((s.rec[p] & all) != all) {
                s.prec[p] |= all & ~s.rec[p];
                any = 1;
              }
            }
    if (!any)
      s.step = 1;
  }
  if (s.step == 1) { /* in place, and the table */
    for (int p = 0; p <= N; p++)
      if (pl.wr[p] || (s.torn >> p & 1 && !ON (tornleft))) {
        if (SUMS)
          page_anew (&s, p);
        any = 1;
        for (int r = 0; r < S; r++)
          if (pl.wr[p] >> r & 1) {
            s.pdm[p] |= 1 << r;
            s.pd[p][r] = pl.nv[p][r];
            if (SUMS)
              s.pt[p][r] = pl.ne[p][r];
            any = 1;
          }
      }
    if (shape.steps && s.active != must (&s) && !ON (unmarkedrec))
      s.pmiss = rows_of_tx (&s) & ~s.miss;
    any |= s.pmiss;
    if (!any)
      s.step = 2;
    else if (ON (recearly)) {
      s.ph.tail = s.next;
      s.ph.F = pl.F;
      s.phm = s.active;
    }
  }
  if (s.step == 2) {
    any = 1;
    s.ph.tail = s.next;
    s.ph.F = s.phase == 0 ? S : ON (ownzero) ? 0 : pl.F;
    s.phm = s.active;
  }
  if (s.step >= 3) { /* all is in force */
    while (s.ntx)
      del_tx (&s, 0);
    mkplan (&s, &pl);
    check_plan (&s, &pl);
    memcpy (s.cur, pl.val, CM);
    memcpy (s.dur, pl.val, CM);
    memcpy (s.oldv, pl.oldv, CM);
    s.F = pl.F;
    memcpy (s.last, s.tseq, sizeof s.last);
    s.mode = RUN;
    s.step = 0;
    if (s.phase == 0)
      s.F = S;
    emit (&s, LAB (L_RSTEP, 9, 0));
    return;
  }
  emit (&s, LAB (L_RSTEP, s.step, 1));
}
