/* gpuraid: tests: run an emulated kernel.
 *
 * A block's threads are started one after another on one stack.  A thread that
 * must wait for others keeps its stack; the next runs on another.  So a kernel
 * without barriers is a plain loop.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fake-cuda/fiber.h"
#include "tests/fake-cuda/scheduler.h"

#define MAX_THREADS 1024

enum state { IDLE, RUNNING, READY, AT_BARRIER, AT_EXCHANGE };

struct task {
  struct fiber fiber;
  enum state state;
  unsigned thread;              /* in its block */
  unsigned line, mask;          /* where it waits, and for which threads */
  uint64_t value;               /* that it brought */
  unsigned sum;                 /* result of a barrier */
  uint64_t *all;                /* for the result of an exchange */
};

struct run {
  struct fiber_context scheduler;
  struct task *tasks[MAX_THREADS];
  unsigned nr_tasks;

  /* Of the launch. */
  const struct grid *grid;
  struct range shared;          /* the module's variables of this thread */
  struct range hits[4];         /* the newest ranges that were hit */
  unsigned next_hit;
  char *why;

  /* Of the block. */
  struct emu_thread self;
  unsigned nr_threads, started, ended;
  bool descending, failed;
  struct task *current;
  struct task *idle[MAX_THREADS], *ready[MAX_THREADS];
  unsigned nr_idle, first_ready, nr_ready;
  struct task *waiting[MAX_THREADS]; /* by thread */
  unsigned at_barrier;
  uint32_t arrived[MAX_THREADS / EMU_WARP]; /* at an exchange, by warp */
};

static _Thread_local struct run *run;

/* ---- what goes wrong */

static void
back_to_scheduler (void)
{
  fiber_switch (&run->current->fiber.context, &run->scheduler);
}

static void __attribute__ ((noreturn, format (printf, 1, 2)))
fail (const char *fmt, ...)
{
  const struct emu_thread *t = &run->self;
  va_list args;
  int n;

  n = snprintf (run->why, SCHEDULER_WHY_LEN,
                "%s: block %u,%u,%u thread %u,%u,%u: ", run->grid->name,
                t->block.x, t->block.y, t->block.z,
                t->thread.x, t->thread.y, t->thread.z);
  va_start (args, fmt);
  vsnprintf (run->why + n, SCHEDULER_WHY_LEN - n, fmt, args);
  va_end (args);
  run->failed = true;
  back_to_scheduler ();
  abort ();                     /* no thread of a failed block continues */
}

static void
runtime_fail (const char *file, unsigned line, const char *what)
{
  fail ("%s:%u: %s", file ? file : "line", line, what);
}

/* ---- memory */

static const struct range *
find_range (uintptr_t a)
{
  size_t lo = 0, hi = run->grid->nr_ranges;

  if (a >= run->shared.lo && a < run->shared.hi)
    return &run->shared;
  while (lo < hi) {
    size_t mid = (lo + hi) / 2;
    const struct range *r = &run->grid->ranges[mid];

    if (a >= r->hi)
      lo = mid + 1;
    else if (a < r->lo)
      hi = mid;
    else
      return r;
  }
  return NULL;
}

static void
runtime_check (const void *p, size_t len, int write)
{
  uintptr_t a = (uintptr_t) p;
  const struct range *r = NULL;

  for (unsigned i = 0; r == NULL && i < 4; i++)
    if (a >= run->hits[i].lo && a + len <= run->hits[i].hi)
      r = &run->hits[i];
  if (r == NULL) {
    r = find_range (a);
    if (r == NULL || a + len > r->hi)
      fail ("%s of %zu bytes at %p, which is not this device's",
            write ? "write" : "read", len, p);
    run->hits[run->next_hit++ % 4] = *r;
  }
  if (len <= 8 && (a & (len - 1)) != 0)
    fail ("%s of %zu bytes at %p: misaligned", write ? "write" : "read",
          len, p);
  run->self.lo = r->lo;
  run->self.hi = r->hi;
}

#define ATOMIC(type)                                                    \
  do {                                                                  \
    type *q = p, x = v, y = c;                                          \
    switch (op) {                                                       \
    case EMU_ADD: return __atomic_fetch_add (q, x, __ATOMIC_SEQ_CST);   \
    case EMU_SUB: return __atomic_fetch_sub (q, x, __ATOMIC_SEQ_CST);   \
    case EMU_AND: return __atomic_fetch_and (q, x, __ATOMIC_SEQ_CST);   \
    case EMU_OR: return __atomic_fetch_or (q, x, __ATOMIC_SEQ_CST);     \
    case EMU_XOR: return __atomic_fetch_xor (q, x, __ATOMIC_SEQ_CST);   \
    case EMU_EXCHANGE:                                                  \
      return __atomic_exchange_n (q, x, __ATOMIC_SEQ_CST);              \
    case EMU_CAS:                                                       \
      (void) __atomic_compare_exchange_n (q, &y, x, 0, __ATOMIC_SEQ_CST, \
                                          __ATOMIC_SEQ_CST);            \
      return y;                                                         \
    }                                                                   \
  } while (0)

