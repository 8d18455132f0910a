/* gpuraid: which state a server has, and which name a new one gets.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/ask/ask.h"
#include "attach/ask/place.h"
#include "attach/state/link.h"
#include "common/cleanup.h"
#include "common/log.h"

#define NAMES 1000

/* Call it for each state until it is true of one, which is then in s. */
static int
find (const char *rundir, struct state *s, const void *what,
      bool (*is) (const struct state *, const void *))
{
  unsigned nr;
  char **list = state_list (rundir, &nr);
  bool found = false;

  for (unsigned i = 0; list && i < nr; i++) {
    if (!found) {
      found = state_read (s, rundir, list[i]) == 0 && is (s, what);
      if (!found)
        state_free (s);
    }
    free (list[i]);
  }
  free (list);
  return found ? 0 : -1;
}

static bool
is_server (const struct state *s, const void *identity)
{
  char text[STATE_TEXT_LEN];

  state_read_text (s, "server", text);
  return strcmp (text, identity) == 0 && state_is_live (s);
}

int
place_of_server (const char *rundir, const char *identity, struct state *s)
{
  return find (rundir, s, identity, is_server);
}

static bool
is_device (const struct state *s, const void *name)
{
  return strcmp (s->device.name, name) == 0 && block_is_there (&s->device);
}

static bool
is_orphan (const struct state *s, const void *request)
{
  const struct attach_request *r = request;
  char text[STATE_TEXT_LEN];

  state_read_text (s, "uri", text);
  return strcmp (text, r->uri) == 0 &&
    (r->name == NULL || strcmp (s->name, r->name) == 0) &&
    !state_has_owner (s) && s->device.name[0] && block_is_there (&s->device);
}

int
place_of_orphan (const struct attach_request *r, struct state *s)
{
  return find (r->rundir, s, r, is_orphan);
}

int
place_of_name (const char *rundir, const char *text, struct state *s)
{
  CLEANUP_FREE char *path = strchr (text, '/') ? realpath (text, NULL) : NULL;

  if (path ? find (rundir, s, strrchr (path, '/') + 1, is_device) == 0
      : text[0] != '\0' && text[0] != '.' && !strchr (text, '/') &&
      state_read (s, rundir, text) == 0)
    return 0;
  log_error ("%s: is not attached", text);
  return -1;
}

/* ---- a new one ---- */

/* Letters, digits, dots, underscores and dashes, as in the name of an array. */
static void
make_name (const struct server_export *e, char name[STATE_NAME_LEN])
{
  const char *end = strrchr (e->address, '/');
  size_t len;

  snprintf (name, STATE_NAME_LEN, "%s",
            end ? end + 1 : strncmp (e->address, "tcp ", 4) == 0
            ? e->address + 4 : "nbd");
  len = strlen (name);
  if (end && len > 5 && strcmp (name + len - 5, ".sock") == 0)
    name[len - 5] = '\0';
  for (char *c = name; *c; c++)
    if (!isalnum ((unsigned char) *c) && !strchr ("_-", *c) &&
        (*c != '.' || c == name))
      *c = '_';
  if (name[0] == '\0')
    strcpy (name, "nbd");
}

static void
say_lost (const char *name, const char *lost)
{
  if (lost[0])
    log_notice ("%s: was attached before; what was written then is not all on "
                "the server: %s", name, lost);
}

/* A state of that name that is not alive is removed. */
static bool
is_free (const struct attach_request *r, const char *name)
{
  struct state s;
  char lost[STATE_TEXT_LEN];
  bool is = true;

  if (state_read (&s, r->rundir, name) == 0) {
    is = !state_is_live (&s);
    if (is) {
      state_read_text (&s, "lost", lost);
      say_lost (name, lost);
      link_remove (&s);
      state_remove (&s);
    }
  }
  state_free (&s);
  return is;
}

static int
choose_name (const struct attach_request *r, const struct server_export *e,
             char name[STATE_NAME_LEN])
{
  char base[STATE_NAME_LEN];

  if (r->name) {
    snprintf (name, STATE_NAME_LEN, "%s", r->name);
    if (is_free (r, name))
      return 0;
    log_error ("%s: is the name of another server that is attached", name);
    return -1;
  }
  make_name (e, base);
  for (unsigned i = 1; i < NAMES; i++) {
    if (i == 1)
      snprintf (name, STATE_NAME_LEN, "%s", base);
    else
      snprintf (name, STATE_NAME_LEN, "%.59s-%u", base, i);
    if (is_free (r, name))
      return 0;
  }
  log_error ("%s: there are too many of this name", base);
  return -1;
}

static void
refuse (const struct attach_request *r, const struct state *s)
{
  CLEANUP_FREE char *users = ask_users (s);

  if (s->device.name[0])
    log_error ("%s: attached already as /dev/%s, %s", r->uri, s->device.name,
               users ? users : "which gpuraid detach takes away");
  else
    log_error ("%s: is being attached just now", r->uri);
}

void
place_again (const struct attach_request *r, const struct server_export *e)
{
  struct state s;
  char lost[STATE_TEXT_LEN];

  if (place_of_server (r->rundir, server_identity (e), &s) == -1)
    return;
  if (ask_detach (&s, 0, lost) == 1)
    say_lost (s.name, lost);
  state_free (&s);
}

int
place_new (const struct attach_request *r, const struct server_export *e,
           struct state *s, char name[STATE_NAME_LEN], bool *adopt)
{
  *adopt = false;
  if (place_of_server (r->rundir, server_identity (e), s) == -1)
    return choose_name (r, e, name);
  *adopt = !r->again && !state_has_owner (s);
  if (*adopt)
    return 0;
  refuse (r, s);
  state_free (s);
  return -1;
}
