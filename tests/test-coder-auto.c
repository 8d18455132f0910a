/* gpuraid: coder auto with real coders and threads: nothing is lost, done
 * twice or wrong, whoever does it and whoever fails.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

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
#include "gf/coder-auto.h"
#include "tests/coder-device.h"
#include "tests/coder-stub.h"
#include "tests/gf-answer.h"

static uint64_t seed;

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
  c = coder_auto_new (coder_isal_new (2), 0, &(*device)->coder, a, cell_len);
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
      struct shape shape = shapes[ref_below (rnd, NR_SHAPES)];

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

/* ---- slices ------------------------------------------------------------- */

/* Without measures, so that these are large jobs on any machine. */
static struct coder *
start_unmeasured (unsigned fail_each, int nr_workers)
{
  struct device *d = device_new (coder_gf_complete_new (0));
  struct coder *c = coder_auto_new (coder_isal_new (nr_workers), 0, &d->coder,
                                    NULL, 0);

  d->fail_each = fail_each;
  assert_non_null (c);
  assert_int_equal (coder_start (c, NULL, 0), 0);
  return c;
}

static uint64_t
jobs_of_all (struct coder *c)
{
  struct coder_share share[CODER_MAX_SHARES];
  const unsigned nr = coder_shares (c, share);
  uint64_t nr_jobs = 0;

  for (unsigned i = 0; i < nr; i++)
    nr_jobs += share[i].nr_jobs;
  return nr_jobs;
}

enum { nr_large = 4 };

struct large {
  pthread_t thread;
  struct coder *coder;
  struct answer a;
};

static void *
submit_one (void *lv)
{
  struct large *l = lv;

  coder_submit (l->coder, &l->a.t->job);
  return NULL;
}

static void
all_at_once (struct coder *c, struct large *l)
{
  for (unsigned i = 0; i < nr_large; i++)
    answer_forget (&l[i].a);
  for (unsigned i = 0; i < nr_large; i++) {
    l[i].coder = c;
    assert_int_equal (pthread_create (&l[i].thread, NULL, submit_one, &l[i]),
                      0);
  }
  for (unsigned i = 0; i < nr_large; i++) {
    pthread_join (l[i].thread, NULL);
    assert_int_equal (ref_job_wait (l[i].a.t), 1);
    answer_check (&l[i].a);
  }
}

/* Again and again, some of them in slices: a job that is cut has two parts.
 * Not all, where one side alone is tried.
 */
static void
large_jobs (struct coder *c, struct large *l)
{
  unsigned nr = 0, nr_sliced = 0;

  while (nr < 5 || (nr_sliced < 3 && nr < 50)) {
    const uint64_t before = jobs_of_all (c);

    all_at_once (c, l);
    nr++;
    nr_sliced += jobs_of_all (c) - before > nr_large * 2;
  }
  assert_true (nr_sliced >= 3);
}

/* Of rects, and of bands with CRCs; with workers and without. */
static void
test_slices (void **state)
{
  static const struct shape shape[] = {
    { 1, 10, 32, 32768, false, 0, 0 },
    { 1, 10, 8, 131072, true, 0, 0 },
  };
  static const unsigned fail_each[] = { 0, 3, 1 };
  struct ref_random rnd = { seed };
  struct coder *reference = coder_gf_complete_new (0);
  struct large l[nr_large];

  for (unsigned i = 0; i < nr_large; i++)
    answer_make (&l[i].a, &rnd, &shape[i % ARRAY_LEN (shape)], reference);
  for (unsigned n = 0; n < ARRAY_LEN (fail_each) * 2; n++) {
    struct coder *c = start_unmeasured (fail_each[n / 2], n % 2 ? 2 : 0);

    large_jobs (c, l);
    coder_free (c);
  }
  for (unsigned i = 0; i < nr_large; i++)
    answer_free (&l[i].a);
  coder_free (reference);
}

/* ---- what it tells ------------------------------------------------------ */

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
  struct coder *c = coder_auto_new (near, 0, &d->coder, NULL, 0);
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

static const struct coder_ops chain_ops = {
  .name = "chain", .start = coder_stub_start, .submit = chain_submit,
  .shares = coder_stub_shares, .free = coder_stub_free,
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
  chain.coder = coder_auto_new (&chain.near, 0, &chain.far->coder, NULL, 0);
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
    cmocka_unit_test (test_measured),
    cmocka_unit_test (test_shares),
    cmocka_unit_test (test_same_name),
    cmocka_unit_test (test_many_jobs),
    cmocka_unit_test (test_slices),
    cmocka_unit_test (test_far_is_not_kept),
  };

  seed = ref_seed ();
  return cmocka_run_group_tests (tests, set_up, tear_down);
}
