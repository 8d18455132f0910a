/* gpuraid: the coders of the array as methods.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "bench/code.h"
#include "bench/gpu.h"
#include "bench/method-coder.h"
#include "bench/methods.h"
#include "bench/sweep.h"
#include "gf/coder-auto.h"
#include "gf/coder.h"
#include "gpu/coder-cuda.h"

static struct coder *
new_isal (const struct bench_case *bc)
{
  return coder_isal_new (bc->threads - 1);
}

/* "in-place-4096": how many threads; 0: another word. */
static unsigned
in_place_threads (const char *option)
{
  static const char begin[] = "in-place-";
  const char *p = option + strlen (begin);
  struct values n;
  char why[BENCH_WHY_LEN];

  if (strncmp (option, begin, strlen (begin)) != 0 ||
      values_parse (p, 32, 1 << 20, 0, &n, why) == -1 || n.nr != 1)
    return 0;
  return n.v[0];
}

static bool
cuda_takes (const char *word, char *why)
{
  snprintf (why, BENCH_WHY_LEN, "%.60s: not in-place-32 to in-place-1048576",
            word);
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
  };

  return coder_cuda_new (&options, fallback);
}

static struct method *
open_isal (const struct bench_case *bc, char *why)
{
  return coder_method_open (&method_isal, new_isal (bc), NULL, bc, why);
}

static struct method *
open_xor (const struct bench_case *bc, char *why)
{
  return coder_method_open (&method_xor, new_isal (bc), NULL, bc, why);
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

  if (bench_gpu_count (why) == 0)
    return NULL;
  fallback = coder_isal_new (0);
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

  if (bench_gpu_count (why) == 0)
    return NULL;
  cpu = coder_isal_new (nr_threads);
  cuda = new_cuda (bc, NULL);
  if (cpu && cuda)
    both = coder_auto_new (cpu, nr_threads, cuda, bc->matrix, bc->cell_len);
  else {
    coder_free (cpu);
    coder_free (cuda);
  }
  return coder_method_open (&method_auto, both, cuda, bc, why);
}

static size_t
array_packet_len (unsigned w, size_t cell_len, const char *option)
{
  return code_array_packet_len (w);
}

#define CODER_METHOD(words)                     \
  .options = words,                             \
  .close = coder_method_close,                  \
  .in = coder_method_in,                        \
  .out = coder_method_out,                      \
  .check = coder_method_check

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

const struct method_ops method_xor = {
  .name = "xor",
  .what = "XOR programs on the processor, code crs whatever --code says",
  .packet_len = array_packet_len,
  .open = open_xor,
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
  .what = "isal and cuda together, slice by slice",
  .gpu = true,
  .gpu_and_cpu = true,
  .open = open_auto,
  .overall = coder_method_run,
  .note = coder_method_note,
  CODER_METHOD ("plain crc"),
};
