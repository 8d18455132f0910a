/* gpuraid: what the loop on io_uring keeps in memory of a buffer: what was used
 * of it, until that is released; and that I/O finds the memory which comes
 * after that.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <dlfcn.h>
#include <errno.h>
#include <liburing.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "common/bits.h"
#include "common/log.h"
#include "tests/member/loop-both.h"

#define LEN (64 * MIB)
#define PIECE (2 * MIB)

/* ---- a kernel that refuses --------------------------------------------- */

static int sparse_result;       /* instead of the table; 0: it is made */
static int room = -1;           /* pieces that are still taken; -1: any */
static int update_result;       /* of those that are not taken */
static bool keeps;              /* nothing is unregistered */

/* In place of the library's. */
int
io_uring_register_buffers_sparse (struct io_uring *ring, unsigned nr)
{
  int (*real) (struct io_uring *, unsigned) =
    dlsym (RTLD_NEXT, "io_uring_register_buffers_sparse");

  return sparse_result ? sparse_result : real (ring, nr);
}

int
io_uring_register_buffers_update_tag (struct io_uring *ring, unsigned off,
                                      const struct iovec *iov,
                                      const __u64 *tags, unsigned nr)
{
  int (*real) (struct io_uring *, unsigned, const struct iovec *,
               const __u64 *, unsigned) =
    dlsym (RTLD_NEXT, "io_uring_register_buffers_update_tag");

  if (iov->iov_base ? room == 0 : keeps)
    return update_result;
  room -= iov->iov_base && room > 0;
  return real (ring, off, iov, tags, nr);
}

static char said[256];          /* the last message */

static void
hear (enum log_level level, const char *fmt, va_list args)
{
  vsnprintf (said, sizeof said, fmt, args);
}

/* Bytes that the kernel keeps in memory for this process. */
static uint64_t
pinned (void)
{
  FILE *fp = fopen ("/proc/self/status", "re");
  char line[256];
  unsigned long kib = 0;

  assert_non_null (fp);
  while (fgets (line, sizeof line, fp))
    if (sscanf (line, "VmPin: %lu", &kib) == 1)
      break;
  fclose (fp);
  return kib * UINT64_C (1024);
}

/* Write it to the member and read it. */
static void
use (uint8_t *p, unsigned seed)
{
  uint8_t *copy = buffer;

  memset (p, seed, BLOCK);
  assert_int_equal (run_io (members[0], IO_WRITE, 0, p, BLOCK), 0);
  memset (p, 0, BLOCK);
  assert_int_equal (run_io (members[0], IO_READ, 0, p, BLOCK), 0);
  memset (copy, seed, BLOCK);
  assert_memory_equal (p, copy, BLOCK);
}

/* The loop of a test, with LEN bytes. */
static struct loop *other;
static uint64_t before;         /* pinned () */

