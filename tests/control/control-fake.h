/* gpuraid: tests: the control socket on a fake array, and a client of raw
 * bytes.
 *
 * The array is degraded and has odd paths; it only records commands.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TEST_CONTROL_FAKE_H
#define GPURAID_TEST_CONTROL_FAKE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <json-c/json.h>

#include "control/control.h"
#include "control/line.h"

/* Seconds without anything until a test fails. */
#define CONTROL_HANG_S 120

/* For a group: a folder, and the path of a socket in it. */
extern int make_control_dir (void **state);
extern int remove_control_dir (void **state);
/* For each test: no messages, no commands so far, and clients that have enough
 * time for their last reply.
 */
extern int reset_fake (void **state);

extern char control_dir[64], control_path[80];

/* A server at control_path; control_stop ends it. */
extern struct control *start_control (void);

struct fake {
  pthread_mutex_t lock;

  /* With lock held; after a reply, by the client that got it. */
  char which[256], new_path[256];       /* of the last command */
  bool force;                   /* or, of a scrub, repair */
  bool any_room;
  bool full;                    /* what readd says */
  enum array_scrub_command scrub;
  enum array_shape_command shape;
  bool of_data;                 /* that was of one more data member */
  bool paused;                  /* the rebuild */
  uint64_t rate;
  unsigned nr_commands;
  bool finished, healthy;       /* wait ends; and then says this, */
  char failed[64];              /* and this */
  unsigned connections;

  /* Any thread. */
  atomic_uint nr_waiting;       /* in wait */
  atomic_uint nr_cancelled;     /* gave up before it was finished */
  atomic_uint nr_freed;         /* status, all of it used */
  atomic_uint nr_stops, nr_disconnects;
  atomic_bool with_engines;     /* status has some */
};

extern struct fake fake;

/* Errors since assert_error, which takes one that contains part. */
extern atomic_uint control_errors;
extern void assert_error (const char *part);

/* ---- a client of raw bytes ------------------------------------------ */

/* A connection; the caller's to close. */
extern int dial (void);
/* Send a line. */
extern void put_line (int fd, const char *text);
/* The next reply, or NULL at the end; the caller's. */
extern struct json_object *get_reply (struct line_buf *b, int fd);

extern bool reply_is_ok (struct json_object *reply);
/* The next refusal. */
extern const char *reply_message (struct json_object *reply);

/* Ask over a new connection; the caller frees the reply. */
extern struct json_object *ask (const char *text);
extern void assert_ok (const char *text);
/* Refused, and part of why. */
extern void assert_refused (const char *text, const char *part);

/* Wait for a number of the fake array's, for 10 seconds at most. */
extern void until (atomic_uint *n, unsigned value);

#endif
