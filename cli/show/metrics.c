/* gpuraid metrics: the status of running arrays for Prometheus.
 *
 * To stdout, or to a file that a reader never sees half written.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/server/attached.h"
#include "cli/server/names.h"
#include "cli/server/remote.h"
#include "cli/show/metrics.h"
#include "common/cleanup.h"
#include "common/json-text.h"
#include "common/log.h"

/* The label of an array that is named by its socket: its own name, or else its
 * uuid, or the socket, in UTF-8, as Prometheus refuses all else.
 */
static char *
name_of (const char *control, struct json_object *status)
{
  const char *name = strchr (control, '/') ? NULL : control;
  struct json_object *text;
  char *r;

  if (name == NULL)
    name = get_text (status, "label");
  if (name == NULL)
    name = get_text (status, "uuid");
  text = json_text (name ? name : control);
  r = text ? strdup (json_object_get_string (text)) : NULL;
  json_object_put (text);
  return r;
}

/* ---- where it is written ------------------------------------------------ */

/* In the folder of the file, with a name that does not end like the file's:
 * node_exporter reads all *.prom there.
 */
static FILE *
open_beside (const char *path, char **name)
{
  const mode_t mask = umask (0);
  FILE *fp;
  int fd;

  umask (mask);
  if (asprintf (name, "%s.XXXXXX", path) == -1) {
    *name = NULL;
    log_error ("asprintf: %m");
    return NULL;
  }
  fd = mkostemp (*name, O_CLOEXEC);
  if (fd == -1) {
    log_error ("mkostemp: %s: %m", *name);
    free (*name);
    *name = NULL;
    return NULL;
  }
  /* Another user may read it. */
  fp = fchmod (fd, 0666 & ~mask) == 0 ? fdopen (fd, "w") : NULL;
  if (fp == NULL) {
    log_error ("%s: %m", *name);
    close (fd);
  }
  return fp;
}

/* The file that is to be replaced: of a symbolic link the one that it means.
 * A rename over /dev/null would destroy that.  NULL: reported.
 */
static char *
find_target (const char *path)
{
  struct stat st;
  char *target;

  if (path[0] == '\0' ||
      (stat (path, &st) == 0 && !S_ISREG (st.st_mode))) {
    log_error ("--output %s: is no file: name one, or leave --output out",
               path);
    return NULL;
  }
  target = realpath (path, NULL);
  if (target == NULL)           /* it is not there yet */
    target = strdup (path);
  if (target == NULL)
    log_error ("strdup: %m");
  return target;
}

static int
write_file (const char *path, const struct metrics_source *source, unsigned nr)
{
  CLEANUP_FREE char *name = NULL;
  FILE *fp = open_beside (path, &name);
  bool bad;

  if (name == NULL)
    return -1;
  if (fp == NULL)
    goto err;
  metrics_write (fp, source, nr);
  bad = fflush (fp) == EOF || ferror (fp);
  if (fclose (fp) == EOF || bad) {
    log_error ("write: %s: %m", name);
    goto err;
  }
  if (rename (name, path) == -1) {
    log_error ("rename: %s: %m", path);
    goto err;
  }
  return 0;

 err:
  unlink (name);
  return -1;
}

/* ---- the command --------------------------------------------------------- */

/* Ask the arrays of these names.  -1: one does not answer, or the
 * result could not be written; reported.
 */
static int
run (char **names, unsigned nr, const char *output)
{
  CLEANUP_FREE struct metrics_source *source = NULL;
  CLEANUP_FREE char *target = NULL;
  int r = 0;

  if (output && (target = find_target (output)) == NULL)
    return -1;
  source = calloc (nr + 1, sizeof *source);
  if (source == NULL) {
    log_error ("calloc: %m");
    nr = 0;
    r = -1;
  }
  for (unsigned i = 0; i < nr; i++) {
    source[i].status = attached_add (names_status (names[i]));
    source[i].array = name_of (names[i], source[i].status);
    if (source[i].status == NULL)
      r = -1;
  }
  if (source && target == NULL)
    metrics_write (stdout, source, nr);
  else if (source && write_file (target, source, nr) == -1)
    r = -1;
  for (unsigned i = 0; i < nr; i++) {
    json_object_put (source[i].status);
    free (source[i].array);
  }
  return r;
}

int
cmd_metrics (int argc, char **argv)
{
  static const struct option options[] = {
    { "output", required_argument, NULL, 'o' },
    { NULL },
  };
  const char *output = NULL;
  char **names;
  unsigned nr = 1;
  int opt, r;

  opterr = 0;
  while ((opt = getopt_long (argc, argv, "", options, NULL)) != -1) {
    if (opt != 'o')
      return CLI_USAGE;
    output = optarg;
  }
  if (argc - optind > 1)
    return CLI_USAGE;
  if (optind < argc)
    return run (&argv[optind], 1, output) ? EXIT_FAILURE : EXIT_SUCCESS;

  names = names_list (&nr);
  if (names == NULL)
    return EXIT_FAILURE;
  r = run (names, nr, output);
  for (unsigned i = 0; i < nr; i++)
    free (names[i]);
  free (names);
  return r ? EXIT_FAILURE : EXIT_SUCCESS;
}
