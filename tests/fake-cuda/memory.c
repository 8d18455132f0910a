/* gpuraid: tests: a fake CUDA driver: memory.
 *
 * Memory of a device is memory of the host.  Pinned memory is mapped twice:
 * kernels may use only the second address, so that a host pointer given to a
 * kernel is detected.  To register the caller's mapping, its pages are replaced
 * by those of a file in memory, with the same content: no thread may write
 * there meanwhile.  The pages stay when it is unregistered, and are found again
 * if it is registered once more: a test may register its arena a hundred times.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fake-cuda/fake.h"

#define PAGE_LEN 4096
#define GARBAGE_LEN (4 << 20)   /* of new memory that is no zeroes */

#define FILE_NAME "fake-cuda"

/* The file of what was the last to be unregistered. */
static int kept_fd = -1;

static size_t
to_pages (size_t len)
{
  return (len + PAGE_LEN - 1) & ~(size_t) (PAGE_LEN - 1);
}

/* ---- what there is */

static bool
is_inside (const void *p, size_t len, const char *start, size_t whole)
{
  uintptr_t a = (uintptr_t) p, b = (uintptr_t) start;

  return start && a >= b && a - b < whole && len <= whole - (a - b);
}

struct memory *
memory_find (const void *device, size_t len)
{
  for (struct memory *m = fake.memory; m; m = m->next)
    if (is_inside (device, len, m->device, m->len))
      return m;
  return NULL;
}

struct memory *
memory_find_host (const void *host, size_t len)
{
  for (struct memory *m = fake.memory; m; m = m->next)
    if (is_inside (host, len, m->host, m->len))
      return m;
  return NULL;
}

bool
memory_is_mapped (const struct memory *m, struct CUctx_st *c)
{
  return m->kind == DEVICE ? m->ctx == c
    : m->mapped && (m->portable || m->ctx == c);
}

static int
compare_ranges (const void *a, const void *b)
{
  const struct range *x = a, *y = b;

  return (x->lo > y->lo) - (x->lo < y->lo);
}

struct range *
memory_ranges (struct CUctx_st *c, size_t *nr, const struct range *more)
{
  struct range *all;
  size_t max = 1;

  for (struct memory *m = fake.memory; m; m = m->next)
    max++;
  all = calloc (max, sizeof *all);
  if (all == NULL)
    return NULL;
  *nr = 0;
  all[(*nr)++] = *more;
  for (struct memory *m = fake.memory; m; m = m->next)
    if (memory_is_mapped (m, c)) {
      all[*nr].lo = (uintptr_t) m->device;
      all[(*nr)++].hi = (uintptr_t) m->device + m->len;
    }
  qsort (all, *nr, sizeof *all, compare_ranges);
  return all;
}

static struct memory *
add_memory (struct CUctx_st *c, enum memory_kind kind, size_t len)
{
  struct memory *m = calloc (1, sizeof *m);

  if (m == NULL)
    return NULL;
  m->ctx = c;
  m->kind = kind;
  m->len = len;
  m->map_len = to_pages (len);
  m->fd = -1;
  m->next = fake.memory;
  fake.memory = m;
  return m;
}

static void
remove_memory (struct memory *m)
{
  struct memory **p;

  for (p = &fake.memory; *p != m; p = &(*p)->next)
    ;
  *p = m->next;
  if (m->map)
    munmap (m->map, m->map_len);
  if (m->host_map)
    munmap (m->host_map, m->map_len);
  if (m->kind == DEVICE)
    fake.device[m->ctx->device].used -= m->len;
  if (m->fd != -1) {
    if (kept_fd != -1)
      close (kept_fd);
    kept_fd = m->fd;
  }
  free (m);
}

size_t
memory_close (struct CUctx_st *c)
{
  size_t nr = 0;

  for (struct memory *m = fake.memory, *next; m; m = next) {
    next = m->next;
    if (m->ctx == c) {
      remove_memory (m);
      nr++;
    }
  }
  return nr;
}

/* ---- of a device */

