/* gpuraid: what every reply to a control client begins with.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "control/reply.h"

struct json_object *
reply_refuse (const char *fmt, ...)
{
  struct json_object *reply = json_object_new_object ();
  CLEANUP_FREE char *message = NULL;
  va_list va;
  int r;

  va_start (va, fmt);
  r = vasprintf (&message, fmt, va);
  va_end (va);
  if (r == -1)
    message = NULL;             /* it is not defined then */
  json_add (reply, "ok", json_object_new_boolean (0));
  json_add (reply, "message", json_text (message ? message : "out of memory"));
  return reply;
}

struct json_object *
reply_accept (void)
{
  struct json_object *reply = json_object_new_object ();

  json_add (reply, "ok", json_object_new_boolean (1));
  return reply;
}

struct json_object *
reply_status (const struct request_env *env)
{
  struct control_clients clients = { 0 };
  struct json_object *status;
  struct array_status st;

  memset (&st, 0, sizeof st);
  env->ops->status (env->opaque, &st);
  env->ops->clients (env->opaque, &clients);
  status = status_to_json (&st, &clients);
  env->ops->status_free (&st);
  return status;
}
