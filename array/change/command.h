/* gpuraid: what a user tells a running array to change of its members.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CHANGE_COMMAND_H
#define GPURAID_CHANGE_COMMAND_H

#include "array/array.h"
#include "array/engine/completion.h"

struct readd;

enum command_kind {
  COMMAND_WRITABLE,             /* put the first record in force */
  COMMAND_FAIL,                 /* take seat out; if NULL, the spare of this
                                 * uuid, which is missing */
  COMMAND_REPLACE,              /* rebuild slot onto target */
  COMMAND_READD,                /* target came back */
  COMMAND_SPARE,                /* target becomes a spare */
  COMMAND_PARITY,               /* target is one more, for parity */
  COMMAND_PARITY_CANCEL,        /* that slot is taken back */
  COMMAND_WIDEN,                /* the spare of this uuid is one more, for
                                 * data */
  COMMAND_WIDEN_CANCEL,         /* that slot is taken back */
};

struct command {
  enum command_kind kind;
  struct member *target;        /* COMMAND_REPLACE, COMMAND_READD,
                                 * COMMAND_SPARE, COMMAND_PARITY: NULL once
                                 * taken over */
  struct readd *back;           /* COMMAND_READD: what was read from it;
                                 * borrowed */
  uuid_bytes uuid;              /* COMMAND_REPLACE, COMMAND_SPARE,
                                 * COMMAND_PARITY: the target's; COMMAND_FAIL
                                 * without a seat */
  unsigned slot;                /* COMMAND_REPLACE */
  struct seat *seat;            /* COMMAND_FAIL */
  bool of_client;               /* COMMAND_WRITABLE: it also ends while the
                                 * record waits for space */
  char *why;                    /* ARRAY_WHY_LEN bytes, or NULL */

  /* Out. */
  bool full;                    /* COMMAND_READD: rebuilt in full */
  bool already;                 /* COMMAND_FAIL: it was out, or on its way */

  struct completion whole;      /* its change is in force, or refused */
  struct list link;             /* in a->commands */
};

/* It has ended; NULL: there is none. */
extern void command_end (struct array *a, struct command *cmd, int error,
                         const char *why);

#endif
