/* gpuraid: as which block device of this host a running array is attached.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CLI_ATTACHED_H
#define GPURAID_CLI_ATTACHED_H

#include <json-c/json.h>

#include "attach/state/state.h"

/* By the uuid in the status.  0, and s is its state; -1: it is not, as far as
 * this user can see.  The caller frees s.
 */
extern int attached_find (struct json_object *status, struct state *s);

/* Add to the status "attached": an object with "device", "way" (kernel or
 * fuse), "mounted", a list of places, and "ended", whether nbdfuse has; or
 * null.  Returns the status.  Safe on NULL.
 */
extern struct json_object *attached_add (struct json_object *status);

#endif
