/* gpuraid: coder auto with real coders and threads: nothing is lost, done
 * twice or wrong, however a job is cut and whoever fails.
 *
 * Run from the root of the tree.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/bits.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "gf/auto-task.h"
#include "gf/coder-auto.h"
#include "tests/gf-job.h"

static uint64_t seed;

/* ---- a coder with a thread of its own, like a device's ----------------- */

struct device {
  struct coder coder;           /* first */
  struct coder *inner;
  pthread_t thread;
  bool starts;                  /* else start fails */
  unsigned fail_each;           /* each so many-th job fails; 0: none */

  pthread_mutex_t lock;
  pthread_cond_t wake;

  /* lock */
  struct coder_job *first, **last;
  bool stop;
};

static void *
device_thread (void *dv)
{
  struct device *d = dv;
  unsigned nr = 0;
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&d->lock);

  for (;;) {
    struct coder_job *job;

    while (d->first == NULL && !d->stop)
      pthread_cond_wait (&d->wake, &d->lock);
    job = d->first;
    if (job == NULL)
      return NULL;
    d->first = job->next;
    if (d->first == NULL)
      d->last = &d->first;
    pthread_mutex_unlock (&d->lock);
    if (d->fail_each && ++nr % d->fail_each == 0) {
      for (size_t j = 0; j < job->nr_rects * job->matrix->rows; j++)
        memset (job->out[j], 0xbd, job->cell_len);
      job->done (job, EIO);
    }
    else
      coder_submit (d->inner, job);
    pthread_mutex_lock (&d->lock);
  }
}

static int
device_start (struct coder *coder, void *arena, size_t arena_len)
{
  struct device *d = (struct device *) coder;

  if (!d->starts || coder_start (d->inner, arena, arena_len) == -1)
    return -1;
  return pthread_create (&d->thread, NULL, device_thread, d) ? -1 : 0;
}

static void
device_submit (struct coder *coder, struct coder_job *job)
{
  struct device *d = (struct device *) coder;
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&d->lock);

  job->next = NULL;
  *d->last = job;
  d->last = &job->next;
  pthread_cond_signal (&d->wake);
}

static void
device_free (struct coder *coder)
{
  struct device *d = (struct device *) coder;

  if (d->starts) {
    pthread_mutex_lock (&d->lock);
    d->stop = true;
    pthread_cond_signal (&d->wake);
    pthread_mutex_unlock (&d->lock);
    pthread_join (d->thread, NULL);
  }
  coder_free (d->inner);
  pthread_mutex_destroy (&d->lock);
  pthread_cond_destroy (&d->wake);
  free (d);
}

static unsigned
device_shares (struct coder *coder, struct coder_share *share)
{
  struct device *d = (struct device *) coder;
  unsigned nr = coder_shares (d->inner, share);

  if (!d->starts)
    snprintf (share->failed, sizeof share->failed, "it did not start");
  return nr;
}

static const struct coder_ops device_ops = {
  .name = "device",
  .start = device_start,
  .submit = device_submit,
  .free = device_free,
  .shares = device_shares,
};

/* The inner coder becomes its own. */
static struct device *
device_new (struct coder *inner)
{
  struct device *d = ref_alloc (sizeof *d);

  assert_non_null (inner);
  memset (d, 0, sizeof *d);
  d->coder.ops = &device_ops;
  d->inner = inner;
  d->starts = true;
  d->last = &d->first;
  pthread_mutex_init (&d->lock, NULL);
  pthread_cond_init (&d->wake, NULL);
  return d;
}

/* ---- jobs --------------------------------------------------------------- */

struct shape {
  unsigned rows, cols;
  size_t nr_rects, cell_len;
  bool crc;
  unsigned w;                   /* 0: bytes, else packets */
  size_t packet_len;
};

/* A job and its answer: matrix is the one that it uses. */
struct answer {
  struct ref_job *t;
  struct matrix *matrix;
  uint8_t *mem;
  uint32_t *crc;
  size_t nr_crcs;
};

