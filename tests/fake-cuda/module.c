/* gpuraid: tests: a fake CUDA driver: modules and launches.
 *
 * A module is the output of the fake compiler.  Real machine code is refused as
 * if it were for another device.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fake-cuda/fake.h"

#define ELF_MAGIC "\177ELF"
#define FATBIN_MAGIC 0xba55ed50

/* ---- images */

static CUresult
check_image (const void *image, struct emu_cubin *head)
{
  uint32_t magic;

  memcpy (&magic, image, sizeof magic);
  if (magic == FATBIN_MAGIC || memcmp (image, ELF_MAGIC, 4) == 0)
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  if (strncmp (image, EMU_CUBIN_MAGIC, sizeof EMU_CUBIN_MAGIC) != 0)
    return CUDA_ERROR_INVALID_IMAGE;
  memcpy (head, image, sizeof *head);
  if (emu_cubin_sum ((const char *) image + sizeof *head, head->len) !=
      head->sum)
    return CUDA_ERROR_INVALID_IMAGE;
  /* Machine code is for one major version, and for that minor or later. */
  if ((int) head->arch / 10 != fake.arch / 10 || (int) head->arch > fake.arch)
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  return CUDA_SUCCESS;
}

static int
write_all (int fd, const char *p, size_t len)
{
  while (len > 0) {
    ssize_t n = write (fd, p, len);

    if (n == -1 && errno == EINTR)
      continue;
    if (n <= 0)
      return -1;
    p += n;
    len -= n;
  }
  return 0;
}

/* Each load has variables of its own, so each has a file of its own; the
 * linker also tells files by their names.
 */
static void *
open_image (const char *code, size_t len)
{
  static unsigned nr;
  const char *tmp = getenv ("TMPDIR");
  char path[256];
  void *dl = NULL;
  int fd;

  snprintf (path, sizeof path, "%s/fake-cuda.%d.%u.XXXXXX",
            tmp ? tmp : "/tmp", (int) getpid (), nr++);
  fd = mkstemp (path);
  if (fd == -1)
    return NULL;
  if (write_all (fd, code, len) == 0)
    dl = dlopen (path, RTLD_NOW | RTLD_LOCAL);
  if (dl == NULL)
    fprintf (stderr, "fake-cuda: %s\n", dlerror () ?: path);
  close (fd);
  unlink (path);
  return dl;
}

static int
find_image (struct dl_phdr_info *info, size_t size, void *arg)
{
  struct module_image *m = arg;
  uintptr_t a = (uintptr_t) m->module, lo = UINTPTR_MAX, hi = 0;

  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW (Phdr) *p = &info->dlpi_phdr[i];
    uintptr_t start = info->dlpi_addr + p->p_vaddr;

    if (p->p_type != PT_LOAD)
      continue;
    lo = start < lo ? start : lo;
    hi = start + p->p_memsz > hi ? start + p->p_memsz : hi;
  }
  if (a < lo || a >= hi)
    return 0;
  m->range.lo = lo;
  m->range.hi = hi;
  return 1;
}

static CUresult
load_image (struct module_image *m, const void *image)
{
  struct emu_cubin head;
  CUresult r = check_image (image, &head);

  if (r != CUDA_SUCCESS)
    return r;
  m->dl = open_image ((const char *) image + sizeof head, head.len);
  if (m->dl == NULL)
    return CUDA_ERROR_INVALID_IMAGE;
  m->module = dlsym (m->dl, "emu_module");
  if (m->module == NULL) {
    dlclose (m->dl);
    return CUDA_ERROR_INVALID_IMAGE;
  }
  *m->module->runtime = &scheduler_runtime;
  dl_iterate_phdr (find_image, m);
  return CUDA_SUCCESS;
}

/* ---- modules */

CUresult
cuModuleLoadData (CUmodule *module, const void *image)
{
  struct CUctx_st *c;
  CUresult r = fake_enter ("cuModuleLoadData", NEED_CONTEXT, &c);
  struct CUmod_st *m;

  if (r != CUDA_SUCCESS)
    return r;
  m = calloc (1, sizeof *m);
  if (m == NULL)
    return fake_leave (CUDA_ERROR_OUT_OF_MEMORY);
  r = load_image (&m->image, image);
  if (r != CUDA_SUCCESS) {
    free (m);
    return fake_leave (r);
  }
  m->ctx = c;
  m->next = c->modules;
  c->modules = m;
  *module = m;
  return fake_leave (CUDA_SUCCESS);
}

static void
remove_module (struct CUctx_st *c, struct CUmod_st *m)
{
  struct CUmod_st **p;
  struct CUfunc_st **q = &c->funcs, *f;

  for (p = &c->modules; *p != m; p = &(*p)->next)
    ;
  *p = m->next;
  while ((f = *q) != NULL)
    if (f->module == m) {
      *q = f->next;
      free (f);
    }
    else
      q = &f->next;
  dlclose (m->image.dl);
  free (m);
}

