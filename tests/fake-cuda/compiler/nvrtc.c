/* gpuraid: tests: a run-time compiler that compiles for the emulator.
 *
 * libnvrtc.so.13 as far as gpu/compiler/compiler.c uses it: programs, options
 * and results.  compile.c does the work.
 *
 *   FAKE_NVRTC_FAIL=1    every compilation fails
 *   FAKE_NVRTC_SLOW=MS   every compilation takes MS longer
 *   FAKE_NVRTC_WAIT=FILE every compilation waits until FILE is there
 *   FAKE_NVRTC_QUIET=1   errors of a source only go into the log, not to
 *                        stderr too
 *   FAKE_NVRTC_SAVE=DIR  save the sources there too, as .cu files that need
 *                        no options
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fake-cuda/compiler/compile.h"

enum {
  NVRTC_SUCCESS, NVRTC_ERROR_OUT_OF_MEMORY,
  NVRTC_ERROR_PROGRAM_CREATION_FAILURE, NVRTC_ERROR_INVALID_INPUT,
  NVRTC_ERROR_INVALID_PROGRAM, NVRTC_ERROR_INVALID_OPTION,
  NVRTC_ERROR_COMPILATION, NVRTC_ERROR_BUILTIN_OPERATION_FAILURE,
};

typedef struct _nvrtcProgram {
  char *source, *log;
  void *cubin;
  size_t cubin_len;
} *nvrtcProgram;

extern int nvrtcVersion (int *, int *);
extern const char *nvrtcGetErrorString (int);
extern int nvrtcCreateProgram (nvrtcProgram *, const char *, const char *,
                               int, const char *const *,
                               const char *const *);
extern int nvrtcDestroyProgram (nvrtcProgram *);
extern int nvrtcCompileProgram (nvrtcProgram, int, const char *const *);
extern int nvrtcGetProgramLogSize (nvrtcProgram, size_t *);
extern int nvrtcGetProgramLog (nvrtcProgram, char *);
extern int nvrtcGetCUBINSize (nvrtcProgram, size_t *);
extern int nvrtcGetCUBIN (nvrtcProgram, char *);

int
nvrtcVersion (int *major, int *minor)
{
  *major = 13;
  *minor = 0;
  return NVRTC_SUCCESS;
}

const char *
nvrtcGetErrorString (int r)
{
  static const char *const names[] = {
    "NVRTC_SUCCESS", "NVRTC_ERROR_OUT_OF_MEMORY",
    "NVRTC_ERROR_PROGRAM_CREATION_FAILURE", "NVRTC_ERROR_INVALID_INPUT",
    "NVRTC_ERROR_INVALID_PROGRAM", "NVRTC_ERROR_INVALID_OPTION",
    "NVRTC_ERROR_COMPILATION", "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE",
  };

  return r >= 0 && r < (int) (sizeof names / sizeof names[0]) ? names[r]
    : "NVRTC_ERROR unknown";
}

int
nvrtcCreateProgram (nvrtcProgram *program, const char *source,
                    const char *name, int nr_headers,
                    const char *const *headers, const char *const *names)
{
  nvrtcProgram p;

  if (program == NULL || source == NULL || nr_headers != 0)
    return NVRTC_ERROR_INVALID_INPUT;
  p = calloc (1, sizeof *p);
  if (p == NULL)
    return NVRTC_ERROR_OUT_OF_MEMORY;
  p->source = strdup (source);
  if (p->source == NULL) {
    free (p);
    return NVRTC_ERROR_OUT_OF_MEMORY;
  }
  *program = p;
  return NVRTC_SUCCESS;
}

int
nvrtcDestroyProgram (nvrtcProgram *program)
{
  nvrtcProgram p = program ? *program : NULL;

  if (p == NULL)
    return NVRTC_ERROR_INVALID_PROGRAM;
  free (p->source);
  free (p->log);
  free (p->cubin);
  free (p);
  *program = NULL;
  return NVRTC_SUCCESS;
}

/* ---- options */

/* The value, if arg is --name=value or the next one is it. */
static const char *
option_value (const char *arg, const char *name, int *i, int nr,
              const char *const *all)
{
  size_t len = strlen (name);

  if (strncmp (arg, name, len) != 0)
    return NULL;
  if (arg[len] == '=')
    return arg + len + 1;
  if (arg[len] == '\0' && *i + 1 < nr)
    return all[++*i];
  return NULL;
}

/* Not needed here, but real. */
static bool
is_harmless (const char *arg)
{
  static const char *const known[] = {
    "-lineinfo", "--generate-line-info", "-G", "--device-debug",
    "-default-device", "--device-as-default-execution-space",
    "-use_fast_math", "--use_fast_math", "-restrict", "--restrict", "-w",
    "--disable-warnings", "-dopt", "--dopt", "--extra-device-vectorization",
    "-extra-device-vectorization", "--split-compile",
    "-maxrregcount", "--maxrregcount", "--ptxas-options", "-Xptxas",
    "--fmad", "-fmad", "--device-int128", "-device-int128", "--minimal",
    "--display-error-number",
  };

  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    size_t len = strlen (known[i]);

    if (strncmp (arg, known[i], len) == 0 &&
        (arg[len] == '\0' || arg[len] == '='))
      return true;
  }
  return false;
}

