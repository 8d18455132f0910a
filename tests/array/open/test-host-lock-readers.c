/* gpuraid: readers of one array on a host beside each other, and no writer.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "array/stores/copies.h"
#include "array/stores/host-lock.h"
#include "common/log.h"

static uuid_bytes uuid;

static int
setup (void **state)
{
  return copies_new_uuid (&uuid);
}

static void
test_writer (void **state)
{
  struct host_lock *l = host_lock_take (&uuid, false);
  uuid_bytes other = uuid;

  other.b[0] ^= 1;
  assert_non_null (l);
  assert_true (host_lock_held (&uuid));
  assert_false (host_lock_held (&other));
  assert_true (host_lock_covers (l, &uuid));
  assert_false (host_lock_covers (l, &other));
  assert_false (host_lock_covers (NULL, &uuid));
  assert_null (host_lock_take (&uuid, false));
  assert_null (host_lock_take (&uuid, true));
  host_lock_free (l);
  assert_false (host_lock_held (&uuid));
}

static void
test_readers (void **state)
{
  struct host_lock *one = host_lock_take (&uuid, true);
  struct host_lock *two = host_lock_take (&uuid, true);

  assert_non_null (one);
  assert_non_null (two);
  assert_null (host_lock_take (&uuid, false));
  host_lock_free (one);
  assert_true (host_lock_held (&uuid));
  assert_null (host_lock_take (&uuid, false));
  host_lock_free (two);
  one = host_lock_take (&uuid, false);
  assert_non_null (one);
  host_lock_free (one);
}

int
main (void)
{
  static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup (test_writer, setup),
    cmocka_unit_test_setup (test_readers, setup),
  };

  log_set_sink (log_nowhere);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
