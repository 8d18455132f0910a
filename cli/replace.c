/* gpuraid replace: rebuild a member of a running array onto another.
 *
 * Returns once the new member has joined; the rebuild continues in the server.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>
#include <string.h>

#include "array/config.h"
#include "cli/cli.h"
#include "cli/remote.h"
#include "common/log.h"

/* NEW in the server's form: a URI unchanged, a path made absolute. */
static char *
new_name (const char *arg)
{
  char *r;

  if (arg[0] == '\0') {
    log_error ("the new member has no name");
    return NULL;
  }
  if (strstr (arg, "://") == NULL)
    return config_absolute_path (arg);
  r = strdup (arg);
  if (r == NULL)
    log_error ("strdup: %m");
  return r;
}

int
cmd_replace (int argc, char **argv)
{
  struct control_client *c;
  struct json_object *request;
  char *member, *name = NULL;
  bool force = false;
  int i = remote_args (argc, argv, 3, "force", &force);
  int r = EXIT_FAILURE;

  if (i == 0)
    return cli_usage (argv[0]);
  c = control_connect (argv[i]);
  if (c == NULL)
    return EXIT_FAILURE;
  member = remote_member (c, argv[i+1]);
  if (member)
    name = new_name (argv[i+2]);
  if (name) {
    request = remote_request ("replace");
    remote_add (request, "member", member);
    remote_add (request, "new", name);
    json_object_object_add (request, "force", json_object_new_boolean (force));
    r = remote_change (c, request);
  }
  free (name);
  free (member);
  control_close (c);
  return r;
}
