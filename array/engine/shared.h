/* gpuraid: the state of a running array.
 *
 * Only array/ includes this.  The array lock (array/engine/engine.h) protects
 * everything in these structs, unless a member says otherwise.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_ENGINE_SHARED_H
#define GPURAID_ENGINE_SHARED_H

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "array/array.h"
#include "array/config/config.h"
#include "array/engine/engine.h"
#include "array/membership/membership.h"
#include "array/open/left-out.h"
#include "array/plan/hedge.h"
#include "array/plan/owed.h"
#include "array/plan/plan.h"
#include "array/plan/solver.h"
#include "common/bits.h"
#include "common/list.h"
#include "common/log.h"
#include "common/pool.h"
#include "common/threads/lane.h"
#include "raidmap/limits.h"
#include "raidmap/ring.h"

/* The members found, which stay open even if no longer in the record, and as
 * many as a record can list.
 */
#define MAX_SEATS (CONFIG_MAX_MEMBERS + SB_MAX_DEVICES)
_Static_assert (MAX_SEATS == 2 * SB_MAX_DEVICES, "raidmap/limits.c");

/* ---- seats: array/seats/seat.c -------------------------------------- */

enum seat_state {
  SEAT_ACTIVE,          /* listed by the record in force */
  SEAT_TARGET,          /* a rebuild copies to it */
  SEAT_SPARE,           /* has superblocks, and no data: array/change/join.h */
  SEAT_IDLE,            /* known, not used: failed, unlisted */
};

/* Reads in clients' threads are counted per half second of their start. */
#define SEAT_PREADS 4u

/* I/O that has succeeded, for status.  Any thread may add. */
struct seat_io {
  atomic_uint_fast64_t ops, bytes, ns;
};

/* What clients' threads write without the array lock; LANE_OF_LOCK is written
 * with it too.
 */
struct seat_lane {
  _Alignas (CACHE_LINE) struct seat_io reads;   /* also those of the loop */
  atomic_uint begun[SEAT_PREADS], ended[SEAT_PREADS];   /* reads in clients'
                                         * threads, by start time: a read may
                                         * end in another lane */
  struct hedge_fast fast;
};

/* Reads that clients began without the array lock, for status. */
struct read_lane {
  _Alignas (CACHE_LINE) atomic_uint_fast64_t ops;
  atomic_uint_fast64_t bytes;
};

