/* gpuraid: tests: a real array on simulated disks, loop and clock.
 *
 * All of it runs in one thread.  Requests are asynchronous: between the
 * engine's decisions and a client's copying, and while the coder works,
 * simulated time passes and others run.
 *
 *   struct sim_array *sa = sim_array_new (seed, &geometry, nr_stripes, 0);
 *   sim_array_create (sa);
 *   sim_array_open (sa, ~0, DEGRADED_ALLOW, false);
 *   sim_array_writable (sa);
 *   sim_array_write (sa, buf, len, off, 0);     and so on: blocking
 *   sim_array_stop (sa);                         or sim_array_crash
 *   sim_array_free (sa);
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TEST_SIM_ARRAY_H
#define GPURAID_TEST_SIM_ARRAY_H

#include "array/engine/shared.h"
#include "array/request/request.h"
#include "common/list.h"
#include "gf/coder.h"
#include "member/sim/sim.h"
#include "raidmap/table.h"

/* What sim_array_new makes; CONSISTENCY_NONE at first. */
extern enum consistency sim_consistency;
/* The same; CHECKSUM_NONE at first. */
extern enum checksum sim_checksum;

/* The disks it makes are longer than the array needs, by this many bytes; 0 at
 * first.
 */
extern uint64_t sim_spare_len;

/* From here on random_bytes gives the same numbers in each run. */
extern void sim_random_seed (uint64_t seed);

#define SIM_MAX_DISKS 64u

struct sim_array;

struct sim_coder {
  struct coder coder;           /* first */
  struct coder *inner;
  struct sim_array *sa;
  struct list jobs;             /* under way */
};

/* A request of a simulated client.  done runs in an event, or while the
 * array is abandoned; the request may be started again from it.
 */
struct sim_request {
  struct request r;
  struct sim_array *sa;
  void (*done) (struct sim_request *);
  void *opaque;
  struct list link;             /* sa->requests, while it runs */
  enum { SIM_IDLE, SIM_DECIDES, SIM_COPIES, SIM_WAITS } state;
  bool held;                   /* SIM_COPIES: its thread is in a read of a
                                * member that hangs */
};

struct sim_array {
  struct sim *sim;
  struct geometry g;
  struct member_layout l;
  enum code code;               /* drawn by the seed, as is w; may be changed
                                 * before creating */
  unsigned w;
  enum consistency consistency;
  enum checksum checksum;
  uint64_t nr_stripes;
  uint64_t disk_size;
  uint64_t seed;

  struct sim_disk *disk[SIM_MAX_DISKS];
  unsigned nr_disks;
  uint64_t rotted;              /* disks that were corrupted silently: blocks
                                 * of them with another checksum, or with a
                                 * damaged page, are not compared */
  uint64_t ever_rotted;         /* of those, and of those made right again */
  bool old_pages;               /* of the good places of a page of the table
                                 * look at the older */

  /* For the next opening. */
  uint64_t cache_len;           /* at least cache_min_len */
  bool writethrough;
  struct hedge_policy hedge;
  uint64_t window_len, save_ns, clear_ns;       /* 0: the array's own */
  uint64_t spare_delay_ns;      /* likewise */
  uint64_t watch_ns;            /* 0: never */
  array_event_fn event;         /* NULL, or array_set_events; its opaque is
                                 * this sim_array */
  uint64_t max_pause_ns;        /* of a client, the coder or the engine
                                 * thread */
  bool thread;                  /* there is an engine thread */

