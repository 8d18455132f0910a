/* gpuraid: mistakes that tests plant.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>
#include <string.h>

#include "common/plant.h"

#ifdef GPURAID_PLANT
bool
planted (const char *name)
{
  static const char *chosen;

  if (chosen == NULL) {
    chosen = getenv ("PLANT");
    if (chosen == NULL)
      chosen = "";
  }
  return strcmp (chosen, name) == 0;
}
#else
typedef int nothing_is_planted;         /* a file must declare something */
#endif
