/* gpuraid: the request "wait".
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CONTROL_WAIT_H
#define GPURAID_CONTROL_WAIT_H

#include "control/reply.h"

#define WAIT_MAX_CONDITIONS 32u
#define WAIT_MAX_SECONDS 1e9

/* The reply, once all conditions in until hold (control/condition.h), or after
 * *seconds.
 *
 *   until      a list of at most WAIT_MAX_CONDITIONS strings; NULL or empty:
 *              until no rebuild or scrub is running (array_wait)
 *   seconds    from 0 to WAIT_MAX_SECONDS; NULL: for ever
 *
 * It looks about every 100 ms: a state that lasts less may be missed.
 */
extern struct json_object *wait_run (const struct request_env *env,
                                     struct json_object *until,
                                     const double *seconds);

#endif
