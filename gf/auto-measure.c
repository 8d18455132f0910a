/* gpuraid: what two coders do, measured.
 *
 * Sizes from one row of blocks up to where the rates show, of each the
 * median of a few runs.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bits.h"
#include "gf/auto-measure.h"
#include "gf/auto-run.h"

/* No run is begun after so many seconds, and none that would take longer
 * than the second; from the third on there is less than one wants, of each
 * size.  Of short ones it takes many: the first few wake up processors.
 */
#define ALL_SECONDS 0.22
#define RUN_SECONDS 0.012
#define SIZE_SECONDS 0.004
#define MAX_RUNS 21
/* Inputs that are large enough to show the rate. */
#define LARGE_LEN ((size_t) 24 << 20)
#define MAX_RECTS 4096
/* Of the arena; what of it can be made in so many seconds. */
#define MAX_ARENA_LEN ((size_t) 128 << 20)
#define MAKE_SECONDS 0.06
#define BLOCK_LEN 4096
#define MAX_CELL_LEN ((size_t) 256 << 10)

struct measure {
  struct auto_runs runs;
  const struct auto_measure *m;
  double until;
  double work_unit;             /* work for a byte of a cell */
};

static double
now (const struct measure *ms)
{
  return auto_runs_now (&ms->runs);
}

static int
compare_seconds (const void *p, const void *q)
{
  double x = *(const double *) p, y = *(const double *) q;

  return x < y ? -1 : x > y;
}

static double
median (double *t, unsigned nr)
{
  qsort (t, nr, sizeof t[0], compare_seconds);
  return t[nr / 2];
}

/* The median of some; a time of 0 would mean that it was not measured. */
static int
some (struct measure *ms, const size_t nr_rects[2], size_t cell_len,
      double *seconds)
{
  double t[MAX_RUNS], sum = 0;
  unsigned nr = 0;

  do {
    int error = auto_runs_once (&ms->runs, nr_rects, cell_len, &t[nr]);

    if (error)
      return error;
    sum += t[nr++];
  } while (nr < MAX_RUNS && (nr < 3 || sum < SIZE_SECONDS) &&
           now (ms) < ms->until);
  *seconds = MAX (median (t, nr), 1e-9);
  return 0;
}

/* ---- sizes ------------------------------------------------------------ */

/* The cells of a row of blocks, or the next length above that the matrix
 * can take; that of all if there is none below.
 */
static size_t
small_cell_len (const struct measure *ms)
{
  const struct matrix *a = ms->runs.matrix;
  size_t unit = a->packet_len ? a->w * a->packet_len : 64;
  size_t len = unit;

  while (len < BLOCK_LEN || len % 64 != 0)
    len += unit;
  return len < ms->runs.stride && ms->runs.stride % len == 0 ?
    len : ms->runs.stride;
}

/* The size after the one given; false: none that fits. */
static bool
next_size (const struct measure *ms, size_t *nr_rects, size_t *cell_len)
{
  if (*nr_rects == 0) {
    *nr_rects = 1;
    *cell_len = small_cell_len (ms);
  }
  else if (*cell_len * 16 <= ms->runs.stride &&
           ms->runs.stride % (*cell_len * 4) == 0)
    *cell_len *= 4;
  else if (*cell_len < ms->runs.stride)
    *cell_len = ms->runs.stride;
  else if (*nr_rects * ms->runs.matrix->cols * *cell_len >= LARGE_LEN ||
           *nr_rects >= MAX_RECTS)
    return false;
  else
    /* In small steps where a job begins to be shared by processors. */
    *nr_rects *= *nr_rects < 16 ? 2 : 4;
  return *nr_rects * auto_runs_rect_len (&ms->runs) <= ms->runs.arena_len;
}

