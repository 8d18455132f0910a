/* gpuraid: results as a table or as JSON.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_BENCH_REPORT_H
#define GPURAID_BENCH_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include <json-c/json.h>

#include "bench/method.h"

/* One measurement.  Fields that do not apply are 0 or empty. */
struct row {
  char method[48];              /* "kernel:generic" */
  const char *code;             /* "rs" or "crs" */
  char op[24];                  /* "encode", "decode 4" */
  const char *metric;           /* "raw", "overall" */
  unsigned k, m, w;
  size_t cell_len, nr_rects;
  unsigned threads, slices;
  double seconds, low, high;    /* for coding everything once; the median */
  double data_len, all_len;     /* bytes of that: data; data and outputs */
  double ceiling;               /* data bytes a second, 0: none */
  double cpu_seconds;           /* -1: not measured */
  double p50, p90, p99;         /* seconds; only with latencies */
  char note[256];
  char why[BENCH_WHY_LEN];      /* not empty: not measured */
  bool wrong;                   /* and failed, because it gave wrong bytes */
};

enum report_kind {
  REPORT_RATES, REPORT_LATENCY, REPORT_VERIFY,
};

/* Rows are printed at once; with json all of them by report_end. */
struct report {
  FILE *fp;
  bool json;
  enum report_kind kind;
  struct json_object *top;      /* what JSON has beside the rows */
  struct row *rows;
  size_t nr_rows, room;
  size_t nr_measured, nr_wrong;
};

/* 0, or -1 reported. */
extern int report_begin (struct report *, FILE *fp, bool json,
                         enum report_kind);
/* A line above the table, and the same in JSON. */
extern void report_add (struct report *, const char *key,
                        struct json_object *value);
extern int report_row (struct report *, const struct row *);
extern int report_end (struct report *, bool with_rows);
extern void report_free (struct report *);

/* Rounded to the digits that a measurement has. */
extern void report_double (struct json_object *, const char *key, double);
/* "65536" as "64K". */
#define REPORT_SIZE_LEN 24
extern char *report_size (size_t bytes, char *buf);

/* A plot of the rates, or of median latencies, in FILE.svg or FILE.png by
 * gnuplot: a line for each method, over the axis with the most values.  0, or
 * -1 reported.
 */
extern int plot_rows (const struct row *, size_t nr, bool latency,
                      const char *file);

#endif