static uint64_t
runtime_atomic (enum emu_atomic op, void *p, unsigned len, uint64_t v,
                uint64_t c)
{
  runtime_check (p, len, 1);
  if (len == 4)
    ATOMIC (uint32_t);
  else
    ATOMIC (uint64_t);
  fail ("an unknown atomic operation");
}

/* ---- threads that wait */

static void
set_self (unsigned thread)
{
  struct emu_thread *t = &run->self;
  const struct task *c = run->current;

  t->thread.x = thread % t->block_dim.x;
  t->thread.y = thread / t->block_dim.x % t->block_dim.y;
  t->thread.z = thread / t->block_dim.x / t->block_dim.y;
  t->stack_lo = (uintptr_t) c->fiber.stack;
  t->stack_hi = t->stack_lo + FIBER_STACK_LEN;
}

static void
make_ready (struct task *t)
{
  run->waiting[t->thread] = NULL;
  t->state = READY;
  run->ready[(run->first_ready + run->nr_ready++) % MAX_THREADS] = t;
}

static void
wait_in (enum state state)
{
  run->waiting[run->current->thread] = run->current;
  run->current->state = state;
}

static void
end_barrier (void)
{
  const struct task *me = run->current;
  unsigned sum = 0;

  for (unsigned i = 0; i < run->nr_threads; i++) {
    const struct task *t = run->waiting[i];

    if (t->line != me->line)
      fail ("barrier in line %u, but thread %u waits in line %u", me->line,
            i, t->line);
    sum += t->value;
  }
  for (unsigned i = 0; i < run->nr_threads; i++) {
    run->waiting[i]->sum = sum;
    make_ready (run->waiting[i]);
  }
  run->at_barrier = 0;
}

static unsigned
runtime_barrier (unsigned line, unsigned value)
{
  struct task *me = run->current;

  me->line = line;
  me->value = value;
  wait_in (AT_BARRIER);
  if (++run->at_barrier == run->nr_threads)
    end_barrier ();
  back_to_scheduler ();
  return me->sum;
}

static void
end_exchange (unsigned warp, uint32_t mask)
{
  const struct task *me = run->current;
  uint64_t all[EMU_WARP] = { 0 };

  for (unsigned i = 0; i < EMU_WARP; i++) {
    const struct task *t = mask >> i & 1 ? run->waiting[warp + i] : NULL;

    if (t == NULL)
      continue;
    if (t->mask != mask || t->line != me->line)
      fail ("mask %#x in line %u, but lane %u has mask %#x in line %u",
            mask, me->line, i, t->mask, t->line);
    all[i] = t->value;
  }
  for (unsigned i = 0; i < EMU_WARP; i++)
    if (mask >> i & 1) {
      struct task *t = run->waiting[warp + i];

      memcpy (t->all, all, sizeof all); /* the other's stack */
      make_ready (t);
    }
  run->arrived[warp / EMU_WARP] &= ~mask;
}

static void
runtime_exchange (unsigned line, unsigned mask, uint64_t value,
                  uint64_t *all)
{
  struct task *me = run->current;
  unsigned lane = me->thread % EMU_WARP, warp = me->thread - lane;

  if (!(mask >> lane & 1))
    fail ("line %u: lane %u is not in its own mask %#x", line, lane, mask);
  me->line = line;
  me->mask = mask;
  me->value = value;
  me->all = all;
  wait_in (AT_EXCHANGE);
  run->arrived[warp / EMU_WARP] |= UINT32_C (1) << lane;
  if ((run->arrived[warp / EMU_WARP] & mask) == mask)
    end_exchange (warp, mask);
  back_to_scheduler ();
}

const struct emu_runtime scheduler_runtime = {
  .check = runtime_check, .fail = runtime_fail, .barrier = runtime_barrier,
  .exchange = runtime_exchange, .atomic = runtime_atomic,
};

/* ---- a block */

static void
task_main (void)
{
  for (;;) {
    struct task *me = run->current;

    while (run->started < run->nr_threads) {
      unsigned i = run->started++;

      me->thread = run->descending ? run->nr_threads - 1 - i : i;
      set_self (me->thread);
      run->grid->kernel->call (run->grid->params);
      run->ended++;
      /* Threads that waited and can continue do so first: it saves stacks. */
      if (run->nr_ready > 0)
        break;
    }
    me->state = IDLE;
    run->idle[run->nr_idle++] = me;
    back_to_scheduler ();
  }
}

static struct task *
idle_task (void)
{
  struct task *t;

  if (run->nr_idle > 0)
    return run->idle[--run->nr_idle];
  t = calloc (1, sizeof *t);
  if (t == NULL || fiber_new (&t->fiber, &run->self) == -1) {
    perror ("fake-cuda: no memory for a stack");
    abort ();
  }
  fiber_reset (&t->fiber, task_main);
  run->tasks[run->nr_tasks++] = t;
  return t;
}

