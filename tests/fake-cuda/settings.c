/* gpuraid: tests: a fake CUDA driver: settings, and faults on request.
 *
 * What tests set in the environment, read by cuInit and fakeConfigure:
 *
 *   FAKE_CUDA_DEVICES=N       how many there are, 1; 0: none
 *   FAKE_CUDA_ARCH=90         their compute capability
 *   FAKE_CUDA_MEMORY=BYTES    of each, 1 GiB
 *   FAKE_CUDA_SLOW=USEC       every kernel takes USEC longer
 *   FAKE_CUDA_SLOW_COPIES=USEC
 *                             and every copy from a device to the host
 *   FAKE_CUDA_LATE=1          an error of a context is returned while its
 *                             launches still run, and write
 *   FAKE_CUDA_ONE_FOR_ALL=1   an error of a context is one of all, of all
 *                             devices, as on an H200
 *   FAKE_CUDA_HANG=SYMBOL     calls of it do not return while this is set
 *   FAKE_CUDA_FAIL=SYMBOL:N[+][:DEVICE[:CODE]],...
 *                             the Nth call (from the Nth on) of it fails;
 *                             DEVICE * is any
 *   FAKE_CUDA_LOST_AFTER=N[:DEVICE]
 *                             launches that a device does; the next one
 *                             is taken, and then nothing works
 *   FAKE_CUDA_KERNEL_ERRORS=return
 *                             a mistake of a kernel is an error of the
 *                             driver, as on a GPU, not the end of the test
 *   FAKE_CUDA_REPORT=PATH     append fakeCount's counters at exit
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fake-cuda/fake.h"

#define MAX_FAULTS 16

static struct fault {
  char symbol[64];
  unsigned long long at, calls;
  bool on;                      /* from then on */
  int device;                   /* or -1 */
  CUresult code;
} faults[MAX_FAULTS];
static size_t nr_faults;
static char hang[64];           /* symbol, or "" */

/* Read the settings again, for a test that changes them while it runs. */
extern void fakeConfigure (void);

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
  const char *hangs = getenv ("FAKE_CUDA_HANG");
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
  fake.slow_copies_usec = setting ("FAKE_CUDA_SLOW_COPIES", 0);
  fake.late = setting ("FAKE_CUDA_LATE", 0);
  fake.one_for_all = setting ("FAKE_CUDA_ONE_FOR_ALL", 0);
  snprintf (hang, sizeof hang, "%s", hangs ? hangs : "");
  pthread_cond_broadcast (&fake.changed);
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

/* ---- faults */

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

  fake.nr_hanging++;
  while (*hang && same_symbol (symbol, hang))
    pthread_cond_wait (&fake.changed, &fake.lock);
  fake.nr_hanging--;
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
