/* gpuraid: as which block device of this host a running array is attached.
 *
 * The server does not know that: it has an NBD client like others.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdio.h>

#include "attach/ask/place.h"
#include "attach/device/users.h"
#include "cli/server/attached.h"
#include "cli/server/names.h"
#include "cli/server/remote.h"
#include "common/cleanup.h"
#include "common/json-text.h"

int
attached_find (struct json_object *status, struct state *s)
{
  const char *uuid = get_text (status, "uuid");
  CLEANUP_FREE char *identity = NULL;

  s->device.fd = -1;
  s->dir = NULL;
  if (uuid == NULL || asprintf (&identity, SERVER_ARRAY "%s", uuid) == -1) {
    identity = NULL;
    return -1;
  }
  /* To attach one is for root. */
  return place_of_server (names_root_rundir (), identity, s);
}

static void
add_place (void *list, const char *where)
{
  json_object_array_add (list, json_text (where));
}

struct json_object *
attached_add (struct json_object *status)
{
  struct json_object *o = NULL, *list;
  char path[BLOCK_PATH_LEN];
  struct state s;

  if (status == NULL)
    return NULL;
  if (attached_find (status, &s) == 0 && s.device.name[0]) {
    o = json_object_new_object ();
    list = json_object_new_array ();
    block_path (&s.device, path);
    users_each_place (path, add_place, list);
    json_object_object_add (o, "device", json_text (path));
    json_object_object_add (o, "way", json_text (s.kernel ? "kernel" : "fuse"));
    json_object_object_add (o, "mounted", list);
    json_object_object_add (o, "ended", json_object_new_boolean
                            (!s.kernel && !state_has_helper (&s)));
  }
  json_object_object_add (status, "attached", o);
  state_free (&s);
  return status;
}
