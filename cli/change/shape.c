/* gpuraid: what add-parity and widen share.
 *
 * Returns once the superblocks list the new member; the rest goes on in the
 * server.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>
#include <string.h>

#include "cli/change/shape.h"
#include "cli/cli.h"
#include "cli/server/names.h"
#include "common/bits.h"
#include "common/cleanup.h"

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
shape_change (const char *command, char *const *args,
              const struct new_flags *flags)
{
  const bool action = is_action (args[1]);
  CLEANUP_FREE char *name = NULL;
  struct control_client *c;
  struct json_object *request;
  int r;

  if (action && (flags->force || flags->any_room))
    return CLI_USAGE;
  if (!action && (name = remote_new_name (args[1])) == NULL)
    return EXIT_FAILURE;
  c = names_connect (args[0], 0);
  if (c == NULL)
    return EXIT_FAILURE;
  request = remote_request (command);
  if (action)
    remote_add (request, "action", args[1]);
  else
    remote_add_new (request, name, flags);
  r = remote_change (c, request);
  if (r == EXIT_SUCCESS && !action)
    names_remind (args[0], name);
  control_close (c);
  return r;
}
