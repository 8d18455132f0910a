/* gpuraid: tests: the engine thread.
 *
 * Step by step, and with threads that post and wait.  That no order of steps
 * loses anything: tests/model/engine_thread.py.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <semaphore.h>

#include "array/engine/shared.h"
#include "array/engine/thread.h"
#include "common/threads/memory.h"

static void
nothing (struct array *a)
{
}

static const struct engine_hooks hooks = { .turn = nothing, .last = nothing };

/* Operations are under way, so that the thread is of use. */
static struct array *
array_with_ops (void)
{
  struct array *a = alloc_lines (sizeof *a);

  assert_non_null (a);
  assert_int_equal (engine_init (&a->engine, &hooks), 0);
  engine_lock (a);
  a->nr_ops = 1;
  engine_unlock (a);
  return a;
}

static void
end (struct array *a)
{
  engine_thread_stop (a);
  assert_int_equal (a->engine.thread.state, THREAD_NONE);
  engine_destroy (&a->engine);
  free (a);
}

/* News, and what is decided when it is run: a call. */
struct question {
  struct news news;
  struct call call;
  struct array *a;
  unsigned nr_decided, nr_answers;
  unsigned nr_by_thread;        /* of the first, by the engine thread */
  enum thread_state state;      /* when it was answered */
  struct question *next;        /* then asked, or NULL */
  sem_t answered;
};

static void
answer (struct call *c)
{
  struct question *q = list_item (c, struct question, call);

  q->state = q->a->engine.thread.state;
  q->nr_answers++;
  if (q->next)
    engine_post (q->a, &q->next->news);
  sem_post (&q->answered);
}

static void
decide (struct array *a, struct news *n)
{
  struct question *q = list_item (n, struct question, news);

  q->nr_decided++;
  q->nr_by_thread += a->engine.thread.runs &&
    pthread_equal (pthread_self (), a->engine.thread.thread);
  q->call.run = answer;
  engine_call (a, &q->call);
}

static void
init (struct question *q, struct array *a)
{
  *q = (struct question) { .news.run = decide, .a = a };
  sem_init (&q->answered, 0, 0);
}

/* The client's thread finds the lock taken. */
static void
ask_taken (struct array *a, struct question *q)
{
  engine_lock (a);
  engine_ask (a, &q->news);
  engine_unlock (a);
}

/* As if it ran, for a test that does its steps. */
static void
thread_sleeps (struct array *a)
{
  atomic_store (&a->engine.thread.state, THREAD_ASLEEP);
}

static void
test_woken (void **state)
{
  struct array *a = array_with_ops ();
  struct question q;

  init (&q, a);
  engine_ask (a, &q.news);
  assert_int_equal (q.nr_answers, 1);

  /* There is none. */
  ask_taken (a, &q);
  assert_int_equal (q.nr_answers, 2);
  assert_int_equal (a->engine.thread.state, THREAD_NONE);

  thread_sleeps (a);
  engine_ask (a, &q.news);
  assert_int_equal (q.nr_answers, 3);
  assert_int_equal (a->engine.thread.state, THREAD_ASLEEP);
  ask_taken (a, &q);
  assert_int_equal (a->engine.thread.state, THREAD_DECIDES);
  end (a);

  /* Without operations it is left asleep. */
  a = array_with_ops ();
  engine_lock (a);
  a->nr_ops = 0;
  engine_unlock (a);
  init (&q, a);
  thread_sleeps (a);
  ask_taken (a, &q);
  assert_int_equal (a->engine.thread.state, THREAD_ASLEEP);
  assert_int_equal (q.nr_answers, 1);
  end (a);
}

