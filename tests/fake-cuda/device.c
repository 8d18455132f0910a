/* gpuraid: tests: a fake CUDA driver: devices, contexts, faults.
 *
 * What tests set in the environment, read by cuInit and fakeConfigure:
 *
 *   FAKE_CUDA_DEVICES=N       how many there are, 1; 0: none
 *   FAKE_CUDA_ARCH=90         their compute capability
 *   FAKE_CUDA_MEMORY=BYTES    of each, 1 GiB
 *   FAKE_CUDA_SLOW=USEC       every kernel takes so much longer
 *   FAKE_CUDA_FAIL=SYMBOL:N[+][:DEVICE[:CODE]],...
 *                             the Nth call (from the Nth on) of it fails;
 *                             DEVICE * is any
 *   FAKE_CUDA_LOST_AFTER=N[:DEVICE]
 *                             launches that a device does; the next one
 *                             is taken, and then nothing works
 *   FAKE_CUDA_KERNEL_ERRORS=return
 *                             a kernel that does wrong is an error of the
 *                             driver, as in life, not the end of the test
 *   FAKE_CUDA_REPORT=PATH     append fakeCount's counters at exit
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fake-cuda/fake.h"

#define MAX_FAULTS 16

struct fake fake = {
  .lock = PTHREAD_MUTEX_INITIALIZER,
  .changed = PTHREAD_COND_INITIALIZER,
};

static struct fault {
  char symbol[64];
  unsigned long long at, calls;
  bool on;                      /* from then on */
  int device;                   /* or -1 */
  CUresult code;
} faults[MAX_FAULTS];
static size_t nr_faults;

static _Thread_local struct CUctx_st *current;

/* Read the settings again, for a test that changes them while it runs. */
extern void fakeConfigure (void);
/* A counter by its name, see names below; -1: no such one. */
extern long long fakeCount (const char *name);

/* ---- settings */

static unsigned long long
setting (const char *name, unsigned long long otherwise)
{
  const char *v = getenv (name);

  return v && *v ? strtoull (v, NULL, 0) : otherwise;
}

static void
bad_setting (const char *name, const char *value)
{
  fprintf (stderr, "fake-cuda: %s: not understood: %s\n", name, value);
  abort ();
}

static void
add_fault (const char *text)
{
  struct fault *f = &faults[nr_faults];
  char device[16] = "*", plus = '\0';
  int code = -1, n = 0;

  memset (f, 0, sizeof *f);
  if (nr_faults == MAX_FAULTS ||
      sscanf (text, "%63[^:]:%llu%n", f->symbol, &f->at, &n) != 2)
    bad_setting ("FAKE_CUDA_FAIL", text);
  plus = text[n];
  if (plus == '+')
    n++;
  if (text[n] &&
      sscanf (text + n, ":%15[^:]:%d", device, &code) < 1)
    bad_setting ("FAKE_CUDA_FAIL", text);
  f->on = plus == '+';
  f->device = *device == '*' ? -1 : atoi (device);
  if (code != -1)
    f->code = code;
  else if (strncmp (f->symbol, "cuMem", 5) == 0)
    f->code = CUDA_ERROR_OUT_OF_MEMORY;
  else if (strcmp (f->symbol, "cuLaunchKernel") == 0)
    f->code = CUDA_ERROR_LAUNCH_FAILED;
  else
    f->code = CUDA_ERROR_UNKNOWN;
  nr_faults++;
}

void
fake_configure (void)
{
  const char *fail = getenv ("FAKE_CUDA_FAIL");
  const char *lost = getenv ("FAKE_CUDA_LOST_AFTER");
  const char *errors = getenv ("FAKE_CUDA_KERNEL_ERRORS");
  char *copy = strdup (fail ? fail : ""), *save = NULL;

  nr_faults = 0;
  for (char *p = strtok_r (copy, ",", &save); p;
       p = strtok_r (NULL, ",", &save))
    add_fault (p);
  free (copy);
  fake.nr_devices = setting ("FAKE_CUDA_DEVICES", 1);
  if (fake.nr_devices < 0 || fake.nr_devices > MAX_DEVICES)
    bad_setting ("FAKE_CUDA_DEVICES", getenv ("FAKE_CUDA_DEVICES"));
  fake.arch = setting ("FAKE_CUDA_ARCH", 90);
  fake.memory_len = setting ("FAKE_CUDA_MEMORY", UINT64_C (1) << 30);
  fake.slow_usec = setting ("FAKE_CUDA_SLOW", 0);
  fake.lost_after = setting ("FAKE_CUDA_LOST_AFTER", 0);
  fake.lost_device = lost && strchr (lost, ':') ? atoi (strchr (lost, ':') + 1)
    : -1;
  fake.kernel_errors_return = errors && strcmp (errors, "return") == 0;
}

