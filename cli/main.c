/* gpuraid: find the subcommand.
 *
 * Has the names and the usage of each; each subcommand is in the file named
 * after it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "common/bits.h"
#include "common/log.h"
#include "gpu/compiler/child.h"

static const struct command {
  const char *name;
  int (*run) (int argc, char **argv);
  const char *args;
  const char *what;
  void (*help) (void);          /* more for --help, or NULL */
  int no_answer;                /* exit status of CLI_USAGE, and if stdout
                                 * can't be written; 0: EXIT_USAGE,
                                 * EXIT_FAILURE */
} commands[] = {
  { "create", cmd_create,
    "[--force] [--any-room] [--dry-run] k=K m=M [chunk=SIZE] [size=SIZE]\n"
    "                      [code=rs|crs] [w=4|8] [checksum=none|crc32c]\n"
    "                      [consistency=none|journal] [journal-size=SIZE]\n"
    "                      [allocate=no|yes] [label=NAME] [multihost=no|yes]\n"
    "                      MEMBER...",
    "make a new array" },
  { "examine", cmd_examine, "[--brief|--json|--udev] MEMBER...",
    "what a member's superblock says" },
  { "check", cmd_check, "[--repair] MEMBER...",
    "look at every row of an array that is not running; exit 1 if\n"
    "      something is wrong" },
  { "status", cmd_status, "[--json] [--quiet] [--verbose] [CONTROL]",
    "state, members, progress and counters of a running array, or a line\n"
    "      for each; exit 0 healthy, 1 degraded, 2 failed, 3 no answer",
    .no_answer = EXIT_NO_ANSWER },
  { "metrics", cmd_metrics, "[--output FILE] [CONTROL]",
    "the same of one array, or all that run, in the text format of\n"
    "      Prometheus" },
  { "watch", cmd_watch, "CONTROL", "the status of a running array, live" },
  { "fail", cmd_fail, "CONTROL MEMBER",
    "take a member out (by slot number or path)" },
  { "replace", cmd_replace, "[--force] [--any-room] CONTROL MEMBER NEW",
    "rebuild a member onto NEW, online" },
  { "spare", cmd_spare, "[--force] [--any-room] CONTROL NEW",
    "add a hot spare: it takes the place of a member that fails" },
  { "readd", cmd_readd, "CONTROL MEMBER|--uuid [--wait SECONDS] DEVICE",
    "a member that was taken out or missing is back: bring it up to date.\n"
    "      --uuid: if it was missing, of whichever array it is" },
  { "grow", cmd_grow, "CONTROL",
    "use all of the members, when all were replaced by larger ones" },
  { "add-parity", cmd_add_parity,
    "[--force] [--any-room] CONTROL NEW|pause|resume|cancel",
    "one more parity member, online: m grows by one; or pause to fill it,\n"
    "      go on, or take it back before it is filled" },
  { "widen", cmd_widen,
    "[--force] [--any-room] CONTROL NEW|pause|resume|cancel",
    "one more data member, online: k grows by one, and the array when its\n"
    "      rows have moved; or pause that, go on, or take it back before it\n"
    "      begins" },
  { "scrub", cmd_scrub, "CONTROL [--repair] [start|stop|pause|resume]",
    "look at every row that was ever written" },
  { "rebuild", cmd_rebuild, "CONTROL [pause|resume]",
    "pause the rebuild and the resync, or go on with them; or how far\n"
    "      they are" },
  { "rate", cmd_rate, "CONTROL [BYTES_PER_SECOND|max]",
    "how fast rebuild and scrub may go, of each member; 0 for no limit" },
  { "wait", cmd_wait, "CONTROL [--timeout SECONDS] [CONDITION...]",
    "until no rebuild or scrub is running; exit 0 if the array is healthy.\n"
    "      With a CONDITION on the status until it holds; exit 3 if it does\n"
    "      not in time" },
  { "scan", cmd_scan, "[--json] [PATH...]",
    "arrays on the disks of this machine, or in files and folders; how to\n"
    "      open each" },
  { "start", cmd_start, "[-f] [--wait SECONDS] NAME",
    "serve the array that /etc/gpuraid.d/NAME.conf describes; -f: do not\n"
    "      go to the background; --wait: for members that come late" },
  { "stop", cmd_stop, "[--force] [--bounded] [--keep-attached] CONTROL",
    "write everything out and end its server; --force: also while NBD\n"
    "      clients are connected; --bounded: wait for them for a time" },
  { "attach", cmd_attach,
    "[--with kernel|fuse] [--name NAME] [--dead-timeout SECONDS]\n"
    "                      [--again] [--no-wait] [--foreground] [--resize]\n"
    "                      [--mountpoint FOLDER] NAME|SOCKET|URI",
    "an array that is served, or any NBD server, as a block device of this\n"
    "      host: /dev/gpuraid/NAME" },
  { "detach", cmd_detach, "[--wait SECONDS] NAME|DEVICE",
    "write everything out and take the device away, if nothing uses it" },
  { "bench", cmd_bench, "OPTION...",
    "coder throughput, side by side", cmd_bench_help },
};

