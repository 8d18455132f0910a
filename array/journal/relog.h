/* gpuraid: what relog-*.c share: the newest transaction is logged again.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_JOURNAL_RELOG_H
#define GPURAID_JOURNAL_RELOG_H

#include "array/engine/completion.h"
#include "array/journal/relog-face.h"
#include "array/sums/sums.h"

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
