/* gpuraid: the model of widening: pages of the checksum table, two places
 * each, which a crash tears and which rot.
 *
 * There is one page a member, with all its rows.  It is written to the place
 * that does not have its last copy.  Of a page with one bad place the other one
 * is trusted if the journal has all that it may lack; else all its entries are
 * lost, and the recovery makes it anew.  A page has the seq of the newest
 * transaction in it, and each record the seq of the one that changed the page
 * of its member before, 0 for the first one.  Format: docs/on-disk-format.md.
 *
 * What the model adds to W2, W7 and W10:
 *
 *   - NEW's table can't be zeroes where the others' is not (blankpage).  NEW's
 *     first record of a page would have `before' 0, which says that the page
 *     was never written on any member and the journal has all of it: then a bad
 *     place of any member is believed to be explained.  1+1: chunk 3 is
 *     written for the first time, in place, and freed; the window of row 0 has
 *     sent its records; the server crashes, and the newest place of member 0's
 *     page rots.  The older place calls row 3 never written, and is believed.
 *     So a page of NEW is stored in both places, with entries {0, 0} and the
 *     seq of the newest transaction, before the first window of its rows
 *     begins, and `before' is that seq.
 *   - A recovery that drops a direct window stores anew each page with a bad
 *     place that only this window's records explain (tornleft): its fresh
 *     headers free these records, and at the next opening nothing would explain
 *     that place, on any member.
 *
 * As in ../journal: what a member that is back, or a target, has of a page with
 * a bad place is copied again.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "widen.h"

/* Does a live record explain that one place of p's page is bad? */
static int
explained (const St *s, int p)
{
  int tail = 0;

  for (int q = 0; q < N; q++)
    if ((s->active >> q & 1) && s->h[q].tail > tail)
      tail = s->h[q].tail;
  if (s->tseq[p] >= tail)
    return 1;
  for (int i = 0; i < s->ntx; i++) {
    const Tx *t = &s->tx[i];

    if (t->seq < tail || (t->type == DIRECT && ON (directunread)))
      continue;
    for (int q = 0; q < N; q++)
      if ((s->active >> q & 1) && (s->rec[q] >> 2 * i & 3)
          && (t->before[q] == 0
              || (q == p && (t->before[q] == s->tseq[p] || ON (anyrecord)))))
        return 1;
  }
  return 0;
}

/* Are p's entries known?  While the array runs they are in memory. */
int
page_known (const St *s, int p)
{
  return !(s->torn >> p & 1) || s->mode == RUN || explained (s, p);
}

/* A page that was written is complete. */
void
page_stored (St *s, const St *from, int p)
{
  if (shape.tear) {
    memcpy (s->ote[p], s->te[p], sizeof s->te[p]);
    s->otseq[p] = s->tseq[p];
    s->tseq[p] = from->ptseq[p];
    s->torn &= ~(1 << p);
  }
  memcpy (s->te[p], from->pt[p], sizeof s->te[p]);
}

/* It was torn: the place that had the older copy is bad. */
void
page_torn (St *s, int p)
{
  memset (s->ote[p], 0, sizeof s->ote[p]);
  s->otseq[p] = 0;
  s->torn |= 1 << p;
}

/* The place with the newest copy rots. */
void
page_rots (St *s, int p)
{
  memcpy (s->te[p], s->ote[p], sizeof s->te[p]);
  s->tseq[p] = s->otseq[p];
  page_torn (s, p);
}

/* A transaction is in the chains of its members' pages. */
void
page_chain (St *s, Tx *t)
{
  if (shape.tear)
    for (int p = 0; p < N; p++)
      if ((s->active >> p & 1) && (t->slots >> p & 1)) {
        t->before[p] = s->last[p];
        s->last[p] = t->seq;
      }
}

/* All members' pages, with all that met R1. */
void
pages (St *s)
{
  for (int p = 0; p <= N; p++)
    if (s->active >> p & 1 || p == s->tgt - 1) {
      const int slot = slot_of (s, p);

      memcpy (s->pt[p], s->te[p], sizeof s->te[p]);
      s->ptm |= 1 << p;
      s->ptseq[p] = s->tseq[p];
      for (int i = 0; i < s->ntx; i++) {
        const Tx *t = &s->tx[i];
        if (t->stage < MET && !ON (pageunmet))
          continue;
        for (int w = 0; w < t->w; w++)
          if ((t->slots >> slot & 1)
              && (s->active >> p & 1 || on_target (s, p, t->row + w))) {
            int zero = t->type >= JOURNAL && (t->row + w) * (K + 1) >= NC;
            s->pt[p][t->row + w] = entry (t->val[w][slot], t->seq, zero);
            if (shape.tear)
              s->ptseq[p] = t->seq;
          }
      }
      if (shape.tear && s->ptseq[p] == s->tseq[p]) {    /* nothing new */
        memset (s->pt[p], 0, sizeof s->pt[p]);
        s->ptm &= ~(1 << p);
        s->ptseq[p] = 0;
      }
    }
}

/* What a recovery stores, before it fills in the rows that it knows better.
 * Then the journal is freed, and nothing explains a bad place any more.
 */
void
page_anew (St *s, int p)
{
  if (page_known (s, p))
    memcpy (s->pt[p], s->te[p], sizeof s->te[p]);
  else
    memset (s->pt[p], 0, sizeof s->pt[p]);
  s->ptm |= 1 << p;
  if (shape.tear)
    s->ptseq[p] = s->next - 1;
}

/* The generation of a block of which it is not known: the parity's, or without
 * any the youngest of the row's data.
 */
int
page_generation (const St *s, int nw, int row, int p)
{
  int gen = 0;

  for (int q = 0; q < N; q++)
    if ((s->active >> q & 1) && q != p && role (nw, row, q) > K
        && page_known (s, q))
      return s->te[q][row] >> 8;
  for (int q = 0; q < N; q++)
    if ((s->active >> q & 1) && q != p && (nw || q != K + M)
        && page_known (s, q) && s->te[q][row] >> 8 > gen)
      gen = s->te[q][row] >> 8;
  return gen;
}
