/* gpuraid: the internals of an operation, only for array/ops/.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_OPS_INTERNAL_H
#define GPURAID_OPS_INTERNAL_H

#include "array/cache/cache.h"
#include "array/engine/place.h"
#include "array/ops/logged.h"
#include "array/ops/ops.h"
#include "array/sums/sums.h"

#define OP_MAX_RECTS (CELL_MAX_LEN / BLOCK_LEN)

/* Read errors may be transient. */
#define OP_MAX_TRIES 5u

/* Blocks of the line for which every role is wholly covered or untouched. */
struct rect {
  unsigned b0, nr;              /* blocks of the cell */
  uint64_t given;               /* data roles with new content */
  uint64_t have;                /* roles whose old content is in memory */
  struct plan p;
  uint64_t lost;                /* wanted roles that can't be read or made;
                                 * in a write, all of them */
  bool zeroes;                  /* what is written is zeroes, without cells */
  struct solution *sol;         /* or NULL: nothing to make */
};

/* The cells of one role. */
struct op_role {
  struct cell *given;           /* new content, frozen */
  uint16_t given_blocks;
  struct cell *have;            /* old content in the cache, frozen */
  uint16_t have_blocks;
  struct cell *old;             /* old content, read by this operation */
  uint16_t old_blocks;
  uint16_t late_blocks;         /* a role of op->late: old_blocks, once all of
                                 * its reads have ended */
  uint16_t bad_blocks;          /* reading them gave an error */
  uint16_t wrong_blocks;        /* they had another checksum */
  uint16_t checked_blocks;      /* of old: they have their checksum */
  uint16_t zero_blocks;         /* of what is to be stored: trimmed instead */
  uint16_t crc_blocks;          /* whose crc is known */
  struct cell *made;            /* made by the coder */
  /* The rest is not cleared by op_new. */
  uint32_t wrong_crc[CELL_MAX_LEN / BLOCK_LEN]; /* of wrong_blocks */
  uint32_t crc[CELL_MAX_LEN / BLOCK_LEN];       /* of what is to be stored */
};

/* Phases follow in this order, except: a failed read goes from READING back
 * to PLANNING, and a membership change from CODED or LOGGING.  Readers go
 * from LOOKING to DONE, failed operations from CODING, zeroes from PLANNING to
 * CODED; a scrub may go from LOOKING back to PLANNING.  Fixes, and all writes
 * without a journal, go from CODED to WRITING.
 */
enum op_phase {
  OP_WAITING,                   /* for the line */
  OP_PLANNING,                  /* for a dirty bit, a cell, a change */
  OP_READING,
  OP_CHECKING,                  /* checksums, where the coder makes none */
  OP_CODING,
  OP_LOOKING,                   /* a scrub compares; a fix looks for zeroes */
  OP_CODED,
  OP_LOGGING,                   /* in the journal's hands */
  OP_LOGGED,                    /* it ends for its clients */
  OP_WRITING,
  OP_WRITTEN,                   /* waits for a change to be in force; if lost
                                 * blocks were written, for a flush */
  OP_FLUSHED,                   /* then waits for the list of such blocks */
  OP_DONE,
};

/* What differs between the kinds; what is NULL is not needed.  False: it waits,
 * unless noted.
 */
struct op_type {
  enum op_kind kind;
  bool writes;
  bool (*may_begin) (struct array *a, struct op *op);
  /* NULL: it reads and makes nothing. */
  bool (*plan) (struct array *a, struct op *op);
  /* After the coder: begin to look at what there is now; op->pending. */
  void (*look) (struct array *a, struct op *op);
  /* After that.  False: plan it again. */
  bool (*judge) (struct array *a, struct op *op);
  /* It is in the journal: may it be written in place? */
  bool (*may_place) (struct array *a, struct op *op);
  void (*write) (struct array *a, struct op *op);
  void (*end) (struct array *a, struct op *op);
};