  /* Of the array that is open. */
  struct array *a;
  struct config c;
  struct loop loop;
  struct sim_coder coder;
  struct list in_flight;        /* struct tracked */
  struct list requests;
  uint64_t nr_held;             /* requests that were, so far */
  bool thread_steps;            /* an event for its next step is under way */
  bool thread_rests;            /* in that it goes to sleep */
  bool dead;                    /* every I/O fails, nothing counts */
  uint64_t dead_ns;             /* time that went on since, for the engine */
  struct sim_disk *at[MAX_SLOTS];       /* when it was stopped: the disk of each
                                         * slot's data, or NULL */
  uint64_t *written;            /* by row: roles that were written since it
                                 * was opened; owned */
  uuid_bytes uuid;              /* of the array that was opened last */
  /* Pages of the checksum tables, as last looked at: sim-sums.c. */
  unsigned look;
  struct {
    const struct sim_disk *disk;
    unsigned look;
    struct table_page page;
  } table[MAX_SLOTS];
  char said[4096];              /* the last error message */
  uint64_t went_back_to;        /* the epoch, if force did when it was opened */
  bool back_once;               /* it did once: its size is not known before */
  bool more_parity;             /* nor its m */
  bool widens;                  /* nor its k, nor its size */

  struct {
    struct solver *solver;
    struct coder *coder;
    uint8_t *cells;             /* a stripe */
  } check;                      /* sim-parity.c's; NULL until it is needed */
};

/* g->size is ignored: the array gets nr_stripes whole stripes, or less
 * by the given number of blocks.  Disks 0 to k + m - 1 are made.
 */
extern struct sim_array *sim_array_new (uint64_t seed,
                                        const struct geometry *g,
                                        uint64_t nr_stripes,
                                        unsigned blocks_less);
extern void sim_array_free (struct sim_array *sa);

/* One more disk, full of rubbish.  Its number. */
extern unsigned sim_array_add_disk (struct sim_array *sa);

/* Fill a disk with rubbish. */
extern void sim_array_spoil (struct sim_array *sa, unsigned no);

extern void sim_array_create (struct sim_array *sa);
/* The same; false: it crashed meanwhile. */
extern bool sim_array_try_create (struct sim_array *sa);

/* Open an array of these disks; which: a bit a disk.  0, or -1 when it
 * was refused: sa->said has the message.  Errors that are drawn should be
 * off.
 */
extern int sim_array_open (struct sim_array *sa, uint64_t which,
                           enum degraded_policy policy, bool readonly);

/* Stop and free it.  False: it crashed meanwhile, or it never ends. */
extern bool sim_array_stop (struct sim_array *sa);

/* It crashed, or has failed: fail all I/O under way, and free it.  The
 * disks are as they are, sim_crash not done.  False: some request or
 * operation never ended.
 */
extern bool sim_array_abandon (struct sim_array *sa);

/* ---- the engine thread: sim-thread.c ----------------------------------- */

extern void sim_thread_start (struct sim_array *sa);
extern bool sim_thread_decides (const struct sim_array *sa);
/* A request may have woken it. */
extern void sim_thread_woken (struct sim_array *sa);
/* When the array is abandoned. */
extern void sim_thread_stop (struct sim_array *sa);

/* ---- requests -------------------------------------------------------- */

extern void sim_request_init (struct sim_request *q, struct sim_array *sa,
                              enum request_kind kind);
extern void sim_command_init (struct sim_request *q, struct sim_array *sa,
                              enum command_kind kind);
extern void sim_request_start (struct sim_request *q);

/* Blocking forms: 0, a positive errno, or -1 when it crashed meanwhile
 * or did not end.
 */
extern int sim_array_run (struct sim_request *q);
extern int sim_array_writable (struct sim_array *sa);
extern int sim_array_read (struct sim_array *sa, void *buf, uint64_t len,
                           uint64_t off);
extern int sim_array_write (struct sim_array *sa, const void *buf,
                            uint64_t len, uint64_t off, unsigned flags);
extern int sim_array_zero (struct sim_array *sa, uint64_t len, uint64_t off,
                           unsigned flags);
extern int sim_array_flush (struct sim_array *sa);
extern int sim_array_fail (struct sim_array *sa, unsigned slot);
/* Rebuild a slot onto a disk, which must not be in use. */
extern int sim_array_replace (struct sim_array *sa, unsigned slot,
                              unsigned disk);
extern void sim_array_init_replace (struct sim_request *q,
                                    struct sim_array *sa, unsigned slot,
                                    unsigned disk);