/* A present member and its place in the array. */
struct seat {
  struct array *a;
  struct member *m;             /* owned; NULL once closed */
  unsigned dev;                 /* place in the device table, while that
                                 * entry has this uuid */
  uuid_bytes uuid;
  unsigned slot;                /* or SLOT_NONE */
  enum seat_state state;
  bool replaced;                /* SEAT_ACTIVE: as in the device table: of
                                 * two at a slot, this one is removed */
  bool failing;                 /* not used; the next record will not have it */
  bool failed;                  /* permanently: the device table has it */
  bool suspect;                 /* an I/O is overdue: reads avoid it */
  bool overdue;                 /* a write or flush is */
  bool waited_for;              /* likewise, but too many are */
  uint64_t read_stalled;        /* ns, since when a read waits; 0: for less
                                 * than some seconds: watch/stalled.c */
  uint64_t write_stalled;       /* likewise others, and none was answered */
  uint64_t pread_late[SEAT_PREADS];     /* its: ns, when a read of that count
                                         * was seen to be late */
  uint64_t asked;               /* watch/ask.c's: ns, since when a read is under
                                 * way; 0: none is */
  uint64_t heard;               /* ns, when the last of those ended */
  struct hedge_member hedge;    /* how long its reads take: seats/slow.c */
  struct owed owed;             /* reads in clients' threads, of a member that
                                 * is opened with O_DIRECT */
  /* Of hedge, for threads without the lock: as of the last comparison. */
  _Atomic uint64_t late[HEDGE_CLASSES]; /* hedge_late */
  _Atomic uint64_t others_owed;
  uint64_t told_slow;           /* ns, when that was said last; 0: never */
  bool probing;                 /* a probe is under way */
  uint64_t probe_off;           /* a slow member: where the next one is, bytes
                                 * of the data; what was avoided last */
  uint32_t probe_len;           /* 0: nothing was avoided since the last one */
  bool deleted;                 /* its file was: array/watch/watch.c */
  bool no_space;                /* a write to it waits for space */
  uint64_t no_space_since;      /* then: ns */
  bool by_bitmap;               /* SEAT_TARGET: only missed regions */
  bool complete;                /* SEAT_TARGET: to become active */
  uint64_t cursor;              /* SEAT_TARGET: bytes from data_off below
                                 * which it is current */
  uint64_t window_end;          /* SEAT_TARGET: bytes, end of the window; at
                                 * least cursor */
  uint64_t nr_errors;           /* for status */
  struct seat_error {
    int error;                  /* positive errno; 0: there was none */
    const char *operation;      /* a constant */
    bool has_off;
    uint64_t off;               /* on the member, in bytes */
    uint64_t when;              /* ns */
  } last_error;                 /* likewise */
  uint64_t nr_bad_sums;         /* likewise: blocks with another checksum */
  uint64_t told_bad_sums;       /* array/health/event.c */
  struct seat_io writes, flushes;       /* likewise; not what array/io/store.c
                                 * does, nor zeroes and trims */
  unsigned read_errors;         /* recent: halved every minute; when they were
                                 * last, ns: */
  uint64_t read_errors_halved;
  atomic_uint users;            /* I/O in flight; any thread may decrement */
  uint64_t answered;            /* ns, when the last write or flush ended */
  uint64_t table_zeroing, table_zeroed; /* a target: bytes */
  uint64_t trimmed;             /* a target: bytes from data_off up to which
                                 * the next window is trimmed, or will be */
  struct list xfers;            /* under way */
  struct list stores;           /* likewise */
  uint64_t write_gen;           /* grows with each write that completes */
  uint64_t flushed_gen;         /* write_gen at the last good flush */
  uint8_t *page_place;          /* for each bitmap page, the place of the
                                 * newest copy; owned */
  bool saving;                  /* its copies are being rewritten, not for a
                                 * change */
  uint64_t sb_size;             /* bytes of the member when these were written
                                 * last; 0: they were not */
  uint64_t beat_began;          /* the last beat: of loop_boot_time */
  bool b_first[2];              /* write copy B1 (B2) before A1 (A2), once:
                                 * membership's found_first_copy */
  unsigned nr_page_rounds;      /* of 2: all pages were written to it */
  bool older;                   /* taken again, and an older copy */
  bool behind;                  /* force went back, and in missed regions its
                                 * blocks are lost: array/sums/behind.c */

  /* Its journal ring: array/journal/headers.c. */
  struct ring ring;
  uint64_t ring_free;           /* position: what the header being written
                                 * frees */
  uint64_t ring_counter;        /* of the newest header */
  bool ring_behind;             /* in missed regions its records do not count;
                                 * until it is begun anew */
  uint64_t ring_allocated;      /* a target: bytes of it that were written */
  unsigned ring_which;          /* the place where that is, 0 or 1 */
  enum { RING_UNKNOWN, RING_BEGINNING, RING_BEGUN } ring_state;
  bool ring_storing;            /* headers that begin it are being written */

  struct seat_lane lane[NR_LANES];
};

/* ---- array ----------------------------------------------------------- */

struct array {
  /* Constant after array_start, unless noted. */
  struct superblock sb;         /* devices and record belong to
                                 * array/change/run.c, how far the array has
                                 * grown to array/change/grow.c */
  struct geometry g;            /* likewise the size; k, m and fixed belong to
                                 * array/change/shape.c, frontier to
                                 * array/journal/ */
  unsigned n;                   /* k + m, likewise */
  struct data_place *_Atomic data_place;        /* seats/unlocked.h: where data
                                 * lies; NULL: it moves.  Read by any thread */
  struct data_place *data_places;       /* all that there were; owned */
  uint64_t first_len;           /* bytes of a member's data in the first part,
                                 * which are at sb.l.data_off */
  size_t cell_len;              /* bytes: min (chunk, 64 KiB) */
  unsigned cell_blocks;
  unsigned nr_bands;            /* chunk / cell_len */
  bool writethrough;
  uint64_t timeout_ns;          /* key timeout=: ns to wait for an answer */
  bool readonly;
  char readonly_why[READONLY_WHY_LEN];
  struct left_out left_out;     /* listed members that it was opened without */
  bool force;
  bool any_direct;              /* some member is open with O_DIRECT */
  const struct consistency_ops *consistency;
  struct coder *coder;
  struct loop *loop;
  uint64_t member_size;         /* bytes of the smallest; array/change/grow.c */

