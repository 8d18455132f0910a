/* gpuraid: tests: which calls a thread makes while it has the array lock.
 *
 * make lock-check links each call of a library that the product makes to a
 * function here, which makes that call.  At the exit of the program each place
 * of a call that was made under the lock is a line in the file $LOCK_CHECK:
 *
 *   NAME COUNT ADDRESS...
 *
 * with the return addresses, the innermost first.  scripts/dev/lock-check runs
 * this, and turns them into functions.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <execinfo.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/lock-check.h"

/* Of the frames that backtrace finds: see_call and the function for the call
 * are none of the product.
 */
#define OWN_FRAMES 2
#define NR_FRAMES 16

struct place {
  const char *name;
  void *from[2];                /* return addresses */
  unsigned long count;
  void *frame[OWN_FRAMES + NR_FRAMES];
  int nr_frames;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct place table[4096];

static __thread bool held;

void
lock_check_held (bool now_held)
{
  held = now_held;
}

static struct place *
find (const char *name, void *from0, void *from1)
{
  const unsigned nr = sizeof table / sizeof table[0];
  unsigned i = (((uintptr_t) from0 >> 1) ^ ((uintptr_t) from1 << 3)) % nr;

  while (table[i].name && (table[i].name != name ||
                           table[i].from[0] != from0 ||
                           table[i].from[1] != from1))
    i = (i + 1) % nr;
  table[i].name = name;
  table[i].from[0] = from0;
  table[i].from[1] = from1;
  return &table[i];
}

static void __attribute__ ((noinline))
see_call (const char *name, void *from0, void *from1)
{
  struct place *p;

  pthread_mutex_lock (&lock);
  p = find (name, from0, from1);
  if (p->count++ == 0)
    p->nr_frames = backtrace (p->frame, OWN_FRAMES + NR_FRAMES);
  pthread_mutex_unlock (&lock);
}

void
lock_check_call (const char *name)
{
  if (held)
    see_call (name, __builtin_return_address (0), __builtin_return_address (1));
}

static void __attribute__ ((destructor))
report (void)
{
  const char *path = getenv ("LOCK_CHECK");
  FILE *fp = path ? fopen (path, "a") : NULL;

  if (fp == NULL)
    return;
  for (size_t i = 0; i < sizeof table / sizeof table[0]; ++i) {
    const struct place *p = &table[i];

    if (p->name == NULL)
      continue;
    fprintf (fp, "%s %lu", p->name, p->count);
    for (int j = OWN_FRAMES; j < p->nr_frames; ++j)
      fprintf (fp, " %p", p->frame[j]);
    fputc ('\n', fp);
  }
  fclose (fp);
}

/* Whatever its types are: the arguments are integers and pointers, at most six,
 * and so is the result; the caller knows how many of their bytes count.
 */
#define ARGS long a, long b, long c, long d, long e, long f
#define CALL(name)                                                      \
  extern long real_##name (ARGS) __asm__ (#name);                       \
  extern long lock_check_##name (ARGS);                                 \
  long                                                                  \
  lock_check_##name (ARGS)                                              \
  {                                                                     \
    if (held)                                                           \
      see_call (#name, __builtin_return_address (0),                    \
                __builtin_return_address (1));                          \
    return real_##name (a, b, c, d, e, f);                              \
  }

/* CALL (NAME) for each, which scripts/dev/lock-check finds. */
#include CALLS
