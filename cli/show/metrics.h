/* gpuraid: metrics in the text format of Prometheus.
 *
 * cli/show/metrics.c asks the arrays; cli/show/metrics-text.c writes what they
 * say.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CLI_METRICS_H
#define GPURAID_CLI_METRICS_H

#include <stdio.h>

#include <json-c/json.h>

struct metrics_source {
  char *array;                  /* the label "array"; owned */
  struct json_object *status;   /* NULL: the server does not answer; owned */
};

/* Each family once, with its HELP and TYPE lines, then its samples of all
 * arrays.  A family of which no status has anything is left out.
 */
extern void metrics_write (FILE *fp, const struct metrics_source *source,
                           unsigned nr);

#endif
