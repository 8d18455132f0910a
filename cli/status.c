/* gpuraid status: the state of a running array.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/remote.h"
#include "common/log.h"

int
cmd_status (int argc, char **argv)
{
  struct control_client *c;
  struct json_object *status;
  bool json = false;
  int i = remote_args (argc, argv, 1, "json", &json);

  if (i == 0)
    return cli_usage (argv[0]);
  c = control_connect (argv[i]);
  if (c == NULL)
    return EXIT_FAILURE;
  status = remote_status (c, true);
  control_close (c);
  if (status == NULL)
    return EXIT_FAILURE;

  if (json)
    puts (json_object_to_json_string_ext (status, JSON_C_TO_STRING_PRETTY |
                                          JSON_C_TO_STRING_SPACED |
                                          JSON_C_TO_STRING_NOSLASHESCAPE));
  else {
    render_array (stdout, status);
    render_members (stdout, status);
    render_counters (stdout, status);
  }
  json_object_put (status);
  if (fflush (stdout) == EOF || ferror (stdout)) {
    log_error ("stdout: %m");
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
