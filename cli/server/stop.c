/* gpuraid stop: end the server of an array, by its name or its control socket.
 *
 * Waits for the NBD clients, or has the server disconnect them.  The server
 * answers when everything is written out, and its connection closes when its
 * process has ended.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "attach/server/server.h"
#include "cli/cli.h"
#include "cli/server/attached.h"
#include "cli/server/names.h"
#include "cli/server/remote.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/threads/clock.h"

/* How long a stop waits for clients. */
struct patience {
  bool force;                   /* not at all */
  bool bounded;                 /* as long as stop-timeout= says */
  uint64_t since;               /* ns */
};

/* In seconds; HUGE_VAL: without an end. */
static double
limit (const struct patience *p, struct json_object *status)
{
  struct json_object *s;

  if (p->force)
    return 0;
  if (!p->bounded ||
      !json_object_object_get_ex (status, "stop_timeout_ms", &s) || s == NULL)
    return HUGE_VAL;
  return json_object_get_uint64 (s) / 1e3;
}

static bool
is_over (const struct patience *p, struct json_object *status)
{
  return (monotonic_ns () - p->since) / 1e9 >= limit (p, status);
}

/* " by " and the names; "" if the server does not say. */
static void
say_clients (struct json_object *status, uint64_t nr)
{
  struct json_object *list = get_object (status, "clients");
  const size_t nr_named = list_len (list);

  for (size_t i = 0; i < nr_named; i++)
    printf ("%s%s", i ? ", " : " by ",
            json_object_get_string (list_at (list, i)));
  if (nr_named && nr > nr_named)
    printf (" and %" PRIu64 " more", nr - nr_named);
}

/* Say which connections there are, and what is done about it. */
static void
say (const struct patience *p, struct json_object *status, uint64_t nr)
{
  const char *closed = nr == 1 ? "it is closed" : "they are closed";

  printf ("%" PRIu64 " NBD connection%s in use", nr, nr == 1 ? " is" : "s are");
  say_clients (status, nr);
  if (is_over (p, status))
    printf (": %s\n", closed);
  else if (limit (p, status) < HUGE_VAL)
    printf (": waiting until %s, %g s at most (stop-timeout=)\n", closed,
            limit (p, status));
  else
    printf (": waiting until %s (--force does not wait)\n", closed);
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

/* The connections that are not waited for: the kernel's driver holds its
 * requests back until the array is served again.  *durable: all that it had an
 * answer to is on the members.  -1: reported.
 */
static int
look_at_device (const char *name, struct control_client *c, bool keep,
                bool *durable)
{
  struct json_object *status = remote_status (c, false);
  char export[STATE_TEXT_LEN];
  struct state s;
  int r = 0;

  if (attached_find (status, &s) == 0) {
    r = keep ? s.kernel : -1;
    state_read_text (&s, "export", export);
    *durable = r == 1 && strcmp (export, SERVER_WRITETHROUGH) == 0;
    if (r == -1)
      log_error ("%s: is attached as /dev/%s: unmount it, and gpuraid detach "
                 "%s, or give --force: then what is not written is lost", name,
                 s.device.name, s.name);
  }
  state_free (&s);
  json_object_put (status);
  return r;
}

/* A client that has just gone is still seen for a moment: no word of it. */
#define LOOKS_BEFORE_SAID 5u

/* Until no more clients are connected than but, or as long as p says.  How many
 * there are, or -1 reported.  durable: of these.
 */
static int
await_clients (struct control_client *c, const struct patience *p, uint64_t but,
               bool durable)
{
  const struct timespec pause = { .tv_nsec = 100000000 };
  uint64_t last = 0;
  unsigned looks = 0;           /* that have seen as many */

  for (;;) {
    struct json_object *status = remote_status (c, true);
    bool refused, over;
    uint64_t nr;

    if (status == NULL)
      return -1;
    nr = get_u64 (status, "connections");
    /* What waits for space is sent again, if it is only theirs. */
    refused = !p->force && would_lose (status, durable && nr <= but);
    over = nr <= but || is_over (p, status);
    looks = nr == last ? looks + 1 : 0;
    if (!refused && nr > but && (looks == LOOKS_BEFORE_SAID || over))
      say (p, status, nr);
    json_object_put (status);
    if (refused)
      return -1;
    if (over)
      return nr;
    last = nr;
    nanosleep (&pause, NULL);
  }
}

/* Returns an exit status. */
static int
stop (const char *name, struct control_client *c, const struct patience *p,
      bool keep)
{
  struct json_object *request, *reply;
  bool durable = false;
  int r;

  r = p->force ? 0 : look_at_device (name, c, keep, &durable);
  if (r >= 0)
    r = await_clients (c, p, r, durable);
  if (r == -1)
    return EXIT_FAILURE;
  request = remote_request ("stop");
  if (p->force || r > 0)
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

/* Returns an exit status. */
static int
connect_and_stop (const char *name, const struct patience *p, bool keep)
{
  struct control_client *c = names_connect (name, 0);
  const int r = c ? stop (name, c, p, keep) : EXIT_FAILURE;

  control_close (c);
  return r;
}

/* By its name also the sockets are removed: nbdkit leaves its own behind. */
static int
stop_by_name (const char *name, const struct patience *p, bool keep)
{
  CLEANUP_FREE char *control = names_socket (name, NAMES_CONTROL);
  CLEANUP_FREE char *nbd = control ? names_socket (name, NAMES_NBD) : NULL;
  enum socket_state state;
  int r = EXIT_FAILURE;

  if (nbd == NULL)
    return EXIT_FAILURE;
  state = names_remove_dead (control);
  if (state == SOCKET_UNKNOWN)
    return EXIT_FAILURE;
  if (state == SOCKET_DEAD)
    log_error ("%s: its server has ended without a stop: gpuraid start %s "
               "opens the array again", name, name);
  else
    r = connect_and_stop (name, p, keep);
  state = names_remove_dead (control);
  /* A server that goes on would log an error of a client that says nothing. */
  if (state != SOCKET_ALIVE && (state == SOCKET_UNKNOWN ||
                                names_remove_dead (nbd) == SOCKET_UNKNOWN))
    r = EXIT_FAILURE;
  return r;
}

int
cmd_stop (int argc, char **argv)
{
  static const struct option options[] = {
    { "bounded", no_argument, NULL, 'b' },
    { "force", no_argument, NULL, 'f' },
    { "keep-attached", no_argument, NULL, 'k' },
    { NULL }
  };
  struct patience p = { .since = monotonic_ns () };
  bool keep = false;
  int opt;

  opterr = 0;
  while ((opt = getopt_long (argc, argv, "", options, NULL)) != -1)
    switch (opt) {
    case 'b': p.bounded = true; break;
    case 'f': p.force = true; break;
    case 'k': keep = true; break;
    default: return CLI_USAGE;
    }
  if (argc - optind != 1)
    return CLI_USAGE;
  if (strchr (argv[optind], '/'))
    return connect_and_stop (argv[optind], &p, keep);
  return names_check (argv[optind]) ? stop_by_name (argv[optind], &p, keep)
    : EXIT_USAGE;
}
