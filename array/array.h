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

#include "gf/coder.h"
#include "member/loop.h"
#include "member/member.h"
#include "raidmap/uuid.h"

/* The longest array_readonly_why, with its NUL. */
#define READONLY_WHY_LEN 224u

struct array;
struct assembly;
struct config;

/* Called before the fork.  Writes nothing; with a journal it reads what the
 * rings hold, in threads that end before it returns.  Takes over the assembly
 * (emptied) and the coder.  Returns NULL after reporting (a cache
 * that is too small, with the size needed); the caller then keeps both.
 */
extern struct array *array_new (const struct config *c, struct assembly *a,
                                struct coder *coder);

/* After the fork: memory, coder, loop (taken over), threads.  0, or -1
 * reported.
 */
extern int array_start (struct array *a, struct loop *loop);

/* Called before the first write, by a connection or a command: puts a new
 * membership record in force, then starts rebuild and resync if needed.
 * Idempotent.  EROFS if the array is read-only.
 */
extern int array_make_writable (struct array *a);
/* The same for a client, and for a member that is to be taken out.  Also 0
 * while that record waits for space on a member: the client can read then, and
 * what it writes waits; the record need not wait for a member that is out.
 */
extern int array_serve_writer (struct array *a);
/* Is there work that goes on only once the array is writable: a recovery, a
 * rebuild, members that are out of date, rows that move, a scrub that was
 * interrupted?
 */
extern bool array_has_work (struct array *a);
/* It will be made writable soon if there is: array_wait waits for that. */
extern void array_set_resumes (struct array *a, bool resumes);
/* May other hosts reach its members: multihost=yes, or some are NBD exports? */
extern bool array_is_shared (struct array *a);
extern bool array_is_readonly (const struct array *a);
/* Why it is, one line that lives as long as the array; NULL: it is not. */
extern const char *array_readonly_why (const struct array *a);

/* Write out, flush, clear the dirty bits, close.  No request may be running
 * or start.  Safe on NULL and before array_start.  Returns 0, or an errno if
 * something that was written may not be on the members.
 */
extern int array_free (struct array *a);

extern uint64_t array_size (struct array *a);   /* bytes; it may grow */
extern const uuid_bytes *array_uuid (const struct array *a);

/* ---- data: off + len <= array_size ---------------------------------- */

#define ARRAY_FUA       1u      /* durable when it returns */
#define ARRAY_TRIM      2u      /* zero: may punch holes */
#define ARRAY_FAST      4u      /* zero: ENOTSUP unless it is fast */
#define ARRAY_WAIT      8u      /* while a member has no space, what must be
                                 * durable waits; else it gets ENOSPC */

extern int array_read (struct array *a, void *buf, uint32_t len, uint64_t off);
extern int array_write (struct array *a, const void *buf, uint32_t len,
                        uint64_t off, unsigned flags);
extern int array_zero (struct array *a, uint32_t len, uint64_t off,
                       unsigned flags);
extern int array_flush (struct array *a, unsigned flags);
/* The server is told to stop: from now on ARRAY_WAIT has no effect, and what
 * waits gets ENOSPC.  forced: also writes that wait for memory end; if space is
 * what they lack, the array fails, as in array_free.  May be called again.
 */
extern void array_end_waits (struct array *a, bool forced);
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

/* which: a slot number in decimal, or the path or the uuid of a member.
 * *already: it was out before.
 */
extern int array_fail (struct array *a, const char *which, bool *already,
                       char why[ARRAY_WHY_LEN]);
/* Takes over target, also on failure. */
extern int array_replace (struct array *a, const char *which,
                          struct member *target, char why[ARRAY_WHY_LEN]);
/* Add a spare.  Takes over target, also on failure. */
extern int array_spare (struct array *a, struct member *target,
                        char why[ARRAY_WHY_LEN]);
/* Add a parity member: m grows by one, and the array is as safe as before until
 * a rebuild has filled it.  Takes over target, also on failure.
 */
