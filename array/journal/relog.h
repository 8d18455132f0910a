/* gpuraid: log again what the newest transaction lacks.
 *
 * At a crash some members may have its record, and others not, or not all
 * of it.  Before anything of it is written in place all members that are
 * there get theirs: else another crash, and the loss of a member, could
 * leave rows half old and half new.  The content is decoded.
 *
 * With the array lock held, all of these.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_JOURNAL_RELOG_H
#define GPURAID_JOURNAL_RELOG_H

#include "array/engine/completion.h"
#include "array/replay/replay.h"
#include "array/sums/sums.h"

struct relog;

/* ring, by seat: what each ring held; has_ring: whose is known.  Both and r
 * are borrowed until relog_free; in r what is written becomes a source.
 * NULL: no memory.
 */
extern struct relog *relog_new (struct array *a, struct replay *r,
                                const struct ring_contents *ring,
                                const bool *has_ring);

/* Go on.  True when all that was missing has been written, but not flushed. */
extern bool relog_step (struct array *a, struct relog *rl);

/* It is not finished: let go of what is held. */
extern void relog_give_up (struct array *a, struct relog *rl);

/* No I/O is under way, so that it may be freed. */
extern bool relog_is_idle (const struct relog *rl);
extern void relog_free (struct relog *rl);

/* ---- for relog-*.c alone ------------------------------------------------ */

/* A block that is to be written; or only read, since it is lost if that fails
 * later.
 */
#define NO_PLACE UINT32_MAX
struct missing {
  uint64_t row;
  uint32_t place;               /* in the ring, or NO_PLACE */
  uint32_t crc_no;              /* of those of a new record */
};

/* Operations that read at once. */
#define MAX_READS 32u

struct relog_read {
  struct op *op;
  size_t first, nr;             /* of the missing blocks */
};

struct relog {
  struct array *a;
  struct replay *replay;
  const struct ring_contents *ring;     /* by seat */
  const bool *has_ring;
  unsigned next_seat;

  /* Of the member at hand. */
  struct seat *seat;            /* NULL: none */
  struct missing *missing;
  size_t nr_missing;
  size_t nr_read;               /* of those: content in buf */
  bool written;
  uint8_t *buf;                 /* header, then nr_missing blocks */
  struct xfer_memory *memory;   /* of buf */
  struct journal_record r;      /* nr_entries 0: the header is good */
  uint32_t nr_header;           /* blocks */
  uint32_t nr_before;           /* entries that have it */
  struct sums_pin pin;
  struct waiter page_waiter;

  struct relog_read read[MAX_READS];
  unsigned nr_reads;            /* under way together */
  struct completion reads;      /* these */
  struct waiter read_waiter;
  unsigned writes;              /* under way */
};

/* array/journal/relog-find.c: find out what the member of seat i lacks, and
 * make room for it.  False: no memory.
 */
extern bool relog_begin_member (struct relog *rl, unsigned i);

#endif
