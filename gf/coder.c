/* gpuraid: choose a coder on the CPU by name.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <string.h>

#include "common/log.h"
#include "gf/coder.h"

struct coder *
coder_new (const char *name, int nr_threads)
{
  if (strcmp (name, "isal") == 0)
    return coder_isal_new (nr_threads);
  if (strcmp (name, "gf-complete") == 0)
    return coder_gf_complete_new (nr_threads);
  log_error ("coder=%s: not one of isal, gf-complete", name);
  return NULL;
}
