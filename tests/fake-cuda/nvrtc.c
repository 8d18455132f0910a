/* gpuraid: tests: a run-time compiler that compiles for the emulator.
 *
 * libnvrtc.so.13 as far as gpu/compiler.c uses it.  The "machine code" is a
 * shared object of the host behind a struct emu_cubin.  The source is
 * preprocessed with emulator.h in front of it, searched for kernels and
 * compiled as C++.  Like the real one it finds no header by itself.
 *
 *   FAKE_NVRTC_FAIL=1    every compilation fails
 *   FAKE_NVRTC_SLOW=MS   every compilation takes so much longer
 *   FAKE_NVRTC_CXX=PATH  instead of c++
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fake-cuda/kernels.h"
#include "tests/fake-cuda/runtime.h"

extern const char source_emulator[];
extern char **environ;

enum {
  NVRTC_SUCCESS, NVRTC_ERROR_OUT_OF_MEMORY,
  NVRTC_ERROR_PROGRAM_CREATION_FAILURE, NVRTC_ERROR_INVALID_INPUT,
  NVRTC_ERROR_INVALID_PROGRAM, NVRTC_ERROR_INVALID_OPTION,
  NVRTC_ERROR_COMPILATION, NVRTC_ERROR_BUILTIN_OPERATION_FAILURE,
};

#define MAX_ARGS 64

typedef struct _nvrtcProgram {
  char *source, *log;
  size_t log_len;
  void *cubin;
  size_t cubin_len;
} *nvrtcProgram;

/* What the options said. */
struct options {
  char *args[MAX_ARGS];         /* for the preprocessor; all ours */
  int nr;
  int arch;
};

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

static bool
add_arg (struct options *o, const char *prefix, const char *value)
{
  if (o->nr >= MAX_ARGS - 1 ||
      asprintf (&o->args[o->nr], "%s%s", prefix, value) == -1)
    return false;
  o->nr++;
  return true;
}

/* Of no use to us, but real. */
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
read_options (struct options *o, int nr, const char *const *all)
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
        return false;           /* which one is ours to choose */
    }
    else if ((v = option_value (a, "--define-macro", &i, nr, all))) {
      if (!add_arg (o, "-D", v))
        return false;
    }
    else if (a[0] == '-' && strchr ("DUI", a[1]) && a[1]) {
      if (!add_arg (o, a, ""))
        return false;
    }
    else if (!is_harmless (a))
      return false;
  }
  return true;
}

/* ---- the compiler's runs */

/* The host's compiler must not be disturbed by what is preloaded into the
 * program that is tested.
 */
static char **
clean_environment (void)
{
  static const char *const drop[] = {
    "LD_PRELOAD=", "LD_LIBRARY_PATH=", "ASAN_OPTIONS=", "TSAN_OPTIONS=",
  };
  size_t nr = 0, to = 0;
  char **env;

  while (environ[nr])
    nr++;
  env = calloc (nr + 1, sizeof *env);
  for (size_t i = 0; env && i < nr; i++) {
    bool keep = true;

    for (size_t j = 0; j < sizeof drop / sizeof drop[0]; j++)
      if (strncmp (environ[i], drop[j], strlen (drop[j])) == 0)
        keep = false;
    if (keep)
      env[to++] = environ[i];
  }
  return env;
}