/* Add a disk as a spare. */
extern int sim_array_spare (struct sim_array *sa, unsigned disk);
extern void sim_array_init_spare (struct sim_request *q, struct sim_array *sa,
                                  unsigned disk);

/* Let the array grow.  Blocking: 0, a positive errno with sa->said, or -1 when
 * it crashed meanwhile.
 */
extern int sim_array_grow (struct sim_array *sa);
/* It has grown, or has another m: note that.  Also done when it is opened. */
extern void sim_array_note_shape (struct sim_array *sa);

/* Add a disk as a parity member, and take that back.  Blocking: 0, a positive
 * errno with sa->said, or -1 when it crashed meanwhile.
 */
extern int sim_array_add_parity (struct sim_array *sa, unsigned disk);
extern int sim_array_cancel_parity (struct sim_array *sa);
/* The same for data; the disk becomes a spare first. */
extern int sim_array_widen (struct sim_array *sa, unsigned disk);
extern int sim_array_cancel_widen (struct sim_array *sa);
extern void sim_array_init_parity (struct sim_request *q, struct sim_array *sa,
                                   unsigned disk);

/* Take a disk again that was in use before.  init: false if it can't be opened,
 * or is refused before the array is asked.
 */
extern bool sim_array_init_readd (struct sim_request *q, struct sim_array *sa,
                                  unsigned disk);
extern int sim_array_readd (struct sim_array *sa, unsigned disk, bool *full);
/* What init opened and read, and the array has not taken. */
extern void sim_array_end_readd (struct sim_request *q);

/* Step until nothing has to be rebuilt, resynced or changed.  False: it
 * crashed, or took more than limit_ns.
 */
extern bool sim_array_settle (struct sim_array *sa, uint64_t limit_ns);
/* Step for so long. */
extern bool sim_array_pause (struct sim_array *sa, uint64_t ns);

/* Rows are blocks: row i has block i of each member's data.  Do the cells
 * of a row's roles, as roles says them, fit together?  at: by slot, the
 * disks; roles on those that are NULL are left out.
 */
extern bool sim_array_rows_are_right (struct sim_array *sa,
                                      struct sim_disk *const *at,
                                      uint64_t (*roles) (void *opaque,
                                                         uint64_t row),
                                      void *opaque, char *why, size_t len);
/* After a stop: is every row of the slots that were active a code word? */
extern bool sim_array_parity_is_right (struct sim_array *sa, char *why,
                                       size_t len);
/* The data of the array according to the disks, from the data roles alone. */
extern void sim_array_image (struct sim_array *sa, uint8_t *buf);

/* ---- shared by these files ---------------------------------------- */

/* How long a client or the coder takes for the next step. */
extern uint64_t sim_array_pause_ns (struct sim_array *sa);
extern void sim_array_init_loop (struct sim_array *sa);
/* Fail one I/O, or carry out one job; step one request that does not
 * wait.  False: there is none.
 */
extern bool sim_array_fail_io (struct sim_array *sa);
extern bool sim_array_step_request (struct sim_array *sa);

extern void sim_array_end_check (struct sim_array *sa);

/* What the table says of a row of this disk, which has that slot; {0, 1}
 * without checksums.
 */
extern struct table_entry sim_array_entry (struct sim_array *sa,
                                           const struct sim_disk *d,
                                           unsigned slot, uint64_t row);
/* May it have been corrupted? */
extern bool sim_array_is_rotted (const struct sim_array *sa,
                                 const struct sim_disk *d);
/* Does a written block have its checksum? */
extern bool sim_array_sum_is_right (struct sim_array *sa,
                                    const struct sim_disk *d, unsigned slot,
                                    uint64_t row);

/* The disk of a seat. */
extern struct sim_disk *sim_array_disk_of (const struct seat *s);
extern struct sim_disk *sim_array_disk_at (struct sim_array *sa,
                                           unsigned slot);
/* The number of a disk. */
extern unsigned sim_array_disk_no (const struct sim_array *sa,
                                   const struct sim_disk *d);

#endif
