/* gpuraid: random I/O from several threads on both loops, against a model.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <string.h>

#include "tests/member/loop-both.h"
#include "tests/seed.h"

static unsigned seed;

struct lane {
  pthread_t thread;
  unsigned no, rnd;
  uint8_t model[NR_MEMBERS][LANE_BLOCKS];       /* each block's byte */
};

/* One I/O on blocks of its own among the round's: [b, b+n) of member mi. */
static void
lane_io (struct lane *l, struct test_io *t, struct group *g, unsigned mi,
         unsigned b, unsigned n, uint8_t *buf)
{
  uint64_t off = ((uint64_t) l->no * LANE_BLOCKS + b) * BLOCK;
  unsigned kind = rand_r (&l->rnd) % 10;

  if (kind < 4) {
    memset (buf, 0xdd, n * BLOCK);
    init_io (t, g, members[mi], IO_READ, off, buf, n * BLOCK);
  }
  else if (kind < 8) {
    uint8_t c = rand_r (&l->rnd);

    memset (buf, c, n * BLOCK);
    memset (&l->model[mi][b], c, n);
    init_io (t, g, members[mi], IO_WRITE, off, buf, n * BLOCK);
  }
  else if (kind == 8) {
    memset (&l->model[mi][b], 0, n);
    init_io (t, g, members[mi], rand_r (&l->rnd) % 2 ? IO_ZERO : IO_TRIM,
             off, NULL, n * BLOCK);
  }
  else
    init_io (t, g, members[mi], IO_FLUSH, 0, NULL, 0);
  if (kind < 8 && rand_r (&l->rnd) % 2)
    split_vector (t, &l->rnd);
}

static void
lane_check (struct lane *l, struct test_io *t)
{
  uint8_t *p = t->iov_before[0].iov_base;
  uint64_t block = t->io.off / BLOCK - l->no * LANE_BLOCKS;
  unsigned mi = 0;

  CHECK (t->io.error == 0);
  if (t->io.kind != IO_READ)
    return;
  while (members[mi] != t->io.member)
    ++mi;
  for (uint64_t i = 0; i < t->io.len; ++i)
    CHECK (p[i] == l->model[mi][block + i / BLOCK]);
}

static void *
lane_run (void *arg)
{
  struct lane *l = arg;
  struct group g = GROUP_INIT;
  struct test_io t[NR_MEMBERS * 4];
  uint8_t *buf = buffer + l->no * LANE_BUFFER;
  void *own = NULL;

  CHECK (posix_memalign (&own, BLOCK, LANE_BUFFER) == 0);
  for (int round = 0; round < 150; ++round) {
    unsigned nr = 0, used = 0;

    for (unsigned mi = 0; mi < NR_MEMBERS; ++mi) {
      unsigned b = 0;

      while (nr < (mi + 1) * 4) {
        unsigned n = 1 + rand_r (&l->rnd) % 3;

        b += rand_r (&l->rnd) % 12;
        lane_io (l, &t[nr++], &g, mi, b, n,
                 (round % 2 ? buf : (uint8_t *) own) + used * BLOCK);
        b += n;
        used += n;
      }
    }
    run_ios (t, nr);
    for (unsigned i = 0; i < nr; ++i)
      lane_check (l, &t[i]);
  }
  free (own);
  return NULL;
}

static void
test_random (void **state)
{
  struct lane lanes[NR_LANES];

  for (unsigned mi = 0; mi < NR_MEMBERS; ++mi)
    assert_int_equal (run_io (members[mi], IO_TRIM, 0, NULL, SIZE), 0);
  memset (lanes, 0, sizeof lanes);
  for (unsigned i = 0; i < NR_LANES; ++i) {
    lanes[i].no = i;
    lanes[i].rnd = seed + i;
    assert_int_equal (pthread_create (&lanes[i].thread, NULL, lane_run,
                                      &lanes[i]), 0);
  }
  for (unsigned i = 0; i < NR_LANES; ++i)
    pthread_join (lanes[i].thread, NULL);
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_random),
  };

  seed = test_seed (argc > 1 ? argv[1] : NULL);
  return run_on_both (tests) != 0;
}
