/* gpuraid: stand-ins for what other branches bring.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "gpu/coder-cuda.h"

__attribute__ ((weak)) struct coder *
coder_cuda_new (const struct cuda_options *o, struct coder *fallback)
{
  coder_free (fallback);
  return NULL;
}
