/* gpuraid: one screen of gpuraid watch.
 *
 * From top to bottom: the array, what is wrong, work in progress, clients and
 * cache, then a line for each member.  Where rows are few, members with a
 * problem come first, and the last line says how many are not shown.  Where
 * columns are few, some of each member are left out.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/server/remote.h"
#include "cli/show/render.h"
#include "cli/show/text.h"
#include "cli/show/watch-frame.h"
#include "common/bits.h"
#include "common/cleanup.h"

enum colour { PLAIN, BOLD, RED, GREEN, YELLOW };

struct frame {
  FILE *fp;
  const struct watch_screen *screen;
  const struct watch_sample *now, *last;
  double seconds;               /* between them; 0: there is no last */
  unsigned row, column;         /* lines begun; characters in the last */
};

/* ---- lines ------------------------------------------------------------- */

/* False if there is no room. */
static bool
begin (struct frame *f)
{
  if (f->row == f->screen->rows)
    return false;
  if (f->row++ > 0)
    fputc ('\n', f->fp);
  f->column = 0;
  return true;
}

/* What does not fit into the line is left out.  Any text may contain control
 * codes for a terminal.
 */
static void __attribute__ ((format (printf, 3, 4)))
put (struct frame *f, enum colour colour, const char *fmt, ...)
{
  static const char *const code[] = {
    [BOLD] = "\033[1m", [RED] = "\033[1;31m", [GREEN] = "\033[32m",
    [YELLOW] = "\033[33m",
  };
  const bool coloured = f->screen->colour && colour != PLAIN;
  CLEANUP_FREE char *text = NULL;
  va_list args;
  int r;

  va_start (args, fmt);
  r = vasprintf (&text, fmt, args);
  va_end (args);
  if (r == -1) {
    text = NULL;
    return;
  }
  if (coloured)
    fputs (code[colour], f->fp);
  for (const char *p = text; *p; p++) {
    const bool begins = ((unsigned char) *p & 0xc0) != 0x80;    /* UTF-8 */

    if (begins && f->column == f->screen->columns)
      break;
    f->column += begins;
    fputc (iscntrl ((unsigned char) *p) ? '?' : *p, f->fp);
  }
  if (coloured)
    fputs ("\033[0m", f->fp);
}

/* The end of a path, in what is left of the line. */
static void
put_path (struct frame *f, const char *path)
{
  const size_t room = f->screen->columns - f->column;
  size_t len = 0;
  const char *p;

  if (path == NULL)
    path = "-";
  p = path + strlen (path);
  while (p > path && len < room)
    len += ((unsigned char) *--p & 0xc0) != 0x80;
  if (p > path && room > 3) {
    while (len > room - 3)
      len -= ((unsigned char) *++p & 0xc0) != 0x80;
    while (((unsigned char) *p & 0xc0) == 0x80)
      p++;
    put (f, PLAIN, "...");
  }
  put (f, PLAIN, "%s", p);
}

/* ---- numbers ------------------------------------------------------------- */

/* How much a count has grown. */
static double
growth (struct json_object *now, struct json_object *last, const char *key)
{
  const uint64_t a = get_u64 (last, key), b = get_u64 (now, key);

  return b > a ? b - a : 0;
}

static double
per_second (const struct frame *f, struct json_object *now,
            struct json_object *last, const char *key)
{
  return last && f->seconds > 0 ? growth (now, last, key) / f->seconds : 0;
}

/* "12.5 MiB", in 8 columns. */
static void
put_bytes (struct frame *f, double bytes)
{
  char size[CLI_SIZE_LEN];

  if (bytes < 1)
    put (f, PLAIN, " %8s", "-");
  else
    put (f, PLAIN, " %8s", cli_size (bytes < 1024 ? 1024 : bytes, size));
}

/* The mean time of an operation, in milliseconds. */
static void
put_time (struct frame *f, struct json_object *now, struct json_object *last,
          const char *ops, const char *ns)
{
  const double nr = last ? growth (now, last, ops) : 0;
  const double ms = nr > 0 ? growth (now, last, ns) / nr / 1e6 : 0;

  if (nr == 0)
    put (f, PLAIN, " %6s", "-");
  else
    put (f, PLAIN, " %6.*f", ms < 10 ? 2 : ms < 1000 ? 1 : 0, ms);
}

/* ---- the array --------------------------------------------------------- */

static enum colour
state_colour (const char *state)
{
  return strcmp (state, "healthy") == 0 || strcmp (state, "active") == 0 ?
    GREEN : strcmp (state, "failed") == 0 || strcmp (state, "missing") == 0 ?
    RED : strcmp (state, "spare") == 0 ? PLAIN : YELLOW;
}

static void
show_array (struct frame *f)
{
  struct json_object *s = f->now->status;
  const char *name = get_text (s, "label"), *state = render_word (s);
  CLEANUP_FREE char *text = text_render (render_state, s);
  char size[CLI_SIZE_LEN];

  if (name == NULL)
    name = get_text (s, "uuid");
  if (!begin (f))
    return;
  put (f, BOLD, "%s", name ? name : "?");
  put (f, PLAIN, "  %" PRIu64 "+%" PRIu64 "  %s", get_u64 (s, "k"),
       get_u64 (s, "m"), cli_size (get_u64 (s, "size"), size));
  /* The line of a uuid would be too long for a narrow screen. */
  if (f->column + 2 + strlen (text) > f->screen->columns)
    begin (f);
  else
    put (f, PLAIN, "  ");
  put (f, state ? state_colour (state) : PLAIN, "%s", text);
}

