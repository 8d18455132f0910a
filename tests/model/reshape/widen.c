/* gpuraid: widening (k + m becomes k + 1 + m while it is in use), as a model
 * that is tried exhaustively on small arrays: every order of windows, clients'
 * writes, late reads, flushes, headers, failures, crashes, losses, recoveries
 * that crash.
 *
 *   widen                  what is quick, and each mistake that can be planted
 *   widen --all            also what takes long, and those that must not be
 *                          detected in every shape
 *   widen --plants         the names of the mistakes
 *   widen --run WMAX READS K M STRIPES SUMS CRASHES WRITES REJOINS STEPS TEAR
 *                        ROT [PLANT...]
 *
 * The rules are W1 to W12 (docs/rules.md).  What is checked: what was flushed
 * can be read after every crash, with any m members lost; what was not is old
 * or new; at rest all cells of a row fit together, with their entries and
 * generations; what lies beyond the last chunk is zero.
 *
 * A stripe has one row, which loses nothing: a row needs only rows with the
 * same block number in their chunks (widen_geometry.py).  All members are
 * written in one step and flushed in one: between two of them a crash leaves
 * nothing that it can not leave after both.  A crash keeps any of what was not
 * flushed, and loses the rest; that a process was killed is the case in which
 * it keeps what was complete, as an opener flushes before it reads.  A header,
 * written to two places in turn, is there or not; so is the part of a record
 * that is about one row, and a page of the table, except where pages are torn
 * (widen_pages.c).  A change of the membership is one step here:
 * widen_quorum.py has its steps.
 *
 * Members that were lost come back in one step, up to date; or in steps
 * (widen_rebuild.c), from the record with k + 1 on: with what they had, and
 * the rows that they missed are copied, or as blank ones; blank ones also
 * replace members that are active.  *Missed* bits are
 * of a row, and are there or not on all members; no bit is set that need not
 * be, which is the worst case.
 *
 * Not modelled: blocks and records that rot; the cache; what a member that is
 * back has in its ring and superblock, as it does not count; reads while a
 * rebuild is in steps.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "widen.h"

struct shape shape;
enum { NR_NUMBERS = sizeof shape / sizeof (int) };
u8 plant[NR_PLANTS];

#define PLANTED_ROW(name, caught, text, ...) \
  { #name, caught, text, __VA_ARGS__ },
static const struct {
  const char *name;
  int caught;
  const char *text;
  struct shape shape;
} plants[] = { PLANTS (PLANTED_ROW) };

/* As in widen_plants.h.  The first ones are quick. */
enum { QUICK = 19 };
static const struct shape clean[] = {
  { 2, 0, 1, 1, 6, 1, 1, 1, 0 }, { 2, 0, 1, 1, 4, 0, 3, 1, 0 },
  { 2, 0, 1, 1, 4, 0, 2, 1, 1 }, { 2, 0, 2, 1, 5, 0, 2, 1, 0 },
  { 2, 0, 2, 1, 6, 0, 1, 1, 1 }, { 2, 0, 1, 2, 4, 0, 1, 1, 1 },
  { 1, 0, 2, 2, 5, 0, 1, 1, 0 }, { 2, 1, 1, 1, 6, 1, 1, 1, 0 },
  { 2, 1, 2, 1, 5, 0, 0, 1, 1 },
  { 2, 0, 1, 1, 4, 1, 1, 1, 1, 1 }, { 2, 0, 2, 1, 4, 0, 1, 1, 1, 1 },
  { 1, 0, 1, 2, 3, 0, 1, 1, 1, 1 }, { 1, 0, 1, 2, 4, 1, 0, 1, 2, 1 },
  { 2, 0, 1, 1, 4, 0, 1, 1, 1, 2 }, { 2, 0, 2, 1, 4, 1, 1, 0, 1, 2 },
  { 2, 0, 1, 1, 4, 1, 1, 1, 0, 0, 1 }, { 2, 0, 1, 1, 4, 1, 2, 0, 0, 0, 1 },
  { 2, 0, 1, 1, 4, 1, 1, 0, 1, 1, 1 }, { 1, 0, 1, 1, 4, 1, 1, 1, 0, 0, 1, 1 },
  { 2, 0, 1, 1, 6, 0, 1, 2, 1 }, { 2, 0, 1, 1, 6, 1, 1, 1, 1 },
  { 2, 0, 1, 1, 5, 1, 2, 1, 1 }, { 1, 0, 2, 1, 5, 1, 2, 1, 0 },
  { 1, 0, 2, 1, 4, 0, 2, 2, 0 }, { 1, 0, 1, 2, 4, 1, 2, 1, 0 },
  { 1, 0, 1, 2, 5, 0, 2, 1, 2 }, { 2, 2, 1, 2, 5, 0, 1, 1, 0 },
  { 2, 0, 1, 1, 4, 0, 1, 2, 1, 1 }, { 2, 0, 1, 1, 6, 0, 1, 1, 2, 1 },
  { 2, 0, 1, 1, 4, 0, 2, 1, 1, 1 }, { 1, 0, 1, 2, 3, 0, 1, 1, 2, 1 },
  { 1, 0, 1, 2, 3, 1, 1, 1, 1, 1 }, { 1, 0, 2, 2, 4, 0, 0, 1, 2, 1 },
  { 2, 0, 1, 1, 4, 1, 1, 1, 1, 2 }, { 2, 0, 1, 1, 4, 0, 1, 0, 2, 2 },
  { 2, 0, 2, 1, 4, 1, 1, 1, 0, 0, 1 }, { 2, 0, 1, 1, 4, 1, 1, 1, 0, 0, 1, 1 },
  { 1, 0, 1, 2, 3, 1, 1, 1, 0, 0, 1, 1 },
  { 1, 0, 1, 1, 3, 1, 1, 2, 0, 0, 1, 1 },
  { 1, 0, 1, 1, 3, 1, 1, 1, 1, 1, 1, 1 },
};
enum { NR_CLEAN = sizeof clean / sizeof clean[0] };

