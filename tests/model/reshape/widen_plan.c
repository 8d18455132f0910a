/* gpuraid: the model of widening: what a recovery decides (W10), and what
 * must be so in every state that a crash leaves, and in every state at rest.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "widen.h"

u16
entry (u8 v, int gen, int zero)
{
  return zero ? 0 : v | gen << 8;
}

/* Row r with nothing in the rings: all of it counts as it lies there. */
void
row_in_place (const St *s, int nw, int r, unsigned act, unsigned *good, u8 *v)
{
  *good = 0;
  for (int p = 0; p < N; p++) {
    if (!nw && p == K + M && !ON (zerocol) && s->phase) {
      *good |= 1u << p;
      v[p] = 0;
      continue;
    }
    if (!nw && p == K + M && !s->phase) {
      *good |= 1u << p;
      v[p] = 0;
      continue;
    }
    if (!(act >> p & 1))
      continue;
    v[p] = s->data[p][r];
    if (SUMS) {
      if (!page_known (s, p))
        continue;
      if (s->te[p][r] == 0)
        v[p] = 0;
      else if ((s->te[p][r] & 255) != v[p])
        continue;
    }
    *good |= 1u << p;
  }
}

static void
take (Plan *pl, int nw, int r, const u8 *d, int F)
{
  for (int i = 0; i <= K; i++) {
    int c = nw ? r * (K + 1) + i : i < K ? r * K + i : -1;
    if (c < 0) {
      if (d[i])
        viol ("row %d: not zero in the new member's column", r, 0);
      continue;
    }
    if (c >= NC) {
      if (nw && d[i] && r < F)
        viol ("row %d: not zero beyond the end", r, 0);
      continue;
    }
    if (nw || c >= F * (K + 1))
      pl->val[c] = d[i];
    if (!nw)
      pl->oldv[c] = d[i];
  }
}

void
mkplan (const St *s, Plan *pl)
{
  unsigned act = s->active;
  int F = ON (least) ? 255 : 0, tail = 0;
  unsigned live = 0;
  nr_plans++;
  memset (pl, 0, sizeof *pl);
  for (int p = 0; p < N; p++)
    if (act >> p & 1) {
      if (s->h[p].tail > tail)
        tail = s->h[p].tail;
      if (ON (least) ? s->h[p].F < F : s->h[p].F > F)
        F = s->h[p].F;
    }
  if (s->phase == 0)
    F = 0;
  if (s->phase == 2)
    F = S;
  for (int i = 0; i < s->ntx; i++)
    for (int p = 0; p < N; p++)
      if ((act >> p & 1) && (s->rec[p] >> 2 * i & 3) && s->tx[i].seq >= tail)
        live |= 1u << i;
  /* a journaled move: the whole or nothing */
  for (int i = 0; i < s->ntx; i++)
    if ((live >> i & 1) && s->tx[i].type == JOURNAL && s->tx[i].row == F) {
      const Tx *t = &s->tx[i];
      int ok = 0;
      for (int w = 0; w < t->w; w++) {
        unsigned g = 0;
        u8 d[8];
        for (int p = 0; p < N; p++)
          if ((act >> p & 1) && (s->rec[p] >> (2 * i + w) & 1))
            g |= 1u << p;
        int e = decode (1, t->row + w, g, t->val[w], d);
        if (e < 0)
          viol ("a move's records do not fit", 0, 0);
        if (e)
          ok |= 1 << w;
      }
      if (ON (rowwise) && ok == 2) { /* the second row alone */
        pl->drop |= 1u << i;
        for (int p = 0; p < N; p++)
          if (act >> p & 1) {
            pl->wr[p] |= 1 << (t->row + 1);
            pl->nv[p][t->row + 1] = t->val[1][p];
            pl->ne[p][t->row + 1] = entry (t->val[1][p], t->seq, 0);
          }
        continue;
      }
      ok = ok == (1 << t->w) - 1;
      if (!ok) {
        pl->drop |= 1u << i;
        continue;
      }
      pl->keepj = i + 1;
      F = t->row + t->w;
      for (int w = 0; w < t->w; w++)
        for (int p = 0; p <= N; p++)
          if (act >> p & 1 || on_target (s, p, t->row + w)) {
            int r = t->row + w, slot = slot_of (s, p);
            pl->wr[p] |= 1 << r;
            pl->nv[p][r] = t->val[w][slot];
            pl->ne[p][r] = entry (t->val[w][slot], t->seq, 0);
          }
    }
  pl->F = F;
  pl->tail = tail;
  for (int i = 0; i < s->ntx; i++)
    if (live >> i & 1)
      pl->newest = i;
  for (int r = 0; r < S; r++) {
    int nw = r < F;
    unsigned excl = 0;
    int tries = 0;
    u8 v[NM], d[8];
    unsigned good;
    int e;
    if (!nw && r < dead_end (F) && s->phase == 1 && !ON (replay)
        && !ON (untyped))
      continue;
    if (pl->keepj && r >= s->tx[pl->keepj - 1].row
        && r < F) { /* from the records */
      const Tx *t = &s->tx[pl->keepj - 1];
      unsigned g = 0;
      for (int p = 0; p < N; p++)
        if ((act >> p & 1)
            && (s->rec[p] >> (2 * (pl->keepj - 1) + r - t->row) & 1))
          g |= 1u << p;
      decode (1, r, g, t->val[r - t->row], d);
      take (pl, 1, r, d, F);
      continue;
    }
    for (;;) {
      int named = 0, newest = -1;
      unsigned chg = 0;
      row_in_place (s, nw, r, act, &good, v);
      for (int i = 0; i < s->ntx; i++)
        if ((live >> i & 1) && !(excl >> i & 1)) {
          const Tx *t = &s->tx[i];
          if (t->row != r || t->type > NEW)
            continue;
          if ((t->type == NEW) != nw && !ON (replay) && !ON (untyped))
            continue;           /* of the other geometry: never live here */
          named = 1;
          newest = i;
          for (int p = 0; p < N; p++)
            if (t->slots >> p & 1) {
              chg |= 1u << p;
              if (!(act >> p & 1))
                continue;
              if (s->rec[p] >> 2 * i & 1) {
                good |= 1u << p;
                v[p] = t->val[0][p];
                pl->ne[p][r] = entry (v[p], t->seq, 0);
              }
              else
                good &= ~(1u << p);
            }
        }
      if (!nw && r < dead_end (F) && s->phase == 1 && !named) {
        e = 2;
        break;
      }
      e = decode (nw, r, good, v, d);
      if (e == 0 && named && newest == (int) pl->newest && tries++ == 0) {
        excl |= 1u << newest;
        pl->drop |= 1u << newest;
        continue;
      }
      if (e == 0)
        viol ("row %d can't be read (frontier %d)", r, F);
      if (e < 0)
        viol ("row %d does not fit together (frontier %d)", r, F);
      /* to be stored: what live transactions changed, and erasures */
      if (named || !ON (zerocol))
        for (int p = 0; p <= N; p++) {
          const int slot = slot_of (s, p);
          if ((act >> p & 1 || on_target (s, p, r)) && (nw || slot != K + M)) {
            int ro = role (nw, r, slot);
            if (!(chg >> slot & 1) && (good >> p & 1 || !(act >> p & 1)))
              continue;
            pl->wr[p] |= 1 << r;
            pl->nv[p][r] = cell (ro, d);
            int g = 0;
            for (int i = 0; i < s->ntx; i++)
              if ((live >> i & 1) && !(excl >> i & 1) && s->tx[i].row == r
                  && s->tx[i].type <= NEW && (s->tx[i].slots >> slot & 1))
                g = s->tx[i].seq;
            if (g == 0)
              g = page_known (s, p) ? s->te[p][r] >> 8
                                    : page_generation (s, nw, r, p);
            pl->ne[p][r] = entry (pl->nv[p][r], g, g == 0);
          }
        }
      break;
    }
    if (e == 2)
      continue;
    take (pl, nw, r, d, F);
  }
}

