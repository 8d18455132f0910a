/* gpuraid: which arrays run on this host.
 *
 * Asks each server that has a control socket in RUNDIR.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>
#include <string.h>

#include "cli/server/names.h"
#include "cli/server/remote.h"
#include "cli/server/running.h"
#include "common/cleanup.h"
#include "common/json-text.h"
#include "control/reply.h"

/* How long a server may take to say which array it has. */
#define TIMEOUT 5               /* seconds */

struct json_object *
running_list (void)
{
  struct json_object *list = json_object_new_array ();
  unsigned nr;
  char **names = names_list (&nr);

  for (unsigned i = 0; names && i < nr; i++) {
    CLEANUP_FREE char *path = names_socket (names[i], NAMES_CONTROL);
    struct control_client *c = NULL;
    struct json_object *status = NULL;

    if (path && names_state (path) == SOCKET_ALIVE)
      c = control_connect (path, TIMEOUT);
    if (c)
      status = remote_status (c, false);
    control_close (c);
    if (status) {
      json_add (status, "name", json_text (names[i]));
      json_object_array_add (list, status);
    }
    free (names[i]);
  }
  free (names);
  return list;
}

struct json_object *
running_find (struct json_object *list, const char *uuid)
{
  for (size_t i = 0; i < list_len (list); i++) {
    struct json_object *o = list_at (list, i);
    const char *u = get_text (o, "uuid");

    if (u && strcmp (u, uuid) == 0)
      return o;
  }
  return NULL;
}
