/* gpuraid: modules of the kernel.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/device/module.h"

void
module_load (const char *module)
{
  char *argv[] = { "modprobe", "-q", (char *) module, NULL };
  pid_t pid;

  if (posix_spawn (&pid, "/sbin/modprobe", NULL, NULL, argv, environ) == 0)
    waitpid (pid, NULL, 0);
}
