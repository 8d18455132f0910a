/* gpuraid: tests: the control socket on a fake array, and a client of raw
 * bytes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "tests/control/control-fake.h"

char control_dir[64], control_path[80];

/* ---- what was logged ------------------------------------------------ */

static char last_error[1024];
atomic_uint control_errors;

static void
sink (enum log_level level, const char *fmt, va_list args)
{
  if (level != LOG_LEVEL_ERROR)
    return;
  vsnprintf (last_error, sizeof last_error, fmt, args);
  control_errors++;
}

void
assert_error (const char *part)
{
  if (strstr (last_error, part) == NULL || control_errors != 1)
    fail_msg ("%u messages, last: %s; wanted: %s", control_errors, last_error,
              part);
  assert_null (strchr (last_error, '\n'));
  control_errors = 0;
}

/* ---- a fake array --------------------------------------------------- */

struct fake fake = { .lock = PTHREAD_MUTEX_INITIALIZER };
static int opaque_value;

static void
fake_status (void *opaque, struct array_status *st)
{
  assert_ptr_equal (opaque, &opaque_value);
  st->state = ARRAY_DEGRADED;
  st->reasons = ARRAY_WHY_MEMBERS | ARRAY_WHY_RESYNC_PENDING;
  st->writable = true;
  st->recovering = true;
  st->g = (struct geometry) { .k = 2, .m = 1, .chunk = 65536,
                              .size = UINT64_C (1) << 63 };
  st->code = CODE_RS;
  st->w = 8;
  for (unsigned i = 0; i < 16; i++)
    st->uuid.b[i] = 0xf0 + i;
  strcpy (st->label, "tank-1");
  st->multihost = true;
  st->epoch = UINT64_MAX;
  st->coder = "isal";
  st->loop = "sim";
  st->nr_entries = 4;
  for (unsigned i = 0; i < 3; i++)
    st->entry[i] = (struct array_entry) { .slot = i, .errors = i };
  st->entry[0].path = strdup ("/a \"quoted\"\n\\ path");
  st->entry[0].state = ENTRY_ACTIVE;
  st->entry[0].uuid.b[0] = 1;
  st->entry[0].reads = (struct array_io) { 1, 2, 3 };
  st->entry[0].writes = (struct array_io) { 4, 5, 6 };
  st->entry[0].flushes = (struct array_io) { 7, 0, 9 };
  st->entry[1].path = strdup ("/latin1-\xe9-\xed\xa0\x80-\xc3\xa9");
  st->entry[1].state = ENTRY_REBUILDING;
  st->entry[1].last_error = (struct array_error) {
    .error = EIO, .operation = "read", .has_off = true, .off = 4096,
    .ago_ns = UINT64_MAX,
  };
  st->entry[2].state = ENTRY_MISSING;
  st->entry[3].slot = SLOT_NONE;
  st->entry[3].state = ENTRY_SPARE;
  st->nr_left_out = 1;
  st->left_out[0] = (struct array_left_out) { "/a \"b\"", "not there" };
  st->rebuild = (struct array_progress) {
    .running = true, .done = 1, .total = 4, .bytes_per_second = 1,
    .eta_seconds = 3,
  };
  st->counters.read_ops = 7;
  st->counters.coder_bytes = 4096;
  if (fake.with_engines) {
    st->nr_engines = 3;
    st->engine[0] = (struct coder_share) { "isal", 2, 4096, "" };
    st->engine[1] = (struct coder_share) {
      "cuda:0 \"A\"", 7, UINT64_C (1) << 63, "a launch: it went\naway",
    };
    st->engine[2] = (struct coder_share) { "isal", 1, 100, "" };
  }
  st->cache_dirty = 12;
  st->stages.read = 5;
  st->lock.taken = 3;
  st->lock.held_ns = 2;
}

static void
fake_status_free (struct array_status *st)
{
  for (unsigned i = 0; i < st->nr_entries; i++)
    free (st->entry[i].path);
  fake.nr_freed++;
}

static int
fake_fail (void *opaque, const char *which, bool *already,
           char why[ARRAY_WHY_LEN])
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&fake.lock);
  fake.nr_commands++;
  snprintf (fake.which, sizeof fake.which, "%s", which);
  if (strcmp (which, "9") == 0) {
    snprintf (why, ARRAY_WHY_LEN, "fewer than 2 members would remain");
    return EINVAL;
  }
  *already = strcmp (which, "7") == 0;
  return strcmp (which, "8") == 0 ? EIO : 0;
}

