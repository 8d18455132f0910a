/* gpuraid: tests: run on both loops, io_uring and threads: members on tmpfs, on
 * a disk, and one without a file descriptor; and I/Os on them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TEST_LOOP_BOTH_H
#define GPURAID_TEST_LOOP_BOTH_H

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "member/io.h"

#define BLOCK 4096u
#define NR_LANES 4              /* submitting threads */
#define LANE_BLOCKS 64          /* of each member, for each lane alone */
#define SIZE (NR_LANES * LANE_BLOCKS * BLOCK)
#define NR_MEMBERS 5            /* 2 on tmpfs, 3 on a disk; the last one
                                 * has no file descriptor */
#define LANE_BUFFER (64 * BLOCK)

/* cmocka's assertions work in the main thread only. */
#define CHECK(cond)                                                     \
  do {                                                                  \
    if (!(cond)) {                                                      \
      fprintf (stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);       \
      abort ();                                                         \
    }                                                                   \
  } while (0)

/* Of the group that runs. */
extern struct loop *loop;
extern struct member *members[NR_MEMBERS];
extern uint8_t *buffer;         /* NR_LANES * LANE_BUFFER, registered with the
                                 * loop */

/* For a group: the loop, the buffer and the members. */
extern int start_uring (void **state);
extern int start_threads (void **state);
extern int stop_loop (void **state);
/* Is there io_uring?  If not, prints that. */
extern bool with_uring (void);

/* Run these on one loop and then on the other: how many failed. */
#define run_on_both(tests)                                              \
  (cmocka_run_group_tests_name ("threads", tests, start_threads,        \
                                stop_loop) +                            \
   (with_uring () ?                                                     \
    cmocka_run_group_tests_name ("io_uring", tests, start_uring,        \
                                 stop_loop) : 0))

/* A new, empty file for member i; the caller's to put into members. */
extern struct member *open_member (unsigned i);

/* Counts what is in flight, and waits for it. */
struct group {
  pthread_mutex_t lock;
  pthread_cond_t done;
  unsigned left;
};
#define GROUP_INIT { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0 }

extern void group_done (struct group *g);
extern void group_wait (struct group *g);

/* The loop leaves the vector as it is, which done checks. */
struct test_io {
  struct io io;
  struct group *group;
  struct iovec iov[8], iov_before[8];
};

/* One buffer, or none where buf is NULL. */
extern void init_io (struct test_io *t, struct group *g, struct member *m,
                     enum io_kind kind, uint64_t off, void *buf,
                     uint64_t len);
/* Split the vector into pieces of whole blocks, and empty ones. */
extern void split_vector (struct test_io *t, unsigned *rnd);
/* Submit them, 64 at most and all of one group, and wait. */
extern void run_ios (struct test_io *t, size_t nr);
/* One; its error. */
extern int run_io (struct member *m, enum io_kind kind, uint64_t off,
                   void *buf, uint64_t len);

#endif