void
fakeConfigure (void)
{
  pthread_mutex_lock (&fake.lock);
  fake_configure ();
  pthread_mutex_unlock (&fake.lock);
}

/* ---- every call */

bool
fake_is_sticky (CUresult r)
{
  return (r >= CUDA_ERROR_ILLEGAL_ADDRESS && r <= 721 &&
          r != CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED &&
          r != CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED &&
          r != CUDA_ERROR_CONTEXT_IS_DESTROYED && r != 701 && r != 704 &&
          r != 705 && r != 708) || r == 214 || r == 220;
}

/* Names in the library end in _v2 where the header's do not. */
static bool
same_symbol (const char *symbol, const char *name)
{
  size_t len = strlen (name);

  return strncmp (symbol, name, len) == 0 &&
    (symbol[len] == '\0' || strcmp (symbol + len, "_v2") == 0);
}

CUresult
fake_fault (const char *symbol, int device)
{
  CUresult r = CUDA_SUCCESS;

  for (size_t i = 0; i < nr_faults; i++) {
    struct fault *f = &faults[i];

    if (!same_symbol (symbol, f->symbol) ||
        (f->device != -1 && f->device != device))
      continue;
    f->calls++;
    if (f->calls == f->at || (f->on && f->calls > f->at))
      r = f->code;
  }
  if (r != CUDA_SUCCESS)
    fake.counters.faults++;
  return r;
}

CUresult
fake_enter (const char *symbol, enum need need, struct CUctx_st **ctx)
{
  CUresult r = CUDA_SUCCESS;

  /* A child gets no further: the lock may be held by nobody it has. */
  if (!fake.initialized || fake.pid != getpid ())
    return CUDA_ERROR_NOT_INITIALIZED;
  pthread_mutex_lock (&fake.lock);
  if (need == NEED_CONTEXT) {
    *ctx = current;
    if (current == NULL)
      r = CUDA_ERROR_INVALID_CONTEXT;
    else if (current->retained == 0)
      r = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    else if (current->error)
      r = current->error;
  }
  if (r == CUDA_SUCCESS) {
    r = fake_fault (symbol, need == NEED_CONTEXT ? current->device : -1);
    if (need == NEED_CONTEXT && fake_is_sticky (r))
      current->error = r;
  }
  if (r != CUDA_SUCCESS)
    pthread_mutex_unlock (&fake.lock);
  return r;
}

CUresult
fake_leave (CUresult r)
{
  pthread_mutex_unlock (&fake.lock);
  return r;
}

struct CUctx_st *
fake_current (void)
{
  return current;
}

/* ---- counters */

static size_t
count_streams (const struct CUctx_st *c)
{
  size_t nr = 0;

  for (const struct CUstream_st *s = c->streams; s; s = s->next)
    nr += !s->destroyed;
  return nr;
}

static size_t
count_events (const struct CUctx_st *c)
{
  size_t nr = 0;

  for (const struct CUevent_st *e = c->events; e; e = e->next)
    nr += !e->destroyed;
  return nr;
}

static long long
count_live (void)
{
  long long nr = 0;

  for (int i = 0; i < fake.nr_devices; i++) {
    const struct CUctx_st *c = &fake.device[i].ctx;

    nr += c->retained + count_streams (c) + count_events (c);
    for (const struct CUmod_st *m = c->modules; m; m = m->next)
      nr++;
  }
  for (const struct memory *m = fake.memory; m; m = m->next)
    nr++;
  return nr;
}

static const struct name {
  const char *name;
  unsigned long long *counter;
} names[] = {
  { "launches", &fake.counters.launches },
  { "copies", &fake.counters.copies },
  { "copied_len", &fake.counters.copied_len },
  { "pageable_copies", &fake.counters.pageable_copies },
  { "kernel_errors", &fake.counters.kernel_errors },
  { "faults", &fake.counters.faults }, /* injected */
  { "leaked", &fake.counters.leaked }, /* with their context */
};