static int
fake_replace (void *opaque, const char *which, const char *new_path,
              unsigned flags, char why[ARRAY_WHY_LEN])
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&fake.lock);
  fake.nr_commands++;
  snprintf (fake.which, sizeof fake.which, "%s", which);
  snprintf (fake.new_path, sizeof fake.new_path, "%s", new_path);
  fake.force = flags & CONTROL_FORCE;
  fake.any_room = flags & CONTROL_ANY_ROOM;
  return 0;
}

static int
fake_spare (void *opaque, const char *new_path, unsigned flags,
            char why[ARRAY_WHY_LEN])
{
  return fake_replace (opaque, "spare", new_path, flags, why);
}

static int
fake_add (void *opaque, bool data, const char *new_path, unsigned flags,
          char why[ARRAY_WHY_LEN])
{
  return fake_replace (opaque, data ? "widen" : "add-parity", new_path, flags,
                       why);
}

static int
fake_shape_control (void *opaque, bool data, enum array_shape_command command,
                    char why[ARRAY_WHY_LEN])
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&fake.lock);
  fake.nr_commands++;
  fake.shape = command;
  fake.of_data = data;
  return 0;
}

static int
fake_readd (void *opaque, const char *which, bool *full,
            char why[ARRAY_WHY_LEN])
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&fake.lock);
  fake.nr_commands++;
  snprintf (fake.which, sizeof fake.which, "%s", which);
  *full = fake.full;
  if (strcmp (which, "9") == 0) {
    snprintf (why, ARRAY_WHY_LEN, "in use already");
    return EINVAL;
  }
  return 0;
}

static int
fake_scrub_start (void *opaque, bool repair, char why[ARRAY_WHY_LEN])
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&fake.lock);
  fake.nr_commands++;
  fake.force = repair;
  return 0;
}

static int
fake_scrub_control (void *opaque, enum array_scrub_command command,
                    char why[ARRAY_WHY_LEN])
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&fake.lock);
  fake.nr_commands++;
  fake.scrub = command;
  return 0;
}

static int
fake_rebuild_pause (void *opaque, bool pause, char why[ARRAY_WHY_LEN])
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&fake.lock);
  fake.nr_commands++;
  fake.paused = pause;
  return 0;
}

static void
fake_rate (void *opaque, uint64_t limit)
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&fake.lock);
  fake.nr_commands++;
  fake.rate = limit;
}

static int
fake_wait (void *opaque, bool *healthy, char failed[ARRAY_WHY_LEN],
           bool (*cancelled) (void *), void *wait_opaque)
{
  bool finished = false;

  fake.nr_waiting++;
  for (;;) {
    pthread_mutex_lock (&fake.lock);
    finished = fake.finished;
    *healthy = fake.healthy;
    snprintf (failed, ARRAY_WHY_LEN, "%s", fake.failed);
    pthread_mutex_unlock (&fake.lock);
    if (finished || cancelled (wait_opaque))
      break;
    usleep (1000);
  }
  if (!finished)
    fake.nr_cancelled++;
  fake.nr_waiting--;
  return 0;
}

static int
fake_grow (void *opaque, struct array_growth *growth,
           bool (*cancelled) (void *), void *wait_opaque,
           char why[ARRAY_WHY_LEN])
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&fake.lock);
  fake.nr_commands++;
  if (fake.full) {
    snprintf (why, ARRAY_WHY_LEN, "nothing to gain");
    return EINVAL;
  }
  growth->old_size = 4096;
  growth->new_size = UINT64_C (1) << 60;
  return 0;
}

static void
fake_clients (void *opaque, struct control_clients *c)
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&fake.lock);
  c->connections = fake.connections;
  c->stop_timeout_ns = fake.connections ? UINT64_C (1500000000) : UINT64_MAX;
  c->nr_named = fake.connections ? 2 : 0;
  strcpy (c->name[0], "qemu\xff[12]");
  strcpy (c->name[1], "192.0.2.1:4010");
}

