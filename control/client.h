/* gpuraid: the control socket, client side.
 *
 * One connection, one request after another, each answered by one
 * object: docs/control-protocol.md.  One thread at a time per client.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CONTROL_CLIENT_H
#define GPURAID_CONTROL_CLIENT_H

#include <stdbool.h>

#include <json-c/json.h>

struct control_client;

/* seconds: after how long without an answer the server counts as gone; 0:
 * never, as commands may wait for disks.  NULL: reported in one line.
 */
extern struct control_client *control_connect (const char *path,
                                               unsigned seconds);
extern void control_close (struct control_client *c);   /* safe on NULL */

/* Send request (borrowed) and wait for the reply, however long that takes.  The
 * caller owns the reply, to json_object_put, and it has "ok": true.  NULL:
 * refused, or the server has gone (control_gone is then true).  A refusal is
 * reported in the server's words; a lost server is reported only if
 * report_gone.
 */
extern struct json_object *control_call (struct control_client *c,
                                         struct json_object *request,
                                         bool report_gone);
extern bool control_gone (const struct control_client *c);
/* After a reply to "stop": wait until the server's process has ended. */
extern void control_await_end (struct control_client *c);

#endif
