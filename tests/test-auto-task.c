/* gpuraid: a job that is cut gives the same bytes as a whole one, wherever it
 * is cut; and what can be cut is.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/bits.h"
#include "gf/auto-task.h"
#include "tests/gf-answer.h"

static uint64_t seed;

struct cut {
  struct coder *coder[2];
  unsigned nr_parts;
};

static void
cut_part_done (struct coder_job *job, int error)
{
  struct auto_part *p = (struct auto_part *) job;
  struct auto_task *t = p->task;

  ((struct cut *) t->owner)->nr_parts++;
  p->error = error;
  auto_part_done (p);
  auto_part_free (p);
  auto_task_release (t);
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

  for (unsigned n = 0; n < NR_SHAPES; n++) {
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

/* ---- those that are done ------------------------------------------------ */

enum { nr_threads = 3, nr_each = 20000 };

static struct auto_ended ended;

/* Its side is the thread, and its first block the how many-th. */
static void *
put_many (void *sidev)
{
  struct auto_part *parts = sidev;

  for (size_t i = 0; i < nr_each; i++)
    auto_ended_put (&ended, &parts[i]);
  return NULL;
}

/* Each is taken once, and those of a thread in their order. */
static void
test_ended (void **state)
{
  static struct auto_part parts[nr_threads][nr_each];
  size_t next[nr_threads] = { 0 }, nr = 0;
  pthread_t threads[nr_threads];

  for (unsigned i = 0; i < nr_threads; i++) {
    for (size_t n = 0; n < nr_each; n++) {
      parts[i][n].side = i;
      parts[i][n].first_block = n;
    }
    assert_int_equal (pthread_create (&threads[i], NULL, put_many, parts[i]),
                      0);
  }
  while (nr < nr_threads * nr_each)
    for (struct auto_part *p = auto_ended_take (&ended); p; p = p->next) {
      assert_int_equal (p->first_block, next[p->side]++);
      nr++;
    }
  for (unsigned i = 0; i < nr_threads; i++)
    pthread_join (threads[i], NULL);
  assert_null (auto_ended_take (&ended));
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_units),
    cmocka_unit_test (test_cuts),
    cmocka_unit_test (test_ended),
  };

  seed = ref_seed ();
  return cmocka_run_group_tests (tests, NULL, NULL);
}
