/* gpuraid: choose a coder by name.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <string.h>

#include "common/bits.h"
#include "common/log.h"
#include "gf/auto/auto.h"
#include "gf/coder-check.h"
#include "gf/cpu/simd.h"
#include "gpu/coder-choose.h"
#include "gpu/coder-cuda.h"
#include "gpu/device/probe.h"

int
coder_choice_check (struct coder_choice *choice)
{
  char why[256];
  bool cuda = strcmp (choice->name, "cuda") == 0;
  uint64_t there, missing;

  if (strcmp (choice->name, "simd") == 0)
    return coder_simd_check (simd_level ());
  if (choice->checked || (!cuda && strcmp (choice->name, "auto") != 0))
    return 0;
  there = gpu_probe_devices (why, sizeof why);
  missing = choice->gpus & ~there;
  if (choice->gpus != ~UINT64_C (0) && missing) {
    log_error ("gpus=: there is no device %u that can be used%s%s: leave it "
               "out", next_bit (missing, 0), there ? "" : ": ",
               there ? "" : why);
    return -1;
  }
  if (there == 0 && cuda) {
    log_error ("coder=cuda: %s (coder=auto needs no device)", why);
    return -1;
  }
  if (there == 0)
    log_debug ("coder=auto: %s: the CPU does all", why);
  choice->gpus &= there;
  choice->checked = true;
  return 0;
}

/* The coder on the CPU that this choice uses, alone or beside a device, without
 * threads: those of the real one are made after the fork.
 */
static int
check_cpu (const struct coder_choice *choice)
{
  struct coder *c = choice->checked ? coder_fastest_new (0)
                                    : coder_new (choice->name, 0);
  int r = c ? coder_start (c, NULL, 0) : -1;

  if (r == 0 && choice->encode)
    r = coder_check (c, choice->encode, "give another coder=");
  coder_free (c);
  return r;
}

static struct coder *
new_cuda (const struct coder_choice *choice, struct coder *fallback)
{
  const struct cuda_options options = {
    .devices = choice->gpus,
    .kernel_dir = choice->kernel_dir,
    .encode = choice->encode,
    .fail_after = choice->fail_after,
    .fail_device = choice->fail_device,
    /* Check now: where coders are started, a daemon can't report a failure any
     * more.
     */
    .or_fallback = fallback != NULL,
  };

  return coder_cuda_new (&options, fallback);
}

static struct coder *
new_cuda_alone (const struct coder_choice *choice)
{
  struct coder *fallback = coder_fastest_new (choice->nr_threads);
  struct coder *cuda = fallback ? new_cuda (choice, fallback) : NULL;

  if (cuda == NULL)
    coder_free (fallback);
  return cuda;
}

static struct coder *
new_auto (const struct coder_choice *choice)
{
  const int nr_threads = choice->nr_threads >= 0 ? choice->nr_threads
    : (int) coder_auto_cpu_threads (coder_nr_cpus ());
  struct coder *cpu = coder_fastest_new (nr_threads);
  struct coder *gpu = cpu ? new_cuda (choice, NULL) : NULL;

  if (gpu)      /* takes ownership of both, also on failure */
    return coder_auto_new (cpu, nr_threads, gpu, choice->encode,
                           choice->cell_len);
  coder_free (cpu);
  return NULL;
}

struct coder *
coder_choose (struct coder_choice *choice)
{
  if (coder_choice_check (choice) == -1 || check_cpu (choice) == -1)
    return NULL;
  if (!choice->checked)
    return coder_new (choice->name, choice->nr_threads);
  if (choice->gpus == 0)
    return coder_fastest_new (choice->nr_threads);
  return strcmp (choice->name, "cuda") == 0 ? new_cuda_alone (choice)
                                            : new_auto (choice);
}
