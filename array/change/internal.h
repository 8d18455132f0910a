/* gpuraid: a change of the membership record, for array/change/ alone.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CHANGE_INTERNAL_H
#define GPURAID_CHANGE_INTERNAL_H

#include "array/change/change.h"
#include "array/change/command.h"

enum change_kind {
  CHANGE_OPEN,                  /* the first record of a writable open */
  CHANGE_FAIL,                  /* without the failing seats */
  CHANGE_REMOVE,                /* without one seat that was replaced */
  CHANGE_FORGET,                /* without a spare that is missing */
  CHANGE_TARGET,                /* with a new target or spare */
  CHANGE_SPARE,                 /* a spare becomes a target */
  CHANGE_ACTIVATE,              /* rebuilt targets become active */
  CHANGE_GROW,                  /* with a larger data area */
  CHANGE_SHAPE,                 /* with one more slot, or without it; or the
                                 * array is widened */
  CHANGE_CONFIRM,               /* repeat, with the last record as its base */
};

struct change {
  struct waiter waiter;
  enum change_kind kind;
  struct command *command;      /* or NULL */
  struct seat *seat;            /* CHANGE_REMOVE, CHANGE_TARGET, CHANGE_SPARE,
                                 * CHANGE_SHAPE: or NULL */
  unsigned slot;                /* CHANGE_SPARE */
  unsigned dev;                 /* CHANGE_FORGET */
  struct device_set devs;       /* CHANGE_ACTIVATE */
  uint64_t began;               /* ns */
  bool begun;
  bool in_round;
  bool ended;                   /* the record is in force, but the array can't
                                 * follow it yet */
  unsigned pending;             /* takers that still write */
  struct device_set failed;     /* takers that failed in this round */
};

/* array/change/run.c: begin one, and carry it on. */
extern struct change *change_new (struct array *a, enum change_kind kind,
                                  struct command *cmd);
extern void change_step (struct array *a, struct waiter *w);
/* In each turn. */
extern void change_follow (struct array *a);

/* array/change/new-member.c: a spare that becomes one more data member.  It has
 * that slot already; when this is freed it is a spare as before, unless it is
 * active now.
 */
struct new_member;
extern struct new_member *new_member (struct array *a, struct seat *s);
extern void new_member_free (struct new_member *nm);    /* NULL is allowed */
extern struct seat *new_member_seat (const struct new_member *nm);
/* It has failed, or is used otherwise; NULL: it goes on. */
extern const char *new_member_problem (const struct new_member *nm);
/* Prepare it, in each turn.  True when all is durable. */
extern bool new_member_is_ready (struct array *a, struct new_member *nm);
/* Then, with nothing under way, in each turn: the journal begins anew on all
 * members, and it.  True when that is durable.
 */
extern bool new_member_joins (struct array *a, struct new_member *nm);

#endif