static void
answer_make (struct answer *a, struct ref_random *rnd, const struct shape *s,
             struct coder *reference)
{
  uint8_t coef[16 * 16];

  ref_fill (rnd, coef, s->rows * s->cols);
  for (unsigned i = 0; s->w && i < s->rows * s->cols; i++)
    coef[i] &= (1 << s->w) - 1;
  a->t = ref_job_new (rnd, s->rows, s->cols, coef, s->nr_rects, s->cell_len,
                      s->crc);
  a->matrix = s->w ? matrix_new_packets (s->w, s->packet_len, s->rows,
                                         s->cols, coef) :
    matrix_new (s->rows, s->cols, coef);
  assert_non_null (a->matrix);
  a->t->job.matrix = a->matrix;
  a->nr_crcs = s->crc ? (a->t->nr_in + a->t->nr_out) * (s->cell_len / 4096) :
    0;

  ref_job_run (reference, a->t);
  a->mem = ref_alloc (a->t->mem_len);
  memcpy (a->mem, a->t->mem, a->t->mem_len);
  a->crc = ref_alloc (a->nr_crcs * sizeof a->crc[0]);
  if (s->crc)
    memcpy (a->crc, a->t->job.crc, a->nr_crcs * sizeof a->crc[0]);
}

/* As if nothing had been coded yet. */
static void
answer_forget (struct answer *a)
{
  a->t->nr_done = 0;
  for (size_t j = 0; j < a->t->nr_out; j++)
    memset (a->t->out[j], 0x55, a->t->job.cell_len);
  if (a->t->job.crc)
    memset (a->t->job.crc, 0xee, a->nr_crcs * sizeof a->crc[0]);
}

static void
answer_check (const struct answer *a)
{
  assert_memory_equal (a->t->mem, a->mem, a->t->mem_len);
  if (a->t->job.crc)
    assert_memory_equal (a->t->job.crc, a->crc,
                         a->nr_crcs * sizeof a->crc[0]);
}

static void
answer_free (struct answer *a)
{
  ref_job_free (a->t);
  matrix_free (a->matrix);
  free (a->mem);
  free (a->crc);
}

static const struct shape shapes[] = {
  { 4, 10, 1, 65536, false, 0, 0 },
  { 4, 10, 1, 65536, true, 0, 0 },
  { 2, 4, 3, 4096, false, 0, 0 },
  { 2, 4, 3, 4096, true, 0, 0 },
  { 3, 5, 40, 4096, true, 0, 0 },
  { 1, 3, 5, 192, false, 0, 0 },
  { 1, 13, 2, 16384, true, 0, 0 },
  { 4, 2, 2, 12288, true, 0, 0 },
  { 0, 3, 4, 8192, true, 0, 0 },
  { 4, 6, 2, 16384, false, 8, 512 },
  { 4, 6, 2, 16384, true, 8, 512 },
  { 3, 4, 1, 16384, true, 4, 1024 },
  { 2, 3, 30, 4096, false, 4, 1024 },
  { 2, 4, 2, 3136, false, 7, 8 },       /* blocks of 56, in 448 */
  { 2, 4, 2, 5 * 64 * 9, false, 5, 64 },
  { 2, 4, 1, 7 * 4096 * 3, true, 7, 64 },
};

/* ---- cuts --------------------------------------------------------------- */

struct cut {
  struct coder *coder[2];
  unsigned nr_parts;
};

static void
cut_part_done (struct coder_job *job, int error)
{
  struct auto_part *p = (struct auto_part *) job;

  ((struct cut *) p->task->owner)->nr_parts++;
  auto_part_done (p, error);
}

/* In two, or also in three. */
static unsigned
cut_job (struct cut *cut, struct auto_task *t, size_t first, size_t second)
{
  const size_t end[] = { first, second, t->units.nr };
  size_t begin = 0;
  unsigned nr = 0;

  for (unsigned i = 0; i < ARRAY_LEN (end); begin = end[i++]) {
    struct auto_part *p;

    if (begin >= end[i])
      continue;
    p = auto_part_new (t, begin, end[i] - begin);
    assert_non_null (p);
    p->job.done = cut_part_done;
    coder_submit (cut->coder[i % 2], &p->job);
    nr++;
  }
  auto_task_release (t);
  return nr;
}

