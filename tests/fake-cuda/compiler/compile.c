/* gpuraid: tests: compile CUDA C for the emulator.
 *
 * The source is preprocessed with emulator.h in front of it, searched for
 * kernels and compiled as C++ by the host's compiler.  Like the real one
 * this finds no header by itself.
 *
 *   FAKE_NVRTC_CXX=PATH  instead of c++; cache.c then remembers nothing
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

#include "common/cleanup.h"
#include "tests/fake-cuda/compiler/cache.h"
#include "tests/fake-cuda/compiler/compile.h"
#include "tests/fake-cuda/compiler/kernels.h"
#include "tests/fake-cuda/compiler/runtime.h"

extern const char source_emulator[];
extern char **environ;

/* The host's compiler must not get the libraries preloaded into the program
 * under test.
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

/* In the folder of the files: ccache, where that is c++, then sees the same
 * names each time.
 */
static bool
run_command (char *const *args, const char *dir, const char *log)
{
  posix_spawn_file_actions_t actions;
  char **env = clean_environment ();
  int status = -1, r;
  pid_t pid;

  if (env == NULL)
    return false;
  posix_spawn_file_actions_init (&actions);
  posix_spawn_file_actions_addchdir_np (&actions, dir);
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

/* In dir: the source, what it is when preprocessed, with our functions behind
 * it, and what comes of that.
 */
#define SOURCE "in.cu"
#define TEXT "in.ii"
#define OBJECT "in.o"
#define MODULE "out.so"

struct files {
  char dir[200], source[240], text[240], object[240], module[240], log[240];
};

/* The macros come after the emulator, which may use their names. */
static bool
write_source (const char *source, const struct compile_options *o,
              const struct files *w)
{
  FILE *f = fopen (w->source, "w");

  if (f == NULL)
    return false;
  fprintf (f, "# 1 \"emulator.h\"\n%s", source_emulator);
  fprintf (f, "#define __CUDACC_RTC__ 1\n#define __CUDACC__ 1\n"
           "#define __CUDA_ARCH__ %d\n", o->arch * 10);
  for (int i = 0; i < o->nr_macros; i++) {
    const char *m = o->macros[i];
    int len = strcspn (m, "=");

    fprintf (f, "#define %.*s %s\n", len, m, m[len] ? m + len + 1 : "1");
  }
  fprintf (f, "#line 1 \"kernel.cu\"\n%s\n", source);
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
run_compiler (const struct compile_options *o, const struct files *w)
{
  char *cxx = getenv ("FAKE_NVRTC_CXX") ?: "c++";
  CLEANUP_FREE char *folder = o->folder ? realpath (o->folder, NULL) : NULL;
  char *first[] = {
    cxx, "-E", "-x", "c++", "-nostdinc", "-std=gnu++17", "-w",
    "-I", folder ?: "/nonexistent", SOURCE, "-o", TEXT, NULL,
  };
  char *second[] = {
    cxx, "-x", "c++-cpp-output", "-std=gnu++17", "-w", "-Og", "-fPIC", "-g0",
    "-fno-exceptions", "-fno-rtti", "-fno-strict-aliasing",
    "-fno-threadsafe-statics", CHECKS, "-c",
    TEXT, "-o", OBJECT, NULL,
  };
  char *third[] = {
    cxx, "-shared", "-nostdlib", "-Wl,-Bsymbolic", OBJECT, "-lgcc",
    "-o", MODULE, NULL,
  };

  return run_command (first, w->dir, w->log) && append_entries (w) &&
    run_command (second, w->dir, w->log) &&
    run_command (third, w->dir, w->log);
}

static void *
wrap_module (int arch, const struct files *w, size_t *len)
{
  struct emu_cubin head = { .magic = EMU_CUBIN_MAGIC, .arch = arch };
  size_t module_len;
  char *module = read_file (w->module, &module_len);
  char *cubin = module ? malloc (sizeof head + module_len) : NULL;

  if (cubin) {
    head.len = module_len;
    head.sum = emu_cubin_sum (module, module_len);
    memcpy (cubin, &head, sizeof head);
    memcpy (cubin + sizeof head, module, module_len);
    *len = sizeof head + module_len;
  }
  free (module);
  return cubin;
}

static bool
make_files (struct files *w)
{
  const char *tmp = getenv ("TMPDIR") ?: "/tmp";

  snprintf (w->dir, sizeof w->dir, "%s/fake-nvrtc.XXXXXX", tmp);
  if (mkdtemp (w->dir) == NULL)
    return false;
  snprintf (w->source, sizeof w->source, "%s/" SOURCE, w->dir);
  snprintf (w->text, sizeof w->text, "%s/" TEXT, w->dir);
  snprintf (w->object, sizeof w->object, "%s/" OBJECT, w->dir);
  snprintf (w->module, sizeof w->module, "%s/" MODULE, w->dir);
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


void *
compile (const char *source, const struct compile_options *o, size_t *len,
         char **log)
{
  void *cubin = NULL;
  char *text = NULL;
  size_t text_len;
  struct files w;

  *log = NULL;
  if (!make_files (&w))
    return NULL;
  if (write_source (source, o, &w) &&
      (text = read_file (w.source, &text_len)) != NULL) {
    cubin = o->folder ? NULL : cache_get (text, text_len, len);
    if (cubin == NULL && run_compiler (o, &w)) {
      cubin = wrap_module (o->arch, &w, len);
      if (cubin && o->folder == NULL)
        cache_put (text, text_len, cubin, *len);
    }
  }
  *log = read_file (w.log, &text_len);
  remove_files (&w);
  free (text);
  return cubin;
}
