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
  CHANGE_PARITY,                /* with one more slot, or without it */
  CHANGE_CONFIRM,               /* repeat, with the last record as its base */
};

struct change {
  struct waiter waiter;
  enum change_kind kind;
  struct command *command;      /* or NULL */
  struct seat *seat;            /* CHANGE_REMOVE, CHANGE_TARGET, CHANGE_SPARE,
                                 * CHANGE_PARITY: or NULL */
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

#endif