static void
test_steps (void **state)
{
  struct array *a = array_with_ops ();
  struct question q, r;

  init (&q, a);
  init (&r, a);
  thread_sleeps (a);
  ask_taken (a, &q);
  assert_false (engine_try_lock (a));

  /* It decides for others, and the next of them carries that out. */
  engine_ask (a, &r.news);
  assert_int_equal (r.nr_decided, 0);
  assert_true (engine_thread_step (a));
  assert_int_equal (r.nr_decided, 1);
  assert_int_equal (r.nr_answers, 0);
  engine_ask (a, &q.news);
  assert_int_equal (r.nr_answers, 1);
  assert_int_equal (r.state, THREAD_DECIDES);
  assert_true (engine_thread_step (a));
  assert_int_equal (q.nr_decided, 2);
  engine_post (a, &r.news);
  assert_int_equal (q.nr_answers, 2);

  /* What is left it carries out, and others decide meanwhile; then what its
   * own call has posted.
   */
  assert_true (engine_thread_step (a));
  r.next = &q;
  assert_true (engine_thread_step (a));
  assert_int_equal (r.nr_answers, 2);
  assert_int_equal (r.state, THREAD_CARRIES);
  assert_int_equal (q.nr_answers, 3);
  assert_int_equal (a->engine.thread.state, THREAD_DECIDES);
  assert_false (engine_thread_step (a));

  /* It does not sleep on news. */
  r.next = NULL;
  engine_ask (a, &r.news);
  assert_false (engine_thread_rest (a));
  assert_true (engine_thread_step (a));
  assert_int_equal (r.nr_decided, 3);
  assert_int_equal (r.nr_answers, 2);

  /* The end leaves nothing. */
  engine_ask (a, &q.news);
  assert_int_equal (r.nr_answers, 3);
  assert_true (engine_thread_step (a));
  engine_post_lazily (a, &r.news);
  end (a);
  assert_int_equal (q.nr_answers, 4);
  assert_int_equal (r.nr_answers, 4);
}

static void
test_rest (void **state)
{
  struct array *a = array_with_ops ();
  struct question q;

  init (&q, a);
  thread_sleeps (a);
  ask_taken (a, &q);
  assert_false (engine_thread_step (a));
  assert_true (engine_thread_rest (a));
  assert_int_equal (a->engine.thread.state, THREAD_ASLEEP);
  engine_ask (a, &q.news);
  assert_int_equal (q.nr_answers, 2);
  end (a);
}

#define NR_CLIENTS 6u

static atomic_bool enough;

/* Each answer is waited for; some are by a thread that is not a client's. */
static void *
client (void *p)
{
  struct question *q = p;

  while (!atomic_load (&enough)) {
    if (q->nr_answers % 4 == 3)
      engine_post (q->a, &q->news);
    else
      engine_ask (q->a, &q->news);
    sem_wait (&q->answered);
  }
  return NULL;
}

/* The lock is held for so long that all clients find it taken, until the thread
 * has decided a hundred times.
 */
static void
test_threads (void **state)
{
  struct array *a = array_with_ops ();
  const struct timespec ms = { .tv_nsec = 1000000 };
  struct question q[NR_CLIENTS];
  pthread_t thread[NR_CLIENTS];
  unsigned n;

  assert_int_equal (engine_thread_start (a), 0);
  for (unsigned i = 0; i < NR_CLIENTS; i++) {
    init (&q[i], a);
    assert_int_equal (pthread_create (&thread[i], NULL, client, &q[i]), 0);
  }
  do {
    nanosleep (&ms, NULL);
    engine_lock (a);
    nanosleep (&ms, NULL);
    n = 0;
    for (unsigned i = 0; i < NR_CLIENTS; i++)
      n += q[i].nr_by_thread;
    engine_unlock (a);
  } while (n < 100);
  atomic_store (&enough, true);
  for (unsigned i = 0; i < NR_CLIENTS; i++) {
    pthread_join (thread[i], NULL);
    assert_int_equal (q[i].nr_answers, q[i].nr_decided);
  }
  end (a);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_woken),
    cmocka_unit_test (test_steps),
    cmocka_unit_test (test_rest),
    cmocka_unit_test (test_threads),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
