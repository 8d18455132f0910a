/* gpuraid: the model of widening: the states that were seen, whole, so that
 * nothing is left to a hash, and how each was reached.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "widen.h"

u64 nr_plans, nr_checks;
int most_pending;

/* A state is kept without its bytes that are zero. */
static u8 *arena;
static u64 arena_len, used, *at;
static u32 *parent, *label, *table;
static u32 nr_states, room, curpar;
static u64 table_mask;

static int
packst (const St *s, u8 *o)
{
  const u8 *b = (const u8 *) s;
  int n = sizeof *s, bm = (n + 7) / 8, l = bm;
  memset (o, 0, bm);
  for (int i = 0; i < n; i++)
    if (b[i]) {
      o[i >> 3] |= 1 << (i & 7);
      o[l++] = b[i];
    }
  return l;
}

static void
unpackst (const u8 *o, St *s)
{
  u8 *b = (u8 *) s;
  int n = sizeof *s, l = (n + 7) / 8;
  for (int i = 0; i < n; i++)
    b[i] = o[i >> 3] >> (i & 7) & 1 ? o[l++] : 0;
}

static u64
hash (const u8 *p, int n)
{
  u64 h = 0x9E3779B97F4A7C15ull ^ n;
  for (int i = 0; i < n; i++) {
    h ^= p[i];
    h *= 0x100000001b3ull;
    h ^= h >> 29;
  }
  return h ^ h >> 32;
}

/* What a member that is not active has in rows that will be copied to it, and
 * what is in its ring.
 */
static void
forget_rows (St *s, int p)
{
  const int target = p == s->tgt - 1;

  for (int r = target ? s->cursor : 0; r < S; r++)
    if ((target && !s->part) || s->miss >> r & 1) {
      s->data[p][r] = 0;
      s->te[p][r] = 0;
    }
  if (!target) {
    memset (s->pd[p], 0, SM);
    memset (s->pt[p], 0, sizeof s->pt[p]);
    s->pdm[p] = 0;
    s->ptm &= ~(1 << p);
  }
  if (!ON (ownhdr))
    memset (&s->h[p], 0, sizeof s->h[p]);
  s->phm &= ~(1 << p);
  s->rec[p] = s->prec[p] = 0;
}

static void
canon_seq (u8 *seq, u8 *map, int set)
{
  if (set)
    *seq = map[*seq];
  else
    map[*seq] = 1;
}

static void
canon_page (St *s, int p, u8 *map, int set)
{
  canon_seq (&s->tseq[p], map, set);
  canon_seq (&s->otseq[p], map, set);
  canon_seq (&s->ptseq[p], map, set);
  canon_seq (&s->last[p], map, set);
  for (int i = 0; i < s->ntx; i++)
    canon_seq (&s->tx[i].before[p], map, set);
  for (int r = 0; r < S; r++) {
    u8 gen = s->ote[p][r] >> 8;

    canon_seq (&gen, map, set);
    s->ote[p][r] = (s->ote[p][r] & 255) | gen << 8;
  }
}

/* The page of a member that is out. */
static void
forget_page (St *s, int p)
{
  memset (s->ote[p], 0, sizeof s->ote[p]);
  s->tseq[p] = s->otseq[p] = s->ptseq[p] = s->last[p] = 0;
  for (int i = 0; i < s->ntx; i++)
    s->tx[i].before[p] = 0;
}

/* seqs by rank: only their order counts.  Descriptions of records that are
 * nowhere, and what lost members held, are forgotten. */
void
canon (St *s)
{
  u8 map[256] = { 0 };
  int nr = 0;
  for (int p = 0; p <= N; p++)
    if (p == s->tgt - 1 || s->back >> p & 1) {
      forget_rows (s, p);
      forget_page (s, p);
    }
    else if (!(s->active >> p & 1) && !(p == K + M && s->prep)) {
      forget_page (s, p);
      s->torn &= ~(1 << p);
      memset (s->data[p], 0, SM);
      memset (s->te[p], 0, sizeof s->te[p]);
      memset (&s->h[p], 0, 2);
      s->rec[p] = s->prec[p] = 0;
      memset (s->pd[p], 0, SM);
      memset (s->pt[p], 0, sizeof s->pt[p]);
      s->pdm[p] = 0;
      s->ptm &= ~(1 << p);
      s->phm &= ~(1 << p);
    }
  if (!s->phm)
    memset (&s->ph, 0, sizeof s->ph);
  for (int i = 0; i < s->ntx; i++)
    map[s->tx[i].seq] = 1;
  for (int p = 0; p <= N; p++) {
    map[s->h[p].tail] = 1;
    for (int r = 0; r < S; r++) {
      map[s->te[p][r] >> 8] = 1;
      map[s->pt[p][r] >> 8] = 1;
    }
  }
  for (int p = 0; p <= N && shape.tear; p++)
    canon_page (s, p, map, 0);
  map[s->ph.tail] = map[s->next] = map[s->held_gen] = 1;
  for (int i = 1; i < 256; i++)
    if (map[i])
      map[i] = ++nr;
  map[0] = 0;
  for (int i = 0; i < s->ntx; i++)
    s->tx[i].seq = map[s->tx[i].seq];
  for (int p = 0; p <= N; p++) {
    s->h[p].tail = map[s->h[p].tail];
    for (int r = 0; r < S; r++) {
      s->te[p][r] = (s->te[p][r] & 255) | map[s->te[p][r] >> 8] << 8;
      s->pt[p][r] = (s->pt[p][r] & 255) | map[s->pt[p][r] >> 8] << 8;
    }
  }
  for (int p = 0; p <= N && shape.tear; p++)
    canon_page (s, p, map, 1);
  s->ph.tail = map[s->ph.tail];
  s->next = map[s->next];
  s->held_gen = map[s->held_gen];
  for (int c = 0; c < NC; c++)
    if (s->phase == 2 || (s->phase == 1 && c / K < dead_end (s->F)))
      s->oldv[c] = 0;
}

