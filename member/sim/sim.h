/* gpuraid: members, loop and clock that are simulated.
 *
 * One thread, one seed, one run: every delay, error and crash is drawn
 * from the seed, and time is a number that jumps from one event to the
 * next.  Nothing here is thread-safe; all of it runs in the thread that
 * calls sim_step, and a done or a timer runs inside sim_step.
 *
 * A disk outlives the members made of it: after a crash, close the old
 * members (they may not be used for anything else any more) and open
 * new ones over the same disks.
 *
 *   struct sim *sim = sim_new (seed);
 *   struct sim_disk *d = sim_disk_new (sim, "disk0", 1 << 20);
 *   struct member *m = sim_disk_open (d, 0);
 *   sim_crash_after (sim, sim_below (sim, 1000));
 *   loop_submit (sim_loop (sim), &io, 1);
 *   while (sim_step (sim))
 *     ;
 *   if (sim_crashed (sim))
 *     sim_crash (sim);
 *   member_close (m);
 *   m = sim_disk_open (d, 0);
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_SIM_H
#define GPURAID_SIM_H

#include "common/list.h"
#include "member/member.h"

/* ---- The clock ----------------------------------------------------- */

struct sim;
struct sim_disk;

/* NULL: reported. */
extern struct sim *sim_new (uint64_t seed);
/* Close the members before; frees the disks. */
extern void sim_free (struct sim *);

/* Borrowed from sim; loop_free does nothing to it. */
extern struct loop *sim_loop (struct sim *);

/* ns, the loop's; starts at a second, so that 0 is never now. */
extern uint64_t sim_now (const struct sim *);

/* From the seed.  sim_below: 0 to n - 1; sim_chance: true ppm times in
 * a million.
 */
extern uint64_t sim_random (struct sim *);
extern uint64_t sim_below (struct sim *, uint64_t n);
extern bool sim_chance (struct sim *, unsigned ppm);

/* The process does not run for so long (ns), and what the disks have to say
 * waits.  Then some of what is due comes first, timers or answers.
 */
extern void sim_pause (struct sim *, uint64_t ns);

/* Call fn (arg) after delay_ns.  A crash drops it; arg stays yours. */
extern void sim_at (struct sim *, uint64_t delay_ns,
                    void (*fn) (void *), void *arg);

/* Run the next event.  False: there is none, or it has crashed.  An
 * armed timer is an event, a hung I/O is not.
 */
extern bool sim_step (struct sim *);

/* A number that two runs share only if they did the same I/O in the
 * same order with the same results.
 */
extern uint64_t sim_trace (const struct sim *);

/* Send each I/O to log_debug. */
extern void sim_verbose (struct sim *, bool);

/* ---- Crashes ------------------------------------------------------- */

/* Moments that a crash can tell apart: each I/O when it is submitted and when
 * it takes effect (before done), and each synchronous write, flush and discard.
 * Returns how many have passed.
 */
extern uint64_t sim_moments (const struct sim *);

/* Stop at the nth moment from now, the next being number 1; 0: never.  From
 * then on sim_step returns false, submitted I/O vanishes, and the synchronous
 * calls, which can't stop, return EIO and change nothing.
 */
extern void sim_crash_after (struct sim *, uint64_t n);
extern bool sim_crashed (const struct sim *);

/* The power fails and comes back.  Drops every event, timer and I/O in
 * flight; of each write that no flush has made durable, in flight or
 * completed, all, nothing, or any subset of its 512-byte sectors is
 * there afterwards.  Frees the disks' locks and ends hangs.  Settings
 * stay.
 */
extern void sim_crash (struct sim *);
/* The process is killed, and the power stays: the same, but completed writes
 * stay visible, and no more durable than before; some of those in flight get
 * as far.  So sim_crash may follow, with the array closed or open again.
 */
extern void sim_kill (struct sim *);

/* ---- Looking on ---------------------------------------------------- */

/* Called with each read, and each change, before it can take effect; the
 * synchronous ones too.  data: that of a write.
 */
typedef void sim_watch_fn (void *opaque, struct sim_disk *d,
                           enum io_kind kind, const uint8_t *data,
                           uint64_t len, uint64_t off);
/* One at a time; NULL: none. */
extern void sim_watch (struct sim *, sim_watch_fn *fn, void *opaque);

/* ---- Disks --------------------------------------------------------- */

#define SIM_SECTOR 512u
#define SIM_BLOCK 4096u         /* of bad blocks */

