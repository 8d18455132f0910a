/* gpuraid: locks that are held for a short time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_LOCK_H
#define GPURAID_LOCK_H

#include <pthread.h>

/* A lock that spins for a while before it sleeps: to sleep and be woken takes
 * longer than the work that it is held for.
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