  struct engine engine;

  /* Seats. */
  struct seat *seat[MAX_SEATS];
  unsigned nr_seats;
  struct seat *at[MAX_SLOTS][2];        /* per slot: the active seat to read,
                                         * or NULL; and a second seat to
                                         * write: a target, or a second
                                         * active seat that is replaced */
  struct seat *_Atomic open_seat[MAX_SLOTS];    /* seats/unlocked.h: of those
                                         * at [0]; or NULL.  Read by any
                                         * thread */
  struct read_lane read_lane[NR_LANES];
  uint64_t irregular_slots;           /* slots other than plainly active */
  uint64_t lost_slots;          /* slots with no active seat */
  bool any_failing;             /* some failing seat is not closed yet */
  uint64_t new_targets;         /* slots of which array/sums/pages.c forgets
                                 * the last members */
  uint64_t doubled_slots;         /* slots with two seats, neither failing */
  unsigned nr_spares;           /* seats, not failing */
  uint64_t no_spare;            /* slots that get none: array/change/join.h */
  char *slot_path[MAX_SLOTS];   /* last known path of a slot's member, if no
                                 * seat has it; owned */

  /* Memory and cache. */
  void *arena;
  size_t arena_len;
  struct cell *cells;
  unsigned nr_cells;
  struct cell **free_cell;      /* a stack */
  unsigned nr_free;
  unsigned nr_held;             /* cells of lines that are not clean */
  unsigned max_held;            /* clients wait above this */
  unsigned op_cells;            /* the most for one operation */
  unsigned nr_ops;              /* operations that hold a credit */
  unsigned nr_other_ops;        /* those that are no reads */
  unsigned credit;              /* theirs, in cells */
  unsigned out_credit;          /* of that, of write-outs */
  unsigned max_credit;
  struct line *_Atomic *bucket;         /* read by any thread */
  unsigned nr_buckets;          /* a power of two */
  uint64_t nr_lines;
  unsigned line_roles;          /* k, as lines have it */
  struct list dirty;            /* lines, oldest first */
  unsigned nr_dirty;
  unsigned nr_stuck;            /* lines */
  struct list clean;            /* lines, least recently used first */
  struct list out;              /* dirty lines to be written out now */
  struct list cell_waiters;     /* for cells or credits */
  struct {                      /* cache/idle.c */
    bool used;                  /* some cell was, since the last tick */
    bool touched;               /* some of the arena may be in memory */
    bool keeps;                 /* it could not be given back */
    bool giving;                /* some is given back: no cell is taken */
    uint64_t since;             /* ns, when no cell was used any more */
    size_t given;               /* bytes of the arena, from its start */
    int error;                  /* of the call: a positive errno, or 0 */
    struct call call;
    struct news news;
  } idle;
  bool ops_held;                /* no operation begins except reads:
                                 * array/change/hold.c */
  bool reads_held;              /* nor do these */
  struct moving {               /* array/reshape/: rows [g.frontier, end) are
                                 * being moved, in a window */
    uint64_t end;               /* at most g.frontier: there is no window */
    bool placed;                /* all of it is written: a header that frees it
                                 * moves the frontier */
    bool alone;                 /* it is over rows that count: through the
                                 * journal, with all else held */
    uint64_t from, to;          /* bytes of the array: writers wait while there
                                 * is a window; to 0: there is none */
    struct list waiters;        /* these */
  } moving;
  struct pool op_pool, xfer_pool, line_pool, part_pool, ticket_pool;
  struct pool store_pool;
  struct pools memory_pools;    /* of whole blocks */
  struct pools pools;           /* of anything else */
  struct list ops;              /* in progress */
  struct list coding;           /* operations that wait for the coder */
  struct solver *solver;
  struct list pause_waiters;    /* operations that read again at a tick */

