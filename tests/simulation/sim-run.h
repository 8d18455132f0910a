/* gpuraid: tests: one run of the simulation.
 *
 * Shared by tests/simulation/test-simulation.c, the files beside it, and those
 * of the folders below.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TEST_SIM_RUN_H
#define GPURAID_TEST_SIM_RUN_H

#include "tests/sim/sim-array.h"
#include "tests/sim/sim-model.h"
#include "tests/sim/sim-stats.h"

#define MAX_CLIENTS 16u
#define MAX_REPLACED 36u        /* disks; the end needs some more */
#define MAX_SESSIONS 16u
#define SECONDS UINT64_C (1000000000)

struct run;

struct client {
  struct sim_request q;         /* first */
  struct run *run;
  uint8_t *buf;
  struct model_write *w;
  uint64_t began;               /* the model's time */
  uint64_t start;               /* ns, when the request was begun */
  uint64_t since;               /* ns, when it was last seen to go on */
  uint64_t pos;                 /* of the request, then */
  bool busy;
  bool had_failed;              /* the array, when this began */
};

struct sim_command {
  struct sim_request q;         /* first */
  struct run *run;
  char why[ARRAY_WHY_LEN];
};

#define SIM_SCRUBS 64u

struct run {
  uint64_t seed;
  struct sim_array *sa;
  struct sim *sim;
  struct model *model;
  struct geometry g;
  unsigned n;
  unsigned blocks_less;         /* than whole stripes */
  bool journal;                 /* no row is torn, no slot takes a block with
                                 * it */
  bool sums;                    /* with checksums */
  uint64_t max_len;             /* of a request */
  uint8_t *buf;                 /* the whole array */
  struct client client[MAX_CLIENTS];
  unsigned nr_clients, nr_busy;
  unsigned nr_left;             /* requests to be made in this session */
  unsigned nr_commands;         /* under way */

  unsigned rows_per_stripe;
  uint64_t nr_rows;
  uint64_t max_rows, max_size;  /* when it has grown */
  uint64_t sure_size;           /* the least that it has */
  uint64_t spare_len;           /* bytes of each disk, for that */
  bool *torn;                   /* per row */
  bool any_torn;
  uint64_t lost;                /* slots, as last seen */
  bool first;                   /* no member of the last slot was active since
                                 * it was added, as last seen */

  unsigned trouble;             /* how much goes wrong */
  bool may_exceed;              /* more than m members at once, too */
  bool over;                    /* that has happened */
  bool may_lose_rows;           /* blocks that can't be read on more */
  bool rows_lost;               /* that has happened, or a region was not
                                 * synced: EIO is allowed */
  bool forced;                  /* it was ever started by force */
  bool is_tried;                /* what happens now will not have been:
                                 * sim-back.c's */
  bool chaos_on, may_crash;
  bool use_spares;
  uint64_t spare_delay_ns;
  struct hedge_policy hedge;
  bool thread;                  /* the array has an engine thread */
  unsigned spare_seats;         /* how many more members may be open than
                                 * are found */
  uint64_t faulty;              /* disks that may lose writes, or hang */
  uint64_t unreadable;          /* disks with read errors or bad blocks */
  uint64_t ever_unreadable;     /* of those, and of those without now */
  uint64_t sums_lost;           /* perhaps, as a page could not be read: of
                                 * those */
  uint64_t spoilt;              /* of those: with bad blocks */
  bool any_rot;                 /* something was corrupted silently */
  uint64_t rotted_bitmap;       /* disks: a page */
  uint64_t rotted_copy;         /* disks: of a superblock; perhaps written
                                 * since */
  uint8_t *old_data;            /* all data of a disk, as it once was, or
                                 * NULL */
  unsigned old_disk;            /* its number */
  uint64_t old_rows;
  bool flaky;                   /* some read errors were of a moment */
  bool *bad_row;                /* some block was bad once */
  uint64_t bad_targets;         /* disks: with write errors */
  uint64_t full;                /* disks without space */
  uint64_t full_long;           /* of those: for minutes */
  bool stayed_full;             /* so was one in this session */
  uint64_t full_ended;          /* ns: from then on that is no excuse */
  uint64_t long_hung;           /* disks that hang for very long */

  /* As it was when it crashed. */
  uint64_t was_active;          /* disks */
  uint64_t in_force;            /* disks, of the record in force */
  bool confirmed;               /* its base has the same members (M18) */
  uint64_t was_lost;            /* slots */
  uint64_t was_first;           /* of those, one that was never active */
  uint64_t was_new;             /* disks: the member that fills that */
  unsigned promised;            /* slots that might be lost */
  struct sim_disk *at[2][MAX_SLOTS];    /* active members that had not failed;
                                         * [1]: the second ones of slots */
  bool two_active;              /* some slot had two */
  bool killed;                  /* and not all that is visible is durable */
  bool degraded;                /* the record in force had too few */
  uint64_t marked;              /* disks: those of at */
  bool *was_open;               /* by region: these had the dirty bit */
  uint64_t *was_lost_at;        /* by row: roles with no content */
  uuid_bytes array_uuid;

