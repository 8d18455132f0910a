/* gpuraid test: a member on a server that loses what was not flushed, and what
 * was said.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TEST_NBD_LOSSY_H
#define GPURAID_TEST_NBD_LOSSY_H

#include "tests/member/nbd-store.h"

#define SIZE (UINT64_C (24) << 20)

extern struct loop *lossy_loop;
extern struct member *m;
extern uint8_t *want;           /* what was acknowledged */

/* For cmocka. */
extern int begin_lossy (void **state);
extern int finish_lossy (void **state);

/* A random number below n; begin_lossy has set the seed. */
extern uint64_t draw_below (uint64_t n);

/* One I/O; its error. */
extern int one (enum io_kind kind, void *buf, uint64_t len, uint64_t off);

/* Is all that was acknowledged on the disk, after a failure of its power? */
extern void assert_on_disk (void);

/* Was this said to the user; or with -v? */
extern bool was_said (const char *text);
extern bool has_details (const char *text);

/* To connect; and the longest pause before the next one, in ns. */
extern unsigned tries (void);
extern uint64_t longest_pause;

#endif
