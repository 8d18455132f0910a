/* gpuraid: a running array.
 *
 * What nbdkit-plugin/ and control/ see.  Everything here may be called
 * from any thread unless it says otherwise, blocks, and returns 0 or a
 * positive errno that is EIO, ENOSPC, EROFS, ENOTSUP, EINVAL or
 * ESHUTDOWN.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_ARRAY_H
#define GPURAID_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "array/assemble.h"
#include "array/config.h"
#include "gf/coder.h"
#include "member/loop.h"
#include "member/member.h"

struct array;

/* Before the fork: take over the assembly (emptied) and the coder.  No
 * thread, no I/O.  NULL: reported (a cache that is too small says what
 * is needed); the assembly and the coder are then still the caller's.
 */
extern struct array *array_new (const struct config *c, struct assembly *a,
                                struct coder *coder);

/* After the fork: memory, coder, loop (taken over).  0, or -1 reported. */
extern int array_start (struct array *a, struct loop *loop);

/* Before the first write, by a connection or a command: put a new
 * membership record in force, then start what has to be brought up to
 * date.  Idempotent.  EROFS if a member is open read-only.
 */
extern int array_make_writable (struct array *a);
extern bool array_is_readonly (const struct array *a);

/* Write out, flush, clear the dirty bits, close.  No request is running
 * and none comes.  Safe on NULL and before array_start.
 */
extern void array_free (struct array *a);

extern uint64_t array_size (const struct array *a);             /* bytes */
extern const struct geometry *array_geometry (const struct array *a);

/* ---- data: off + len <= array_size ---------------------------------- */

#define ARRAY_FUA       1u      /* durable when it returns */
#define ARRAY_TRIM      2u      /* zero: may give the space back */
#define ARRAY_FAST      4u      /* zero: ENOTSUP unless it is fast */

extern int array_read (struct array *a, void *buf, uint32_t len, uint64_t off);
extern int array_write (struct array *a, const void *buf, uint32_t len,
                        uint64_t off, unsigned flags);
extern int array_zero (struct array *a, uint32_t len, uint64_t off,
                       unsigned flags);
extern int array_flush (struct array *a);
/* Tell cb of runs in order from off, none past off + len, until cb
 * returns non-zero or a bounded amount of work is done; at least one.
 */
extern int array_extents (struct array *a, uint32_t len, uint64_t off,
                          int (*cb) (void *opaque, uint64_t off, uint64_t len,
                                     bool hole),
                          void *opaque);

/* ---- commands ------------------------------------------------------- */

/* why gets one line, without a newline, when a command is refused
 * (EINVAL) or fails.  A command returns when its change is durable.
 */
#define ARRAY_WHY_LEN 256

/* which: a slot number in decimal, or the path of a member. */
extern int array_fail (struct array *a, const char *which,
                       char why[ARRAY_WHY_LEN]);
/* Takes over target whatever comes of it. */
extern int array_replace (struct array *a, const char *which,
                          struct member *target, char why[ARRAY_WHY_LEN]);
/* Until no rebuild is running.  *healthy: every slot is active.  Returns
 * at once, not healthy, where the work first needs a writable
 * connection.  cancelled is polled about every 100 ms (the client left).
 */
extern int array_wait (struct array *a, bool *healthy,
                       bool (*cancelled) (void *), void *opaque);
/* The bytes that a member must have to join: the smallest member's. */
extern uint64_t array_member_size (const struct array *a);
/* Does any present member share its store with this one? */
extern bool array_uses (struct array *a, struct member *m);

/* ---- status --------------------------------------------------------- */

enum array_state { ARRAY_HEALTHY, ARRAY_DEGRADED, ARRAY_FAILED };

enum entry_state {
  ENTRY_ACTIVE, ENTRY_FAILED, ENTRY_MISSING, ENTRY_REBUILDING, ENTRY_SPARE,
};

struct array_entry {
  unsigned slot;                /* or SLOT_NONE */
  char *path;                   /* absolute, or NULL where none is known */
  enum entry_state state;
  uint64_t errors;
  bool no_space;                /* writes to it are held until there is some */
  bool slow;                    /* owes an answer: reads go round it */
};

struct array_progress {
  bool running;                 /* false: null in JSON */
  uint64_t done, total;         /* bytes of a member */
  uint64_t bytes_per_second;
  uint64_t eta_seconds;
};

/* All since the array was started. */
struct array_counters {
  uint64_t read_ops, read_bytes;
  uint64_t write_ops, write_bytes;
  uint64_t zero_ops, zero_bytes;
  uint64_t flush_ops, fua_ops;
  uint64_t member_read_ops, member_read_bytes;
  uint64_t member_write_ops, member_write_bytes;
  uint64_t member_flush_ops;
  uint64_t full_stripe_writes;  /* write-outs that read nothing */
  uint64_t partial_writes;      /* write-outs that read first */
  uint64_t decoded_bytes;       /* made from other members for a reader */
  uint64_t repaired_blocks;     /* rewritten after a read error */
  uint64_t rebuilt_bytes;
  uint64_t coder_bytes;         /* input bytes given to the coder */
  uint64_t coder_jobs;
};

struct array_status {
  enum array_state state;
  bool writable;                /* array_make_writable was done */
  struct geometry g;
  enum code code;
  unsigned w;                   /* bits of a symbol */
  uuid_bytes uuid;
  uint64_t epoch;
  const char *coder;            /* constant string */
  const char *loop;             /* constant string */
  unsigned nr_entries;
  struct array_entry entry[SB_MAX_DEVICES];     /* one a slot, in order, then
                                                 * spares and replacements */
  struct array_progress rebuild, resync;
  uint64_t lost_rows;           /* too little of them can be read */
  struct array_counters counters;
  unsigned nr_engines;
  struct coder_share engine[CODER_MAX_SHARES];  /* parts of the coder */
  uint64_t cache_len, cache_used, cache_dirty;  /* bytes */
};

extern void array_get_status (struct array *a, struct array_status *st);
extern void array_status_free (struct array_status *st);  /* the paths */

#endif
