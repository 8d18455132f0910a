/* gpuraid fail: take a member out of a running array.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/server/names.h"
#include "cli/server/remote.h"

int
cmd_fail (int argc, char **argv)
{
  struct control_client *c;
  struct json_object *request, *reply;
  char *member;
  int i = remote_args (argc, argv, 2, NULL);
  int r = EXIT_FAILURE;

  if (i == 0)
    return CLI_USAGE;
  c = names_connect (argv[i], 0);
  if (c == NULL)
    return EXIT_FAILURE;
  member = remote_member (c, argv[i+1]);
  if (member) {
    request = remote_request ("fail");
    remote_add (request, "member", member);
    reply = control_call (c, request, true);
    r = reply ? EXIT_SUCCESS : EXIT_FAILURE;
    if (get_bool (reply, "already"))
      printf ("%s is out already\n", argv[i+1]);
    json_object_put (reply);
    json_object_put (request);
  }
  free (member);
  control_close (c);
  return r;
}
