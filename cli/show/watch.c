/* gpuraid watch: the status of a running array, live.
 *
 * On a terminal a screen that is drawn again each second; elsewhere a line when
 * something has changed.  Ends with the server.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/server/attached.h"
#include "cli/server/names.h"
#include "cli/server/remote.h"
#include "cli/show/render.h"
#include "cli/show/text.h"
#include "cli/show/watch-frame.h"
#include "cli/show/watch-term.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/threads/clock.h"

static double
seconds (void)
{
  return monotonic_ns () / 1e9;
}

/* NULL if the server has gone: *r is the exit status, after a message. */
static struct json_object *
ask (struct control_client *c, bool first, int *r)
{
  struct json_object *status = attached_add (remote_status (c, first));

  *r = EXIT_FAILURE;
  if (status == NULL && !first && control_gone (c)) {
    term_close ();
    printf ("the server has gone\n");
    *r = EXIT_SUCCESS;
  }
  return status;
}

/* ---- on a terminal ---------------------------------------------------- */

static int
draw (const struct watch_sample *now, const struct watch_sample *last)
{
  CLEANUP_FREE char *text = NULL;
  struct watch_screen screen;
  size_t len;
  FILE *fp = open_memstream (&text, &len);

  if (fp == NULL) {
    log_error ("open_memstream: %m");
    return -1;
  }
  term_screen (&screen);
  watch_frame (fp, now, last, &screen);
  if (fclose (fp) == EOF) {
    log_error ("fclose: %m");
    return -1;
  }
  return term_draw (text);
}

static int
watch_screen (struct control_client *c)
{
  struct watch_sample now = { NULL }, last = { NULL };
  enum term_event event = TERM_TIME;
  int r = EXIT_SUCCESS;

  while (event != TERM_QUIT) {
    if (event == TERM_TIME) {
      struct json_object *status = ask (c, now.status == NULL, &r);

      if (status == NULL)
        break;
      if (now.status == NULL)
        term_open ();
      json_object_put (last.status);
      last = now;
      now = (struct watch_sample) { status, seconds () };
    }
    r = EXIT_FAILURE;
    if (draw (&now, &last) == -1)
      break;
    r = EXIT_SUCCESS;
    event = term_wait (now.at + 1 - seconds ());
  }
  term_close ();
  json_object_put (now.status);
  json_object_put (last.status);
  return r;
}

/* ---- elsewhere ---------------------------------------------------------- */

static void
print_line (const char *text, char **last)
{
  time_t now = time (NULL);
  struct tm tm;
  char clock[16];

  if (*last && strcmp (*last, text) == 0)
    return;
  strftime (clock, sizeof clock, "%H:%M:%S", localtime_r (&now, &tm));
  printf ("%s %s\n", clock, text);
  free (*last);
  *last = strdup (text);
}

/* 0, or -1: the output can't be written. */
static int
show (struct json_object *status, char **last)
{
  CLEANUP_FREE char *text = text_render (render_line, status);

  print_line (text, last);
  return fflush (stdout) == EOF ? -1 : 0;
}

static int
watch_lines (struct control_client *c)
{
  CLEANUP_FREE char *last = NULL;

  for (bool first = true;; first = false) {
    int r;
    struct json_object *status = ask (c, first, &r);

    if (status == NULL)
      return r;
    r = show (status, &last);
    json_object_put (status);
    if (r == -1)
      return EXIT_FAILURE;
    sleep (1);
  }
}

int
cmd_watch (int argc, char **argv)
{
  struct control_client *c;
  int i = remote_args (argc, argv, 1, NULL);
  int r;

  if (i == 0)
    return CLI_USAGE;
  c = names_connect (argv[i], 0);
  if (c == NULL)
    return EXIT_FAILURE;
  r = isatty (STDOUT_FILENO) ? watch_screen (c) : watch_lines (c);
  control_close (c);
  return r;
}