static int
fake_stop (void *opaque, bool force, char why[ARRAY_WHY_LEN])
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&fake.lock);
  fake.force = force;
  if (fake.connections && !force) {
    snprintf (why, ARRAY_WHY_LEN, "in use");
    return EBUSY;
  }
  fake.nr_stops++;
  return 0;
}

static void
fake_disconnect (void *opaque)
{
  fake.nr_disconnects++;
}

static const struct control_ops fake_ops = {
  fake_status, fake_status_free, fake_fail, fake_replace, fake_spare,
  fake_add, fake_shape_control, fake_readd, fake_scrub_start,
  fake_scrub_control, fake_rebuild_pause, fake_rate, fake_wait, fake_grow,
  fake_clients, fake_stop, fake_disconnect,
};

struct control *
start_control (void)
{
  struct control *c = control_bind (control_path);

  assert_non_null (c);
  assert_int_equal (control_start (c, &fake_ops, &opaque_value), 0);
  return c;
}

int
reset_fake (void **state)
{
  fake.finished = fake.healthy = fake.force = fake.full = false;
  fake.with_engines = false;
  fake.nr_commands = fake.connections = 0;
  fake.nr_stops = fake.nr_disconnects = 0;
  fake.nr_waiting = fake.nr_cancelled = fake.nr_freed = control_errors = 0;
  last_error[0] = '\0';
  control_last_s = CONTROL_HANG_S;
  return 0;
}

int
make_control_dir (void **state)
{
  const char *tmp = getenv ("TMPDIR");

  snprintf (control_dir, sizeof control_dir, "%s/gpuraid-XXXXXX",
            tmp ? tmp : "/tmp");
  if (mkdtemp (control_dir) == NULL) {
    perror ("mkdtemp");
    return -1;
  }
  snprintf (control_path, sizeof control_path, "%s/control.sock",
            control_dir);
  log_set_sink (sink);
  return 0;
}

int
remove_control_dir (void **state)
{
  unlink (control_path);
  return rmdir (control_dir);
}

/* ---- a client of raw bytes ------------------------------------------ */

int
dial (void)
{
  struct sockaddr_un addr = { .sun_family = AF_UNIX };
  struct timeval limit = { .tv_sec = CONTROL_HANG_S };
  int fd = socket (AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC, 0);

  strcpy (addr.sun_path, control_path);
  assert_int_equal (connect (fd, (struct sockaddr *) &addr, sizeof addr), 0);
  setsockopt (fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  return fd;
}

void
put_line (int fd, const char *text)
{
  assert_int_equal (line_write (fd, text, strlen (text)), 0);
}

struct json_object *
get_reply (struct line_buf *b, int fd)
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

bool
reply_is_ok (struct json_object *reply)
{
  struct json_object *o;

  assert_true (json_object_object_get_ex (reply, "ok", &o));
  return json_object_get_boolean (o);
}

const char *
reply_message (struct json_object *reply)
{
  struct json_object *o;

  assert_false (reply_is_ok (reply));
  assert_true (json_object_object_get_ex (reply, "message", &o));
  return json_object_get_string (o);
}

struct json_object *
ask (const char *text)
{
  struct line_buf b = { .max = LINE_MAX_REPLY };
  int fd = dial ();
  struct json_object *reply;

  /* One that is turned away may find the other end closed. */
  (void) line_write (fd, text, strlen (text));
  reply = get_reply (&b, fd);
  close (fd);
  line_free (&b);
  assert_non_null (reply);
  return reply;
}

void
assert_ok (const char *text)
{
  struct json_object *reply = ask (text);

  if (!reply_is_ok (reply))
    fail_msg ("%s: %s", text, reply_message (reply));
  json_object_put (reply);
}

void
assert_refused (const char *text, const char *part)
{
  struct json_object *reply = ask (text);

  if (strstr (reply_message (reply), part) == NULL)
    fail_msg ("%s: %s; wanted: %s", text, reply_message (reply), part);
  json_object_put (reply);
}

void
until (atomic_uint *n, unsigned value)
{
  for (int i = 0; *n != value; i++) {
    if (i == CONTROL_HANG_S * 1000)
      fail_msg ("%u, not %u, after %d seconds", *n, value, CONTROL_HANG_S);
    usleep (1000);
  }
}