struct op {
  struct array *a;
  struct waiter waiter;
  struct list link;             /* a->ops */
  struct list coding;           /* a->coding */
  const struct op_type *type;
  enum op_phase phase;
  struct line *line;            /* not OP_ZERO */
  struct completion *whole;     /* OP_READ, OP_ZERO: it has ended */
  bool undecided;               /* OP_READ: see op_read_undecided */
  bool pinned;                  /* OP_READ: see op_read_pinned */
  uint64_t want;                /* OP_READ: roles; OP_FIX: to be stored anew */
  bool to_targets;              /* OP_FIX */
  bool anew;                    /* OP_FIX: with the entries of all roles */
  bool proven;                  /* OP_FIX: whatever the checksums of want say */
  struct scrubbed *scrubbed;    /* OP_SCRUB */
  unsigned decision;            /* recover_decision, as last planned */
  uint64_t frontier;            /* of the array, when it was made */
  bool reads_journal;           /* a read goes to a ring */
  uint16_t replay;              /* OP_FIX: these blocks from the journal, in
                                 * place */
  uint64_t since;               /* OP_OUT: ns, when its stage began */
  unsigned credit;              /* cells */
  struct cell_parts parts;
  struct logged log;            /* OP_LOGGING to OP_WRITING */
  uint64_t lost_slots, epoch;   /* of the array, as last planned */
  bool logged;                  /* all of it is durable: no flush waits */
  bool marked;                  /* counts in a->region_ops */
  bool wrote;                   /* some write was issued */
  bool flushing;                /* OP_WRITTEN: waits for a flush */
  unsigned b0, nr;              /* OP_READ, OP_FIX: blocks */
  uint64_t line0, line1;        /* OP_ZERO: numbers of lines */
  bool trim;                    /* OP_ZERO: holes are allowed */
  struct list zeroing;          /* OP_ZERO: a->zeroing */
  uint64_t avoid;               /* roles whose stored cell is not read */
  bool coarse;                  /* some bad_blocks come from a read of
                                 * several blocks */
  bool fine;                    /* one rect per block */
  unsigned tries;               /* pauses already made */
  uint64_t slow;                /* roles that are overdue, or of slow members */
  uint64_t avoided;             /* of those, OP_READ: of slow members */
  uint64_t hedge_at;            /* OP_READ: ns, when what it still waits for is
                                 * decoded too; 0: never */
  bool hedged;                  /* that has happened: not twice */
  uint64_t late;                /* roles whose reads are still welcome, but not
                                 * waited for; a subset of slow */
  uint64_t noread, nowrite;     /* as last planned */
  uint64_t unsure;              /* OP_FIX: parity that a resync makes anew */
  uint64_t doubtful;            /* parity that is only used if nothing else
                                 * can serve; as last planned */
  unsigned pending;             /* transfers or jobs */
  struct list xfers;            /* outstanding, by owner_link */
  int error;
  /* Checksums: array/ops/sums.c. */
  struct sums_pin pin;          /* the rows' pages */
  bool no_sums;                 /* nothing is compared: a crash had left the
                                 * region open, without a journal */
  bool all_slots;               /* of the pages; else those of want */
  bool patient;                 /* also of slow members, and late ones */
  uint64_t looked;              /* slots of which it was looked at what the
                                 * table says: others may be loaded later */
  bool bad_sums;                /* found since it was planned */
  struct call check_call;
  struct news check_news;
  /* Per row of the line; of a write-out only of rows that it writes. */
  uint64_t zero_roles[OP_MAX_RECTS];    /* never written, or trimmed */
  uint64_t lost_roles[OP_MAX_RECTS];    /* not to be believed */

  struct list tickets;          /* OP_OUT, OP_ZERO */
  void (*written) (struct array *a, struct logged *lg); /* direct */
  void (*done) (struct array *a, const struct fixed *f);        /* OP_FIX */
  void *opaque;
  unsigned nr_rects;
  struct rect rect[OP_MAX_RECTS];       /* from here on op_new clears only
                                         * what begins a role */
  struct op_role role[];        /* k + m */
};

/* array/ops/advance.c: go from phase to phase until it waits, or is over.  Only
 * what begins an operation calls it.  op_wake: what its waiter runs.
 */
extern void op_advance (struct array *a, struct op *op);
extern void op_wake (struct array *a, struct waiter *w);
/* True if nothing writes to the rows of its line.  False if it waits. */
extern bool op_rows_are_free (struct array *a, struct op *op);
/* True if no zeroing that has begun writes to them either: then it counts as
 * a reader that has begun.  False if it waits.
 */
extern bool op_begin_reading (struct array *a, struct op *op);

/* A wait has ended: so phases need not know what follows. */
static inline void
op_go_on (struct array *a, struct op *op)
{
  op->waiter.run (a, &op->waiter);
}

static inline void
op_call_ended (struct array *a, struct news *n)
{
  struct op *op = list_item (n, struct op, check_news);

  op->pending = 0;
  op_go_on (a, op);
}

/* Have run called without the array lock; it posts check_news at its end. */
static inline void
op_call (struct array *a, struct op *op, void (*run) (struct call *c))
{
  op->pending = 1;
  op->check_call.run = run;
  op->check_news.run = op_call_ended;
  engine_call (a, &op->check_call);
}

/* The bytes of every member's data, from data_off, that op covers. */
static inline uint64_t
op_pos (const struct op *op)
{
  return op->log.row * BLOCK_LEN;
}

static inline uint64_t
op_len (const struct op *op)
{
  return op->log.nr_rows * BLOCK_LEN;
}

/* array/ops/new.c.  op_init: before any operation.  op_new returns NULL if
 * there is no credit now.
 */
extern void op_init (struct array *a);
extern void op_reshaped (struct array *a);
extern struct op *op_new (struct array *a, const struct op_type *type,
                          struct line *line);
extern void op_free (struct array *a, struct op *op);

/* array/ops/rects.c: cut into rects and plan them.  False if blocks that gave
 * errors are to be read again after a pause.
 */
