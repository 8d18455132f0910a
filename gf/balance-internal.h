/* gpuraid: what a job takes by itself.
 *
 * Only for gf/balance*.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_BALANCE_INTERNAL_H
#define GPURAID_BALANCE_INTERNAL_H

#include "gf/balance.h"

struct balance_solo {
  double seconds;               /* all of it, with nothing else under way */
  double fixed;                 /* of that, what keeps nobody waiting */
  double drain;                 /* by which it delays others */
};

/* As it was measured, nothing of what was learnt. */
extern struct balance_solo balance_solo (const struct balance *, unsigned side,
                                         const struct balance_job *);

#endif
