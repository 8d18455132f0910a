/* gpuraid: what is wrong with a running array, for a person.
 *
 * A key missing in the status is not shown.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_SHOW_TROUBLE_H
#define GPURAID_SHOW_TROUBLE_H

#include <stdio.h>

#include <json-c/json.h>

/* The i-th reason why it is not healthy.  NULL: there are fewer. */
extern const char *trouble_reason (struct json_object *status, size_t i);
/* What the worst of them means, and what to do: two lines.  What to do about
 * members that are lost stands below these.
 */
extern void trouble_advice (FILE *fp, struct json_object *status);
/* Lines of problems that are not in the states of the members. */
extern void trouble_members (FILE *fp, struct json_object *status);

#endif
