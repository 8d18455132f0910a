/* gpuraid: clients of the control socket: that wait, that leave, that never
 * read, too many of them, and our own.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "control/client.h"
#include "tests/control/control-fake.h"

static void
test_wait (void **state)
{
  struct control *c = start_control ();
  struct line_buf b = { .max = LINE_MAX_REPLY };
  int fd = dial ();
  struct json_object *reply, *o;

  /* It delays no other client; a client that only stopped sending gets an
   * answer.
   */
  put_line (fd, "{\"command\":\"wait\"}");
  shutdown (fd, SHUT_WR);
  until (&fake.nr_waiting, 1);
  assert_ok ("{\"command\":\"status\"}");
  assert_ok ("{\"command\":\"fail\",\"member\":1}");
  usleep (20000);
  assert_int_equal (fake.nr_waiting, 1);
  pthread_mutex_lock (&fake.lock);
  fake.finished = fake.healthy = true;
  pthread_mutex_unlock (&fake.lock);
  reply = get_reply (&b, fd);
  assert_non_null (reply);
  assert_true (reply_is_ok (reply));
  assert_true (json_object_object_get_ex (reply, "healthy", &o));
  assert_true (json_object_get_boolean (o));
  json_object_put (reply);
  assert_int_equal (fake.nr_cancelled, 0);
  line_free (&b);
  close (fd);

  pthread_mutex_lock (&fake.lock);
  fake.healthy = false;
  pthread_mutex_unlock (&fake.lock);
  reply = ask ("{\"command\":\"wait\"}");
  assert_true (json_object_object_get_ex (reply, "healthy", &o));
  assert_false (json_object_get_boolean (o));
  assert_true (json_object_object_get_ex (reply, "failed", &o));
  assert_null (o);
  json_object_put (reply);

  pthread_mutex_lock (&fake.lock);
  strcpy (fake.failed, "slot 1: it broke");
  pthread_mutex_unlock (&fake.lock);
  reply = ask ("{\"command\":\"wait\"}");
  assert_true (json_object_object_get_ex (reply, "failed", &o));
  assert_string_equal (json_object_get_string (o), "slot 1: it broke");
  json_object_put (reply);
  fake.failed[0] = '\0';
  control_stop (c);
}

static void
assert_reached (struct json_object *reply, bool reached)
{
  struct json_object *o;

  assert_non_null (reply);
  assert_true (reply_is_ok (reply));
  assert_true (json_object_object_get_ex (reply, "reached", &o));
  assert_int_equal (json_object_get_boolean (o), reached);
}

static void
assert_value (struct json_object *reply, const char *field, const char *want)
{
  struct json_object *o;

  assert_true (json_object_object_get_ex (reply, "values", &o));
  assert_true (json_object_object_get_ex (o, field, &o));
  assert_string_equal (json_object_get_string (o), want);
}

/* For a condition: it holds at once, later, or not in time. */
static void
test_until (void **state)
{
  struct control *c = start_control ();
  struct line_buf b = { .max = LINE_MAX_REPLY };
  int fd = dial ();
  struct json_object *reply;

  put_line (fd, "{\"command\":\"wait\",\"until\":"
            "[\"connections>=2\",\"members.1.state!=active\"]}");
  while (fake.nr_freed < 3)
    usleep (1000);
  assert_ok ("{\"command\":\"fail\",\"member\":1}");
  pthread_mutex_lock (&fake.lock);
  fake.connections = 2;
  pthread_mutex_unlock (&fake.lock);
  reply = get_reply (&b, fd);
  assert_reached (reply, true);
  assert_value (reply, "connections", "2");
  assert_value (reply, "members.1.state", "rebuilding");
  json_object_put (reply);
  line_free (&b);
  close (fd);

  reply = ask ("{\"command\":\"wait\",\"timeout\":0.2,\"until\":"
               "[\"connections=2\",\"state=healthy\"]}");
  assert_reached (reply, false);
  assert_value (reply, "state", "degraded");
  json_object_put (reply);
  reply = ask ("{\"command\":\"wait\",\"timeout\":0,\"until\":"
               "[\"state=degraded\"]}");
  assert_reached (reply, true);
  json_object_put (reply);

  reply = ask ("{\"command\":\"wait\",\"timeout\":0}");
  assert_reached (reply, false);
  json_object_put (reply);
  assert_int_equal (fake.nr_cancelled, 1);
  control_stop (c);
}