/* Add a point for each size. */
static int
measure_curve (struct measure *ms, unsigned side, struct balance_curve *c,
               size_t *nr_rects, size_t *cell_len)
{
  size_t n = 0, len = 0, nr[2] = { 0 };
  double t;

  c->nr = 0;
  while (c->nr < BALANCE_MAX_POINTS && next_size (ms, &n, &len)) {
    double work = n * len * ms->work_unit;
    int error;

    if (c->nr > 0 &&
        (now (ms) > ms->until ||
         c->point[c->nr-1].seconds * work / c->point[c->nr-1].work >
         RUN_SECONDS))
      break;
    /* What is done once for a matrix is no job's. */
    nr[side] = n;
    error = c->nr == 0 ? auto_runs_once (&ms->runs, nr, len, &t) : 0;
    if (error == 0)
      error = some (ms, nr, len, &t);
    if (error)
      return error;
    c->point[c->nr].work = work;
    c->point[c->nr++].seconds = t;
    nr_rects[c->nr-1] = n;
    cell_len[c->nr-1] = len;
  }
  if (c->nr == 0)
    return ENOSPC;
  t = c->point[c->nr-1].seconds;
  c->rate = c->point[c->nr-1].work / MAX (t - balance_fixed (c), t / 4);
  return 0;
}

/* ---- rates ------------------------------------------------------------ */

#define NR_AT_ONCE 3
/* The median of so many. */
#define NR_BOTH 3

/* Several large jobs on far, and on near, if it takes part, smaller ones
 * one after the other for as long.  Work a second of each; far's without
 * the fixed seconds of its first job.
 */
static int
measure_rates (struct measure *ms, size_t nr_far, size_t nr_near,
               double fixed, double rate[2])
{
  struct auto_run *far[NR_AT_ONCE] = { NULL };
  const size_t near[2] = { [NEAR] = nr_near };
  size_t cell_len = ms->runs.stride, near_rects = 0;
  double unit = cell_len * ms->work_unit, near_seconds = 0, ended = 0;
  int error = 0;

  for (unsigned i = 0; i < NR_AT_ONCE; i++) {
    far[i] = auto_run_new (&ms->runs, nr_far, cell_len);
    if (far[i] == NULL)
      error = ENOMEM;
  }
  for (unsigned i = 0; i < NR_AT_ONCE && error == 0; i++)
    auto_run_begin (far[i], FAR);
  while (error == 0 && nr_near > 0 && !auto_run_is_done (far[NR_AT_ONCE-1])) {
    double t;

    error = auto_runs_once (&ms->runs, near, cell_len, &t);
    if (near_rects > 0 && auto_run_is_done (far[NR_AT_ONCE-1]))
      break;
    near_seconds += t;
    near_rects += nr_near;
  }
  for (unsigned i = 0; i < NR_AT_ONCE && far[i] && far[i]->begun; i++) {
    auto_run_wait (far[i]);
    error = error ? error : far[i]->error;
    ended = MAX (ended, far[i]->ended);
  }
  if (error == 0) {
    ended -= far[0]->began;
    rate[FAR] = NR_AT_ONCE * nr_far * unit / MAX (ended - fixed, ended / 4);
    if (near_rects > 0)
      rate[NEAR] = near_rects * unit / MAX (near_seconds, 1e-9);
  }
  for (unsigned i = 0; i < NR_AT_ONCE; i++)
    auto_run_free (far[i]);
  return error;
}