static bool
run_command (char *const *args, const char *log)
{
  posix_spawn_file_actions_t actions;
  char **env = clean_environment ();
  int status = -1, r;
  pid_t pid;

  if (env == NULL)
    return false;
  posix_spawn_file_actions_init (&actions);
  posix_spawn_file_actions_addopen (&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen (&actions, 1, log,
                                    O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2 (&actions, 1, 2);
  r = posix_spawnp (&pid, args[0], &actions, NULL, args, env);
  posix_spawn_file_actions_destroy (&actions);
  free (env);
  if (r != 0) {
    FILE *f = fopen (log, "a");

    if (f) {
      fprintf (f, "%s: %s\n", args[0], strerror (r));
      fclose (f);
    }
    return false;
  }
  while (waitpid (pid, &status, 0) == -1)
    if (errno != EINTR)
      return false;
  return WIFEXITED (status) && WEXITSTATUS (status) == 0;
}

static char *
read_file (const char *path, size_t *len)
{
  struct stat st;
  char *text = NULL;
  FILE *f = fopen (path, "r");

  if (f == NULL)
    return NULL;
  if (fstat (fileno (f), &st) == 0 &&
      (text = malloc (st.st_size + 1)) != NULL) {
    *len = fread (text, 1, st.st_size, f);
    text[*len] = '\0';
  }
  fclose (f);
  return text;
}

/* In dir: in.cu, in.ii (preprocessed, and our functions behind it), in.o,
 * out.so, log.
 */
struct files {
  char dir[200], source[240], text[240], object[240], module[240], log[240];
};

static bool
write_source (nvrtcProgram p, const struct files *w)
{
  FILE *f = fopen (w->source, "w");

  if (f == NULL)
    return false;
  fprintf (f, "# 1 \"emulator.h\"\n%s#line 1 \"kernel.cu\"\n%s\n",
           source_emulator, p->source);
  return fclose (f) == 0;
}

static bool
append_entries (const struct files *w)
{
  size_t len;
  char *text = read_file (w->text, &len);
  FILE *f = text ? fopen (w->text, "a") : NULL;
  bool ok = false;

  if (f) {
    kernels_print (text, f);
    ok = fclose (f) == 0;
  }
  free (text);
  return ok;
}

#define CHECKS \
  "-fsanitize=thread,bounds,alignment,shift-exponent"

static bool
compile (nvrtcProgram p, struct options *o, const struct files *w)
{
  char *cxx = getenv ("FAKE_NVRTC_CXX") ?: "c++";
  char *first[MAX_ARGS + 20] = {
    cxx, "-E", "-x", "c++", "-nostdinc", "-std=gnu++17", "-w",
    (char *) w->source, "-o", (char *) w->text,
  };
  char *second[] = {
    cxx, "-x", "c++-cpp-output", "-std=gnu++17", "-w", "-O1", "-fPIC", "-g0",
    "-fno-exceptions", "-fno-rtti", "-fno-strict-aliasing",
    "-fno-extern-tls-init", "-fno-threadsafe-statics", CHECKS, "-c",
    (char *) w->text, "-o", (char *) w->object, NULL,
  };
  char *third[] = {
    cxx, "-shared", "-nostdlib", "-Wl,-Bsymbolic", (char *) w->object, "-o",
    (char *) w->module, NULL,
  };
  int nr = 0;

  while (first[nr])
    nr++;
  for (int i = 0; i < o->nr; i++)
    first[nr++] = o->args[i];
  return write_source (p, w) && run_command (first, w->log) &&
    append_entries (w) && run_command (second, w->log) &&
    run_command (third, w->log);
}

static bool
wrap_module (nvrtcProgram p, int arch, const struct files *w)
{
  struct emu_cubin head = { .magic = EMU_CUBIN_MAGIC, .arch = arch };
  size_t len;
  char *module = read_file (w->module, &len);

  if (module == NULL)
    return false;
  head.len = len;
  head.sum = emu_cubin_sum (module, len);
  p->cubin = malloc (sizeof head + len);
  if (p->cubin) {
    memcpy (p->cubin, &head, sizeof head);
    memcpy ((char *) p->cubin + sizeof head, module, len);
    p->cubin_len = sizeof head + len;
  }
  free (module);
  return p->cubin != NULL;
}

static bool
make_files (struct files *w)
{
  const char *tmp = getenv ("TMPDIR") ?: "/tmp";

  snprintf (w->dir, sizeof w->dir, "%s/fake-nvrtc.XXXXXX", tmp);
  if (mkdtemp (w->dir) == NULL)
    return false;
  snprintf (w->source, sizeof w->source, "%s/in.cu", w->dir);
  snprintf (w->text, sizeof w->text, "%s/in.ii", w->dir);
  snprintf (w->object, sizeof w->object, "%s/in.o", w->dir);
  snprintf (w->module, sizeof w->module, "%s/out.so", w->dir);
  snprintf (w->log, sizeof w->log, "%s/log", w->dir);
  return true;
}

static void
remove_files (const struct files *w)
{
  unlink (w->source);
  unlink (w->text);
  unlink (w->object);
  unlink (w->module);
  unlink (w->log);
  rmdir (w->dir);
}

static bool
add_defines (struct options *o)
{
  char arch[20];

  snprintf (arch, sizeof arch, "%d", o->arch * 10);
  return add_arg (o, "-D__CUDACC_RTC__=1", "") &&
    add_arg (o, "-D__CUDACC__=1", "") &&
    add_arg (o, "-D__CUDA_ARCH__=", arch);
}

int
nvrtcCompileProgram (nvrtcProgram p, int nr, const char *const *all)
{
  struct options o = { .arch = 75 };
  const char *slow = getenv ("FAKE_NVRTC_SLOW");
  struct files w;
  int r = NVRTC_ERROR_COMPILATION;

  if (p == NULL)
    return NVRTC_ERROR_INVALID_PROGRAM;
  if (slow)
    usleep (atoi (slow) * 1000);
  if (!read_options (&o, nr, all) || !add_defines (&o))
    r = NVRTC_ERROR_INVALID_OPTION;
  else if (getenv ("FAKE_NVRTC_FAIL"))
    p->log = strdup ("FAKE_NVRTC_FAIL is set\n");
  else if (!make_files (&w))
    r = NVRTC_ERROR_BUILTIN_OPERATION_FAILURE;
  else {
    if (compile (p, &o, &w) && wrap_module (p, o.arch, &w))
      r = NVRTC_SUCCESS;
    p->log = read_file (w.log, &p->log_len);
    remove_files (&w);
  }
  for (int i = 0; i < o.nr; i++)
    free (o.args[i]);
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
