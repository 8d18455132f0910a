/* gpuraid: requests on the control socket and their replies: good ones, bad
 * ones, in pieces, too long, and rubbish.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/bits.h"
#include "tests/control/control-fake.h"
#include "tests/seed.h"

#define NO_IO \
  "\"read_ops\":0,\"read_bytes\":0,\"read_ns\":0,\"write_ops\":0," \
  "\"write_bytes\":0,\"write_ns\":0,\"flush_ops\":0,\"flush_ns\":0," \
  "\"read_median_ns\":0,\"read_p95_ns\":0"

#define ANSWERS "\"no_answer\":false,\"no_answer_seconds\":0,"
#define NO_CONN "\"no_connection\":false,\"deleted\":false,"

static void
test_status (void **state)
{
  /* The order is part of no promise, but a change should be meant. */
  static const char want[] =
    "{\"ok\":true,\"status\":{\"state\":\"degraded\",\"writable\":true,"
    "\"waits_for_writer\":false,\"recovering\":true,"
    "\"read_only\":null,"
    "\"k\":2,\"m\":1,\"chunk\":65536,\"size\":9223372036854775808,"
    "\"code\":\"rs\",\"w\":8,\"uuid\":\"f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff\","
    "\"label\":\"tank-1\",\"multihost\":true,"
    "\"epoch\":18446744073709551615,\"coder\":\"isal\","
    "\"engines\":[],\"loop\":\"sim\","
    "\"members\":["
    "{\"slot\":0,\"path\":\"/a \\\"quoted\\\"\\n\\\\ path\","
    "\"uuid\":\"01000000-0000-0000-0000-000000000000\","
    "\"state\":\"active\",\"errors\":0,"
    "\"bad_sums\":0,\"scrub_found\":0,\"scrub_repaired\":0,"
    "\"no_space\":false,\"no_space_seconds\":0," ANSWERS
    "\"slow\":false," NO_CONN "\"last_error\":null,"
    "\"read_ops\":1,\"read_bytes\":2,\"read_ns\":3,\"write_ops\":4,"
    "\"write_bytes\":5,\"write_ns\":6,\"flush_ops\":7,\"flush_ns\":9,"
    "\"read_median_ns\":0,\"read_p95_ns\":0},"
    "{\"slot\":1,\"path\":\"/latin1-\xef\xbf\xbd-\xef\xbf\xbd\xef\xbf\xbd"
    "\xef\xbf\xbd-\xc3\xa9\",\"uuid\":null,"
    "\"state\":\"rebuilding\",\"errors\":1,"
    "\"bad_sums\":0,\"scrub_found\":0,\"scrub_repaired\":0,"
    "\"no_space\":false,\"no_space_seconds\":0," ANSWERS
    "\"slow\":false," NO_CONN "\"last_error\":{\"errno\":5,"
    "\"message\":\"Input/output error\",\"operation\":\"read\","
    "\"offset\":4096,\"time\":0}," NO_IO "},"
    "{\"slot\":2,\"path\":null,\"uuid\":null,"
    "\"state\":\"missing\",\"errors\":2,"
    "\"bad_sums\":0,\"scrub_found\":0,\"scrub_repaired\":0,"
    "\"no_space\":false,\"no_space_seconds\":0," ANSWERS
    "\"slow\":false," NO_CONN "\"last_error\":null,"
    NO_IO "},"
    "{\"slot\":null,\"path\":null,\"uuid\":null,"
    "\"state\":\"spare\",\"errors\":0,"
    "\"bad_sums\":0,\"scrub_found\":0,\"scrub_repaired\":0,"
    "\"no_space\":false,\"no_space_seconds\":0," ANSWERS
    "\"slow\":false," NO_CONN "\"last_error\":null,"
    NO_IO "}],"
    "\"left_out\":[{\"path\":\"/a \\\"b\\\"\",\"why\":\"not there\"}],"
    "\"rebuild\":{\"done\":1,\"total\":4,\"bytes_per_second\":1,"
    "\"eta_seconds\":3,\"paused\":false},\"resync\":null,"
    "\"grow\":null,\"reshape\":null,\"growable\":0,\"rate_limit\":0,"
    "\"scrub\":null,\"last_scrub\":null,\"failed_change\":null,"
    "\"lost_rows\":0,"
    "\"cache\":{\"size\":0,\"used\":0,\"dirty\":12},"
    "\"counters\":{\"read_ops\":7,\"read_bytes\":0,\"write_ops\":0,"
    "\"write_bytes\":0,\"zero_ops\":0,\"zero_bytes\":0,\"flush_ops\":0,"
    "\"fua_ops\":0,\"member_read_ops\":0,\"member_read_bytes\":0,"
    "\"member_write_ops\":0,\"member_write_bytes\":0,"
    "\"member_flush_ops\":0,\"full_stripe_writes\":0,\"partial_writes\":0,"
    "\"decoded_bytes\":0,\"hedged_reads\":0,\"hedges_won\":0,"
    "\"hedge_bytes\":0,\"avoided_reads\":0,"
    "\"repaired_blocks\":0,\"rebuilt_bytes\":0,"
    "\"corrupt_found\":0,\"corrupt_repaired\":0,"
    "\"corrupt_table_pages\":0,\"table_bytes\":0,\"journal_commits\":0,"
    "\"direct_writes\":0,"
    "\"coder_jobs\":0,\"coder_bytes\":{\"isal\":4096}},"
    "\"stages\":{\"asked_ns\":0,\"begun_ns\":0,\"read_ns\":5,"
    "\"coded_ns\":0,\"gathered_ns\":0,\"records_ns\":0,"
    "\"flushed_ns\":0,\"placed_ns\":0,\"freed_ns\":0},"
    "\"lock\":{\"taken\":3,\"held_ns\":2},"
    "\"reasons\":[\"members lost\",\"resync pending\"],"
    "\"connections\":3,"
    "\"clients\":[\"qemu\xef\xbf\xbd[12]\",\"192.0.2.1:4010\"],"
    "\"stop_timeout_ms\":1500}}";
  struct control *c = start_control ();
  struct line_buf b = { .max = LINE_MAX_REPLY };
  int fd = dial ();
  char *line;
  size_t len;

  fake.connections = 3;
  put_line (fd, "{\"command\":\"status\"}");
  assert_int_equal (line_read (&b, fd, &line, &len), LINE_OK);
  assert_string_equal (line, want);
  until (&fake.nr_freed, 1);
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
  struct control *c = start_control ();
  struct line_buf b = { .max = LINE_MAX_REPLY };
  int fd = dial ();
  char *line;
  size_t len;

  fake.with_engines = true;
  put_line (fd, "{\"command\":\"status\"}");
  assert_int_equal (line_read (&b, fd, &line, &len), LINE_OK);
  assert_non_null (strstr (line, engines));
  assert_non_null (strstr (line, bytes));
  line_free (&b);
  close (fd);
  control_stop (c);
  fake.with_engines = false;
}

