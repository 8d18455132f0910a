/* gpuraid wait: wait until no rebuild is running, or the status is as named.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/server/names.h"
#include "cli/server/remote.h"
#include "cli/show/render.h"
#include "cli/show/text.h"
#include "common/cleanup.h"
#include "common/json-text.h"
#include "common/log.h"

/* The exit status if it is not so in time. */
#define EXIT_TIMEOUT 3
/* How much longer than that a server may take to answer. */
#define ANSWER_S 10
#define MAX_S 1e9

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
  CLEANUP_FREE char *state = NULL;

  if (status == NULL)
    return;
  state = text_render (render_state, status);
  if (get_text (status, "read_only"))
    log_error ("the array is %s, and read-only: %s", state,
               get_text (status, "read_only"));
  else if (is_paused (status))
    log_error ("the array is %s, and its %s is paused (gpuraid rebuild %s "
               "resume)", state, is_paused (status), name);
  else
    log_error ("the array is %s%s", state, get_bool (status, "writable") ? ""
               : ", and nothing is rebuilt before the first connection that "
               "may write");
  json_object_put (status);
}

/* "state is degraded, reasons is [...]" */
static void
render_values (FILE *fp, struct json_object *values)
{
  json_object_object_foreach (values, key, value)
    fprintf (fp, "%s%s is %s", ftell (fp) ? ", " : "", key,
             json_object_is_type (value, json_type_string) ?
             json_object_get_string (value) :
             json_object_to_json_string_ext (value, JSON_C_TO_STRING_PLAIN));
}

/* One line, as it is not what was waited for. */
static void
report_timeout (struct json_object *reply, const char *seconds)
{
  struct json_object *values = get_object (reply, "values");
  CLEANUP_FREE char *text = NULL;

  if (values == NULL) {
    log_error ("not at rest after %s s", seconds);
    return;
  }
  text = text_render (render_values, values);
  log_error ("after %s s %s", seconds, text);
}

/* What the user waits for.  seconds: NULL, or a number. */
static struct json_object *
make_request (char **conditions, int nr, const char *seconds)
{
  struct json_object *request = remote_request ("wait");
  struct json_object *until = nr > 0 ? json_object_new_array () : NULL;

  for (int i = 0; i < nr; i++)
    json_object_array_add (until, json_text (conditions[i]));
  if (until)
    json_object_object_add (request, "until", until);
  if (seconds)
    json_object_object_add (request, "timeout",
                            json_object_new_double (strtod (seconds, NULL)));
  return request;
}

/* Returns an exit status. */
static int
wait_for (const char *name, char **conditions, int nr, const char *seconds)
{
  struct json_object *request, *reply;
  struct control_client *c;
  int r = EXIT_FAILURE;

  c = names_connect (name, seconds ? strtod (seconds, NULL) + ANSWER_S : 0);
  if (c == NULL)
    return EXIT_FAILURE;
  request = make_request (conditions, nr, seconds);
  reply = control_call (c, request, true);
  if (reply && seconds && !get_bool (reply, "reached")) {
    report_timeout (reply, seconds);
    r = EXIT_TIMEOUT;
  }
  else if (reply && get_text (reply, "failed"))
    log_error ("%s", get_text (reply, "failed"));
  else if (reply && (nr > 0 || get_bool (reply, "healthy")))
    r = EXIT_SUCCESS;
  else if (reply)
    report_state (c, name);
  json_object_put (reply);
  json_object_put (request);
  control_close (c);
  return r;
}

int
cmd_wait (int argc, char **argv)
{
  static const struct option options[] = {
    { "timeout", required_argument, NULL, 't' },
    { NULL },
  };
  const char *seconds = NULL;
  char *end;
  int opt;

  opterr = 0;
  while ((opt = getopt_long (argc, argv, "", options, NULL)) != -1) {
    if (opt != 't')
      return CLI_USAGE;
    seconds = optarg;
    if (!(strtod (seconds, &end) >= 0) || strtod (seconds, NULL) > MAX_S ||
        end == seconds || *end) {
      log_error ("--timeout %s: not a number of seconds", seconds);
      return EXIT_USAGE;
    }
  }
  if (argc - optind < 1)
    return CLI_USAGE;
  for (int i = optind + 1; i < argc; i++)
    if (!strpbrk (argv[i], "=<>"))
      return CLI_USAGE;
  return wait_for (argv[optind], argv + optind + 1, argc - optind - 1,
                   seconds);
}