static bool
read_options (struct compile_options *o, int nr, const char *const *all)
{
  const char *v;

  for (int i = 0; i < nr; i++) {
    const char *a = all[i];

    if ((v = option_value (a, "--gpu-architecture", &i, nr, all)) ||
        (v = option_value (a, "-arch", &i, nr, all))) {
      if (sscanf (v, "sm_%d", &o->arch) != 1 || o->arch < 75)
        return false;           /* what NVRTC 13 still knows */
    }
    else if ((v = option_value (a, "--std", &i, nr, all)) ||
             (v = option_value (a, "-std", &i, nr, all))) {
      if (strncmp (v, "c++", 3) != 0)
        return false;           /* the choice is ours */
    }
    else if ((v = option_value (a, "--define-macro", &i, nr, all)) ||
             (strncmp (a, "-D", 2) == 0 && (v = a + 2))) {
      if (o->nr_macros == COMPILE_MAX_MACROS)
        return false;
      o->macros[o->nr_macros++] = v;
    }
    else if (strncmp (a, "-I", 2) == 0)
      o->folder = a + 2;
    else if (!is_harmless (a))
      return false;
  }
  return true;
}

/* Before anything fails.  The same text goes to the same file. */
static void
save (const char *folder, const char *source, const struct compile_options *o)
{
  char *text = NULL, path[4096];
  size_t len;
  uint64_t hash = UINT64_C (14695981039346656037);
  FILE *f = open_memstream (&text, &len);

  for (int i = 0; f && i < o->nr_macros; i++) {
    const char *m = o->macros[i], *value = strchr (m, '=');

    fprintf (f, "#define %.*s %s\n", (int) strcspn (m, "="), m,
             value ? value + 1 : "1");
  }
  if (f == NULL || fputs (source, f) == EOF || fclose (f) == EOF) {
    perror ("FAKE_NVRTC_SAVE");
    exit (EXIT_FAILURE);
  }
  for (size_t i = 0; i < len; i++)
    hash = (hash ^ (unsigned char) text[i]) * UINT64_C (1099511628211);
  snprintf (path, sizeof path, "%s/%016" PRIx64 ".cu", folder, hash);
  f = fopen (path, "w");
  if (f == NULL || fputs (text, f) == EOF || fclose (f) == EOF) {
    perror (path);
    exit (EXIT_FAILURE);
  }
  free (text);
}

static void
end_process (int sig)
{
  _exit (4);
}

static int
compile_program (nvrtcProgram p, int nr, const char *const *all)
{
  struct compile_options o = { .arch = 75 };
  const char *slow = getenv ("FAKE_NVRTC_SLOW");
  const char *file = getenv ("FAKE_NVRTC_WAIT");

  if (!read_options (&o, nr, all))
    return NVRTC_ERROR_INVALID_OPTION;
  if (getenv ("FAKE_NVRTC_SAVE"))
    save (getenv ("FAKE_NVRTC_SAVE"), p->source, &o);
  if (slow)
    usleep (atoi (slow) * 1000);
  while (file && access (file, F_OK) == -1)
    usleep (10000);
  if (getenv ("FAKE_NVRTC_FAIL")) {
    p->log = strdup ("FAKE_NVRTC_FAIL is set\n");
    return NVRTC_ERROR_COMPILATION;
  }
  p->cubin = compile (p->source, &o, &p->cubin_len, &p->log);
  if (p->cubin)
    return NVRTC_SUCCESS;
  if (p->log && getenv ("FAKE_NVRTC_QUIET") == NULL)
    fputs (p->log, stderr);
  return NVRTC_ERROR_COMPILATION;
}

/* Like the real one, whose front end ends the process with status 4. */
int
nvrtcCompileProgram (nvrtcProgram p, int nr, const char *const *all)
{
  struct sigaction ours = { .sa_handler = end_process }, old;
  int r;

  if (p == NULL)
    return NVRTC_ERROR_INVALID_PROGRAM;
  sigaction (SIGTERM, &ours, &old);
  r = compile_program (p, nr, all);
  sigaction (SIGTERM, &old, NULL);
  return r;
}

/* ---- results */

int
nvrtcGetProgramLogSize (nvrtcProgram p, size_t *len)
{
  if (p == NULL)
    return NVRTC_ERROR_INVALID_PROGRAM;
  *len = (p->log ? strlen (p->log) : 0) + 1;
  return NVRTC_SUCCESS;
}

int
nvrtcGetProgramLog (nvrtcProgram p, char *log)
{
  if (p == NULL)
    return NVRTC_ERROR_INVALID_PROGRAM;
  strcpy (log, p->log ? p->log : "");
  return NVRTC_SUCCESS;
}

int
nvrtcGetCUBINSize (nvrtcProgram p, size_t *len)
{
  if (p == NULL || p->cubin == NULL)
    return NVRTC_ERROR_INVALID_PROGRAM;
  *len = p->cubin_len;
  return NVRTC_SUCCESS;
}

int
nvrtcGetCUBIN (nvrtcProgram p, char *cubin)
{
  if (p == NULL || p->cubin == NULL)
    return NVRTC_ERROR_INVALID_PROGRAM;
  memcpy (cubin, p->cubin, p->cubin_len);
  return NVRTC_SUCCESS;
}
