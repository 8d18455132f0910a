/* gpuraid: the time in which this process ran.
 *
 * A process that is stopped (SIGSTOP, a freezer, a virtual machine that is
 * paused) can't see answers, so that time must not count against a member.  The
 * only owner of that: whatever is too late by this clock had the time while we
 * were there to see it.
 *
 * It goes like CLOCK_MONOTONIC, but stands still from RUNNING_MAY_NS after the
 * last beat on, until there is another.  A thread gives one every
 * RUNNING_BEAT_NS.  So of a pause no more than RUNNING_MAY_NS counts, and it
 * never goes back.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_RUNNING_H
#define GPURAID_RUNNING_H

#include <stdatomic.h>
#include <stdint.h>

#define RUNNING_BEAT_NS UINT64_C (200000000)
#define RUNNING_MAY_NS UINT64_C (500000000)

/* ---- any clock, for tests and the simulation; all times in ns ------------ */

struct running {
  _Atomic uint64_t out;         /* has been left out so far */
  _Atomic uint64_t until;       /* of this clock: it stands from then on;
                                 * UINT64_MAX: it never does */
  _Atomic uint64_t paused;      /* of this clock: the end of the last pause; 0:
                                 * there was none */
};

extern void running_init (struct running *r);
/* raw: of the clock below, as it is now.  One thread at a time. */
extern void running_beat (struct running *r, uint64_t raw);
/* The time now; raw must be read after r was: see running_now.  Pure. */
extern uint64_t running_at (const struct running *r, uint64_t raw);

/* ---- that of this process: any thread ------------------------------------ */

/* Begin to beat, and end that: as often as each other.  0 or a positive errno.
 * While there is no beat the clock never stands.
 */
extern int running_start (void);
extern void running_stop (void);

/* ns. */
extern uint64_t running_now (void);
/* When the last pause ended; 0: there was none. */
extern uint64_t running_paused (void);
/* When to look again whether it is at: a time of CLOCK_MONOTONIC. */
extern uint64_t running_wake (uint64_t at);

/* Time that passes whether we run or not, also while the machine sleeps. */
extern uint64_t running_boot_time (void);

#endif
