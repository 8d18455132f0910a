/* gpuraid widen: one more data member for a running array.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "cli/change/shape.h"
#include "cli/cli.h"

int
cmd_widen (int argc, char **argv)
{
  struct new_flags flags = { false };
  const int i = remote_args (argc, argv, 2, &flags);

  return i ? shape_change ("widen", argv + i, &flags) : CLI_USAGE;
}
