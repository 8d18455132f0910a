/* gpuraid: the status of a running array, for a person.
 *
 * Only words and columns.  A key missing in the status is not shown, because
 * the server may be of another version.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/cli.h"
#include "cli/server/remote.h"
#include "cli/show/render.h"
#include "cli/show/text.h"
#include "cli/show/trouble.h"
#include "common/bits.h"

/* The i-th engine of the coder; NULL: there are fewer. */
static struct json_object *
engine (struct json_object *status, size_t i)
{
  return list_at (get_object (status, "engines"), i);
}

static bool
is_state (struct json_object *m, const char *state)
{
  const char *s = get_text (m, "state");

  return s && strcmp (s, state) == 0;
}

/* A spare has none. */
static bool
has_slot (struct json_object *m)
{
  struct json_object *slot;

  return json_object_is_type (m, json_type_object) &&
    json_object_object_get_ex (m, "slot", &slot) && slot;
}

/* How many slots hold current data.  While an active member is
 * replaced, its slot has two entries.
 */
static unsigned
nr_active_slots (struct json_object *status)
{
  uint64_t active = 0;

  for (size_t i = 0; i < nr_members (status); i++)
    if (is_state (member_at (status, i), "active"))
      active |= BIT (get_u64 (member_at (status, i), "slot") & 63);
  return nr_bits (active);
}

static bool
has_failed (struct json_object *status)
{
  const char *s = get_text (status, "state");

  return s && strcmp (s, "failed") == 0;
}

/* ", resync pending".  Lost members are counted, and have lines. */
static void
render_reasons (FILE *fp, struct json_object *status)
{
  const char *s;

  for (size_t i = 0; (s = trouble_reason (status, i)) != NULL; i++) {
    if (*s == '\0' || strcmp (s, "members lost") == 0)
      continue;
    fprintf (fp, ", ");
    text_clean (fp, s);
  }
}

const char *
render_word (struct json_object *status)
{
  const char *s = get_text (status, "state");

  return s && strcmp (s, "healthy") == 0 && trouble_reason (status, 0) ?
    RENDER_DAMAGED : s;
}

static unsigned
nr_silent (struct json_object *status)
{
  unsigned nr = 0;

  for (size_t i = 0; i < nr_members (status); i++)
    nr += get_bool (member_at (status, i), "no_answer");
  return nr;
}

/* "3 do not answer, " */
static void
render_silent (FILE *fp, struct json_object *status)
{
  const unsigned nr = nr_silent (status);

  if (nr > 0)
    fprintf (fp, "%u do%s not answer, ", nr, nr == 1 ? "es" : "");
}

void
render_state (FILE *fp, struct json_object *status)
{
  uint64_t k = get_u64 (status, "k"), m = get_u64 (status, "m");
  unsigned active = nr_active_slots (status);

  text_clean (fp, render_word (status));
  render_reasons (fp, status);
  if (has_failed (status) && active >= k)
    fprintf (fp, " (nothing is written any more; the log says why)");
  else if (active < k)
    fprintf (fp, " (%u of %" PRIu64 " members hold current data, %" PRIu64
             " are needed)", active, k + m, k);
  else {
    fprintf (fp, " (");
    render_silent (fp, status);
    if (active == k)
      fprintf (fp, "no more member may fail)");
    else
      fprintf (fp, "%" PRIu64 "%s member%s may fail)", active - k,
               active < k + m ? " more" : "", active - k == 1 ? "" : "s");
  }
}

/* The same place may be mounted upon more than once. */
static void
render_places (FILE *fp, struct json_object *list, const char *before)
{
  const char *last = "";

  for (size_t i = 0; i < list_len (list); i++) {
    const char *where = json_object_get_string (list_at (list, i));

    if (where && strcmp (where, last) != 0) {
      fputs (before, fp);
      text_clean (fp, where);
      last = where;
    }
  }
}

void
render_attached (FILE *fp, struct json_object *status)
{
  struct json_object *o = get_object (status, "attached");
  const char *way = get_text (o, "way");

  text_clean (fp, get_text (o, "device"));
  fprintf (fp, " by %s", way && strcmp (way, "kernel") == 0 ?
           "the kernel's driver" : "nbdfuse");
  if (get_bool (o, "ended"))
    fprintf (fp, ", which has ended: unmount and detach it");
  render_places (fp, get_object (o, "mounted"), ", mounted on ");
}

static void
render_failed_change (FILE *fp, struct json_object *status)
{
  struct json_object *o = get_object (status, "failed_change");

  if (o == NULL)
    return;
  fprintf (fp, "  failed: ");
  text_time (fp, o);
  text_clean (fp, get_text (o, "message"));
  fputc ('\n', fp);
}