/* Every way to cut every shape. */
static void
test_cuts (void **state)
{
  struct ref_random rnd = { seed };
  struct cut cut = { .coder = { coder_isal_new (0),
                                coder_gf_complete_new (0) } };
  struct answer a;
  struct auto_units u;
  struct auto_task *t;

  for (unsigned n = 0; n < ARRAY_LEN (shapes); n++) {
    answer_make (&a, &rnd, &shapes[n], cut.coder[FAR]);
    auto_units (&a.t->job, &u);
    assert_true (u.nr >= a.t->job.nr_rects);
    if (u.len > 0)
      assert_int_equal (u.nr * u.len, a.t->job.cell_len);
    for (size_t far = 0; far <= u.nr; far++) {
      const size_t second = far + ref_below (&rnd, u.nr - far + 1);
      unsigned nr;

      answer_forget (&a);
      cut.nr_parts = 0;
      t = auto_task_new (&a.t->job, &u);
      assert_non_null (t);
      t->owner = &cut;
      nr = cut_job (&cut, t, far, second);
      assert_int_equal (ref_job_wait (a.t), 1);
      assert_int_equal (cut.nr_parts, nr);
      answer_check (&a);
    }
    answer_free (&a);
  }
  coder_free (cut.coder[NEAR]);
  coder_free (cut.coder[FAR]);
}

/* What can be cut is, and finely. */
static void
test_units (void **state)
{
  static const struct {
    struct shape s;
    size_t nr, len;
  } want[] = {
    { { 4, 10, 1, 65536, true, 0, 0 }, 16, 4096 },
    { { 4, 10, 1, 65536, false, 0, 0 }, 16, 4096 },
    { { 4, 10, 16, 65536, true, 0, 0 }, 16, 0 },
    { { 4, 10, 15, 65536, true, 0, 0 }, 16, 4096 },
    { { 4, 10, 24, 1 << 17, true, 0, 0 }, 24, 0 },
    { { 4, 10, 1, 4096, true, 0, 0 }, 1, 0 },
    { { 4, 10, 1, 192, false, 0, 0 }, 3, 64 },
    { { 4, 10, 1, 65536, true, 8, 512 }, 16, 4096 },
    { { 4, 10, 1, 7 * 4096 * 3, true, 7, 64 }, 3, 7 * 4096 },
    { { 4, 10, 1, 3136, false, 7, 8 }, 7, 448 },
    { { 4, 10, 1, 5 * 64 * 4, false, 5, 64 }, 1, 0 },
  };
  struct ref_random rnd = { seed };
  struct coder *c = coder_gf_complete_new (0);

  for (unsigned n = 0; n < ARRAY_LEN (want); n++) {
    struct answer a;
    struct auto_units u;

    answer_make (&a, &rnd, &want[n].s, c);
    auto_units (&a.t->job, &u);
    assert_int_equal (u.nr, want[n].nr);
    assert_int_equal (u.len, want[n].len);
    answer_free (&a);
  }
  coder_free (c);
}

/* ---- the whole coder ---------------------------------------------------- */

enum { k = 10, m = 4, cell_len = 65536 };

static void *arena;
static const size_t arena_len = 40 * (k + m) * cell_len;

static struct coder *
start_auto (struct device **device, unsigned fail_each)
{
  uint8_t coef[m * k];
  struct matrix *a;
  struct coder *c;

  *device = device_new (coder_gf_complete_new (0));
  (*device)->fail_each = fail_each;
  matrix_rs_parity (k, m, coef);
  a = matrix_new (m, k, coef);
  c = coder_auto_new (coder_isal_new (2), &(*device)->coder, a, cell_len);
  assert_non_null (c);
  matrix_free (a);
  assert_int_equal (coder_start (c, arena, arena_len), 0);
  return c;
}

