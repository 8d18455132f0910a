/* gpuraid: a coder of the array as a method.
 *
 * Cells lie in one arena, as in an array, rect by rect.  The rects are divided
 * into jobs, which are in flight together and submitted again as soon as they
 * are done, so that no step waits for all of them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/bits.h"
#include "common/cleanup.h"
#include "common/list.h"
#include "gpu/choice/kernels.h"
#include "gpu/coder-cuda.h"
#include "measure/clock.h"
#include "measure/coders.h"
#include "measure/method-coder.h"

#define DEFAULT_JOBS 8
/* For kernels that are being compiled, in all. */
#define MAX_SETTLE_MS 60000

struct bench_job {
  struct coder_job job;         /* first */
  struct coder_method *e;
  struct list link;             /* done, to be submitted again */
};

struct coder_method {
  struct method method;         /* first */
  struct bench_case bc;
  struct coder *coder;
  struct coder *cuda;           /* it, or part of it; NULL: no device */
  uint8_t *arena;
  size_t arena_len;
  const uint8_t **in;
  uint8_t **out;
  uint32_t *crc;
  struct bench_job *jobs;
  unsigned nr_jobs;

  pthread_mutex_t lock;
  pthread_cond_t cond;

  /* With lock held. */
  struct list done;             /* oldest first: otherwise only a few jobs would
                                 * rotate, with their cells in a cache */
  int error;                    /* of the first job that failed */
  double last_done;             /* when, in seconds */
};

static void
job_done (struct coder_job *job, int error)
{
  struct bench_job *j = (struct bench_job *) job;
  struct coder_method *e = j->e;
  double at = now ();
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&e->lock);

  list_append (&e->done, &j->link);
  if (error && !e->error)
    e->error = error;
  e->last_done = MAX (e->last_done, at);
  pthread_cond_signal (&e->cond);
}

void
coder_method_close (struct method *method)
{
  struct coder_method *e = (struct coder_method *) method;

  coder_free (e->coder);
  if (e->arena)
    munmap (e->arena, e->arena_len);
  free (e->in);
  free (e->out);
  free (e->crc);
  free (e->jobs);
  pthread_cond_destroy (&e->cond);
  pthread_mutex_destroy (&e->lock);
  free (e);
}

uint8_t *
coder_method_in (struct method *method, size_t r, unsigned i)
{
  struct coder_method *e = (struct coder_method *) method;

  return (uint8_t *) e->in[r * e->bc.matrix->cols + i];
}

uint8_t *
coder_method_out (struct method *method, size_t r, unsigned j)
{
  struct coder_method *e = (struct coder_method *) method;

  return e->out[r * e->bc.matrix->rows + j];
}

static int
make_cells (struct coder_method *e)
{
  const struct bench_case *bc = &e->bc;
  size_t cols = bc->matrix->cols, rows = bc->matrix->rows;
  uint8_t *p;

  e->arena_len = round_up (bc->nr_rects * (cols + rows) * bc->cell_len,
                           2 * MIB);
  p = mmap (NULL, e->arena_len, PROT_READ|PROT_WRITE,
            MAP_PRIVATE|MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED)
    return -1;
  e->arena = p;
  (void) madvise (p, e->arena_len, MADV_HUGEPAGE);
  e->in = calloc (bc->nr_rects * cols + 1, sizeof e->in[0]);
  e->out = calloc (bc->nr_rects * rows + 1, sizeof e->out[0]);
  if (e->in == NULL || e->out == NULL)
    return -1;
  for (size_t r = 0; r < bc->nr_rects; r++) {
    for (size_t i = 0; i < cols; i++, p += bc->cell_len)
      e->in[r * cols + i] = p;
    for (size_t j = 0; j < rows; j++, p += bc->cell_len)
      e->out[r * rows + j] = p;
  }
  return 0;
}

static int
make_jobs (struct coder_method *e)
{
  const struct bench_case *bc = &e->bc;
  size_t cols = bc->matrix->cols, rows = bc->matrix->rows;
  size_t nr_crcs = (cols + rows) * (bc->cell_len / CRC_BLOCK_LEN);

  e->nr_jobs = MIN (bc->slices ? bc->slices : DEFAULT_JOBS, bc->nr_rects);
  e->jobs = calloc (e->nr_jobs, sizeof e->jobs[0]);
  if (bc->option && strcmp (bc->option, "crc") == 0)
    e->crc = calloc (bc->nr_rects * nr_crcs, sizeof e->crc[0]);
  else
    nr_crcs = 0;
  if (e->jobs == NULL || (nr_crcs > 0 && e->crc == NULL))
    return -1;
  for (unsigned n = 0; n < e->nr_jobs; n++) {
    size_t first = bc->nr_rects * n / e->nr_jobs;
    size_t end = bc->nr_rects * (n + 1) / e->nr_jobs;

    e->jobs[n].e = e;
    e->jobs[n].job = (struct coder_job) {
      .matrix = bc->matrix, .cell_len = bc->cell_len,
      .nr_rects = end - first,
      .in = e->in + first * cols, .out = e->out + first * rows,
      .crc = e->crc ? e->crc + first * nr_crcs : NULL,
      .done = job_done,
    };
  }
  return 0;
}