  /* Operations that zero whole stripes; no others enter their ranges. */
  struct list zeroing;
  struct list zero_waiters;

  /* Dirty bits. */
  struct dirty_page **page;     /* nr_pages; owned, like each of them */
  uint64_t nr_pages, nr_regions;
  uint32_t *region_step;        /* per region: 1 + the step (io/progress.h)
                                 * when it was last written; 0: never */
  uint64_t *region_gen;         /* per region: a->flush_gen when it was last
                                 * written */
  uint16_t *region_ops;         /* per region: writing operations */
  uint64_t *unsynced;           /* bit per region: parity may be wrong */
  uint64_t nr_unsynced;
  bool any_open;                /* some open bit may be set */
  bool mark_open;               /* writes need open bits: no journal */

  /* Journal. */
  struct journal *journal;      /* unused without a journal */
  struct recovery *recovery;    /* until it is carried out, or NULL */
  unsigned ring_headers;        /* being written */
  struct waiter *ring_waiter;
  struct list ring_waiters;     /* for a ring to be allocated */

  struct sums *sums;            /* the checksum table, or NULL */
  uint64_t newest_seq;          /* of any transaction so far */
  unsigned bad_sums_logged;     /* in this minute */
  uint64_t last_log;            /* ns, when that began */

  /* Flush of members. */
  bool flushing;
  unsigned flush_pending;
  uint64_t flush_gen;           /* 1 + the number of rounds begun: data
                                 * written under a number is flushed by the
                                 * round that ends with a greater one */
  uint64_t flushed_gen;         /* flush_gen of the last good round */
  uint64_t clear_gen;           /* flush_gen when bits were last cleared */
  struct list flush_waiters;    /* for the round after the running one */
  struct list flushes;          /* requests that wait for a round */
  struct list held;             /* writes and zeroes that have not begun */
  struct list flush_current;    /* for the running one */
  struct waiter flush_waiter;   /* the running round itself */

  /* Members with no space. */
  struct list no_space;         /* transfers that wait for it */
  struct list no_space_stores;  /* struct store, likewise */
  unsigned stop_tries;
  bool waits_ended;             /* ARRAY_WAIT has no effect any more */
  bool forced_end;              /* nothing waits for space any more */

  /* Disks that other hosts reach: array/io/lease.h, array/watch/look.c. */
  struct lease {
    _Atomic uint64_t until;     /* they may be changed: of loop_boot_time;
                                 * UINT64_MAX: always, no beat is shown */
    struct list xfers, stores;  /* that came later */
    bool wanted;                /* a look, before these go on */
    bool looking, rests;        /* it is under way; not before the next tick */
    uint64_t nr_looks;
    uint64_t began, since;      /* it: of loop_boot_time, and of loop_now */
    uint64_t asked, good;       /* slots; good: it shows no other server */
    unsigned pending;           /* reads */
  } lease;

  /* Unreadable rows: array/health/lost.c. */
  struct lost *lost;

  /* Membership. */
  struct membership membership;
  struct change *change;        /* running, or NULL */
  struct change *change_memory; /* owned; one change at a time */
  bool change_wanted;           /* a seat is failing */
  uint64_t rest_until;          /* ns: no command begins a change before */
  pthread_mutex_t writable_lock;        /* held by array_make_writable until
                                         * open_wanted: one looks at what other
                                         * hosts have done */
  bool open_wanted;             /* the first record was asked for */
  bool writable;                /* a record of this session is in force */
  uint64_t writable_since;      /* ns */
  uint64_t spare_delay_ns;      /* key spare-delay= */
  bool opening;                 /* the first record is being made */
  bool failed;                  /* fewer than k members: no more writes */
  struct progress {
    uint32_t step;              /* the last one begun */
    uint64_t written;           /* what had been written when it began */
    bool untold;                /* the others do not know of it yet */
    uint64_t interval_ns, last; /* of progress_tick */
  } progress;                   /* array/io/progress.c */
  bool gave_up;                 /* waiters for write-outs were told of it */
  uint64_t torn0, torn1;        /* lines [torn0, torn1) in which zeroes may
                                 * be on some members only, after a failure */
  bool stopping;
  bool was_multihost;           /* on the members, when they were read */
  bool ending;                  /* the last save of a stop is begun: nothing
                                 * else is written any more */
  unsigned saving;              /* seats whose copies are being rewritten */
  unsigned beating;             /* ... only to show a beat; not in saving */
  uint32_t beat;                /* the next one of the superblocks; 0: no other
                                 * host reaches a member (save_has_beat) */
  uint64_t saves_begun, saves_ended;
  uint64_t wanted_save;         /* the save that makes durable what has
                                 * changed in a->sb */
  struct list save_waiters;
  struct found *found;          /* as found by assemble, until the first
                                 * change; owned */
  unsigned nr_found;
  bool resumes;                 /* array_set_resumes */
  struct list change_waiters;   /* run when no change is under way */
  struct list commands;         /* struct command, in order */

