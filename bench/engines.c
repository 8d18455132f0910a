/* gpuraid: the table of the engines.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <string.h>

#include "bench/engines.h"

uint64_t engine_devices = 1;

const struct engine_ops *const engines[] = {
  &engine_isal, &engine_gf_complete, &engine_xor,
  &engine_cuda, &engine_kernel, &engine_auto,
  &engine_jerasure,
  &engine_gibraltar, &engine_rscode,
  &engine_gmpe, &engine_smpe, &engine_gcrs,
  &engine_sobe_c, &engine_sobe_cl,
  NULL
};

const struct engine_ops *
engine_find (const char *name)
{
  for (size_t i = 0; engines[i]; i++)
    if (strcmp (engines[i]->name, name) == 0)
      return engines[i];
  return NULL;
}
