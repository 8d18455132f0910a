/* gpuraid: free things at the end of a scope.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CLEANUP_H
#define GPURAID_CLEANUP_H

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static inline void
cleanup_free (void *p)
{
  free (*(void **) p);
}

static inline void
cleanup_close (int *fd)
{
  if (*fd >= 0)
    close (*fd);
}

static inline void
cleanup_unlock (pthread_mutex_t **lock)
{
  pthread_mutex_unlock (*lock);
}

#define CLEANUP_FREE __attribute__ ((cleanup (cleanup_free)))
#define CLEANUP_CLOSE __attribute__ ((cleanup (cleanup_close)))

#define CLEANUP_NAME2(line) _lock_##line
#define CLEANUP_NAME(line) CLEANUP_NAME2 (line)
#define ACQUIRE_LOCK_FOR_CURRENT_SCOPE(lock)                            \
  __attribute__ ((cleanup (cleanup_unlock), unused))                    \
  pthread_mutex_t *CLEANUP_NAME (__LINE__) =                            \
    (pthread_mutex_lock (lock), (lock))

#endif
