/* gpuraid test: a member on a server that loses what was not flushed, and what
 * was said.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/bits.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "member/nbd/nbd.h"
#include "tests/member/nbd-lossy.h"
#include "tests/scratch.h"
#include "tests/seed.h"

struct loop *lossy_loop;
struct member *m;
uint8_t *want;
uint64_t longest_pause;
static uint64_t random_state;

/* The member's thread writes messages too. */
static pthread_mutex_t said_lock = PTHREAD_MUTEX_INITIALIZER;
static char said[8192], details[8192];
static unsigned nr_tries;       /* to connect */

uint64_t
draw_below (uint64_t n)
{
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state % n;
}

/* retry_at was set by this thread. */
static void
note_try (void)
{
  const uint64_t at = nbd_of (m)->retry_at, now = running_now ();

  nr_tries++;
  if (at > now)
    longest_pause = MAX (longest_pause, at - now);
}

static void
sink (enum log_level level, const char *fmt, va_list args)
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&said_lock);
  char *to = level == LOG_LEVEL_DEBUG ? details : said;
  const size_t len = strlen (to);

  vsnprintf (to + len, sizeof said - len, fmt, args);
  if (strstr (to + len, "can't connect"))
    note_try ();
}

bool
was_said (const char *text)
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&said_lock);

  return strstr (said, text) != NULL;
}

int
begin_lossy (void **state)
{
  scratch_start ();
  log_set_sink (sink);
  said[0] = details[0] = '\0';
  nr_tries = longest_pause = 0;
  lossy_loop = loop_threads_new ();
  want = calloc (1, SIZE);
  assert_non_null (lossy_loop);
  random_state = test_seed (NULL) * 2 + 1;
  nbd_store_new (SIZE);
  nbd_store_start ();
  m = member_open (nbd_store_uri, 0, 0);
  assert_non_null (m);
  return 0;
}

int
finish_lossy (void **state)
{
  member_close (m);
  m = NULL;
  nbd_look_ns = UINT64_C (3000000000);
  nbd_silent_ns = UINT64_C (30000000000);
  loop_free (lossy_loop);
  nbd_store_end ();
  free (want);
  scratch_end ();
  return 0;
}

int
one (enum io_kind kind, void *buf, uint64_t len, uint64_t off)
{
  struct nbd_io w;

  nbd_io_start (&w, lossy_loop, m, kind, buf, len, off, 1);
  return nbd_io_wait (&w);
}

void
assert_on_disk (void)
{
  uint8_t *got = malloc (SIZE);
  int fd = open ("disks/disk", O_RDONLY);

  assert_int_equal (read (fd, got, SIZE), SIZE);
  close (fd);
  for (uint64_t b = 0; b < SIZE; b += 4096)
    if (memcmp (got + b, want + b, 4096) != 0)
      fail_msg ("block %llu is not what was flushed",
                (unsigned long long) b / 4096);
  free (got);
}

unsigned
tries (void)
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&said_lock);

  return nr_tries;
}

bool
has_details (const char *text)
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&said_lock);

  return strstr (details, text) != NULL;
}