/* Wait until the background thread has compiled the kernels, to measure an
 * array that has been running for a while.
 */
static void
settle (struct coder_method *e)
{
  struct kernels_state state;

  for (unsigned ms = 0; e->cuda && ms < MAX_SETTLE_MS; ms++) {
    coder_cuda_kernels (e->cuda, &state);
    if (state.nr_wanted == 0)
      return;
    usleep (1000);
  }
}

/* Was any device started?  auto works without. */
static bool
uses_device (struct coder *coder)
{
  struct coder_share share[CODER_MAX_SHARES];
  unsigned nr = coder_shares (coder, share);

  for (unsigned n = 0; n < nr; n++)
    if (strncmp (share[n].name, "cuda:", 5) == 0 && share[n].failed[0] == '\0')
      return true;
  return false;
}

struct method *
coder_method_open (const struct method_ops *ops, struct coder *coder,
                   struct coder *cuda, const struct bench_case *bc, char *why)
{
  struct coder_method *e;

  if (coder == NULL) {
    snprintf (why, BENCH_WHY_LEN, "no coder %s", ops->name);
    return NULL;
  }
  e = calloc (1, sizeof *e);
  if (e == NULL) {
    coder_free (coder);
    snprintf (why, BENCH_WHY_LEN, "calloc: %m");
    return NULL;
  }
  e->method.ops = ops;
  e->bc = *bc;
  e->coder = coder;
  pthread_mutex_init (&e->lock, NULL);
  pthread_cond_init (&e->cond, NULL);
  if (bc->option && strcmp (bc->option, "crc") == 0 &&
      bc->cell_len % CRC_BLOCK_LEN != 0)
    snprintf (why, BENCH_WHY_LEN, "CRCs are of blocks of 4096 bytes");
  else if (make_cells (e) == -1 || make_jobs (e) == -1)
    snprintf (why, BENCH_WHY_LEN, "memory: %m");
  else if (coder_start (coder, e->arena, e->arena_len) == -1)
    snprintf (why, BENCH_WHY_LEN, "%s does not start", ops->name);
  else if (cuda && !uses_device (coder))
    snprintf (why, BENCH_WHY_LEN, "no device could be used");
  else {
    e->cuda = cuda;
    return &e->method;
  }
  coder_method_close (&e->method);
  return NULL;
}

/* The next job that is done. */
static struct bench_job *
take_done (struct coder_method *e)
{
  struct bench_job *j;
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&e->lock);

  while (list_empty (&e->done))
    pthread_cond_wait (&e->cond, &e->lock);
  j = list_item (e->done.next, struct bench_job, link);
  list_remove (&j->link);
  return j;
}

/* Run all jobs nr times, except for a few at the end. */
int
coder_method_run (struct method *method, unsigned nr, double *seconds,
                  char *why)
{
  struct coder_method *e = (struct coder_method *) method;
  uint64_t total = (uint64_t) nr * e->nr_jobs, submitted = 0, ended = 0;
  double start;

  list_init (&e->done);
  e->error = 0;
  e->last_done = 0;
  settle (e);
  start = now ();
  for (; submitted < e->nr_jobs; submitted++)
    coder_submit (e->coder, &e->jobs[submitted].job);
  while (ended < total) {
    struct bench_job *j = take_done (e);

    ended++;
    if (submitted < total) {
      submitted++;
      coder_submit (e->coder, &j->job);
    }
  }
  *seconds = e->last_done - start;
  if (e->error)
    snprintf (why, BENCH_WHY_LEN, "%s: %s", method->ops->name,
              strerror (e->error));
  return e->error ? -1 : 0;
}

struct coder *
coder_method_coder (struct method *method)
{
  return ((struct coder_method *) method)->coder;
}

const struct coder_job *
coder_method_job (struct method *method, unsigned n)
{
  struct coder_method *e = (struct coder_method *) method;

  return n < e->nr_jobs ? &e->jobs[n].job : NULL;
}

int
coder_method_check (struct method *method, char *why)
{
  struct coder_method *e = (struct coder_method *) method;
  const struct matrix *a = e->bc.matrix;

  return e->crc ? method_check_crcs (method, e->crc, e->bc.nr_rects, a->cols,
                                     a->rows, e->bc.cell_len, why) : 0;
}

void
coder_method_note (struct method *method, char *text, size_t text_len)
{
  struct coder_method *e = (struct coder_method *) method;
  struct coder_share share[CODER_MAX_SHARES];
  unsigned nr = coder_shares (e->coder, share);
  uint64_t total = 0;
  size_t len = 0;

  text[0] = '\0';
  for (unsigned n = 0; n < nr; n++)
    total += share[n].bytes;
  for (unsigned n = 0; n < nr && len < text_len; n++) {
    if (share[n].bytes > 0 || share[n].failed[0])
      len += snprintf (text + len, text_len - len, "%s%s %.0f %%%s%s",
                       len ? ", " : "", share[n].name,
                       100.0 * share[n].bytes / MAX (total, 1),
                       share[n].failed[0] ? " failed: " : "",
                       share[n].failed);
  }
}
