/* gpuraid: a running array.
 *
 * The interface for nbdkit-plugin/ and control/.  Unless noted otherwise,
 * functions may be called from any thread, block, and return 0 or a positive
 * errno: EIO, ENOSPC, EROFS, ENOTSUP, EINVAL or ESHUTDOWN.
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

/* Called before the fork.  Writes nothing; with a journal it reads what the
 * rings hold, in threads that end before it returns.  Takes over the assembly
 * (emptied) and the coder.  Returns NULL after reporting (a cache
 * that is too small, with the size needed); the caller then keeps both.
 */
extern struct array *array_new (const struct config *c, struct assembly *a,
                                struct coder *coder);

/* After the fork: memory, coder, loop (taken over).  0, or -1 reported. */
extern int array_start (struct array *a, struct loop *loop);

/* Called before the first write, by a connection or a command: puts a new
 * membership record in force, then starts rebuild and resync if needed.
 * Idempotent.  EROFS if a member is open read-only.
 */
extern int array_make_writable (struct array *a);
extern bool array_is_readonly (const struct array *a);

/* Write out, flush, clear the dirty bits, close.  No request may be running
 * or start.  Safe on NULL and before array_start.
 */
extern void array_free (struct array *a);

extern uint64_t array_size (const struct array *a);             /* bytes */
extern const struct geometry *array_geometry (const struct array *a);

/* ---- data: off + len <= array_size ---------------------------------- */

#define ARRAY_FUA       1u      /* durable when it returns */
#define ARRAY_TRIM      2u      /* zero: may punch holes */
#define ARRAY_FAST      4u      /* zero: ENOTSUP unless it is fast */

extern int array_read (struct array *a, void *buf, uint32_t len, uint64_t off);
extern int array_write (struct array *a, const void *buf, uint32_t len,
                        uint64_t off, unsigned flags);
extern int array_zero (struct array *a, uint32_t len, uint64_t off,
                       unsigned flags);
extern int array_flush (struct array *a);
/* Call cb for runs in order from off, none past off + len, until cb returns
 * non-zero or a bounded amount of work is done; at least once.
 */
extern int array_extents (struct array *a, uint32_t len, uint64_t off,
                          int (*cb) (void *opaque, uint64_t off, uint64_t len,
                                     bool hole),
                          void *opaque);

/* ---- commands ------------------------------------------------------- */

/* If a command is refused (EINVAL) or fails, why is set to one line without a
 * newline.  A command returns when its change is durable.
 */
#define ARRAY_WHY_LEN 256

/* which: a slot number in decimal, or the path of a member. */
extern int array_fail (struct array *a, const char *which,
                       char why[ARRAY_WHY_LEN]);
/* Takes over target, also on failure. */
extern int array_replace (struct array *a, const char *which,
                          struct member *target, char why[ARRAY_WHY_LEN]);
/* A member that was taken out or was missing is back: bring it up to date.
 * m: the member, open for writing and taken over, also on failure; or NULL if
 * the array has it open, but does not use it (array_has_idle): then path names
 * it.  *full: it is rebuilt in full.
 */
extern int array_readd (struct array *a, const char *path, struct member *m,
                        bool *full, char why[ARRAY_WHY_LEN]);
/* True for a member that was found when the array was opened and is not used,
 * as it had failed before.
 */
extern bool array_has_idle (struct array *a, const char *path);
/* True for a member that was taken out and has not answered all I/O yet: it is
 * still open.
 */
extern bool array_is_closing (struct array *a, const char *path);
/* Wait until no rebuild or scrub is running; one that is paused does not
 * count.  *healthy: every slot is active.  Returns
 * at once, not healthy, if a rebuild first needs a writable connection.
 * cancelled is polled about every 100 ms (the client left).
 */
extern int array_wait (struct array *a, bool *healthy,
                       bool (*cancelled) (void *), void *opaque);
/* Begin to scrub.  repair: store anew what is proven to be wrong; the array is
 * made writable then.  If the array stops before the end, it goes on when it
 * is made writable again.
 */
extern int array_scrub_start (struct array *a, bool repair,
                              char why[ARRAY_WHY_LEN]);
