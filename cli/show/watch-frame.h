/* gpuraid: one screen of gpuraid watch.
 *
 * Pure: from two statuses to text.  cli/show/watch.c asks, and
 * cli/show/watch-term.c has the terminal.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CLI_WATCH_FRAME_H
#define GPURAID_CLI_WATCH_FRAME_H

#include <stdbool.h>
#include <stdio.h>

#include <json-c/json.h>

struct watch_screen {
  unsigned columns, rows;
  bool colour;
};

struct watch_sample {
  struct json_object *status;   /* NULL: none yet */
  double at;                    /* seconds */
};

/* At most rows lines of at most columns characters, with a newline between
 * lines and none at the end.  With colour there are also the codes for that.
 * Rates are from last to now.
 */
extern void watch_frame (FILE *fp, const struct watch_sample *now,
                         const struct watch_sample *last,
                         const struct watch_screen *screen);

#endif
