/* gpuraid rate: how fast rebuild and scrub of a running array may go.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <inttypes.h>
#include <stdlib.h>

#include "array/config/config.h"
#include "cli/cli.h"
#include "cli/server/names.h"
#include "cli/server/remote.h"
#include "common/log.h"

static int
show (struct control_client *c)
{
  struct json_object *status = remote_status (c, true);
  char size[CLI_SIZE_LEN];
  uint64_t limit;

  if (status == NULL)
    return EXIT_FAILURE;
  limit = get_u64 (status, "rate_limit");
  json_object_put (status);
  if (limit)
    printf ("%s/s of each member\n", cli_size (limit, size));
  else
    printf ("no limit\n");
  return EXIT_SUCCESS;
}

static int
set (struct control_client *c, uint64_t limit)
{
  struct json_object *request = remote_request ("rate");

  json_object_object_add (request, "limit", json_object_new_uint64 (limit));
  return remote_change (c, request);
}

int
cmd_rate (int argc, char **argv)
{
  struct control_client *c;
  uint64_t limit = 0;
  int r;

  if (argc < 2 || argc > 3 || argv[1][0] == '-')
    return CLI_USAGE;
  if (argc == 3 && config_parse_rate (argv[2], &limit) == -1) {
    log_error ("%s: not bytes a second (a number, also with K, M, G or T; 0 "
               "or max for no limit)", argv[2]);
    return EXIT_USAGE;
  }
  c = names_connect (argv[1], 0);
  if (c == NULL)
    return EXIT_FAILURE;
  r = argc == 3 ? set (c, limit) : show (c);
  control_close (c);
  return r;
}