struct sim_disk {
  /* Settings, to be changed at any time.  Times in ns; chances in ppm
   * of the I/Os.
   */
  uint64_t min_delay_ns, max_delay_ns;  /* 10 us, 1 ms */
  unsigned read_error_ppm;      /* EIO, and rubbish in the buffer */
  unsigned write_error_ppm;     /* EIO, with any subset of the sectors
                                 * written */
  unsigned write_errors;        /* as many of the next writes fail so */
  unsigned flush_error_ppm;     /* EIO; what it should have made durable
                                 * never will be by another flush */
  unsigned lose_write_ppm;      /* not written, no error */
  unsigned tear_write_ppm;      /* some sectors not written, no error */
  unsigned misdirect_write_ppm; /* written elsewhere, no error */
  uint64_t lie_begin, lie_end;  /* these three only of writes in between, and
                                 * to there; 0, 0: anywhere */
  bool dead;                    /* ENODEV for everything that completes */
  bool absent;                  /* sim_disk_open: ENOENT */
  bool deleted;                 /* what members answer when they are asked */
  bool full;                    /* ENOSPC for what needs blocks that were
                                 * never written, or trimmed; what comes
                                 * before them is written */
  bool cow;                     /* full: so does what writes over others */
  bool direct;                  /* what members say; alignment is then
                                 * asserted.  true */

  /* Submitted so far, by enum io_kind, the synchronous ones too; the caller may
   * reset them.
   */
  uint64_t nr_ios[5];
  uint64_t nr_bytes[5];

  /* What a read sees now. */
  const uint8_t *image;
  uint64_t size;

  /* Ours. */
  struct sim *sim;
  char *name;
  struct list link;             /* in the sim's disks */
  uint8_t *visible;             /* image */
  uint8_t *stable;              /* what survives a crash */
  uint8_t *bad;                 /* a byte a block: reads fail */
  uint8_t *lied;                /* likewise: a write of it was lost, torn or
                                 * went there without an error */
  uint8_t *used;                /* a byte a block: takes up space */
  struct list in_flight;        /* struct flight, as submitted */
  struct list cached;           /* completed, not durable; as completed */
  struct list doomed;           /* completed, a flush has failed */
  uint64_t nr_completed;        /* writes: numbers the cached ones */
  bool hung;
  unsigned incarnation;         /* crashes so far: older members are invalid */
  unsigned readers, writers;    /* locks */
};

/* size is a multiple of 4096; all zeroes.  name is copied.  NULL:
 * reported.
 */
extern struct sim_disk *sim_disk_new (struct sim *, const char *name,
                                      uint64_t size);
/* sim_free does it too.  Nothing may be in flight. */
extern void sim_disk_free (struct sim_disk *);

/* As member_open_file; MEMBER_CREATE makes an absent disk appear, all
 * zeroes.  NULL with ENOENT or ENXIO, not reported, where it is absent
 * or dead; with EWOULDBLOCK, reported, where it is locked.
 */
extern struct member *sim_disk_open (struct sim_disk *, unsigned flags);

/* No I/O completes until it is set free again.  The synchronous calls return
 * EIO meanwhile, because they can't wait.  A real disk would block the caller,
 * so a thread that must not block must not make them.
 */
extern void sim_disk_hang (struct sim_disk *, bool hang);

/* Reads of these blocks fail with EIO until they are written whole. */
extern void sim_disk_set_bad (struct sim_disk *, uint64_t off, uint64_t len);
/* Does a read meet one?  A write that a crash has cut may be stable there. */
extern bool sim_disk_is_bad (const struct sim_disk *, uint64_t off,
                             uint64_t len);

/* Is some change of these bytes not durable, in flight or completed? */
extern bool sim_disk_is_unflushed (const struct sim_disk *, uint64_t off,
                                   uint64_t len);
/* Was one that completed lost by a flush that failed? */
extern bool sim_disk_is_lost (const struct sim_disk *, uint64_t off,
                              uint64_t len);
/* Is some not durable, by a process that was killed since? */
extern bool sim_disk_is_left (const struct sim_disk *, uint64_t off,
                              uint64_t len);

/* All of it becomes this, durably: a copy that was made earlier. */
extern void sim_disk_restore (struct sim_disk *, const uint8_t *image);

/* Silent corruption: change what is stored, durably. */
extern void sim_disk_poke (struct sim_disk *, const void *buf, size_t len,
                           uint64_t off);

#endif
