/* gpuraid: measure in turn the cases that differ only in the method.
 *
 * All are open at the same time.  Each takes a sample, or a few if they are
 * latencies, then the next does, and so on.  So changes of the machine's speed
 * affect all of them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>

#include "bench/sweep-internal.h"
#include "common/bits.h"
#include "common/log.h"

/* Latencies are taken in this many turns; the first ones of each, while
 * processors and device wake up, do not count.
 */
#define LATENCY_TURNS 20
#define LATENCY_COLD 8

struct requests {
  struct run_request *v;
  size_t nr, room;
};

static int
add_request (const struct sweep *s, const struct run_request *q, void *opaque)
{
  struct requests *all = opaque;

  if (all->nr == all->room) {
    size_t room = MAX (2 * all->room, 16);
    struct run_request *v = reallocarray (all->v, room, sizeof *v);

    if (v == NULL) {
      log_error ("reallocarray: %m");
      return -1;
    }
    all->v = v;
    all->room = room;
  }
  all->v[all->nr++] = *q;
  return 0;
}

static bool
has_threads (const struct run_request *q)
{
  return !q->ops->gpu || q->ops->gpu_and_cpu;
}

/* Do they differ only in the method? */
static bool
are_alike (const struct run_request *a, const struct run_request *b)
{
  return a->k == b->k && a->m == b->m && a->w == b->w &&
    a->loss == b->loss && a->nr_lost == b->nr_lost &&
    a->cell_len == b->cell_len && a->nr_rects == b->nr_rects &&
    a->slices == b->slices &&
    (a->threads == b->threads || !has_threads (a) || !has_threads (b));
}

/* ---- those that are open ------------------------------------------------ */

struct group {
  struct run *run[SWEEP_MAX_CHOICES];
  unsigned nr_runs;
  struct entry entry[2 * SWEEP_MAX_CHOICES];
  unsigned nr;
};

/* Open it, and make its entries.  0, or -1 reported; a case that can't be
 * opened is a row that says why.
 */
static int
open_run (const struct sweep *s, const struct run_request *q,
          struct group *group, struct report *report)
{
  enum metric metric[2];
  struct row row;
  struct run *run;

  row_start (&row, q);
  run = run_open (q, row.why);
  if (run == NULL)
    return report_row (report, &row);
  group->run[group->nr_runs++] = run;
  for (unsigned n = row_nr_metrics (s, run, metric), i = 0; i < n; i++) {
    struct entry *e = &group->entry[group->nr++];

    if (row_open (s, e, run, metric[i]) == -1)
      return row_report (e, report);
    if (!s->verify_only)
      row_begin (s, e);
  }
  return 0;
}

static void
take_turn (const struct sweep *s, struct entry *e)
{
  const unsigned nr = s->nr_latencies > 0
    ? div_round_up (s->nr_latencies, LATENCY_TURNS) : 1;
  const unsigned cold = s->nr_latencies > 0 ? LATENCY_COLD : 1;
  char *why = e->row.why;

  if (why[0] == '\0' && meter_warm (&e->meter, cold, why) == 0)
    meter_take (&e->meter, nr, why);
}

static int
measure (const struct sweep *s, struct group *group, struct report *report)
{
  const unsigned turns = s->nr_latencies > 0 ? LATENCY_TURNS
    : s->effort.samples;

  for (unsigned n = 0; !s->verify_only && n < turns; n++)
    for (unsigned i = 0; i < group->nr; i++)
      take_turn (s, &group->entry[i]);
  for (unsigned i = 0; i < group->nr; i++) {
    struct entry *e = &group->entry[i];

    if (!s->verify_only && e->row.why[0] == '\0')
      row_end (s, e);
    if (row_report (e, report) == -1)
      return -1;
  }
  return 0;
}

/* The request, and those after it that are alike: they are removed. */
static int
run_alike (const struct sweep *s, struct requests *all, size_t first,
           struct group *group, struct report *report)
{
  const struct run_request q = all->v[first];
  int r = 0;

  group->nr_runs = group->nr = 0;
  for (size_t i = first; r == 0 && i < all->nr; i++) {
    if (all->v[i].ops == NULL || !are_alike (&q, &all->v[i]))
      continue;
    r = open_run (s, &all->v[i], group, report);
    all->v[i].ops = NULL;
    if (group->nr_runs == SWEEP_MAX_CHOICES)
      break;
  }
  if (r == 0)
    r = measure (s, group, report);
  for (unsigned i = 0; i < group->nr_runs; i++)
    run_close (group->run[i]);
  return r;
}

int
sweep_in_turn (const struct sweep *s, struct report *report)
{
  struct requests all = { 0 };
  struct group *group = malloc (sizeof *group);
  int r = group ? sweep_each (s, add_request, &all) : -1;

  if (group == NULL)
    log_error ("malloc: %m");
  for (size_t i = 0; r == 0 && i < all.nr; i++)
    if (all.v[i].ops)
      r = run_alike (s, &all, i, group, report);
  free (all.v);
  free (group);
  return r;
}
