/* gpuraid: the engine thread, which decides while the array is busy.
 *
 * Where several threads want the array lock at once, each that gets it fetches
 * the array's state from another processor's cache, and has its own decisions
 * to carry out before it can be back.  So once a client's thread has found the
 * lock taken, while operations are under way, the engine thread decides for all
 * threads.  They post their news, and carry out what it has decided so far:
 * they are awake anyway.  It carries out only what is left when there is no
 * news, and lets others decide meanwhile, as a call may block.  When there was
 * nothing to do for some microseconds it goes to sleep.
 *
 * No news is lost: a thread that has posted looks at the state then, and the
 * engine thread that has left THREAD_DECIDES looks for news then.
 * tests/model/engine_thread.py tries all orders of that.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_ENGINE_THREAD_H
#define GPURAID_ENGINE_THREAD_H

#include <stdbool.h>

struct array;

/* 0, or a positive errno: the array does not start then. */
extern int engine_thread_start (struct array *a);
/* No thread decides for others when it returns. */
extern void engine_thread_stop (struct array *a);

/* What the thread does; a simulation calls these in its place.
 * step: in THREAD_DECIDES: decide, or carry out.  False: there was nothing.
 * rest: then, to THREAD_ASLEEP.  False: there is news.
 */
extern bool engine_thread_step (struct array *a);
extern bool engine_thread_rest (struct array *a);

#endif
