/* gpuraid: one request of a control client, from text to reply.
 *
 * Checks the words of a request and calls the operation, which decides what
 * they mean to the array.  An unknown key is refused: a misspelt "force" must
 * not be ignored.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bits.h"
#include "common/cleanup.h"
#include "control/reply.h"
#include "control/request.h"
#include "control/wait.h"

/* What a request may say, once checked. */
struct args {
  const char *member;           /* slot number or path */
  const char *new_path;
  bool force, any_room;
  const char *action;           /* of a scrub or rebuild */
  bool repair;
  bool has_limit;
  uint64_t limit;               /* bytes a second */
  struct json_object *until;    /* a list of strings */
  bool has_timeout;
  double timeout;               /* seconds */
  enum request_stop *stop;      /* to be set */
  char slot[24];                /* where member was a number */
};

static struct json_object *
result (int error, const char *why)
{
  if (error == 0)
    return reply_accept ();
  if (why[0])
    return reply_refuse ("%s", why);
  errno = error;
  return reply_refuse ("%m");
}

static struct json_object *
run_status (const struct request_env *env, const struct args *a)
{
  struct json_object *reply = reply_accept ();

  json_add (reply, "status", reply_status (env));
  return reply;
}

static struct json_object *
run_fail (const struct request_env *env, const struct args *a)
{
  char why[ARRAY_WHY_LEN] = "";
  bool already = false;
  const int error = env->ops->fail (env->opaque, a->member, &already, why);
  struct json_object *reply = result (error, why);

  if (error == 0)
    json_add (reply, "already", json_object_new_boolean (already));
  return reply;
}

static unsigned
flags_of (const struct args *a)
{
  return (a->force ? CONTROL_FORCE : 0) | (a->any_room ? CONTROL_ANY_ROOM : 0);
}

static struct json_object *
run_replace (const struct request_env *env, const struct args *a)
{
  char why[ARRAY_WHY_LEN] = "";

  return result (env->ops->replace (env->opaque, a->member, a->new_path,
                                    flags_of (a), why), why);
}

static struct json_object *
run_spare (const struct request_env *env, const struct args *a)
{
  char why[ARRAY_WHY_LEN] = "";

  return result (env->ops->spare (env->opaque, a->new_path, flags_of (a), why),
                 why);
}

static struct json_object *
run_add (const struct request_env *env, const struct args *a, bool data)
{
  const char *name = data ? "widen" : "add-parity";
  static const struct {
    const char *name;
    enum array_shape_command command;
  } actions[] = {
    { "cancel", ARRAY_SHAPE_CANCEL }, { "pause", ARRAY_SHAPE_PAUSE },
    { "resume", ARRAY_SHAPE_RESUME },
  };
  char why[ARRAY_WHY_LEN] = "";

  if (a->new_path && a->action)
    return reply_refuse ("%s: either a new member or an action", name);
  if (a->new_path)
    return result (env->ops->add (env->opaque, data, a->new_path,
                                  flags_of (a), why), why);
  if (flags_of (a))
    return reply_refuse ("%s: force and any_room go with a new member only",
                         name);
  for (size_t i = 0; i < ARRAY_LEN (actions); i++)
    if (strcmp (a->action, actions[i].name) == 0)
      return result (env->ops->shape_control (env->opaque, data,
                                              actions[i].command, why), why);
  return reply_refuse ("%s: no such action: %.64s", name, a->action);
}

static struct json_object *
run_add_parity (const struct request_env *env, const struct args *a)
{
  return run_add (env, a, false);
}

static struct json_object *
run_widen (const struct request_env *env, const struct args *a)
{
  return run_add (env, a, true);
}

static struct json_object *
run_readd (const struct request_env *env, const struct args *a)
{
  char why[ARRAY_WHY_LEN] = "";
  bool full = false;
  const int error = env->ops->readd (env->opaque, a->member, &full, why);
  struct json_object *reply = result (error, why);

  if (error == 0)
    json_add (reply, "rebuild", json_text (full ? "full" : "changes"));
  return reply;
}

