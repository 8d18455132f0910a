/* gpuraid: plot rows with gnuplot.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "bench/report.h"
#include "common/bits.h"
#include "common/log.h"

/* What can be the horizontal axis of a plot: the first of those with the most
 * different values.
 */
struct axis {
  const char *name;
  double (*get) (const struct row *);
};

#define AXIS(id, expr)                          \
  static double                                 \
  get_##id (const struct row *r)                \
  {                                             \
    return expr;                                \
  }
AXIS (k, r->k)
AXIS (m, r->m)
AXIS (w, r->w)
AXIS (cell, r->cell_len / 1024.0)
AXIS (rects, r->nr_rects)
AXIS (threads, r->threads)
AXIS (slices, r->slices)

static const struct axis axes[] = {
  { "k", get_k }, { "slices", get_slices }, { "threads", get_threads },
  { "cell (KiB)", get_cell }, { "m", get_m }, { "w", get_w },
  { "rects", get_rects },
};

static size_t
nr_values (const struct row *row, size_t nr, const struct axis *a)
{
  size_t count = 0;

  for (size_t i = 0; i < nr; i++) {
    size_t j = 0;

    while (j < i && a->get (&row[j]) != a->get (&row[i]))
      j++;
    count += j == i;
  }
  return count;
}

static const struct axis *
choose_axis (const struct row *row, size_t nr)
{
  const struct axis *best = &axes[0];

  for (size_t a = 1; a < ARRAY_LEN (axes); a++)
    if (nr_values (row, nr, &axes[a]) > nr_values (row, nr, best))
      best = &axes[a];
  return best;
}

/* The name of the line that a row belongs to: everything that differs, except
 * for the axis.  Rects and cells that a method adapts do not make a line of
 * their own, nor does the w that goes with k.
 */
static void
line_name (const struct row *row, const struct row *r, size_t nr,
           const struct axis *axis, char *name, size_t len)
{
  size_t n = snprintf (name, len, "%s %s %s", r->method, r->op, r->metric);

  for (size_t a = 0; a < ARRAY_LEN (axes) && n < len; a++) {
    if (&axes[a] == axis || axes[a].get == get_rects ||
        axes[a].get == get_w || nr_values (row, nr, &axes[a]) == 1)
      continue;
    n += snprintf (name + n, len - n, " %s %g", axes[a].name,
                   axes[a].get (r));
  }
}

static int
print_data (FILE *fp, const struct row *row, size_t nr, bool latency,
            const struct axis *axis)
{
  char name[160], other[160];
  size_t lines = 0;

  for (size_t i = 0; i < nr; i++) {
    size_t j = 0;

    if (row[i].why[0])
      continue;
    line_name (row, &row[i], nr, axis, name, sizeof name);
    for (; j < i; j++) {
      line_name (row, &row[j], nr, axis, other, sizeof other);
      if (strcmp (name, other) == 0 && row[j].why[0] == '\0')
        break;
    }
    if (j < i)                  /* has been printed with that row */
      continue;
    fprintf (fp, "$line%zu << EOD\n", lines);
    for (j = i; j < nr; j++) {
      line_name (row, &row[j], nr, axis, other, sizeof other);
      if (strcmp (name, other) == 0 && row[j].why[0] == '\0')
        fprintf (fp, "%g %g\n", axis->get (&row[j]), latency
                 ? row[j].p50 * 1e6 : row[j].data_len / row[j].seconds / 1e9);
    }
    fprintf (fp, "EOD\nname%zu = \"%s\"\n", lines++, name);
  }
  return lines;
}

static int
print_plot (FILE *fp, const struct row *row, size_t nr, bool latency,
            const char *file, const char *terminal)
{
  const struct axis *axis = choose_axis (row, nr);
  bool wide = axis->get == get_cell || axis->get == get_rects;
  int lines;

  fprintf (fp, "set terminal %s size 1000,600\n", terminal);
  fprintf (fp, "set output \"%s\"\n", file);
  fprintf (fp, "set xlabel \"%s\"\nset ylabel \"%s\"\n", axis->name,
           latency ? "median, us" : "GB/s of data");
  fprintf (fp, "set yrange [0:*]\nset grid\nset key outside right\n"
           "set key noenhanced\n");
  if (wide)
    fprintf (fp, "set logscale x 2\n");
  lines = print_data (fp, row, nr, latency, axis);
  fprintf (fp, "plot ");
  for (int i = 0; i < lines; i++)
    fprintf (fp, "%s$line%d using 1:2 with linespoints title name%d",
             i ? ", " : "", i, i);
  fprintf (fp, "\n");
  return ferror (fp) ? -1 : 0;
}

static const char *
find_terminal (const char *file)
{
  const char *dot = strrchr (file, '.');

  if (dot && strcmp (dot, ".svg") == 0)
    return "svg";
  if (dot && strcmp (dot, ".png") == 0)
    return "png";
  return NULL;
}

int
plot_rows (const struct row *row, size_t nr, bool latency, const char *file)
{
  const char *terminal = find_terminal (file);
  void (*old) (int);
  FILE *fp;
  int status;
  size_t n;

  if (terminal == NULL || strpbrk (file, "\"\\\n")) {
    log_error ("%s: not the name of an .svg or .png", file);
    return -1;
  }
  for (n = 0; n < nr && row[n].why[0]; n++)
    ;
  if (n == nr) {
    log_error ("%s: nothing to plot", file);
    return -1;
  }
  /* Ignore SIGPIPE: gnuplot may end early, or be missing. */
  old = signal (SIGPIPE, SIG_IGN);
  fp = popen ("command -v gnuplot >/dev/null || exit 127; exec gnuplot", "w");
  if (fp == NULL) {
    log_error ("popen: gnuplot: %m");
    signal (SIGPIPE, old);
    return -1;
  }
  print_plot (fp, row, nr, latency, file, terminal);
  status = pclose (fp);
  signal (SIGPIPE, old);
  if (status != -1 && WIFEXITED (status) && WEXITSTATUS (status) == 127)
    log_error ("%s: gnuplot is not installed", file);
  else if (status != 0)
    log_error ("%s: gnuplot failed", file);
  return status == 0 ? 0 : -1;
}