enum { nr_submitters = 4, nr_each = 24 };

struct submitter {
  pthread_t thread;
  struct coder *coder;
  struct answer a[nr_each];
};

static void *
submit_all (void *sv)
{
  struct submitter *s = sv;

  for (unsigned i = 0; i < nr_each; i++)
    coder_submit (s->coder, &s->a[i].t->job);
  return NULL;
}

/* Many jobs of all shapes and sizes from many threads, again and again. */
static void
many_jobs (struct coder *c, struct ref_random *rnd)
{
  struct coder *reference = coder_gf_complete_new (0);
  struct submitter s[nr_submitters];

  for (unsigned n = 0; n < nr_submitters; n++) {
    s[n].coder = c;
    for (unsigned i = 0; i < nr_each; i++) {
      struct shape shape = shapes[ref_below (rnd, ARRAY_LEN (shapes))];

      shape.nr_rects *= 1 + ref_below (rnd, 4);
      answer_make (&s[n].a[i], rnd, &shape, reference);
    }
  }
  for (unsigned again = 0; again < 4; again++) {
    for (unsigned n = 0; n < nr_submitters; n++)
      for (unsigned i = 0; i < nr_each; i++)
        answer_forget (&s[n].a[i]);
    for (unsigned n = 0; n < nr_submitters; n++)
      assert_int_equal (pthread_create (&s[n].thread, NULL, submit_all,
                                        &s[n]), 0);
    for (unsigned n = 0; n < nr_submitters; n++) {
      pthread_join (s[n].thread, NULL);
      for (unsigned i = 0; i < nr_each; i++) {
        assert_int_equal (ref_job_wait (s[n].a[i].t), 1);
        answer_check (&s[n].a[i]);
      }
    }
  }
  for (unsigned n = 0; n < nr_submitters; n++)
    for (unsigned i = 0; i < nr_each; i++)
      answer_free (&s[n].a[i]);
  coder_free (reference);
}

static void
test_many_jobs (void **state)
{
  static const unsigned fail_each[] = { 0, 3, 1 };
  struct ref_random rnd = { seed };

  for (unsigned n = 0; n < ARRAY_LEN (fail_each); n++) {
    struct device *d;
    struct coder *c = start_auto (&d, fail_each[n]);
    struct coder_auto_measured f;

    /* A job that fails is no measure. */
    assert_int_equal (coder_auto_measured (c, &f), fail_each[n] == 0);
    many_jobs (c, &rnd);
    coder_free (c);
  }
}

static void
test_measured (void **state)
{
  struct device *d;
  struct coder *c = start_auto (&d, 0);
  struct coder_auto_measured f;
  struct coder *other = coder_isal_new (0);

  assert_true (coder_auto_measured (c, &f));
  assert_int_equal (f.rows, m);
  assert_int_equal (f.cols, k);
  assert_true (f.nr_points >= 2);
  assert_true (f.near_rate > 0 && f.far_rate > 0);
  assert_true (f.near_shared_rate <= f.near_rate);
  assert_true (f.far_shared_rate <= f.far_rate);
  for (unsigned i = 0; i < f.nr_points; i++)
    assert_true (f.point[i].near > 0 && f.point[i].far > 0);
  assert_false (coder_auto_measured (other, &f));
  coder_free (other);
  coder_free (c);
}

/* Each engine under its own name. */
static void
test_shares (void **state)
{
  struct ref_random rnd = { seed };
  struct coder_share before[CODER_MAX_SHARES], after[CODER_MAX_SHARES];
  struct device *d;
  struct coder *c = start_auto (&d, 0);
  struct coder *reference = coder_gf_complete_new (0);
  const struct shape shape = { m, k, 2, cell_len, false, 0, 0 };
  uint64_t bytes = 0;
  struct answer a;

  assert_string_equal (c->ops->name, "auto");
  assert_int_equal (coder_shares (c, before), 2);
  assert_string_equal (before[0].name, "isal");
  assert_string_equal (before[1].name, "gf-complete");
  answer_make (&a, &rnd, &shape, reference);
  for (unsigned n = 0; n < 10; n++) {
    answer_forget (&a);
    ref_job_run (c, a.t);
    answer_check (&a);
  }
  assert_int_equal (coder_shares (c, after), 2);
  for (unsigned i = 0; i < 2; i++) {
    bytes += after[i].bytes - before[i].bytes;
    assert_string_equal (after[i].failed, "");
  }
  assert_int_equal (bytes, 10 * 2 * k * cell_len);
  answer_free (&a);
  coder_free (reference);
  coder_free (c);
}

