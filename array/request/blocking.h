/* gpuraid: requests for threads that may block.
 *
 * Also array_read, array_write and the others of array/array.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_REQUEST_BLOCKING_H
#define GPURAID_REQUEST_BLOCKING_H

#include "array/request/request.h"

/* Run a request to its end: r->error. */
extern int request_block (struct request *r);

#endif