/* The server stops, or the client leaves. */
static void
test_until_ends (void **state)
{
  static const char request[] =
    "{\"command\":\"wait\",\"until\":[\"state=healthy\"]}";
  struct control *c = start_control ();
  struct line_buf b = { .max = LINE_MAX_REPLY };
  int fd = dial (), gone = dial ();
  struct json_object *reply;

  put_line (gone, request);
  while (fake.nr_freed < 2)
    usleep (1000);
  close (gone);
  put_line (fd, request);
  while (fake.nr_freed < 8)
    usleep (1000);
  control_stop (c);
  reply = get_reply (&b, fd);
  assert_non_null (reply);
  assert_string_equal (reply_message (reply), "the server is stopping");
  json_object_put (reply);
  line_free (&b);
  close (fd);
  assert_int_equal (control_errors, 0);
}

static void
test_vanish (void **state)
{
  struct control *c = start_control ();
  int fd[10];

  for (int i = 0; i < 10; i++) {
    fd[i] = dial ();
    put_line (fd[i], "{\"command\":\"wait\"}");
  }
  until (&fake.nr_waiting, 10);
  for (int i = 0; i < 10; i++)
    close (fd[i]);
  until (&fake.nr_cancelled, 10);
  until (&fake.nr_waiting, 0);

  /* Gone before the answer, in the middle of a line, without a word. */
  for (int i = 0; i < 200; i++) {
    static const char text[] = "{\"command\":\"status\"}\n";
    size_t len = i % 3 == 0 ? strlen (text) : i % 3 == 1 ? 7 : 0;
    int s = dial ();

    (void) send (s, text, len, MSG_NOSIGNAL);
    close (s);
  }
  control_stop (c);
  assert_int_equal (control_errors, 0);
}

static void
test_stop_cancels (void **state)
{
  struct control *c = start_control ();
  struct line_buf b = { .max = LINE_MAX_REPLY };
  int fd = dial (), idle = dial ();
  struct json_object *reply;

  put_line (fd, "{\"command\":\"wait\"}");
  until (&fake.nr_waiting, 1);
  control_stop (c);
  assert_int_equal (fake.nr_cancelled, 1);
  reply = get_reply (&b, fd);
  assert_non_null (reply);
  assert_string_equal (reply_message (reply), "the server is stopping");
  json_object_put (reply);
  assert_null (get_reply (&b, fd));
  assert_null (get_reply (&b, idle));
  line_free (&b);
  close (fd);
  close (idle);
}

/* A client that asks and never reads cannot hold up the end. */
static void
test_never_reads (void **state)
{
  static const char text[] = "{\"command\":\"status\"}\n";
  struct control *c = start_control ();
  int fd = dial ();

  control_last_s = 1;
  while (send (fd, text, strlen (text), MSG_DONTWAIT) > 0)
    ;
  /* Until the server is stuck in sending. */
  for (unsigned n = fake.nr_freed + 1; n != fake.nr_freed; usleep (100000))
    n = fake.nr_freed;
  assert_ok ("{\"command\":\"status\"}");
  control_stop (c);                     /* or else it hangs */
  close (fd);
}

/* Clients that stay and ask nothing make way, those first that have asked
 * nothing for longest.
 */
static void
test_idle_make_way (void **state)
{
  struct control *c = start_control ();
  struct line_buf b = { .max = LINE_MAX_REPLY };
  struct json_object *reply;
  int fd[32], busy = dial ();

  put_line (busy, "{\"command\":\"wait\"}");
  until (&fake.nr_waiting, 1);
  for (int i = 0; i < 32; i++) {
    fd[i] = dial ();
    if (i == 0)
      continue;
    put_line (fd[i], "{\"command\":\"status\"}");
    reply = get_reply (&b, fd[i]);
    assert_true (reply && reply_is_ok (reply));
    json_object_put (reply);
  }
  for (int i = 0; i < 20; i++)
    assert_ok ("{\"command\":\"status\"}");

  reply = get_reply (&b, fd[0]);
  assert_false (reply_is_ok (reply));
  assert_non_null (strstr (reply_message (reply), "made room"));
  json_object_put (reply);
  assert_null (get_reply (&b, fd[0]));
  put_line (fd[31], "{\"command\":\"status\"}");
  reply = get_reply (&b, fd[31]);
  assert_true (reply && reply_is_ok (reply));
  json_object_put (reply);
  assert_int_equal (fake.nr_cancelled, 0);
  for (int i = 0; i < 32; i++)
    close (fd[i]);
  control_stop (c);
  line_free (&b);
  close (busy);
}

static void
test_too_many (void **state)
{
  struct control *c = start_control ();
  int fd[32];

  for (int i = 0; i < 32; i++) {
    fd[i] = dial ();
    put_line (fd[i], "{\"command\":\"wait\"}");
  }
  until (&fake.nr_waiting, 32);
  assert_refused ("{\"command\":\"status\"}",
                  "too many clients of the control socket");

  /* There is room again once one has left. */
  close (fd[0]);
  until (&fake.nr_cancelled, 1);
  for (int i = 0;; i++) {
    struct json_object *reply = ask ("{\"command\":\"status\"}");
    bool ok = reply_is_ok (reply);

    json_object_put (reply);
    if (ok)
      break;
    assert_true (i < CONTROL_HANG_S * 1000);
    usleep (1000);
  }
  control_stop (c);
  for (int i = 1; i < 32; i++)
    close (fd[i]);
}