static void
assert_rebuild (const char *how)
{
  struct json_object *reply =
    ask ("{\"command\":\"readd\",\"member\":\"/m\"}"), *o;

  assert_true (reply_is_ok (reply));
  assert_true (json_object_object_get_ex (reply, "rebuild", &o));
  assert_string_equal (json_object_get_string (o), how);
  json_object_put (reply);
}

static void
assert_grows (void)
{
  struct json_object *reply = ask ("{\"command\":\"grow\"}"), *o;

  assert_true (reply_is_ok (reply));
  assert_true (json_object_object_get_ex (reply, "old_size", &o));
  assert_int_equal (json_object_get_uint64 (o), 4096);
  assert_true (json_object_object_get_ex (reply, "new_size", &o));
  assert_true (json_object_get_uint64 (o) == UINT64_C (1) << 60);
  json_object_put (reply);
}

/* That a member was out is no error. */
static void
assert_already (const char *member, bool already)
{
  char text[80];
  struct json_object *reply, *o;

  snprintf (text, sizeof text, "{\"command\":\"fail\",\"member\":\"%s\"}",
            member);
  reply = ask (text);
  assert_true (reply_is_ok (reply));
  assert_true (json_object_object_get_ex (reply, "already", &o));
  assert_int_equal (json_object_get_boolean (o), already);
  json_object_put (reply);
}

/* The rest of a request of that command. */
static const char *
with (const char *command, const char *rest)
{
  static char text[160];

  snprintf (text, sizeof text, "{\"command\":\"%s\"%s}", command, rest);
  return text;
}

