/* gpuraid: the coders of the array as methods.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gf/auto/auto.h"
#include "gf/coder.h"
#include "gf/cpu/simd.h"
#include "gpu/coder-cuda.h"
#include "gpu/device/driver.h"
#include "measure/coders.h"
#include "measure/method-coder.h"

uint64_t method_devices = 1;
const struct driver *method_driver;

unsigned
method_nr_devices (char *why)
{
  const struct driver *d = driver_get (why, BENCH_WHY_LEN);
  char buf[DRIVER_ERROR_LEN];
  CUresult r;
  int nr = 0;

  if (d == NULL)
    return 0;
  r = d->device_get_count (&nr);
  if (r != CUDA_SUCCESS)
    snprintf (why, BENCH_WHY_LEN, "device_get_count: %s",
              driver_error (d, r, buf));
  else if (nr <= 0)
    snprintf (why, BENCH_WHY_LEN, "no CUDA device");
  return r == CUDA_SUCCESS && nr > 0 ? nr : 0;
}

static struct coder *
new_isal (const struct bench_case *bc)
{
  return coder_isal_new (bc->threads - 1);
}

#define LEAST_THREADS 32ul
#define MOST_THREADS (1ul << 20)

/* "in-place-4096": how many threads; 0: another word. */
static unsigned
in_place_threads (const char *option)
{
  static const char begin[] = "in-place-";
  const char *p = option + strlen (begin);
  unsigned long n;
  char *end;

  if (strncmp (option, begin, strlen (begin)) != 0 || *p < '0' || *p > '9')
    return 0;
  n = strtoul (p, &end, 10);
  return *end == '\0' && n >= LEAST_THREADS && n <= MOST_THREADS ? n : 0;
}

static bool
cuda_takes (const char *word, char *why)
{
  snprintf (why, BENCH_WHY_LEN, "%.60s: not in-place-%lu to in-place-%lu",
            word, LEAST_THREADS, MOST_THREADS);
  return in_place_threads (word) > 0;
}

static struct coder *
new_cuda (const struct bench_case *bc, struct coder *fallback)
{
  bool generic = bc->option && strcmp (bc->option, "generic") == 0;
  const struct cuda_options options = {
    .devices = method_devices, .fail_device = -1,
    .encode = generic ? NULL : bc->matrix,
    .special_after = generic ? ~UINT64_C (0) : 1,
    .in_place = bc->option && strncmp (bc->option, "in-place", 8) == 0,
    .in_place_threads = bc->option ? in_place_threads (bc->option) : 0,
    .driver = method_driver,
  };

  return coder_cuda_new (&options, fallback);
}

static struct method *
open_simd (const struct bench_case *bc, char *why)
{
  enum simd_level level = simd_level ();

  if (level > SIMD_AVX2 && bc->option && strcmp (bc->option, "avx2") == 0)
    level = SIMD_AVX2;
  if (level == SIMD_NONE) {
    snprintf (why, BENCH_WHY_LEN, "this processor has no GFNI with AVX2");
    return NULL;
  }
  return coder_method_open (&method_simd,
                            coder_simd_new (level, bc->threads - 1), NULL, bc,
                            why);
}

static struct method *
open_isal (const struct bench_case *bc, char *why)
{
  return coder_method_open (&method_isal, new_isal (bc), NULL, bc, why);
}

static struct method *
open_gf_complete (const struct bench_case *bc, char *why)
{
  return coder_method_open (&method_gf_complete,
                     coder_gf_complete_new (bc->threads - 1), NULL, bc, why);
}

static struct method *
open_cuda (const struct bench_case *bc, char *why)
{
  struct coder *fallback, *cuda = NULL;

  if (method_nr_devices (why) == 0)
    return NULL;
  fallback = coder_fastest_new (0);
  if (fallback)
    cuda = new_cuda (bc, fallback);
  if (cuda == NULL)
    coder_free (fallback);
  return coder_method_open (&method_cuda, cuda, cuda, bc, why);
}

static struct method *
open_auto (const struct bench_case *bc, char *why)
{
  const unsigned nr_threads = coder_auto_cpu_threads (bc->threads);
  struct coder *cpu, *cuda, *both = NULL;

  if (method_nr_devices (why) == 0)
    return NULL;
  cpu = coder_fastest_new (nr_threads);
  cuda = new_cuda (bc, NULL);
  if (cpu && cuda)
    both = coder_auto_new (cpu, nr_threads, cuda, bc->matrix, bc->cell_len);
  else {
    coder_free (cpu);
    coder_free (cuda);
  }
  return coder_method_open (&method_auto, both, cuda, bc, why);
}

#define CODER_METHOD(words)                     \
  .options = words,                             \
  .close = coder_method_close,                  \
  .in = coder_method_in,                        \
  .out = coder_method_out,                      \
  .check = coder_method_check

const struct method_ops method_simd = {
  .name = "simd",
  .what = "our coder on the processor: GFNI, and XOR programs for crs",
  .open = open_simd,
  .raw = coder_method_run,
  CODER_METHOD ("plain crc avx2"),
};

const struct method_ops method_isal = {
  .name = "isal",
  .what = "our coder on the processor: ISA-L, and XOR programs for crs",
  .open = open_isal,
  .raw = coder_method_run,
  CODER_METHOD ("plain crc"),
};

const struct method_ops method_gf_complete = {
  .name = "gf-complete",
  .what = "our second coder on the processor: gf-complete",
  .open = open_gf_complete,
  .raw = coder_method_run,
  CODER_METHOD ("plain crc"),
};

const struct method_ops method_cuda = {
  .name = "cuda",
  .what = "our coder on CUDA devices, from submit to done",
  .gpu = true,
  .open = open_cuda,
  .overall = coder_method_run,
  .note = coder_method_note,
  .others = "in-place-4096, by 4096 threads",
  .takes = cuda_takes,
  CODER_METHOD ("plain crc generic in-place"),
};

const struct method_ops method_auto = {
  .name = "auto",
  .what = "the processor and cuda together, slice by slice",
  .gpu = true,
  .gpu_and_cpu = true,
  .open = open_auto,
  .overall = coder_method_run,
  .note = coder_method_note,
  CODER_METHOD ("plain crc"),
};

const struct method_ops *const coder_methods[] = {
  &method_simd, &method_isal, &method_gf_complete, &method_cuda, &method_auto,
  NULL
};

const struct method_ops *
method_find (const struct method_ops *const list[], const char *name)
{
  for (size_t i = 0; list[i]; i++)
    if (strcmp (list[i]->name, name) == 0)
      return list[i];
  return NULL;
}

const struct method_ops *
method_default (void)
{
  return simd_level () == SIMD_NONE ? &method_isal : &method_simd;
}