/* What the scrub found, the running one or the last. */
static void
render_scrub (FILE *fp, struct json_object *status)
{
  struct json_object *now = get_object (status, "scrub");
  struct json_object *last = get_object (status, "last_scrub");
  struct json_object *o = now ? now : last;
  const time_t ended = get_u64 (last, "ended");
  char when[48] = "";
  struct tm tm;

  if (o == NULL)
    return;
  if (now)
    snprintf (when, sizeof when, "%s",
              get_bool (now, "paused") ? "paused" :
              get_bool (now, "interrupted") ?
              "goes on when the array is written to" : "so far");
  else
    strftime (when, sizeof when, get_bool (last, "complete") ?
              "%F %H:%M" : "%F %H:%M, stopped", localtime_r (&ended, &tm));
  fprintf (fp, "%s%s: %" PRIu64 " wrong blocks, %" PRIu64 " repaired",
           now ? "          " : "   scrub: ", when, get_u64 (o, "found"),
           get_u64 (o, "repaired"));
  if (get_u64 (o, "unlocated_rows"))
    fprintf (fp, ", %" PRIu64 " rows that do not fit",
             get_u64 (o, "unlocated_rows"));
  if (get_u64 (o, "lost_rows"))
    fprintf (fp, ", %" PRIu64 " lost rows", get_u64 (o, "lost_rows"));
  if (get_u64 (o, "skipped_rows"))
    fprintf (fp, ", %" PRIu64 " rows skipped", get_u64 (o, "skipped_rows"));
  fputc ('\n', fp);
}

static void
render_failed_engines (FILE *fp, struct json_object *status)
{
  struct json_object *e;

  for (size_t i = 0; (e = engine (status, i)) != NULL; i++) {
    const char *failed = get_text (e, "failed");

    if (failed == NULL)
      continue;
    fprintf (fp, "  failed: ");
    text_clean (fp, get_text (e, "name"));
    fprintf (fp, " is not used any more: ");
    text_clean (fp, failed);
    fputc ('\n', fp);
  }
}

void
render_failed_names (FILE *fp, struct json_object *status)
{
  struct json_object *e;

  for (size_t i = 0; (e = engine (status, i)) != NULL; i++)
    if (get_text (e, "failed")) {
      fprintf (fp, ", ");
      text_clean (fp, get_text (e, "name"));
      fprintf (fp, " failed");
    }
}

void
render_line (FILE *fp, struct json_object *status)
{

  render_state (fp, status);
  for (size_t i = 0; i < nr_members (status); i++) {
    struct json_object *m = member_at (status, i);
    const char *state = get_text (m, "state");

    if (get_bool (m, "no_space"))
      fprintf (fp, ", slot %" PRIu64 " no space", get_u64 (m, "slot"));
    else if (get_bool (m, "no_connection") && is_state (m, "active"))
      fprintf (fp, ", slot %" PRIu64 " away", get_u64 (m, "slot"));
    else if (get_bool (m, "no_answer"))
      fprintf (fp, ", slot %" PRIu64 " no answer", get_u64 (m, "slot"));
    if (state == NULL || is_state (m, "active") || is_state (m, "spare"))
      continue;
    if (has_slot (m))
      fprintf (fp, ", slot %" PRIu64 " ", get_u64 (m, "slot"));
    else
      fprintf (fp, ", a spare ");
    text_clean (fp, state);
  }
  if (get_text (status, "read_only"))
    fprintf (fp, ", read-only");
  render_failed_names (fp, status);
  for (unsigned i = 0; i < RENDER_NR_WORK; i++)
    if (render_work_at (status, i)) {
      fprintf (fp, ", %s ", render_work[i]);
      render_progress (fp, render_work_at (status, i));
    }
}

void
render_short (FILE *fp, const char *name, struct json_object *status)
{
  struct json_object *attached = get_object (status, "attached");
  char size[CLI_SIZE_LEN], km[CLI_SIZE_LEN];

  text_column (fp, name, 16);
  snprintf (km, sizeof km, "%" PRIu64 "+%" PRIu64, get_u64 (status, "k"),
            get_u64 (status, "m"));
  fputs ("  ", fp);
  text_column (fp, render_word (status), 8);
  fprintf (fp, "  %-5s  %s", km, cli_size (get_u64 (status, "size"), size));
  for (unsigned i = 0; i < RENDER_NR_WORK; i++) {
    struct json_object *o = render_work_at (status, i);

    if (o == NULL)
      continue;
    fprintf (fp, "  %s ", render_work[i]);
    render_percent (fp, o, 0);
    fputs (get_bool (o, "paused") || is_state (o, "paused") ? " (paused)" :
           get_bool (o, "interrupted") ? " (interrupted)" : "", fp);
  }
  for (size_t i = 0; i < nr_members (status); i++)
    if (get_bool (member_at (status, i), "no_space")) {
      fprintf (fp, "  no space on slot %" PRIu64,
               get_u64 (member_at (status, i), "slot"));
      break;
    }
  if (nr_silent (status) > 0)
    fprintf (fp, "  stalled");
  if (attached) {
    fputs ("  ", fp);
    text_clean (fp, get_text (attached, "device"));
    render_places (fp, get_object (attached, "mounted"), " ");
    if (get_bool (attached, "ended"))
      fputs (" (nbdfuse has ended)", fp);
  }
  fputc ('\n', fp);
}

