/* gpuraid: stand-ins for what other branches bring.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdio.h>

#include "bench/engines.h"
#include "gf/coder-auto.h"
#include "gpu/coder-cuda.h"

#define WEAK __attribute__ ((weak))

static struct engine *
no_open (const struct bench_case *bc, char *why)
{
  snprintf (why, BENCH_WHY_LEN, "not in this build");
  return NULL;
}

#define NONE(id, text)                                                  \
  WEAK const struct engine_ops engine_##id = { .name = text, .what = "", \
                                               .open = no_open }

WEAK struct coder *
coder_cuda_new (const struct cuda_options *o, struct coder *fallback)
{
  coder_free (fallback);
  return NULL;
}

WEAK struct coder *
coder_auto_new (struct coder *near, struct coder *far,
                const struct matrix *a, size_t len)
{
  coder_free (near);
  coder_free (far);
  return NULL;
}