static struct json_object *
run_scrub (const struct request_env *env, const struct args *a)
{
  static const struct {
    const char *name;
    enum array_scrub_command command;
  } actions[] = {
    { "stop", ARRAY_SCRUB_STOP }, { "pause", ARRAY_SCRUB_PAUSE },
    { "resume", ARRAY_SCRUB_RESUME },
  };
  const char *action = a->action ? a->action : "start";
  char why[ARRAY_WHY_LEN] = "";

  if (strcmp (action, "start") == 0)
    return result (env->ops->scrub_start (env->opaque, a->repair, why), why);
  if (a->repair)
    return reply_refuse ("scrub: repair goes with start only");
  for (size_t i = 0; i < ARRAY_LEN (actions); i++)
    if (strcmp (action, actions[i].name) == 0)
      return result (env->ops->scrub_control (env->opaque, actions[i].command,
                                              why), why);
  return reply_refuse ("scrub: no such action: %.64s", action);
}

static struct json_object *
run_rebuild (const struct request_env *env, const struct args *a)
{
  char why[ARRAY_WHY_LEN] = "";

  if (a->action == NULL)
    return reply_refuse ("rebuild: which action?");
  if (strcmp (a->action, "pause") != 0 && strcmp (a->action, "resume") != 0)
    return reply_refuse ("rebuild: no such action: %.64s", a->action);
  return result (env->ops->rebuild_pause (env->opaque,
                                          a->action[0] == 'p', why), why);
}

static struct json_object *
run_rate (const struct request_env *env, const struct args *a)
{
  if (!a->has_limit)
    return reply_refuse ("rate: which limit?");
  env->ops->rate (env->opaque, a->limit);
  return reply_accept ();
}

static struct json_object *
run_wait (const struct request_env *env, const struct args *a)
{
  return wait_run (env, a->until, a->has_timeout ? &a->timeout : NULL);
}

static struct json_object *
run_grow (const struct request_env *env, const struct args *a)
{
  char why[ARRAY_WHY_LEN] = "";
  struct array_growth growth = { 0 };
  const int error = env->ops->grow (env->opaque, &growth, env->cancelled,
                                    env->cancelled_opaque, why);
  struct json_object *reply = result (error, why);

  if (error == 0) {
    json_add (reply, "old_size", json_object_new_uint64 (growth.old_size));
    json_add (reply, "new_size", json_object_new_uint64 (growth.new_size));
  }
  return reply;
}

static struct json_object *
run_stop (const struct request_env *env, const struct args *a)
{
  char why[ARRAY_WHY_LEN] = "";
  const int error = env->ops->stop (env->opaque, a->force, why);

  if (error)
    return result (error, why);
  *a->stop = a->force ? STOP_FORCE : STOP_WAIT;
  return NULL;
}

struct json_object *
request_stopped (bool written_out)
{
  struct json_object *reply = reply_accept ();

  json_add (reply, "written_out", json_object_new_boolean (written_out));
  return reply;
}

/* The keys that a command has. */
#define KEY_MEMBER 1u           /* needed */
#define KEY_NEW 2u              /* needed; or, if that is allowed, an action */
#define KEY_FORCE 4u            /* may be left out */
#define KEY_ACTION 8u           /* a scrub's may be left out */
#define KEY_REPAIR 16u          /* may be left out */
#define KEY_LIMIT 32u           /* needed */
#define KEY_UNTIL 64u           /* may be left out */
#define KEY_TIMEOUT 128u        /* may be left out */
#define KEY_ANY_ROOM 256u       /* may be left out */