void
render_array (FILE *fp, struct json_object *status)
{
  char size[CLI_SIZE_LEN], chunk[CLI_SIZE_LEN];

  fprintf (fp, "   array: ");
  text_clean (fp, get_text (status, "uuid"));
  if (get_text (status, "label")) {
    fprintf (fp, "\n   label: ");
    text_clean (fp, get_text (status, "label"));
  }
  fprintf (fp, "\n   state: ");
  render_state (fp, status);
  trouble_advice (fp, status);
  if (get_text (status, "read_only")) {
    fprintf (fp, "\n  access: read-only: ");
    text_clean (fp, get_text (status, "read_only"));
  }
  if (get_bool (status, "waits_for_writer"))
    fprintf (fp, "\n   waits: for the first connection that may write, to go "
             "on (resume=yes does not)");
  if (get_bool (status, "multihost"))
    fprintf (fp, "\n   hosts: several reach the members (multihost=yes)");
  fprintf (fp, "\n    size: %s (%" PRIu64 " bytes)\n",
           cli_size (get_u64 (status, "size"), size),
           get_u64 (status, "size"));
  fprintf (fp, "  layout: %" PRIu64 " data + %" PRIu64 " parity, chunk %s, "
           "code ", get_u64 (status, "k"), get_u64 (status, "m"),
           cli_size (get_u64 (status, "chunk"), chunk));
  text_clean (fp, get_text (status, "code"));
  fprintf (fp, "\n   coder: ");
  text_clean (fp, get_text (status, "coder"));
  fprintf (fp, ", I/O through ");
  text_clean (fp, get_text (status, "loop"));
  fputc ('\n', fp);
  if (get_object (status, "attached")) {
    fprintf (fp, "attached: ");
    render_attached (fp, status);
    fputc ('\n', fp);
  }
  render_failed_engines (fp, status);
  trouble_members (fp, status);
  fprintf (fp, "   epoch: %" PRIu64 "%s\n", get_u64 (status, "epoch"),
           get_bool (status, "writable") ? "" : " (not written to yet)");
  render_bars (fp, status);
  render_scrub (fp, status);
  render_failed_change (fp, status);
  if (get_u64 (status, "growable"))
    fprintf (fp, "    room: %s more could be used: gpuraid grow\n",
             cli_size (get_u64 (status, "growable"), size));
  if (get_u64 (status, "rate_limit"))
    fprintf (fp, "    rate: rebuild and scrub at most %s/s of each member\n",
             cli_size (get_u64 (status, "rate_limit"), size));
}

static void
render_left_out (FILE *fp, struct json_object *status)
{
  struct json_object *list = get_object (status, "left_out");

  if (list_len (list) > 0)
    fprintf (fp, "\n  not used when the array was opened:\n");
  for (size_t i = 0; i < list_len (list); i++) {
    fprintf (fp, "    ");
    text_clean (fp, get_text (list_at (list, i), "path"));
    fprintf (fp, ": ");
    text_clean (fp, get_text (list_at (list, i), "why"));
    fputc ('\n', fp);
  }
}

void
render_members (FILE *fp, struct json_object *status)
{
  bool absent = false, no_spare = false;

  fprintf (fp, "\n  slot  state       errors  member\n");
  for (size_t i = 0; i < nr_members (status); i++) {
    struct json_object *m = member_at (status, i);
    const char *state = get_text (m, "state");
    const char *path = get_text (m, "path"), *uuid = get_text (m, "uuid");

    if (has_slot (m))
      fprintf (fp, "  %4" PRIu64 "  ", get_u64 (m, "slot"));
    else
      fprintf (fp, "     -  ");
    text_column (fp, get_bool (m, "no_space") ? "no space" :
                  get_bool (m, "no_answer") &&
                  !get_bool (m, "no_connection") ? "no answer" :
                  get_bool (m, "no_connection") && state &&
                  strcmp (state, "failed") != 0 ? "away" :
                  state ? state : "?", 10);
    fprintf (fp, "  %6" PRIu64 "  ", get_u64 (m, "errors"));
    text_clean (fp, path ? path : uuid ? uuid : "-");
    fputc ('\n', fp);
    absent |= has_slot (m) &&
      (is_state (m, "failed") || is_state (m, "missing"));
    no_spare |= !has_slot (m) && is_state (m, "missing");
  }
  render_left_out (fp, status);
  if (no_spare)
    fprintf (fp, "\n  a spare that does not come back: gpuraid fail, with its "
             "uuid\n");
  /* A server whose array has failed takes no member again. */
  if (has_failed (status))
    fprintf (fp, "\n  what can be read is read; when members are back:\n"
             "  gpuraid stop, then gpuraid start\n");
  else if (absent)
    fprintf (fp, "\n  a member that is back: gpuraid readd; another in its "
             "place: gpuraid replace\n");
}
