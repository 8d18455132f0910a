/* gpuraid: arrays by NAME: the folder of their sockets.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "array/config/config.h"
#include "array/config/file.h"
#include "array/open/choose.h"
#include "array/stores/look.h"
#include "cli/server/names.h"
#include "cli/server/remote.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "member/member.h"

#define RUNDIR_ENV "GPURAID_RUNDIR"     /* for tests */

const char *
names_root_rundir (void)
{
  const char *folder = getenv (RUNDIR_ENV);

  return folder ? folder : NAMES_ROOT_RUNDIR;
}

/* report: whether to report that there is none. */
static char *
find_rundir (bool report)
{
  const char *user = getenv ("XDG_RUNTIME_DIR");
  char *r;

  if (getenv (RUNDIR_ENV) || geteuid () == 0)
    r = strdup (names_root_rundir ());
  else if (user == NULL || user[0] != '/') {
    if (report)
      log_error ("XDG_RUNTIME_DIR is not set, so there is no folder for the "
                 "sockets of arrays: set it, or give the path of a socket");
    return NULL;
  }
  else if (asprintf (&r, "%s/gpuraid", user) == -1)
    r = NULL;
  if (r == NULL)
    log_error ("strdup: %m");
  return r;
}

char *
names_rundir (void)
{
  return find_rundir (true);
}

int
names_make_rundir (void)
{
  CLEANUP_FREE char *dir = names_rundir ();

  if (dir == NULL)
    return -1;
  if (mkdir (dir, geteuid () == 0 ? 0755 : 0700) == -1 && errno != EEXIST) {
    log_error ("mkdir: %s: %m", dir);
    return -1;
  }
  return 0;
}

bool
names_check (const char *name)
{
  if (config_is_name (name))
    return true;
  log_error ("%s: must be a NAME: at most %u letters, digits, dots, "
             "underscores and dashes", name, CONFIG_LABEL_LEN);
  return false;
}

char *
names_socket (const char *name, const char *suffix)
{
  CLEANUP_FREE char *dir = NULL;
  char *path;

  if (!names_check (name))
    return NULL;
  dir = names_rundir ();
  if (dir == NULL)
    return NULL;
  if (asprintf (&path, "%s/%s%s", dir, name, suffix) == -1) {
    log_error ("asprintf: %m");
    return NULL;
  }
  if (strlen (path) >= sizeof ((struct sockaddr_un *) NULL)->sun_path) {
    log_error ("%s: too long a path for a socket: give the array a shorter "
               "name", path);
    free (path);
    return NULL;
  }
  return path;
}

char *
names_uri (const char *path)
{
  static const char start[] = "nbd+unix:///?socket=";
  char *uri = malloc (sizeof start + strlen (path) * 3), *p = uri;

  if (uri == NULL) {
    log_error ("malloc: %m");
    return NULL;
  }
  p = stpcpy (p, start);
  for (const char *c = path; *c; c++)
    p += sprintf (p, strchr ("/._-~", *c) || (*c >= '0' && *c <= '9') ||
                  ((*c | 32) >= 'a' && (*c | 32) <= 'z') ? "%c" : "%%%02X",
                  (unsigned char) *c);
  return uri;
}

/* ---- all of them ----------------------------------------------------- */

static int
is_control (const struct dirent *d)
{
  const size_t len = strlen (d->d_name), end = strlen (NAMES_CONTROL);
  char name[sizeof d->d_name];

  if (len <= end || strcmp (d->d_name + len - end, NAMES_CONTROL) != 0)
    return false;
  strcpy (name, d->d_name);
  name[len - end] = '\0';
  return config_is_name (name);
}

char **
names_list (unsigned *nr)
{
  CLEANUP_FREE char *dir = find_rundir (false);
  struct dirent **d = NULL;
  char **list = NULL;
  int n = 0;

  *nr = 0;
  if (dir)
    n = scandir (dir, &d, is_control, alphasort);
  if (n == -1 && errno != ENOENT) {
    log_error ("%s: %m", dir);
    return NULL;
  }
  list = calloc (n > 0 ? n : 1, sizeof *list);
  for (int i = 0; i < n; i++) {
    if (list) {
      d[i]->d_name[strlen (d[i]->d_name) - strlen (NAMES_CONTROL)] = '\0';
      list[*nr] = strdup (d[i]->d_name);
      *nr += list[*nr] != NULL;
    }
    free (d[i]);
  }
  free (d);
  if (list == NULL)
    log_error ("calloc: %m");
  return list;
}

