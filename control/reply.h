/* gpuraid: what replies to control clients are made of.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CONTROL_REPLY_H
#define GPURAID_CONTROL_REPLY_H

#include <stdbool.h>

#include <json-c/json.h>

#include "common/json-text.h"
#include "control/control.h"

/* The client. */
struct request_env {
  const struct control_ops *ops;
  void *opaque;
  bool (*cancelled) (void *);   /* for what waits */
  void *cancelled_opaque;
  bool only_status;             /* the client is another user: it may look, and
                                 * change nothing */
};

/* {"ok": true} */
extern struct json_object *reply_accept (void);

/* What `status` answers; the caller's.  NULL: no memory. */
extern struct json_object *reply_status (const struct request_env *env);

/* Put value into an object, which then owns it.  If memory is short, value is
 * dropped, where json-c would abort the server.
 */
extern void json_add (struct json_object *o, const char *key,
                      struct json_object *value);

/* {"ok": false, "message": ...} */
extern struct json_object *reply_refuse (const char *fmt, ...)
  __attribute__ ((format (printf, 1, 2)));

/* The array's status as an object; the caller's.  NULL: no memory. */
extern struct json_object *status_to_json (const struct array_status *st,
                                           const struct control_clients *c);

/* "member-failed"; a constant. */
extern const char *event_name (enum array_event_kind kind);
/* label: of the array.  NULL: no memory. */
extern struct json_object *event_to_json (const struct array_event *e,
                                          const char *label);

#endif
