/* gpuraid: find the subcommand.
 *
 * Has the names and the usage of each; each subcommand is in the file named
 * after it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "common/bits.h"
#include "common/log.h"
#include "common/version.h"
#include "gpu/compiler-child.h"

static const struct command {
  const char *name;
  int (*run) (int argc, char **argv);   /* NULL: not in this version */
  const char *args;
  const char *what;
  void (*help) (void);          /* more for --help, or NULL */
} commands[] = {
  { "create", cmd_create,
    "[--force] k=K m=M [chunk=BYTES] [size=BYTES]\n"
    "                      [code=rs|crs] [w=4|8] [checksum=none|crc32c]\n"
    "                      [consistency=none|journal] [journal-size=BYTES]\n"
    "                      MEMBER...",
    "make a new array" },
  { "examine", cmd_examine, "[--json] MEMBER...",
    "what a member's superblock says" },
  { "check", cmd_check, "[--repair] MEMBER...",
    "look at every row of an array that is not running; exit 1 if\n"
    "      something is wrong" },
  { "status", cmd_status, "[--json] CONTROL",
    "state, members, progress and counters of a running array" },
  { "watch", cmd_watch, "CONTROL", "the same, live" },
  { "fail", cmd_fail, "CONTROL MEMBER",
    "take a member out (by slot number or path)" },
  { "replace", cmd_replace, "[--force] CONTROL MEMBER NEW",
    "rebuild a member onto NEW, online" },
  { "readd", cmd_readd, "CONTROL MEMBER",
    "a member that was taken out or missing is back: bring it up to date" },
  { "scrub", cmd_scrub, "CONTROL [--repair] [start|stop|pause|resume]",
    "look at every row that was ever written" },
  { "rate", cmd_rate, "CONTROL [BYTES_PER_SECOND|max]",
    "how fast rebuild and scrub may go, of each member; 0 for no limit" },
  { "wait", cmd_wait, "CONTROL",
    "until no rebuild or scrub is running; exit 0 if the array is healthy" },
  { "bench", cmd_bench, "OPTION...",
    "coder throughput, side by side", cmd_bench_help },
  { "spare" }, { "metrics" },
};

static const struct command *
find_command (const char *name)
{
  for (size_t i = 0; i < ARRAY_LEN (commands); i++)
    if (strcmp (commands[i].name, name) == 0)
      return &commands[i];
  return NULL;
}

int
cli_usage (const char *name)
{
  const struct command *c = find_command (name);

  fprintf (stderr, "usage: gpuraid %s %s\n", c->name, c->args);
  return 1;
}

char *
cli_size (uint64_t bytes, char buf[CLI_SIZE_LEN])
{
  static const char unit[] = "KMGTPE";
  double x = bytes;
  int u = -1;

  if (bytes < KIB) {
    snprintf (buf, CLI_SIZE_LEN, "%" PRIu64 " bytes", bytes);
    return buf;
  }
  while (x >= 1024 && u < 5) {
    x /= 1024;
    u++;
  }
  snprintf (buf, CLI_SIZE_LEN, "%.*f %ciB", x < 100 && x != (int) x, x,
            unit[u]);
  return buf;
}

static void
help (void)
{
  printf ("usage: gpuraid COMMAND ...\n\n");
  for (size_t i = 0; i < ARRAY_LEN (commands); i++)
    if (commands[i].run)
      printf ("  gpuraid %s %s\n      %s\n", commands[i].name,
              commands[i].args, commands[i].what);
  printf ("\nMEMBER is a file or a disk.  CONTROL is the socket named by "
          "control= when\nthe array was started:\n\n"
          "  nbdkit gpuraid control=/run/array.sock MEMBER...\n");
}

int
main (int argc, char *argv[])
{
  const struct command *c;

  if (getenv (COMPILER_CHILD_ENV))
    compiler_child_main ();
  if (argc < 2) {
    log_error ("which command? (gpuraid --help lists them)");
    return EXIT_FAILURE;
  }
  if (strcmp (argv[1], "--help") == 0 || strcmp (argv[1], "help") == 0) {
    help ();
    return EXIT_SUCCESS;
  }
  if (strcmp (argv[1], "--version") == 0) {
    printf ("gpuraid %s\n", GPURAID_VERSION);
    return EXIT_SUCCESS;
  }
  c = find_command (argv[1]);
  if (c == NULL) {
    log_error ("%s: no such command (gpuraid --help lists them)", argv[1]);
    return EXIT_FAILURE;
  }
  if (c->run == NULL) {
    log_error ("%s: not in this version", argv[1]);
    return EXIT_FAILURE;
  }
  if (argc > 2 && strcmp (argv[2], "--help") == 0) {
    printf ("usage: gpuraid %s %s\n%s\n", c->name, c->args, c->what);
    if (c->help)
      c->help ();
    return EXIT_SUCCESS;
  }
  optind = 0;                   /* glibc: start afresh */
  return c->run (argc - 1, argv + 1);
}