static uint8_t *
begin (void)
{
  uint8_t *p = mmap (NULL, LEN, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

  assert_ptr_not_equal (p, MAP_FAILED);
  before = pinned ();
  other = loop;
  loop = loop_uring_new ();
  assert_non_null (loop);
  loop->ops->add_buffer (loop, p, LEN);
  assert_int_equal (pinned (), before);
  return p;
}

/* The kernel may let go of pages a little later. */
static void
wait_pinned (uint64_t want)
{
  const struct timespec ms = { .tv_nsec = 1000000 };

  while (pinned () != want)
    nanosleep (&ms, NULL);
}

static void
end (uint8_t *p)
{
  loop_free (loop);
  wait_pinned (before);
  loop = other;
  munmap (p, LEN);
}

static void
test_used (void **state)
{
  uint8_t *p = begin ();

  for (int i = 0; i < 2; i++) {
    use (p, 1 + i);
    use (p + PIECE - BLOCK, 3 + i);
    assert_int_equal (pinned (), before + PIECE);
  }
  /* In two pieces. */
  use (p + 5 * PIECE - BLOCK / 2, 5);
  assert_int_equal (pinned (), before + PIECE);
  use (p + LEN - BLOCK, 6);
  assert_int_equal (pinned (), before + 2 * PIECE);
  end (p);
}

static void
test_released (void **state)
{
  uint8_t *p = begin ();

  for (int i = 0; i < 3; i++) {
    use (p, 1 + i);
    use (p + 3 * PIECE, 11 + i);
    use (p + LEN - BLOCK, 21 + i);
    assert_int_equal (pinned (), before + 3 * PIECE);
    /* Part of a piece is all of it. */
    assert_int_equal (loop->ops->release_buffer (loop, p, 3 * PIECE + 1), 0);
    assert_int_equal (madvise (p, 4 * PIECE, MADV_DONTNEED), 0);
    assert_int_equal (p[0], 0);
    assert_int_equal (p[3 * PIECE], 0);
    wait_pinned (before + PIECE);
    assert_int_equal (p[LEN - BLOCK], 21 + i);
    if (i == 1) {
      assert_int_equal (loop->ops->release_buffer (loop, p, LEN), 0);
      assert_int_equal (madvise (p, LEN, MADV_DONTNEED), 0);
      wait_pinned (before);
    }
  }
  use (p + LEN - BLOCK, 31);
  use (p, 32);
  assert_int_equal (pinned (), before + 2 * PIECE);
  end (p);
}

/* Before Linux 5.19. */
static void
test_no_table (void **state)
{
  uint8_t *p;

  sparse_result = -EINVAL;
  p = begin ();
  sparse_result = 0;
  use (p, 1);
  assert_int_equal (pinned (), before);
  assert_int_equal (loop->ops->release_buffer (loop, p, LEN), 0);
  use (p, 2);
  assert_string_equal (said, "io_uring: no memory is registered: no table for "
                       "it, which needs Linux 5.19: Invalid argument");
  end (p);
}

/* What is said is how much is registered, not where the next one is. */
static void
test_no_more (void **state)
{
  static const int results[] = { -ENOMEM, 0 };
  static const char *const why[] = { "Cannot allocate memory",
                                     "Resource temporarily unavailable" };
  char want[256];

  for (unsigned i = 0; i < ARRAY_LEN (results); i++) {
    uint8_t *p = begin ();

    update_result = results[i];
    room = 2;
    use (p + 20 * PIECE, 1);
    use (p + LEN - BLOCK, 2);
    said[0] = '\0';
    use (p + 9 * PIECE, 3);
    snprintf (want, sizeof want, "io_uring: 2 pieces of memory, of 2 MiB each, "
              "are registered, and no more: %s", why[i]);
    assert_string_equal (said, want);
    assert_int_equal (pinned (), before + 2 * PIECE);
    /* There may be room again, once some is given back. */
    room = -1;
    use (p + 9 * PIECE, 4);
    assert_int_equal (pinned (), before + 2 * PIECE);
    assert_int_equal (loop->ops->release_buffer (loop, p + LEN - PIECE, PIECE),
                      0);
    wait_pinned (before + PIECE);
    use (p + 9 * PIECE, 5);
    assert_int_equal (pinned (), before + 2 * PIECE);
    end (p);
  }
}

/* What can't be released is registered as it was, and the caller knows. */
static void
test_kept (void **state)
{
  static const int results[] = { -ENOMEM, 0 };

  for (unsigned i = 0; i < ARRAY_LEN (results); i++) {
    uint8_t *p = begin ();

    use (p, 1);
    update_result = results[i];
    keeps = true;
    assert_int_not_equal (loop->ops->release_buffer (loop, p, LEN), 0);
    keeps = false;
    use (p, 2);
    assert_int_equal (pinned (), before + PIECE);
    assert_int_equal (loop->ops->release_buffer (loop, p, LEN), 0);
    wait_pinned (before);
    end (p);
  }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_used),
    cmocka_unit_test (test_released),
    cmocka_unit_test (test_no_table),
    cmocka_unit_test (test_no_more),
    cmocka_unit_test (test_kept),
  };

  log_set_sink (hear);
  return with_uring () ? cmocka_run_group_tests (tests, start_uring,
                                                 stop_loop) : 0;
}