  bool two_now;                 /* some slot has two active members */
  uint64_t scrub_state;         /* sim-scrub.c's */
  uint64_t end_state;           /* sim-end.c's */
  uint64_t rest_state;          /* sim-rest.c's */
  uint64_t several_state;       /* sim-command.c's */
  uint64_t space_state;         /* sim-clients.c's */
  uint64_t shape_state;         /* sim-shape.c's, and the next three */
  unsigned start_m, max_m;      /* it gets no more parity than that */
  unsigned start_k, max_k;      /* nor data */
  uint64_t shapes;              /* what records have that may be in force */
  bool resizes;                 /* a data slot is being added or taken back:
                                 * in this change of the record */
  uint64_t sure_frontier;       /* that is durable: a recovery may find more,
                                 * and the next one not */
  bool rest_rotted;             /* so has a copy of a superblock, since it was
                                 * last open */
  uint64_t ringless;            /* disks: headers of their rings have rotted,
                                 * and the rings have not begun anew */
  enum membership_phase record_phase;   /* as last seen */
  int recovery_phase;           /* sim-recovery.c's, as last seen; -1: none */
  bool no_scrubs;               /* but those at the end */
  struct sb_scrub scrub[SIM_SCRUBS];    /* what was to be saved, as last
                                         * seen; newest last */
  unsigned nr_scrub;
  unsigned scrub_saved;         /* that or a later one is on the disks */
  unsigned scrub_saving;        /* likewise, when scrub_saves has ended */
  uint64_t scrub_saves;
  bool scrub_writable;
  struct bitmap_page *page;     /* as last seen on its way; by number */
  uint64_t *unsynced;           /* a bit a region, as last seen */
  uint64_t nr_unsynced;

  /* Those that wrote, from 1 on: sim-back.c's. */
  struct {
    uint64_t epoch;             /* the last that a member may know */
    bool clean;                 /* it was stopped */
  } session[MAX_SESSIONS];
  unsigned nr_sessions;
  uint8_t *written_in;          /* by stripe: the last that wrote to it */
  struct rules *rules;          /* sim-rules.c's */
  struct copies *copies;        /* sim-copies.c's */
  uint64_t older;               /* disks that are older copies, and were not
                                 * active since */
  unsigned older_session;       /* the first in which one of them was made */
};

/* ---- sim-run.c ---- */

/* Say what is wrong and how to replay it, and exit. */
extern void run_die (struct run *r, const char *fmt, ...)
  __attribute__ ((format (printf, 2, 3), noreturn));
/* With SIM_VERBOSE. */
extern void run_say (struct run *r, const char *fmt, ...)
  __attribute__ ((format (printf, 2, 3)));

/* Drawn from the seed. */
extern uint64_t run_below (struct run *r, uint64_t n);
extern bool run_percent (struct run *r, unsigned n);

/* One event; false: it crashed, or there is none. */
extern bool run_step (struct run *r);
/* Crash within this many moments, with a chance in percent. */
extern void run_crash_soon (struct run *r, unsigned chance, unsigned moments);

/* Check whether another slot is not active any more: the torn rows of regions
 * that are not synced lose its blocks.
 */
extern void run_look_at_slots (struct run *r);
/* If the array has failed, check that it may.  Call it before the next event,
 * which may end the reason.
 */
extern void run_look_at_failure (struct run *r);
extern bool run_is_unsynced (const struct array *a, uint64_t pos);
/* The torn rows lose their blocks on a slot; synced_too: all of them. */
extern void run_lose_slot (struct run *r, unsigned slot, bool synced_too);
/* It has stopped: which rows were being written? */
extern void run_note_torn (struct run *r);

/* Where the block of a role of a row is in the array.  False: it has none, as
 * the row is dead or the role is parity, or zeroes by rule.
 */
extern bool run_address (const struct run *r, uint64_t row, unsigned role,
                         uint64_t *off);

/* Slots whose disks are among these; the disks of active members. */
extern uint64_t run_slots_of (const struct run *r, uint64_t disks);
extern uint64_t run_active_disks (const struct run *r);
/* sim-session.c: those of the record, of the coming one, which may count
 * too, and of one that some have accepted, but which was not applied yet.
 */
extern uint64_t session_coming (const struct run *r);
/* Slots with no active member, and none being rebuilt. */
extern uint64_t run_empty_slots (const struct array *a);

/* I/Os that change something, on all disks so far. */
extern uint64_t run_changes_made (const struct run *r);

/* ---- sim-replay.c ---- */