enum array_scrub_command {
  ARRAY_SCRUB_STOP, ARRAY_SCRUB_PAUSE, ARRAY_SCRUB_RESUME,
};
extern int array_scrub_control (struct array *a,
                                enum array_scrub_command command,
                                char why[ARRAY_WHY_LEN]);
/* How fast rebuild and scrub may go together, from now on: bytes of a member a
 * second, 0 for no limit.
 */
extern void array_set_rate (struct array *a, uint64_t limit);
/* The minimum size of a new member in bytes: that of the smallest member. */
extern uint64_t array_member_size (const struct array *a);
/* True if any present member shares its store with this one. */
extern bool array_shares_store (struct array *a, struct member *m);

/* ---- status --------------------------------------------------------- */

enum array_state { ARRAY_HEALTHY, ARRAY_DEGRADED, ARRAY_FAILED };

enum entry_state {
  ENTRY_ACTIVE, ENTRY_FAILED, ENTRY_MISSING, ENTRY_REBUILDING, ENTRY_SPARE,
};

struct array_entry {
  unsigned slot;                /* or SLOT_NONE */
  char *path;                   /* absolute, or NULL if unknown */
  enum entry_state state;
  uint64_t errors;
  uint64_t bad_sums;            /* blocks, and pages of the checksum table,
                                 * that were not right */
  uint64_t scrub_found, scrub_repaired; /* blocks, by the last scrub */
  bool no_space;                /* writes to it are held until there is space */
  bool slow;                    /* overdue with an answer: reads avoid it */
};

struct array_progress {
  bool running;                 /* false: null in JSON */
  uint64_t done, total;         /* bytes of a member */
  uint64_t bytes_per_second;
  uint64_t eta_seconds;
};

/* What a scrub found. */
struct array_scrub_count {
  uint64_t found;               /* blocks that are wrong or can't be read */
  uint64_t repaired;            /* of those, stored anew */
  uint64_t unlocated_rows;      /* do not fit together, and nothing says which
                                 * block is wrong */
  uint64_t lost_rows;           /* too little of them is right */
  uint64_t skipped_rows;        /* of the journal or a resync, which come
                                 * first */
};

/* Counters since the array was started. */
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
  uint64_t bad_blocks;          /* read with another checksum */
  uint64_t bad_blocks_repaired; /* of those, stored anew */
  uint64_t bad_table_pages;     /* of the checksum table, damaged */
  uint64_t table_bytes;         /* written to the members' tables; also in
                                 * member_write_bytes */
  uint64_t journal_commits;     /* transactions */
  uint64_t direct_writes;       /* operations that the journal did not copy */
  uint64_t journal_bytes;       /* written to the members' rings; also in
                                 * member_write_bytes */
  uint64_t coder_bytes;         /* input bytes given to the coder */
  uint64_t coder_jobs;
};

struct array_status {
  enum array_state state;
  bool writable;                /* array_make_writable has succeeded */
  struct geometry g;
  enum code code;
  unsigned w;                   /* bits of a symbol */
  uuid_bytes uuid;
  uint64_t epoch;
  const char *coder;            /* constant string */
  const char *loop;             /* constant string */
  unsigned nr_entries;
  struct array_entry entry[SB_MAX_DEVICES];     /* one per slot, then
                                                 * spares, replacements */
  struct array_progress rebuild, resync;
  uint64_t rate_limit;          /* bytes of a member a second; 0: none */
  struct array_progress scrub;
  bool scrub_paused, scrub_repair;
  bool scrub_interrupted;       /* it goes on when the array is writable */
  struct array_scrub_count scrub_count;
  bool has_last_scrub;          /* one has ended: */
  bool last_scrub_complete, last_scrub_repair;
  uint64_t last_scrub_seconds;  /* since then */
  struct array_scrub_count last_scrub;
  uint64_t lost_rows;           /* too few of their blocks can be read */
  struct array_counters counters;
  unsigned nr_engines;
  struct coder_share engine[CODER_MAX_SHARES];  /* parts of the coder */
  uint64_t cache_len, cache_used, cache_dirty;  /* bytes */
};

extern void array_get_status (struct array *a, struct array_status *st);
extern void array_status_free (struct array_status *st);  /* the paths */

#endif