extern int array_add_parity (struct array *a, struct member *target,
                             char why[ARRAY_WHY_LEN]);
/* Add a data member: k grows by one, rows move meanwhile, and then the array is
 * larger.  The target becomes a spare first, and stays one if the rest fails.
 * Takes over target, also on failure.  Or the spare of this path or uuid.
 */
extern int array_widen (struct array *a, struct member *target,
                        char why[ARRAY_WHY_LEN]);
extern int array_widen_to (struct array *a, const char *spare,
                           char why[ARRAY_WHY_LEN]);
extern bool array_has_spare (struct array *a, const char *which);
/* Would that be refused now?  0, or EINVAL and why. */
extern int array_may_add (struct array *a, bool data,
                          char why[ARRAY_WHY_LEN]);
/* What becomes of the member that is added, for data or parity. */
enum array_shape_command {
  ARRAY_SHAPE_CANCEL,           /* take it back, as long as it holds nothing */
  ARRAY_SHAPE_PAUSE,            /* do not fill it, also after a restart */
  ARRAY_SHAPE_RESUME,
};
extern int array_shape_control (struct array *a, bool data,
                                enum array_shape_command command,
                                char why[ARRAY_WHY_LEN]);
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
/* If there is one, it is held no more: it can be opened as a new member. */
extern void array_close_idle (struct array *a, const char *path);
/* True for a member that was taken out and has not answered all I/O yet: it is
 * still open.
 */
extern bool array_is_closing (struct array *a, const char *path);
/* Pause the rebuild and the resync, or go on with them, until they are over or
 * the array stops.  EINVAL and why: neither is running.
 */
extern int array_rebuild_pause (struct array *a, bool pause,
                                char why[ARRAY_WHY_LEN]);
/* Wait until no rebuild or scrub is running; one that is paused does not
 * count, nor a scrub that waits for a rebuild that is.  Nor is a member stalled
 * then: it answers, or is taken out, unless too few would remain; for a read
 * alone it is not taken out.
 * *healthy: as the status says, and no active member is replaced.
 * failed: why the last change that failed did, of those that no wait told
 * before this one began, unless one for the same slot ended well since; or "".
 * Returns at once, not healthy, if a rebuild first needs a writable connection,
 * unless array_set_resumes says that it comes by itself.
 * cancelled is polled about every 100 ms (the client left).
 */