static void *
busy_client (void *vp)
{
  struct control_client *c = control_connect (control_path, 0);
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
  struct control *c = start_control ();
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

static void
test_client (void **state)
{
  struct control *c = start_control ();
  struct control_client *client = control_connect (control_path, 0);
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
  assert_int_equal (control_errors, 0);
  json_object_put (request);
  control_close (client);
  control_close (NULL);

  assert_null (control_connect (control_path, 0));
  assert_error ("No such file");
  assert_null (control_connect ("/dev/null", 0));
  assert_error ("/dev/null");
}

/* Those that ask for a stop are answered at the end of the server, also if
 * others talk, wait and leave meanwhile.
 */
static void
test_stop (void **state)
{
  static const char *const want[] = {
    "{\"ok\":true,\"written_out\":false}", "{\"ok\":true,\"written_out\":true}",
  };

  for (int good = 0; good < 2; good++) {
    struct control *c = start_control ();
    struct line_buf b = { .max = LINE_MAX_REPLY };
    int fd[3] = { dial (), dial (), dial () }, gone = dial ();
    struct control_last last;
    char *line, byte;
    size_t len;

    reset_fake (NULL);
    fake.connections = 2;
    assert_refused ("{\"command\":\"stop\"}", "in use");
    put_line (fd[0], "{\"command\":\"stop\",\"force\":true}");
    until (&fake.nr_stops, 1);
    while (fake.nr_disconnects < 3)     /* it goes on until they left */
      usleep (1000);
    pthread_mutex_lock (&fake.lock);
    fake.connections = 0;
    pthread_mutex_unlock (&fake.lock);
    put_line (fd[1], "{\"command\":\"stop\"}");
    until (&fake.nr_stops, 2);
    put_line (gone, "{\"command\":\"stop\",\"force\":false}");
    until (&fake.nr_stops, 3);
    close (gone);
    put_line (fd[2], "{\"command\":\"wait\"}");
    until (&fake.nr_waiting, 1);

    control_stop_last (c, &last);
    assert_int_equal (last.nr, 3);
    assert_true (access (control_path, F_OK) == -1);
    assert_int_equal (recv (fd[0], &byte, 1, MSG_DONTWAIT), -1);
    control_answer_last (&last, good);
    for (int i = 0; i < 2; i++) {
      assert_int_equal (line_read (&b, fd[i], &line, &len), LINE_OK);
      assert_string_equal (line, want[good]);
      /* Connected until the process ends. */
      assert_int_equal (recv (fd[i], &byte, 1, MSG_DONTWAIT), -1);
      line_free (&b);
      b = (struct line_buf) { .max = LINE_MAX_REPLY };
    }
    for (int i = 0; i < 3; i++) {
      close (fd[i]);
      close (last.fd[i]);
    }
  }
}

/* A server that accepts and says nothing. */
static void
test_silent (void **state)
{
  struct sockaddr_un addr = { .sun_family = AF_UNIX };
  int fd = socket (AF_UNIX, SOCK_STREAM, 0);
  struct json_object *request = json_object_new_object ();
  struct control_client *client;

  strcpy (addr.sun_path, control_path);
  assert_int_equal (bind (fd, (struct sockaddr *) &addr, sizeof addr), 0);
  assert_int_equal (listen (fd, 0), 0);
  client = control_connect (control_path, 1);
  assert_non_null (client);
  assert_null (control_call (client, request, true));
  assert_error ("the server does not answer");
  assert_true (control_gone (client));
  /* Its queue is full. */
  assert_null (control_connect (control_path, 1));
  assert_error ("the server does not answer");
  json_object_put (request);
  control_close (client);
  close (fd);
  unlink (control_path);
}

int
main (void)
{
#define TEST(f) cmocka_unit_test_setup (f, reset_fake)
  const struct CMUnitTest tests[] = {
    TEST (test_wait),
    TEST (test_until),
    TEST (test_until_ends),
    TEST (test_vanish),
    TEST (test_stop_cancels),
    TEST (test_never_reads),
    TEST (test_idle_make_way),
    TEST (test_too_many),
    TEST (test_many_clients),
    TEST (test_client),
    TEST (test_stop),
    TEST (test_silent),
  };

  return cmocka_run_group_tests (tests, make_control_dir,
                                 remove_control_dir);
}