static void
show_attached (struct frame *f)
{
  CLEANUP_FREE char *text = NULL;

  if (get_object (f->now->status, "attached") == NULL || !begin (f))
    return;
  text = text_render (render_attached, f->now->status);
  put (f, PLAIN, "%s", text);
}

static void
show_trouble (struct frame *f)
{
  struct json_object *s = f->now->status;
  struct json_object *engines = get_object (s, "engines");
  const uint64_t lost = get_u64 (s, "lost_rows");
  unsigned nr_full = 0, nr_silent = 0;
  uint64_t slot = 0;

  for (size_t i = 0; i < nr_members (s); i++) {
    nr_silent += get_bool (member_at (s, i), "no_answer");
    if (get_bool (member_at (s, i), "no_space")) {
      slot = get_u64 (member_at (s, i), "slot");
      nr_full++;
    }
  }
  if (nr_full == 1 && begin (f))
    put (f, RED, "no space on slot %" PRIu64 ": writes wait", slot);
  else if (nr_full > 1 && begin (f))
    put (f, RED, "no space on %u members: writes wait", nr_full);
  if (nr_silent > 0 && begin (f))
    put (f, RED, "%u member%s not answer: clients wait", nr_silent,
         nr_silent == 1 ? " does" : "s do");
  if (get_text (s, "read_only") && begin (f))
    put (f, YELLOW, "read-only: %s", get_text (s, "read_only"));
  if (lost && begin (f))
    put (f, RED, "%" PRIu64 " rows are lost", lost);
  for (size_t i = 0; i < list_len (engines); i++) {
    struct json_object *e = list_at (engines, i);

    if (get_text (e, "failed") && begin (f))
      put (f, RED, "%s failed: %s", get_text (e, "name"),
           get_text (e, "failed"));
  }
}

static void
render_one (FILE *fp, struct json_object *o)
{
  if (get_bool (o, "paused") || get_bool (o, "interrupted")) {
    render_percent (fp, o, 5);
    fprintf (fp, "  %s", get_bool (o, "paused") ? "paused" : "interrupted");
  }
  else
    render_speed (fp, o);
}

/* The bar gets what the numbers leave. */
static void
show_work (struct frame *f, unsigned i)
{
  struct json_object *o = render_work_at (f->now->status, i);
  const uint64_t done = get_u64 (o, "done"), total = get_u64 (o, "total");
  const double part = total ? (double) MIN (done, total) / total : 1;
  CLEANUP_FREE char *text = NULL;
  int bar, full;

  if (o == NULL || !begin (f))
    return;
  text = text_render (render_one, o);
  bar = (int) f->screen->columns - 11 - (int) strlen (text);
  bar = MAX (0, MIN (bar, 60));
  full = part * bar;
  put (f, BOLD, "%-7s ", render_work[i]);
  if (bar >= 5) {
    put (f, PLAIN, "[");
    for (int j = 0; j < bar; j++)
      put (f, j < full ? GREEN : PLAIN, "%c", j < full ? '=' : j == full ?
           '>' : '.');
    put (f, PLAIN, "] ");
  }
  put (f, PLAIN, "%s", text);
}

static void
show_clients (struct frame *f)
{
  static const char *const kinds[] = { "read", "write" };
  struct json_object *s = f->now->status;
  struct json_object *c = get_object (s, "counters");
  struct json_object *last = get_object (f->last->status, "counters");
  struct json_object *cache = get_object (s, "cache");
  char size[CLI_SIZE_LEN];

  if (!begin (f))
    return;
  put (f, BOLD, "clients");
  for (size_t i = 0; i < ARRAY_LEN (kinds); i++) {
    char ops[16], bytes[16];

    snprintf (ops, sizeof ops, "%s_ops", kinds[i]);
    snprintf (bytes, sizeof bytes, "%s_bytes", kinds[i]);
    put (f, PLAIN, "%s %s", i ? "," : " ", kinds[i]);
    put (f, PLAIN, " %s/s %.0f/s",
         cli_size (per_second (f, c, last, bytes), size),
         per_second (f, c, last, ops));
  }
  put (f, PLAIN, ", flush %.0f/s", per_second (f, c, last, "flush_ops"));
  if (get_u64 (c, "hedged_reads") || get_u64 (c, "avoided_reads"))
    put (f, YELLOW, ", hedged %.0f/s, avoided %.0f/s",
         per_second (f, c, last, "hedged_reads"),
         per_second (f, c, last, "avoided_reads"));
  if (cache && begin (f)) {
    put (f, BOLD, "cache");
    put (f, PLAIN, "    %s", cli_size (get_u64 (cache, "used"), size));
    put (f, PLAIN, " of %s", cli_size (get_u64 (cache, "size"), size));
    put (f, PLAIN, ", %s not written out",
         cli_size (get_u64 (cache, "dirty"), size));
  }
}

