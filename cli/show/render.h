/* gpuraid: the status of a running array, for a person.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_SHOW_RENDER_H
#define GPURAID_SHOW_RENDER_H

#include <stdio.h>

#include <json-c/json.h>

/* The status for a person, in three parts; lines of any width. */
extern void render_array (FILE *fp, struct json_object *status);
extern void render_members (FILE *fp, struct json_object *status);
extern void render_counters (FILE *fp, struct json_object *status);
/* "/dev/nbd0 by the kernel's driver, mounted on /mnt"; the status has it. */
extern void render_attached (FILE *fp, struct json_object *status);
/* ", cuda:0 NVIDIA H200 failed", for each failed part of the coder. */
extern void render_failed_names (FILE *fp, struct json_object *status);
/* A line of a log, without a newline: values that only change with an event.
 */
extern void render_line (FILE *fp, struct json_object *status);
/* The array in one line, with its newline. */
extern void render_short (FILE *fp, const char *name,
                          struct json_object *status);
/* The state in a word: of the status, or that it is healthy and has reasons not
 * to be.
 */
#define RENDER_DAMAGED "damaged"
extern const char *render_word (struct json_object *status);
/* "degraded (1 more member may fail)". */
extern void render_state (FILE *fp, struct json_object *status);
/* What may be under way, in the order in which it is shown.  Each is a key of
 * the status.
 */
#define RENDER_NR_WORK 5u
extern const char *const render_work[RENDER_NR_WORK];
/* The object with how far that is; NULL: it is not.  How far a member for
 * parity is filled is in the rebuild, and not in the reshape.
 */
extern struct json_object *render_work_at (struct json_object *status,
                                           unsigned i);
/* A line with a bar for each of them, and what the reshape is. */
extern void render_bars (FILE *fp, struct json_object *status);
/* "36.1 %", of that width and " %".  Below 1 it has more digits: a slow rebuild
 * would show 0.0 for hours.
 */
extern void render_percent (FILE *fp, struct json_object *progress, int width);
/* "36.1 %  210 MiB/s  10 s left". */
extern void render_speed (FILE *fp, struct json_object *progress);
/* "36.1 %  1.2 GiB of 3.4 GiB  210 MiB/s  10 s left". */
extern void render_progress (FILE *fp, struct json_object *progress);

#endif
