/* gpuraid spare: add a member that takes the place of one that fails.
 *
 * Returns once the superblocks list it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>

#include "cli/cli.h"
#include "cli/server/names.h"
#include "cli/server/remote.h"

int
cmd_spare (int argc, char **argv)
{
  struct control_client *c;
  struct json_object *request;
  struct new_flags flags = { false };
  const int i = remote_args (argc, argv, 2, &flags);
  int r = EXIT_FAILURE;
  char *name;

  if (i == 0)
    return CLI_USAGE;
  name = remote_new_name (argv[i+1]);
  if (name == NULL)
    return EXIT_FAILURE;
  c = names_connect (argv[i], 0);
  if (c) {
    request = remote_request ("spare");
    remote_add_new (request, name, &flags);
    r = remote_change (c, request);
    if (r == EXIT_SUCCESS)
      names_remind (argv[i], name);
  }
  free (name);
  control_close (c);
  return r;
}
