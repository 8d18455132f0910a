/* gpuraid: run a program for each event of an array.
 *
 * The program gets the event's name and the array's label, or its uuid if it
 * has none, as arguments, and one JSON object on its standard input
 * (docs/control-protocol.md).  One runs at a time, in a thread that nothing
 * waits for; the others are queued.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_HOOK_H
#define GPURAID_HOOK_H

#include <stdatomic.h>

#include "array/array.h"

/* A program that takes longer is killed; so is one that still runs so long
 * after hook_stop.  Tests shorten them.  Milliseconds.
 */
extern atomic_uint hook_run_ms, hook_stop_ms;
/* If more events wait, the oldest are dropped. */
#define HOOK_MAX_QUEUED 100u

struct hook;

/* Before the fork: can it be run?  0, or -1 reported. */
extern int hook_check (const char *program);

/* After the fork.  program is borrowed; label may be empty.  NULL: reported. */
extern struct hook *hook_start (const char *program, const char *label,
                                const uuid_bytes *uuid);

/* An array_event_fn: opaque is the hook. */
extern void hook_event (void *opaque, const struct array_event *e);

/* After array_free: run it for the events that wait, if that does not take
 * long.  Safe on NULL.
 */
extern void hook_stop (struct hook *h);

#endif
