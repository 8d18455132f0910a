/* gpuraid attach: the server of an array, or any NBD server, as a block device
 * of this host.
 *
 * It starts the process that owns the device (attach/ask/start.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/ask/ask.h"
#include "attach/ask/place.h"
#include "attach/ask/start.h"
#include "attach/foreground.h"
#include "attach/request.h"
#include "cli/cli.h"
#include "cli/server/names.h"
#include "common/cleanup.h"
#include "common/log.h"

#define DEAD_TIMEOUT 600
#define PATIENCE 5              /* seconds */

/* A NAME, the path of a socket, or a URI.  The caller frees it; NULL: reported,
 * and *usage: it is none of these.
 */
static char *
find_uri (const char *text, bool *usage)
{
  CLEANUP_FREE char *path = NULL;

  if (strstr (text, "://"))
    return strdup (text);
  if (strchr (text, '/'))
    path = realpath (text, NULL);
  else {
    *usage = !names_check (text);
    path = *usage ? NULL : names_socket (text, NAMES_NBD);
  }
  if (path == NULL) {
    if (strchr (text, '/'))
      log_error ("%s: %m", text);
    return NULL;
  }
  return names_uri (path);
}

/* Returns an exit status. */
static int
resize (const char *rundir, const char *name)
{
  struct state s = { .device.fd = -1 };
  uint64_t size;
  int r = -1;

  if (place_of_name (rundir, name, &s) == 0)
    r = ask_resize (&s, PATIENCE, &size);
  if (r == 0)
    printf ("/dev/%s has %" PRIu64 " bytes\n", s.device.name, size);
  state_free (&s);
  return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Returns an exit status. */
static int
in_background (const struct attach_request *r, char *const *args)
{
  char device[BLOCK_PATH_LEN];

  if (start_in_background (r, args, device) == -1)
    return EXIT_FAILURE;
  printf ("%s\n", device);
  return EXIT_SUCCESS;
}

struct options {
  struct attach_request request;
  bool resize, foreground;
};

/* 0, or an exit status. */
static int
read_options (int argc, char **argv, struct options *o)
{
  static const struct option options[] = {
    { "with", required_argument, NULL, 'w' },
    { "name", required_argument, NULL, 'n' },
    { "dead-timeout", required_argument, NULL, 't' },
    { "no-wait", no_argument, NULL, 'p' },
    { "again", no_argument, NULL, 'a' },
    { "mountpoint", required_argument, NULL, 'm' },
    { "resize", no_argument, NULL, 'r' },
    { "foreground", no_argument, NULL, 'f' },
    { NULL }
  };
  struct attach_request *r = &o->request;
  int opt;

  opterr = 0;
  while ((opt = getopt_long (argc, argv, "", options, NULL)) != -1)
    switch (opt) {
    case 'w':
      r->way = strcmp (optarg, "kernel") == 0 ? ATTACH_KERNEL
        : strcmp (optarg, "fuse") == 0 ? ATTACH_FUSE : ATTACH_ANY;
      if (r->way == ATTACH_ANY)
        return CLI_USAGE;
      break;
    case 'n':
      if (!names_check (optarg))
        return EXIT_USAGE;
      r->name = optarg;
      break;
    case 't':
      if (!cli_seconds (optarg, &r->dead_timeout))
        return CLI_USAGE;
      break;
    case 'p': r->patience = 0; break;
    case 'a': r->again = true; break;
    case 'm': r->mountpoint = optarg; break;
    case 'r': o->resize = true; break;
    case 'f': o->foreground = true; break;
    default: return CLI_USAGE;
    }
  return argc - optind == 1 ? 0 : CLI_USAGE;
}

int
cmd_attach (int argc, char **argv)
{
  struct options o = { .request = { .dead_timeout = DEAD_TIMEOUT,
                                    .patience = PATIENCE } };
  struct attach_request *r = &o.request;
  CLEANUP_FREE char *rundir = NULL, *uri = NULL;
  CLEANUP_FREE char **args = calloc (argc, sizeof *args);
  bool usage = false;
  int status;

  /* Before getopt puts them into another order. */
  for (int i = 1; args && i < argc; i++)
    args[i - 1] = argv[i];
  status = read_options (argc, argv, &o);
  if (status)
    return status;
  if (args == NULL || !cli_is_root () || names_make_rundir () == -1 ||
      (rundir = names_rundir ()) == NULL)
    return EXIT_FAILURE;
  if (o.resize)
    return resize (rundir, argv[optind]);
  r->rundir = rundir;
  r->uri = uri = find_uri (argv[optind], &usage);
  if (uri == NULL)
    return usage ? EXIT_USAGE : EXIT_FAILURE;
  if (r->name == NULL && !strchr (argv[optind], '/'))
    r->name = argv[optind];
  r->link = strcmp (rundir, NAMES_ROOT_RUNDIR) == 0;
  return o.foreground ? foreground_run (r) : in_background (r, args);
}