/* No thread can continue. */
static void
explain_deadlock (void)
{
  const struct task *t = NULL;
  unsigned nr = 0;

  for (unsigned i = 0; i < run->nr_threads; i++)
    if (run->waiting[i]) {
      t = t ? t : run->waiting[i];
      nr++;
    }
  snprintf (run->why, SCHEDULER_WHY_LEN,
            "%s: block %u,%u,%u: divergence: %u threads wait forever, "
            "thread %u at a %s in line %u; %u have ended", run->grid->name,
            run->self.block.x, run->self.block.y, run->self.block.z, nr,
            t->thread, t->state == AT_BARRIER ? "barrier"
            : "shuffle, vote or __syncwarp", t->line, run->ended);
  run->failed = true;
}

static void
start_block (void)
{
  run->started = run->ended = run->at_barrier = 0;
  run->nr_ready = run->first_ready = 0;
  memset (run->waiting, 0, sizeof run->waiting);
  memset (run->arrived, 0, sizeof run->arrived);
  /* The first content of shared memory is undefined. */
  if (run->shared.hi > run->shared.lo)
    memset ((void *) run->shared.lo, 0xa5, run->shared.hi - run->shared.lo);
}

static int
run_block (void)
{
  start_block ();
  while (run->ended < run->nr_threads && !run->failed) {
    struct task *t;

    if (run->nr_ready > 0) {
      t = run->ready[run->first_ready];
      run->first_ready = (run->first_ready + 1) % MAX_THREADS;
      run->nr_ready--;
      run->current = t;
      set_self (t->thread);
    }
    else if (run->started < run->nr_threads)
      run->current = t = idle_task ();
    else {
      explain_deadlock ();
      break;
    }
    t->state = RUNNING;
    fiber_switch (&run->scheduler, &t->fiber.context);
  }
  return run->failed ? -1 : 0;
}

/* ---- a launch */

struct find {
  uintptr_t addr;               /* in the module */
  struct range *shared;
};

static int
find_shared (struct dl_phdr_info *info, size_t size, void *arg)
{
  struct find *f = arg;
  bool ours = false;

  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW (Phdr) *p = &info->dlpi_phdr[i];
    uintptr_t lo = info->dlpi_addr + p->p_vaddr;

    if (p->p_type == PT_LOAD && f->addr >= lo && f->addr < lo + p->p_memsz)
      ours = true;
  }
  if (!ours)
    return 0;
  for (int i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_TLS && info->dlpi_tls_data) {
      f->shared->lo = (uintptr_t) info->dlpi_tls_data;
      f->shared->hi = f->shared->lo + info->dlpi_phdr[i].p_memsz;
    }
  return 1;
}

static pthread_key_t run_key;
static pthread_once_t run_once = PTHREAD_ONCE_INIT;

static void
free_run (void *p)
{
  struct run *r = p;

  for (unsigned i = 0; i < r->nr_tasks; i++) {
    fiber_free (&r->tasks[i]->fiber);
    free (r->tasks[i]);
  }
  free (r);
}

static void
make_key (void)
{
  if (pthread_key_create (&run_key, free_run) != 0)
    abort ();
}

static void
start_run (const struct grid *g, char *why)
{
  struct find f = { (uintptr_t) g->module };

  pthread_once (&run_once, make_key);
  if (run == NULL) {
    run = calloc (1, sizeof *run);
    if (run == NULL)
      abort ();
    pthread_setspecific (run_key, run);
  }
  run->grid = g;
  run->why = why;
  run->failed = false;
  run->nr_threads = g->threads.x * g->threads.y * g->threads.z;
  memset (run->hits, 0, sizeof run->hits);
  memset (&run->self, 0, sizeof run->self);
  run->self.block_dim = g->threads;
  run->self.grid_dim = g->blocks;
  g->module->make_shared ();
  memset (&run->shared, 0, sizeof run->shared);
  f.shared = &run->shared;
  dl_iterate_phdr (find_shared, &f);
}

int
scheduler_run (const struct grid *g, char *why)
{
  struct emu_dim b;
  int r = 0;

  start_run (g, why);
  for (b.z = 0; b.z < g->blocks.z; b.z++)
    for (b.y = 0; b.y < g->blocks.y; b.y++)
      for (b.x = 0; b.x < g->blocks.x && r == 0; b.x++) {
        run->self.block = b;
        r = run_block ();
        run->descending = !run->descending;
      }
  if (r == 0)
    return 0;

  /* Stacks were left in the middle of a kernel. */
  run->nr_idle = 0;
  for (unsigned i = 0; i < run->nr_tasks; i++) {
    fiber_reset (&run->tasks[i]->fiber, task_main);
    run->idle[run->nr_idle++] = run->tasks[i];
  }
  return -1;
}
