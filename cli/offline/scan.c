/* gpuraid scan: the arrays on disks, or in files and folders.
 *
 * Shows what is there and how to open it.  A server in RUNDIR that has the
 * array is asked for the state, as what is on the disks may be older.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <ctype.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/offline/scan.h"
#include "cli/server/remote.h"
#include "cli/server/running.h"
#include "cli/show/render.h"
#include "cli/show/text.h"
#include "common/bits.h"
#include "common/cleanup.h"
#include "common/json-text.h"
#include "common/log.h"
#include "control/reply.h"
#include "raidmap/uuid.h"

/* ---- words ------------------------------------------------------------- */

static const char *
state_of (const struct scan_array *a, struct json_object *running)
{
  const char *state = running ? get_text (running, "state") : NULL;

  if (state)
    return state;
  return !a->d->open ? "failed" : a->d->degraded ? "degraded" : "healthy";
}

/* NULL where nothing was decided. */
static const char *
state_of_member (const struct found *f)
{
  switch (f->state) {
  case FOUND_CURRENT: return "active";
  case FOUND_STALE: return "stale";
  case FOUND_FAILED: return "failed";
  case FOUND_TARGET: return "rebuilding";
  case FOUND_SPARE: return "spare";
  case FOUND_UNLISTED: return "replaced";
  case FOUND_REFUSED: break;
  }
  return NULL;
}

/* How many slots have a member here, current or not. */
static unsigned
nr_slots_found (const struct scan_array *a)
{
  uint64_t slots = 0;

  for (size_t i = 0; i < a->nr; i++) {
    const unsigned slot = scan_slot (a->sb, a->member[i]);

    if (slot != SLOT_NONE && a->found[i].state != FOUND_UNLISTED)
      slots |= BIT (slot);
  }
  return nr_bits (slots);
}

static bool
has_control (const char *s)
{
  for (; *s; s++)
    if (iscntrl ((unsigned char) *s))
      return true;
  return false;
}

/* $'...': what a terminal, or JSON, does not show as it is. */
static void
quote_bytes (FILE *fp, const char *s)
{
  fputs ("$'", fp);
  for (; *s; s++) {
    const unsigned char c = *s;

    if (c == '\'' || c == '\\')
      fprintf (fp, "\\%c", c);
    else if (iscntrl (c) || c >= 0x80)
      fprintf (fp, "\\%03o", c);
    else
      fputc (c, fp);
  }
  fputc ('\'', fp);
}

/* A word for a shell. */
static void
quote (FILE *fp, const char *s)
{
  const char *p = s;

  while (*p && (isalnum ((unsigned char) *p) || strchr ("/._-+:,@%=", *p)))
    p++;
  if (*p == '\0') {
    fputs (s, fp);
    return;
  }
  if (has_control (s) || !json_text_keeps (s)) {
    quote_bytes (fp, s);
    return;
  }
  fputc ('\'', fp);
  for (; *s; s++)
    if (*s == '\'')
      fputs ("'\\''", fp);
    else
      fputc (*s, fp);
  fputc ('\'', fp);
}

/* Would a line of a file lose this?  It ends at a newline, and space at its end
 * does not count.
 */
static bool
is_lost (const char *s)
{
  return iscntrl ((unsigned char) *s) ||
    (isspace ((unsigned char) *s) && s[strspn (s, " ")] == '\0');
}

/* A value of member= that stands for this path alone; "?" in a pattern for
 * what a line can't have.
 */
static void
escape (FILE *fp, const char *s)
{
  bool magic = strpbrk (s, "*?[") != NULL;

  for (const char *p = s; *p; p++)
    magic |= is_lost (p);
  for (; *s; s++)
    if (is_lost (s))
      fputc ('?', fp);
    else {
      if (magic && strchr ("*?[\\", *s))
        fputc ('\\', fp);
      fputc (*s, fp);
    }
}

