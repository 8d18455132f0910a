/* gpuraid: tests: what all fuzzers share.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "tests/fuzz/fuzzing.h"

#define SEED_MAX_LEN 65536u

unsigned fuzzing_nr_errors;

/* Formatting looks at the arguments. */
static void
sink (enum log_level level, const char *fmt, va_list args)
{
  static char text[8192];

  vsnprintf (text, sizeof text, fmt, args);
  assert (strchr (text, '\n') == NULL);
  fuzzing_nr_errors += level == LOG_LEVEL_ERROR;
}

static void
write_seed (const char *folder, unsigned nr)
{
  static uint8_t data[SEED_MAX_LEN];
  struct rng r = { nr };
  size_t len = fuzzing_seed (&r, data, sizeof data);
  char path[4096];
  FILE *fp;

  snprintf (path, sizeof path, "%s/seed-%02u", folder, nr);
  fp = fopen (path, "w");
  if (fp == NULL || fwrite (data, 1, len, fp) != len || fclose (fp) != 0) {
    perror (path);
    exit (EXIT_FAILURE);
  }
}

int
LLVMFuzzerInitialize (int *argc, char ***argv)
{
  static const char option[] = "--seeds=";

  log_set_sink (sink);
  if (*argc != 2 || strncmp ((*argv)[1], option, strlen (option)) != 0)
    return 0;
  for (unsigned i = 0; i < FUZZING_NR_SEEDS; i++)
    write_seed ((*argv)[1] + strlen (option), i);
  exit (EXIT_SUCCESS);
}
