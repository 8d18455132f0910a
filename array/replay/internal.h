/* gpuraid: the state of a recovery, for array/replay/ and
 * array/journal/ alone.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_REPLAY_INTERNAL_H
#define GPURAID_REPLAY_INTERNAL_H

#include "array/replay/recovery.h"

struct recovery {
  struct ring_contents ring[MAX_SEATS]; /* by seat */
  bool has_ring[MAX_SEATS];
  uint64_t *missed;             /* where records of members that are behind
                                 * do not count, a bit per region; NULL: none
                                 * is; owned */
  uint64_t frontier;            /* while the array is widened: the greatest of
                                 * the headers */
  struct replay replay;
  unsigned nr_decisions;
  uint64_t newest;              /* that any of them saw: what is before it met
                                 * R1, also if its member is lost since */
  bool decided_for[MAX_SEATS];  /* these were in use */
  struct replay_bad *bad;       /* owned */
  unsigned nr_bad;
  bool bad_noted;               /* some since it was decided */
  enum {
    DECIDED,
    DIRECT,                     /* blocks that the newest transaction was to
                                 * write in place */
    RELOG,                      /* what the newest transaction lacks */
    RELOG_FLUSH,                /* until then it may be decided again */
    MARK,                       /* what slots that are not active miss */
    PLACE,
    PAGES,                      /* of rows that were moved, of the checksum
                                 * table: are loaded */
    LIST,                       /* of what is lost: until it is durable */
    STORE,                      /* pages of the checksum table */
    PLACE_FLUSH,
    PLACED,                     /* reads go in place */
  } phase;
};

/* If nothing was decided the old decision stays. */
enum recover_decided {
  RECOVER_DECIDED,
  RECOVER_NO_MEMORY,            /* reported; it is outdated then */
  RECOVER_FORGETS,              /* the rings of these seats lack transactions
                                 * that count: what only they have is an error
                                 * for readers, not what lies below */
};

/* array/replay/recovery.c.  Decide for the seats that are in use now. */
extern enum recover_decided recover_decide_now (struct array *a,
                                                struct recovery *rec);
/* The slots that lack such blocks. */
extern uint64_t recover_lacks_direct (const struct array *a,
                                      const struct replay_run *run);
/* True if it is known what was flushed; if not, reported. */
extern bool recover_is_sound (const struct array *a, const struct replay *r);

#endif
