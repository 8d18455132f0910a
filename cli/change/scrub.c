/* gpuraid scrub: look at every row of a running array.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/server/names.h"
#include "cli/server/remote.h"
#include "common/bits.h"

static bool
is_action (const char *word)
{
  static const char *const actions[] = { "start", "stop", "pause", "resume" };

  for (size_t i = 0; i < ARRAY_LEN (actions); i++)
    if (strcmp (word, actions[i]) == 0)
      return true;
  return false;
}

int
cmd_scrub (int argc, char **argv)
{
  static const struct option options[] = {
    { "repair", no_argument, NULL, 'r' },
    { NULL },
  };
  struct json_object *request;
  struct control_client *c;
  bool repair = false;
  const char *action;
  int opt, r;

  opterr = 0;
  while ((opt = getopt_long (argc, argv, "", options, NULL)) != -1) {
    if (opt != 'r')
      return CLI_USAGE;
    repair = true;
  }
  if (argc - optind < 1 || argc - optind > 2)
    return CLI_USAGE;
  action = argc - optind == 2 ? argv[optind + 1] : "start";
  if (!is_action (action) || (repair && strcmp (action, "start") != 0))
    return CLI_USAGE;
  c = names_connect (argv[optind], 0);
  if (c == NULL)
    return EXIT_FAILURE;
  request = remote_request ("scrub");
  remote_add (request, "action", action);
  if (repair)
    json_object_object_add (request, "repair", json_object_new_boolean (1));
  r = remote_change (c, request);
  control_close (c);
  return r;
}
