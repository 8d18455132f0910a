/* gpuraid: measure the rates of the CPU and a device.
 *
 * First the rates, with slices of the size and number that are used later; this
 * also wakes up processors and device.  Then how long one rect takes alone, a
 * small one and a large one: the threshold is where the two lines through them
 * cross, if that of the CPU is AUTO_CPU_MARGIN times as high.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/bits.h"
#include "gf/auto/measure.h"

/* Seconds of a pass, of all passes of one coder, and for one size. */
#define PASS_SECONDS 8e-3
#define NR_PASSES 5
#define SIZE_SECONDS 5e-3
#define MAX_RUNS 31
#define MAX_ARENA_LEN ((size_t) 128 << 20)
#define MIN_RECTS 8
#define BLOCK_LEN ((size_t) 4096)
#define MAX_CELL_LEN ((size_t) 64 << 10)
/* A device below this part of the CPU's rate is not used. */
#define LEAST_RATE 0.05

/* Jobs of one size. */
struct pass {
  const struct auto_measure *m;
  struct coder *coder;
  size_t nr_rects, cell_len;
  double until;                 /* no job is submitted after that */
  size_t off;                   /* of the next job, in its cells */
  atomic_uint nr_busy;          /* under way */

  pthread_mutex_t lock;

  /* With lock held. */
  size_t nr_done;
  double ended;                 /* the last one */
  int error;                    /* the first */
};

/* A job, submitted again with the next cells of its own part of the arena, so
 * that they come from memory, as an array's may.
 */
struct probe {
  struct coder_job job;         /* first */
  struct pass *pass;
  uint8_t *cells;
  size_t cells_len, off;
  uint8_t **in, **out;
};

static size_t
rect_len (const struct pass *p)
{
  return (p->m->matrix->rows + p->m->matrix->cols) * p->cell_len;
}

static void
probe_submit (struct probe *pr)
{
  const struct pass *p = pr->pass;
  const size_t nr_in = p->nr_rects * p->m->matrix->cols;
  const size_t nr_out = p->nr_rects * p->m->matrix->rows;
  uint8_t *cell;

  if (pr->off + p->nr_rects * rect_len (p) > pr->cells_len)
    pr->off = 0;
  cell = pr->cells + pr->off;
  pr->off += p->nr_rects * rect_len (p);
  for (size_t i = 0; i < nr_in; i++, cell += p->cell_len)
    pr->in[i] = cell;
  for (size_t j = 0; j < nr_out; j++, cell += p->cell_len)
    pr->out[j] = cell;
  coder_submit (p->coder, &pr->job);
}

static void
probe_done (struct coder_job *job, int error)
{
  struct probe *pr = (struct probe *) job;
  struct pass *p = pr->pass;
  const double at = auto_now (p->m->clock);
  bool again;

  pthread_mutex_lock (&p->lock);
  p->nr_done++;
  p->ended = MAX (p->ended, at);
  if (p->error == 0)
    p->error = error;
  again = p->error == 0 && at < p->until;
  pthread_mutex_unlock (&p->lock);
  if (again)
    probe_submit (pr);
  else
    atomic_fetch_sub_explicit (&p->nr_busy, 1, memory_order_release);
}

/* false: no memory. */
static bool
probe_init (struct probe *pr, struct pass *p, uint8_t *cells,
            size_t cells_len)
{
  const struct matrix *a = p->m->matrix;

  *pr = (struct probe) {
    .pass = p, .cells = cells, .cells_len = cells_len, .off = p->off,
  };
  pr->in = malloc (p->nr_rects * (a->cols + a->rows) * sizeof pr->in[0]);
  if (pr->in == NULL)
    return false;
  pr->out = pr->in + p->nr_rects * a->cols;
  pr->job = (struct coder_job) {
    .matrix = a, .cell_len = p->cell_len, .nr_rects = p->nr_rects,
    .in = (const uint8_t **) pr->in, .out = pr->out, .away = p->until > 0,
    .done = probe_done,
  };
  return true;
}

/* Run nr jobs at once, each repeated until duration is over, or once if it is
 * 0. *seconds gets the time that the p->nr_done jobs took.  0, or a positive
 * errno.
 */
static int
run_pass (struct pass *p, unsigned nr, double duration, double *seconds)
{
  const size_t cells_len = round_down (p->m->arena_len / nr, 64);
  const double began = auto_now (p->m->clock);
  struct probe *pr = calloc (nr, sizeof *pr);
  bool ok = pr != NULL;

  pthread_mutex_init (&p->lock, NULL);
  p->until = duration > 0 ? began + duration : 0;
  p->nr_busy = nr;
  p->nr_done = 0;
  p->ended = p->error = 0;
  for (unsigned i = 0; i < nr && ok; i++)
    ok = probe_init (&pr[i], p, p->m->arena + i * cells_len, cells_len);
  for (unsigned i = 0; i < nr && ok; i++)
    probe_submit (&pr[i]);
  while (ok && atomic_load_explicit (&p->nr_busy, memory_order_acquire) > 0)
    p->m->clock->pause (p->m->clock->opaque);
  p->off = ok ? pr[0].off : 0;
  *seconds = MAX (p->ended - began, 1e-9);
  for (unsigned i = 0; pr && i < nr; i++)
    free (pr[i].in);
  free (pr);
  pthread_mutex_destroy (&p->lock);
  return ok ? p->error : ENOMEM;
}

