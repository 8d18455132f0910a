/* gpuraid: what sim.c and sim-disk.c share.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_SIM_PRIVATE_H
#define GPURAID_SIM_PRIVATE_H

#include "member/sim.h"

struct event {
  uint64_t at_ns, no;           /* the order: by time, then as scheduled */
  void (*fn) (void *);
  void *arg;
};

struct sim {
  struct loop loop;             /* first: the loop is the sim */
  uint64_t random[4];
  uint64_t now_ns;
  struct event *events;         /* a heap, the next event on top */
  size_t nr_events, max_events;
  uint64_t next_no;
  struct timer *timers;         /* armed, the next to fire first */
  struct list disks;
  struct list others;           /* struct flight of members of other kinds */
  uint64_t moments, crash_at;   /* crash_at: moments then; 0: never */
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
  bool parked;                  /* came due while its disk hung */
};

/* Count a crash point; true if everything stops here. */
extern bool sim_moment (struct sim *sim);
/* Stir numbers into the trace. */
extern void sim_note (struct sim *sim, uint64_t a, uint64_t b);

/* ---- sim-disk.c ---- */

extern struct flight *flight_new (struct sim_disk *d, enum io_kind kind,
                                  uint64_t off, uint64_t len);
/* With the data of a write copied. */
extern struct flight *flight_of (struct sim_disk *d, struct io *io);
extern void flight_free (struct flight *f);

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

/* The content after a crash of blocks without durable data. */
struct crash {
  uint8_t cached, in_flight;    /* enum survival */
};
extern void sim_draw_crash (struct sim *sim, struct crash *c);
extern void sim_disk_crash (struct sim_disk *d, const struct crash *c);

/* ---- sim-member.c ---- */

extern bool sim_is_disk (const struct member *m);
extern struct sim_disk *sim_disk_of (const struct member *m);

#endif
