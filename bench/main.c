/* gpuraid-bench: answer requests, a line each.
 *
 * For developers: bench asks, and has the cases, the tables and the
 * plots.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/requests/requests.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "gpu/compiler/compiler.h"
#include "measure/method.h"

static void
all_to_stderr (enum log_level level, const char *fmt, va_list args)
{
  flockfile (stderr);
  fputs ("gpuraid-bench: ", stderr);
  vfprintf (stderr, fmt, args);
  fputc ('\n', stderr);
  funlockfile (stderr);
}

static int
usage (FILE *fp)
{
  fprintf (fp, "usage: gpuraid-bench [--verbose] <REQUESTS >ANSWERS\n"
           "       gpuraid-bench --compile ARCH <SOURCE >CODE\n\n"
           "A JSON object in each line; bench/scripts/bench writes them.\n");
  return fp == stdout ? EXIT_SUCCESS : 2;
}

/* Text from stdin to machine code on stdout: a process for each, because
 * NVRTC does some of its work under a lock.
 */
static int
compile (const char *arch)
{
  size_t source_len, len;
  CLEANUP_FREE char *source = read_all (stdin, &source_len);
  CLEANUP_FREE void *code = NULL;
  char why[BENCH_WHY_LEN];

  if (source == NULL || source_len == 0)
    log_error ("no source");
  else if (compiler_version (why, sizeof why) == NULL)
    log_error ("%s", why);
  else if (compiler_run (source, atoi (arch), NULL, &code, &len) == 0 &&
           fwrite (code, 1, len, stdout) == len && fflush (stdout) == 0)
    return EXIT_SUCCESS;
  return EXIT_FAILURE;
}

static struct json_object *
answer (const char *line)
{
  struct json_object *q = json_tokener_parse (line), *o;
  char why[BENCH_WHY_LEN] = "not a JSON object";

  o = json_object_is_type (q, json_type_object) ? requests_answer (q, why)
    : NULL;
  json_object_put (q);
  if (o)
    return o;
  o = json_object_new_object ();
  answer_text (o, "failed", why);
  return o;
}

int
main (int argc, char *argv[])
{
  CLEANUP_FREE char *line = NULL;
  size_t room = 0;

  if (argc == 3 && strcmp (argv[1], "--compile") == 0)
    return compile (argv[2]);
  if (argc == 2 && strcmp (argv[1], "--verbose") == 0)
    log_set_sink (all_to_stderr);
  else if (argc > 1)
    return usage (strcmp (argv[1], "--help") == 0 ? stdout : stderr);
  while (getline (&line, &room, stdin) != -1) {
    struct json_object *o = answer (line);

    puts (json_object_to_json_string_ext (o, JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put (o);
    if (fflush (stdout) == EOF)
      return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
