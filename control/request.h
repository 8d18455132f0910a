/* gpuraid: one request of a control client, from text to reply.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CONTROL_REQUEST_H
#define GPURAID_CONTROL_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "control/reply.h"

/* Carry out the request in line, len bytes of anything, and make the reply; the
 * caller frees it with json_object_put.  NULL: no memory; or the client asked
 * for a stop that has begun, and *stop says how.
 */
enum request_stop { STOP_NONE, STOP_WAIT, STOP_FORCE };
extern struct json_object *request_run (const struct request_env *env,
                                        const char *line, size_t len,
                                        enum request_stop *stop);

/* The reply to it at the end. */
extern struct json_object *request_stopped (bool written_out);

#endif