/* Two of a name are one, unless one has failed. */
static void
test_same_name (void **state)
{
  struct ref_random rnd = { seed };
  struct coder_share share[CODER_MAX_SHARES];
  struct device *d = device_new (coder_isal_new (0));
  struct coder *near = coder_isal_new (0);
  struct coder *c = coder_auto_new (near, &d->coder, NULL, 0);
  const struct shape shape = { 2, 3, 1, 4096, false, 0, 0 };
  struct answer a;

  assert_non_null (c);
  answer_make (&a, &rnd, &shape, near);
  answer_forget (&a);
  ref_job_run (d->inner, a.t);
  assert_int_equal (coder_shares (c, share), 1);
  assert_int_equal (share[0].nr_jobs, 2);
  assert_int_equal (share[0].bytes, 2 * 3 * 4096);
  d->starts = false;
  assert_int_equal (coder_shares (c, share), 2);
  answer_free (&a);
  coder_free (c);
}

/* ---- what does not work -------------------------------------------------- */

static char message[256];

static void
keep_message (enum log_level level, const char *fmt, va_list args)
{
  if (level != LOG_LEVEL_DEBUG)
    vsnprintf (message, sizeof message, fmt, args);
}

/* Without far, near does all. */
static void
test_far_does_not_start (void **state)
{
  struct ref_random rnd = { seed };
  struct device *d = device_new (coder_gf_complete_new (0));
  struct coder *reference = coder_gf_complete_new (0);
  struct coder_share share[CODER_MAX_SHARES];
  struct coder_auto_measured f;
  struct coder *c;
  struct answer a;

  d->starts = false;
  c = coder_auto_new (coder_isal_new (0), &d->coder, NULL, 0);
  assert_non_null (c);
  answer_make (&a, &rnd, &shapes[0], reference);

  /* Not started at all yet. */
  answer_forget (&a);
  ref_job_run (c, a.t);
  answer_check (&a);

  log_set_sink (keep_message);
  assert_int_equal (coder_start (c, arena, arena_len), 0);
  log_set_sink (NULL);
  assert_non_null (strstr (message, "device"));
  assert_false (coder_auto_measured (c, &f));
  answer_forget (&a);
  ref_job_run (c, a.t);
  answer_check (&a);
  assert_int_equal (coder_shares (c, share), 2);
  assert_int_equal (share[0].nr_jobs, 2);
  assert_int_equal (share[1].nr_jobs, 0);
  assert_string_equal (share[1].failed, "it did not start");

  answer_free (&a);
  coder_free (reference);
  coder_free (c);
}

/* What both fail fails, once. */
static void
test_both_fail (void **state)
{
  struct ref_random rnd = { seed };
  struct device *near = device_new (coder_isal_new (0));
  struct device *far = device_new (coder_gf_complete_new (0));
  struct coder *reference = coder_gf_complete_new (0);
  struct coder *c = coder_auto_new (&near->coder, &far->coder, NULL, 0);

  near->fail_each = far->fail_each = 1;
  assert_non_null (c);
  assert_int_equal (coder_start (c, arena, arena_len), 0);
  for (unsigned n = 0; n < 20; n++) {
    struct shape s = { m, k, n, cell_len, n % 2, 0, 0 };
    struct answer a;

    s.nr_rects = 1 + n;
    answer_make (&a, &rnd, &s, reference);
    answer_forget (&a);
    coder_submit (c, &a.t->job);
    assert_int_equal (ref_job_wait (a.t), 1000);
    answer_free (&a);
  }
  coder_free (reference);
  coder_free (c);
}

