/* gpuraid: who brings a large job to coder auto does some of it, where far
 * is of no use; and for no longer than that takes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gf/coder-auto.h"
#include "tests/coder-device.h"
#include "tests/gf-reference.h"

enum {
  nr_threads = 3, nr_jobs = 60, most_jobs = 3000, k = 10, nr_rects = 32,
  cell_len = 32768,
};

/* ---- near, which sees what it is given ---------------------------------- */

static struct {
  struct coder coder;           /* first */
  struct coder *inner;
  unsigned wanted;              /* so many of these are enough */
  /* Parts of jobs; atomic. */
  unsigned nr_here;             /* done by who submits them ... */
  unsigned nr_elsewhere;        /* ... by a thread that brings no job */
  unsigned nr_late;             /* ... by one whose job is done */
} near;

/* This thread brings a job, which is done or not; else NULL. */
static __thread const bool *own_done;

static int
near_start (struct coder *c, void *arena, size_t arena_len)
{
  return coder_start (near.inner, arena, arena_len);
}

static void
near_submit (struct coder *c, struct coder_job *job)
{
  if (!job->away && job->nr_rects < nr_rects) {
    __atomic_add_fetch (&near.nr_here, 1, __ATOMIC_RELAXED);
    if (own_done == NULL)
      __atomic_add_fetch (&near.nr_elsewhere, 1, __ATOMIC_RELAXED);
    else if (__atomic_load_n (own_done, __ATOMIC_ACQUIRE))
      __atomic_add_fetch (&near.nr_late, 1, __ATOMIC_RELAXED);
  }
  coder_submit (near.inner, job);
}

static unsigned
near_shares (struct coder *c, struct coder_share *share)
{
  return coder_shares (near.inner, share);
}

static void
near_free (struct coder *c)
{
  coder_free (near.inner);
}

static const struct coder_ops near_ops = {
  .name = "near", .start = near_start, .submit = near_submit,
  .shares = near_shares, .free = near_free,
};

/* ---- those who bring jobs ------------------------------------------------ */

struct client {
  struct coder_job job;         /* first */
  pthread_t thread;
  struct coder *coder;
  const uint8_t *in[k * nr_rects];
  uint8_t *out[nr_rects];
  uint8_t *cells;
  bool is_done;                 /* atomic */
};

static void
client_done (struct coder_job *job, int error)
{
  struct client *cl = (struct client *) job;

  __atomic_store_n (&cl->is_done, true, __ATOMIC_RELEASE);
}

static bool
is_enough (unsigned nr)
{
  return nr >= nr_jobs &&
    __atomic_load_n (&near.nr_here, __ATOMIC_RELAXED) >= near.wanted;
}

static void *
client_run (void *cv)
{
  struct client *cl = cv;

  own_done = &cl->is_done;
  for (unsigned n = 0; n < most_jobs && !is_enough (n); n++) {
    __atomic_store_n (&cl->is_done, false, __ATOMIC_RELAXED);
    coder_submit (cl->coder, &cl->job);
    while (!__atomic_load_n (&cl->is_done, __ATOMIC_ACQUIRE))
      sched_yield ();
  }
  return NULL;
}

static void
client_init (struct client *cl, struct coder *c, const struct matrix *a)
{
  uint8_t *p = cl->cells = ref_alloc ((k + 1) * nr_rects * cell_len);

  for (unsigned r = 0; r < nr_rects; r++) {
    for (unsigned i = 0; i < k; i++, p += cell_len)
      cl->in[r * k + i] = p;
    cl->out[r] = p;
    p += cell_len;
  }
  cl->coder = c;
  cl->job = (struct coder_job) {
    .matrix = a, .cell_len = cell_len, .nr_rects = nr_rects, .in = cl->in,
    .out = cl->out, .done = client_done,
  };
}

/* Several that bring large jobs again and again; away: that have no time. */
static void
bring (bool away, unsigned wanted)
{
  static const uint8_t ones[k] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };
  struct device *far = device_new (coder_isal_new (0));
  struct matrix *a = matrix_new (1, k, ones);
  struct client *client = ref_alloc (nr_threads * sizeof *client);
  struct coder *c;

  memset (&near, 0, sizeof near);
  near.coder.ops = &near_ops;
  near.wanted = wanted;
  near.inner = coder_isal_new (1);
  far->fail_each = 1;
  c = coder_auto_new (&near.coder, 0, &far->coder, NULL, 0);
  assert_non_null (a);
  assert_non_null (c);
  assert_int_equal (coder_start (c, NULL, 0), 0);
  for (unsigned i = 0; i < nr_threads; i++) {
    client_init (&client[i], c, a);
    client[i].job.away = away;
    assert_int_equal (pthread_create (&client[i].thread, NULL, client_run,
                                      &client[i]), 0);
  }
  for (unsigned i = 0; i < nr_threads; i++)
    pthread_join (client[i].thread, NULL);
  coder_free (c);
  for (unsigned i = 0; i < nr_threads; i++)
    free (client[i].cells);
  free (client);
  matrix_free (a);
  print_message ("%u here, %u of them elsewhere, %u late\n", near.nr_here,
                 near.nr_elsewhere, near.nr_late);
}

static void
test_helps (void **state)
{
  bring (false, 30);
  assert_true (near.nr_here >= near.wanted);
  assert_int_equal (near.nr_elsewhere, 0);
  /* It may be kept from its processor just after it has taken one. */
  assert_true (near.nr_late <= 2);
}

static void
test_has_no_time (void **state)
{
  bring (true, 0);
  assert_int_equal (near.nr_here, 0);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_helps),
    cmocka_unit_test (test_has_no_time),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