#define REPLAY_LEN 2000u

/* Note what is set in the environment, and the program's name, which stays the
 * caller's.
 */
extern void replay_init (const char *argv0);
/* How to repeat a seed: a line with its newline.  Also in a signal handler. */
extern void replay_line (uint64_t seed, char *line, size_t len);

/* ---- sim-draw.c ---- */

/* Draw a geometry and limits, and set the latter.  Whole stripes. */
extern uint64_t draw_array (struct run *r);
/* Print the drawn values, in one line. */
extern void draw_describe (const struct run *r, char *text, size_t len);

/* ---- sim-check.c ---- */

/* The array is open: rows that are not being written are code words. */
extern void check_rows (struct run *r, const char *when);
/* The same for regions that were resynced since the last look. */
extern void check_synced (struct run *r);
/* The array has stopped, or is to be left as after a crash. */
extern void check_note_end (struct run *r, bool clean);
/* After sim_crash. */
extern void check_closed (struct run *r);
/* A slot is not active any more: check that neither lack of space nor a pause
 * is the reason.
 */
extern void check_ejected (struct run *r, unsigned slot);
/* It was opened again. */
extern void check_open (struct run *r);

/* ---- sim-back.c ---- */

/* A client writes; a session that writes begins, and ends. */
extern void back_note_write (struct run *r, uint64_t off, uint64_t len);
extern void back_note_session (struct run *r);
extern void back_note_end (struct run *r, bool clean);
/* The array was opened by going back: check what must be right, and stop. */
extern void back_check (struct run *r, uint64_t opened);

/* ---- faults/sim-copies.c ---- */

extern struct copies *copies_new (void);
extern void copies_free (struct copies *c);
/* A session goes on: perhaps copies are made. */
extern void copies_soon (struct run *r);
/* It ends; coming: disks that are active in a record on its way, which may
 * count.
 */
extern void copies_note_end (struct run *r, bool clean, uint64_t coming);
/* The array is closed: perhaps copies are made. */
extern void copies_at_rest (struct run *r);
/* A disk is to be taken again: perhaps it is an older copy. */
extern void copies_readd (struct run *r, unsigned disk);
/* The array is closed.  True if some were given back. */
extern bool copies_give_back (struct run *r);
/* It was opened. */
extern void copies_check_open (struct run *r);

/* ---- sim-rules.c ---- */

/* Check each I/O of the run from now on. */
extern struct rules *rules_new (struct run *r);
/* Have a copy of the superblock and the other one of its pair the same content
 * in an image of a disk, after the first sector, which has their numbers?
 */
extern bool rules_pair_is_alike (const struct sim_disk *d,
                                 const uint8_t *image, enum sb_copy c);
extern void rules_free (struct rules *rules);

/* ---- sim-clients.c ---- */

/* The next request, after a while, if any is left to be made. */
extern void client_next (struct client *c);
/* No request may take too long. */
extern void clients_check (struct run *r);

/* ---- faults/sim-allow.c ---- */

/* Not named in SIM_WITHOUT. */
extern bool allow_kind (const char *kind);
/* May this disk have faults too, of the kind that may lose writes, or only of
 * the kind that fail reads?  It is counted if so.
 */
extern bool allow_faulty (struct run *r, unsigned disk);
extern bool allow_unreadable (struct run *r, unsigned disk);
/* The same for one that is corrupted silently.  no_loss: only if its blocks are
 * never more than can be done without.
 */
extern bool allow_rot (struct run *r, unsigned disk, bool no_loss);
/* Members that are missing count too. */
extern void allow_absent (struct run *r);
/* May this disk, of a closed array, be of no use for a recovery? */
extern bool allow_at_rest (struct run *r, const struct sim_disk *d);
/* Something has changed: may rows be lost now? */
extern void allow_look (struct run *r);
/* The disk has bad blocks. */
extern void allow_bad_row (struct run *r, uint64_t row);
extern void allow_bad_blocks (struct run *r, const struct sim_disk *d);
/* May this request, which began then (ns), have failed so? */
extern bool allow_error (const struct run *r, const struct request *q,
                         uint64_t since);

/* ---- commands/sim-command.c ---- */

extern void command_fail (struct run *r, unsigned slot);
extern void command_replace (struct run *r, unsigned slot);
extern void command_spare (struct run *r);
extern void command_grow (struct run *r);
extern void command_parity (struct run *r);
extern void command_parity_cancel (struct run *r);
/* A spare, if there is one, else a new disk first. */
extern void command_widen (struct run *r);
extern void command_widen_cancel (struct run *r);
/* A disk that is not in use, if the one that is drawn is. */
extern void command_readd (struct run *r);
/* A rebuild or a resync is paused for a time. */
extern void command_pause (struct run *r);
/* A spare that is missing is taken out. */
extern void command_forget (struct run *r);
/* Some of these in one instant, in a quarter of the runs. */
extern void command_several (struct run *r);

