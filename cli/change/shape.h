/* gpuraid: what add-parity and widen share: one more member of a running array.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CLI_SHAPE_H
#define GPURAID_CLI_SHAPE_H

#include "cli/server/remote.h"

/* args: CONTROL, and NEW or an action.  Returns an exit status, as a command
 * does.
 */
extern int shape_change (const char *command, char *const *args,
                         const struct new_flags *flags);

#endif
