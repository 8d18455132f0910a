/* gpuraid: the model of widening: a crash, and the steps of a recovery.
 * A crash loses up to m members, and keeps any of what was not flushed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "widen.h"

void
crash (const St *s0)
{
  struct {
    u8 p, kind, a;
  } it[64];
  int n;
  for (unsigned x = 0; x <= (unsigned) full (); x++) {
    if ((x & ~s0->active) || !may_lose (s0, x))
      continue;
    n = 0;
    for (int p = 0; p < N; p++)
      if ((s0->active & ~x) >> p & 1) {
        for (int r = 0; r < S; r++)
          if (s0->pdm[p] >> r & 1)
            it[n].p = p, it[n].kind = 0, it[n++].a = r;
        if (s0->ptm >> p & 1)
          it[n].p = p, it[n++].kind = 1;
        if (s0->phm >> p & 1)
          it[n].p = p, it[n++].kind = 2;
        for (int b = 0; b < 8; b++)
          if (s0->prec[p] >> b & 1)
            it[n].p = p, it[n].kind = 3, it[n++].a = b;
      }
    if (n > most_pending)
      most_pending = n;
    if (n > 22) {
      printf ("%d writes in flight\n", n);
      exit (3);
    }
    for (u32 sub = 0; sub < 1u << n; sub++) {
      St s = *s0;
      Plan pl;
      s.active &= ~x;
      memset (s.pd, 0, sizeof s.pd);
      memset (s.pdm, 0, sizeof s.pdm);
      memset (s.pt, 0, sizeof s.pt);
      memset (s.prec, 0, sizeof s.prec);
      s.ptm = s.phm = 0;
      for (int i = 0; i < n; i++)
        if (sub >> i & 1) {
          int p = it[i].p;
          switch (it[i].kind) {
          case 0:
            s.data[p][it[i].a] = s0->pd[p][it[i].a];
            break;
          case 1:
            memcpy (s.te[p], s0->pt[p], sizeof s.te[p]);
            break;
          case 2:
            s.h[p] = s0->ph;
            break;
          default:
            s.rec[p] |= 1 << it[i].a;
          }
        }
      if (s.phase == 0)
        s.prep = 0; /* the new member is a spare again */
      s.mode = REC;
      s.step = 0;
      s.crashes--;
      s.rd = s.rrow = s.rslot = s.rold = s.rmid = 0;
      /* records that are nowhere, or that every header freed */
      {
        int tail = 255;
        for (int p = 0; p < N; p++)
          if ((s.active >> p & 1) && s.h[p].tail < tail)
            tail = s.h[p].tail;
        for (int i = s.ntx - 1; i >= 0; i--) {
          int any = 0;
          for (int p = 0; p < N; p++)
            if ((s.active >> p & 1) && (s.rec[p] >> 2 * i & 3))
              any = 1;
          if (!any || s.tx[i].seq < tail)
            del_tx (&s, i);
          else
            s.tx[i].stage = 0;
        }
      }
      for (int p = 0; p < N; p++)
        if (!(s.active >> p & 1))
          s.rec[p] = 0;
      s.F = 0;
      mkplan (&s, &pl);
      check_plan (&s, &pl);
      emit (&s, LAB (L_CRASH, x, sub));
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
      if ((s.active >> p & 1) && pl.wr[p]) {
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