static void
assert_add (const char *command, bool data)
{
  assert_ok (with (command, ",\"new\":\"/p\",\"force\":true"));
  assert_string_equal (fake.which, command);
  assert_string_equal (fake.new_path, "/p");
  assert_true (fake.force);
  assert_ok (with (command, ",\"action\":\"pause\""));
  assert_int_equal (fake.shape, ARRAY_SHAPE_PAUSE);
  assert_int_equal (fake.of_data, data);
  assert_ok (with (command, ",\"action\":\"resume\""));
  assert_int_equal (fake.shape, ARRAY_SHAPE_RESUME);
  assert_ok (with (command, ",\"action\":\"cancel\""));
  assert_int_equal (fake.shape, ARRAY_SHAPE_CANCEL);
  assert_refused (with (command, ""), "which new member?");
  assert_refused (with (command, ",\"action\":\"stop\""), "no such action");
  assert_refused (with (command, ",\"action\":\"pause\",\"new\":\"/p\""),
                  "either");
  assert_refused (with (command, ",\"action\":\"pause\",\"force\":true"),
                  "with a new member only");
  assert_refused (with (command, ",\"action\":\"pause\",\"force\":true"),
                  command);
}

static void
test_commands (void **state)
{
  struct control *c = start_control ();

  assert_ok ("{\"command\":\"fail\",\"member\":\"/x/y\"}");
  assert_string_equal (fake.which, "/x/y");
  assert_already ("6", false);
  assert_already ("7", true);
  assert_grows ();
  fake.full = true;
  assert_refused ("{\"command\":\"grow\"}", "nothing to gain");
  assert_refused ("{\"command\":\"grow\",\"force\":true}", "no such key");
  fake.full = false;
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
  assert_ok ("{\"command\":\"spare\",\"new\":\"/s\"}");
  assert_string_equal (fake.which, "spare");
  assert_string_equal (fake.new_path, "/s");
  assert_false (fake.force);
  assert_ok ("{\"command\":\"spare\",\"new\":\"/s\",\"force\":true}");
  assert_true (fake.force);
  assert_false (fake.any_room);
  assert_ok ("{\"command\":\"spare\",\"new\":\"/s\",\"any_room\":true}");
  assert_true (fake.any_room && !fake.force);
  assert_ok ("{\"command\":\"replace\",\"member\":\"0\",\"new\":\"/n\","
             "\"any_room\":true,\"force\":true}");
  assert_true (fake.any_room && fake.force);
  assert_refused ("{\"command\":\"spare\",\"new\":\"/s\",\"any_room\":1}",
                  "any_room: not true or false");
  assert_refused ("{\"command\":\"stop\",\"any_room\":true}", "no such key");
  assert_add ("add-parity", false);
  assert_add ("widen", true);
  assert_rebuild ("changes");
  fake.full = true;
  assert_rebuild ("full");
  assert_string_equal (fake.which, "/m");
  assert_refused ("{\"command\":\"readd\",\"member\":9}", "in use already");
  assert_ok ("{\"command\":\"scrub\"}");
  assert_false (fake.force);
  assert_ok ("{\"command\":\"scrub\",\"repair\":true}");
  assert_true (fake.force);
  assert_ok ("{\"command\":\"scrub\",\"action\":\"start\",\"repair\":false}");
  assert_false (fake.force);
  assert_ok ("{\"command\":\"scrub\",\"action\":\"resume\"}");
  assert_int_equal (fake.scrub, ARRAY_SCRUB_RESUME);
  assert_ok ("{\"command\":\"scrub\",\"action\":\"stop\"}");
  assert_int_equal (fake.scrub, ARRAY_SCRUB_STOP);
  assert_ok ("{\"command\":\"rebuild\",\"action\":\"pause\"}");
  assert_true (fake.paused);
  assert_ok ("{\"command\":\"rebuild\",\"action\":\"resume\"}");
  assert_false (fake.paused);
  assert_ok ("{\"command\":\"rate\",\"limit\":10000000000}");
  assert_int_equal (fake.rate, 10000000000);
  assert_ok ("{\"command\":\"rate\",\"limit\":0}");
  assert_int_equal (fake.rate, 0);
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
    { "{\"command\":\"spare\"}", "spare: which new member?" },
    { "{\"command\":\"spare\",\"member\":1}", "no such key: member" },
    { "{\"command\":\"readd\"}", "readd: which member?" },
    { "{\"command\":\"readd\",\"member\":1,\"new\":\"/n\"}", "no such key" },
    { "{\"command\":\"scrub\",\"action\":\"go\"}", "no such action: go" },
    { "{\"command\":\"scrub\",\"action\":1}", "not a word" },
    { "{\"command\":\"rebuild\"}", "which action" },
    { "{\"command\":\"rebuild\",\"action\":\"stop\"}", "no such action" },
    { "{\"command\":\"rate\"}", "which limit" },
    { "{\"command\":\"rate\",\"limit\":-1}", "not a number" },
    { "{\"command\":\"rate\",\"limit\":\"1M\"}", "not a number" },
    { "{\"command\":\"scrub\",\"repair\":1}", "not true or false" },
    { "{\"command\":\"scrub\",\"action\":\"stop\",\"repair\":true}",
      "goes with start only" },
    { "{\"command\":\"status\",\"action\":\"start\"}", "no such key" },
    { "{\"command\":\"stop\",\"force\":1}", "not true or false" },
    { "{\"command\":\"stop\",\"member\":1}", "no such key" },
  };
  struct control *c = start_control ();
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
  struct control *c = start_control ();
  struct line_buf b = { .max = LINE_MAX_REPLY };
  int fd = dial ();

  for (const char *p = two; *p; p++) {
    assert_int_equal (send (fd, p, 1, 0), 1);
    if (p - two < 20)
      usleep (500);
  }
  assert_int_equal (send (fd, two, strlen (two), 0), strlen (two));
  for (int i = 0; i < 4; i++) {
    struct json_object *reply = get_reply (&b, fd);

    assert_non_null (reply);
    assert_true (reply_is_ok (reply));
    json_object_put (reply);
  }
  assert_string_equal (fake.which, "2");

  /* Without its newline it is no request. */
  assert_int_equal (send (fd, two, 29, 0), 29);
  shutdown (fd, SHUT_WR);
  assert_null (get_reply (&b, fd));
  assert_int_equal (fake.nr_commands, 4);
  line_free (&b);
  close (fd);
  control_stop (c);
}

