/* gpuraid: coder auto with real coders and threads: no job is lost, done twice
 * or wrong, whichever coder does it; and in which threads it is done.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/bits.h"
#include "gf/auto/auto.h"
#include "tests/coder-stub.h"
#include "tests/gf/coder-device.h"
#include "tests/gf/gf-answer.h"
#include "tests/sanitized.h"

static uint64_t seed;

enum { k = 10, m = 4, cell_len = 65536 };

static void *arena;
static const size_t arena_len = 40 * (k + m) * cell_len;

static struct coder *
start_auto (unsigned fail_each, unsigned nr_workers, bool is_measured)
{
  struct device *d = device_new (coder_gf_complete_new (0));
  uint8_t coef[m * k];
  struct matrix *a;
  struct coder *c;

  d->fail_each = fail_each;
  matrix_rs_parity (k, m, coef);
  a = matrix_new (m, k, coef);
  c = coder_auto_new (coder_isal_new (nr_workers), nr_workers, &d->coder,
                      is_measured ? a : NULL, cell_len);
  assert_non_null (c);
  matrix_free (a);
  assert_int_equal (coder_start (c, arena, arena_len), 0);
  return c;
}

/* ---- many jobs ---------------------------------------------------------- */

enum { nr_submitters = 4, max_each = 24 };

struct submitter {
  pthread_t thread;
  struct coder *coder;
  unsigned nr;
  struct answer a[max_each];
};

static void *
submit_all (void *sv)
{
  struct submitter *s = sv;

  for (unsigned i = 0; i < s->nr; i++)
    coder_submit (s->coder, &s->a[i].t->job);
  return NULL;
}

static void
submit_and_check (struct submitter *s, struct coder *c)
{
  for (unsigned n = 0; n < nr_submitters; n++) {
    s[n].coder = c;
    for (unsigned i = 0; i < s[n].nr; i++)
      answer_forget (&s[n].a[i]);
  }
  for (unsigned n = 0; n < nr_submitters; n++)
    assert_int_equal (pthread_create (&s[n].thread, NULL, submit_all, &s[n]),
                      0);
  for (unsigned n = 0; n < nr_submitters; n++) {
    pthread_join (s[n].thread, NULL);
    for (unsigned i = 0; i < s[n].nr; i++) {
      assert_int_equal (ref_job_wait (s[n].a[i].t), 1);
      answer_check (&s[n].a[i]);
    }
  }
}

static void
free_answers (struct submitter *s)
{
  for (unsigned n = 0; n < nr_submitters; n++)
    for (unsigned i = 0; i < s[n].nr; i++)
      answer_free (&s[n].a[i]);
}

/* Jobs of all shapes and sizes from many threads, again and again. */
static void
test_many_jobs (void **state)
{
  static const unsigned fail_each[] = { 0, 30, 1 };
  static struct submitter s[nr_submitters];
  struct coder *reference = coder_gf_complete_new (0);
  struct ref_random rnd = { seed };

  for (unsigned n = 0; n < nr_submitters; n++) {
    s[n].nr = max_each;
    for (unsigned i = 0; i < max_each; i++) {
      struct shape shape = shapes[ref_below (&rnd, NR_SHAPES)];

      shape.nr_rects *= 1 + ref_below (&rnd, 4);
      answer_make (&s[n].a[i], &rnd, &shape, reference);
    }
  }
  for (unsigned n = 0; n < 2 * ARRAY_LEN (fail_each); n++) {
    struct coder *c = start_auto (fail_each[n / 2], 2, n % 2);

    for (unsigned again = 0; again < 4; again += CASE_STEP)
      submit_and_check (s, c);
    coder_free (c);
  }
  free_answers (s);
  coder_free (reference);
}

/* Large ones, of odd numbers of rects, with both codes and CRCs: they are
 * divided, with workers and without.  Each engine counts its work under its own
 * name, and failed work counts once.
 */
static void
test_slices (void **state)
{
  static const struct shape shape[nr_submitters] = {
    { 1, 10, 131, 32768, false, 0, 0 },
    { 2, 10, 67, 65536, true, 0, 0 },
    { 4, 6, 101, 16384, false, 8, 512 },
    { 4, 6, 97, 16384, true, 8, 512 },
  };
  static const unsigned fail_each[] = { 0, 3, 1 };
  static struct submitter s[nr_submitters];
  struct coder *reference = coder_gf_complete_new (0);
  struct ref_random rnd = { seed };
  struct coder_share share[CODER_MAX_SHARES];
  uint64_t bytes = 0;

  for (unsigned i = 0; i < nr_submitters; i++) {
    s[i].nr = 1;
    answer_make (&s[i].a[0], &rnd, &shape[i], reference);
    bytes += shape[i].nr_rects * shape[i].cols * shape[i].cell_len;
  }
  for (unsigned n = 0; n < 2 * ARRAY_LEN (fail_each); n++) {
    struct coder *c = start_auto (fail_each[n / 2], n % 2 ? 2 : 0, false);

    submit_and_check (s, c);
    assert_int_equal (coder_shares (c, share), 2);
    assert_string_equal (share[0].name, "isal");
    assert_string_equal (share[1].name, "gf-complete");
    assert_true (share[0].nr_jobs + share[1].nr_jobs > nr_submitters);
    assert_int_equal (share[0].bytes + share[1].bytes, bytes);
    submit_and_check (s, c);
    coder_free (c);
  }
  free_answers (s);
  coder_free (reference);
}

