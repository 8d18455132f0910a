/* gpuraid readd: take a member again that is back.
 *
 * Returns once the member has joined; the rebuild continues in the server.
 *
 * With --uuid the member says which array it is of.  It is given back only if
 * it was missing: one that was taken out, for its errors or by a command, does
 * not come back by itself.  Its server knows which it was.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "array/config/config.h"
#include "array/stores/look.h"
#include "cli/cli.h"
#include "cli/server/names.h"
#include "cli/server/remote.h"
#include "cli/server/running.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/threads/clock.h"
#include "raidmap/uuid.h"

static int
report (struct json_object *reply)
{
  const char *rebuild = get_text (reply, "rebuild");

  if (rebuild && strcmp (rebuild, "changes") == 0)
    printf ("what was changed meanwhile is rebuilt\n");
  else if (rebuild && strcmp (rebuild, "full") == 0)
    printf ("it is rebuilt in full: the array does not know all that it "
            "missed\n");
  return EXIT_SUCCESS;
}

/* Returns an exit status. */
static int
readd (struct control_client *c, const char *member)
{
  struct json_object *request = remote_request ("readd"), *reply;
  int r = EXIT_FAILURE;

  remote_add (request, "member", member);
  reply = control_call (c, request, true);
  if (reply)
    r = report (reply);
  json_object_put (reply);
  json_object_put (request);
  return r;
}

static int
readd_named (const char *name, const char *arg)
{
  struct control_client *c = names_connect (name, 0);
  CLEANUP_FREE char *member = c ? remote_member (c, arg) : NULL;
  const int r = member ? readd (c, member) : EXIT_FAILURE;

  /* A slot number or a uuid is where it was before. */
  if (r == EXIT_SUCCESS && strchr (member, '/'))
    names_remind (name, member);
  control_close (c);
  return r;
}

/* ---- by its uuid ------------------------------------------------------ */

/* 0, or -1 reported. */
static int
read_uuids (const char *path, char array[UUID_TEXT_LEN],
            char member[UUID_TEXT_LEN])
{
  CLEANUP_FREE struct found *f = malloc (sizeof *f);
  const struct superblock *sb;
  int err = f ? look_at (path, f) : ENOMEM;

  if (err) {
    log_error ("%s: %s", path, err == EINVAL ?
               "no file or disk that is large enough for a member" :
               strerror (err));
    return -1;
  }
  sb = found_newest (f);
  if (sb == NULL) {
    log_error ("%s: no gpuraid superblock: it is no member", path);
    return -1;
  }
  uuid_text (&sb->array_uuid, array);
  uuid_text (&sb->member_uuid, member);
  return 0;
}

/* The state of the array, once a server has it: it may be on its way.  The
 * caller frees it; NULL: there is none.
 */
static struct json_object *
await_running (const char *uuid, unsigned seconds)
{
  const struct timespec pause = { .tv_nsec = 200000000 };
  const uint64_t since = monotonic_ns ();

  for (;;) {
    struct json_object *list = running_list ();
    struct json_object *status = json_object_get (running_find (list, uuid));

    json_object_put (list);
    if (status || monotonic_ns () - since >= seconds * UINT64_C (1000000000))
      return status;
    nanosleep (&pause, NULL);
  }
}

/* Borrowed; NULL: it is not listed. */
static struct json_object *
find_member (struct json_object *status, const char *uuid)
{
  for (size_t i = 0; i < nr_members (status); i++) {
    const char *u = get_text (member_at (status, i), "uuid");

    if (u && strcmp (u, uuid) == 0)
      return member_at (status, i);
  }
  return NULL;
}

static int
give_back (struct json_object *status, const char *path, const char *uuid)
{
  struct json_object *m = find_member (status, uuid);
  const char *state = m ? get_text (m, "state") : NULL;
  const char *name = get_text (status, "name");
  const uint64_t slot = m ? get_u64 (m, "slot") : 0;
  struct control_client *c;
  int r;

  if (state == NULL) {
    log_error ("%s: is of %s, but no member that is missing there: gpuraid "
               "readd %s %s takes it, or says why not", path, name, name, path);
    return EXIT_FAILURE;
  }
  if (strcmp (state, "failed") == 0) {
    log_error ("%s: slot %" PRIu64 " of %s: was taken out, and does not come "
               "back by itself: gpuraid readd %s %" PRIu64, path, slot, name,
               name, slot);
    return EXIT_FAILURE;
  }
  if (strcmp (state, "missing") != 0) {
    printf ("%s: is in use by %s: there is nothing to do\n", path, name);
    return EXIT_SUCCESS;
  }
  c = names_connect (name, 0);
  if (c == NULL)
    return EXIT_FAILURE;
  r = readd (c, path);
  if (r == EXIT_SUCCESS) {
    printf ("%s: is slot %" PRIu64 " of %s again\n", path, slot, name);
    names_remind (name, path);
  }
  control_close (c);
  return r;
}

static int
readd_by_uuid (const char *arg, unsigned seconds)
{
  CLEANUP_FREE char *path = config_absolute_path (arg);
  char array[UUID_TEXT_LEN], member[UUID_TEXT_LEN];
  struct json_object *status;
  int r;

  if (path == NULL || read_uuids (path, array, member) == -1)
    return EXIT_FAILURE;
  status = await_running (array, seconds);
  if (status == NULL) {
    log_error ("%s: is of the array %s, which does not run here (gpuraid scan "
               "says how to open it)", path, array);
    return EXIT_NO_ANSWER;
  }
  r = give_back (status, path, member);
  json_object_put (status);
  return r;
}

int
cmd_readd (int argc, char **argv)
{
  static const struct option options[] = {
    { "uuid", no_argument, NULL, 'u' },
    { "wait", required_argument, NULL, 'w' },
    { NULL },
  };
  unsigned seconds = 0;
  bool by_uuid = false;
  int opt;

  opterr = 0;
  while ((opt = getopt_long (argc, argv, "", options, NULL)) != -1)
    switch (opt) {
    case 'u': by_uuid = true; break;
    case 'w':
      if (!cli_seconds (optarg, &seconds))
        return CLI_USAGE;
      break;
    default: return CLI_USAGE;
    }
  argc -= optind;
  argv += optind;
  if (by_uuid)
    return argc == 1 ? readd_by_uuid (argv[0], seconds) : CLI_USAGE;
  return argc == 2 && seconds == 0 ? readd_named (argv[0], argv[1]) : CLI_USAGE;
}
