/* gpuraid: an array that has lost too many members keeps no client waiting.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "array/array.h"
#include "array/cache/cache.h"
#include "array/create/create.h"
#include "array/main-loop.h"
#include "array/open/assemble.h"
#include "array/request/request.h"
#include "array/sums/sums.h"
#include "member/sim/sim.h"
#include "tests/gf-reference.h"

#define K 2u
#define M 1u
#define CHUNK (64u << 10)
#define NR_LINES 2u             /* that may be dirty with the least cache */

static uint64_t seed;

struct fixture {
  struct sim *sim;
  struct sim_disk *disk[K + M];
  struct array *a;
};

/* ---- one thread for all ---------------------------------------------- */

static void
woken (struct request *r)
{
  *(bool *) r->opaque = true;
}

/* Until the client has something to do, at most a minute. */
static void
step_until (struct fixture *f, const bool *end)
{
  const uint64_t limit = sim_now (f->sim) + UINT64_C (60000000000);

  while (!*end)
    if (!sim_step (f->sim) || sim_now (f->sim) > limit)
      fail_msg ("a request does not end");
}

static int
finish (struct fixture *f, struct request *r)
{
  bool awake = false;

  r->opaque = &awake;
  r->wake = woken;
  while (!request_go (r)) {
    step_until (f, &awake);
    awake = false;
  }
  return r->error;
}

static int
ask (struct fixture *f, enum request_kind kind, void *buf, uint64_t len,
     uint64_t off, unsigned flags)
{
  struct request r;

  request_init (&r, f->a, kind);
  r.buf = buf;
  r.len = len;
  r.off = off;
  r.flags = flags;
  return finish (f, &r);
}

static int
make_writable (struct fixture *f)
{
  struct request r;

  request_init (&r, f->a, REQUEST_COMMAND);
  r.command.kind = COMMAND_WRITABLE;
  return finish (f, &r);
}

/* ---- start and end --------------------------------------------------- */

static void
open_array (struct fixture *f, struct config *c)
{
  struct member *m[K + M];
  struct assembly as;

  for (unsigned i = 0; i < K + M; i++)
    assert_non_null (m[i] = sim_disk_open (f->disk[i], 0));
  assert_int_equal (create_on_members (c, m), 0);
  assert_int_equal (assemble (c, m, K + M, NULL, &as), 0);
  c->cache_len = cache_min_len (&as.sb.g) + sums_memory (&as.sb.g, 0);
  assert_non_null (f->a = array_new (c, &as, coder_isal_new (0)));
  assert_int_equal (array_start (f->a, sim_loop (f->sim)), 0);
  assert_int_equal (make_writable (f), 0);
}

static int
start (void **state)
{
  struct fixture *f = calloc (1, sizeof *f);
  struct config c;

  assert_non_null (f);
  assert_non_null (f->sim = sim_new (seed));
  for (unsigned i = 0; i < K + M; i++) {
    char name[16];

    snprintf (name, sizeof name, "disk%u", i);
    assert_non_null (f->disk[i] = sim_disk_new (f->sim, name, 8 * MIB));
  }
  config_init (&c);
  c.k = K;
  c.m = M;
  c.chunk = CHUNK;
  config_geometry_defaults (&c);
  open_array (f, &c);
  config_free (&c);
  *state = f;
  return 0;
}

static int
end (void **state)
{
  struct fixture *f = *state;

  while (!stop_step (f->a))
    (void) sim_step (f->sim);
  array_free (f->a);
  sim_free (f->sim);
  free (f);
  return 0;
}

static void
lose_two (struct fixture *f)
{
  f->disk[0]->dead = f->disk[1]->dead = true;
}

/* ---- what must end --------------------------------------------------- */

static uint8_t buf[CHUNK];

static void
make_dirty (struct fixture *f)
{
  for (unsigned i = 0; i < NR_LINES; i++)
    assert_int_equal (ask (f, REQUEST_WRITE, buf, 4096,
                           (uint64_t) i * K * CHUNK, 0), 0);
}

static void
test_flush (void **state)
{
  struct fixture *f = *state;

  make_dirty (f);
  lose_two (f);
  assert_int_equal (ask (f, REQUEST_FLUSH, NULL, 0, 0, 0), EIO);
  assert_int_equal (ask (f, REQUEST_FLUSH, NULL, 0, 0, 0), EIO);
}

static void
test_fua (void **state)
{
  struct fixture *f = *state;

  lose_two (f);
  assert_int_equal (ask (f, REQUEST_WRITE, buf, 512, 1024, ARRAY_FUA), EIO);
  assert_int_equal (ask (f, REQUEST_WRITE, buf, 512, 1024, 0), EIO);
}

static void
test_zero (void **state)
{
  struct fixture *f = *state;

  lose_two (f);
  assert_int_equal (ask (f, REQUEST_ZERO, NULL, 6 * K * CHUNK, 0, 0), EIO);
}

/* Many at once: some wait for a line, some for memory, some for another's
 * flush.  Then what is there can still be read.
 */
static void
test_crowd (void **state)
{
  enum { NR = 40 };
  struct fixture *f = *state;
  static struct request r[NR];
  bool awake[NR] = { false }, done[NR];
  uint8_t got[4096];

  memset (buf, 7, sizeof buf);
  assert_int_equal (ask (f, REQUEST_WRITE, buf, 4096, 20 * K * CHUNK,
                         ARRAY_FUA), 0);
  make_dirty (f);
  lose_two (f);
  for (unsigned i = 0; i < NR; i++) {
    request_init (&r[i], f->a, i % 4 == 3 ? REQUEST_FLUSH : REQUEST_WRITE);
    r[i].buf = buf;
    r[i].off = i / 4 * K * CHUNK + i % 4 * 1000;
    r[i].len = 4096;
    r[i].flags = i % 3 ? ARRAY_FUA : 0;
    r[i].opaque = &awake[i];
    r[i].wake = woken;
    done[i] = request_go (&r[i]);
  }
  for (unsigned i = 0; i < NR; i++) {
    while (!done[i]) {
      step_until (f, &awake[i]);
      awake[i] = false;
      done[i] = request_go (&r[i]);
    }
    if (r[i].flags & ARRAY_FUA || r[i].kind == REQUEST_FLUSH)
      assert_int_equal (r[i].error, EIO);
  }
  f->disk[0]->dead = f->disk[1]->dead = false;
  assert_int_equal (ask (f, REQUEST_READ, got, 4096, 20 * K * CHUNK, 0), 0);
  assert_memory_equal (got, buf, 4096);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown (test_flush, start, end),
    cmocka_unit_test_setup_teardown (test_fua, start, end),
    cmocka_unit_test_setup_teardown (test_zero, start, end),
    cmocka_unit_test_setup_teardown (test_crowd, start, end),
  };

  seed = ref_seed ();
  return cmocka_run_group_tests (tests, NULL, NULL);
}
