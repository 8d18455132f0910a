/* gpuraid: recovery from the journal, after a crash.
 *
 * What the rings hold is read, and decided upon (array/replay/replay.h), before
 * anything runs.  From then on reads go to the rings where these have the
 * content.  array/journal/recover.h carries it out.  docs/rules.md, Recovery.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_REPLAY_RECOVERY_H
#define GPURAID_REPLAY_RECOVERY_H

#include "array/engine/shared.h"
#include "array/replay/replay.h"

/* Before anything runs, after the seats are made: the rings of the active
 * seats.  The array is read-only if more is lost than the journal can tell, and
 * degraded=force was not given.  find_missed is asked if some member is behind,
 * or was when force opened the array: where it may have old records, a bit per
 * region, that is freed with the recovery; NULL: no memory, reported.  0, or -1
 * reported.
 */
extern int recover_init (struct array *a,
                         uint64_t *(*find_missed) (const struct array *a));

/* ---- with the array lock held ------------------------------------------- */

/* Most of the time there is no recovery: the functions here ask that, and only
 * they call those of which the name begins with recovery_.
 */

/* Does not all count that the rings say, of some member (M8)? */
extern bool recover_ring_behind (const struct array *a);

/* The seq of the next transaction. */
extern uint64_t recover_next_seq (const struct array *a);

/* It was decided for members of which some are lost since; it will be
 * decided again soon.
 */
extern bool recovery_is_outdated (const struct array *a);
static inline bool
recover_is_outdated (const struct array *a)
{
  return a->recovery && recovery_is_outdated (a);
}

/* Which decision is in force: blocks that were read by different ones may be
 * of different transactions.  0: none, all is in place.
 */
extern unsigned recovery_decision (const struct array *a);
static inline unsigned
recover_decision (const struct array *a)
{
  return a->recovery ? recovery_decision (a) : 0;
}

/* What was to be read of block b of a line could not be read of these roles, in
 * a ring or in place.  It will be decided again, without that.
 */
extern void recover_note_bad (struct array *a, uint64_t no, unsigned b,
                              uint64_t roles);

/* The same for a read, in a row with the newest transaction.  True if that was
 * not known, so that it will be decided again.
 */
extern bool recover_bad_row (struct array *a, uint64_t no, unsigned b,
                             uint64_t roles);

/* Does the journal hold content of this line? */
extern bool recovery_has_line (const struct array *a, uint64_t no);
static inline bool
recover_has_line (const struct array *a, uint64_t no)
{
  return a->recovery && recovery_has_line (a, no);
}

/* The roles of a line whose stored block b is not their content, and is
 * nowhere else.
 */
extern uint64_t recovery_erased (const struct array *a, uint64_t no,
                                 unsigned b);
static inline uint64_t
recover_erased (const struct array *a, uint64_t no, unsigned b)
{
  return a->recovery ? recovery_erased (a, no, b) : 0;
}

/* The roles of which the journal has that block: it is right, whatever the
 * block in place is.
 */
extern uint64_t recovery_known (const struct array *a, uint64_t no, unsigned b);
static inline uint64_t
recover_known (const struct array *a, uint64_t no, unsigned b)
{
  return a->recovery ? recovery_known (a, no, b) : 0;
}

/* The roles that are to be written in place in block b of a line. */
extern uint64_t recover_wanted (const struct array *a, uint64_t no,
                                unsigned b);

/* The roles of which a transaction wrote that block directly: it is in place,
 * and stays as it is.
 */
extern uint64_t recover_direct (const struct array *a, uint64_t no,
                                unsigned b);

/* Only what the newest transaction was to write directly is written now: the
 * checksum table does not change.
 */
extern bool recover_is_early (const struct array *a);
/* Such a block is in place. */
extern void recover_wrote_direct (struct array *a, uint64_t no, unsigned role,
                                  unsigned b, uint32_t crc);

/* Does the journal hold content that is not in place yet? */
extern bool recovery_is_pending (const struct array *a);
static inline bool
recover_is_pending (const struct array *a)
{
  return a->recovery && recovery_is_pending (a);
}

/* Where the content of a role's block is: NULL where it is in place. */
extern const struct replay_source *recovery_source (const struct array *a,
                                                    uint64_t no,
                                                    unsigned role, unsigned b);
static inline const struct replay_source *
recover_source (const struct array *a, uint64_t no, unsigned role, unsigned b)
{
  return a->recovery ? recovery_source (a, no, role, b) : NULL;
}

/* REPLAY_RING: the seat with that ring; NULL if it is not in use any more. */
extern struct seat *recover_seat (const struct array *a,
                                  const struct replay_source *src);

#endif
