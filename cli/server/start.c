/* gpuraid start: serve an array by its name.
 *
 * Runs nbdkit with the plugin and the file of keys.  The server checks the keys
 * and the members, and says what is wrong.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

#include "array/config/file.h"
#include "cli/cli.h"
#include "cli/server/await.h"
#include "cli/server/names.h"
#include "cli/server/remote.h"
#include "common/bits.h"
#include "common/cleanup.h"
#include "common/log.h"

#define PLUGIN "nbdkit-gpuraid-plugin.so"

extern char **environ;

/* The plugin beside this program, else the installed one. */
static char *
find_plugin (void)
{
  char self[PATH_MAX], *slash, *path;
  const ssize_t len = readlink ("/proc/self/exe", self, sizeof self - 1);

  self[len > 0 ? len : 0] = '\0';
  slash = strrchr (self, '/');
  if (slash && asprintf (&path, "%.*s/%s", (int) (slash - self), self,
                         PLUGIN) != -1) {
    if (access (path, R_OK) == 0)
      return path;
    free (path);
  }
  path = strdup ("gpuraid");
  if (path == NULL)
    log_error ("strdup: %m");
  return path;
}

/* 0, or -1 reported. */
static int
clear_sockets (const char *name, const char *control, const char *nbd)
{
  enum socket_state state = names_remove_dead (control);

  if (state == SOCKET_ALIVE) {
    log_error ("%s: is running already (gpuraid status %s)", name, name);
    return -1;
  }
  if (state == SOCKET_UNKNOWN)
    return -1;
  state = names_remove_dead (nbd);
  if (state == SOCKET_ALIVE)
    log_error ("%s: another server uses that socket: stop it first", nbd);
  return state == SOCKET_ALIVE || state == SOCKET_UNKNOWN ? -1 : 0;
}

/* Is there a log of the system?  A container often has none, and messages that
 * are sent to it are lost.
 */
static bool
has_syslog (void)
{
  const struct sockaddr_un addr = { .sun_family = AF_UNIX,
                                    .sun_path = _PATH_LOG };
  static const int types[] = { SOCK_DGRAM, SOCK_STREAM };
  bool found = false;

  for (size_t i = 0; i < ARRAY_LEN (types) && !found; i++) {
    const int fd = socket (AF_UNIX, types[i] | SOCK_CLOEXEC, 0);

    found = fd >= 0 &&
      connect (fd, (const struct sockaddr *) &addr, sizeof addr) == 0;
    if (fd >= 0)
      close (fd);
  }
  return found;
}

/* An error of nbdkit in the background, after its start, reaches only the log.
 * log: its file, or NULL: that of the system.
 */
static int
check_serves (const char *name, const char *control, const char *nbd,
              const char *log)
{
  CLEANUP_FREE char *uri = names_uri (nbd);
  struct control_client *c = NULL;
  struct json_object *status = NULL;

  if (names_state (control) == SOCKET_ALIVE)
    c = control_connect (control, 0);
  if (c)
    status = remote_status (c, false);
  control_close (c);
  if (status == NULL) {
    log_error ("%s: the server ended when it had started; gpuraid start -f %s "
               "shows why%s%s", name, name, log ? ", or " : "", log ? log : "");
    names_remove_dead (nbd);
    return EXIT_FAILURE;
  }
  json_object_put (status);
  if (uri)
    printf ("%s: %s\n", name, uri);
  if (log)
    printf ("%s: there is no syslog: messages go to %s\n", name, log);
  return EXIT_SUCCESS;
}

static int
no_nbdkit (int err)
{
  log_error ("nbdkit: %s%s", strerror (err),
             err == ENOENT ? " (install it, or add its folder to PATH)" : "");
  return EXIT_FAILURE;
}

