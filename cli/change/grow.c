/* gpuraid grow: let a running array use all of its members.
 *
 * Returns when the new size is in force.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/server/names.h"
#include "cli/server/remote.h"

static void
report (struct json_object *reply)
{
  const uint64_t old = get_u64 (reply, "old_size");
  const uint64_t new = get_u64 (reply, "new_size");
  char size[2][CLI_SIZE_LEN];

  printf ("the array has grown from %s to %s (%" PRIu64 " to %" PRIu64
          " bytes)\nclients see the new size when they connect again; then "
          "let the file system grow\n", cli_size (old, size[0]),
          cli_size (new, size[1]), old, new);
}

int
cmd_grow (int argc, char **argv)
{
  struct control_client *c;
  struct json_object *request, *reply;
  int i = remote_args (argc, argv, 1, NULL);

  if (i == 0)
    return CLI_USAGE;
  c = names_connect (argv[i], 0);
  if (c == NULL)
    return EXIT_FAILURE;
  request = remote_request ("grow");
  reply = control_call (c, request, true);
  if (reply)
    report (reply);
  json_object_put (request);
  control_close (c);
  if (reply == NULL)
    return EXIT_FAILURE;
  json_object_put (reply);
  return EXIT_SUCCESS;
}
