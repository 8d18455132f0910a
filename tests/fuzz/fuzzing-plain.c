/* gpuraid: tests: runs a fuzzer where clang's libFuzzer is missing.
 *
 * Tries each file of a corpus, then random mutations of them.  It does not see
 * which code an input reaches, so it finds less.
 *
 *   fuzz-NAME [-runs=N] [-max_total_time=SECONDS] [-seed=N] [-max_len=N]
 *             [-artifact_prefix=PREFIX] FILE-OR-FOLDER...
 *
 * libFuzzer's other options are ignored.  While it runs, and after a crash,
 * PREFIXlast has the input.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/fuzz/fuzzing.h"

#define MAX_INPUTS 4096u
#define MAX_LEN (1u << 20)

struct input {
  uint8_t *data;
  size_t len;
};

static struct input input[MAX_INPUTS];
static unsigned nr_inputs;
static struct rng rng;
static size_t max_len = 65536;
static uint64_t nr_runs = UINT64_MAX, max_seconds = UINT64_MAX;
static const char *prefix = "";
static char last_path[4096];
static uint8_t *last;           /* the file's bytes */

static void
die (const char *what)
{
  perror (what);
  exit (EXIT_FAILURE);
}

size_t
LLVMFuzzerMutate (uint8_t *data, size_t size, size_t max)
{
  size_t at;

  if (max > size && (size == 0 || rng_below (&rng, 4) == 0))
    data[size++] = rng_next (&rng);
  if (size > 1 && rng_below (&rng, 8) == 0)
    size -= 1 + rng_below (&rng, size - 1);
  if (size == 0)
    return 0;
  at = rng_below (&rng, size);
  data[at] = rng_below (&rng, 2) ? rng_next (&rng) :
    data[at] ^ BIT (rng_below (&rng, 8));
  return size;
}

/* ---- the corpus --------------------------------------------------------- */

static void
read_file (const char *path)
{
  struct input *in = &input[nr_inputs];
  FILE *fp = fopen (path, "r");

  if (fp == NULL)
    die (path);
  if (nr_inputs < MAX_INPUTS) {
    in->data = malloc (max_len);
    if (in->data == NULL)
      die ("malloc");
    in->len = fread (in->data, 1, max_len, fp);
    nr_inputs++;
  }
  fclose (fp);
}

static int
is_visible (const struct dirent *d)
{
  return d->d_name[0] != '.';
}

static void
read_path (const char *path)
{
  struct dirent **d;
  struct stat st;
  int n;

  if (stat (path, &st) == -1)
    die (path);
  if (!S_ISDIR (st.st_mode)) {
    read_file (path);
    return;
  }
  n = scandir (path, &d, is_visible, alphasort);
  for (int i = 0; i < n; i++) {
    char name[4096];

    snprintf (name, sizeof name, "%s/%s", path, d[i]->d_name);
    read_file (name);
    free (d[i]);
  }
  if (n != -1)
    free (d);
}

/* ---- running ------------------------------------------------------------ */

static void
open_last (void)
{
  int fd;

  snprintf (last_path, sizeof last_path, "%slast", prefix);
  fd = open (last_path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd == -1 || ftruncate (fd, max_len) == -1)
    die (last_path);
  last = mmap (NULL, max_len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (last == MAP_FAILED)
    die (last_path);
  close (fd);
}

/* The input is in memory of its own length, so that reading behind it is
 * detected.
 */
static void
run_one (const uint8_t *data, size_t len)
{
  uint8_t *copy = malloc (len);

  if (truncate (last_path, len) == -1)
    die (last_path);
  if (len > 0) {
    memcpy (last, data, len);
    memcpy (copy, data, len);
  }
  LLVMFuzzerTestOneInput (copy, len);
  free (copy);
}

static uint64_t
run_random (void)
{
  const time_t start = time (NULL);
  uint8_t *data = malloc (max_len);
  uint64_t nr = 0;

  for (; nr < nr_runs && (uint64_t) (time (NULL) - start) < max_seconds;
       nr++) {
    size_t len = 0;

    if (nr_inputs > 0) {
      const struct input *in = &input[rng_below (&rng, nr_inputs)];

      len = in->len;
      memcpy (data, in->data, len);
    }
    for (unsigned i = 1 + rng_below (&rng, 8); i > 0; i--)
      len = LLVMFuzzerCustomMutator (data, len, max_len, rng_next (&rng));
    run_one (data, len);
  }
  free (data);
  return nr;
}

/* The number of an option, or false. */
static bool
get_number (const char *arg, const char *name, uint64_t *n)
{
  const size_t len = strlen (name);

  if (strncmp (arg, name, len) != 0)
    return false;
  *n = strtoull (arg + len, NULL, 10);
  return true;
}

static bool
get_option (const char *arg)
{
  uint64_t n;

  if (arg[0] != '-')
    return false;
  if (get_number (arg, "-seed=", &n))
    rng.state = n;
  else if (get_number (arg, "-runs=", &n))
    nr_runs = n;
  else if (get_number (arg, "-max_total_time=", &n))
    max_seconds = n;
  else if (get_number (arg, "-max_len=", &n))
    max_len = MAX (MIN (n, MAX_LEN), 1);
  else if (strncmp (arg, "-artifact_prefix=", 17) == 0)
    prefix = arg + 17;
  return true;
}

int
main (int argc, char **argv)
{
  bool only_files = argc > 1;
  uint64_t nr;

  LLVMFuzzerInitialize (&argc, &argv);
  for (int i = 1; i < argc; i++)
    get_option (argv[i]);
  for (int i = 1; i < argc; i++)
    if (argv[i][0] != '-') {
      struct stat st;

      only_files &= stat (argv[i], &st) == 0 && !S_ISDIR (st.st_mode);
      read_path (argv[i]);
    }
  open_last ();
  for (unsigned i = 0; i < nr_inputs; i++)
    run_one (input[i].data, input[i].len);
  /* As with libFuzzer: files are tried, folders are where to begin. */
  nr = only_files && nr_inputs > 0 ? 0 : run_random ();
  printf ("Done %ju runs and %u files\n", (uintmax_t) nr, nr_inputs);
  unlink (last_path);
  return EXIT_SUCCESS;
}
