/* gpuraid: tests: one run of the simulation.
 *
 * What tests/test-simulation.c and the files beside it share.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TEST_SIM_RUN_H
#define GPURAID_TEST_SIM_RUN_H

#include "tests/sim-array.h"
#include "tests/sim-model.h"

#define MAX_CLIENTS 6u
#define MAX_REPLACED 40u        /* disks; the end needs some more */
#define SECONDS UINT64_C (1000000000)

struct run;

struct client {
  struct sim_request q;         /* first */
  struct run *run;
  uint8_t *buf;
  struct model_write *w;
  uint64_t began;               /* the model's time */
  uint64_t since;               /* ns */
  bool busy;
};

struct command {
  struct sim_request q;         /* first */
  struct run *run;
  char why[ARRAY_WHY_LEN];
};

struct run {
  uint64_t seed;
  struct sim_array *sa;
  struct sim *sim;
  struct model *model;
  struct geometry g;
  unsigned n;
  uint64_t max_len;             /* of a request */
  uint8_t *buf;                 /* the whole array */
  struct client client[MAX_CLIENTS];
  unsigned nr_clients, nr_busy;
  unsigned nr_left;             /* requests to be made in this session */
  unsigned nr_commands;         /* under way */

  unsigned rows_per_stripe;
  uint64_t nr_rows;
  bool *torn;                   /* per row */
  bool any_torn;
  uint64_t lost;                /* slots, as last seen */

  unsigned trouble;             /* how much goes wrong */
  bool may_exceed;              /* more than m members at once, too */
  bool over;                    /* that has happened */
  bool forced;                  /* it was ever started by force */
  bool chaos_on, may_crash;
  uint64_t faulty;              /* disks that may give errors or hang */
  uint64_t bad_targets;         /* disks: with write errors */
  uint64_t spoilt;              /* of those: with bad blocks */

  /* As it was when it crashed. */
  uint64_t was_active;          /* disks */
  uint64_t in_force;            /* disks, of the record in force */
  uint64_t was_lost;            /* slots */
  bool was_open;                /* a dirty bit was durably set */
};

struct stats {
  uint64_t runs, sessions, crashes, refused, forced, readonly, given_up;
  uint64_t requests, errors, rebuilt, replaced, failed_arrays, lost_blocks;
};

extern struct stats stats;

/* ---- sim-run.c ---- */

/* Say what is wrong and how to replay it, and exit. */
extern void run_die (struct run *r, const char *fmt, ...)
  __attribute__ ((format (printf, 2, 3), noreturn));
/* With SIM_VERBOSE. */
extern void run_say (struct run *r, const char *fmt, ...)
  __attribute__ ((format (printf, 2, 3)));

/* Drawn from the seed. */
extern uint64_t run_below (struct run *r, uint64_t n);
extern bool run_percent (struct run *r, unsigned n);

/* One event; false: it crashed, or there is none. */
extern bool run_step (struct run *r);
/* Crash within so many moments, with a chance in percent. */
extern void run_crash_soon (struct run *r, unsigned chance, unsigned moments);

/* Look whether another slot is not active any more: the torn rows of
 * regions that are not synced lose its blocks.
 */
extern void run_look_at_slots (struct run *r);
extern bool run_is_unsynced (const struct array *a, uint64_t pos);
/* The torn rows lose their blocks on a slot; synced_too: all of them. */
extern void run_lose_slot (struct run *r, unsigned slot, bool synced_too);
/* It has stopped dead: which rows were being written? */
extern void run_note_torn (struct run *r);

/* Slots whose disks are among these; the disks of active members. */
extern uint64_t run_slots_of (const struct run *r, uint64_t disks);
extern uint64_t run_active_disks (const struct run *r);
/* Slots with no active member, and none being rebuilt. */
extern uint64_t run_empty_slots (const struct array *a);

/* ---- sim-clients.c ---- */

/* The next request, after a while, if any is left to be made. */
extern void client_next (struct client *c);
/* No request may take too long. */
extern void clients_check (struct run *r);

/* ---- sim-trouble.c ---- */

extern void command_replace (struct run *r, unsigned slot);
/* An event: something goes wrong, and again later. */
extern void trouble_start (void *run);
/* All disks are well again, but for bad blocks and dead ones. */
extern void trouble_end (struct run *r);

/* ---- sim-session.c ---- */

/* Open it somehow.  False: too much is lost for good. */
extern bool session_start (struct run *r, bool readonly);
/* From an array that is open to one that is not: by clients that only
 * read, or with all that can go wrong; or make it whole and look at
 * every byte.
 */
extern void session_read (struct run *r);
extern void session_write (struct run *r);
extern void session_last (struct run *r);

#endif
