/* gpuraid: the control socket, client side.
 *
 * Sends a request, waits for the line that answers it, and distinguishes a
 * refusal from a server that has gone.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/log.h"
#include "control/client.h"
#include "control/line.h"

struct control_client {
  struct sockaddr_un addr;
  int fd;
  bool gone;
  struct line_buf b;
};

/* For connect, too: it waits if the server's queue is full. */
static int
set_timeout (int fd, unsigned seconds)
{
  const struct timeval t = { .tv_sec = seconds };

  if (setsockopt (fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t) == -1 ||
      setsockopt (fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t) == -1) {
    log_error ("setsockopt: %m");
    return -1;
  }
  return 0;
}

struct control_client *
control_connect (const char *path, unsigned seconds)
{
  struct control_client *c;

  if (strlen (path) >= sizeof c->addr.sun_path) {
    log_error ("%s: a socket's path has at most %zu bytes", path,
               sizeof c->addr.sun_path - 1);
    return NULL;
  }
  c = calloc (1, sizeof *c);
  if (c == NULL) {
    log_error ("calloc: %m");
    return NULL;
  }
  c->addr.sun_family = AF_UNIX;
  strcpy (c->addr.sun_path, path);
  c->b.max = LINE_MAX_REPLY;
  c->fd = socket (AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC, 0);
  if (c->fd == -1) {
    log_error ("socket: %m");
    goto err;
  }
  if (set_timeout (c->fd, seconds) == -1)
    goto err;
  if (connect (c->fd, (const struct sockaddr *) &c->addr,
               sizeof c->addr) == -1) {
    if (errno == ECONNREFUSED)
      log_error ("%s: no server is listening there: start it first", path);
    else if (errno == EAGAIN)
      log_error ("%s: the server does not answer", path);
    else
      log_error ("connect: %s: %m%s", path, errno == ENOENT ?
                 ": start the server with this control= first" : "");
    goto err;
  }
  return c;

 err:
  control_close (c);
  return NULL;
}

void
control_close (struct control_client *c)
{
  if (c == NULL)
    return;
  if (c->fd >= 0)
    close (c->fd);
  line_free (&c->b);
  free (c);
}

bool
control_gone (const struct control_client *c)
{
  return c->gone;
}

void
control_await_end (struct control_client *c)
{
  char *line;
  size_t len;

  while (line_read (&c->b, c->fd, &line, &len) == LINE_OK)
    ;
  c->gone = true;
}

/* A reply is any object with a boolean "ok". */
static struct json_object *
parse_reply (const char *line, bool *ok)
{
  struct json_object *reply = json_tokener_parse (line), *o;

  if (json_object_is_type (reply, json_type_object) &&
      json_object_object_get_ex (reply, "ok", &o) &&
      json_object_is_type (o, json_type_boolean)) {
    *ok = json_object_get_boolean (o);
    return reply;
  }
  json_object_put (reply);
  return NULL;
}

static void
report_refusal (struct json_object *reply)
{
  struct json_object *o;

  if (json_object_object_get_ex (reply, "message", &o) &&
      json_object_is_type (o, json_type_string))
    log_error ("%s", json_object_get_string (o));
  else
    log_error ("the server refused, and did not say why");
}

static struct json_object *
lost (struct control_client *c, const char *what, bool report)
{
  c->gone = true;
  if (report)
    log_error ("%s: %s", c->addr.sun_path, what);
  return NULL;
}

struct json_object *
control_call (struct control_client *c, struct json_object *request,
              bool report_gone)
{
  const char *text =
    json_object_to_json_string_ext (request, JSON_C_TO_STRING_PLAIN);
  struct json_object *reply;
  enum line_result r;
  bool ok, sent;
  char *line;
  size_t len;

  if (c->gone)
    return NULL;
  /* A server that refused the connection has answered before the request. */
  sent = line_write (c->fd, text, strlen (text)) == 0;
  r = line_read (&c->b, c->fd, &line, &len);
  if (r == LINE_ERROR && errno == EAGAIN)
    return lost (c, "the server does not answer", report_gone);
  if (r != LINE_OK)
    return lost (c, sent ? "the server has gone, and did not answer"
                 : "the server has gone", report_gone);
  reply = parse_reply (line, &ok);
  if (reply == NULL)
    return lost (c, "what listens there does not answer as gpuraid does",
                 true);
  if (!ok) {
    report_refusal (reply);
    json_object_put (reply);
    return NULL;
  }
  return reply;
}
