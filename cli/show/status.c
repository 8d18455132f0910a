/* gpuraid status: the state of a running array, or a line for each.
 *
 * The exit status says the worst state, for scripts that watch arrays.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/server/attached.h"
#include "cli/server/names.h"
#include "cli/server/remote.h"
#include "cli/show/render.h"
#include "cli/show/smart.h"
#include "common/bits.h"
#include "common/cleanup.h"
#include "common/json-text.h"
#include "common/log.h"

/* Exit statuses, the worse the greater. */
enum { HEALTHY, DEGRADED, FAILED, NO_ANSWER = EXIT_NO_ANSWER };

static bool quiet, json, verbose;

static int
exit_status (struct json_object *status)
{
  static const char *const names[] = {
    [HEALTHY] = "healthy", [DEGRADED] = "degraded", [FAILED] = "failed",
  };
  const char *state = render_word (status);

  if (state && strcmp (state, RENDER_DAMAGED) == 0)
    return DEGRADED;

  for (size_t i = 0; state && i < ARRAY_LEN (names); i++)
    if (strcmp (state, names[i]) == 0)
      return i;
  return NO_ANSWER;
}

static int
show_one (const char *control)
{
  struct json_object *status = attached_add (names_status (control));
  int r = NO_ANSWER;

  if (status == NULL)
    return r;
  r = exit_status (status);
  if (json && !quiet)
    cli_print_json (status);
  else if (!quiet) {
    render_array (stdout, status);
    render_members (stdout, status);
    render_counters (stdout, status);
    if (verbose)
      smart_print (stdout, status);
  }
  json_object_put (status);
  return r;
}

/* ---- all of them ----------------------------------------------------- */

/* Whether there is only the socket of a server that is there no more. */
static bool
has_ended (const char *name)
{
  CLEANUP_FREE char *path = names_socket (name, NAMES_CONTROL);

  return path && names_state (path) == SOCKET_DEAD;
}

/* status: NULL if it does not answer.  With json the line is an object of
 * list.
 */
static void
show_line (const char *name, struct json_object *status,
           struct json_object *list)
{
  struct json_object *o;

  if (!json) {
    if (status)
      render_short (stdout, name, status);
    else
      printf ("%-16s  %s\n", name, has_ended (name) ?
              "has ended without a stop" : "does not answer");
    return;
  }
  o = status ? json_object_get (status) : json_object_new_object ();
  json_object_object_add (o, "name", json_text (name));
  if (status == NULL)
    json_object_object_add (o, "state", NULL);
  json_object_array_add (list, o);
}

static int
show_all (void)
{
  struct json_object *list = json_object_new_array ();
  unsigned nr;
  char **names = names_list (&nr);
  int worst = names ? HEALTHY : NO_ANSWER;

  for (unsigned i = 0; i < nr; i++) {
    struct json_object *status = attached_add (names_status (names[i]));

    worst = MAX (worst, status ? exit_status (status) : NO_ANSWER);
    if (!quiet)
      show_line (names[i], status, list);
    json_object_put (status);
    free (names[i]);
  }
  if (json && !quiet)
    cli_print_json (list);
  else if (names && nr == 0)
    log_notice ("no array is running");
  free (names);
  json_object_put (list);
  return worst;
}

int
cmd_status (int argc, char **argv)
{
  static const struct option options[] = {
    { "json", no_argument, NULL, 'j' },
    { "quiet", no_argument, NULL, 'q' },
    { "verbose", no_argument, NULL, 'v' },
    { NULL },
  };
  int opt;

  opterr = 0;
  while ((opt = getopt_long (argc, argv, "", options, NULL)) != -1) {
    json |= opt == 'j';
    quiet |= opt == 'q';
    verbose |= opt == 'v';
    if (opt == '?')
      return CLI_USAGE;
  }
  if (argc - optind > 1 || (verbose && (argc == optind || json || quiet)))
    return CLI_USAGE;
  if (quiet)
    log_set_sink (log_nowhere);
  return optind < argc ? show_one (argv[optind]) : show_all ();
}
