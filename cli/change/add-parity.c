/* gpuraid add-parity: one more parity member for a running array.
 *
 * Returns once the superblocks list it; it is filled in the server.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/server/names.h"
#include "cli/server/remote.h"
#include "common/bits.h"

static bool
is_action (const char *word)
{
  static const char *const actions[] = { "pause", "resume", "cancel" };

  for (size_t i = 0; i < ARRAY_LEN (actions); i++)
    if (strcmp (word, actions[i]) == 0)
      return true;
  return false;
}

int
cmd_add_parity (int argc, char **argv)
{
  struct control_client *c;
  struct json_object *request;
  struct new_flags flags = { false };
  const int i = remote_args (argc, argv, 2, &flags);
  const bool action = i && is_action (argv[i+1]);
  int r = EXIT_FAILURE;
  char *name = NULL;

  if (i == 0 || (action && (flags.force || flags.any_room)))
    return CLI_USAGE;
  if (!action && (name = remote_new_name (argv[i+1])) == NULL)
    return EXIT_FAILURE;
  c = names_connect (argv[i], 0);
  if (c) {
    request = remote_request ("add-parity");
    if (action)
      remote_add (request, "action", argv[i+1]);
    else
      remote_add_new (request, name, &flags);
    r = remote_change (c, request);
    if (r == EXIT_SUCCESS && !action)
      names_remind (argv[i], name);
  }
  free (name);
  control_close (c);
  return r;
}