extern bool op_plan (struct array *a, struct op *op);
/* Get all cells for reading and making, or none.  False if it waits. */
extern bool op_get_cells (struct array *a, struct op *op);
/* The old content of a role over a rect, once it is read. */
extern struct cell *op_old (const struct op *op, const struct rect *r,
                            unsigned role);
/* Roles that gave an error in any of these blocks. */
extern uint64_t op_bad_roles (const struct array *a, const struct op *op,
                              uint16_t blocks);
/* The rows that can't be read or made. */
extern uint16_t op_lost_blocks (const struct op *op);

/* Block b of a line: the row, the slot of a role, its entry. */
static inline uint64_t
op_row (const struct op *op, unsigned b)
{
  return op->log.row + b;
}

static inline unsigned
op_slot (const struct array *a, const struct op *op, unsigned role)
{
  return line_slot (a, op->line->no, role);
}

static inline struct table_entry
op_entry (const struct array *a, const struct op *op, unsigned role,
          unsigned b)
{
  return sums_get (a, &op->pin, op_slot (a, op, role), op_row (op, b));
}

static inline bool
slot_is_active (const struct array *a, unsigned slot)
{
  return a->at[slot][0] && !a->at[slot][0]->failing;
}

/* array/ops/sums.c: checksums.  Without them these do nothing.  What follows of
 * array/ops/entries.c likewise.
 */
/* Pin the pages of the rows, and look what the table says of them.  False if
 * it waits.
 */
extern bool op_pin_sums (struct array *a, struct op *op);
/* True if the plans read a role whose entries are not there: pin more. */
extern bool op_lacks_sums (struct array *a, struct op *op);
/* Begin to make the crcs that the coder does not make; op->pending. */
extern void op_start_check (struct array *a, struct op *op);
/* The roles of a rect that the table says are lost, and not only because it
 * can't be read now.
 */
extern uint64_t op_lost_roles (const struct array *a, const struct op *op,
                               const struct rect *rect);
/* Compare what was read.  False if some is bad: plan again. */
extern bool op_check (struct array *a, struct op *op);
/* The same for what a coder has read, and made, of a rect. */
extern void op_check_coded (struct array *a, struct op *op, struct rect *rect,
                            uint64_t in, const uint32_t *crc);
extern void op_check_made (struct array *a, struct op *op, struct rect *rect);
/* array/ops/entries.c: a rebuild's target has it, or a recovery: change the
 * entries.
 */
extern void op_note_copied (struct array *a, struct op *op);

/* array/ops/io.c */
extern void op_issue_reads (struct array *a, struct op *op);
/* In place, or direct. */
extern void op_write_rects (struct array *a, struct op *op);
/* The cell that is to be stored for a role of a rect. */
extern struct cell *op_new_cell (const struct op *op, const struct rect *rect,
                                 unsigned role);
/* A read has ended: note what it gave.  It is no longer among op->xfers. */
extern void op_read_ended (struct array *a, struct xfer *x);
/* True if every cell that the plans need was read. */
extern bool op_all_read (const struct op *op);
/* Abandon the reads of these roles that have not ended.  Their I/O may still
 * write to the cell, so the cell is left to it, with all that was read.
 */
extern void op_drop_reads (struct array *a, struct op *op, uint64_t roles);

/* array/ops/hedge.c: reads that are decoded while they are waited for. */
extern void op_hedge_init (struct array *a);
/* The reads were issued: hedge them when they are due. */
extern void op_hedge_watch (struct array *a, struct op *op);
/* Planned again: late reads that the new plan waits for begin anew. */
extern void op_hedge_planned (struct array *a, struct op *op);
/* All other reads have ended: it goes on without the late ones. */
extern void op_hedge_won (struct array *a, struct op *op);

/* array/ops/code.c */
extern void op_code (struct array *a, struct op *op);

/* array/ops/sparse.c: without checksums, begin to look which blocks for a
 * rebuild's targets are zeroes; op->pending.
 */
extern void op_find_zeroes (struct array *a, struct op *op);

/* array/ops/settle.c.  op_logged: it is in the journal, on all participants. */
extern void op_logged (struct array *a, struct op *op);
/* op_is_settled: true if the operation may end, once all writes have ended.
 * False if it waits.
 */
extern bool op_is_settled (struct array *a, struct op *op);
/* Remember which rows are lost. */
extern void op_note_rows (struct array *a, const struct op *op);
/* Repair cells that gave errors once their content is known. */
extern void op_repair_bad (struct array *a, const struct op *op);

/* What repair.c is to store anew: repair_add. */
struct repair {
  struct list link;             /* a->repairs */
  uint64_t no, roles;
  unsigned b0, nr;
  unsigned nr_wrong;            /* blocks that had another checksum */
  bool old;                     /* they are of an old row */
};

/* array/ops/read.c: end the pinned reads of a line that have not begun. */
extern void op_end_pinned (struct array *a, struct line *line);

/* array/ops/write.c.  An OP_OUT or OP_FIX that no transaction has: it ends, and
 * its blocks and tickets are those of its line again.
 */
extern void op_take_back (struct array *a, struct op *op);

#endif
