/* gpuraid wait: wait until no rebuild is running.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/names.h"
#include "cli/remote.h"
#include "common/log.h"

/* Which work is, or NULL. */
static const char *
is_paused (struct json_object *status)
{
  return get_bool (get_object (status, "rebuild"), "paused") ? "rebuild" :
    get_bool (get_object (status, "resync"), "paused") ? "resync" : NULL;
}

/* One line that says why the array is not healthy. */
static void
report_state (struct control_client *c, const char *name)
{
  struct json_object *status = remote_status (c, true);
  char *state = NULL;
  size_t len;
  FILE *fp;

  if (status == NULL)
    return;
  fp = open_memstream (&state, &len);
  if (fp == NULL) {
    log_error ("open_memstream: %m");
    goto out;
  }
  render_state (fp, status);
  if (fclose (fp) == EOF)
    log_error ("fclose: %m");
  else if (get_text (status, "read_only"))
    log_error ("the array is %s, and read-only: %s", state,
               get_text (status, "read_only"));
  else if (is_paused (status))
    log_error ("the array is %s, and its %s is paused (gpuraid rebuild %s "
               "resume)", state, is_paused (status), name);
  else
    log_error ("the array is %s%s", state, get_bool (status, "writable") ? ""
               : ", and nothing is rebuilt before the first connection that "
               "may write");
 out:
  free (state);
  json_object_put (status);
}

int
cmd_wait (int argc, char **argv)
{
  struct control_client *c;
  struct json_object *request, *reply;
  int i = remote_args (argc, argv, 1, NULL, NULL);
  int r = EXIT_FAILURE;

  if (i == 0)
    return cli_usage (argv[0]);
  c = names_connect (argv[i], 0);
  if (c == NULL)
    return EXIT_FAILURE;
  request = remote_request ("wait");
  reply = control_call (c, request, true);
  if (reply && get_text (reply, "failed"))
    log_error ("%s", get_text (reply, "failed"));
  else if (reply && get_bool (reply, "healthy"))
    r = EXIT_SUCCESS;
  else if (reply)
    report_state (c, argv[i]);
  json_object_put (reply);
  json_object_put (request);
  control_close (c);
  return r;
}