/* Both sides alone, and at once. */
static int
measure_both (struct measure *ms, struct balance *b)
{
  struct balance_curve *near = &b->side[NEAR].many;
  struct balance_curve *far = &b->side[FAR].many;
  size_t fit = ms->runs.arena_len / auto_runs_rect_len (&ms->runs);
  double unit = ms->runs.stride * ms->work_unit;
  double fixed = balance_fixed (far), want, seconds;
  double a[NR_BOTH], t[2][NR_BOTH];
  size_t nr_far, nr_near;
  unsigned nr = 0;

  /* As large as was measured, as fits and as time allows; of near's jobs
   * one is no longer than a tenth of far's.
   */
  want = MIN (far->point[far->nr-1].work, RUN_SECONDS * far->rate);
  nr_far = MIN (want / unit, fit / (NR_AT_ONCE + 1));
  if (nr_far == 0)
    return 0;
  seconds = NR_AT_ONCE * nr_far * unit / far->rate;
  nr_near = MIN (MAX (seconds / 10 * near->rate / unit, 1), nr_far);
  for (; nr < NR_BOTH && (nr == 0 || now (ms) < ms->until); nr++) {
    double rate[2] = { 0 };
    int error = measure_rates (ms, nr_far, 0, fixed, rate);

    if (error)
      return error;
    a[nr] = rate[FAR];
    error = measure_rates (ms, nr_far, nr_near, fixed, rate);
    if (error)
      return error;
    t[NEAR][nr] = rate[NEAR];
    t[FAR][nr] = rate[FAR];
  }
  far->rate = median (a, nr);
  for (unsigned s = 0; s < 2; s++) {
    double shared = median (t[s], nr);

    /* 0: far was done before near could begin. */
    if (shared > 0)
      b->side[s].stretch = MIN (MAX (b->side[s].many.rate / shared, 1), 8);
  }
  return 0;
}

/* ---- all of it -------------------------------------------------------- */

/* Cut as the balance would. */
static int
measure_cuts (struct measure *ms, const struct balance *b,
              struct coder_auto_measured *found)
{
  double near = b->side[NEAR].many.rate / b->side[NEAR].stretch;
  double far = b->side[FAR].many.rate / b->side[FAR].stretch;

  for (unsigned i = 0; i < found->nr_points && now (ms) < ms->until; i++) {
    struct coder_auto_point *p = &found->point[i];
    size_t nr[2] = { 0 };
    int error;

    if (p->nr_rects < 2)
      continue;
    nr[FAR] = p->nr_rects * far / (near + far) + 0.5;
    nr[FAR] = MAX (1, MIN (nr[FAR], p->nr_rects - 1));
    nr[NEAR] = p->nr_rects - nr[FAR];
    error = some (ms, nr, p->cell_len, &p->both);
    if (error)
      return error;
  }
  return 0;
}

/* Where far's curve goes below near's for good. */
static uint64_t
crossover (const struct coder_auto_measured *f)
{
  unsigned i = f->nr_points;
  const struct coder_auto_point *p, *q;

  while (i > 0 && f->point[i-1].far < f->point[i-1].near)
    i--;
  if (i == 0)
    return 0;
  if (i < f->nr_points) {
    double d, e;

    p = &f->point[i-1];
    q = &f->point[i];
    d = p->far - p->near;
    e = q->near - q->far;
    return p->bytes + (q->bytes - p->bytes) * (d / (d + e));
  }
  /* Not yet at the last: but later, if it is the faster one. */
  p = &f->point[i-1];
  if (f->far_rate > f->near_rate)
    return p->bytes + (p->far - p->near) /
      (1 / f->near_rate - 1 / f->far_rate);
  return UINT64_MAX;
}

static void
tell (const struct measure *ms, const struct balance *b,
      const size_t *nr_rects, const size_t *cell_len,
      struct coder_auto_measured *f)
{
  const struct balance_side *near = &b->side[NEAR], *far = &b->side[FAR];
  double in = ms->runs.matrix->cols / ms->work_unit;

  f->rows = ms->runs.matrix->rows;
  f->cols = ms->runs.matrix->cols;
  f->nr_points = MIN (near->many.nr, far->many.nr);
  for (unsigned i = 0; i < f->nr_points; i++)
    f->point[i] = (struct coder_auto_point) {
      .nr_rects = nr_rects[i], .cell_len = cell_len[i],
      .bytes = (uint64_t) nr_rects[i] * cell_len[i] * f->cols,
      .near = near->many.point[i].seconds, .far = far->many.point[i].seconds,
    };
  f->near_rate = near->many.rate * in;
  f->far_rate = far->many.rate * in;
  f->near_shared_rate = f->near_rate / near->stretch;
  f->far_shared_rate = f->far_rate / far->stretch;
  f->crossover = crossover (f);
}

