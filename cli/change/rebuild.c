/* gpuraid rebuild: pause the rebuild and the resync of a running array.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/server/names.h"
#include "cli/server/remote.h"
#include "cli/show/render.h"
#include "common/bits.h"

static int
show (struct control_client *c)
{
  static const char *const work[] = { "rebuild", "resync" };
  struct json_object *status = remote_status (c, true);
  unsigned nr = 0;

  if (status == NULL)
    return EXIT_FAILURE;
  for (size_t i = 0; i < ARRAY_LEN (work); i++) {
    struct json_object *o = get_object (status, work[i]);

    if (o == NULL)
      continue;
    printf ("%s: ", work[i]);
    render_progress (stdout, o);
    printf ("\n");
    nr++;
  }
  json_object_put (status);
  if (nr == 0)
    printf ("no rebuild or resync is running\n");
  return EXIT_SUCCESS;
}

static int
set (struct control_client *c, const char *action)
{
  struct json_object *request = remote_request ("rebuild");

  remote_add (request, "action", action);
  return remote_change (c, request);
}

int
cmd_rebuild (int argc, char **argv)
{
  struct control_client *c;
  int r;

  if (argc < 2 || argc > 3 || argv[1][0] == '-' ||
      (argc == 3 && strcmp (argv[2], "pause") != 0 &&
       strcmp (argv[2], "resume") != 0))
    return CLI_USAGE;
  c = names_connect (argv[1], 0);
  if (c == NULL)
    return EXIT_FAILURE;
  r = argc == 3 ? set (c, argv[2]) : show (c);
  control_close (c);
  return r;
}