static void
next (const St *s)
{
  if (s->mode == RUN)
    run (s);
  else
    recovery (s);
  if (s->crashes)
    crash (s);
}

/* An array that was widened before: its headers have a frontier.  With tear
 * the last stripe was never written.
 */
static void
start (void)
{
  static St s;

  s.active = full () & ~(1 << (K + M));
  s.next = 2;
  s.crashes = shape.crashes;
  s.writes = shape.writes;
  s.rejoins = shape.rejoins;
  s.reads = shape.reads;
  s.rot = shape.rot;
  s.F = S;
  if (shape.steps || shape.tear) {      /* the record with k + 1 is in force */
    s.phase = 1;
    s.active = full ();
    s.F = 0;
    memset (s.data[K + M], 0xEE, S);
    s.h[K + M].tail = 2;
  }
  for (int c = 0; c < NC - (shape.tear ? K : 0); c++)
    s.cur[c] = s.dur[c] = s.oldv[c] = c + 1;
  for (int p = 0; p < K + M; p++) {
    s.h[p].tail = 2;
    s.h[p].F = s.phase ? 0 : S;
    for (int r = 0; r < S; r++) {
      u8 d[8] = { 0 };

      for (int i = 0; i < K; i++)
        d[i] = s.cur[r * K + i];
      s.data[p][r] = cell (role_before (r, p), d);
      if (SUMS)
        s.te[p][r] = entry (s.data[p][r], 1, s.cur[r * K] == 0);
    }
  }
  for (int p = 0; p < N && shape.tear; p++)
    if (p < K + M || !ON (blankpage)) {
      s.tseq[p] = s.otseq[p] = s.last[p] = 1;
      memcpy (s.ote[p], s.te[p], sizeof s.te[p]);
    }
  explore (&s, next);
}

static void
set_shape (const struct shape *h)
{
  shape = *h;
  K = h->k;
  M = h->m;
  S = h->stripes;
  N = K + 1 + M;
  NC = S * K;
  FEND = (NC + K) / (K + 1);
  if (N > NM || S > SM || NC > CM || h->wmax > WM) {
    fprintf (stderr, "widen: too big\n");
    exit (2);
  }
}

/* In a process of its own: its states are gone afterwards.  1: a violation */
static int
try (const struct shape *h, int planted)
{
  int status;
  pid_t pid;

  printf ("  %d+%d, %d stripes, windows of %d, %s, %d crashes, %d writes, "
          "%d rebuilt%s, %d reads%s%s: ", h->k, h->m, h->stripes, h->wmax,
          h->sums ? "checksums" : "no checksums", h->crashes, h->writes,
          h->rejoins, h->steps == 2 ? " in steps, active ones too"
            : h->steps ? " in steps" : "", h->reads,
          h->tear ? ", torn pages" : "", h->rot ? ", rot" : "");
  fflush (stdout);
  pid = fork ();
  if (pid == 0) {
    set_shape (h);
    if (planted >= 0)
      plant[planted] = 1;
    start ();
    exit (0);
  }
  if (pid == -1 || waitpid (pid, &status, 0) == -1 || !WIFEXITED (status)
      || WEXITSTATUS (status) > 1) {
    fprintf (stderr, "widen: it did not end\n");
    exit (2);
  }
  return WEXITSTATUS (status);
}

static int
try_all (int all)
{
  int bad = 0;

  for (int i = 0; i < (all ? NR_CLEAN : QUICK); i++)
    bad += try (&clean[i], -1);
  for (int i = 0; i < NR_PLANTS; i++) {
    int caught;

    printf ("%s: %s\n", plants[i].name, plants[i].text);
    caught = try (&plants[i].shape, i);
    for (int j = 0; all && !plants[i].caught && j < QUICK; j++)
      caught |= try (&clean[j], i);
    if (caught != plants[i].caught) {
      printf ("%s: %s\n", plants[i].name,
              caught ? "DETECTED, and it should not be" : "NOT DETECTED");
      bad++;
    }
  }
  return bad ? 1 : 0;
}

static int
run_one (int argc, char **argv)
{
  int *field_of = (int *) &shape;
  struct shape h;

  for (int i = 0; i < NR_NUMBERS; i++)
    field_of[i] = atoi (argv[i]);
  for (int i = NR_NUMBERS; i < argc; i++) {
    int j = 0;

    while (j < NR_PLANTS && strcmp (argv[i], plants[j].name) != 0)
      j++;
    if (j == NR_PLANTS) {
      fprintf (stderr, "widen: no such mistake: %s\n", argv[i]);
      return 2;
    }
    plant[j] = 1;
  }
  h = shape;
  return try (&h, -1);
}

int
main (int argc, char **argv)
{
  field ();
  if (argc == 1 || (argc == 2 && strcmp (argv[1], "--all") == 0))
    return try_all (argc == 2);
  if (argc >= 2 + NR_NUMBERS && strcmp (argv[1], "--run") == 0)
    return run_one (argc - 2, argv + 2);
  if (argc == 2 && strcmp (argv[1], "--plants") == 0) {
    for (int i = 0; i < NR_PLANTS; i++)
      printf ("%-12s %s\n", plants[i].name, plants[i].text);
    return 0;
  }
  fprintf (stderr, "usage: see the top of widen.c\n");
  return 2;
}
