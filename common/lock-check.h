/* gpuraid: what a thread calls while it has the array lock.
 *
 * make lock-check builds with LOCK_CHECK, and links each call of a library from
 * array/ and what it includes to tests/lock-check/lock-check.c, which notes
 * those that are made meanwhile.  In all other builds these do nothing.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_LOCK_CHECK_H
#define GPURAID_LOCK_CHECK_H

#include <stdbool.h>

#ifdef LOCK_CHECK
/* This thread has taken the array lock, or is about to release it. */
extern void lock_check_held (bool held);
/* Call it where a simulation makes no call of a library, and others do. */
extern void lock_check_call (const char *name);
#else
static inline void
lock_check_held (bool held)
{
}

static inline void
lock_check_call (const char *name)
{
}
#endif

#endif
