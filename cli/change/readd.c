/* gpuraid readd: take a member again that is back.
 *
 * Returns once the member has joined; the rebuild continues in the server.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/server/names.h"
#include "cli/server/remote.h"

static int
report (struct json_object *reply)
{
  const char *rebuild = get_text (reply, "rebuild");

  if (rebuild && strcmp (rebuild, "changes") == 0)
    printf ("what was changed meanwhile is rebuilt\n");
  else if (rebuild && strcmp (rebuild, "full") == 0)
    printf ("it is rebuilt in full: the array does not know all that it "
            "missed\n");
  return EXIT_SUCCESS;
}

int
cmd_readd (int argc, char **argv)
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
    request = remote_request ("readd");
    remote_add (request, "member", member);
    reply = control_call (c, request, true);
    if (reply)
      r = report (reply);
    json_object_put (reply);
    json_object_put (request);
  }
  free (member);
  control_close (c);
  return r;
}