/* Every opening reads what it must. */
void
check_plan (const St *s, const Plan *pl)
{
  for (int c = 0; c < NC; c++)
    if (pl->val[c] != s->dur[c] && pl->val[c] != s->cur[c])
      viol (s->dur[c] == s->cur[c] ? "chunk %d: flushed data lost (reads %d)"
                                   : "chunk %d: neither old nor new (reads %d)",
            c, pl->val[c]);
}

/* With nothing in the rings and nothing in flight: every row fits, on all
 * members, with its entries and generations. */
void
check_rest (const St *s)
{
  nr_checks++;
  for (int r = 0; r < S; r++) {
    int nw = is_new (s, r);
    u8 d[8], v[NM];
    unsigned good;
    int gen = -1, some = 0, all = 1, nzd = 0;
    if (s->phase == 1 && !nw && r < dead_end (s->F))
      continue;
    row_in_place (s, nw, r, s->active, &good, v);
    for (int p = 0; p < N; p++)
      if ((s->active >> p & 1) && !(good >> p & 1))
        viol ("row %d slot %d: wrong entry", r, p);
    if (decode (nw, r, good, v, d) != 1)
      viol ("row %d does not fit together at rest", r, 0);
    for (int i = 0; i <= K; i++) {
      int c = nw ? r * (K + 1) + i : r * K + i;
      if (!nw && i == K)
        continue;
      if (c < NC && (nw || s->phase == 0 || c >= s->F * (K + 1))
          && d[i] != s->cur[c])
        viol ("chunk %d is not what it was at rest (%d)", c, d[i]);
      if (nw && c >= NC && d[i])
        viol ("row %d: not zero beyond the end", r, 0);
    }
    if (!SUMS)
      continue;
    for (int p = 0; p < N; p++)
      if (s->active >> p & 1) {
        int ro = role (nw, r, p);
        u16 t = s->te[p][r];
        if (ro > K && t) {
          if (gen >= 0 && gen != t >> 8)
            viol ("row %d: parity of two generations", r, 0);
          gen = t >> 8;
        }
      }
    for (int p = 0; p < N; p++) {
      int ro = role (nw, r, p);
      if (ro > K || (!nw && ro == K))
        continue; /* the column of zeroes of an old row proves nothing */
      if (!(s->active >> p & 1)) {
        all = 0;
        continue;
      }
      nzd = 1;
      if (s->te[p][r] == 0 || s->te[p][r] >> 8 == gen)
        some = 1;
    }
    if (nzd && all && gen >= 0 && !some)
      viol ("row %d: no data has the parity's generation", r, 0);
  }
}