/* ---- members ----------------------------------------------------------- */

/* From this many columns on there is room for each of these. */
#define WITH_OPS 80u
#define WITH_ERRORS 90u

/* The same member in the last status; NULL: it was not there. */
static struct json_object *
last_member (const struct frame *f, struct json_object *m)
{
  const char *path = get_text (m, "path");

  for (size_t i = 0; path && i < nr_members (f->last->status); i++) {
    struct json_object *o = member_at (f->last->status, i);
    const char *other = get_text (o, "path");

    if (other && strcmp (path, other) == 0 &&
        get_u64 (o, "slot") == get_u64 (m, "slot"))
      return o;
  }
  return NULL;
}

static bool
has_problem (struct json_object *m)
{
  const char *state = get_text (m, "state");

  return get_bool (m, "no_space") || get_bool (m, "slow") ||
    get_bool (m, "no_connection") || get_bool (m, "deleted") ||
    (state && strcmp (state, "active") != 0 && strcmp (state, "spare") != 0);
}

static void
show_titles (struct frame *f)
{
  if (!begin (f))
    return;
  put (f, BOLD, "slot %-10s %8s %8s", "state", "read/s", "write/s");
  if (f->screen->columns >= WITH_OPS)
    put (f, BOLD, " %6s %6s", "reads", "writes");
  put (f, BOLD, " %6s %6s", "rd ms", "wr ms");
  if (f->screen->columns >= WITH_OPS)
    put (f, BOLD, " %6s", "fl ms");
  if (f->screen->columns >= WITH_ERRORS)
    put (f, BOLD, " %6s", "errors");
  put (f, BOLD, " member");
}

static void
show_member (struct frame *f, struct json_object *m)
{
  struct json_object *last = last_member (f, m), *slot;
  const char *state = get_text (m, "state");
  const uint64_t errors = get_u64 (m, "errors") + get_u64 (m, "bad_sums");

  if (!begin (f))
    return;
  if (json_object_is_type (m, json_type_object) &&
      json_object_object_get_ex (m, "slot", &slot) && slot)
    put (f, PLAIN, "%4" PRIu64, get_u64 (m, "slot"));
  else
    put (f, PLAIN, "   -");
  if (get_bool (m, "deleted"))
    put (f, RED, " %-10s", "deleted");
  else if (get_bool (m, "no_space"))
    put (f, RED, " %-10s", "no space");
  else if (get_bool (m, "no_connection"))
    put (f, YELLOW, " %-10s", "away");
  else if (get_bool (m, "no_answer"))
    put (f, RED, " %-10s", "no answer");
  else if (get_bool (m, "slow"))
    put (f, YELLOW, " %-10s", "slow");
  else
    put (f, state ? state_colour (state) : PLAIN, " %-10.10s",
         state ? state : "?");
  put_bytes (f, per_second (f, m, last, "read_bytes"));
  put_bytes (f, per_second (f, m, last, "write_bytes"));
  if (f->screen->columns >= WITH_OPS) {
    put (f, PLAIN, " %6.0f", per_second (f, m, last, "read_ops"));
    put (f, PLAIN, " %6.0f", per_second (f, m, last, "write_ops"));
  }
  put_time (f, m, last, "read_ops", "read_ns");
  put_time (f, m, last, "write_ops", "write_ns");
  if (f->screen->columns >= WITH_OPS)
    put_time (f, m, last, "flush_ops", "flush_ns");
  if (f->screen->columns >= WITH_ERRORS)
    put (f, errors ? RED : PLAIN, " %6" PRIu64, errors);
  put (f, PLAIN, " ");
  put_path (f, get_text (m, "path") ? get_text (m, "path") :
            get_text (m, "uuid"));
}

static void
show_members (struct frame *f)
{
  struct json_object *s = f->now->status;
  const size_t nr = nr_members (s);
  size_t room, shown = 0;

  show_titles (f);
  room = f->screen->rows - f->row;
  room -= room > 0;             /* the last line */
  for (int problem = 1; problem >= 0; problem--)
    for (size_t i = 0; i < nr && shown < room; i++)
      if (nr <= room ? problem : has_problem (member_at (s, i)) == problem) {
        show_member (f, member_at (s, i));
        shown++;
      }
  if (begin (f)) {
    if (shown < nr)
      put (f, YELLOW, "%zu more member%s; ", nr - shown,
           nr - shown == 1 ? "" : "s");
    put (f, PLAIN, "q quits");
  }
}

void
watch_frame (FILE *fp, const struct watch_sample *now,
             const struct watch_sample *last,
             const struct watch_screen *screen)
{
  struct frame f = {
    .fp = fp, .screen = screen, .now = now, .last = last,
    .seconds = last->status ? now->at - last->at : 0,
  };

  show_array (&f);
  show_attached (&f);
  show_trouble (&f);
  for (unsigned i = 0; i < RENDER_NR_WORK; i++)
    show_work (&f, i);
  show_clients (&f);
  show_members (&f);
}