size_t
module_close (struct CUctx_st *c)
{
  size_t nr = 0;

  while (c->modules) {
    remove_module (c, c->modules);
    nr++;
  }
  return nr;
}

static struct CUmod_st *
find_module (struct CUctx_st *c, CUmodule module)
{
  for (struct CUmod_st *m = c->modules; m; m = m->next)
    if (m == module)
      return m;
  return NULL;
}

/* Even after an error, which is then what it returns. */
CUresult
cuModuleUnload (CUmodule module)
{
  CUresult r = fake_enter ("cuModuleUnload", NEED_INIT, NULL);
  struct CUctx_st *c = fake_current ();
  struct CUmod_st *m;

  if (r != CUDA_SUCCESS)
    return r;
  if (c == NULL)
    return fake_leave (CUDA_ERROR_INVALID_CONTEXT);
  m = find_module (c, module);
  if (m == NULL)
    return fake_leave (CUDA_ERROR_INVALID_HANDLE);
  stream_wait_all (c);
  remove_module (c, m);
  return fake_leave (c->error);
}

CUresult
cuModuleGetFunction (CUfunction *func, CUmodule module, const char *name)
{
  struct CUctx_st *c;
  CUresult r = fake_enter ("cuModuleGetFunction", NEED_CONTEXT, &c);
  struct CUmod_st *m;
  struct CUfunc_st *f;
  char symbol[160];

  if (r != CUDA_SUCCESS)
    return r;
  m = find_module (c, module);
  if (m == NULL)
    return fake_leave (CUDA_ERROR_INVALID_HANDLE);
  f = calloc (1, sizeof *f);
  if (f == NULL)
    return fake_leave (CUDA_ERROR_OUT_OF_MEMORY);
  snprintf (symbol, sizeof symbol, "emu_kernel_%s", name);
  snprintf (f->name, sizeof f->name, "%s", name);
  f->module = m;
  f->kernel = dlsym (m->image.dl, symbol);
  if (f->kernel == NULL) {
    free (f);
    return fake_leave (CUDA_ERROR_NOT_FOUND);
  }
  f->next = c->funcs;
  c->funcs = f;
  *func = f;
  return fake_leave (CUDA_SUCCESS);
}

CUresult
cuModuleGetGlobal_v2 (CUdeviceptr *p, size_t *len, CUmodule module,
                      const char *name)
{
  struct CUctx_st *c;
  CUresult r = fake_enter ("cuModuleGetGlobal_v2", NEED_CONTEXT, &c);
  struct CUmod_st *m;
  const ElfW (Sym) *symbol = NULL;
  Dl_info info;
  void *v;

  if (r != CUDA_SUCCESS)
    return r;
  m = find_module (c, module);
  if (m == NULL)
    return fake_leave (CUDA_ERROR_INVALID_HANDLE);
  v = dlsym (m->image.dl, name);
  if (v == NULL || (uintptr_t) v < m->image.range.lo ||
      (uintptr_t) v >= m->image.range.hi ||
      !dladdr1 (v, &info, (void **) &symbol, RTLD_DL_SYMENT) ||
      symbol == NULL)
    return fake_leave (CUDA_ERROR_NOT_FOUND);
  if (p)
    *p = (CUdeviceptr) v;
  if (len)
    *len = symbol->st_size;
  return fake_leave (CUDA_SUCCESS);
}

bool
module_owns (struct CUctx_st *c, const void *p, size_t len)
{
  uintptr_t a = (uintptr_t) p;

  for (struct CUmod_st *m = c->modules; m; m = m->next)
    if (a >= m->image.range.lo && a < m->image.range.hi &&
        len <= m->image.range.hi - a)
      return true;
  return false;
}

static struct CUfunc_st *
find_func (struct CUctx_st *c, CUfunction func)
{
  for (struct CUfunc_st *f = c->funcs; f; f = f->next)
    if (f == func)
      return f;
  return NULL;
}

CUresult
cuFuncGetAttribute (int *value, int attribute, CUfunction func)
{
  struct CUctx_st *c;
  CUresult r = fake_enter ("cuFuncGetAttribute", NEED_CONTEXT, &c);
  const struct CUfunc_st *f;

  if (r != CUDA_SUCCESS)
    return r;
  f = find_func (c, func);
  if (f == NULL)
    return fake_leave (CUDA_ERROR_INVALID_HANDLE);
  switch (attribute) {
  case 0: *value = 1024; break;         /* threads in a block */
  case 1: *value = 0; break;            /* shared memory */
  case 2: *value = 0; break;            /* constant memory */
  case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *value = 0; break;
  case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = 32; break;
  default: return fake_leave (CUDA_ERROR_INVALID_VALUE);
  }
  return fake_leave (CUDA_SUCCESS);
}

