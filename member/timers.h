/* gpuraid: a thread that fires timers.
 *
 * Private to member/.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_MEMBER_TIMERS_H
#define GPURAID_MEMBER_TIMERS_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>

#include "member/loop.h"

struct timers {
  pthread_t thread;
  sem_t changed;                /* wakes the thread up */
  pthread_mutex_t lock;

  /* With lock held. */
  struct timer *first;          /* armed, the next to fire first */
  uint64_t sleeps_until;        /* 0: the thread is awake, and looks again */
  bool stop;
};

/* 0 or a positive errno. */
extern int timers_start (struct timers *t);
/* Ends the thread: a timer that fires has fired then, and no other will. */
extern void timers_stop (struct timers *t);
/* After timers_stop; timers may be armed until then. */
extern void timers_destroy (struct timers *t);

/* Any thread.  As in struct loop_ops. */
extern void timers_arm (struct timers *t, struct timer *timer, uint64_t at_ns);

#endif
