/* gpuraid: a client's request to the array.
 *
 * The client's thread drives a request through request_go, which never
 * blocks: it decides under the array lock, copies payload without it, and
 * returns true when the request is finished.  When it returns false, wake is
 * called once the request can continue (perhaps before request_go has
 * returned); then the client calls request_go again.
 * array/request/blocking.h has the blocking form.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_REQUEST_H
#define GPURAID_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "array/change/command.h"
#include "array/engine/engine.h"
#include "raidmap/superblock.h"

struct cell;
struct line;
struct op;

enum request_kind {
  REQUEST_READ, REQUEST_WRITE, REQUEST_ZERO, REQUEST_FLUSH,
  REQUEST_COMMAND,              /* change the members */
  REQUEST_SAVE,                 /* until what changed in a->sb is durable */
};

/* A run of bytes to copy to the client, or to a cell. */
struct step {
  enum { STEP_CELL, STEP_SEAT, STEP_OP, STEP_ZERO, STEP_DONE } from;
  struct line *line;            /* a write's destination: pinned */
  struct cell *cell;            /* a write's destination, or STEP_CELL: holds
                                 * a reference */
  struct seat *seat;            /* STEP_SEAT: counted in a lane of it */
  unsigned bucket;              /* STEP_SEAT: index in that lane's begun */
  unsigned owed;                /* STEP_SEAT: group in seat->owed */
  uint64_t ns;                  /* STEP_SEAT: how long it took */
  uint64_t quick_ns;            /* STEP_SEAT: if it took less, it needs no
                                 * second look under the array lock */
  unsigned sum;                 /* STEP_SEAT: index in the request's sums of
                                 * its first block */
  struct op *op;                /* STEP_OP */
  uint64_t no;                  /* the line's number */
  unsigned role;
  uint32_t cell_off;            /* bytes from the start of the cell */
  uint64_t member_off;          /* STEP_SEAT: bytes on the member */
  uint32_t len;                 /* bytes; STEP_SEAT: may go on in the next
                                 * lines of the chunk */
  uint8_t *buf;                 /* the client's side; NULL: zeroes (a write) */
  int error;                    /* STEP_SEAT: from pread, or EBADMSG: another
                                 * checksum; STEP_OP: EIO if lost */
};

#define REQUEST_STEPS 64u         /* capacity; see limits.request_steps */

/* Blocks whose checksums one batch can have: at least those of a cell. */
#define REQUEST_SUMS 256u

struct request {
  /* Set by the client before the first request_go. */
  enum request_kind kind;
  struct array *a;
  uint8_t *buf;                 /* read, write: len bytes */
  uint64_t off, len;            /* bytes; read, write, zero */
  unsigned flags;               /* ARRAY_FUA ... */
  struct command command;       /* REQUEST_COMMAND */
  void (*wake) (struct request *r);     /* any thread, without the lock */
  void *opaque;

  /* Out. */
  int error;                    /* 0 or a positive errno */

  /* The engine's. */
  enum request_phase {
    R_START,            /* decide on the next steps */
    R_COPY,             /* client's thread: cells, members */
    R_LOOK,             /* some steps need (or failed, and need) operations */
    R_COPY_OPS,         /* client's thread: what the operations brought */
    R_COMMIT,           /* the steps are done */
    R_STABLE,           /* waits until its data is on the members */
    R_FLUSH,            /* waits for a flush of the members */
    R_ZERO,             /* zero: waits for its operation */
    R_CHANGE,           /* a command: waits for its change */
    R_SAVE,             /* waits for a save */
    R_DONE,
  } phase;
  bool asleep;                  /* the client waits for wake */
  bool decided;                 /* another thread has decided what is next */
  struct news ask;              /* to have that done */
  bool counted;
  bool again;                   /* a write with FUA: tried once more */
  bool all_ops;                 /* a pread failed: leave reads to operations */
  bool has_preads, has_ops;     /* among the steps: never both, as a pread that
                                 * hangs would block the operations */
  uint64_t pos;                 /* bytes done */
  uint64_t batch_end;           /* pos when the steps are done */
  unsigned nr_steps, nr_fills;
  struct completion reads;      /* operations */
  struct completion stable;     /* tickets, and a zero's operation */
  struct step step[REQUEST_STEPS];
  uint32_t sums[REQUEST_SUMS];  /* of the blocks that STEP_SEAT reads */
  unsigned nr_sums;
  struct step fill[2];          /* writes: old content of the end blocks */
  struct waiter waiter;
  struct list flush_link;       /* R_FLUSH: in a->flushes */
  struct list held_link;        /* a write or zero that waits in R_START: in
                                 * a->held */
  uint64_t held_since;          /* ns, when it was put there */
  struct call wake_call;
  struct call copy_call;        /* copy for a client that sleeps */
};

extern void request_init (struct request *r, struct array *a,
                          enum request_kind kind);
extern bool request_go (struct request *r);

/* The two halves of request_go, called in turn: decide under the array lock
 * what is next, and copy without it, which returns true when the request is
 * finished.  A simulation runs other requests in between.  If the lock is taken
 * its holder decides (wake is called as soon as it has).
 */
enum request_next { REQUEST_WAIT, REQUEST_COPY, REQUEST_END };
extern enum request_next request_decide (struct request *r);
extern bool request_copy (struct request *r);

#endif
