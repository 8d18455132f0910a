/* gpuraid: a thread with other work does not code: which threads ask for that,
 * and which coders do it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/engine-array.h"
#include "tests/gf-job.h"

static uint64_t seed;

/* ---- a coder on the CPU -------------------------------------------------- */

static struct {
  void (*done) (struct coder_job *, int error);
  pthread_t thread;             /* that the last job was done in */
} last;

static void
remember_thread (struct coder_job *job, int error)
{
  last.thread = pthread_self ();
  last.done (job, error);
}

/* Is a job of this many cells of 64 KiB done in the thread that submits it? */
static bool
is_done_here (struct coder *c, unsigned rows, unsigned cols, bool away)
{
  struct ref_random rnd = { seed };
  uint8_t coef[16 * 16];
  struct ref_job *t;

  ref_fill (&rnd, coef, rows * cols);
  t = ref_job_new (&rnd, rows, cols, coef, 1, 65536, false);
  t->job.away = away;
  last.done = t->job.done;
  t->job.done = remember_thread;
  coder_submit (c, &t->job);
  assert_int_equal (ref_job_wait (t), 1);
  ref_job_free (t);
  return pthread_equal (last.thread, pthread_self ());
}

static void
test_cpu (void **state)
{
  struct coder *c = coder_isal_new (2), *alone = coder_isal_new (0);

  assert_int_equal (coder_start (c, NULL, 0), 0);
  assert_int_equal (coder_start (alone, NULL, 0), 0);
  /* Several times: if there is a choice, the first thread is random. */
  for (unsigned n = 0; n < 20; n++) {
    assert_false (is_done_here (c, 2, 4, true));
    assert_false (is_done_here (c, 1, 2, true));
    assert_false (is_done_here (c, 8, 1, true));
    assert_true (is_done_here (c, 2, 4, false));
    /* Too small to be worth a wake-up. */
    assert_true (is_done_here (c, 4, 1, true));
    assert_true (is_done_here (alone, 2, 4, true));
    assert_true (is_done_here (alone, 4, 16, true));
    /* So large that it is shared. */
    assert_false (is_done_here (c, 4, 16, true));
  }
  coder_free (c);
  coder_free (alone);
}

/* ---- an array ------------------------------------------------------------ */

static struct {
  const struct coder_ops *inner;
  unsigned nr, nr_away;         /* jobs */
  unsigned nr_among;            /* of those not away: with several
                                 * operations under way */
} seen;

static void
see_job (struct coder *c, struct coder_job *job)
{
  const struct sim_coder *sc = (const struct sim_coder *) c;

  seen.nr++;
  seen.nr_away += job->away;
  seen.nr_among += !job->away && sc->sa->a->nr_ops > 1;
  seen.inner->submit (c, job);
}

/* From now on all jobs are seen. */
static void
watch (struct sim_array *sa, struct coder_ops *ops)
{
  seen.inner = sa->coder.coder.ops;
  *ops = *seen.inner;
  ops->submit = see_job;
  sa->coder.coder.ops = ops;
}

static void
forget_seen (void)
{
  seen.nr = seen.nr_away = seen.nr_among = 0;
}

/* The loop's thread decodes the data it has read only if nothing else is in
 * flight; a client's thread codes its own writes.
 */
static void
test_array (void **state)
{
  struct sim_array *sa = start_full (4, 2, CHUNK, 16);
  struct coder_ops ops;

  watch (sa, &ops);
  open_again (sa, ~UINT64_C (3), false);
  forget_seen ();
  check_range (sa, 0, 4 * CHUNK);
  assert_true (seen.nr > 0);
  assert_int_equal (seen.nr_away, 0);
  check_all (sa);
  assert_true (seen.nr_away > 0);
  assert_int_equal (seen.nr_among, 0);

  open_again (sa, ~0, true);
  put (sa, 0, sa->g.size, ARRAY_FUA);
  /* Now that the dirty bits are set, writing begins at once. */
  forget_seen ();
  put (sa, 0, sa->g.size, ARRAY_FUA);
  assert_true (seen.nr_among > 0);
  end_whole (sa);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_cpu),
    cmocka_unit_test (test_array),
  };

  seed = ref_seed ();
  return cmocka_run_group_tests (tests, NULL, free_data);
}