static const struct command {
  const char *name;
  unsigned keys;
  struct json_object *(*run) (const struct request_env *, const struct args *);
} commands[] = {
  { "status", 0, run_status },
  { "fail", KEY_MEMBER, run_fail },
  { "replace", KEY_MEMBER|KEY_NEW|KEY_FORCE|KEY_ANY_ROOM, run_replace },
  { "spare", KEY_NEW|KEY_FORCE|KEY_ANY_ROOM, run_spare },
  { "add-parity", KEY_NEW|KEY_FORCE|KEY_ANY_ROOM|KEY_ACTION, run_add_parity },
  { "widen", KEY_NEW|KEY_FORCE|KEY_ANY_ROOM|KEY_ACTION, run_widen },
  { "readd", KEY_MEMBER, run_readd },
  { "scrub", KEY_ACTION|KEY_REPAIR, run_scrub },
  { "rebuild", KEY_ACTION, run_rebuild },
  { "rate", KEY_LIMIT, run_rate },
  { "wait", KEY_UNTIL|KEY_TIMEOUT, run_wait },
  { "grow", 0, run_grow },
  { "stop", KEY_FORCE, run_stop },
};

/* A non-empty string without NUL; else NULL. */
static const char *
get_string (struct json_object *o)
{
  const char *s;

  if (!json_object_is_type (o, json_type_string))
    return NULL;
  s = json_object_get_string (o);
  if (s[0] == '\0' || strlen (s) != (size_t) json_object_get_string_len (o))
    return NULL;
  return s;
}

static bool
is_list_of_texts (struct json_object *o)
{
  if (!json_object_is_type (o, json_type_array) ||
      json_object_array_length (o) > WAIT_MAX_CONDITIONS)
    return false;
  for (size_t i = 0; i < json_object_array_length (o); i++)
    if (get_string (json_object_array_get_idx (o, i)) == NULL)
      return false;
  return true;
}

/* NULL, or a refusal: likewise below. */
static struct json_object *
read_text (struct json_object *value, const char **text, const char *refusal)
{
  *text = get_string (value);
  return *text ? NULL : reply_refuse ("%s", refusal);
}

static struct json_object *
read_flag (const char *key, struct json_object *value, bool *flag)
{
  *flag = json_object_get_boolean (value);
  return json_object_is_type (value, json_type_boolean) ? NULL :
    reply_refuse ("%s: not true or false", key);
}

/* One key of a wait. */
static struct json_object *
read_wait_key (const char *key, struct json_object *value, struct args *a)
{
  if (strcmp (key, "until") == 0) {
    a->until = value;
    return is_list_of_texts (value) ? NULL :
      reply_refuse ("until: not a list of at most %u conditions",
                    WAIT_MAX_CONDITIONS);
  }
  a->timeout = json_object_get_double (value);
  a->has_timeout = true;
  return (json_object_is_type (value, json_type_int) ||
          json_object_is_type (value, json_type_double)) &&
    a->timeout >= 0 && a->timeout <= WAIT_MAX_SECONDS ? NULL :
    reply_refuse ("timeout: not a number of seconds");
}

/* One key of a request. */
static struct json_object *
read_key (const struct command *c, const char *key, struct json_object *value,
          struct args *a)
{
  if (strcmp (key, "member") == 0 && c->keys & KEY_MEMBER) {
    if (!json_object_is_type (value, json_type_int) ||
        json_object_get_int64 (value) < 0)
      return read_text (value, &a->member, "member: not a slot number or path");
    snprintf (a->slot, sizeof a->slot, "%lld",
              (long long) json_object_get_int64 (value));
    a->member = a->slot;
    return NULL;
  }
  if (strcmp (key, "new") == 0 && c->keys & KEY_NEW)
    return read_text (value, &a->new_path, "new: not a path");
  if (strcmp (key, "force") == 0 && c->keys & KEY_FORCE)
    return read_flag (key, value, &a->force);
  if (strcmp (key, "any_room") == 0 && c->keys & KEY_ANY_ROOM)
    return read_flag (key, value, &a->any_room);
  if (strcmp (key, "action") == 0 && c->keys & KEY_ACTION)
    return read_text (value, &a->action, "action: not a word");
  if (strcmp (key, "repair") == 0 && c->keys & KEY_REPAIR)
    return read_flag (key, value, &a->repair);
  if (strcmp (key, "limit") == 0 && c->keys & KEY_LIMIT) {
    if (!json_object_is_type (value, json_type_int) ||
        json_object_get_int64 (value) < 0)
      return reply_refuse ("limit: not a number of bytes");
    a->limit = json_object_get_uint64 (value);
    a->has_limit = true;
    return NULL;
  }
  if ((strcmp (key, "until") == 0 && c->keys & KEY_UNTIL) ||
      (strcmp (key, "timeout") == 0 && c->keys & KEY_TIMEOUT))
    return read_wait_key (key, value, a);
  return reply_refuse ("%s: no such key: %.64s", c->name, key);
}

