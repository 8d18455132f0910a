/* gpuraid: the model of widening: a crash, and the steps of a recovery.
 * A crash loses up to m members, and keeps any of what was not flushed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "widen.h"

enum { BLOCK, PAGE, HEADER, RECORD, MISSED, CURSOR };
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

  for (int p = 0; p < N; p++) {
    if (!((there | back) >> p & 1))
      continue;
    for (int r = 0; r < S; r++)
      if (s->pdm[p] >> r & 1)
        it[n++] = (struct item) { p, BLOCK, r };
    if (s->ptm >> p & 1)
      it[n++] = (struct item) { p, PAGE, 0 };
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
    memcpy (s->te[i->p], s0->pt[i->p], sizeof s->te[i->p]);
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

/* Members are lost; some of these come back later. */
static void
crash_with (const St *s0, unsigned lost, unsigned back)
{
  const unsigned target = s0->tgt ? 1u << (s0->tgt - 1) : 0;
  struct item it[64];
  const int n = in_flight (s0, (s0->active | target) & ~lost, back, it);

  for (u32 sub = 0; sub < 1u << n; sub++) {
    St s = *s0;
    Plan pl;

    s.active &= ~lost;
    memset (s.pd, 0, sizeof s.pd);
    memset (s.pdm, 0, sizeof s.pdm);
    memset (s.pt, 0, sizeof s.pt);
    memset (s.prec, 0, sizeof s.prec);
    s.ptm = s.phm = s.pmiss = s.pcur = s.win = s.held = s.held_gen = 0;
    for (int i = 0; i < n; i++)
      if (sub >> i & 1)
        keep (&s, s0, &it[i]);
    if (s.phase == 0)
      s.prep = 0; /* the new member is a spare again */
    s.back = (s.back & ~lost) | back;
    if (lost & target)
      s.tgt = s.part = s.dcur = 0;
    s.cursor = s.dcur;
    s.mode = REC;
    s.step = 0;
    s.crashes--;
    s.rd = s.rrow = s.rslot = s.rold = s.rmid = 0;
    forget_records (&s);
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

  for (unsigned lost = 0; lost <= (unsigned) full (); lost++) {
    const unsigned can = !shape.steps || !s->rejoins ? 0
      : lost & ~(s->part ? 0 : target);

    if ((lost & ~(s->active | target)) || !may_lose (s, lost & s->active))
      continue;
    for (unsigned back = can;; back = (back - 1) & can) {
      crash_with (s, lost, back);
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
    for (int p = 0; p < N; p++)
      if (pl.wr[p]) {
        memcpy (s.pt[p], s.te[p], sizeof s.te[p]);
        if (SUMS)
          s.ptm |= 1 << p;
        else
          memset (s.pt[p], 0, sizeof s.pt[p]);
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
    s.mode = RUN;
    s.step = 0;
    if (s.phase == 0)
      s.F = S;
    emit (&s, LAB (L_RSTEP, 9, 0));
    return;
  }
  emit (&s, LAB (L_RSTEP, s.step, 1));
}