static const struct command *
find_command (const char *name)
{
  for (size_t i = 0; i < ARRAY_LEN (commands); i++)
    if (strcmp (commands[i].name, name) == 0)
      return &commands[i];
  return NULL;
}

static void
help (void)
{
  printf ("usage: gpuraid COMMAND ...\n\n");
  for (size_t i = 0; i < ARRAY_LEN (commands); i++)
    if (commands[i].run)
      printf ("  gpuraid %s %s\n      %s\n", commands[i].name,
              commands[i].args, commands[i].what);
  printf ("\nMEMBER is a file or a disk.  CONTROL is the NAME of an array, or "
          "the path of\nthe socket named by control= when it was started, with "
          "a slash in it:\n\n"
          "  nbdkit gpuraid control=/run/array.sock MEMBER...\n");
}

/* A member must not become one of the first three files: messages would be
 * written to it.
 */
static bool
open_standard_files (void)
{
  int fd;

  do
    fd = open ("/dev/null", O_RDWR);
  while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd == -1)
    return fcntl (STDIN_FILENO, F_GETFD) != -1 &&
      fcntl (STDOUT_FILENO, F_GETFD) != -1 &&
      fcntl (STDERR_FILENO, F_GETFD) != -1;
  close (fd);
  return true;
}

/* Returns r, unless stdout could not be written. */
static int
check_output (int r, int no_answer)
{
  if (fflush (stdout) != EOF && !ferror (stdout))
    return r;
  log_error ("stdout: %m");
  return no_answer ? no_answer : EXIT_FAILURE;
}

static void
command_help (const struct command *c)
{
  printf ("usage: gpuraid %s %s\n%s\n", c->name, c->args, c->what);
  if (c->help)
    c->help ();
}

static bool
is_help (const char *arg)
{
  return strcmp (arg, "--help") == 0 || strcmp (arg, "-h") == 0;
}

int
main (int argc, char *argv[])
{
  const struct command *c;
  int r;

  if (!open_standard_files ())
    return EXIT_FAILURE;
  /* A limit of the size of files is an error like others, here and in the
   * server that start runs.
   */
  signal (SIGXFSZ, SIG_IGN);
  if (getenv (COMPILER_CHILD_ENV))
    compiler_child_main ();
  if (argc < 2) {
    log_error ("which command? (gpuraid --help lists them)");
    return EXIT_USAGE;
  }
  if (is_help (argv[1]) || strcmp (argv[1], "help") == 0) {
    c = argc > 2 ? find_command (argv[2]) : NULL;
    if (c)
      command_help (c);
    else
      help ();
    return check_output (EXIT_SUCCESS, 0);
  }
  if (strcmp (argv[1], "--version") == 0) {
    printf ("gpuraid %s\n", GPURAID_VERSION);
    return check_output (EXIT_SUCCESS, 0);
  }
  c = find_command (argv[1]);
  if (c == NULL) {
    log_error ("%s: no such command (gpuraid --help lists them)", argv[1]);
    return EXIT_USAGE;
  }
  if (argc > 2 && is_help (argv[2])) {
    command_help (c);
    return check_output (EXIT_SUCCESS, 0);
  }
  optind = 0;                   /* glibc: start afresh */
  r = c->run (argc - 1, argv + 1);
  if (r == CLI_USAGE) {
    fprintf (stderr, "usage: gpuraid %s %s\n", c->name, c->args);
    r = c->no_answer ? c->no_answer : EXIT_USAGE;
  }
  return check_output (r, c->no_answer);
}