/* ---- far's thread is not kept -------------------------------------------- */

static struct {
  pthread_mutex_t lock;
  struct coder *coder;
  struct device *far;
  struct coder near;
  unsigned left;                /* lock: jobs to submit */
  unsigned running;             /* lock */
  unsigned nr_near;             /* lock: jobs near */
  unsigned nr_kept;             /* lock: of them in far's thread */
} chain = { .lock = PTHREAD_MUTEX_INITIALIZER };

static int
chain_start (struct coder *c, void *start_arena, size_t start_len)
{
  return 0;
}

static void
chain_submit (struct coder *c, struct coder_job *job)
{
  pthread_mutex_lock (&chain.lock);
  chain.nr_near++;
  chain.nr_kept += !job->away &&
    pthread_equal (pthread_self (), chain.far->thread);
  pthread_mutex_unlock (&chain.lock);
  usleep (500);
  job->done (job, 0);
}

static unsigned
chain_shares (struct coder *c, struct coder_share *share)
{
  return 0;
}

static void
chain_free (struct coder *c)
{
}

static const struct coder_ops chain_ops = {
  .name = "chain", .start = chain_start, .submit = chain_submit,
  .shares = chain_shares, .free = chain_free,
};

/* Each submits three more, as an array does with what waited for it. */
static void
link_done (struct coder_job *job, int error)
{
  unsigned nr = 0;

  pthread_mutex_lock (&chain.lock);
  while (nr < 3 && chain.left > 0) {
    chain.left--;
    chain.running++;
    nr++;
  }
  pthread_mutex_unlock (&chain.lock);
  for (unsigned i = 0; i < nr; i++) {
    struct coder_job *next = malloc (sizeof *next);

    if (next == NULL)
      abort ();
    *next = *job;
    coder_submit (chain.coder, next);
  }
  free (job);
  pthread_mutex_lock (&chain.lock);
  chain.running--;
  pthread_mutex_unlock (&chain.lock);
}

static void
test_far_is_not_kept (void **state)
{
  struct ref_random rnd = { seed };
  struct coder *reference = coder_gf_complete_new (0);
  const struct shape s = { m, k, 4, cell_len, false, 0, 0 };
  struct answer a;
  struct coder_job *first = malloc (sizeof *first);
  bool busy;

  assert_non_null (first);
  answer_make (&a, &rnd, &s, reference);
  chain.near.ops = &chain_ops;
  chain.far = device_new (coder_isal_new (0));
  chain.left = 300;
  chain.running = 1;
  chain.coder = coder_auto_new (&chain.near, &chain.far->coder, NULL, 0);
  assert_non_null (chain.coder);
  assert_int_equal (coder_start (chain.coder, NULL, 0), 0);
  /* All write the same to the same cells, one after the other. */
  *first = a.t->job;
  first->done = link_done;
  coder_submit (chain.coder, first);
  do {
    sched_yield ();
    pthread_mutex_lock (&chain.lock);
    busy = chain.running > 0;
    pthread_mutex_unlock (&chain.lock);
  } while (busy);
  coder_free (chain.coder);
  assert_true (chain.nr_near > 0);
  assert_int_equal (chain.nr_kept, 0);
  answer_free (&a);
  coder_free (reference);
}

static int
set_up (void **state)
{
  arena = ref_alloc (arena_len);
  return 0;
}

static int
tear_down (void **state)
{
  free (arena);
  return 0;
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_units),
    cmocka_unit_test (test_cuts),
    cmocka_unit_test (test_measured),
    cmocka_unit_test (test_shares),
    cmocka_unit_test (test_same_name),
    cmocka_unit_test (test_many_jobs),
    cmocka_unit_test (test_far_does_not_start),
    cmocka_unit_test (test_both_fail),
    cmocka_unit_test (test_far_is_not_kept),
  };

  seed = ref_seed ();
  return cmocka_run_group_tests (tests, set_up, tear_down);
}