  struct events *events;        /* array/health/event.c */

  /* array/health/outcome.c */
  struct {
    uint64_t nr, nr_told;       /* changes that failed; and that a wait told */
    struct failed_change {
      uint64_t nr;              /* the how many-th it was */
      uint64_t when;            /* ns */
      char text[ARRAY_WHY_LEN]; /* "": it is over */
    } slot[MAX_SLOTS];          /* the last one of each */
  } outcome;

  struct grow *grow;            /* array/change/grow.c */
  struct shape *shape;          /* array/change/shape.c */
  struct reshape *reshape;      /* array/reshape/ */

  /* Rebuild and resync: array/passes/pass.c; repairs: array/ops/repair.c. */
  struct pass *pass;
  struct pace *pace;            /* of rebuild and scrub: array/passes/pace.c */
  struct scrub *scrub;
  struct list repairs;
  unsigned nr_repairs, repairs_in_flight;
  /* Amounts and intervals; tests reduce them to fit their small disks. */
  uint64_t window_len;          /* of a rebuild: bytes of a member, whole
                                 * cells */
  uint64_t save_ns;             /* interval for saving where a rebuild or
                                 * scrub is */
  uint64_t clear_ns;            /* interval for clearing dirty bits */
  uint64_t watch_ns;            /* interval of array/watch/watch.c; 0: never */
  struct watch *watch;

  /* Slow members: array/seats/slow.c, array/ops/hedge.c. */
  struct hedge hedge;
  unsigned nr_timed;            /* reads with the lock since that was last
                                 * looked at: */
  _Atomic uint64_t compared;    /* ns, when the members were compared */
  bool any_slow;                /* some member may be slow */
  struct timer hedge_timer;
  struct news hedge_news;
  struct call hedge_call;
  _Atomic (uint64_t) hedge_at;  /* ns, when the timer is to fire; 0: it is not
                                 * armed.  Set with the lock */
  atomic_bool hedge_arming;     /* hedge_call has not run yet */
  atomic_bool hedge_fired;      /* hedge_news has not run yet */

  struct timer tick;
  struct news tick_news;
  struct call tick_call;
  bool tick_armed;
  uint64_t last_clear;          /* ns */
  uint64_t overdue_waited;      /* ns, when more members than may fail were last
                                 * overdue; 0: never */
  uint64_t asked;               /* array/watch/ask.c's: ns; 0: never */
  atomic_uint pread_now;        /* index in a lane's begun for new ones; read
                                 * by any thread */
  uint64_t pread_since;         /* ns */
  bool any_pread;               /* reads in clients' threads are watched: no
                                 * seat is open without */
  bool any_stalled;             /* watch/stalled.c: at the last tick */
  uint64_t nr_wrong;            /* health/health.c: health_note_wrong */
  struct waiter clear_waiter;

  unsigned stop_phase;          /* array/stop.c */
  struct waiter stop_waiter;

  struct array_counters counters;
  struct array_stages stages;   /* stage_end */
};

/* A stage has ended, and the next one begins.  *since is when that was, of
 * engine_now; stage: one of a->stages.
 */
static inline void
stage_end (struct array *a, uint64_t *stage, uint64_t *since)
{
  const uint64_t now = engine_now (a);

  *stage += now - *since;
  *since = now;
}

#endif
