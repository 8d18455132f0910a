/* gpuraid: the model of widening: the steps of a running array.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "widen.h"

int
pending (const St *s)
{
  if (s->ptm || s->phm || s->win == 2 || s->pcur || s->pmiss)
    return 1;
  for (int p = 0; p <= N; p++)
    if (s->pdm[p] || s->prec[p])
      return 1;
  return 0;
}

static void
apply (St *s, int p)
{
  for (int r = 0; r < S; r++)
    if (s->pdm[p] >> r & 1)
      s->data[p][r] = s->pd[p][r];
  memset (s->pd[p], 0, SM);
  s->pdm[p] = 0;
  if (s->ptm >> p & 1)
    page_stored (s, s, p);
  memset (s->pt[p], 0, sizeof s->pt[p]);
  s->ptm &= ~(1 << p);
  s->ptseq[p] = 0;
  if (s->phm >> p & 1)
    s->h[p] = s->ph;
  s->phm &= ~(1 << p);
  s->rec[p] |= s->prec[p];
  s->prec[p] = 0;
}

void
del_tx (St *s, int i)
{
  unsigned lo = (1u << 2 * i) - 1;
  for (int p = 0; p < N; p++) {
    s->rec[p] = (s->rec[p] & lo) | (s->rec[p] >> 2 & ~lo);
    s->prec[p] = (s->prec[p] & lo) | (s->prec[p] >> 2 & ~lo);
  }
  memmove (&s->tx[i], &s->tx[i + 1], sizeof (Tx) * (TXM - 1 - i));
  memset (&s->tx[TXM - 1], 0, sizeof (Tx));
  s->ntx--;
}

/* A header is in force: its frontier, and what it frees. */
static void
in_force (St *s, Hdr h)
{
  s->F = h.F;
  for (int i = 0; i < s->ntx; i++)
    if (s->tx[i].type >= JOURNAL && s->tx[i].row < h.F
        && s->tx[i].stage == DONE)
      s->tx[i].stage = MOVED;
  while (s->ntx && s->tx[0].seq < h.tail)
    del_tx (s, 0);
}

void
flush (St *s)
{
  Hdr h = s->ph;
  int hp = s->phm != 0;
  for (int p = 0; p <= N; p++)
    apply (s, p);
  s->miss |= s->pmiss;
  if (s->win == 2) {
    s->cursor++;
    s->win = 0;
  }
  if (s->pcur)
    s->dcur = s->pcur;
  s->pmiss = s->pcur = 0;
  for (int i = 0; i < s->ntx; i++) {
    Tx *t = &s->tx[i];
    if (t->stage == SENT) {
      t->stage = MET;
      if (t->type <= NEW)
        s->dur[t->chunk] = s->cur[t->chunk];
    }
    else if (t->stage == PLACING)
      t->stage = DONE;
  }
  if (hp)
    in_force (s, h);
}

/* The chunks of a move that is under way: 0 where there is none. */
int
window (const St *s, int *lo, int *hi)
{
  for (int i = 0; i < s->ntx; i++)
    if (s->tx[i].type >= JOURNAL && s->tx[i].stage != MOVED) {
      *lo = s->tx[i].row * (K + 1);
      *hi = (s->tx[i].row + s->tx[i].w) * (K + 1);
      return s->tx[i].type;
    }
  return 0;
}

static int
r5 (const St *s)
{
  for (int i = 0; i < s->ntx; i++)
    if (s->tx[i].stage < MET)
      return 0;
  return s->ntx < TXM;
}

static void
send (St *s, Tx *t)
{
  int i = s->ntx++;
  t->seq = s->next++;
  t->stage = SENT;
  page_chain (s, t);
  s->tx[i] = *t;
  /* The records of a direct window only explain pages. */
  if (t->type != DIRECT || (shape.tear && !ON (unrecorded)))
    for (int p = 0; p < N; p++)
      if ((s->active >> p & 1) && (t->slots >> p & 1))
        s->prec[p] |= (t->w == 2 ? 3 : 1) << 2 * i;
}

static void
client (const St *s0, int c)
{
  St s = *s0;
  Tx t;
  int lo, hi, w, nw, row;
  u8 d[8] = { 0 };
  u8 v = 100 + 20 * s.nw + c;
  if ((w = window (&s, &lo, &hi))) {
    if (w == JOURNAL && !ON (notalone))
      return;
    if (c >= lo && c < hi && !ON (noexcl))
      return;
  }
  nw = s.phase == 2 || (s.phase == 1 && c < s.F * (K + 1));
  memset (&t, 0, sizeof t);
  t.type = nw ? NEW : OLD;
  t.w = 1;
  t.chunk = c;
  t.row = row = nw ? c / (K + 1) : c / K;
  if (s.rd == c + 1)
    s.rmid = s.cur[c];
  s.cur[c] = v;
  if (!nw)
    s.oldv[c] = v;
  for (int i = 0; i <= K; i++) {
    int cc = nw ? row * (K + 1) + i : row * K + i;
    if (nw)
      d[i] = cc < NC ? s.cur[cc] : 0;
    else if (i < K)
      d[i] = ON (partial) ? s.cur[cc] : s.oldv[cc];
  }
  for (int p = 0; p < N; p++) {
    int ro = role (nw, row, p);
    if (ro == (nw ? c % (K + 1) : c % K) || ro > K) {
      t.slots |= 1 << p;
      t.val[0][p] = cell (ro, d);
    }
  }
  if (!nw)
    t.slots &= ~(1u << (K + M));
  if (shape.steps && s.active != must (&s) && !ON (unmarked))
    s.pmiss |= 1 << row & ~s.miss;
  s.writes--;
  s.nw++;
  send (&s, &t);
  emit (&s, LAB (L_WRITE, c, 0));
}

