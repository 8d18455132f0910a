/* gpuraid: one request of a control client, from text to reply.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CONTROL_REQUEST_H
#define GPURAID_CONTROL_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include <json-c/json.h>

#include "common/json-text.h"
#include "control/control.h"

/* The client. */
struct request_env {
  const struct control_ops *ops;
  void *opaque;
  bool (*cancelled) (void *);   /* for what waits */
  void *cancelled_opaque;
};

/* Carry out the request in line, len bytes of anything, and make the reply; the
 * caller frees it with json_object_put.  NULL: no memory; or the client asked
 * for a stop that has begun, and *stop says how.
 */
enum request_stop { STOP_NONE, STOP_WAIT, STOP_FORCE };
extern struct json_object *request_run (const struct request_env *env,
                                        const char *line, size_t len,
                                        enum request_stop *stop);

/* The reply to it at the end. */
extern struct json_object *request_stopped (bool written_out);

/* {"ok": true} */
extern struct json_object *request_accept (void);

/* What `status` answers; the caller's.  NULL: no memory. */
extern struct json_object *request_status (const struct request_env *env);

/* Put value into an object, which then owns it.  If memory is short, value is
 * dropped, where json-c would abort the server.
 */
extern void json_add (struct json_object *o, const char *key,
                      struct json_object *value);

/* {"ok": false, "message": ...} */
extern struct json_object *request_refuse (const char *fmt, ...)
  __attribute__ ((format (printf, 1, 2)));

/* The array's status as an object; the caller's.  connections: of NBD clients.
 * NULL: no memory.
 */
extern struct json_object *status_to_json (const struct array_status *st,
                                           unsigned connections);

/* "member-failed"; a constant. */
extern const char *event_name (enum array_event_kind kind);
/* label: of the array.  NULL: no memory. */
extern struct json_object *event_to_json (const struct array_event *e,
                                          const char *label);

#endif
