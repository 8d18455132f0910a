/* gpuraid: what is under way in a running array, and how far it is, for a
 * person.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <inttypes.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/server/remote.h"
#include "cli/show/render.h"
#include "cli/show/text.h"
#include "common/bits.h"

#define BAR_LEN 12

const char *const render_work[RENDER_NR_WORK] = {
  "rebuild", "resync", "grow", "reshape", "scrub",
};

static bool
has_text (struct json_object *o, const char *key, const char *wanted)
{
  const char *s = get_text (o, key);

  return s && strcmp (s, wanted) == 0;
}

struct json_object *
render_work_at (struct json_object *status, unsigned i)
{
  struct json_object *o = get_object (status, render_work[i]);

  return strcmp (render_work[i], "reshape") != 0 ||
    has_text (o, "kind", "widen") ? o : NULL;
}

static void
render_seconds (FILE *fp, uint64_t s)
{
  if (s < 60)
    fprintf (fp, "%" PRIu64 " s", s);
  else if (s < 3600)
    fprintf (fp, "%" PRIu64 " min %02" PRIu64 " s", s / 60, s % 60);
  else if (s < 48 * 3600)
    fprintf (fp, "%" PRIu64 " h %02" PRIu64 " min", s / 3600, s / 60 % 60);
  else
    fprintf (fp, "%" PRIu64 " days", s / 86400);
}

/* How much is done, from 0 to 1. */
static double
fraction (struct json_object *progress)
{
  uint64_t done = get_u64 (progress, "done");
  uint64_t total = get_u64 (progress, "total");

  return total ? (double) MIN (done, total) / total : 1;
}

void
render_percent (FILE *fp, struct json_object *progress, int width)
{
  const double part = fraction (progress) * 100;

  fprintf (fp, "%*.*f %%", width, part < 1 ? 3 : 1, part);
}

static void
render_rate (FILE *fp, struct json_object *progress)
{
  uint64_t rate = get_u64 (progress, "bytes_per_second");
  char per_second[CLI_SIZE_LEN];
  const char *state = get_text (progress, "state");

  if (get_bool (progress, "paused"))
    state = "paused";
  if (state && strcmp (state, "moving") != 0) {
    text_clean (fp, state);
    return;
  }
  fprintf (fp, "%s/s  ", cli_size (rate, per_second));
  if (rate == 0)
    fprintf (fp, "time left unknown");
  else {
    render_seconds (fp, get_u64 (progress, "eta_seconds"));
    fprintf (fp, " left");
  }
}

void
render_progress (FILE *fp, struct json_object *progress)
{
  char done[CLI_SIZE_LEN], total[CLI_SIZE_LEN];

  render_percent (fp, progress, 5);
  fprintf (fp, "  %s of %s  ",
           cli_size (get_u64 (progress, "done"), done),
           cli_size (get_u64 (progress, "total"), total));
  render_rate (fp, progress);
}

void
render_speed (FILE *fp, struct json_object *progress)
{
  render_percent (fp, progress, 5);
  fputs ("  ", fp);
  render_rate (fp, progress);
}

/* Safe on NULL. */
static void
render_bar (FILE *fp, const char *name, struct json_object *progress)
{
  const int full = fraction (progress) * BAR_LEN;

  if (progress == NULL)
    return;
  fprintf (fp, "%8s: [", name);
  for (int i = 0; i < BAR_LEN; i++)
    fputc (i < full ? '=' : i == full ? '>' : '.', fp);
  fprintf (fp, "] ");
  render_progress (fp, progress);
  fputc ('\n', fp);
}

static void
render_reshape (FILE *fp, struct json_object *r, bool has_bar)
{
  fprintf (fp, "%10s", has_bar ? "" : " reshape: ");
  text_clean (fp, get_text (r, "kind"));
  fprintf (fp, " to %" PRIu64 "+%" PRIu64, get_u64 (r, "k"),
           get_u64 (r, "m"));
  if (!has_bar) {
    fputs (", ", fp);
    text_clean (fp, get_text (r, "state"));
  }
  if (get_text (r, "why")) {
    fprintf (fp, "\n%10s", "");
    text_clean (fp, get_text (r, "why"));
  }
  fputc ('\n', fp);
}

void
render_bars (FILE *fp, struct json_object *status)
{
  struct json_object *reshape = get_object (status, "reshape");

  for (unsigned i = 0; i < RENDER_NR_WORK; i++) {
    struct json_object *o = render_work_at (status, i);

    render_bar (fp, render_work[i], o);
    if (reshape && strcmp (render_work[i], "reshape") == 0)
      render_reshape (fp, reshape, o != NULL);
  }
}
