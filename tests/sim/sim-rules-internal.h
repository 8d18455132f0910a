/* gpuraid: tests: what sim-rules*.c share.
 *
 * All of it runs in the one thread of the simulation.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TEST_SIM_RULES_INTERNAL_H
#define GPURAID_TEST_SIM_RULES_INTERNAL_H

#include <string.h>

#include "array/replay/internal.h"
#include "array/seats/seat.h"
#include "common/bits.h"
#include "common/bytes/crc32c.h"
#include "common/bytes/zeroes.h"
#include "raidmap/journal.h"
#include "tests/simulation/sim-run.h"

enum place_kind { NOWHERE, SUPERBLOCK, HEADER, RECORD, TABLE, BITMAP, DATA };

/* What a block of a member is for. */
struct place {
  enum place_kind kind;
  uint64_t no;                  /* of the page; of a superblock's copy, a
                                 * header or a block of the ring; row */
  unsigned which;               /* of the two places of a page */
};

struct logged {
  struct journal_record r;
  uint32_t nr;                  /* blocks, with its header */
  bool freed;                   /* by a header */
  bool left;                    /* by the last server */
};

/* The records that were written to a disk since the array was opened, and not
 * over since.
 */
struct records {
  struct logged *record;
  unsigned nr, room;
  uint64_t unknown;             /* the records of transactions up to this one
                                 * may be there, and not here */
};

struct rules {
  struct run *r;
  const struct array *a;        /* that records are of, and the map */
  unsigned nr_grown;
  uint64_t newest;              /* transaction that was logged */
  uint64_t newest_left;         /* of those that the last server logged: a
                                 * recovery may drop it */
  int phase;                    /* of the recovery, or -1 */
  struct place *map;            /* by block of a member */
  struct records of[SIM_MAX_DISKS];
};

static inline bool
rule_is_active (const struct seat *s)
{
  return s->m && !s->failing && s->state == SEAT_ACTIVE;
}

static inline struct ring_id
rule_ring (const struct array *a, const struct seat *s)
{
  return ring_id_of (&a->sb, s->slot);
}

/* What it was corrupted to, or by itself, is not the engine's fault. */
static inline bool
rule_is_spoilt (const struct run *r, const struct sim_disk *d)
{
  const unsigned no = sim_array_disk_no (r->sa, d);

  return ((r->spoilt | r->sa->ever_rotted) >> no & 1) != 0;
}

/* ---- sim-rules-journal.c: R1, R3, R4, R5, R12 -------------------------- */

/* The disk of these is not used any more, or begins anew. */
extern void rules_forget (struct rules *ru, struct records *of);
/* What the last server left in the ring of a member of a, which was opened. */
extern void rules_load (struct rules *ru, const struct array *a,
                        const struct seat *s);

/* A recovery has decided again, and may drop what it had logged. */
extern void rules_decided_again (struct rules *ru);

/* len bytes at off of the ring of d are written, the member of s. */
extern void rules_look_at_ring (struct rules *ru, const struct sim_disk *d,
                                const struct seat *s, const uint8_t *data,
                                uint64_t len, uint64_t off);
/* A header is written by which it is freed on the same member. */
extern void rules_check_freed (struct rules *ru,
                               const struct journal_record *r);

/* Header 0 or 1 of that of s. */
extern void rules_look_at_header (struct rules *ru, const struct seat *s,
                                  const uint8_t *data, unsigned which);

/* Is some record of this transaction not durable on an active member, or not
 * even written?
 */
extern bool rules_is_undecided (const struct rules *ru, uint64_t seq);
/* A row of d is written in place; data: a block, or NULL for zeroes. */
extern void rules_check_logged (struct rules *ru, const struct sim_disk *d,
                                uint64_t row, const uint8_t *data);

#endif
