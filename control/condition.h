/* gpuraid: conditions on the status: "members.1.state=failed".
 *
 * FIELD=VALUE, FIELD!=VALUE, and of numbers FIELD>=VALUE and FIELD<=VALUE.
 * FIELD is a path of keys, and numbers in lists, in the object that `status`
 * answers.  A list has null past its end, and so has everything in a null:
 * there may be a member, or a rebuild, later.  VALUE is as JSON without spaces,
 * and a text without its quotes: degraded, 7, true, null, [].
 *
 * Pure: no I/O, no locks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CONTROL_CONDITION_H
#define GPURAID_CONTROL_CONDITION_H

#include <stdbool.h>

#include <json-c/json.h>

#include "array/array.h"

struct condition {
  char field[128];
  enum { CONDITION_IS, CONDITION_IS_NOT, CONDITION_LEAST, CONDITION_MOST } op;
  const char *value;            /* borrowed: the end of the text */
};

/* text: borrowed, as long as *c is used.  status: that of now, in which a field
 * may be that only this array has.  -1: why says in one line what is wrong: no
 * status has such a field, or its value can't be compared like that.
 */
extern int condition_parse (struct condition *c, const char *text,
                            struct json_object *status,
                            char why[ARRAY_WHY_LEN]);

extern bool condition_holds (const struct condition *c,
                             struct json_object *status);

/* What the field is now; borrowed from status.  NULL: null. */
extern struct json_object *condition_value (const struct condition *c,
                                            struct json_object *status);

#endif
