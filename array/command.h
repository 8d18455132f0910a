/* gpuraid: commands, as requests.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_COMMAND_H
#define GPURAID_COMMAND_H

#include "array/request/request.h"

/* Run a request for a change and wait.  0 or a positive errno. */
extern int array_command (struct request *r);

#endif