/* Only for kernels that no source is there of: the fake has none. */
CUresult
cuFuncSetAttribute (CUfunction func, int attribute, int value)
{
  struct CUctx_st *c;
  CUresult r = fake_enter ("cuFuncSetAttribute", NEED_CONTEXT, &c);

  return r != CUDA_SUCCESS ? r : fake_leave (CUDA_ERROR_INVALID_VALUE);
}

/* ---- launches */

CUresult
module_launch (struct CUctx_st *c, const struct stream_op *op)
{
  struct CUfunc_st *f = op->func;
  struct grid g = {
    .name = f->name, .kernel = f->kernel, .module = f->module->image.module,
    .params = op->params, .blocks = op->blocks, .threads = op->threads,
  };
  char why[SCHEDULER_WHY_LEN];
  bool go_on;

  pthread_mutex_lock (&fake.lock);
  g.ranges = memory_ranges (c, &g.nr_ranges, &f->module->image.range);
  go_on = fake.kernel_errors_return;
  pthread_mutex_unlock (&fake.lock);
  if (g.ranges == NULL)
    return CUDA_ERROR_OUT_OF_MEMORY;
  if (scheduler_run (&g, why) == 0) {
    free ((void *) g.ranges);
    return CUDA_SUCCESS;
  }
  free ((void *) g.ranges);
  fprintf (stderr, "fake-cuda: %s\n", why);
  if (!go_on)
    abort ();
  pthread_mutex_lock (&fake.lock);
  fake.counters.kernel_errors++;
  memcpy (fake.why, why, sizeof fake.why);
  pthread_mutex_unlock (&fake.lock);
  return strstr (why, "device's") ? CUDA_ERROR_ILLEGAL_ADDRESS
    : CUDA_ERROR_LAUNCH_FAILED;
}

/* One piece: the array of pointers, then what they point to. */
static void **
copy_params (const struct emu_kernel *k, void **params)
{
  size_t len = k->nr_params * sizeof (void *) + 16;
  void **all;
  char *p;

  for (unsigned i = 0; i < k->nr_params; i++)
    len += k->param_len[i] + 64;
  all = malloc (len);
  if (all == NULL)
    return NULL;
  p = (char *) (all + k->nr_params);
  for (unsigned i = 0; i < k->nr_params; i++) {
    p = (char *) (((uintptr_t) p + 63) & ~(uintptr_t) 63);
    memcpy (p, params[i], k->param_len[i]);
    all[i] = p;
    p += k->param_len[i];
  }
  return all;
}

static bool
is_good_shape (struct emu_dim b, struct emu_dim t, unsigned shared_len)
{
  return b.x > 0 && b.y > 0 && b.z > 0 && b.x <= INT32_MAX &&
    b.y <= UINT16_MAX && b.z <= UINT16_MAX &&
    t.x > 0 && t.y > 0 && t.z > 0 && t.x <= 1024 && t.y <= 1024 &&
    t.z <= 64 && t.x * t.y * t.z <= 1024 && shared_len <= 48 << 10;
}

CUresult
cuLaunchKernel (CUfunction func, unsigned grid_x, unsigned grid_y,
                unsigned grid_z, unsigned block_x, unsigned block_y,
                unsigned block_z, unsigned shared_len, CUstream stream,
                void **params, void **extra)
{
  struct emu_dim b = { grid_x, grid_y, grid_z };
  struct emu_dim t = { block_x, block_y, block_z };
  struct CUctx_st *c;
  CUresult r = fake_enter ("cuLaunchKernel", NEED_CONTEXT, &c);
  struct CUfunc_st *f;
  struct CUstream_st *s;
  struct device *d;
  struct stream_op *op;

  if (r != CUDA_SUCCESS)
    return r;
  f = find_func (c, func);
  s = stream_find (c, stream);
  if (f == NULL || s == NULL)
    return fake_leave (CUDA_ERROR_INVALID_HANDLE);
  if (!is_good_shape (b, t, shared_len) || extra != NULL ||
      (params == NULL && f->kernel->nr_params > 0))
    return fake_leave (CUDA_ERROR_INVALID_VALUE);
  op = calloc (1, sizeof *op);
  if (op == NULL ||
      (op->params = copy_params (f->kernel, params)) == NULL) {
    free (op);
    return fake_leave (CUDA_ERROR_OUT_OF_MEMORY);
  }
  d = &fake.device[c->device];
  d->nr_launches++;
  fake.counters.launches++;
  op->kind = OP_LAUNCH;
  op->func = f;
  op->blocks = b;
  op->threads = t;
  op->lost = fake.lost_after && d->nr_launches > fake.lost_after &&
    (fake.lost_device == -1 || fake.lost_device == c->device);
  stream_add (s, op);
  return fake_leave (CUDA_SUCCESS);
}
