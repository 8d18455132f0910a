/* gpuraid: start a thread of our own.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_THREAD_H
#define GPURAID_THREAD_H

#include <pthread.h>
#include <signal.h>

/* 0 or a positive errno.  The thread takes no signals: those are for the
 * threads of the program that has loaded us.
 */
static inline int
thread_start (pthread_t *thread, const char *name,
              void *(*run) (void *), void *arg)
{
  sigset_t all, before;
  int err;

  sigfillset (&all);
  pthread_sigmask (SIG_SETMASK, &all, &before);
  err = pthread_create (thread, NULL, run, arg);
  pthread_sigmask (SIG_SETMASK, &before, NULL);
  if (err == 0)
    pthread_setname_np (*thread, name);
  return err;
}

#endif
