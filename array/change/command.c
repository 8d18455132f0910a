/* gpuraid: the end of a command.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdio.h>

#include "array/change/command.h"

void
command_end (struct array *a, struct command *cmd, int error, const char *why)
{
  if (cmd == NULL)
    return;
  cmd->whole.error = error;
  if (cmd->why && why)
    snprintf (cmd->why, ARRAY_WHY_LEN, "%s", why);
  completion_end (a, &cmd->whole);
}