/* ---- commands/sim-shape.c ---- */

/* Does the array of this run get more parity, or data? */
extern void shape_draw (struct run *r);
/* After each event, before all else is looked at; and when it was opened. */
extern void shape_look (struct run *r);
extern void shape_check_open (struct run *r);
/* The members of a slot that was never active. */
extern uint64_t shape_new_disks (const struct run *r);
/* A command, in some runs; and clients begin: perhaps one. */
extern void shape_command (struct run *r);
extern void shape_soon (struct run *r);

/* Likewise in the last session, whose members answer.  False: none. */
extern bool shape_changes_last (struct run *r);

/* ---- commands/sim-scrub.c ---- */

/* Look at where the scrub is, after each event; at a clean stop; and when the
 * array was opened again: what was saved is found.
 */
extern void scrub_look (struct run *r);
extern void scrub_note_stop (struct run *r);
extern void scrub_check_open (struct run *r);

/* An event: in some runs a scrub is started, paused or stopped, and again
 * later.
 */
extern void scrub_soon (struct run *r);
/* The array is whole: all of it is right.  False: a member has failed. */
extern bool scrub_last (struct run *r);
/* A scrub that only reads finds nothing. */
extern void scrub_finds_nothing (struct run *r, const char *what);

/* ---- sim-end.c ---- */

/* Slots on which a scrub of a healthy array may find something wrong: some
 * member was corrupted, or has blocks that can't be read.
 */
extern uint64_t end_spoilt_slots (const struct run *r);
/* The last session, of an array that is open: repair it, check every byte, and
 * stop it.
 */
extern void end_last (struct run *r);

/* ---- sim-recovery.c ---- */

/* Look at where a recovery is, after each event. */
extern void recovery_look (struct run *r);
/* Statistics: the array was opened, or is about to crash. */
extern void recovery_count_open (const struct run *r);
extern void recovery_count_crash (const struct run *r);

/* ---- faults/sim-trouble.c ---- */

/* A region is resynced: perhaps something goes wrong at once. */
extern void trouble_in_resync (struct run *r);
/* A record is on its way: likewise. */
extern void trouble_in_change (struct run *r);
extern void trouble_has_space (struct run *r, unsigned disk);
/* An event: something goes wrong, and again later. */
extern void trouble_start (void *run);
/* All disks work again, except for bad blocks and dead disks. */
extern void trouble_end (struct run *r);

/* ---- faults/sim-rot.c ---- */

/* Corrupt some of what is on a disk; have it lose, tear or misdirect writes. */
extern void rot_disk (struct run *r, unsigned disk);
extern void rot_writes (struct run *r, unsigned disk);
/* The array is not open: corrupt more of a disk that was corrupted before. */
extern void rot_at_rest (struct run *r);
/* It was opened, without a journal: what has rotted in regions that are not
 * synced counts as content now.
 */
extern void rot_look_at_open (struct run *r);
/* A session ends: add what the array found to the statistics. */
extern void rot_count (struct run *r);
/* Has a disk lost both copies of a record, since one rotted while the array
 * ran, and the write of the other was torn?  That may be too much.
 */
extern bool rot_lost_pair (struct run *r);

/* ---- faults/sim-rest.c ---- */

/* The array is closed, and is to be opened: what is beside the data may rot. */
extern void rest_rot (struct run *r);
/* Perhaps an opening of these disks does not get to its end. */
extern void rest_open (struct run *r, uint64_t which);
/* It was opened: what rotted may leave more of a member useless. */
extern void rest_look_at_open (struct run *r);
/* It has stopped, or is to be left as after a crash. */
extern void rest_note_end (struct run *r);

/* ---- sim-session.c ---- */

/* Open it somehow.  False: too much is permanently lost. */
extern bool session_start (struct run *r, bool readonly);
/* With all disks that there are.  False: it was refused. */
extern bool session_open (struct run *r, bool force, bool readonly);
/* From an array that is open to one that is not: by clients that only read, or
 * with all faults.
 */
extern void session_read (struct run *r);
extern void session_write (struct run *r);

/* Steps of a session. */

/* Until a condition holds; false: it crashed. */
extern bool session_until (struct run *r, bool (*condition) (struct run *),
                           uint64_t limit_ns, const char *what);
/* 0, a positive errno, or -1: it crashed.  A disk may be full for 420 seconds
 * meanwhile.
 */
extern int session_request (struct run *r, struct sim_request *q);
extern bool session_make_writable (struct run *r);
/* All of it; what can't be read, block by block.  False: it crashed. */
extern bool session_read_all (struct run *r);
/* False: it crashed or failed on the way. */
extern bool session_stop (struct run *r);

#endif
