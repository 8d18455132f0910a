/* gpuraid: the loop of the process that owns a device.
 *
 * One thread polls (owner.c).  Another one flushes the device and detaches it
 * (owner-detach.c): that may wait for the server, and the first one connects to
 * it again meanwhile.  All here is called in the first.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_ATTACH_LOOP_H
#define GPURAID_ATTACH_LOOP_H

#include <poll.h>
#include <pthread.h>

#include "attach/way/way.h"

#define TRY_MS 100              /* between two tries to detach it */
#define TERM_MS 5000            /* then one each second */

/* What it polls for. */
enum {
  SIGNALS, ASKERS, ASKER, KERNEL_LOG, MOUNTS, DETACHED, CONNECTION, NR_POLL
};

struct loop {
  struct owner owner;
  struct pollfd poll[NR_POLL];
  int asker;                    /* waits for an answer; -1: there is none */
  int64_t until;                /* ms: how long; 0: nothing is to be detached */
  int64_t next;                 /* ms: when to try */
  bool ending;                  /* SIGTERM came, or it was unmounted */
  bool gone;                    /* another program has detached the device */
  bool mounted;                 /* it is, in this name space */
  bool goes_on;                 /* its owner was killed */

  /* The thread that detaches has the state until it is joined. */
  bool detaching;
  pthread_t thread;
  int64_t began;                /* ms */
  int result;                   /* of detach_device */
  char lost[STATE_TEXT_LEN];
  bool done;
  bool untold;                  /* something is lost, and nothing asked */
};

/* The beginning: make the device, or go on with one that has lost its owner.
 * 0, or -1 reported, and nothing is left.
 */
extern int owner_begin (struct loop *l);

/* Undo it. */
extern void owner_undo (struct loop *l);

/* An asker is there; has gone; is told the answer, a word and more. */
extern void owner_hear (struct loop *l);
extern void owner_lose_asker (struct loop *l);
extern void owner_answer (struct loop *l, const char *text, const char *rest);

/* Begin to detach; and what has come of it. */
extern void owner_try_detach (struct loop *l);
extern void owner_end_detach (struct loop *l);

#endif
