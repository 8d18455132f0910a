/* gpuraid watch: the status of a running array, live.
 *
 * On a terminal the whole status, drawn again each second; elsewhere a line
 * when something has changed.  Ends with the server.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/remote.h"
#include "common/bits.h"
#include "common/cleanup.h"
#include "common/log.h"

/* The counters when the screen was last drawn. */
struct sample {
  double at;                    /* seconds; 0: none yet */
  uint64_t read_ops, read_bytes, write_ops, write_bytes;
};

static double
seconds (void)
{
  struct timespec t;

  clock_gettime (CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}

static void
render_rate (FILE *fp, const char *what, double ops, double bytes)
{
  char size[CLI_SIZE_LEN];

  fprintf (fp, "%s %s/s, %.0f operations/s", what,
           cli_size (MAX (bytes, 0), size), MAX (ops, 0));
}

/* Bytes and operations per second since *last, which is updated. */
static void
render_rates (FILE *fp, struct json_object *status, struct sample *last)
{
  struct json_object *c = get_object (status, "counters");
  struct sample now = {
    .at = seconds (),
    .read_ops = get_u64 (c, "read_ops"),
    .read_bytes = get_u64 (c, "read_bytes"),
    .write_ops = get_u64 (c, "write_ops"),
    .write_bytes = get_u64 (c, "write_bytes"),
  };
  double t = now.at - last->at;

  if (last->at > 0 && t > 0) {
    fprintf (fp, "     now: ");
    render_rate (fp, "read", (now.read_ops - last->read_ops) / t,
                 (now.read_bytes - last->read_bytes) / t);
    render_rate (fp, "; write", (now.write_ops - last->write_ops) / t,
                 (now.write_bytes - last->write_bytes) / t);
    fputc ('\n', fp);
  }
  *last = now;
}

/* Draw from the top left corner over the old content.  Each line is cleared to
 * its end and truncated at the edge; one write, so that nothing flickers and an
 * interrupt leaves the terminal intact.
 */
static void
draw (const char *text)
{
  struct winsize w;
  int rows = ioctl (STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_row > 1 ?
    w.ws_row - 1 : 24;

  fputs ("\033[?7l\033[H", stdout);
  for (; *text && rows > 0; rows--) {
    size_t len = strcspn (text, "\n");

    fwrite (text, 1, len, stdout);
    fputs ("\033[K\n", stdout);
    text += len + (text[len] == '\n');
  }
  fputs ("\033[J\033[?7h", stdout);
}

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

/* 0, or -1: the reader has gone, or reported. */
static int
show (struct json_object *status, bool tty, struct sample *sample,
      char **last)
{
  CLEANUP_FREE char *text = NULL;
  size_t len;
  FILE *fp = open_memstream (&text, &len);

  if (fp == NULL) {
    log_error ("open_memstream: %m");
    return -1;
  }
  if (tty) {
    render_array (fp, status);
    render_rates (fp, status, sample);
    render_members (fp, status);
    render_counters (fp, status);
  }
  else
    render_line (fp, status);
  if (fclose (fp) == EOF) {
    log_error ("fclose: %m");
    return -1;
  }
  if (tty)
    draw (text);
  else
    print_line (text, last);
  if (fflush (stdout) == EOF) {
    log_error ("stdout: %m");
    return -1;
  }
  return 0;
}

static int
watch (struct control_client *c)
{
  bool tty = isatty (STDOUT_FILENO), first = true;
  struct sample sample = { 0 };
  CLEANUP_FREE char *last = NULL;

  for (;; first = false) {
    struct json_object *status = remote_status (c, first);
    int r;

    if (status == NULL) {
      if (first || !control_gone (c))
        return EXIT_FAILURE;
      printf ("the server has gone\n");
      return EXIT_SUCCESS;
    }
    if (first && tty)
      fputs ("\033[2J", stdout);
    r = show (status, tty, &sample, &last);
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
  int i = remote_args (argc, argv, 1, NULL, NULL);
  int r;

  if (i == 0)
    return cli_usage (argv[0]);
  c = control_connect (argv[i]);
  if (c == NULL)
    return EXIT_FAILURE;
  /* All of a screen in one write. */
  setvbuf (stdout, NULL, _IOFBF, 64 << 10);
  r = watch (c);
  control_close (c);
  return r;
}