/* Each pass uses the rate of the one before to choose the size of a slice.
 * Input bytes a second.
 */
static int
measure_rate (const struct auto_measure *m, struct coder *coder, unsigned nr,
              double slice_seconds, double *rate)
{
  const size_t bytes = m->matrix->cols * m->cell_len;
  const size_t least = div_round_up (AUTO_MIN_SLICE, bytes);
  struct pass p = {
    .m = m, .coder = coder, .nr_rects = least, .cell_len = m->cell_len,
  };
  const size_t fit = m->arena_len / rect_len (&p);

  *rate = 0;
  nr = MIN (nr, fit / least);
  for (unsigned i = 0; i < NR_PASSES && nr > 0; i++) {
    double seconds;
    int error = run_pass (&p, nr, PASS_SECONDS, &seconds);

    if (error)
      return error;
    *rate = MAX (*rate, p.nr_done * p.nr_rects * bytes / seconds);
    p.nr_rects = MAX (MIN (slice_seconds * *rate / bytes, fit / nr), least);
  }
  return 0;
}

/* Seconds of one rect: the fastest of many runs, as other work may disturb
 * some.
 */
static int
measure_lone (const struct auto_measure *m, struct coder *coder,
              size_t cell_len, double *seconds)
{
  struct pass p = {
    .m = m, .coder = coder, .nr_rects = 1, .cell_len = cell_len,
  };
  double t, sum = 0;

  for (unsigned i = 0; i < 3 || (i < MAX_RUNS && sum < SIZE_SECONDS); i++) {
    int error = run_pass (&p, 1, 0, &t);

    if (error)
      return error;
    *seconds = i == 0 ? t : MIN (*seconds, t);
    sum += t;
  }
  return 0;
}

/* A row of blocks, or the next length above that the matrix can take. */
static size_t
small_cell_len (const struct matrix *a)
{
  const size_t unit = a->packet_len ? a->w * a->packet_len : 64;
  size_t len = unit;

  while (len < BLOCK_LEN || len % 64 != 0)
    len += unit;
  return len;
}

/* The size, in bytes of input, from which the device needs less than
 * AUTO_CPU_MARGIN times as long for a job.
 */
static int
find_crossing (const struct auto_measure *m, double *bytes)
{
  struct coder *const coder[2] = { m->cpu, m->gpu };
  const double margin[2] = { AUTO_CPU_MARGIN, 1 };
  const size_t len[2] = { small_cell_len (m->matrix), m->cell_len };
  const double x[2] = { m->matrix->cols * len[0], m->matrix->cols * len[1] };
  double t[2][2], slope[2];

  for (unsigned c = 0; c < 2; c++) {
    for (unsigned i = 0; i < 2; i++) {
      int error = measure_lone (m, coder[c], len[i], &t[c][i]);

      if (error)
        return error;
      t[c][i] *= margin[c];
    }
    slope[c] = MAX (t[c][1] - t[c][0], 0) / (x[1] - x[0]);
  }
  if (t[1][0] <= t[0][0])
    *bytes = 0;
  else if (slope[1] >= slope[0])
    *bytes = INFINITY;          /* it never does */
  else
    *bytes = x[0] + (t[1][0] - t[0][0]) / (slope[0] - slope[1]);
  return 0;
}

int
auto_measure (const struct auto_measure *given, struct auto_rates *found)
{
  struct auto_measure m = *given;
  const struct matrix *a = m.matrix;
  const size_t small = small_cell_len (a);
  double cpu, gpu, crossing;
  int error;

  /* Very large cells are no different from large ones. */
  m.cell_len = MAX (MIN (m.cell_len, MAX_CELL_LEN) / small, 4) * small;
  m.arena_len = MIN (m.arena_len, MAX_ARENA_LEN);
  if (a->rows == 0 || a->cols == 0 ||
      MIN_RECTS * (a->rows + a->cols) * m.cell_len > m.arena_len)
    return ENOSPC;
  /* Write to the memory first: memory that was never written would be read from
   * one page of zeroes.
   */
  memset (m.arena, 0, m.arena_len);
  error = measure_rate (&m, m.cpu, m.cpu_threads,
                        AUTO_CPU_SLICE / MAX (m.cpu_threads, 1), &cpu);
  if (error == 0)
    error = measure_rate (&m, m.gpu, AUTO_GPU_AHEAD, AUTO_GPU_SLICE, &gpu);
  if (error == 0)
    error = find_crossing (&m, &crossing);
  if (error)
    return error;
  /* A slice of the device is always useful, because the CPU works beside it,
   * unless the device is too slow.
   */
  crossing = MIN (crossing, AUTO_GPU_SLICE * gpu);
  *found = (struct auto_rates) {
    .cpu = cpu, .gpu = gpu,
    .threshold = gpu < LEAST_RATE * cpu ? UINT64_MAX : crossing * a->rows,
  };
  return 0;
}