/* ---- one of them ----------------------------------------------------- */

enum socket_state
names_state (const char *path)
{
  struct sockaddr_un addr = { .sun_family = AF_UNIX };
  CLEANUP_CLOSE int fd = -1;
  struct stat st;

  if (lstat (path, &st) == -1 && errno == ENOENT)
    return SOCKET_NONE;
  if (lstat (path, &st) == 0 && !S_ISSOCK (st.st_mode)) {
    errno = ENOTSOCK;
    return SOCKET_UNKNOWN;
  }
  strncpy (addr.sun_path, path, sizeof addr.sun_path - 1);
  /* Not blocking: a server whose queue is full answers EAGAIN, and is alive. */
  fd = socket (AF_UNIX, SOCK_STREAM|SOCK_NONBLOCK|SOCK_CLOEXEC, 0);
  if (fd == -1 ||
      (connect (fd, (const struct sockaddr *) &addr, sizeof addr) == -1 &&
       errno != EAGAIN)) {
    if (fd != -1 && errno == ECONNREFUSED)
      return SOCKET_DEAD;
    return fd != -1 && errno == ENOENT ? SOCKET_NONE : SOCKET_UNKNOWN;
  }
  return SOCKET_ALIVE;
}

/* Why the state is SOCKET_UNKNOWN, of errno. */
static void
report_unknown (const char *path)
{
  if (errno == ENOTSOCK)
    log_error ("%s: something that is no socket is there: remove it", path);
  else
    log_error ("connect: %s: %m", path);
}

enum socket_state
names_remove_dead (const char *path)
{
  const enum socket_state state = names_state (path);

  if (state == SOCKET_UNKNOWN)
    report_unknown (path);
  if (state == SOCKET_DEAD && unlink (path) == -1 && errno != ENOENT) {
    log_error ("unlink: %s: %m", path);
    return SOCKET_UNKNOWN;
  }
  return state;
}

struct control_client *
names_connect (const char *control, unsigned seconds)
{
  CLEANUP_FREE char *path = NULL;

  if (strchr (control, '/'))
    return control_connect (control, seconds);
  path = names_socket (control, NAMES_CONTROL);
  if (path == NULL)
    return NULL;
  switch (names_state (path)) {
  case SOCKET_NONE:
    log_error ("%s: is not running (%s is not there): gpuraid start %s; a "
               "socket elsewhere is named with a slash", control, path,
               control);
    return NULL;
  case SOCKET_DEAD:
    log_error ("%s: its server has ended without a stop (gpuraid start %s "
               "starts it again)", control, control);
    return NULL;
  case SOCKET_UNKNOWN:
    report_unknown (path);
    return NULL;
  case SOCKET_ALIVE:
    break;
  }
  return control_connect (path, seconds);
}

bool
names_read_config (const char *name, bool complete, struct config *c)
{
  bool r;

  config_init (c);
  log_set_sink (log_nowhere);
  r = config_set (c, "config", name) == 0 &&
    (complete ? config_complete (c, config_choose_members)
     : config_read_file (c)) == 0;
  log_set_sink (NULL);
  return r;
}

/* Whether the array opens with this member, as far as the file can be read. */
static bool
has_member (struct config *c, const char *path)
{
  if (!member_is_uri (path) && access (path, F_OK) == -1)
    return true;
  for (unsigned i = 0; i < c->nr_members; i++)
    if (strcmp (c->member[i], path) == 0 ||
        look_same_store (c->member[i], path))
      return true;
  return false;
}

void
names_remind (const char *control, const char *path)
{
  CLEANUP_FREE char *file = strchr (control, '/') ? NULL :
    config_file_path (control);
  struct config c;
  bool known;

  if (file == NULL || access (file, R_OK) == -1)
    return;
  known = !names_read_config (control, true, &c) || has_member (&c, path);
  if (!known && c.dir)
    log_notice ("%s does not name %s: the members are the files member-*.img "
                "in %s; give it such a name when the array is stopped, or the "
                "next start is without it", file, path, c.dir);
  else if (!known)
    log_notice ("%s does not name %s: add member=%s there, or the next start "
                "is without it", file, path, path);
  config_free (&c);
}

/* A server that is well answers within milliseconds, whatever its disks do. */
#define STATUS_SECONDS 10

struct json_object *
names_status (const char *control)
{
  struct control_client *c = names_connect (control, STATUS_SECONDS);
  struct json_object *status = c ? remote_status (c, true) : NULL;

  control_close (c);
  return status;
}
