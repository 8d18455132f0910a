/* gpuraid: conditions on the status: which fields there are, what can be
 * compared with what, and what holds.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/bits.h"
#include "control/condition.h"

static const char text[] =
  "{\"state\":\"degraded\",\"k\":4,\"size\":18446744073709551615,"
  "\"writable\":true,\"label\":null,\"rebuild\":null,"
  "\"resync\":{\"done\":7,\"paused\":false},"
  "\"members\":[{\"state\":\"active\",\"path\":\"/a=b\"},"
  "{\"state\":\"failed\",\"last_error\":null}],"
  "\"counters\":{\"coder_bytes\":{\"isal\":5}},"
  "\"reasons\":[\"members lost\",\"no space\"]}";

static struct json_object *status;

static int
setup (void **state)
{
  status = json_tokener_parse (text);
  return status ? 0 : -1;
}

static int
teardown (void **state)
{
  json_object_put (status);
  return 0;
}

static bool
holds (const char *condition)
{
  char why[ARRAY_WHY_LEN];
  struct condition c;

  if (condition_parse (&c, condition, status, why) == -1)
    fail_msg ("%s: %s", condition, why);
  return condition_holds (&c, status);
}

static void
assert_refused (const char *condition, const char *part)
{
  char why[ARRAY_WHY_LEN];
  struct condition c;

  assert_int_equal (condition_parse (&c, condition, status, why), -1);
  if (strstr (why, part) == NULL || strchr (why, '\n'))
    fail_msg ("%s: %s; wanted: %s", condition, why, part);
}

static void
test_values (void **state)
{
  assert_true (holds ("state=degraded"));
  assert_false (holds ("state=healthy"));
  assert_false (holds ("state!=degraded"));
  assert_true (holds ("members.1.state=failed"));
  assert_true (holds ("members.0.path=/a=b"));
  assert_true (holds ("writable=true"));
  assert_false (holds ("resync.paused=true"));
  assert_true (holds ("k=4"));
  assert_false (holds ("k!=4"));
  assert_true (holds ("reasons=[\"members lost\",\"no space\"]"));
  assert_true (holds ("reasons.1=no space"));
  assert_true (holds ("reasons!=[]"));
  assert_true (holds ("counters.coder_bytes.isal=5"));
}

static void
test_numbers (void **state)
{
  assert_true (holds ("k>=4"));
  assert_true (holds ("k<=4"));
  assert_false (holds ("k>=5"));
  assert_false (holds ("k<=3"));
  assert_true (holds ("k<=18446744073709551615"));
  assert_true (holds ("size>=18446744073709551615"));
  assert_false (holds ("size<=18446744073709551614"));
}

/* What is not there now may be there later. */
static void
test_null (void **state)
{
  assert_true (holds ("rebuild=null"));
  assert_true (holds ("resync!=null"));
  assert_true (holds ("label=null"));
  assert_false (holds ("rebuild.done>=0"));
  assert_false (holds ("rebuild.done<=0"));
  assert_true (holds ("rebuild.done=null"));
  assert_true (holds ("rebuild.paused!=true"));
  assert_true (holds ("members.1.last_error.offset=null"));
  assert_true (holds ("members.7.state=null"));
  assert_true (holds ("members.7.state!=active"));
  assert_false (holds ("failed_change.message=x"));
  assert_true (holds ("grow=null"));
  assert_false (holds ("reshape.done>=0"));
  assert_false (holds ("reshape.why=x"));
  assert_true (holds ("reasons.2=null"));
}

static void
test_refused (void **state)
{
  static const char *const fields[] = {
    "nosuch=1", "members.1.stat=failed", "members.state=failed",
    "members.-1.state=failed", "members..state=failed", "rebuild.dome>=1",
    "state.x=1", "counters.coder_bytes.none=1",
    ".=1", "k.=1", "reasons.x=1",
  };
  char longer[300];

  for (unsigned i = 0; i < ARRAY_LEN (fields); i++)
    assert_refused (fields[i], "no such field");
  memset (longer, 'k', sizeof longer);
  strcpy (longer + sizeof longer - 3, "=1");
  assert_refused (longer, "no such field");

  assert_refused ("", "not a condition");
  assert_refused ("state", "not a condition");
  assert_refused ("=1", "not a condition");
  assert_refused ("k>4", "not a condition");
  assert_refused ("k!4", "not a condition");

  assert_refused ("state>=1", "state: not a number");
  assert_refused ("writable<=1", "writable: not a number");
  assert_refused ("k=four", "k is a number: not four");
  assert_refused ("k>=", "k is a number: not ");
  assert_refused ("k>=null", "k is a number");
  assert_refused ("rebuild.done=-1", "rebuild.done is a number");
  assert_refused ("writable=yes", "writable is true or false: not yes");
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_values),
    cmocka_unit_test (test_numbers),
    cmocka_unit_test (test_null),
    cmocka_unit_test (test_refused),
  };

  return cmocka_run_group_tests (tests, setup, teardown);
}