static void
move (const St *s0, int w, int direct)
{
  St s = *s0;
  Tx t;
  if (direct && s.rd && s.rrow >= s.F && s.rrow < s.F + w && !ON (reader))
    return;
  memset (&t, 0, sizeof t);
  t.type = direct ? DIRECT : JOURNAL;
  t.row = s.F;
  t.w = w;
  t.slots = full ();
  for (int i = 0; i < w; i++) {
    u8 d[8] = { 0 };
    for (int j = 0; j <= K; j++) {
      int c = (s.F + i) * (K + 1) + j;
      d[j] = c < NC ? s.cur[c] : 0;
    }
    for (int p = 0; p < N; p++)
      t.val[i][p] = cell (role (1, s.F + i, p), d);
    for (int p = 0; p <= N; p++)
      if (direct && (s.active >> p & 1 || on_target (&s, p, s.F + i))) {
        s.pdm[p] |= 1 << (s.F + i);
        s.pd[p][s.F + i] = t.val[i][slot_of (&s, p)];
      }
  }
  if (shape.steps && s.active != must (&s))
    s.pmiss |= ((1 << w) - 1) << s.F & ~s.miss;
  send (&s, &t);
  emit (&s, LAB (direct ? L_MOVED : L_MOVEJ, s0->F, w));
}

static void
place (const St *s0, int i)
{
  St s = *s0;
  Tx *t = &s.tx[i];
  if (SUMS && s.ptm)
    return;
  if (s.win && s.cursor >= t->row && s.cursor < t->row + t->w && !ON (inside))
    return;
  if (t->type == JOURNAL && s.rd && s.rrow >= t->row && s.rrow < t->row + t->w
      && !ON (reader))
    return;
  for (int j = 0; j < i; j++)
    if (s.tx[j].stage < DONE && s.tx[j].row < t->row + t->w
        && t->row < s.tx[j].row + s.tx[j].w)
      return;
  if (t->type != DIRECT)
    for (int p = 0; p <= N; p++)
      if (t->slots >> slot_of (&s, p) & 1)
        for (int w = 0; w < t->w; w++) {
          if (!(s.active >> p & 1) && !on_target (&s, p, t->row + w))
            continue;
          s.pdm[p] |= 1 << (t->row + w);
          s.pd[p][t->row + w] = t->val[w][slot_of (&s, p)];
        }
  if (SUMS)
    pages (&s);
  t->stage = t->type == DIRECT && !SUMS ? DONE : PLACING;
  emit (&s, LAB (L_PLACE, i, 0));
}

static void
headers (const St *s0)
{
  St s = *s0;
  Hdr h;
  int i = 0, stop;
  if (s.phm)
    return;
  h.F = s.F;
  h.tail = s.next;
  for (i = 0; i < s.ntx; i++) {
    const Tx *t = &s.tx[i];
    stop = t->stage < DONE;
    if (t->type == DIRECT && ON (early) && t->stage >= SENT)
      stop = 0;
    if (t->type == JOURNAL && ON (early) && t->stage >= MET)
      stop = 0;
    if (t->type >= JOURNAL && ON (pages)
        && (t->stage == PLACING || (t->type == DIRECT && t->stage == MET)))
      stop = 0;
    if (stop) {
      h.tail = t->seq;
      break;
    }
    if (t->type >= JOURNAL && t->stage != MOVED)
      h.F = t->row + t->w;
  }
  if (ON (notfreed) || ON (replay))
    for (int j = i; j < s.ntx; j++)
      if (s.tx[j].type >= JOURNAL && s.tx[j].stage == DONE)
        h.F = s.tx[j].row + s.tx[j].w;
  if (h.F == s.F && (s.ntx == 0 || h.tail == s.tx[0].seq))
    return;
  if (s.phase == 0)
    h.F = s.F;
  s.ph = h;
  s.phm = s.active | (s.phase == 0 && s.prep ? 1 << (K + M) : 0);
  if (ON (front1) && h.F != s.F)
    s.phm = s.active & -s.active;
  if (ON (early))
    for (int j = 0; j < s.ntx; j++)
      if (s.tx[j].type >= JOURNAL && s.tx[j].seq < h.tail)
        s.tx[j].stage = DONE;
  if (ON (unflushed))
    in_force (&s, h);
  emit (&s, LAB (L_HDR, 0, 0));
}

