/* gpuraid: the coder on gf-complete.
 *
 * One region product for each element of the matrix.  Slower than ISA-L,
 * and shares no arithmetic with it: each is the check of the other.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "gf/coder-cpu.h"
#include "gf/field.h"

/* A matrix is used as it is. */
static const void *
gf_complete_get (struct cpu_coder *c, const struct matrix *a)
{
  return a;
}

static void
gf_complete_put (struct cpu_coder *c, const void *tables)
{
}

static void
gf_complete_encode (const struct matrix *a, const void *tables,
                    const uint8_t *const *in, uint8_t *const *out,
                    size_t off, size_t len)
{
  for (unsigned j = 0; j < a->rows; j++) {
    const uint8_t *coef = a->coef + j * a->cols;
    bool add = false;

    for (unsigned i = 0; i < a->cols; i++) {
      if (coef[i] == 0)
        continue;
      field_mul_region (out[j] + off, in[i] + off, coef[i], len, add);
      add = true;
    }
    if (!add)
      memset (out[j] + off, 0, len);
  }
}

static const struct cpu_ops gf_complete_cpu_ops = {
  .get = gf_complete_get,
  .put = gf_complete_put,
  .encode = gf_complete_encode,
};

static void
gf_complete_free (struct coder *coder)
{
  struct cpu_coder *c = (struct cpu_coder *) coder;

  cpu_coder_destroy (c);
  free (c);
}

static const struct coder_ops gf_complete_ops = {
  .name = "gf-complete",
  .start = cpu_coder_start,
  .submit = cpu_coder_submit,
  .shares = cpu_coder_shares,
  .free = gf_complete_free,
};

struct coder *
coder_gf_complete_new (int nr_threads)
{
  struct cpu_coder *c = calloc (1, sizeof *c);

  if (c == NULL) {
    log_error ("calloc: %m");
    return NULL;
  }
  if (cpu_coder_init (c, &gf_complete_ops, &gf_complete_cpu_ops,
                      nr_threads) == -1) {
    free (c);
    return NULL;
  }
  return &c->coder;
}
