/* gpuraid: shared by the subcommands for a running array.
 *
 * Reads their arguments, makes requests, and converts the names that a user
 * gives into those that the server knows, as it has another working folder.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "array/config/config.h"
#include "array/stores/look.h"
#include "cli/cli.h"
#include "cli/server/remote.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "raidmap/uuid.h"

int
remote_args (int argc, char **argv, int nr, struct new_flags *f)
{
  static const struct option options[] = {
    { "force", no_argument, NULL, 'f' },
    { "any-room", no_argument, NULL, 'r' },
    { NULL },
  };
  int c;

  opterr = 0;
  while ((c = getopt_long (argc, argv, "", options, NULL)) != -1) {
    if (f == NULL || (c != 'f' && c != 'r'))
      return 0;
    *(c == 'f' ? &f->force : &f->any_room) = true;
  }
  return argc - optind == nr ? optind : 0;
}

struct json_object *
remote_request (const char *command)
{
  struct json_object *request = json_object_new_object ();

  remote_add (request, "command", command);
  return request;
}

void
remote_add (struct json_object *request, const char *key, const char *text)
{
  /* Not json_text: a path must arrive as it is. */
  json_object_object_add (request, key, json_object_new_string (text));
}

void
remote_add_new (struct json_object *request, const char *name,
                const struct new_flags *f)
{
  remote_add (request, "new", name);
  json_object_object_add (request, "force",
                          json_object_new_boolean (f->force));
  /* A server that is older knows no such key. */
  if (f->any_room)
    json_object_object_add (request, "any_room", json_object_new_boolean (1));
}

struct json_object *
remote_status (struct control_client *c, bool report_gone)
{
  struct json_object *request = remote_request ("status");
  struct json_object *reply = control_call (c, request, report_gone);
  struct json_object *status = NULL;

  if (reply) {
    status = json_object_get (get_object (reply, "status"));
    if (status == NULL)
      log_error ("the server answered without a status");
  }
  json_object_put (reply);
  json_object_put (request);
  return status;
}

int
remote_change (struct control_client *c, struct json_object *request)
{
  struct json_object *reply = control_call (c, request, true);
  int r = reply ? EXIT_SUCCESS : EXIT_FAILURE;

  json_object_put (reply);
  json_object_put (request);
  return r;
}

/* The path in the status that arg names; borrowed.  NULL: none. */
static const char *
find_member (struct json_object *status, const char *arg, const char *abs)
{
  for (int by_store = 0; by_store < 2; by_store++)
    for (size_t i = 0; i < nr_members (status); i++) {
      const char *path = get_text (member_at (status, i), "path");

      if (path && (by_store ? look_same_store (path, abs)
                   : strcmp (path, arg) == 0 || strcmp (path, abs) == 0))
        return path;
    }
  return NULL;
}

char *
remote_member (struct control_client *c, const char *arg)
{
  struct json_object *status;
  CLEANUP_FREE char *abs = NULL;
  uuid_bytes uuid;
  const char *known;
  char *r;

  if (arg[0] && (arg[strspn (arg, "0123456789")] == '\0' ||
                 uuid_parse (arg, &uuid) == 0))
    abs = strdup (arg);
  else if (arg[0])
    abs = config_member_name (arg);
  else
    log_error ("the member has no name: give its slot number, a path or a "
               "uuid");
  if (abs == NULL)
    return NULL;

  status = remote_status (c, true);
  if (status == NULL)
    return NULL;
  known = abs[0] == '/' ? find_member (status, arg, abs) : NULL;
  r = strdup (known ? known : abs);
  if (r == NULL)
    log_error ("strdup: %m");
  json_object_put (status);
  return r;
}

char *
remote_new_name (const char *arg)
{
  if (arg[0] == '\0') {
    log_error ("the new member has no name: give a path");
    return NULL;
  }
  return config_member_name (arg);
}

struct json_object *
get_object (struct json_object *o, const char *key)
{
  struct json_object *v;

  if (json_object_is_type (o, json_type_object) &&
      json_object_object_get_ex (o, key, &v) &&
      (json_object_is_type (v, json_type_object) ||
       json_object_is_type (v, json_type_array)))
    return v;
  return NULL;
}

static struct json_object *
get_typed (struct json_object *o, const char *key, enum json_type type)
{
  struct json_object *v;

  if (json_object_is_type (o, json_type_object) &&
      json_object_object_get_ex (o, key, &v) && json_object_is_type (v, type))
    return v;
  return NULL;
}

uint64_t
get_u64 (struct json_object *o, const char *key)
{
  struct json_object *v = get_typed (o, key, json_type_int);

  return v ? json_object_get_uint64 (v) : 0;
}

const char *
get_text (struct json_object *o, const char *key)
{
  struct json_object *v = get_typed (o, key, json_type_string);

  return v ? json_object_get_string (v) : NULL;
}

bool
get_bool (struct json_object *o, const char *key)
{
  struct json_object *v = get_typed (o, key, json_type_boolean);

  return v && json_object_get_boolean (v);
}

size_t
list_len (struct json_object *list)
{
  return json_object_is_type (list, json_type_array) ?
    json_object_array_length (list) : 0;
}

struct json_object *
list_at (struct json_object *list, size_t i)
{
  return i < list_len (list) ? json_object_array_get_idx (list, i) : NULL;
}

size_t
nr_members (struct json_object *status)
{
  return list_len (get_object (status, "members"));
}

struct json_object *
member_at (struct json_object *status, size_t i)
{
  return list_at (get_object (status, "members"), i);
}