long long
fakeCount (const char *name)
{
  long long r = -1;
  int device;

  pthread_mutex_lock (&fake.lock);
  if (strcmp (name, "live") == 0) /* contexts, and all in them */
    r = count_live ();
  if (sscanf (name, "launches:%d", &device) == 1 && device >= 0 &&
      device < MAX_DEVICES)
    r = fake.device[device].nr_launches;
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (strcmp (names[i].name, name) == 0)
      r = *names[i].counter;
  pthread_mutex_unlock (&fake.lock);
  return r;
}

static void __attribute__ ((destructor))
print_report (void)
{
  const char *path = getenv ("FAKE_CUDA_REPORT");
  FILE *f = NULL;

  if (path && fake.initialized && fake.pid == getpid ())
    f = fopen (path, "a");
  if (f == NULL)
    return;
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    fprintf (f, "%s=%llu\n", names[i].name, *names[i].counter);
  for (int i = 0; i < fake.nr_devices; i++)
    fprintf (f, "launches_%d=%llu\n", i, fake.device[i].nr_launches);
  fprintf (f, "live=%lld\n", count_live ());
  fclose (f);
}

/* ---- errors */

static const struct error {
  CUresult code;
  const char *name, *text;
} errors[] = {
  { 0, "CUDA_SUCCESS", "no error" },
  { 1, "CUDA_ERROR_INVALID_VALUE", "invalid argument" },
  { 2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory" },
  { 3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error" },
  { 46, "CUDA_ERROR_DEVICE_UNAVAILABLE",
    "CUDA-capable device(s) is/are busy or unavailable" },
  { 100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected" },
  { 101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal" },
  { 200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid" },
  { 201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context" },
  { 209, "CUDA_ERROR_NO_BINARY_FOR_GPU",
    "no kernel image is available for execution on the device" },
  { 400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle" },
  { 500, "CUDA_ERROR_NOT_FOUND", "named symbol not found" },
  { 600, "CUDA_ERROR_NOT_READY", "device not ready" },
  { 700, "CUDA_ERROR_ILLEGAL_ADDRESS",
    "an illegal memory access was encountered" },
  { 709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed" },
  { 712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
    "part or all of the requested memory range is already mapped" },
  { 713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
    "pointer does not correspond to a registered memory region" },
  { 719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure" },
  { 999, "CUDA_ERROR_UNKNOWN", "unknown error" },
};

static const struct error *
find_error (CUresult code)
{
  for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
    if (errors[i].code == code)
      return &errors[i];
  return NULL;
}

CUresult
cuGetErrorName (CUresult code, const char **name)
{
  const struct error *e = find_error (code);

  *name = e ? e->name : NULL;
  return e ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult
cuGetErrorString (CUresult code, const char **text)
{
  const struct error *e = find_error (code);

  *text = e ? e->text : NULL;
  return e ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- devices */

CUresult
cuInit (unsigned flags)
{
  CUresult r;

  if (flags != 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (fake.initialized && fake.pid != getpid ())
    return CUDA_ERROR_NOT_INITIALIZED;
  pthread_mutex_lock (&fake.lock);
  if (fake.initialized)
    return fake_leave (CUDA_SUCCESS);
  fake_configure ();
  r = fake_fault ("cuInit", -1);
  if (r == CUDA_SUCCESS && fake.nr_devices == 0)
    r = CUDA_ERROR_NO_DEVICE;
  if (r == CUDA_SUCCESS) {
    fake.pid = getpid ();
    fake.initialized = true;
    for (int i = 0; i < MAX_DEVICES; i++)
      fake.device[i].ctx.device = i;
  }
  return fake_leave (r);
}

CUresult
cuDriverGetVersion (int *version)
{
  *version = 13000;
  return CUDA_SUCCESS;
}

CUresult
cuDeviceGetCount (int *nr)
{
  CUresult r = fake_enter ("cuDeviceGetCount", NEED_INIT, NULL);

  if (r != CUDA_SUCCESS)
    return r;
  *nr = fake.nr_devices;
  return fake_leave (CUDA_SUCCESS);
}

static bool
is_device (CUdevice d)
{
  return d >= 0 && d < fake.nr_devices;
}

CUresult
cuDeviceGet (CUdevice *device, int nr)
{
  CUresult r = fake_enter ("cuDeviceGet", NEED_INIT, NULL);

  if (r != CUDA_SUCCESS)
    return r;
  if (!is_device (nr))
    return fake_leave (CUDA_ERROR_INVALID_DEVICE);
  *device = nr;
  return fake_leave (CUDA_SUCCESS);
}

CUresult
cuDeviceGetName (char *name, int len, CUdevice d)
{
  CUresult r = fake_enter ("cuDeviceGetName", NEED_INIT, NULL);

  if (r != CUDA_SUCCESS)
    return r;
  if (!is_device (d))
    return fake_leave (CUDA_ERROR_INVALID_DEVICE);
  snprintf (name, len, "Fake GPU %d", d);
  return fake_leave (CUDA_SUCCESS);
}

static CUresult
get_attribute (int *value, int attribute, CUdevice d)
{
  switch (attribute) {
  case 1: *value = 1024; break;         /* threads in a block */
  case 8: *value = 49152; break;        /* shared memory of a block */
  case 10: *value = EMU_WARP; break;
  case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: *value = 1980000; break;
  case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 4; break;
  case 19: *value = 1; break;           /* can map host memory */
  case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID: *value = 16 + d; break;
  case 36: *value = 2619000; break;     /* memory clock, kHz */
  case 37: *value = 5120; break;        /* bits of the memory's bus */
  case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: *value = 50 << 20; break;
  case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT: *value = 3; break;
  case 41: *value = 1; break;           /* unified addressing */
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
    *value = fake.arch / 10;
    break;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
    *value = fake.arch % 10;
    break;
  default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult
cuDeviceGetAttribute (int *value, int attribute, CUdevice d)
{
  CUresult r = fake_enter ("cuDeviceGetAttribute", NEED_INIT, NULL);

  if (r != CUDA_SUCCESS)
    return r;
  return fake_leave (is_device (d) ? get_attribute (value, attribute, d)
                     : CUDA_ERROR_INVALID_DEVICE);
}

CUresult
cuDeviceTotalMem_v2 (size_t *len, CUdevice d)
{
  CUresult r = fake_enter ("cuDeviceTotalMem_v2", NEED_INIT, NULL);

  if (r != CUDA_SUCCESS)
    return r;
  if (!is_device (d))
    return fake_leave (CUDA_ERROR_INVALID_DEVICE);
  *len = fake.memory_len;
  return fake_leave (CUDA_SUCCESS);
}

/* ---- contexts */

CUresult
cuDevicePrimaryCtxRetain (CUcontext *ctx, CUdevice d)
{
  CUresult r = fake_enter ("cuDevicePrimaryCtxRetain", NEED_INIT, NULL);

  if (r != CUDA_SUCCESS)
    return r;
  if (!is_device (d))
    return fake_leave (CUDA_ERROR_INVALID_DEVICE);
  if (fake.device[d].lost)
    return fake_leave (CUDA_ERROR_DEVICE_UNAVAILABLE);
  fake.device[d].ctx.retained++;
  *ctx = &fake.device[d].ctx;
  return fake_leave (CUDA_SUCCESS);
}

CUresult
cuDevicePrimaryCtxRelease_v2 (CUdevice d)
{
  CUresult r = fake_enter ("cuDevicePrimaryCtxRelease_v2", NEED_INIT, NULL);
  struct CUctx_st *c;

  if (r != CUDA_SUCCESS)
    return r;
  if (!is_device (d))
    return fake_leave (CUDA_ERROR_INVALID_DEVICE);
  c = &fake.device[d].ctx;
  if (c->retained == 0)
    return fake_leave (CUDA_ERROR_INVALID_CONTEXT);
  if (c->retained == 1) {
    stream_wait_all (c);
    fake.counters.leaked += count_streams (c) + count_events (c);
    stream_close_all (c);
    fake.counters.leaked += module_close (c) + memory_close (c);
    c->error = CUDA_SUCCESS;
  }
  c->retained--;
  return fake_leave (CUDA_SUCCESS);
}

CUresult
cuCtxSetCurrent (CUcontext ctx)
{
  CUresult r = fake_enter ("cuCtxSetCurrent", NEED_INIT, NULL);

  if (r != CUDA_SUCCESS)
    return r;
  if (ctx != NULL && (!is_device (ctx->device) ||
                      ctx != &fake.device[ctx->device].ctx ||
                      ctx->retained == 0))
    return fake_leave (CUDA_ERROR_INVALID_CONTEXT);
  current = ctx;
  return fake_leave (CUDA_SUCCESS);
}

CUresult
cuCtxGetStreamPriorityRange (int *least, int *greatest)
{
  struct CUctx_st *c;
  CUresult r = fake_enter ("cuCtxGetStreamPriorityRange", NEED_CONTEXT, &c);

  if (r != CUDA_SUCCESS)
    return r;
  if (least)
    *least = 0;
  if (greatest)
    *greatest = -5;
  return fake_leave (CUDA_SUCCESS);
}