/* ---- in which threads --------------------------------------------------- */

/* The CPU, which only looks. */
static struct {
  pthread_mutex_t lock;
  struct coder *coder;
  struct device *gpu;
  struct coder cpu;
  unsigned left;                /* lock: jobs to submit */
  unsigned running;             /* lock */
  unsigned nr_cpu;              /* lock: jobs of the CPU */
  unsigned nr_kept;             /* lock: of them in the device's thread,
                                 * without away */
  unsigned nr_here;             /* lock: slices without away */
} chain = { .lock = PTHREAD_MUTEX_INITIALIZER };

enum { chain_rects = 80 };

static void
chain_submit (struct coder *c, struct coder_job *job)
{
  pthread_mutex_lock (&chain.lock);
  chain.nr_cpu++;
  chain.nr_kept += !job->away &&
    pthread_equal (pthread_self (), chain.gpu->thread);
  chain.nr_here += !job->away && job->nr_rects > 1;
  pthread_mutex_unlock (&chain.lock);
  usleep (500);
  job->done (job, 0);
}

static const struct coder_ops chain_ops = {
  .name = "chain", .start = coder_stub_start, .submit = chain_submit,
  .shares = coder_stub_shares, .free = coder_stub_free,
};

/* Each submits three more, as an array does with what waited for it, large
 * ones and small ones.
 */
static void
link_done (struct coder_job *job, int error)
{
  unsigned nr = 0, first;

  pthread_mutex_lock (&chain.lock);
  first = chain.left;
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
    assert_false (next->away);
    next->nr_rects = (first - i) % 3 ? chain_rects : 1;
    coder_submit (chain.coder, next);
  }
  free (job);
  pthread_mutex_lock (&chain.lock);
  chain.running--;
  pthread_mutex_unlock (&chain.lock);
}

/* A thread of the device is not delayed, and none that submits a job does
 * slices; the job itself is not changed.
 */
static void
test_away (void **state)
{
  const struct shape s = { m, k, chain_rects, 4096, false, 0, 0 };
  struct ref_random rnd = { seed };
  struct coder *reference = coder_gf_complete_new (0);
  struct coder_job *first = malloc (sizeof *first);
  struct answer a;
  bool busy;

  assert_non_null (first);
  answer_make (&a, &rnd, &s, reference);
  chain.cpu.ops = &chain_ops;
  chain.gpu = device_new (coder_isal_new (0));
  chain.left = 300;
  chain.running = 1;
  chain.coder = coder_auto_new (&chain.cpu, 3, &chain.gpu->coder, NULL, 0);
  assert_non_null (chain.coder);
  assert_int_equal (coder_start (chain.coder, NULL, 0), 0);
  /* All write the same to the same cells, one after the other. */
  *first = a.t->job;
  first->done = link_done;
  coder_submit (chain.coder, first);
  do {
    usleep (1000);
    pthread_mutex_lock (&chain.lock);
    busy = chain.running > 0;
    pthread_mutex_unlock (&chain.lock);
  } while (busy);
  coder_free (chain.coder);
  assert_true (chain.nr_cpu > 50);
  assert_int_equal (chain.nr_kept, 0);
  assert_int_equal (chain.nr_here, 0);
  answer_free (&a);
  coder_free (reference);
}

/* ---- no recursion ------------------------------------------------------- */

/* Coders that are done before submit returns. */
static unsigned depth, most_depth;

static void
deep_submit (struct coder *c, struct coder_job *job)
{
  depth++;
  most_depth = MAX (most_depth, depth);
  job->done (job, 0);
  depth--;
}

static const struct coder_ops deep_ops = {
  .name = "deep", .start = coder_stub_start, .submit = deep_submit,
  .shares = coder_stub_shares, .free = coder_stub_free,
};

struct deep_job {
  struct coder_job job;         /* first */
  struct coder *coder;
  unsigned nr_left;
};

static void
deep_done (struct coder_job *job, int error)
{
  struct deep_job *d = (struct deep_job *) job;

  if (d->nr_left-- > 0)
    coder_submit (d->coder, job);
}

static void
test_no_recursion (void **state)
{
  enum { nr = 2000 };
  static const uint8_t one = 1, *in[nr];
  static uint8_t *out[nr];
  struct coder cpu = { .ops = &deep_ops }, gpu = cpu;
  struct matrix *a = matrix_new (1, 1, &one);
  struct deep_job d = {
    .job = { .matrix = a, .cell_len = 65536, .nr_rects = nr, .in = in,
             .out = out, .done = deep_done },
    .coder = coder_auto_new (&cpu, 3, &gpu, NULL, 0), .nr_left = 1000,
  };

  assert_int_equal (coder_start (d.coder, NULL, 0), 0);
  coder_submit (d.coder, &d.job);
  assert_int_equal (d.nr_left, -1u);
  print_message ("%u deep\n", most_depth);
  assert_true (most_depth <= 2);
  coder_free (d.coder);
  matrix_free (a);
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
    cmocka_unit_test (test_many_jobs),
    cmocka_unit_test (test_slices),
    cmocka_unit_test (test_away),
    cmocka_unit_test (test_no_recursion),
  };

  seed = ref_seed ();
  return cmocka_run_group_tests (tests, set_up, tear_down);
}