/* A text that print makes; the caller frees it.  NULL: reported. */
static char *
text_of (void (*print) (FILE *, const char *), const struct scan_array *a,
         const char *before, const char *between)
{
  char *text = NULL;
  size_t len;
  FILE *fp = open_memstream (&text, &len);

  if (fp == NULL) {
    log_error ("open_memstream: %m");
    return NULL;
  }
  fputs (before, fp);
  for (size_t i = 0; i < a->nr; i++) {
    CLEANUP_FREE char *path = config_member_name (a->member[i]->path);

    if (path == NULL || a->found[i].state == FOUND_UNLISTED)
      continue;
    fputs (between, fp);
    print (fp, path);
  }
  if (fclose (fp) == EOF) {
    log_error ("fclose: %m");
    free (text);
    return NULL;
  }
  return text;
}

static char *
command_of (const struct scan_array *a)
{
  return text_of (quote, a, "nbdkit gpuraid", " ");
}

static char *
config_of (const struct scan_array *a)
{
  char uuid[UUID_TEXT_LEN], first[64];

  snprintf (first, sizeof first, "uuid=%s",
            uuid_text (&a->sb->array_uuid, uuid));
  return text_of (escape, a, first, "\nmember=");
}

/* ---- for a person ------------------------------------------------------ */

static void
show_members (const struct scan_array *a)
{
  for (size_t i = 0; i < a->nr; i++) {
    const char *state = state_of_member (&a->found[i]);
    const unsigned slot = scan_slot (a->sb, a->member[i]);

    if (slot == SLOT_NONE)
      printf ("    %-7s", "");
    else
      printf ("    slot %-2u", slot);
    printf ("  %-10s  ", state ? state : "-");
    text_clean (stdout, a->member[i]->path);
    putchar ('\n');
    if (scan_nr_good (&a->found[i]) < SB_NR_COPIES)
      printf ("%13sonly %u of its %u superblocks are good: has something else "
              "written to it?\n", "", scan_nr_good (&a->found[i]),
              SB_NR_COPIES);
  }
}

static int
show (const struct scan_array *a, struct json_object *running)
{
  CLEANUP_FREE char *command = command_of (a);
  const struct superblock *sb = a->sb;
  char uuid[UUID_TEXT_LEN], size[CLI_SIZE_LEN];

  if (command == NULL)
    return -1;
  if (sb->label[0])
    printf ("%s  ", sb->label);
  printf ("%s  %u+%u  %s  %u of %u members  %s%s\n",
          uuid_text (&sb->array_uuid, uuid), sb->g.k, sb->g.m,
          cli_size (sb->g.size, size), nr_slots_found (a),
          sb->g.k + sb->g.m, state_of (a, running),
          sb->g.widening ? ", being widened" : "");
  show_members (a);
  if (running)
    printf ("  is running: gpuraid status %s\n", get_text (running, "name"));
  else if (!a->d->open) {
    printf ("  can't be opened: ");
    text_clean (stdout, a->d->why);
    putchar ('\n');
  }
  else {
    printf ("  open it: ");
    text_clean (stdout, command);
    putchar ('\n');
  }
  return 0;
}

/* ---- for a program ----------------------------------------------------- */

static struct json_object *
members_to_json (const struct scan_array *a)
{
  struct json_object *list = json_object_new_array ();

  for (size_t i = 0; i < a->nr; i++) {
    struct json_object *o = json_object_new_object ();
    const char *state = state_of_member (&a->found[i]);
    const unsigned slot = scan_slot (a->sb, a->member[i]);

    json_add (o, "path", json_text (a->member[i]->path));
    json_add (o, "slot", slot == SLOT_NONE ? NULL :
              json_object_new_int (slot));
    json_add (o, "state", state ? json_text (state) : NULL);
    json_add (o, "superblocks",
              json_object_new_int (scan_nr_good (&a->found[i])));
    json_object_array_add (list, o);
  }
  return list;
}

static int
add_to_list (const struct scan_array *a, struct json_object *running,
             struct json_object *list)
{
  CLEANUP_FREE char *command = command_of (a), *config = config_of (a);
  const struct superblock *sb = a->sb;
  struct json_object *o = json_object_new_object ();
  char uuid[UUID_TEXT_LEN];