static void
test_oversize (void **state)
{
  struct control *c = start_control ();
  struct line_buf b = { .max = LINE_MAX_REPLY };
  char *text = malloc (LINE_MAX_REQUEST + 1);
  int fd = dial ();
  struct json_object *reply;

  /* The longest request that is taken, newline included. */
  memset (text, ' ', LINE_MAX_REQUEST);
  memcpy (text, "{\"command\":\"status\"}", 20);
  text[LINE_MAX_REQUEST - 1] = '\0';
  put_line (fd, text);
  reply = get_reply (&b, fd);
  assert_non_null (reply);
  assert_true (reply_is_ok (reply));
  json_object_put (reply);

  /* One byte more, and no newline in sight: one refusal, then the end. */
  text[LINE_MAX_REQUEST - 1] = ' ';
  send (fd, text, LINE_MAX_REQUEST, MSG_NOSIGNAL);
  reply = get_reply (&b, fd);
  assert_non_null (reply);
  assert_string_equal (reply_message (reply),
                       "a request has at most 65536 bytes");
  json_object_put (reply);
  assert_null (get_reply (&b, fd));
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
  struct control *c = start_control ();
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
    reply = get_reply (&b, fd);
    assert_non_null (reply);
    assert_false (reply_is_ok (reply));
    json_object_put (reply);
  }
  assert_int_equal (fake.nr_commands, 0);
  line_free (&b);
  close (fd);
  control_stop (c);
}

int
main (void)
{
#define TEST(f) cmocka_unit_test_setup (f, reset_fake)
  const struct CMUnitTest tests[] = {
    TEST (test_status),
    TEST (test_status_engines),
    TEST (test_commands),
    TEST (test_refused),
    TEST (test_pieces),
    TEST (test_oversize),
    TEST (test_garbage),
  };

  return cmocka_run_group_tests (tests, make_control_dir,
                                 remove_control_dir);
}
