/* gpuraid replace: rebuild a member of a running array onto another.
 *
 * Returns once the new member has joined; the rebuild continues in the server.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>

#include "cli/cli.h"
#include "cli/server/names.h"
#include "cli/server/remote.h"

int
cmd_replace (int argc, char **argv)
{
  struct control_client *c;
  struct json_object *request;
  char *member, *name = NULL;
  struct new_flags flags = { false };
  int i = remote_args (argc, argv, 3, &flags);
  int r = EXIT_FAILURE;

  if (i == 0)
    return CLI_USAGE;
  c = names_connect (argv[i], 0);
  if (c == NULL)
    return EXIT_FAILURE;
  member = remote_member (c, argv[i+1]);
  if (member)
    name = remote_new_name (argv[i+2]);
  if (name) {
    request = remote_request ("replace");
    remote_add (request, "member", member);
    remote_add_new (request, name, &flags);
    r = remote_change (c, request);
    if (r == EXIT_SUCCESS)
      names_remind (argv[i], name);
  }
  free (name);
  free (member);
  control_close (c);
  return r;
}
