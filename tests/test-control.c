/* gpuraid: the control socket on a fake array.
 *
 * Good clients, bad clients, clients that leave, and what is found at
 * the socket's path when a server starts.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "common/bits.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "control/client.h"
#include "control/control.h"
#include "control/line.h"
#include "tests/seed.h"

static char dir[64];
static char path[sizeof dir + 16];

/* ---- what was logged ------------------------------------------------ */

static char last_error[1024];
static atomic_uint nr_errors;

static void
sink (enum log_level level, const char *fmt, va_list args)
{
  if (level != LOG_LEVEL_ERROR)
    return;
  vsnprintf (last_error, sizeof last_error, fmt, args);
  nr_errors++;
}

static void
assert_error (const char *part)
{
  if (strstr (last_error, part) == NULL || nr_errors != 1)
    fail_msg ("%u messages, last: %s; wanted: %s", nr_errors, last_error,
              part);
  assert_null (strchr (last_error, '\n'));
  nr_errors = 0;
}

/* ---- a fake array --------------------------------------------------- */

static struct {
  pthread_mutex_t lock;
  char which[256], new_path[256];
  bool force, healthy, finished;
  unsigned nr_commands;
} fake = { .lock = PTHREAD_MUTEX_INITIALIZER };
static atomic_uint nr_waiting, nr_cancelled, nr_freed;
static int opaque_value;

static bool with_engines;

static void
fake_status (void *opaque, struct array_status *st)
{
  assert_ptr_equal (opaque, &opaque_value);
  st->state = ARRAY_DEGRADED;
  st->writable = true;
  st->g = (struct geometry) { .k = 2, .m = 1, .chunk = 65536,
                              .size = UINT64_C (1) << 63 };
  st->code = CODE_RS;
  st->w = 8;
  for (unsigned i = 0; i < 16; i++)
    st->uuid.b[i] = 0xf0 + i;
  st->epoch = UINT64_MAX;
  st->coder = "isal";
  st->loop = "sim";
  st->nr_entries = 4;
  for (unsigned i = 0; i < 3; i++)
    st->entry[i] = (struct array_entry) { .slot = i, .errors = i };
  st->entry[0].path = strdup ("/a \"quoted\"\n\\ path");
  st->entry[0].state = ENTRY_ACTIVE;
  st->entry[1].path = strdup ("/latin1-\xe9-\xed\xa0\x80-\xc3\xa9");
  st->entry[1].state = ENTRY_REBUILDING;
  st->entry[2].state = ENTRY_MISSING;
  st->entry[3].slot = SLOT_NONE;
  st->entry[3].state = ENTRY_SPARE;
  st->rebuild = (struct array_progress) {
    .running = true, .done = 1, .total = 4, .bytes_per_second = 1,
    .eta_seconds = 3,
  };
  st->counters.read_ops = 7;
  st->counters.coder_bytes = 4096;
  if (with_engines) {
    st->nr_engines = 3;
    st->engine[0] = (struct coder_share) { "isal", 2, 4096, "" };
    st->engine[1] = (struct coder_share) {
      "cuda:0 \"A\"", 7, UINT64_C (1) << 63, "a launch: it went\naway",
    };
    st->engine[2] = (struct coder_share) { "isal", 1, 100, "" };
  }
  st->cache_dirty = 12;
}

static void
fake_status_free (struct array_status *st)
{
  for (unsigned i = 0; i < st->nr_entries; i++)
    free (st->entry[i].path);
  nr_freed++;
}

static int
fake_fail (void *opaque, const char *which, char why[ARRAY_WHY_LEN])
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&fake.lock);
  fake.nr_commands++;
  snprintf (fake.which, sizeof fake.which, "%s", which);
  if (strcmp (which, "9") == 0) {
    snprintf (why, ARRAY_WHY_LEN, "fewer than 2 members would remain");
    return EINVAL;
  }
  return strcmp (which, "8") == 0 ? EIO : 0;
}

static int
fake_replace (void *opaque, const char *which, const char *new_path,
              bool force, char why[ARRAY_WHY_LEN])
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&fake.lock);
  fake.nr_commands++;
  snprintf (fake.which, sizeof fake.which, "%s", which);
  snprintf (fake.new_path, sizeof fake.new_path, "%s", new_path);
  fake.force = force;
  return 0;
}

