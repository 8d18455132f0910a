/* gpuraid: messages that are held until a lock is free, and a flush of them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <wchar.h>

#include <cmocka.h>

#include "common/log.h"

#define MAX_HEARD 300

static unsigned nr_heard;
static struct {
  enum log_level level;
  char text[128];
} heard[MAX_HEARD];

static void
hear (enum log_level level, const char *fmt, va_list args)
{
  assert_true (nr_heard < MAX_HEARD);
  heard[nr_heard].level = level;
  vsnprintf (heard[nr_heard].text, sizeof heard[0].text, fmt, args);
  nr_heard++;
  errno = EXDEV;
}

static int
setup (void **state)
{
  nr_heard = 0;
  log_set_sink (hear);
  return 0;
}

static int
teardown (void **state)
{
  log_set_sink (NULL);
  return 0;
}

static void
check_heard (unsigned i, enum log_level level, const char *text)
{
  assert_true (i < nr_heard);
  assert_int_equal (heard[i].level, level);
  assert_string_equal (heard[i].text, text);
}

static void
test_direct (void **state)
{
  errno = ENOSPC;
  log_notice ("%s: %m", "disk");
  assert_int_equal (errno, ENOSPC);
  check_heard (0, LOG_LEVEL_NOTICE, "disk: No space left on device");
  log_release ();
  assert_int_equal (nr_heard, 1);
}

/* A path may have any bytes in it. */
static void
test_one_line (void **state)
{
  errno = ENOENT;
  log_error ("open: %s: %m", "a\nb\033[2J\x7f \xc3\xa4");
  check_heard (0, LOG_LEVEL_ERROR, "open: a?b?[2J? \xc3\xa4: "
               "No such file or directory");
  log_hold ();
  log_notice ("%s", "a\tb\n");
  log_release ();
  check_heard (1, LOG_LEVEL_NOTICE, "a?b?");
}

static void
test_held (void **state)
{
  char text[] = "gone";

  log_hold ();
  errno = ENOSPC;
  log_error ("%s: %m", text);
  assert_int_equal (errno, ENOSPC);
  strcpy (text, "what");
  errno = EIO;
  log_notice ("%s %d%%: %m", text, 7);
  log_debug ("third");
  assert_int_equal (nr_heard, 0);
  assert_int_equal (errno, EIO);
  log_release ();
  assert_int_equal (errno, EIO);

  assert_int_equal (nr_heard, 3);
  check_heard (0, LOG_LEVEL_ERROR, "gone: No space left on device");
  check_heard (1, LOG_LEVEL_NOTICE, "what 7%: Input/output error");
  check_heard (2, LOG_LEVEL_DEBUG, "third");

  /* Nothing is left over. */
  log_notice ("direct");
  assert_int_equal (nr_heard, 4);
  log_release ();
  log_hold ();
  log_release ();
  assert_int_equal (nr_heard, 4);
}

static void
test_many (void **state)
{
  char text[16];

  for (int round = 0; round < 2; round++) {
    nr_heard = 0;
    log_hold ();
    for (int i = 0; i < MAX_HEARD; i++)
      log_notice ("no %d", i);
    assert_int_equal (nr_heard, 0);
    log_release ();
    assert_int_equal (nr_heard, MAX_HEARD);
    for (int i = 0; i < MAX_HEARD; i++) {
      snprintf (text, sizeof text, "no %d", i);
      check_heard (i, LOG_LEVEL_NOTICE, text);
    }
  }
}

static void *
other_thread (void *arg)
{
  log_notice ("from another thread");
  return NULL;
}

static void
test_threads (void **state)
{
  pthread_t thread;

  log_hold ();
  log_notice ("held");
  assert_int_equal (pthread_create (&thread, NULL, other_thread, NULL), 0);
  pthread_join (thread, NULL);
  assert_int_equal (nr_heard, 1);
  check_heard (0, LOG_LEVEL_NOTICE, "from another thread");
  log_release ();
  check_heard (1, LOG_LEVEL_NOTICE, "held");
}

/* One that can't be kept is counted, and so not missed in silence.  This one
 * can't be formatted, since the locale C has no such character.
 */
static void
test_dropped (void **state)
{
  for (int round = 0; round < 2; round++) {
    nr_heard = 0;
    log_hold ();
    log_notice ("first");
    log_notice ("%ls", L"\x20ac");
    log_notice ("%ls", L"\x20ac");
    log_notice ("last");
    log_release ();
    assert_int_equal (nr_heard, 3);
    check_heard (0, LOG_LEVEL_NOTICE, "first");
    check_heard (1, LOG_LEVEL_NOTICE, "last");
    check_heard (2, LOG_LEVEL_NOTICE, "2 messages were dropped");
  }
}

/* ---- flush --------------------------------------------------------------- */

static unsigned nr_flushed, heard_at_flush;

static void
count_flush (void)
{
  nr_flushed++;
  heard_at_flush = nr_heard;
}

static void *
flush (void *arg)
{
  log_flush ();
  return NULL;
}

/* What a thread has said under a lock reaches the sink before it is flushed,
 * as others see the change when the lock is free.
 */
static void
test_flush (void **state)
{
  const struct timespec pause = { .tv_nsec = 10000000 };
  pthread_t thread;

  log_flush ();
  log_set_flush (count_flush);
  log_hold ();
  log_notice ("one");
  log_notice ("two");
  assert_int_equal (pthread_create (&thread, NULL, flush, NULL), 0);
  nanosleep (&pause, NULL);
  assert_int_equal (nr_flushed, 0);
  log_release ();
  pthread_join (thread, NULL);
  assert_int_equal (nr_flushed, 1);
  assert_int_equal (heard_at_flush, 2);

  /* A thread that does not get there is not waited for for ever. */
  log_hold ();
  log_notice ("three");
  assert_int_equal (pthread_create (&thread, NULL, flush, NULL), 0);
  pthread_join (thread, NULL);
  assert_int_equal (nr_flushed, 2);
  log_release ();
  log_set_flush (NULL);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown (test_direct, setup, teardown),
    cmocka_unit_test_setup_teardown (test_one_line, setup, teardown),
    cmocka_unit_test_setup_teardown (test_held, setup, teardown),
    cmocka_unit_test_setup_teardown (test_many, setup, teardown),
    cmocka_unit_test_setup_teardown (test_threads, setup, teardown),
    cmocka_unit_test_setup_teardown (test_dropped, setup, teardown),
    cmocka_unit_test_setup_teardown (test_flush, setup, teardown),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
