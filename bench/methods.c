/* gpuraid: the table of the methods.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <string.h>

#include "bench/methods.h"

uint64_t method_devices = 1;

const struct method_ops *const methods[] = {
  &method_isal, &method_gf_complete, &method_xor,
  &method_cuda, &method_kernel, &method_auto,
  &method_jerasure,
  &method_gibraltar, &method_rscode,
  &method_gmpe, &method_smpe, &method_gcrs,
  &method_sobe_c, &method_sobe_cl,
  NULL
};

const struct method_ops *
method_find (const char *name)
{
  for (size_t i = 0; methods[i]; i++)
    if (strcmp (methods[i]->name, name) == 0)
      return methods[i];
  return NULL;
}
