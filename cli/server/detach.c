/* gpuraid detach: take a block device away that gpuraid attach has made.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "attach/ask/ask.h"
#include "attach/ask/place.h"
#include "cli/cli.h"
#include "cli/server/names.h"
#include "common/cleanup.h"
#include "common/log.h"

int
cmd_detach (int argc, char **argv)
{
  static const struct option options[] = {
    { "wait", required_argument, NULL, 'w' },
    { NULL }
  };
  CLEANUP_FREE char *rundir = NULL, *users = NULL;
  struct state s = { .device.fd = -1 };
  char lost[STATE_TEXT_LEN];
  unsigned seconds = 0;
  int r, opt;

  opterr = 0;
  while ((opt = getopt_long (argc, argv, "", options, NULL)) != -1)
    if (opt != 'w' || !cli_seconds (optarg, &seconds))
      return CLI_USAGE;
  if (argc - optind != 1)
    return CLI_USAGE;
  if (!cli_is_root () || (rundir = names_rundir ()) == NULL ||
      place_of_name (rundir, argv[optind], &s) == -1) {
    state_free (&s);
    return EXIT_FAILURE;
  }
  r = ask_detach (&s, seconds, lost);
  if (r == 0) {
    users = ask_users (&s);
    log_error ("%s: /dev/%s is still %s; it stays attached", s.name,
               s.device.name, users ? users
               : "in use, it is not known by what");
  }
  else if (r == 1 && lost[0]) {
    log_error ("%s: detached, but what was written is not all on the server: "
               "%s", s.name, lost);
    r = 0;
  }
  state_free (&s);
  return r == 1 ? EXIT_SUCCESS : EXIT_FAILURE;
}