static struct json_object *
run_command (const struct request_env *env, const struct command *c,
             struct json_object *request, enum request_stop *stop)
{
  struct args a = { .stop = stop };

  json_object_object_foreach (request, key, value) {
    struct json_object *refusal;

    if (strcmp (key, "command") == 0)
      continue;
    refusal = read_key (c, key, value, &a);
    if (refusal)
      return refusal;
  }
  if (c->keys & KEY_MEMBER && a.member == NULL)
    return reply_refuse ("%s: which member?", c->name);
  if (c->keys & KEY_NEW && a.new_path == NULL && a.action == NULL)
    return reply_refuse (c->keys & KEY_MEMBER ? "%s: by what?" :
                         "%s: which new member?", c->name);
  return c->run (env, &a);
}

/* One JSON object and nothing else but space; NULL otherwise. */
static struct json_object *
parse_with (int flags, const char *line, size_t len)
{
  struct json_tokener *tok = json_tokener_new ();
  struct json_object *o;
  size_t end;

  if (tok == NULL)
    return NULL;
  json_tokener_set_flags (tok, flags);
  o = json_tokener_parse_ex (tok, line, len);
  end = json_tokener_get_parse_end (tok);
  json_tokener_free (tok);

  while (end < len && isspace ((unsigned char) line[end]))
    end++;
  if (end == len && json_object_is_type (o, json_type_object))
    return o;
  json_object_put (o);
  return NULL;
}

/* Strictly.  json-c 0.18 then takes bytes above 127 for control characters, so
 * what is parsed strictly is a copy with others in their places.
 */
static struct json_object *
parse_object (const char *line, size_t len)
{
  CLEANUP_FREE char *ascii = malloc (len + 1);
  struct json_object *strict;

  if (ascii == NULL)
    return NULL;
  for (size_t i = 0; i < len; i++)
    ascii[i] = (unsigned char) line[i] < 0x80 ? line[i] : 'x';
  strict = parse_with (JSON_TOKENER_STRICT | JSON_TOKENER_ALLOW_TRAILING_CHARS,
                       ascii, len);
  json_object_put (strict);
  return strict ? parse_with (0, line, len) : NULL;
}

struct json_object *
request_run (const struct request_env *env, const char *line, size_t len,
             enum request_stop *stop)
{
  struct json_object *request = parse_object (line, len);
  struct json_object *reply = NULL, *o;
  const char *name = NULL;
  bool known = false;

  *stop = STOP_NONE;
  if (request == NULL)
    return reply_refuse ("not a JSON object");
  if (json_object_object_get_ex (request, "command", &o))
    name = get_string (o);
  if (name == NULL)
    reply = reply_refuse ("no command");
  for (size_t i = 0; !known && i < ARRAY_LEN (commands); i++)
    if (name && strcmp (commands[i].name, name) == 0) {
      known = true;
      reply = env->only_status && commands[i].run != run_status ?
        reply_refuse ("only status is for this user: %s is for root and the "
                      "user of the server", name) :
        run_command (env, &commands[i], request, stop);
    }
  if (name && !known)
    reply = reply_refuse ("no such command: %.64s", name);
  json_object_put (request);
  return reply;
}
