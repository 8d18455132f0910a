/* gpuraid: tests: files to make arrays of, and the messages about them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TEST_SCRATCH_H
#define GPURAID_TEST_SCRATCH_H

#include <stdint.h>

#include "array/config/config.h"
#include "array/open/assemble.h"

/* A fresh folder, which is then the current one; scratch_end removes it. */
extern void scratch_start (void);
extern void scratch_end (void);
/* The same, for cmocka. */
extern int scratch_setup (void **state);
extern int scratch_teardown (void **state);

extern void scratch_file (const char *name, uint64_t size);
/* One for each letter. */
extern void scratch_files (const char *names, uint64_t size);
/* Fill bytes of it. */
extern void scratch_put (const char *name, uint64_t off, const void *data,
                         uint64_t len);
/* A number that changes with any byte, or the length; 0 if there is no
 * such file.
 */
extern uint64_t scratch_sum (const char *name);
/* Of all files here, their names too. */
extern uint64_t scratch_sum_all (void);

/* Messages since scratch_said: how many, and the last of each kind. */
extern unsigned said_errors, said_notices;
extern char said_error[2048], said_notice[2048];
extern void scratch_said (void);
/* Exactly one error was said, in one line, and it contains text. */
extern void assert_said (const char *text);

/* "k=4 m=2 a b" to a configuration, completed; it must be a good one. */
extern void scratch_config (struct config *c, const char *words);

/* What the plugin does when it starts, create=missing included.  0: the
 * caller has assembly_free to call.  -1: exactly one error was said.
 */
extern int scratch_open (const char *words, struct assembly *a);

/* create_array.  -1: exactly one error was said. */
extern int scratch_create (const char *words, bool force);
extern void scratch_created (const char *words, bool force);
/* Refused, and nothing was changed, made or left behind. */
extern void scratch_refused (const char *words, bool force, const char *why);
extern void scratch_opens (const char *words);

#endif
