/* gpuraid: locks that are held for a moment.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_LOCK_H
#define GPURAID_LOCK_H

#include <pthread.h>

/* One that is waited for awake for a moment, before sleeping: to sleep and be
 * woken takes longer than to do what it is held for.
 */
static inline void
lock_init (pthread_mutex_t *lock)
{
  pthread_mutexattr_t attr;

  pthread_mutexattr_init (&attr);
  pthread_mutexattr_settype (&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
  pthread_mutex_init (lock, &attr);
  pthread_mutexattr_destroy (&attr);
}

#endif