CUresult
cuMemAlloc_v2 (CUdeviceptr *p, size_t len)
{
  struct CUctx_st *c;
  CUresult r = fake_enter ("cuMemAlloc_v2", NEED_CONTEXT, &c);
  struct device *d;
  struct memory *m;

  if (r != CUDA_SUCCESS)
    return r;
  d = &fake.device[c->device];
  if (len == 0)
    return fake_leave (CUDA_ERROR_INVALID_VALUE);
  if (len > fake.memory_len - d->used ||
      (m = add_memory (c, DEVICE, len)) == NULL)
    return fake_leave (CUDA_ERROR_OUT_OF_MEMORY);
  d->used += len;
  m->map = mmap (NULL, m->map_len, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (m->map == MAP_FAILED) {
    m->map = NULL;
    remove_memory (m);
    return fake_leave (CUDA_ERROR_OUT_OF_MEMORY);
  }
  memset (m->map, 0xcd, m->len < GARBAGE_LEN ? m->len : GARBAGE_LEN);
  m->device = m->map;
  *p = (CUdeviceptr) m->device;
  return fake_leave (CUDA_SUCCESS);
}

/* Freeing works after an error too, and returns it. */
static CUresult
enter_to_free (const char *symbol)
{
  CUresult r = fake_enter (symbol, NEED_INIT, NULL);

  if (r == CUDA_SUCCESS && fake_current () == NULL)
    r = fake_leave (CUDA_ERROR_INVALID_CONTEXT);
  else if (r == CUDA_SUCCESS && fake_is_gone (fake_current ()))
    r = fake_leave (CUDA_ERROR_CONTEXT_IS_DESTROYED);
  return r;
}

/* Running work may still use it. */
static CUresult
free_memory (struct memory *m)
{
  CUresult r = fake_current ()->error;

  for (int i = 0; i < fake.nr_devices; i++)
    if (m->portable || m->ctx == &fake.device[i].ctx)
      stream_wait_all (&fake.device[i].ctx);
  remove_memory (m);
  return fake_leave (r);
}

CUresult
cuMemFree_v2 (CUdeviceptr p)
{
  CUresult r = enter_to_free ("cuMemFree_v2");
  struct memory *m;

  if (r != CUDA_SUCCESS)
    return r;
  if (p == 0)
    return fake_leave (CUDA_SUCCESS);
  m = memory_find ((void *) p, 0);
  if (m == NULL || m->kind != DEVICE || (char *) p != m->device)
    return fake_leave (CUDA_ERROR_INVALID_VALUE);
  return free_memory (m);
}

/* ---- of the host */

/* fd as m->map; false: m->map is NULL. */
static bool
map_device (struct memory *m, int fd)
{
  m->map = mmap (NULL, m->map_len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (m->map == MAP_FAILED)
    m->map = NULL;
  m->device = m->map;
  return m->map != NULL;
}

/* A file in memory as m->map; -1: none. */
static int
map_file (struct memory *m)
{
  int fd = memfd_create (FILE_NAME, MFD_CLOEXEC);

  if (fd == -1)
    return -1;
  if (ftruncate (fd, m->map_len) == -1 || !map_device (m, fd)) {
    close (fd);
    return -1;
  }
  return fd;
}

CUresult
cuMemHostAlloc (void **p, size_t len, unsigned flags)
{
  struct CUctx_st *c;
  CUresult r = fake_enter ("cuMemHostAlloc", NEED_CONTEXT, &c);
  struct memory *m;
  int fd = -1;

  if (r != CUDA_SUCCESS)
    return r;
  if (len == 0 || (flags & ~7))
    return fake_leave (CUDA_ERROR_INVALID_VALUE);
  m = add_memory (c, HOST_ALLOC, len);
  if (m == NULL)
    return fake_leave (CUDA_ERROR_OUT_OF_MEMORY);
  m->portable = flags & CU_MEMHOSTALLOC_PORTABLE;
  m->mapped = flags & CU_MEMHOSTALLOC_DEVICEMAP;
  fd = map_file (m);
  if (fd != -1) {
    m->host = mmap (NULL, m->map_len, PROT_READ | PROT_WRITE, MAP_SHARED,
                    fd, 0);
    close (fd);
    if (m->host == MAP_FAILED)
      m->host = NULL;
    m->host_map = m->host;
  }
  if (m->host == NULL) {
    remove_memory (m);
    return fake_leave (CUDA_ERROR_OUT_OF_MEMORY);
  }
  memset (m->host, 0xcd, len < GARBAGE_LEN ? len : GARBAGE_LEN);
  *p = m->host;
  return fake_leave (CUDA_SUCCESS);
}

CUresult
cuMemFreeHost (void *p)
{
  CUresult r = enter_to_free ("cuMemFreeHost");
  struct memory *m;

  if (r != CUDA_SUCCESS)
    return r;
  m = memory_find_host (p, 0);
  if (m == NULL || m->kind != HOST_ALLOC || m->host != p)
    return fake_leave (CUDA_ERROR_INVALID_VALUE);
  return free_memory (m);
}

/* Not by memcpy, which a sanitizer would record; pages of zeroes are skipped,
 * which most of an arena is.
 */
static void
copy_pages (char *dst, const char *src, size_t len)
{
  for (size_t i = 0; i < len; i += PAGE_LEN) {
    const uint64_t *from = (const uint64_t *) (src + i);
    uint64_t *to = (uint64_t *) (dst + i);
    size_t j = 0;

    while (j < PAGE_LEN / 8 && from[j] == 0)
      j++;
    for (; j < PAGE_LEN / 8; j++)
      to[j] = from[j];
  }
}

/* Are the pages of m->host still those of that file, from its start? */
static bool
is_mapped_there (const struct memory *m, int fd)
{
  uintptr_t want = (uintptr_t) m->host, lo, hi;
  uint64_t offset, inode;
  bool found = false;
  char line[500];
  struct stat st;
  FILE *f;

  if (fd == -1 || fstat (fd, &st) == -1 ||
      (f = fopen ("/proc/self/maps", "r")) == NULL)
    return false;
  while (!found && fgets (line, sizeof line, f))
    found = sscanf (line, "%" SCNxPTR "-%" SCNxPTR " rw-s %" SCNx64 " %*s %"
                    SCNu64, &lo, &hi, &offset, &inode) == 4 &&
      lo == want && hi - lo == m->map_len && offset == 0 &&
      inode == st.st_ino && strstr (line, "/memfd:" FILE_NAME " ");
  fclose (f);
  return found;
}

/* Only whole pages can be replaced; others have one address. */
static CUresult
map_again (struct memory *m)
{
  void *p = MAP_FAILED;
  int fd;

  if (((uintptr_t) m->host | m->len) & (PAGE_LEN - 1)) {
    m->device = m->host;
    return CUDA_SUCCESS;
  }
  if (is_mapped_there (m, kept_fd) && map_device (m, kept_fd)) {
    m->fd = kept_fd;
    kept_fd = -1;
    return CUDA_SUCCESS;
  }
  fd = map_file (m);
  if (fd != -1) {
    copy_pages (m->map, m->host, m->map_len);
    p = mmap (m->host, m->map_len, PROT_READ | PROT_WRITE,
              MAP_SHARED | MAP_FIXED, fd, 0);
    m->fd = fd;
  }
  return p == MAP_FAILED ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult
cuMemHostRegister_v2 (void *p, size_t len, unsigned flags)
{
  struct CUctx_st *c;
  CUresult r = fake_enter ("cuMemHostRegister_v2", NEED_CONTEXT, &c);
  struct memory *m;

  if (r != CUDA_SUCCESS)
    return r;
  if (p == NULL || len == 0 || (flags & ~15))
    return fake_leave (CUDA_ERROR_INVALID_VALUE);
  for (m = fake.memory; m; m = m->next)
    if (m->host && m->host < (char *) p + len && (char *) p < m->host + m->len)
      return fake_leave (CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  m = add_memory (c, HOST_REGISTERED, len);
  if (m == NULL)
    return fake_leave (CUDA_ERROR_OUT_OF_MEMORY);
  m->host = p;
  m->portable = flags & CU_MEMHOSTREGISTER_PORTABLE;
  m->mapped = flags & CU_MEMHOSTREGISTER_DEVICEMAP;
  r = map_again (m);
  if (r != CUDA_SUCCESS)
    remove_memory (m);
  return fake_leave (r);
}

CUresult
cuMemHostUnregister (void *p)
{
  CUresult r = enter_to_free ("cuMemHostUnregister");
  struct memory *m;

  if (r != CUDA_SUCCESS)
    return r;
  m = memory_find_host (p, 0);
  if (m == NULL || m->kind != HOST_REGISTERED || m->host != p)
    return fake_leave (CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  return free_memory (m);
}

CUresult
cuMemHostGetDevicePointer_v2 (CUdeviceptr *device, void *p, unsigned flags)
{
  struct CUctx_st *c;
  CUresult r = fake_enter ("cuMemHostGetDevicePointer_v2", NEED_CONTEXT, &c);
  struct memory *m;

  if (r != CUDA_SUCCESS)
    return r;
  m = memory_find_host (p, 1);
  if (m == NULL || flags != 0 || !memory_is_mapped (m, c))
    return fake_leave (CUDA_ERROR_INVALID_VALUE);
  *device = (CUdeviceptr) (m->device + ((char *) p - m->host));
  return fake_leave (CUDA_SUCCESS);
}
