/* gpuraid: which arrays run on this host, of those started by a NAME.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CLI_RUNNING_H
#define GPURAID_CLI_RUNNING_H

#include <json-c/json.h>

/* A list of their states, each with a "name"; the caller frees it. */
extern struct json_object *running_list (void);

/* The state of the array with this uuid, or NULL; borrowed. */
extern struct json_object *running_find (struct json_object *list,
                                         const char *uuid);

#endif
