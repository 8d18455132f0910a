/* gpuraid: what the files of the simulation share.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_SIM_INTERNAL_H
#define GPURAID_SIM_INTERNAL_H

#include <stdlib.h>

#include "common/threads/running.h"
#include "member/sim/sim.h"

struct event {
  uint64_t at_ns, no;           /* the order: by time, then as scheduled */
  void (*fn) (void *);
  void *arg;
};

struct sim {
  struct loop loop;             /* first: the loop is the sim */
  uint64_t random[4];
  uint64_t now_ns;              /* of the events; pauses count */
  struct running running;       /* of timers, and what the loop says */
  bool timers_first;            /* those that are due */
  struct event *events;         /* a heap, the next event on top */
  size_t nr_events, max_events;
  uint64_t next_no;
  struct timer *timers;         /* armed, the next to fire first */
  struct list disks;
  struct list others;           /* struct flight of members of other kinds */
  uint64_t moments, crash_at;   /* crash_at: moments then; 0: never */
  sim_watch_fn *watch;          /* or NULL */
  void *watch_opaque;
  bool crashed;
  bool verbose;
  uint64_t trace;
};

/* An I/O in flight; when a write has completed, its data, until a flush has
 * made that durable.
 */
struct flight {
  struct list link;             /* in_flight or cached of its disk */
  struct sim_disk *disk;        /* NULL: a member of another kind */
  struct io *io;                /* NULL once completed, or synchronous */
  enum io_kind kind;
  uint64_t off, len;            /* bytes */
  uint8_t *data;                /* of a write; NULL: zeroes */
  uint64_t mark;                /* flush: completed writes when it was
                                 * submitted; cached: its own number */
  unsigned incarnation;         /* of the disk, when it was submitted */
  bool parked;                  /* came due while its disk hung */
};

static inline void
flight_free (struct flight *f)
{
  free (f->data);
  free (f);
}

/* ---- clock.c -------- */

extern void sim_seed (struct sim *sim, uint64_t seed);
/* Count a crash point; true if everything stops here. */
extern bool sim_moment (struct sim *sim);
/* For those that look on. */
extern void sim_look (struct sim_disk *d, enum io_kind kind,
                      const uint8_t *data, uint64_t len, uint64_t off);
/* Stir numbers into the trace. */
extern void sim_note (struct sim *sim, uint64_t a, uint64_t b);

/* ---- disk.c -------- */

extern struct flight *flight_new (struct sim_disk *d, enum io_kind kind,
                                  uint64_t off, uint64_t len);
/* With the data of a write copied. */
extern struct flight *flight_of (struct sim_disk *d, struct io *io);

/* Schedule io.  sim_disk_carry_out: at once, without done.  The latter
 * and sim_disk_write own f.  0 or a positive errno.
 */
extern void sim_disk_submit (struct sim_disk *d, struct io *io);
extern int sim_disk_carry_out (struct sim_disk *d, struct flight *f,
                               struct io *io);
extern int sim_disk_read (struct sim_disk *d, void *buf, uint64_t len,
                          uint64_t off);
extern int sim_disk_write (struct sim_disk *d, struct flight *f);
extern int sim_disk_flush (struct sim_disk *d, uint64_t mark);
extern void sim_disk_blank (struct sim_disk *d);

/* ---- store.c -------- */

/* The bytes of a write for which there is space. */
extern uint64_t sim_store_room (const struct sim_disk *d,
                                const struct flight *f);
/* A write reaches the cache: visible from now on, durable later.  torn: some of
 * its sectors do.  The disk owns the flight then.
 */
extern void sim_store_write (struct sim_disk *d, struct flight *f, bool torn);
/* Completed writes up to this number are durable. */
extern void sim_store_flush (struct sim_disk *d, uint64_t mark);
/* Or not, as the flush failed: they read as before, but no other flush makes
 * them durable, and a crash leaves parts of them.
 */
extern void sim_store_doom (struct sim_disk *d, uint64_t mark);

/* What a power failure leaves of writes that are not durable. */
struct crash {
  uint8_t cached, in_flight;    /* enum survival */
};
extern void sim_draw_crash (struct sim *sim, struct crash *c);
extern void sim_disk_crash (struct sim_disk *d, const struct crash *c);
/* The process dies, and the power stays: what was written is still visible, and
 * still not durable.
 */
extern void sim_disk_kill (struct sim_disk *d, const struct crash *c);

/* ---- member.c -------- */

extern bool sim_is_disk (const struct member *m);
extern struct sim_disk *sim_disk_of (const struct member *m);

#endif
