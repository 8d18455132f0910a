/* gpuraid: the array lock, and the work done when it is released.
 *
 * One mutex, the array lock, protects all state of the array.  Only decisions
 * are made under it: no copy of payload, no CRC of payload, no system call.
 * The thread that held it carries out the decisions after releasing it:
 *
 *   transfers   I/O on members; neighbouring ones become one vectored I/O
 *   jobs        for the coder
 *   calls       anything else that must not happen under the array lock
 *   wakes       requests whose client thread can continue
 *
 * Messages (common/log.h) are kept until then too: writing to a pipe with no
 * reader would block under the array lock.
 *
 * A thread with news (a finished I/O or job) posts it.  If the array lock is
 * free it takes it and runs the engine until no news is left.  If not, the
 * holder runs it: it checks for news again after releasing the lock.
 *
 * Nor does a client's thread wait for the array lock: its request is news then,
 * and the holder decides for it.  So a lock that is held for a microsecond puts
 * no thread to sleep that has other work, and what was decided last is still in
 * the holder's cache.
 *
 * While the array is busy, the engine thread (array/engine/thread.h) takes the
 * lock for all of them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_ENGINE_H
#define GPURAID_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>

#include "common/bits.h"
#include "common/list.h"
#include "gf/coder.h"
#include "member/loop.h"

struct array;
struct array_lock_use;
struct cell;
struct seat;

/* An event.  run is called once with the array lock held. */
struct news {
  struct news *next;
  void (*run) (struct array *a, struct news *n);
};

/* A retry, to be run under the array lock when its list is woken. */
struct waiter {
  struct list link;
  void (*run) (struct array *a, struct waiter *w);
};

/* A call to make without the array lock; run owns it. */
struct call {
  struct call *next;
  void (*run) (struct call *c);
};

/* Memory to be freed without the array lock: its own first bytes. */
struct garbage {
  struct garbage *next;
};

/* Decided under the lock, to be carried out without it.  It has links into
 * itself: deferred_take moves it.
 */
struct deferred {
  struct list xfers;
  size_t nr_xfers;
  struct coder_job *jobs, **last_job;
  struct call *calls, **last_call;
  struct call *wakes, **last_wake;      /* before all else */
  struct garbage *garbage, **last_garbage;
};

/* Of the engine thread, array/engine/thread.h. */
enum thread_state {
  THREAD_NONE,                  /* there is no such thread */
  THREAD_ASLEEP,
  THREAD_CARRIES,               /* awake; others decide */
  THREAD_DECIDES,               /* others rely on it */
};

struct engine_thread {
  /* Any thread reads these. */
  _Alignas (CACHE_LINE) _Atomic enum thread_state state;
  atomic_bool busy;             /* operations are under way */

  _Alignas (CACHE_LINE) atomic_bool has_decided;
  pthread_mutex_t lock;
  /* What it has decided, until another thread takes it.  Nothing is left in it
   * outside THREAD_DECIDES.
   */
  struct deferred decided;
  bool ends;
  pthread_cond_t woken;         /* or it ends */

  bool runs;                    /* there is a thread to join */
  pthread_t thread;
};

/* Functions that the engine calls. */
struct engine_hooks {
  /* With the lock: start whatever can be started; called after each run of
   * news and waiters.
   */
  void (*turn) (struct array *a);
  /* With the lock: called before it is released. */
  void (*last) (struct array *a);
  /* With the lock: the array has grown. */
  void (*grown) (struct array *a);
  /* Likewise: it has more slots, or fewer. */
  void (*reshaped) (struct array *a);
  /* Without it: submit these transfers. */
  void (*carry) (struct array *a, struct list *xfers, size_t nr);
};

struct engine {
  const struct engine_hooks *hooks;

  /* Any thread writes these, and each of them reads what is around. */
  _Alignas (CACHE_LINE) pthread_mutex_t lock;   /* the array lock */
  _Atomic (struct news *) news; /* newest first */

  /* With the lock held. */
  _Alignas (CACHE_LINE) struct list ready;      /* waiters to be run */
  uint64_t now;                 /* engine_now; 0: not asked yet */
  uint64_t nr_holds;            /* of the array lock */
  uint64_t held_since;          /* ns; 0: this one is not measured */
  uint64_t held_ns;             /* of those that were */
  struct deferred deferred;

  struct engine_thread thread;
};

extern int engine_init (struct engine *e, const struct engine_hooks *hooks);
extern void engine_destroy (struct engine *e);

/* Take the array lock; release it after all news is run, and carry out the
 * decisions.
 */
extern void engine_lock (struct array *a);
extern void engine_unlock (struct array *a);

/* False: another thread has it, or decides. */
extern bool engine_try_lock (struct array *a);

/* A client's thread, which could not have the lock: as engine_post.  What n is
 * part of may be gone when it returns.
 */
extern void engine_ask (struct array *a, struct news *n);

/* Any thread, without the array lock.  lazily: this thread will post or kick
 * again at once, and the engine may see this news only then.
 */
extern void engine_post (struct array *a, struct news *n);
extern void engine_post_lazily (struct array *a, struct news *n);
extern void engine_kick (struct array *a);

/* With the array lock held: loop_now, read once for all that is decided in a
 * turn.  So it may be some microseconds old, and older than what loop_now gave
 * meanwhile: do not subtract one from the other.
 */
extern uint64_t engine_now (const struct array *a);

/* With the array lock held: how it was used so far. */
extern void engine_lock_use (const struct array *a, struct array_lock_use *u);

/* With the array lock held: defer a job or a call. */
extern void engine_job (struct array *a, struct coder_job *job);
extern void engine_call (struct array *a, struct call *c);
extern void engine_wake (struct array *a, struct call *c);
/* Likewise free this, which is from malloc, and no shorter than a pointer. */
extern void engine_free (struct array *a, void *p);

/* With the array lock held: run all waiters of a list soon, in order. */
extern void engine_run_waiters (struct array *a, struct list *waiters);

#endif