/* Near once more with the last row alone (the first is often one of ones,
 * which is a special case): there rows cost time, while to a far side bytes
 * do.
 */
static int
measure_one_row (struct measure *ms, struct balance_curve *c)
{
  const struct matrix *a = ms->m->matrix;
  const uint8_t *row = a->coef + (size_t) (a->rows - 1) * a->cols;
  size_t unused[2][BALANCE_MAX_POINTS];
  struct matrix *one = a->packet_len ?
    matrix_new_packets (a->w, a->packet_len, 1, a->cols, row) :
    matrix_new (1, a->cols, row);
  int error;

  if (one == NULL)
    return errno;
  ms->runs.matrix = one;
  ms->work_unit = a->cols;
  error = measure_curve (ms, NEAR, c, unused[0], unused[1]);
  matrix_free (one);
  return error;
}

static int
measure_all (struct measure *ms, struct balance *b,
             struct coder_auto_measured *found)
{
  size_t nr_rects[2][BALANCE_MAX_POINTS], cell_len[2][BALANCE_MAX_POINTS];
  int error = 0;

  ms->work_unit = MAX (ms->runs.matrix->rows, ms->runs.matrix->cols);
  b->rows = ms->runs.matrix->rows;
  for (unsigned s = 0; s < 2 && error == 0; s++)
    error = measure_curve (ms, s, &b->side[s].many, nr_rects[s],
                           cell_len[s]);
  if (error == 0)
    error = measure_both (ms, b);
  if (error)
    return error;
  tell (ms, b, nr_rects[NEAR], cell_len[NEAR], found);
  if (ms->runs.matrix->rows > 1 && now (ms) < ms->until)
    error = measure_one_row (ms, &b->side[NEAR].one);
  ms->runs.matrix = ms->m->matrix;
  return error ? error : measure_cuts (ms, b, found);
}

/* Very large cells are no different from large ones, and need an arena of
 * their own.
 */
static void
choose_cell_len (struct measure *ms)
{
  size_t len = small_cell_len (ms);

  while (ms->runs.stride > MAX_CELL_LEN && ms->runs.stride % (2 * len) == 0)
    ms->runs.stride /= 2;
}

/* Memory that nobody wrote yet would be read from one page of zeroes. */
static void
make_arena (struct measure *ms)
{
  double until = now (ms) + MAKE_SECONDS;

  for (size_t off = 0; off < ms->runs.arena_len; off += BLOCK_LEN) {
    *(volatile uint8_t *) (ms->runs.arena + off) = 0;
    if (is_aligned (off, MIB) && now (ms) > until)
      ms->runs.arena_len = off;
  }
}

int
auto_measure (const struct auto_measure *m, struct balance *b,
              struct coder_auto_measured *found)
{
  struct measure ms = {
    .m = m,
    .runs = {
      .side = { m->side[NEAR], m->side[FAR] }, .matrix = m->matrix,
      .stride = m->cell_len, .arena = m->arena,
      .arena_len = MIN (m->arena_len, MAX_ARENA_LEN),
      .clock = m->clock,
    },
  };
  struct balance was = *b;
  int error;

  if (m->cell_len == 0 || m->matrix->rows == 0 || m->matrix->cols == 0 ||
      m->arena == NULL)
    return ENOSPC;
  auto_runs_init (&ms.runs);
  memset (found, 0, sizeof *found);
  ms.until = now (&ms) + ALL_SECONDS;
  choose_cell_len (&ms);
  make_arena (&ms);
  error = measure_all (&ms, b, found);
  if (error) {
    *b = was;
    memset (found, 0, sizeof *found);
  }
  auto_runs_destroy (&ms.runs);
  return error;
}