  json_object_array_add (list, o);
  if (command == NULL || config == NULL)
    return -1;
  json_add (o, "label", sb->label[0] ? json_text (sb->label) : NULL);
  json_add (o, "uuid", json_text (uuid_text (&sb->array_uuid, uuid)));
  json_add (o, "k", json_object_new_int (sb->g.k));
  json_add (o, "m", json_object_new_int (sb->g.m));
  json_add (o, "size", json_object_new_uint64 (sb->g.size));
  json_add (o, "widening", json_object_new_boolean (sb->g.widening));
  json_add (o, "state", json_text (state_of (a, running)));
  json_add (o, "why", a->d->open ? NULL : json_text (a->d->why));
  json_add (o, "slots", json_object_new_int (sb->g.k + sb->g.m));
  json_add (o, "found", json_object_new_int (nr_slots_found (a)));
  json_add (o, "members", members_to_json (a));
  json_add (o, "running", running ?
            json_text (get_text (running, "name")) : NULL);
  json_add (o, "command", json_text (command));
  json_add (o, "config", json_text (config));
  return 0;
}

/* ---- all --------------------------------------------------------------- */

/* list: NULL for a person.  0, or -1 reported. */
static int
show_all (const struct scan *s, struct json_object *list)
{
  struct json_object *running = running_list ();
  int r = 0;

  for (size_t i = 0; i < s->nr && r == 0; i++) {
    struct scan_array a;
    char uuid[UUID_TEXT_LEN];

    r = scan_array_make (&a, s, i);
    if (r == 0 && a.sb) {
      struct json_object *o =
        running_find (running, uuid_text (&a.sb->array_uuid, uuid));

      r = list ? add_to_list (&a, o, list) : show (&a, o);
    }
    scan_array_free (&a);
  }
  json_object_put (running);
  return r;
}

/* "a, b, c and 4 more" */
static void
say_forbidden (const struct scan *s)
{
  CLEANUP_FREE char *text = NULL;
  size_t len;
  FILE *fp = open_memstream (&text, &len);

  if (fp == NULL)
    return;
  for (unsigned i = 0; i < MIN (s->nr_forbidden, SCAN_NAMED); i++)
    fprintf (fp, "%s%s", i ? ", " : "", s->forbidden[i] ? s->forbidden[i]
             : "?");
  if (s->nr_forbidden > SCAN_NAMED)
    fprintf (fp, " and %u more", s->nr_forbidden - SCAN_NAMED);
  if (fclose (fp) == 0)
    log_notice ("%s: can't be read%s", text,
                geteuid () ? " by this user: run it as root" :
                ": not permitted");
}

static int
print_all (const struct scan *s, bool json)
{
  struct json_object *list = json ? json_object_new_array () : NULL;
  int r = show_all (s, list);

  if (json && r == 0)
    cli_print_json (list);
  json_object_put (list);
  if (s->nr == 0)
    log_notice ("no array was found%s", s->folders ? "; a folder in a folder "
                "is not looked at: name it" : "");
  if (s->nr_forbidden)
    say_forbidden (s);
  return s->nr ? r : -1;
}

int
cmd_scan (int argc, char **argv)
{
  static const struct option options[] = {
    { "json", no_argument, NULL, 'j' },
    { NULL },
  };
  struct scan s = { 0 };
  bool json = false;
  int opt, r = 0;

  opterr = 0;
  while ((opt = getopt_long (argc, argv, "", options, NULL)) != -1) {
    if (opt != 'j')
      return CLI_USAGE;
    json = true;
  }
  if (optind == argc)
    r = scan_disks (&s);
  for (; optind < argc; optind++)
    r |= scan_path (&s, argv[optind]);
  r |= print_all (&s, json);
  scan_free (&s);
  return r ? EXIT_FAILURE : EXIT_SUCCESS;
}
