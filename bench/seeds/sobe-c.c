/* gpuraid: Sobe on the processor: equations as C with OpenMP, compiled by
 * the host's cc, loaded while running.
 *
 * One thread is the sequential program: the same text.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <dlfcn.h>
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/methods.h"
#include "bench/seeds/cauchy.h"
#include "bench/seeds/sobe.h"
#include "common/cleanup.h"
#include "measure/clock.h"

extern char **environ;

struct sobe_c {
  struct method e;
  size_t nr_rects, cell_len;
  unsigned k, m, threads;
  uint8_t *in, *out;            /* rect by rect */
  void *library;
  void (*code) (const unsigned char *n, unsigned char *r, int threads);
};

static int
write_file (const char *path, const char *text, char *why)
{
  FILE *f = fopen (path, "w");
  bool failed = f == NULL || fputs (text, f) == EOF;

  if (f && fclose (f) == 0 && !failed)
    return 0;
  snprintf (why, BENCH_WHY_LEN, "%s: %s", path, strerror (errno));
  return -1;
}

static int
run_cc (const char *source, const char *library, char *why)
{
  const char *argv[] = {
    "cc", "-O3", "-fopenmp", "-fPIC", "-shared", "-o", library, source, NULL
  };
  pid_t pid;
  int status, r;

  r = posix_spawnp (&pid, "cc", NULL, NULL, (char **) argv, environ);
  if (r != 0) {
    snprintf (why, BENCH_WHY_LEN, "cc: %s", strerror (r));
    return -1;
  }
  while (waitpid (pid, &status, 0) == -1)
    if (errno != EINTR) {
      snprintf (why, BENCH_WHY_LEN, "waitpid: %s", strerror (errno));
      return -1;
    }
  if (status == 0)
    return 0;
  snprintf (why, BENCH_WHY_LEN, "cc -fopenmp could not compile the equations");
  return -1;
}

static int
load (struct sobe_c *s, const char *library, char *why)
{
  /* The library of OpenMP has threads that outlive their work, so it must not
   * be unloaded with ours.
   */
  (void) dlopen ("libgomp.so.1", RTLD_NOW | RTLD_NODELETE);
  s->library = dlopen (library, RTLD_NOW | RTLD_LOCAL);
  if (s->library)
    s->code = dlsym (s->library, "code");
  if (s->code)
    return 0;
  snprintf (why, BENCH_WHY_LEN, "dlopen: %s", dlerror ());
  return -1;
}

static int
compile (struct sobe_c *s, const char *text, char *why)
{
  const char *tmp = getenv ("TMPDIR");
  CLEANUP_FREE char *dir = NULL, *source = NULL, *library = NULL;
  int r = -1;

  if (asprintf (&dir, "%s/gpuraid-sobe-XXXXXX", tmp ? tmp : "/tmp") == -1) {
    dir = NULL;
    goto err;
  }
  if (mkdtemp (dir) == NULL) {
    snprintf (why, BENCH_WHY_LEN, "mkdtemp: %s: %s", dir, strerror (errno));
    return -1;
  }
  if (asprintf (&source, "%s/code.c", dir) == -1)
    source = NULL;
  if (asprintf (&library, "%s/code.so", dir) == -1)
    library = NULL;
  if (source && library && write_file (source, text, why) == 0 &&
      run_cc (source, library, why) == 0)
    r = load (s, library, why);
  if (source)
    unlink (source);
  if (library)
    unlink (library);
  rmdir (dir);
  if (source && library)
    return r;
 err:
  snprintf (why, BENCH_WHY_LEN, "asprintf: %s", strerror (ENOMEM));
  return -1;
}

static int
make_code (struct sobe_c *s, const struct bench_case *bc, bool iterative,
           char *why)
{
  struct xor_program *q = sobe_equations (bc->matrix, iterative, why);
  CLEANUP_FREE char *text = NULL;
  int r = -1;

  if (q)
    text = sobe_text (q, SOBE_OPENMP, bc->matrix->packet_len, why);
  if (text)
    r = compile (s, text, why);
  xor_program_free (q);
  return r;
}

static int
alloc_cells (struct sobe_c *s, char *why)
{
  size_t in_len = s->nr_rects * s->k * s->cell_len;
  size_t out_len = s->nr_rects * s->m * s->cell_len;
  void *in = NULL, *out = NULL;
  int r = posix_memalign (&in, 4096, in_len);

  if (r == 0)
    r = posix_memalign (&out, 4096, out_len);
  s->in = in;
  s->out = out;
  if (r != 0) {
    snprintf (why, BENCH_WHY_LEN, "posix_memalign: %s", strerror (r));
    return -1;
  }
  memset (in, 0, in_len);
  memset (out, 0, out_len);
  return 0;
}

static void
sobe_c_close (struct method *e)
{
  struct sobe_c *s = (struct sobe_c *) e;

  if (s == NULL)
    return;
  if (s->library)
    dlclose (s->library);
  free (s->in);
  free (s->out);
  free (s);
}

static struct method *
sobe_c_open (const struct bench_case *bc, char *why)
{
  bool iterative = bc->option && strcmp (bc->option, "iterative") == 0;
  struct sobe_c *s;

  if (bc->option && !iterative && strcmp (bc->option, "direct") != 0) {
    snprintf (why, BENCH_WHY_LEN, "no option %s", bc->option);
    return NULL;
  }
  if (cauchy_check (bc, bc->cell_len / bc->matrix->w, why) == -1)
    return NULL;
  s = calloc (1, sizeof *s);
  if (s == NULL) {
    snprintf (why, BENCH_WHY_LEN, "calloc: %s", strerror (errno));
    return NULL;
  }
  *s = (struct sobe_c) {
    .e.ops = &method_sobe_c, .nr_rects = bc->nr_rects, .cell_len = bc->cell_len,
    .k = bc->matrix->cols, .m = bc->matrix->rows,
    .threads = bc->threads ? bc->threads : 1,
  };
  if (alloc_cells (s, why) == -1 || make_code (s, bc, iterative, why) == -1) {
    sobe_c_close (&s->e);
    return NULL;
  }
  return &s->e;
}

static uint8_t *
sobe_c_in (struct method *e, size_t r, unsigned i)
{
  struct sobe_c *s = (struct sobe_c *) e;

  return s->in + (r * s->k + i) * s->cell_len;
}

static uint8_t *
sobe_c_out (struct method *e, size_t r, unsigned j)
{
  struct sobe_c *s = (struct sobe_c *) e;

  return s->out + (r * s->m + j) * s->cell_len;
}

static int
sobe_c_raw (struct method *e, unsigned nr, double *seconds, char *why)
{
  struct sobe_c *s = (struct sobe_c *) e;
  double start = now ();

  for (unsigned n = 0; n < nr; n++)
    for (size_t r = 0; r < s->nr_rects; r++)
      s->code (sobe_c_in (e, r, 0), sobe_c_out (e, r, 0), s->threads);
  *seconds = now () - start;
  return 0;
}

const struct method_ops method_sobe_c = {
  .name = "sobe_c",
  .what = "Sobe: generated equations, C with OpenMP",
  .options = "direct iterative",
  .parity = cauchy_high,
  .packet_len = sobe_packet_len,
  .open = sobe_c_open,
  .close = sobe_c_close,
  .in = sobe_c_in,
  .out = sobe_c_out,
  .raw = sobe_c_raw,
};