static int
fake_wait (void *opaque, bool *healthy, bool (*cancelled) (void *),
           void *wait_opaque)
{
  bool finished = false;

  nr_waiting++;
  for (;;) {
    pthread_mutex_lock (&fake.lock);
    finished = fake.finished;
    *healthy = fake.healthy;
    pthread_mutex_unlock (&fake.lock);
    if (finished || cancelled (wait_opaque))
      break;
    usleep (1000);
  }
  if (!finished)
    nr_cancelled++;
  nr_waiting--;
  return 0;
}

static const struct control_ops fake_ops = {
  fake_status, fake_status_free, fake_fail, fake_replace, fake_wait,
};

static struct control *
start (void)
{
  struct control *c = control_bind (path);

  assert_non_null (c);
  assert_int_equal (control_start (c, &fake_ops, &opaque_value), 0);
  return c;
}

static int
setup (void **state)
{
  fake.finished = fake.healthy = fake.force = false;
  fake.nr_commands = 0;
  nr_waiting = nr_cancelled = nr_freed = nr_errors = 0;
  last_error[0] = '\0';
  return 0;
}

/* ---- a client of raw bytes ------------------------------------------ */

static int
dial (void)
{
  struct sockaddr_un addr = { .sun_family = AF_UNIX };
  struct timeval limit = { .tv_sec = 20 };
  int fd = socket (AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC, 0);

  strcpy (addr.sun_path, path);
  assert_int_equal (connect (fd, (struct sockaddr *) &addr, sizeof addr), 0);
  setsockopt (fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  return fd;
}

static void
put (int fd, const char *text)
{
  assert_int_equal (line_write (fd, text, strlen (text)), 0);
}

/* The next reply, or NULL at the end; the caller's. */
static struct json_object *
get (struct line_buf *b, int fd)
{
  struct json_object *o;
  char *line;
  size_t len;

  if (line_read (b, fd, &line, &len) != LINE_OK)
    return NULL;
  o = json_tokener_parse (line);
  assert_non_null (o);
  return o;
}

static bool
is_ok (struct json_object *reply)
{
  struct json_object *o;

  assert_true (json_object_object_get_ex (reply, "ok", &o));
  return json_object_get_boolean (o);
}

static const char *
message (struct json_object *reply)
{
  struct json_object *o;

  assert_false (is_ok (reply));
  assert_true (json_object_object_get_ex (reply, "message", &o));
  return json_object_get_string (o);
}

/* Ask over a connection of its own; the reply is the caller's. */
static struct json_object *
ask (const char *text)
{
  struct line_buf b = { .max = LINE_MAX_REPLY };
  int fd = dial ();
  struct json_object *reply;

  /* One that is turned away may find the other end closed. */
  (void) line_write (fd, text, strlen (text));
  reply = get (&b, fd);
  close (fd);
  line_free (&b);
  assert_non_null (reply);
  return reply;
}

static void
assert_ok (const char *text)
{
  struct json_object *reply = ask (text);

  if (!is_ok (reply))
    fail_msg ("%s: %s", text, message (reply));
  json_object_put (reply);
}

static void
assert_refused (const char *text, const char *part)
{
  struct json_object *reply = ask (text);

  if (strstr (message (reply), part) == NULL)
    fail_msg ("%s: %s; wanted: %s", text, message (reply), part);
  json_object_put (reply);
}

static void
until (atomic_uint *n, unsigned value)
{
  for (int i = 0; *n != value; i++) {
    if (i == 10000)
      fail_msg ("%u, not %u, after 10 seconds", *n, value);
    usleep (1000);
  }
}

static double
seconds (void)
{
  struct timespec t;

  clock_gettime (CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}

/* ---- the socket's path ---------------------------------------------- */

static void
test_mode (void **state)
{
  mode_t old = umask (0);
  struct control *c = control_bind (path);
  struct stat st;

  umask (old);
  assert_non_null (c);
  assert_int_equal (stat (path, &st), 0);
  assert_true (S_ISSOCK (st.st_mode));
  assert_int_equal (st.st_mode & 07777, 0600);
  control_stop (c);             /* never started */
  assert_int_equal (access (path, F_OK), -1);
  control_stop (NULL);
}

static void
test_live_refused (void **state)
{
  struct control *c = start ();

  assert_null (control_bind (path));
  assert_error ("another server uses that socket");
  assert_ok ("{\"command\":\"status\"}");
  control_stop (c);

  /* One that is bound and not started yet is alive as well. */
  c = control_bind (path);
  assert_null (control_bind (path));
  assert_error ("another server uses that socket");
  control_stop (c);
}

static void
test_dead_replaced (void **state)
{
  struct sockaddr_un addr = { .sun_family = AF_UNIX };
  int fd = socket (AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC, 0);
  struct control *c;

  strcpy (addr.sun_path, path);
  assert_int_equal (bind (fd, (struct sockaddr *) &addr, sizeof addr), 0);
  close (fd);
  assert_int_equal (access (path, F_OK), 0);
  c = start ();
  assert_ok ("{\"command\":\"status\"}");
  control_stop (c);
  assert_int_equal (nr_errors, 0);
}

static void
test_other_things_refused (void **state)
{
  char long_path[200];
  struct stat st;
  int fd = open (path, O_CREAT|O_WRONLY|O_CLOEXEC, 0644);

  assert_int_equal (write (fd, "precious", 8), 8);
  close (fd);
  assert_null (control_bind (path));
  assert_error ("no socket");
  assert_int_equal (stat (path, &st), 0);
  assert_int_equal (st.st_size, 8);
  unlink (path);

  assert_null (control_bind (dir));
  assert_error ("no socket");
  assert_null (control_bind ("/nonexistent/control.sock"));
  assert_error ("/nonexistent/control.sock");
  memset (long_path, 'a', sizeof long_path - 1);
  long_path[0] = '/';
  long_path[sizeof long_path - 1] = '\0';
  assert_null (control_bind (long_path));
  assert_error ("at most 107 bytes");
}

/* The file of a server that took our place is not ours to remove. */
static void
test_not_ours (void **state)
{
  struct control *first = start (), *second;

  unlink (path);
  second = start ();
  control_stop (first);
  assert_ok ("{\"command\":\"status\"}");
  control_stop (second);
  assert_int_equal (access (path, F_OK), -1);
}

/* ---- requests ------------------------------------------------------- */

static void
test_status (void **state)
{
  /* The order is part of no promise, but a change should be meant. */
  static const char want[] =
    "{\"ok\":true,\"status\":{\"state\":\"degraded\",\"writable\":true,"
    "\"k\":2,\"m\":1,\"chunk\":65536,\"size\":9223372036854775808,"
    "\"code\":\"rs\",\"w\":8,\"uuid\":\"f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff\","
    "\"epoch\":18446744073709551615,\"coder\":\"isal\","
    "\"engines\":[],\"loop\":\"sim\","
    "\"members\":["
    "{\"slot\":0,\"path\":\"/a \\\"quoted\\\"\\n\\\\ path\","
    "\"state\":\"active\",\"errors\":0},"
    "{\"slot\":1,\"path\":\"/latin1-\xef\xbf\xbd-\xef\xbf\xbd\xef\xbf\xbd"
    "\xef\xbf\xbd-\xc3\xa9\",\"state\":\"rebuilding\",\"errors\":1},"
    "{\"slot\":2,\"path\":null,\"state\":\"missing\",\"errors\":2},"
    "{\"slot\":null,\"path\":null,\"state\":\"spare\",\"errors\":0}],"
    "\"rebuild\":{\"done\":1,\"total\":4,\"bytes_per_second\":1,"
    "\"eta_seconds\":3},\"resync\":null,\"scrub\":null,"
    "\"cache\":{\"size\":0,\"used\":0,\"dirty\":12},"
    "\"counters\":{\"read_ops\":7,\"read_bytes\":0,\"write_ops\":0,"
    "\"write_bytes\":0,\"zero_ops\":0,\"zero_bytes\":0,\"flush_ops\":0,"
    "\"fua_ops\":0,\"member_read_ops\":0,\"member_read_bytes\":0,"
    "\"member_write_ops\":0,\"member_write_bytes\":0,"
    "\"member_flush_ops\":0,\"full_stripe_writes\":0,\"partial_writes\":0,"
    "\"decoded_bytes\":0,\"repaired_blocks\":0,\"rebuilt_bytes\":0,"
    "\"corrupt_found\":0,\"corrupt_repaired\":0,\"journal_commits\":0,"
    "\"coder_jobs\":0,\"coder_bytes\":{\"isal\":4096}}}}";
  struct control *c = start ();
  struct line_buf b = { .max = LINE_MAX_REPLY };
  int fd = dial ();
  char *line;
  size_t len;

  put (fd, "{\"command\":\"status\"}");
  assert_int_equal (line_read (&b, fd, &line, &len), LINE_OK);
  assert_string_equal (line, want);
  until (&nr_freed, 1);
  line_free (&b);
  close (fd);
  control_stop (c);
}

/* What the coder works with; one that failed; two of one name. */
static void
test_status_engines (void **state)
{
  static const char engines[] =
    "\"engines\":["
    "{\"name\":\"isal\",\"jobs\":2,\"bytes\":4096,\"failed\":null},"
    "{\"name\":\"cuda:0 \\\"A\\\"\",\"jobs\":7,"
    "\"bytes\":9223372036854775808,"
    "\"failed\":\"a launch: it went\\naway\"},"
    "{\"name\":\"isal\",\"jobs\":1,\"bytes\":100,\"failed\":null}],";
  static const char bytes[] =
    "\"coder_bytes\":{\"isal\":4196,"
    "\"cuda:0 \\\"A\\\"\":9223372036854775808}}";
  struct control *c = start ();
  struct line_buf b = { .max = LINE_MAX_REPLY };
  int fd = dial ();
  char *line;
  size_t len;

  with_engines = true;
  put (fd, "{\"command\":\"status\"}");
  assert_int_equal (line_read (&b, fd, &line, &len), LINE_OK);
  assert_non_null (strstr (line, engines));
  assert_non_null (strstr (line, bytes));
  line_free (&b);
  close (fd);
  control_stop (c);
  with_engines = false;
}

static void
test_commands (void **state)
{
  struct control *c = start ();

  assert_ok ("{\"command\":\"fail\",\"member\":\"/x/y\"}");
  assert_string_equal (fake.which, "/x/y");
  assert_ok (" { \"member\" : 12, \"command\" : \"fail\" } \r");
  assert_string_equal (fake.which, "12");
  assert_refused ("{\"command\":\"fail\",\"member\":\"9\"}",
                  "fewer than 2 members would remain");
  assert_refused ("{\"command\":\"fail\",\"member\":\"8\"}",
                  "Input/output error");
  assert_ok ("{\"command\":\"replace\",\"member\":\"0\",\"new\":\"/n\"}");
  assert_string_equal (fake.which, "0");
  assert_string_equal (fake.new_path, "/n");
  assert_false (fake.force);
  assert_ok ("{\"command\":\"replace\",\"member\":\"/o\",\"new\":\"/n\xff\","
             "\"force\":true}");
  assert_string_equal (fake.new_path, "/n\xff");
  assert_true (fake.force);
  control_stop (c);
}

static void
test_refused (void **state)
{
  static const struct { const char *text, *part; } bad[] = {
    { "", "not a JSON object" },
    { "hello", "not a JSON object" },
    { "[]", "not a JSON object" },
    { "null", "not a JSON object" },
    { "{", "not a JSON object" },
    { "{}}", "not a JSON object" },
    { "{} {}", "not a JSON object" },
    { "{'command':'status'}", "not a JSON object" },
    { "\"status\"", "not a JSON object" },
    { "\xff\xfe", "not a JSON object" },
    { "{}", "no command" },
    { "{\"command\":null}", "no command" },
    { "{\"command\":5}", "no command" },
    { "{\"command\":\"\"}", "no command" },
    { "{\"command\":\"status\\u0000\"}", "no command" },
    { "{\"command\":\"Status\"}", "no such command: Status" },
    { "{\"command\":\"status\",\"x\":1}", "status: no such key: x" },
    { "{\"command\":\"status\",\"member\":1}", "no such key: member" },
    { "{\"command\":\"fail\"}", "fail: which member?" },
    { "{\"command\":\"fail\",\"member\":null}", "not a slot number" },
    { "{\"command\":\"fail\",\"member\":-1}", "not a slot number" },
    { "{\"command\":\"fail\",\"member\":1.5}", "not a slot number" },
    { "{\"command\":\"fail\",\"member\":\"\"}", "not a slot number" },
    { "{\"command\":\"fail\",\"member\":\"/a\\u0000b\"}", "not a slot" },
    { "{\"command\":\"fail\",\"member\":{}}", "not a slot number" },
    { "{\"command\":\"replace\",\"member\":1}", "replace: by what?" },
    { "{\"command\":\"replace\",\"new\":\"/n\"}", "which member?" },
    { "{\"command\":\"replace\",\"member\":1,\"new\":2}", "not a path" },
    { "{\"command\":\"replace\",\"member\":1,\"new\":\"/n\",\"force\":1}",
      "not true or false" },
  };
  struct control *c = start ();
  char deep[1024];

  for (size_t i = 0; i < ARRAY_LEN (bad); i++)
    assert_refused (bad[i].text, bad[i].part);
  memset (deep, '[', sizeof deep - 1);
  deep[sizeof deep - 1] = '\0';
  assert_refused (deep, "not a JSON object");
  assert_int_equal (fake.nr_commands, 0);
  control_stop (c);
}

/* A request may come in pieces, and several in one piece. */
static void
test_pieces (void **state)
{
  static const char two[] = "{\"command\":\"fail\",\"member\":1}\n"
    "{\"command\":\"fail\",\"member\":2}\n";
  struct control *c = start ();
  struct line_buf b = { .max = LINE_MAX_REPLY };
  int fd = dial ();

  for (const char *p = two; *p; p++) {
    assert_int_equal (send (fd, p, 1, 0), 1);
    if (p - two < 20)
      usleep (500);
  }
  assert_int_equal (send (fd, two, strlen (two), 0), strlen (two));
  for (int i = 0; i < 4; i++) {
    struct json_object *reply = get (&b, fd);

    assert_non_null (reply);
    assert_true (is_ok (reply));
    json_object_put (reply);
  }
  assert_string_equal (fake.which, "2");

  /* Without its newline it is no request. */
  assert_int_equal (send (fd, two, 29, 0), 29);
  shutdown (fd, SHUT_WR);
  assert_null (get (&b, fd));
  assert_int_equal (fake.nr_commands, 4);
  line_free (&b);
  close (fd);
  control_stop (c);
}

static void
test_oversize (void **state)
{
  struct control *c = start ();
  struct line_buf b = { .max = LINE_MAX_REPLY };
  char *text = malloc (LINE_MAX_REQUEST + 1);
  int fd = dial ();
  struct json_object *reply;

  /* The longest request that is taken, newline included. */
  memset (text, ' ', LINE_MAX_REQUEST);
  memcpy (text, "{\"command\":\"status\"}", 20);
  text[LINE_MAX_REQUEST - 1] = '\0';
  put (fd, text);
  reply = get (&b, fd);
  assert_non_null (reply);
  assert_true (is_ok (reply));
  json_object_put (reply);

  /* One byte more, and no newline in sight: one refusal, then the end. */
  text[LINE_MAX_REQUEST - 1] = ' ';
  send (fd, text, LINE_MAX_REQUEST, MSG_NOSIGNAL);
  reply = get (&b, fd);
  assert_non_null (reply);
  assert_string_equal (message (reply), "a request has at most 65536 bytes");
  json_object_put (reply);
  assert_null (get (&b, fd));
  close (fd);

  assert_ok ("{\"command\":\"status\"}");
  line_free (&b);
  free (text);
  control_stop (c);
}

/* Random lines: one refusal each, whatever is in them. */
static void
test_garbage (void **state)
{
  static const char alphabet[] = "{}[]\",:\\u0 \t\001\377nulltrue-1e9command";
  unsigned r = test_seed (NULL);
  struct control *c = start ();
  struct line_buf b = { .max = LINE_MAX_REPLY };
  int fd = dial ();

  for (int i = 0; i < 2000; i++) {
    char text[64];
    size_t len = rand_r (&r) % sizeof text;
    struct json_object *reply;

    for (size_t j = 0; j < len; j++) {
      text[j] = rand_r (&r) % 8 ? alphabet[rand_r (&r) % sizeof alphabet]
        : rand_r (&r);
      if (text[j] == '\n')
        text[j] = '\0';
    }
    assert_int_equal (line_write (fd, text, len), 0);
    reply = get (&b, fd);
    assert_non_null (reply);
    assert_false (is_ok (reply));
    json_object_put (reply);
  }
  assert_int_equal (fake.nr_commands, 0);
  line_free (&b);
  close (fd);
  control_stop (c);
}

/* ---- clients that wait and clients that leave ----------------------- */

static void
test_wait (void **state)
{
  struct control *c = start ();
  struct line_buf b = { .max = LINE_MAX_REPLY };
  int fd = dial ();
  struct json_object *reply, *o;

  /* It holds up nobody; a client that only stopped sending is told. */
  put (fd, "{\"command\":\"wait\"}");
  shutdown (fd, SHUT_WR);
  until (&nr_waiting, 1);
  assert_ok ("{\"command\":\"status\"}");
  assert_ok ("{\"command\":\"fail\",\"member\":1}");
  usleep (20000);
  assert_int_equal (nr_waiting, 1);
  pthread_mutex_lock (&fake.lock);
  fake.finished = fake.healthy = true;
  pthread_mutex_unlock (&fake.lock);
  reply = get (&b, fd);
  assert_non_null (reply);
  assert_true (is_ok (reply));
  assert_true (json_object_object_get_ex (reply, "healthy", &o));
  assert_true (json_object_get_boolean (o));
  json_object_put (reply);
  assert_int_equal (nr_cancelled, 0);
  line_free (&b);
  close (fd);

  pthread_mutex_lock (&fake.lock);
  fake.healthy = false;
  pthread_mutex_unlock (&fake.lock);
  reply = ask ("{\"command\":\"wait\"}");
  assert_true (json_object_object_get_ex (reply, "healthy", &o));
  assert_false (json_object_get_boolean (o));
  json_object_put (reply);
  control_stop (c);
}

static void
test_vanish (void **state)
{
  struct control *c = start ();
  int fd[10];

  for (int i = 0; i < 10; i++) {
    fd[i] = dial ();
    put (fd[i], "{\"command\":\"wait\"}");
  }
  until (&nr_waiting, 10);
  for (int i = 0; i < 10; i++)
    close (fd[i]);
  until (&nr_cancelled, 10);
  until (&nr_waiting, 0);

  /* Gone before the answer, in the middle of a line, without a word. */
  for (int i = 0; i < 200; i++) {
    static const char text[] = "{\"command\":\"status\"}\n";
    size_t len = i % 3 == 0 ? strlen (text) : i % 3 == 1 ? 7 : 0;
    int s = dial ();

    (void) send (s, text, len, MSG_NOSIGNAL);
    close (s);
  }
  control_stop (c);
  assert_int_equal (nr_errors, 0);
}

static void
test_stop_cancels (void **state)
{
  struct control *c = start ();
  struct line_buf b = { .max = LINE_MAX_REPLY };
  int fd = dial (), idle = dial ();
  struct json_object *reply;
  double t;

  put (fd, "{\"command\":\"wait\"}");
  until (&nr_waiting, 1);
  t = seconds ();
  control_stop (c);
  assert_true (seconds () - t < 0.9);
  assert_int_equal (nr_cancelled, 1);
  reply = get (&b, fd);
  assert_non_null (reply);
  assert_string_equal (message (reply), "the server is stopping");
  json_object_put (reply);
  assert_null (get (&b, fd));
  assert_null (get (&b, idle));
  line_free (&b);
  close (fd);
  close (idle);
}

/* A client that asks and never reads cannot hold up the end. */
static void
test_never_reads (void **state)
{
  static const char text[] = "{\"command\":\"status\"}\n";
  struct control *c = start ();
  int fd = dial ();
  double t;

  while (send (fd, text, strlen (text), MSG_DONTWAIT) > 0)
    ;
  /* Until the server is stuck in sending. */
  for (unsigned n = nr_freed + 1; n != nr_freed; usleep (100000))
    n = nr_freed;
  assert_ok ("{\"command\":\"status\"}");
  t = seconds ();
  control_stop (c);
  assert_true (seconds () - t < 5);
  close (fd);
}

static void
test_too_many (void **state)
{
  struct control *c = start ();
  int fd[32];

  for (int i = 0; i < 32; i++) {
    fd[i] = dial ();
    put (fd[i], "{\"command\":\"wait\"}");
  }
  until (&nr_waiting, 32);
  assert_refused ("{\"command\":\"status\"}", "too many clients");

  /* There is room again once one has left. */
  close (fd[0]);
  until (&nr_cancelled, 1);
  for (int i = 0;; i++) {
    struct json_object *reply = ask ("{\"command\":\"status\"}");
    bool ok = is_ok (reply);

    json_object_put (reply);
    if (ok)
      break;
    assert_true (i < 1000);
    usleep (1000);
  }
  control_stop (c);
  for (int i = 1; i < 32; i++)
    close (fd[i]);
}

static void *
busy_client (void *vp)
{
  struct control_client *c = control_connect (path);
  struct json_object *request = json_object_new_object ();
  uintptr_t nr_good = 0;

  json_object_object_add (request, "command",
                          json_object_new_string ("status"));
  for (int i = 0; c && i < 100; i++) {
    struct json_object *reply = control_call (c, request, true);

    nr_good += reply != NULL;
    json_object_put (reply);
  }
  json_object_put (request);
  control_close (c);
  return (void *) nr_good;
}

static void
test_many_clients (void **state)
{
  struct control *c = start ();
  pthread_t thread[16];

  for (int i = 0; i < 16; i++)
    assert_int_equal (pthread_create (&thread[i], NULL, busy_client, NULL),
                      0);
  for (int i = 0; i < 16; i++) {
    void *nr_good;

    pthread_join (thread[i], &nr_good);
    assert_int_equal ((uintptr_t) nr_good, 100);
  }
  control_stop (c);
}

/* ---- the client side ------------------------------------------------ */

static void
test_client (void **state)
{
  struct control *c = start ();
  struct control_client *client = control_connect (path);
  struct json_object *request = json_object_new_object ();

  assert_non_null (client);
  json_object_object_add (request, "command",
                          json_object_new_string ("a\tb"));
  assert_null (control_call (client, request, true));
  assert_error ("no such command: a?b");
  assert_false (control_gone (client));

  control_stop (c);
  assert_null (control_call (client, request, true));
  assert_error ("the server has gone");
  assert_true (control_gone (client));
  assert_null (control_call (client, request, true));
  assert_int_equal (nr_errors, 0);
  json_object_put (request);
  control_close (client);
  control_close (NULL);

  assert_null (control_connect (path));
  assert_error ("No such file");
  assert_null (control_connect ("/dev/null"));
  assert_error ("/dev/null");
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup (test_mode, setup),
    cmocka_unit_test_setup (test_live_refused, setup),
    cmocka_unit_test_setup (test_dead_replaced, setup),
    cmocka_unit_test_setup (test_other_things_refused, setup),
    cmocka_unit_test_setup (test_not_ours, setup),
    cmocka_unit_test_setup (test_status, setup),
    cmocka_unit_test_setup (test_status_engines, setup),
    cmocka_unit_test_setup (test_commands, setup),
    cmocka_unit_test_setup (test_refused, setup),
    cmocka_unit_test_setup (test_pieces, setup),
    cmocka_unit_test_setup (test_oversize, setup),
    cmocka_unit_test_setup (test_garbage, setup),
    cmocka_unit_test_setup (test_wait, setup),
    cmocka_unit_test_setup (test_vanish, setup),
    cmocka_unit_test_setup (test_stop_cancels, setup),
    cmocka_unit_test_setup (test_never_reads, setup),
    cmocka_unit_test_setup (test_too_many, setup),
    cmocka_unit_test_setup (test_many_clients, setup),
    cmocka_unit_test_setup (test_client, setup),
  };
  const char *tmp = getenv ("TMPDIR");
  int r;

  snprintf (dir, sizeof dir, "%s/gpuraid-XXXXXX", tmp ? tmp : "/tmp");
  if (mkdtemp (dir) == NULL) {
    perror ("mkdtemp");
    return 1;
  }
  snprintf (path, sizeof path, "%s/control.sock", dir);
  log_set_sink (sink);
  r = cmocka_run_group_tests (tests, NULL, NULL);
  unlink (path);
  rmdir (dir);
  return r;
}
