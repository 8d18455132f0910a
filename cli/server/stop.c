/* gpuraid stop: end the server of an array, by its name.
 *
 * Waits for the NBD clients, or has the server disconnect them.  The server
 * answers when everything is written out, and its connection closes when its
 * process has ended.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "attach/ask/place.h"
#include "cli/cli.h"
#include "cli/server/names.h"
#include "cli/server/remote.h"
#include "common/cleanup.h"
#include "common/log.h"

/* Say how many connections there are. */
static void
say (uint64_t nr, bool force)
{
  printf ("%" PRIu64 " NBD connection%s in use: %s%s closed%s\n", nr,
          nr == 1 ? " is" : "s are", force ? "" : "waiting until ",
          nr == 1 ? "it is" : "they are",
          force ? "" : " (--force does not wait)");
  fflush (stdout);
}

/* A member whose deleted file only the server has, while it is needed, or that
 * has no space for what waits in the server's memory.  True: reported.
 */
static bool
would_lose (struct json_object *status, bool sent_again)
{
  for (size_t i = 0; i < nr_members (status); i++) {
    struct json_object *m = member_at (status, i);

    if (get_bool (m, "deleted")) {
      log_error ("slot %" PRIu64 ": %s: its file was deleted, its data is lost "
                 "with the server, and too few members would remain: replace "
                 "it first (gpuraid replace), or give --force",
                 get_u64 (m, "slot"), get_text (m, "path"));
      return true;
    }
    if (get_bool (m, "no_space") && !sent_again) {
      log_error ("slot %" PRIu64 ": %s: there is no space, and what waits for "
                 "it would be lost with the server: make room, then it is "
                 "written, or give --force", get_u64 (m, "slot"),
                 get_text (m, "path"));
      return true;
    }
  }
  return false;
}

/* Has this host it as a block device?  0, and s is its state; -1: no. */
static int
find_device (struct control_client *c, struct state *s)
{
  CLEANUP_FREE char *rundir = names_rundir ();
  CLEANUP_FREE char *identity = NULL;
  struct json_object *status = remote_status (c, false);
  int r = -1;

  if (rundir && status &&
      asprintf (&identity, SERVER_ARRAY "%s", get_text (status, "uuid")) != -1)
    r = place_of_server (rundir, identity, s);
  json_object_put (status);
  return r;
}

/* The connections that are not waited for: the kernel's driver holds its
 * requests back until the array is served again.  *durable: all that it had an
 * answer to is on the members.  -1: reported.
 */
static int
look_at_device (const char *name, struct control_client *c, bool keep,
                bool *durable)
{
  struct state s = { .device.fd = -1 };
  char export[STATE_TEXT_LEN];
  int r = 0;

  if (find_device (c, &s) == 0) {
    r = keep ? s.kernel : -1;
    state_read_text (&s, "export", export);
    *durable = r == 1 && strcmp (export, SERVER_WRITETHROUGH) == 0;
    if (r == -1)
      log_error ("%s: is attached as /dev/%s: unmount it, and gpuraid detach "
                 "%s, or give --force: then what is not written is lost", name,
                 s.device.name, s.name);
  }
  state_free (&s);
  return r;
}

/* Until no more clients are connected than but, or with force only once.  How
 * many there are, or -1 reported.  durable: of these.
 */
static int
await_clients (struct control_client *c, bool force, uint64_t but, bool durable)
{
  const struct timespec pause = { .tv_nsec = 100000000 };
  uint64_t last = 0;

  for (;;) {
    struct json_object *status = remote_status (c, true);
    bool refused;
    uint64_t nr;

    if (status == NULL)
      return -1;
    nr = get_u64 (status, "connections");
    /* What waits for space is sent again, if it is only theirs. */
    refused = !force && would_lose (status, durable && nr <= but);
    json_object_put (status);
    if (refused)
      return -1;
    if (nr > but && nr != last)
      say (nr, force);
    if (nr <= but || force)
      return nr;
    last = nr;
    nanosleep (&pause, NULL);
  }
}

/* Returns an exit status. */
static int
stop (const char *name, struct control_client *c, bool force, bool keep)
{
  struct json_object *request, *reply;
  bool durable = false;
  int r;

  r = force ? 0 : look_at_device (name, c, keep, &durable);
  if (r >= 0)
    r = await_clients (c, force, r, durable);
  if (r == -1)
    return EXIT_FAILURE;
  request = remote_request ("stop");
  if (force || r > 0)
    json_object_object_add (request, "force", json_object_new_boolean (1));
  reply = control_call (c, request, true);
  json_object_put (request);
  if (reply == NULL)
    return EXIT_FAILURE;
  r = get_bool (reply, "written_out") ? EXIT_SUCCESS : EXIT_FAILURE;
  if (r == EXIT_FAILURE)
    log_error ("the server has stopped, but what was written last may not be "
               "on the members (the system's log says why)");
  json_object_put (reply);
  control_await_end (c);
  return r;
}

int
cmd_stop (int argc, char **argv)
{
  CLEANUP_FREE char *control = NULL, *nbd = NULL;
  enum socket_state state;
  struct control_client *c;
  static const struct option options[] = {
    { "force", no_argument, NULL, 'f' },
    { "keep-attached", no_argument, NULL, 'k' },
    { NULL }
  };
  bool force = false, keep = false;
  int r = EXIT_FAILURE, opt, i;

  opterr = 0;
  while ((opt = getopt_long (argc, argv, "", options, NULL)) != -1) {
    if (opt != 'f' && opt != 'k')
      return CLI_USAGE;
    *(opt == 'f' ? &force : &keep) = true;
  }
  i = optind;
  if (argc - i != 1)
    return CLI_USAGE;
  if (!names_check (argv[i]))
    return EXIT_USAGE;
  control = names_socket (argv[i], NAMES_CONTROL);
  nbd = control ? names_socket (argv[i], NAMES_NBD) : NULL;
  if (nbd == NULL)
    return EXIT_FAILURE;
  state = names_remove_dead (control);
  if (state == SOCKET_UNKNOWN)
    return EXIT_FAILURE;
  if (state == SOCKET_DEAD)
    log_error ("%s: its server has ended without a stop: gpuraid start %s "
               "opens the array again", argv[i], argv[i]);
  else {
    c = names_connect (argv[i], 0);
    if (c)
      r = stop (argv[i], c, force, keep);
    control_close (c);
  }
  /* nbdkit leaves its socket behind. */
  if (names_remove_dead (control) == SOCKET_UNKNOWN ||
      names_remove_dead (nbd) == SOCKET_UNKNOWN)
    r = EXIT_FAILURE;
  return r;
}
