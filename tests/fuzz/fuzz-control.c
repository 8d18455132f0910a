/* gpuraid fuzzer: requests on the control socket.
 *
 * The bytes are lines that come in pieces.  Each line gets one reply, an object
 * in one line, and changes the array once at most, with arguments that are
 * fit for it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/line.h"
#include "control/request.h"
#include "tests/fuzz/mutate.h"

/* So that all of it fits in a socket. */
#define MAX_BYTES 16384u
#define MAX_LINE 256u

static unsigned nr_calls, nr_status;

/* ---- a fake array ------------------------------------------------------- */

static void
fake_status (void *opaque, struct array_status *st)
{
  nr_status++;
  st->state = ARRAY_DEGRADED;
  st->g = (struct geometry) { .k = 2, .m = 1, .chunk = 65536 };
  st->coder = st->loop = "none";
  st->nr_entries = 2;
  st->entry[0].path = strdup ("/\xff\n\"");
  st->entry[1].state = ENTRY_MISSING;
}

static void
fake_status_free (struct array_status *st)
{
  for (unsigned i = 0; i < st->nr_entries; i++)
    free (st->entry[i].path);
}

/* Any answer is possible; which one depends on the argument. */
static int
answer (const char *which, char *why)
{
  assert (which != NULL && which[0] != '\0');
  nr_calls++;
  switch (which[0] % 4) {
  case 0:
    return 0;
  case 1:
    snprintf (why, ARRAY_WHY_LEN, "%s", which);
    return EINVAL;
  default:
    return EIO;
  }
}

static int
fake_fail (void *opaque, const char *which, bool *already,
           char why[ARRAY_WHY_LEN])
{
  return answer (which, why);
}

static int
fake_replace (void *opaque, const char *which, const char *path,
              unsigned flags, char why[ARRAY_WHY_LEN])
{
  assert (path != NULL && path[0] != '\0');
  return answer (which, why);
}

static int
fake_readd (void *opaque, const char *which, bool *full,
            char why[ARRAY_WHY_LEN])
{
  *full = nr_calls % 2;
  return answer (which, why);
}

static int
fake_wait (void *opaque, bool *healthy, char failed[ARRAY_WHY_LEN],
           bool (*cancelled) (void *), void *wait_opaque)
{
  nr_calls++;
  *healthy = true;
  return 0;
}

static void
fake_clients (void *opaque, struct control_clients *c)
{
  c->connections = 1;
}

static int
fake_stop (void *opaque, bool force, char why[ARRAY_WHY_LEN])
{
  nr_calls++;
  return force ? 0 : EBUSY;
}

static const struct control_ops ops = {
  .status = fake_status, .status_free = fake_status_free, .fail = fake_fail,
  .replace = fake_replace, .readd = fake_readd, .wait = fake_wait,
  .clients = fake_clients, .stop = fake_stop,
};

/* A wait for a condition looks once, and does not sleep. */
static bool
is_cancelled (void *opaque)
{
  return nr_status > 0;
}

/* ---- requests ----------------------------------------------------------- */

/* The reply as a client reads it. */
static void
check_text (const char *text)
{
  struct json_object *o = json_tokener_parse (text), *ok, *message;

  assert (strchr (text, '\n') == NULL);
  assert (json_object_is_type (o, json_type_object));
  assert (json_object_object_get_ex (o, "ok", &ok));
  assert (json_object_is_type (ok, json_type_boolean));
  if (!json_object_get_boolean (ok)) {
    assert (json_object_object_get_ex (o, "message", &message));
    assert (json_object_is_type (message, json_type_string));
    assert (json_object_get_string_len (message) > 0);
  }
  json_object_put (o);
}

static void
run (const char *line, size_t len)
{
  const struct request_env env = { .ops = &ops, .cancelled = is_cancelled };
  struct json_object *reply;
  enum request_stop stop;
  char *only = malloc (len);

  if (len > 0)
    memcpy (only, line, len);
  nr_calls = nr_status = 0;
  reply = request_run (&env, only, len, &stop);
  if (stop != STOP_NONE) {
    assert (reply == NULL && stop == STOP_FORCE);
    reply = request_stopped (true);
  }
  assert (reply != NULL);
  assert (nr_calls <= 1);
  check_text (json_object_to_json_string_ext (reply, JSON_C_TO_STRING_PLAIN));
  json_object_put (reply);
  free (only);
}

/* What the next line should be, and behind it. */
static enum line_result
next_line (const uint8_t **p, const uint8_t *end)
{
  const uint8_t *nl = memchr (*p, '\n', end - *p);
  const size_t len = (nl ? nl : end) - *p;

  if (len >= MAX_LINE)
    return LINE_TOO_LONG;
  if (nl == NULL)
    return LINE_EOF;
  *p = nl + 1;
  return LINE_OK;
}

static void
run_lines (int fd, const uint8_t *p, const uint8_t *end)
{
  struct line_buf b = { .max = MAX_LINE };
  enum line_result r;
  char *line;
  size_t len;

  do {
    const uint8_t *from = p;

    r = line_read (&b, fd, &line, &len);
    assert (r == next_line (&p, end));
    if (r == LINE_OK) {
      assert (len == (size_t) (p - from) - 1 && line[len] == '\0');
      assert (memcmp (line, from, len) == 0);
      run (line, len);
    }
  } while (r == LINE_OK);
  line_free (&b);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  int sp[2];

  size = MIN (size, MAX_BYTES);
  if (socketpair (AF_UNIX, SOCK_STREAM, 0, sp) == -1)
    abort ();
  if (size > 0 && write (sp[0], data, size) != (ssize_t) size)
    abort ();
  close (sp[0]);
  run_lines (sp[1], data, data + size);
  close (sp[1]);
  return 0;
}

/* ---- inputs ------------------------------------------------------------- */

static const char *const words[] = {
  "{\"command\":\"status\"}\n", "{\"command\":\"wait\"}\n",
  "{\"command\":\"fail\",\"member\":3}\n",
  ("{\"command\":\"replace\",\"member\":\"/a\",\"new\":\"/b\",\"force\":true,"
   "\"any_room\":true}\n"),
  "{\"command\":\"wait\",\"until\":[\"members.1.state!=failed\"]}\n",
  "\"command\"", "\"status\"", "\"fail\"", "\"replace\"", "\"wait\"",
  "\"member\"", "\"new\"", "\"force\"", "\"any_room\"", "\"until\"",
  "\"timeout\"",
  "\"members.0.errors>=0\"", "\"rebuild.done<=9\"", "\"reasons=[]\"",
  "members", "last_error", ".", "=", "!=", ">=", "<=", "true", "false", "null",
  "\"\"", "{", "}", "[", "]", ":", ",", "\"", "\\u0000", "\\ud800", "\\\"",
  "\n", "-1", "1e999", "0.5", "9223372036854775808", "18446744073709551616",
  " ", "\xff",
  "%s%n", "/*",
};

size_t
fuzzing_seed (struct rng *r, uint8_t *data, size_t max)
{
  size_t size = 0;

  for (unsigned i = 0; i <= rng_below (r, 3); i++) {
    const char *line = words[rng_below (r, 5)];

    memcpy (data + size, line, strlen (line));
    size += strlen (line);
  }
  return size;
}

size_t
LLVMFuzzerCustomMutator (uint8_t *data, size_t size, size_t max, unsigned seed)
{
  struct rng r = { seed };

  return mutate_text (&r, data, size, max, words, ARRAY_LEN (words));
}