/* nbdkit goes to the background when it is ready to serve. */
static int
run_in_background (char **argv)
{
  int status, err;
  pid_t pid;

  err = posix_spawnp (&pid, argv[0], NULL, NULL, argv, environ);
  if (err)
    return no_nbdkit (err);
  while (waitpid (pid, &status, 0) == -1)
    if (errno != EINTR) {
      log_error ("waitpid: %m");
      return EXIT_FAILURE;
    }
  if (WIFSIGNALED (status))
    log_error ("nbdkit: %s", strsignal (WTERMSIG (status)));
  return WIFEXITED (status) && WEXITSTATUS (status) == 0 ? EXIT_SUCCESS
    : EXIT_FAILURE;
}

/* Keys in the array's file.  In the background log=stderr means no log=. */
struct said {
  bool log, log_file, resume;
};

static struct said
read_file (const char *name)
{
  struct said said = { false };
  struct config c;

  if (names_read_config (name, false, &c))
    said = (struct said) {
      .log = c.log && strcmp (c.log, "stderr") != 0,
      .log_file = c.log && !config_is_log_word (c.log),
      .resume = c.given & BIT (config_find_key ("resume")),
    };
  config_free (&c);
  return said;
}

static int
start (const char *name, bool foreground, unsigned wait)
{
  CLEANUP_FREE char *control = names_socket (name, NAMES_CONTROL);
  CLEANUP_FREE char *nbd = control ? names_socket (name, NAMES_NBD) : NULL;
  CLEANUP_FREE char *plugin = find_plugin ();
  CLEANUP_FREE char *log = NULL;
  CLEANUP_FREE char *config_key = NULL, *control_key = NULL, *log_key = NULL;
  char *argv[] = { "", "-f", "-U", nbd, plugin, NULL, NULL, NULL, NULL, NULL };
  char **args, **last = &argv[5];
  const struct said file = read_file (name);
  bool to_file;

  if (nbd == NULL || plugin == NULL)
    return EXIT_FAILURE;
  if (!foreground && !has_syslog () && !file.log &&
      (log = names_socket (name, NAMES_LOG)) == NULL)
    return EXIT_FAILURE;
  if (asprintf (&config_key, "config=%s", name) == -1 ||
      asprintf (&control_key, "control=%s", control) == -1 ||
      asprintf (&log_key, "log=%s", log ? log : "") == -1) {
    log_error ("asprintf: %m");
    return EXIT_FAILURE;
  }
  /* nbdkit's own messages go to stderr, which the plugin makes the file. */
  to_file = log || (!foreground && file.log_file);
  if (to_file)
    argv[1] = "--log=stderr";
  *last++ = config_key;
  *last++ = control_key;
  if (log)
    *last++ = log_key;
  /* What is on the command line counts, not what the file says. */
  if (!file.resume)
    *last++ = "resume=yes";
  args = foreground || to_file ? argv : argv + 1;
  args[0] = "nbdkit";
  if (names_make_rundir () == -1 || clear_sockets (name, control, nbd) == -1)
    return EXIT_FAILURE;
  await_members (name, wait);
  if (foreground) {
    execvp (args[0], args);
    return no_nbdkit (errno);
  }
  if (run_in_background (args) != EXIT_SUCCESS) {
    names_remove_dead (nbd);
    return EXIT_FAILURE;
  }
  return check_serves (name, control, nbd, log);
}

int
cmd_start (int argc, char **argv)
{
  static const struct option options[] = {
    { "wait", required_argument, NULL, 'w' },
    { NULL },
  };
  bool foreground = false;
  unsigned wait = 0;
  int opt;

  opterr = 0;
  while ((opt = getopt_long (argc, argv, "f", options, NULL)) != -1) {
    if (opt != 'f' && (opt != 'w' || !cli_seconds (optarg, &wait)))
      return CLI_USAGE;
    foreground |= opt == 'f';
  }
  if (argc - optind != 1)
    return CLI_USAGE;
  if (!names_check (argv[optind]))
    return EXIT_USAGE;
  return start (argv[optind], foreground, wait);
}