static void *
grown (void *p, u64 len)
{
  p = realloc (p, len);
  if (p == NULL) {
    fprintf (stderr, "widen: no memory\n");
    exit (2);
  }
  return p;
}

static void
make_room (void)
{
  if (nr_states + 2 > room) {
    room = room ? 2 * room : 1 << 16;
    at = grown (at, (room + 1ull) * sizeof *at);
    parent = grown (parent, room * (u64) sizeof *parent);
    label = grown (label, room * (u64) sizeof *label);
    table_mask = 4ull * room - 1;
    table = grown (table, (table_mask + 1) * sizeof *table);
    memset (table, 0, (table_mask + 1) * sizeof *table);
    for (u32 i = 0; i < nr_states; i++) {
      u64 j = hash (arena + at[i], at[i + 1] - at[i]) & table_mask;

      while (table[j])
        j = (j + 1) & table_mask;
      table[j] = i + 1;
    }
  }
  if (used + 2 * sizeof (St) > arena_len)
    arena = grown (arena, arena_len = arena_len ? 2 * arena_len : 1 << 22);
}

/* Keep a state, if it is new.  l: what led to it */
void
emit (St *s, u32 l)
{
  u8 o[sizeof *s * 2];
  u64 i;
  int n;

  canon (s);
  n = packst (s, o);
  make_room ();
  for (i = hash (o, n) & table_mask; table[i]; i = (i + 1) & table_mask) {
    u32 q = table[i] - 1;

    if (at[q + 1] - at[q] == (u64) n && memcmp (arena + at[q], o, n) == 0)
      return;
  }
  table[i] = nr_states + 1;
  at[nr_states] = used;
  parent[nr_states] = curpar;
  label[nr_states] = l;
  memcpy (arena + used, o, n);
  used += n;
  at[++nr_states] = used;
}

static void
put_label (u32 l)
{
  static const char *text[] = {
    [L_WRITE] = "client writes chunk %d",
    [L_FLUSH] = "flush",
    [L_PLACE] = "place transaction %d",
    [L_HDR] = "headers",
    [L_PREP] = "fresh headers, frontier 0",
    [L_RECORD] = "record with k + 1",
    [L_MOVEJ] = "journaled move of stripe %d, %d long",
    [L_MOVED] = "direct move of stripe %d, %d long",
    [L_CRASH] = "CRASH (lost members %x, kept %x)",
    [L_FAIL] = "member %d fails",
    [L_JOIN] = "member %d rebuilt",
    [L_END] = "record: done",
    [L_RSTEP] = "recovery step %d",
    [L_READ] = "read of chunk %d begins",
    [L_READEND] = "it ends",
    [L_LEAVE] = "member %d fails, and keeps what it has with %x",
    [L_FULL] = "rebuild of member %d",
    [L_BACK] = "member %d is back",
    [L_REPLACE] = "active member %d is replaced",
    [L_COPY] = "row %d is read for it",
    [L_PUT] = "row %d is written",
    [L_COPIED] = "all rows are copied",
    [L_CURSOR] = "cursor %d",
  };

  printf (text[l >> 24], l >> 12 & 0xfff, l & 0xfff);
}

/* A rule does not hold: how it came to that. */
void
viol (const char *what, int a, int b)
{
  u32 path[500];
  int n = 0;

  printf (what, a, b);
  printf (", after %u states:\n    ", nr_states);
  for (u32 i = curpar; i && n < 500; i = parent[i])
    path[n++] = i;
  while (n--) {
    put_label (label[path[n]]);
    printf (n ? "; " : "");
  }
  printf ("\n");
  exit (1);
}

/* All states that follow from this one. */
void
explore (const St *start, void (*next) (const St *s))
{
  St s = *start;

  emit (&s, 0);
  for (u32 i = 0; i < nr_states; i++) {
    curpar = i;
    unpackst (arena + at[i], &s);
    next (&s);
  }
  printf ("no violation; %u states, %llu recoveries decided, %llu states at "
          "rest checked, %d writes in flight at most\n", nr_states,
          (unsigned long long) nr_plans, (unsigned long long) nr_checks,
          most_pending);
}
