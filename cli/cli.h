/* gpuraid: the subcommands of the command `gpuraid`.
 *
 * cli/main.c finds the subcommand; each has a file of its own.  argv[0] is the
 * subcommand's name, and getopt starts afresh.  They return the exit status,
 * after reporting an error in one line on stderr (log_error goes there).  That
 * stdout can't be written is for cli/main.c to report.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CLI_H
#define GPURAID_CLI_H

#include <stdbool.h>
#include <stdint.h>

struct json_object;

extern int cmd_create (int argc, char **argv);
extern int cmd_examine (int argc, char **argv);
extern int cmd_status (int argc, char **argv);
extern int cmd_metrics (int argc, char **argv);
extern int cmd_watch (int argc, char **argv);
extern int cmd_fail (int argc, char **argv);
extern int cmd_readd (int argc, char **argv);
extern int cmd_replace (int argc, char **argv);
extern int cmd_grow (int argc, char **argv);
extern int cmd_spare (int argc, char **argv);
extern int cmd_add_parity (int argc, char **argv);
extern int cmd_widen (int argc, char **argv);
extern int cmd_scrub (int argc, char **argv);
extern int cmd_rebuild (int argc, char **argv);
extern int cmd_rate (int argc, char **argv);
extern int cmd_check (int argc, char **argv);
extern int cmd_wait (int argc, char **argv);
extern int cmd_scan (int argc, char **argv);
extern int cmd_start (int argc, char **argv);
extern int cmd_stop (int argc, char **argv);
extern int cmd_attach (int argc, char **argv);
extern int cmd_detach (int argc, char **argv);
extern int cmd_bench (int argc, char **argv);
extern void cmd_bench_help (void);

/* The exit status if the command line is wrong, which was reported. */
#define EXIT_USAGE 2
/* That of gpuraid status if it does not know the state. */
#define EXIT_NO_ANSWER 3

/* What a subcommand returns if the command line is wrong, and it has reported
 * nothing: cli/main.c prints its usage to stderr.  No exit status.
 */
#define CLI_USAGE 256

/* Is the user root?  If not, that is reported: only root can attach. */
extern bool cli_is_root (void);

/* A whole number of seconds.  False: it is none, or too many. */
extern bool cli_seconds (const char *text, unsigned *seconds);

/* A human-readable number of bytes: "12.5 GiB". Returns buf. */
#define CLI_SIZE_LEN 32
extern char *cli_size (uint64_t bytes, char buf[CLI_SIZE_LEN]);

/* What a subcommand prints with --json. */
extern void cli_print_json (struct json_object *o);

#endif