/* Losses that are still allowed: m at a time. */
int
may_lose (const St *s, unsigned x)
{
  return pop (must (s) & ~s->active) + pop (x) <= M;
}

/* A read without the cache: one look where the chunk is, and later the read. */
static void
reads (const St *s0)
{
  int lo, hi, w = window (s0, &lo, &hi);
  if (s0->rd) {
    St s = *s0;
    int p = s.rslot, r = s.rrow;
    if (s.active >> p & 1) {
      u8 v = s.pdm[p] >> r & 1 ? s.pd[p][r] : s.data[p][r];
      u16 t = s.ptm >> p & 1 ? s.pt[p][r] : s.te[p][r];
      if (v != s.rold && !(s.rmid && v == s.rmid) && v != s.cur[s.rd - 1]
          && (!SUMS || (t & 255) == v))
        viol ("a read of chunk %d gets %d", s.rd - 1, v);
    }
    s.rd = s.rrow = s.rslot = s.rold = s.rmid = 0;
    emit (&s, LAB (L_READEND, 0, 0));
    return;
  }
  if (s0->reads && s0->phase == 1)
    for (int c = 0; c < NC; c++) {
      St s = *s0;
      int nw = c < s.F * (K + 1), row = nw ? c / (K + 1) : c / K, cached = 0;
      for (int i = 0; i < s.ntx; i++)
        if (s.tx[i].type <= NEW && s.tx[i].row == row)
          cached = 1;
      if (w == JOURNAL && c >= lo && c < hi && !ON (readj))
        cached = 1;
      if (cached)
        continue;
      for (int p = 0; p < N; p++)
        if (role (nw, row, p) == (nw ? c % (K + 1) : c % K))
          s.rslot = p;
      if (!(s.active >> s.rslot & 1))
        continue;
      s.reads--;
      s.rd = c + 1;
      s.rrow = row;
      s.rold = s.cur[c];
      emit (&s, LAB (L_READ, c, 0));
    }
}

void
run (const St *s0)
{
  int quiet = !s0->ntx && !pending (s0), whole = s0->active == must (s0), lo,
      hi;
  if (quiet)
    check_rest (s0);
  if (shape.steps)
    rebuild (s0, quiet);
  reads (s0);
  if (pending (s0)) {
    St s = *s0;
    flush (&s);
    emit (&s, LAB (L_FLUSH, 0, 0));
  }
  if (s0->writes && s0->phase < 2 && r5 (s0))
    for (int c = 0; c < NC; c++)
      client (s0, c);
  for (int i = 0; i < s0->ntx; i++)
    if (s0->tx[i].stage == MET)
      place (s0, i);
  headers (s0);
  if (s0->phase == 0 && quiet && whole) {
    St s = *s0;
    if (!s.prep && !ON (stale)) {
      s.ph.tail = s.next;
      s.ph.F = 0;
      s.phm = full ();
      s.prep = 1;
      memset (s.data[K + M], 0xEE, S);
      s.F = 0;
      emit (&s, LAB (L_PREP, 0, 0));
    }
    else {
      if (!s.prep) {
        s.h[K + M].tail = s.next;
        memset (s.data[K + M], 0xEE, S);
      }
      s.phase = 1;
      s.prep = 0;
      s.active = full ();
      s.F = 0;
      emit (&s, LAB (L_RECORD, 0, 0));
    }
  }
  if (s0->phase == 1 && s0->F < S && r5 (s0) && !window (s0, &lo, &hi)
      && (whole || ON (moverebuild) || (ON (degraded) && !s0->tgt))
      && (!s0->tgt || ON (moverebuild) || ON (movereplace))
      && (!s0->phm || ON (unflushed))) {
    int dz = dead_end (s0->F) - s0->F;
    if (ON (tail) && s0->F >= FEND) {
      if (quiet) {
        St s = *s0;
        s.phase = 2;
        emit (&s, LAB (L_END, 0, 0));
      }
    }
    else if (dz == 0 && !ON (firstdirect)) {
      for (int w = 1; w <= shape.wmax && s0->F + w <= S; w++)
        if (ON (notalone) || quiet)
          move (s0, w, 0);
    }
    else
      for (int w = 1;
           w <= shape.wmax && s0->F + w <= S
             && w <= dz + ON (wide) + (dz == 0); w++)
        move (s0, w, 1);
  }
  if (s0->phase == 1 && s0->F == S && quiet && whole) {
    St s = *s0;
    s.phase = 2;
    emit (&s, LAB (L_END, 0, 0));
  }
  leave (s0);
  if (!shape.steps && quiet && !whole)
    rejoin (s0);
}
