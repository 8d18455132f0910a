/* gpuraid: print rows.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>
#include <string.h>

#include "bench/report.h"
#include "common/bits.h"
#include "common/log.h"

char *
report_size (size_t bytes, char *buf)
{
  static const char unit[] = "\0KMG";
  unsigned u = 0;

  while (u < 3 && bytes > 0 && bytes % 1024 == 0) {
    bytes /= 1024;
    u++;
  }
  snprintf (buf, REPORT_SIZE_LEN, "%zu%.1s", bytes, &unit[u]);
  return buf;
}

int
report_begin (struct report *r, FILE *fp, bool json, enum report_kind kind)
{
  *r = (struct report) { .fp = fp, .json = json, .kind = kind };
  r->top = json_object_new_object ();
  if (r->top == NULL)
    log_error ("json_object_new_object: no memory");
  return r->top ? 0 : -1;
}

void
report_add (struct report *r, const char *key, struct json_object *value)
{
  if (!r->json)
    fprintf (r->fp, "# %s: %s\n", key,
             json_object_is_type (value, json_type_string)
             ? json_object_get_string (value)
             : json_object_to_json_string_ext (value, JSON_C_TO_STRING_SPACED |
                                               JSON_C_TO_STRING_NOSLASHESCAPE));
  json_object_object_add (r->top, key, value);
}

static void
print_head (const struct report *r)
{
  fprintf (r->fp, "%-22s %-10s %-7s %-4s %3s %3s %1s %7s %6s %3s", "engine",
           "op", "", "code", "k", "m", "w", "cell", "rects", "thr");
  if (r->kind == REPORT_RATES)
    fprintf (r->fp, " %9s %9s %6s %8s %6s\n", "GB/s", "k+m GB/s", "share",
             "CPU s/GB", "spread");
  else if (r->kind == REPORT_LATENCY)
    fprintf (r->fp, " %9s %9s %9s %9s %9s\n", "p50 us", "p90 us", "p99 us",
             "min us", "max us");
  else
    fprintf (r->fp, "\n");
}

static void
print_rate (FILE *fp, const struct row *row)
{
  double rate = row->data_len / row->seconds;

  fprintf (fp, " %9.3f %9.3f", rate / 1e9, row->all_len / row->seconds / 1e9);
  if (row->ceiling > 0)
    fprintf (fp, " %5.1f%%", 100 * rate / row->ceiling);
  else
    fprintf (fp, " %6s", "-");
  if (row->cpu_seconds >= 0)
    fprintf (fp, " %8.4f", row->cpu_seconds / row->data_len * 1e9);
  else
    fprintf (fp, " %8s", "-");
  fprintf (fp, " %5.1f%%", 100 * (row->high - row->low) / row->seconds);
}

static void
print_row (const struct report *r, const struct row *row)
{
  char size[REPORT_SIZE_LEN];

  fprintf (r->fp, "%-22s %-10s %-7s %-4s %3u %3u %1u %7s %6zu %3u",
           row->method, row->op, row->metric, row->code, row->k, row->m,
           row->w, report_size (row->cell_len, size), row->nr_rects,
           row->threads);
  if (row->why[0])
    fprintf (r->fp, " %s%s", row->wrong ? "WRONG: " : "- ", row->why);
  else if (r->kind == REPORT_RATES)
    print_rate (r->fp, row);
  else if (r->kind == REPORT_LATENCY)
    fprintf (r->fp, " %9.1f %9.1f %9.1f %9.1f %9.1f", row->p50 * 1e6,
             row->p90 * 1e6, row->p99 * 1e6, row->low * 1e6, row->high * 1e6);
  else
    fprintf (r->fp, " right");
  if (row->note[0])
    fprintf (r->fp, "  (%s)", row->note);
  fprintf (r->fp, "\n");
  fflush (r->fp);
}

int
report_row (struct report *r, const struct row *row)
{
  if (r->nr_rows == r->room) {
    size_t room = MAX (64, 2 * r->room);
    struct row *rows = realloc (r->rows, room * sizeof *rows);

    if (rows == NULL) {
      log_error ("realloc: %m");
      return -1;
    }
    r->rows = rows;
    r->room = room;
  }
  if (!r->json) {
    if (r->nr_rows == 0)
      print_head (r);
    print_row (r, row);
  }
  r->rows[r->nr_rows++] = *row;
  r->nr_measured += row->why[0] == '\0';
  r->nr_wrong += row->wrong;
  return 0;
}

static void
add_text (struct json_object *o, const char *key, const char *text)
{
  if (text && text[0])
    json_object_object_add (o, key, json_object_new_string (text));
}

static void
add_number (struct json_object *o, const char *key, uint64_t n)
{
  json_object_object_add (o, key, json_object_new_int64 (n));
}

/* Further digits are noise. */
void
report_double (struct json_object *o, const char *key, double x)
{
  char text[40];

  snprintf (text, sizeof text, "%.6g", x);
  json_object_object_add (o, key, json_object_new_double_s (x, text));
}

static void
add_measured (struct json_object *o, const struct row *row,
              enum report_kind kind)
{
  double rate = row->data_len / row->seconds;

  if (kind == REPORT_LATENCY) {
    report_double (o, "p50_us", row->p50 * 1e6);
    report_double (o, "p90_us", row->p90 * 1e6);
    report_double (o, "p99_us", row->p99 * 1e6);
    report_double (o, "min_us", row->low * 1e6);
    report_double (o, "max_us", row->high * 1e6);
    return;
  }
  if (kind == REPORT_VERIFY)
    return;
  report_double (o, "seconds", row->seconds);
  report_double (o, "gb_per_s", rate / 1e9);
  report_double (o, "all_gb_per_s", row->all_len / row->seconds / 1e9);
  if (row->ceiling > 0) {
    report_double (o, "ceiling_gb_per_s", row->ceiling / 1e9);
    report_double (o, "share", rate / row->ceiling);
  }
  if (row->cpu_seconds >= 0)
    report_double (o, "cpu_s_per_gb", row->cpu_seconds / row->data_len * 1e9);
  report_double (o, "spread", (row->high - row->low) / row->seconds);
}

static struct json_object *
json_row (const struct row *row, enum report_kind kind)
{
  struct json_object *o = json_object_new_object ();

  add_text (o, "engine", row->method);
  add_text (o, "op", row->op);
  add_text (o, "metric", row->metric);
  add_text (o, "code", row->code);
  add_number (o, "k", row->k);
  add_number (o, "m", row->m);
  add_number (o, "w", row->w);
  add_number (o, "cell", row->cell_len);
  add_number (o, "rects", row->nr_rects);
  add_number (o, "threads", row->threads);
  add_number (o, "slices", row->slices);
  if (row->why[0])
    add_text (o, row->wrong ? "wrong" : "skipped", row->why);
  else
    add_measured (o, row, kind);
  add_text (o, "note", row->note);
  return o;
}

int
report_end (struct report *r, bool with_rows)
{
  if (with_rows) {
    struct json_object *rows = json_object_new_array ();

    for (size_t i = 0; i < r->nr_rows; i++)
      json_object_array_add (rows, json_row (&r->rows[i], r->kind));
    json_object_object_add (r->top, "rows", rows);
  }
  if (r->json)
    fprintf (r->fp, "%s\n", json_object_to_json_string_ext
             (r->top, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED |
              JSON_C_TO_STRING_NOSLASHESCAPE));
  if (fflush (r->fp) == EOF || ferror (r->fp)) {
    log_error ("stdout: %m");
    return -1;
  }
  return 0;
}

void
report_free (struct report *r)
{
  json_object_put (r->top);
  free (r->rows);
}