extern int array_wait (struct array *a, bool *healthy,
                       char failed[ARRAY_WHY_LEN],
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
extern uint64_t array_member_size (struct array *a);
/* Where everything lies on a member now: it may grow. */
extern void array_get_layout (struct array *a, struct member_layout *l);

/* Raise the size to all whole stripes that fit on the smallest member, if all
 * slots are active.  Clients go on meanwhile.  Returns
 * when the new size is in force, or after a failure or refusal, with why; or
 * ESHUTDOWN when cancelled says so, which is polled about every 100 ms: then
 * nothing has changed, unless it was just being put in force.
 */
struct array_growth {
  uint64_t old_size, new_size;  /* bytes */
};
extern int array_grow (struct array *a, struct array_growth *growth,
                       bool (*cancelled) (void *), void *opaque,
                       char why[ARRAY_WHY_LEN]);
/* True if any present member shares its store with this one. */
extern bool array_shares_store (struct array *a, struct member *m);

/* ---- status --------------------------------------------------------- */

enum array_state { ARRAY_HEALTHY, ARRAY_DEGRADED, ARRAY_FAILED };

enum entry_state {
  ENTRY_ACTIVE, ENTRY_FAILED, ENTRY_MISSING, ENTRY_REBUILDING, ENTRY_SPARE,
};

/* The last error of a member. */
struct array_error {
  int error;                    /* positive errno; 0: there was none */
  const char *operation;        /* "read", "write", "flush", "zero", "trim"; or
                                 * "check": its file was deleted */
  bool has_off;
  uint64_t off;                 /* bytes on the member */
  uint64_t ago_ns;              /* since then */
};

/* I/O on a member that has succeeded. */
struct array_io {
  uint64_t ops, bytes;
  uint64_t ns;                  /* of all of them together */
};

struct array_entry {
  unsigned slot;                /* or SLOT_NONE */
  char *path;                   /* absolute, or NULL if unknown */
  uuid_bytes uuid;              /* its own; zeroes if unknown */
  enum entry_state state;
  uint64_t errors;
  uint64_t bad_sums;            /* blocks, and pages of the checksum table,
                                 * that were not right */
  uint64_t scrub_found, scrub_repaired; /* blocks, by the last scrub */
  bool no_space;                /* writes to it are held until there is space */
  uint64_t no_space_ns;         /* then: for how long */
  bool no_answer;               /* a read waits for some seconds, or a write
                                 * or flush, and none was answered */
  uint64_t no_answer_ns;        /* then: for how long */
  bool slow;                    /* overdue with an answer, or its reads take
                                 * long: reads avoid it, or writes and flushes
                                 * wait for it */
  bool no_connection;           /* to its server; it is tried again */
  bool deleted;                 /* its file was; it stays in use, as too few
                                 * members would remain without it */
  uint64_t read_median_ns, read_p95_ns; /* of its last reads for clients; 0:
                                         * there were none */
  struct array_error last_error;
  struct array_io reads, writes, flushes;       /* flushes: bytes is 0 */
};

struct array_progress {
  bool running;                 /* false: null in JSON */
  bool paused;                  /* of rebuild and resync; else scrub_paused */
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

/* What is counted since the array was started.  Each is a member of struct
 * array_counters, a key of "counters" in the status, and has a row in
 * docs/control-protocol.md.
 *
 *   X (key, name, help)   of gpuraid metrics: gpuraid_NAME_total
 *   SUM (key)             of all members: each has metrics of its own
 *
 * hedge_bytes are also in member_read_bytes, table_bytes in member_write_bytes.
 */
#define ARRAY_COUNTERS(X, SUM)                                               \
  X (read_ops, "read_operations", "Reads of clients.")                       \
  X (read_bytes, "read_bytes", "Bytes read by clients.")                     \
  X (write_ops, "write_operations", "Writes of clients.")                    \
  X (write_bytes, "write_bytes", "Bytes written by clients.")                \
  X (zero_ops, "zero_operations", "Zeroes and trims of clients.")            \
  X (zero_bytes, "zero_bytes", "Bytes zeroed and trimmed by clients.")       \
  X (flush_ops, "flush_operations", "Flushes of clients.")                   \
  X (fua_ops, "fua_operations",                                              \
     "Writes of clients that asked to be durable.")                          \
  SUM (member_read_ops)                                                      \
  SUM (member_read_bytes)                                                    \
  SUM (member_write_ops)                                                     \
  SUM (member_write_bytes)                                                   \
  SUM (member_flush_ops)                                                     \
  X (full_stripe_writes, "full_stripe_writes",                               \
     "Stripes written out without reading first.")                           \
  X (partial_writes, "partial_writes", "Stripes written out after reading.") \
  X (decoded_bytes, "decoded_bytes",                                         \
     "Bytes computed from other members for readers.")                       \
  X (hedged_reads, "hedged_reads",                                           \
     "Reads decoded while they were waited for.")                            \
  X (hedges_won, "hedges_won", "Those of them decoded first.")               \
  X (hedge_bytes, "hedge_read_bytes",                                        \
     "Bytes read from members in addition, for these and for probes.")       \
  X (avoided_reads, "avoided_reads",                                         \
     "Reads of slow members decoded from the start.")                        \
  X (repaired_blocks, "repaired_blocks",                                     \
     "Blocks written again after a read error.")                             \
  X (rebuilt_bytes, "rebuilt_bytes", "Bytes written by rebuilds.")           \
  X (corrupt_found, "corrupt_blocks_found",                                  \
     "Blocks that were read, or scrubbed, and were wrong.")                  \
  X (corrupt_repaired, "corrupt_blocks_repaired",                            \
     "Those of them stored anew.")                                           \
  X (corrupt_table_pages, "corrupt_table_pages",                             \
     "Damaged pages of the checksum tables.")                                \
  X (table_bytes, "table_written_bytes",                                     \
     "Bytes written to the checksum tables.")                                \
  X (journal_commits, "journal_commits", "Transactions of the journal.")     \
  X (direct_writes, "direct_writes",                                         \
     "First writes that the journal did not copy.")                          \
  X (coder_jobs, "coder_jobs", "Batches given to the coder.")

struct array_counters {
#define COUNTER(key, ...) uint64_t key;
  ARRAY_COUNTERS (COUNTER, COUNTER)
#undef COUNTER
  uint64_t coder_bytes;         /* input bytes given to the coder */
};

/* Where write-outs were, all together, in ns since the array was started: one
 * is a line of the cache, and goes through these in this order.  Each is a
 * member of struct array_stages and, with _ns, a key of "stages" in the status,
 * and has a row in docs/control-protocol.md.  The last one is of transactions.
 *
 *   X (key)   key is the label of the metric, too
 */
#define ARRAY_STAGES(X)                                                      \
  X (asked)                     /* to be written out, until it begins */     \
  X (begun)                     /* until its reads begin */                  \
  X (read)                      /* old content from members */               \
  X (coded)                     /* it was compared, and parity made */       \
  X (gathered)                  /* until its transaction begins */           \
  X (records)                   /* these are made and written */             \
  X (flushed)                   /* so are members, after that */             \
  X (placed)                    /* it is written in place */                 \
  X (freed)                     /* until its records are not needed */

struct array_stages {
#define STAGE(key) uint64_t key;
  ARRAY_STAGES (STAGE)
#undef STAGE
};

/* The array lock.  Its time is measured for one hold of several. */
struct array_lock_use {
  uint64_t taken, held_ns;
};

/* Why an array is not healthy; with ARRAY_WHY_WRONG alone its state is. */
#define ARRAY_WHY_MEMBERS        1u     /* a slot is not active */
#define ARRAY_WHY_RESYNC         2u     /* a resync is running */
#define ARRAY_WHY_RESYNC_PENDING 4u     /* it waits for a writer */
#define ARRAY_WHY_BLOCKS         8u     /* blocks or rows known to be lost */
#define ARRAY_WHY_NO_SPACE       16u    /* writes to a member wait for space */
#define ARRAY_WHY_STALLED        32u    /* a member does not answer */
#define ARRAY_WHY_WRONG          64u    /* the last scrub found blocks that are
                                         * wrong, and has not repaired them */
/* What the status calls them, from ARRAY_WHY_MEMBERS on. */
#define ARRAY_WHY_TEXTS                                                 \
  "members lost", "resync running", "resync pending", "blocks lost",    \
  "no space", "stalled", "wrong blocks"

/* A listed member that the array was opened without. */
struct array_left_out {
  const char *path, *why;       /* owned by the array */
};

struct array_status {
  enum array_state state;
  unsigned reasons;             /* ARRAY_WHY_* */
  bool writable;                /* array_make_writable has succeeded */
  bool waits_for_writer;        /* array_has_work, and nothing makes it
                                 * writable by itself */
  bool recovering;              /* that is so, or its record waits, and what
                                 * the journal had is not in place yet */
  const char *readonly_why;     /* array_readonly_why */
  struct geometry g;
  enum code code;
  unsigned w;                   /* bits of a symbol */
  uuid_bytes uuid;
  char label[SB_LABEL_LEN + 1];
  bool multihost;               /* as it is kept on the members */
  uint64_t epoch;
  const char *coder;            /* constant string */
  const char *loop;             /* constant string */
  unsigned nr_entries;
  struct array_entry entry[SB_MAX_DEVICES];     /* one per slot, then
                                                 * spares, replacements */
  unsigned nr_left_out;         /* those that are no members since */
  struct array_left_out left_out[SB_MAX_DEVICES];
  struct array_progress rebuild, resync;
  struct array_progress grow;   /* what is added is prepared */
  struct array_reshape {
    enum {
      RESHAPE_NONE,             /* null in JSON */
      RESHAPE_MOVING,           /* the new member is being filled */
      RESHAPE_PAUSED,           /* by command */
      RESHAPE_WAITING,          /* why says for what */
      RESHAPE_STOPPED,          /* likewise: nothing moves before that */
      RESHAPE_FINISHING,        /* it is filled */
    } state;
    bool widens;                /* else parity is added */
    unsigned k, m;              /* those to be */
    uint64_t done, total;       /* bytes of a member */
    uint64_t bytes_per_second;
    uint64_t eta_seconds;
    const char *why;            /* a constant, or NULL */
  } reshape;
  uint64_t growable;            /* bytes that array_grow would add now */
  uint64_t rate_limit;          /* bytes of a member a second; 0: none */
  struct array_progress scrub;
  bool scrub_paused, scrub_repair;
  bool scrub_interrupted;       /* it goes on when the array is writable */
  struct array_scrub_count scrub_count;
  bool has_last_scrub;          /* one has ended: */
  bool last_scrub_complete, last_scrub_repair;
  uint64_t last_scrub_ago_ns;   /* since it ended */
  struct array_scrub_count last_scrub;
  char failed_change[ARRAY_WHY_LEN];    /* the last change of a member that
                                 * failed; "" if a later one for its slot ended
                                 * well */
  uint64_t failed_change_ago_ns;        /* since then */
  uint64_t lost_rows;           /* too few of their blocks can be read */
  struct array_counters counters;
  struct array_stages stages;
  struct array_lock_use lock;
  unsigned nr_engines;
  struct coder_share engine[CODER_MAX_SHARES];  /* parts of the coder */
  uint64_t cache_len, cache_used, cache_dirty;  /* bytes */
};

extern void array_get_status (struct array *a, struct array_status *st);
extern void array_status_free (struct array_status *st);  /* the paths */

/* ---- events --------------------------------------------------------- */

enum array_event_kind {
  ARRAY_EVENT_MEMBER_FAILED,    /* it was taken out */
  ARRAY_EVENT_DEGRADED,         /* the state became that, or was at the start */
  ARRAY_EVENT_FAILED,           /* likewise */
  ARRAY_EVENT_SPARE_USED,       /* a rebuild onto it begins */
  ARRAY_EVENT_REBUILT,          /* a member is active */
  ARRAY_EVENT_CORRUPTION,       /* number: blocks and pages with another
                                 * checksum since the last such event */
  ARRAY_EVENT_NO_SPACE,
  ARRAY_EVENT_STALLED,          /* a member does not answer; once a minute at
                                 * most */
  ARRAY_EVENT_CHANGE_FAILED,    /* nothing is rebuilt onto this new member,
                                 * which was taken out, or is not there */
};

struct array_event {
  enum array_event_kind kind;
  enum array_state state;       /* after it */
  unsigned reasons;             /* ARRAY_WHY_* */
  uint64_t number;
  char message[ARRAY_WHY_LEN];  /* of CHANGE_FAILED: as failed_change of the
                                 * status; else "" */
  struct array_entry member;    /* path NULL and slot SLOT_NONE: of no member;
                                 * CORRUPTION: the one with most of it */
};

/* How often to look for members that are gone, and to show other hosts that
 * this one is alive: in ns, 0: never.  Call it before array_start.  By default
 * 3 seconds.
 */
extern void array_set_watch (struct array *a, uint64_t ns);

/* Call it before array_start.  fn: any thread, one at a time, in the order of
 * what happened, with no lock held; must not block; *e is borrowed during the
 * call.
 */
typedef void (*array_event_fn) (void *opaque, const struct array_event *e);
extern void array_set_events (struct array *a, array_event_fn fn,
                              void *opaque);

#endif
