/* gpuraid: conditions on the status.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bits.h"
#include "control/condition.h"
#include "control/reply.h"

/* ---- fields ---------------------------------------------------------- */

/* One step of a path.  False: there is no such thing. */
static bool
step (struct json_object *o, const char *key, struct json_object **value)
{
  if (json_object_is_type (o, json_type_object))
    return json_object_object_get_ex (o, key, value);
  if (!json_object_is_type (o, json_type_array) || key[0] == '\0' ||
      key[strspn (key, "0123456789")] || strlen (key) > 4)
    return false;
  *value = json_object_array_get_idx (o, atoi (key));
  return atoi (key) < (int) json_object_array_length (o);
}

/* any: each entry of a list is like the first one. */
static bool
find (struct json_object *o, const char *field, bool any,
      struct json_object **value)
{
  char path[sizeof ((struct condition *) NULL)->field], *p = path, *key;

  strcpy (path, field);
  while ((key = strsep (&p, ".")) != NULL) {
    if (any && json_object_is_type (o, json_type_array) && key[0] &&
        key[strspn (key, "0123456789")] == '\0')
      key = (char *) "0";
    if (!step (o, key, &o))
      return false;
  }
  *value = o;
  return true;
}

/* A status in which nothing is null, and no list is empty. */
static struct json_object *
full_status (void)
{
  struct array_status *st = calloc (1, sizeof *st);
  const struct array_progress runs = { .running = true };
  const struct control_clients clients = { .nr_named = 1, .name = { "x" } };
  struct json_object *o;
  char path[] = "x";

  if (st == NULL)
    return NULL;
  st->coder = st->loop = st->readonly_why = path;
  st->code = CODE_RS;
  st->label[0] = st->failed_change[0] = 'x';
  st->rebuild = st->resync = st->grow = st->scrub = runs;
  st->reshape.state = RESHAPE_MOVING;
  st->reshape.why = path;
  st->has_last_scrub = true;
  st->reasons = ARRAY_WHY_MEMBERS;
  st->nr_engines = 1;
  st->engine[0] = (struct coder_share) { .name = "x", .failed = "x" };
  st->nr_entries = 1;
  st->entry[0] = (struct array_entry) {
    .path = path, .uuid.b = { 1 },
    .last_error = { .error = EIO, .operation = path, .has_off = true },
  };
  o = status_to_json (st, &clients);
  free (st);
  return o;
}

/* ---- values ---------------------------------------------------------- */

static bool
is_number (const char *s)
{
  return s[0] && s[strspn (s, "0123456789")] == '\0';
}

static const char *
text_of (struct json_object *value)
{
  if (json_object_is_type (value, json_type_string))
    return json_object_get_string (value);
  return json_object_to_json_string_ext (value, JSON_C_TO_STRING_PLAIN |
                                         JSON_C_TO_STRING_NOSLASHESCAPE);
}

/* Some values a field never has: to wait for them would last for ever. */
static int
check_value (const struct condition *c, enum json_type type,
             char why[ARRAY_WHY_LEN])
{
  const bool is_null = strcmp (c->value, "null") == 0;
  const bool order = c->op == CONDITION_LEAST || c->op == CONDITION_MOST;

  if (order && type != json_type_int) {
    snprintf (why, ARRAY_WHY_LEN, "%s: not a number: >= and <= are for numbers",
              c->field);
    return -1;
  }
  if (type == json_type_int && !is_number (c->value) && (order || !is_null)) {
    snprintf (why, ARRAY_WHY_LEN, "%s is a number: not %.64s", c->field,
              c->value);
    return -1;
  }
  if (type == json_type_boolean && !is_null && strcmp (c->value, "true") != 0 &&
      strcmp (c->value, "false") != 0) {
    snprintf (why, ARRAY_WHY_LEN, "%s is true or false: not %.64s", c->field,
              c->value);
    return -1;
  }
  return 0;
}

/* ---- conditions ------------------------------------------------------ */

/* NULL: there is none.  *len: how long it is. */
static const char *
find_op (struct condition *c, const char *text, size_t *len)
{
  const char *p = text + strcspn (text, "=!<>");

  *len = p[0] == '=' ? 1 : 2;
  if (p[0] == '\0' || (p[0] != '=' && p[1] != '='))
    return NULL;
  c->op = p[0] == '=' ? CONDITION_IS : p[0] == '!' ? CONDITION_IS_NOT :
    p[0] == '>' ? CONDITION_LEAST : CONDITION_MOST;
  return p;
}

int
condition_parse (struct condition *c, const char *text,
                 struct json_object *status, char why[ARRAY_WHY_LEN])
{
  struct json_object *full, *value;
  const char *op;
  size_t len;
  int r = -1;

  op = find_op (c, text, &len);
  if (op == NULL || op == text) {
    snprintf (why, ARRAY_WHY_LEN, "%.64s: not a condition, such as "
              "members.1.state=failed", text);
    return -1;
  }
  c->value = op + len;
  snprintf (c->field, sizeof c->field, "%.*s",
            (int) MIN ((size_t) (op - text), sizeof c->field), text);
  full = full_status ();
  if (!find (full, c->field, true, &value) &&
      !find (status, c->field, false, &value))
    snprintf (why, ARRAY_WHY_LEN, "%.64s: the status has no such field "
              "(gpuraid status --json shows them)", c->field);
  else
    r = check_value (c, json_object_get_type (value), why);
  json_object_put (full);
  return r;
}

struct json_object *
condition_value (const struct condition *c, struct json_object *status)
{
  struct json_object *value;

  return find (status, c->field, false, &value) ? value : NULL;
}

bool
condition_holds (const struct condition *c, struct json_object *status)
{
  struct json_object *value = condition_value (c, status);
  uint64_t n, limit;

  if (c->op == CONDITION_IS || c->op == CONDITION_IS_NOT)
    return (strcmp (text_of (value), c->value) == 0) == (c->op == CONDITION_IS);
  if (value == NULL)
    return false;
  n = json_object_get_uint64 (value);
  limit = strtoull (c->value, NULL, 10);
  return c->op == CONDITION_LEAST ? n >= limit : n <= limit;
}
