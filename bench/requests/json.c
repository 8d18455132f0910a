/* gpuraid-bench: what requests and answers are made of.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "bench/requests/json.h"
#include "common/bits.h"
#include "common/json-text.h"

uint64_t
request_number (struct json_object *q, const char *key, uint64_t most,
                uint64_t otherwise)
{
  struct json_object *v;

  if (!json_object_object_get_ex (q, key, &v))
    return otherwise;
  return MIN ((uint64_t) MAX (json_object_get_int64 (v), 0), most);
}

const char *
request_text (struct json_object *q, const char *key)
{
  struct json_object *v;

  return json_object_object_get_ex (q, key, &v)
    && json_object_is_type (v, json_type_string)
    ? json_object_get_string (v) : "";
}

void
answer_number (struct json_object *o, const char *key, int64_t n)
{
  json_object_object_add (o, key, json_object_new_int64 (n));
}

void
answer_double (struct json_object *o, const char *key, double x)
{
  json_object_object_add (o, key, json_object_new_double (x));
}

void
answer_text (struct json_object *o, const char *key, const char *text)
{
  json_object_object_add (o, key, json_text (text));
}
