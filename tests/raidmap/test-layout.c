/* gpuraid test: addresses to roles and slots, against md's formulas and
 * exhaustively.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/format-random.h"

static struct rng rng;

/* Where Linux md's left-symmetric layout (algorithm 2, mdadm's default)
 * puts the byte at addr, and the parity of its stripe.  Written from
 * the description of the algorithm: chunks go around the disks; parity
 * P walks from the last disk towards the first, one a stripe; with two
 * parities Q is on the disk after P; the data chunks of a stripe start
 * on the disk after the last parity.
 */
struct md_place {
  unsigned data_disk, p_disk, q_disk;
  uint64_t off;                 /* bytes from the start of the disk's data */
};

static void
md_left_symmetric (unsigned raid_disks, unsigned nr_parity, uint64_t chunk,
                   uint64_t addr, struct md_place *md)
{
  uint64_t data_disks = raid_disks - nr_parity;
  uint64_t chunk_number = addr / chunk;
  uint64_t stripe = chunk_number / data_disks;
  unsigned dd_idx = chunk_number % data_disks;

  md->p_disk = raid_disks - 1 - stripe % raid_disks;
  md->q_disk = md->p_disk;
  if (nr_parity == 2)
    md->q_disk = md->p_disk + 1 == raid_disks ? 0 : md->p_disk + 1;
  md->data_disk = (md->p_disk + nr_parity + dd_idx) % raid_disks;
  md->off = stripe * chunk + addr % chunk;
}

static void
compare_with_md (const struct geometry *g, uint64_t addr)
{
  struct md_place md;
  struct piece p;

  md_left_symmetric (g->k + g->m, g->m, g->chunk, addr, &md);
  layout_piece (g, addr, 1, &p);
  assert_int_equal (p.len, 1);
  assert_int_equal (layout_slot (g, p.stripe, p.role), md.data_disk);
  assert_int_equal (p.stripe * g->chunk + p.chunk_off, md.off);
  assert_int_equal (layout_slot (g, p.stripe, g->k), md.p_disk);
  if (g->m == 2)
    assert_int_equal (layout_slot (g, p.stripe, g->k + 1), md.q_disk);
}

/* Byte by byte over a whole turn of the smallest geometries, at the
 * edges of chunks over a turn of all, and anywhere.
 */
static void
test_md (void **state)
{
  for (unsigned m = 1; m <= 2; ++m)
    for (unsigned k = 1; k + m <= MAX_SLOTS; ++k) {
      struct geometry g = { k, m, CHUNK_MIN_LEN << rng_below (&rng, 11), 0 };
      uint64_t nr_chunks = (uint64_t) (k + m + 1) * k;

      for (uint64_t c = 0; c < nr_chunks; ++c) {
        compare_with_md (&g, c * g.chunk);
        compare_with_md (&g, c * g.chunk + rng_below (&rng, g.chunk));
        compare_with_md (&g, (c + 1) * g.chunk - 1);
      }
      for (unsigned i = 0; i < 1000; ++i)
        compare_with_md (&g, rng_bits (&rng, 63));
      if (k <= 3) {
        g.chunk = CHUNK_MIN_LEN;
        for (uint64_t a = 0; a < nr_chunks * g.chunk; ++a)
          compare_with_md (&g, a);
      }
    }
}

/* The formula of raidmap/layout/layout.h, with signed arithmetic. */
static unsigned
slow_slot (int k, int m, int64_t stripe, int role)
{
  int64_t s = (role + m - 1 - stripe) % (k + m);

  return s < 0 ? s + k + m : s;
}

static void
test_slots (void **state)
{
  for (unsigned k = 1; k < MAX_SLOTS; ++k)
    for (unsigned m = 1; k + m <= MAX_SLOTS; ++m) {
      struct geometry g = { k, m, 4096, 0 };

      for (unsigned s = 0; s <= 2 * (k + m); ++s) {
        uint64_t seen = 0;

        for (unsigned role = 0; role < k + m; ++role) {
          unsigned slot = layout_slot (&g, s, role);

          assert_int_equal (slot, slow_slot (k, m, s, role));
          assert_int_equal (layout_role (&g, s, slot), role);
          assert_true (slot < k + m);
          seen |= BIT (slot);
        }
        assert_true (seen == LOW_BITS (k + m));
      }
      for (unsigned i = 0; i < 4; ++i) {
        uint64_t s = rng_bits (&rng, 63);
        unsigned role = rng_below (&rng, k + m);

        assert_int_equal (layout_slot (&g, s, role), slow_slot (k, m, s, role));
        assert_int_equal (layout_role (&g, s, layout_slot (&g, s, role)),
                          role);
      }
    }
}

/* Fixed slots: by the text of layout.h, with a list of the others. */
static void
check_fixed (const struct geometry *g)
{
  const unsigned n = g->k + g->m;
  unsigned rotating[MAX_SLOTS], fixed[MAX_SLOTS], nr = 0, nr_fixed = 0;
  struct geometry base = *g;

  for (unsigned slot = 0; slot < n; ++slot)
    if (g->fixed >> slot & 1)
      fixed[nr_fixed++] = slot;
    else
      rotating[nr++] = slot;
  base.m -= nr_fixed;
  base.fixed = 0;
  for (uint64_t s = 0; s <= 2 * n; ++s)
    for (unsigned role = 0; role < n; ++role) {
      const unsigned slot = role < nr ?
        rotating[layout_slot (&base, s, role)] : fixed[role - nr];

      assert_int_equal (layout_slot (g, s, role), slot);
      assert_int_equal (layout_role (g, s, slot), role);
    }
}

static void
test_fixed (void **state)
{
  static const unsigned md[4][4] = {    /* left-symmetric-6, 2 + 2 */
    { 0, 1, 2, 3 }, { 2, 0, 1, 3 }, { 1, 2, 0, 3 }, { 0, 1, 2, 3 },
  };
  struct geometry g;

  for (unsigned i = 0; i < 3000; ++i) {
    random_geometry (&rng, &g);
    check_fixed (&g);
  }
  /* What is added at the end moves nothing. */
  for (unsigned i = 0; i < 3000; ++i) {
    random_geometry (&rng, &g);
    if (g.k + g.m < MAX_SLOTS) {
      struct geometry more = g;
      const uint64_t s = rng_bits (&rng, 63);

      more.fixed |= BIT (g.k + g.m);
      more.m++;
      for (unsigned role = 0; role < g.k + g.m; ++role)
        assert_int_equal (layout_slot (&more, s, role),
                          layout_slot (&g, s, role));
      assert_int_equal (layout_slot (&more, s, g.k + g.m), g.k + g.m);
    }
  }
  g = (struct geometry) { .k = 2, .m = 2, .fixed = 8 };
  for (unsigned s = 0; s < 4; ++s)
    for (unsigned role = 0; role < 4; ++role)
      assert_int_equal (layout_slot (&g, s, role), md[s][role]);
}

/* Walk the array block by block: each address has one place, in order,
 * and the other way round.
 */
static void
test_bijection (void **state)
{
  for (unsigned k = 1; k <= 12; ++k)
    for (unsigned m = 1; m <= 4; ++m)
      for (uint32_t chunk = 4096; chunk <= 16384; chunk *= 2) {
        struct geometry g = { k, m, chunk, (uint64_t) 30 * k * chunk };
        uint64_t addr = 0;

        assert_int_equal (layout_nr_stripes (&g), 30);
        for (unsigned s = 0; s < 30; ++s)
          for (unsigned role = 0; role < k; ++role)
            for (uint32_t off = 0; off < chunk; off += 1024, addr += 1024) {
              struct piece p;

              layout_piece (&g, addr, 1, &p);
              assert_int_equal (p.stripe, s);
              assert_int_equal (p.role, role);
              assert_int_equal (p.chunk_off, off);
              assert_int_equal (layout_address (&g, s, role, off), addr);
            }
        assert_int_equal (addr, g.size);
      }
}

/* The pieces of a run follow each other, none crosses a chunk, and none
 * could be longer.
 */
static void
test_pieces (void **state)
{
  for (unsigned i = 0; i < 20000; ++i) {
    struct geometry g;
    struct piece p;
    uint64_t off, len;

    random_geometry (&rng, &g);
    off = rng_bits (&rng, 62);
    len = 1 + rng_below (&rng, 10 * (uint64_t) g.chunk);
    while (len > 0) {
      layout_piece (&g, off, len, &p);
      assert_int_equal (layout_address (&g, p.stripe, p.role, p.chunk_off),
                        off);
      assert_true (p.role < g.k);
      assert_true (p.len > 0 && p.len <= len);
      assert_true ((uint64_t) p.chunk_off + p.len <= g.chunk);
      assert_true (p.len == len || p.chunk_off + p.len == g.chunk);
      off += p.len;
      len -= p.len;
    }
  }
}

static void
test_nr_stripes (void **state)
{
  struct geometry g = { 4, 2, 65536, 4096 };

  assert_int_equal (layout_nr_stripes (&g), 1);
  g.size = 4 * 65536;
  assert_int_equal (layout_nr_stripes (&g), 1);
  g.size += 4096;
  assert_int_equal (layout_nr_stripes (&g), 2);
  g.size = LAYOUT_MAX_SIZE;
  assert_int_equal (layout_nr_stripes (&g), UINT64_C (1) << 45);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_md),
    cmocka_unit_test (test_slots),
    cmocka_unit_test (test_fixed),
    cmocka_unit_test (test_bijection),
    cmocka_unit_test (test_pieces),
    cmocka_unit_test (test_nr_stripes),
  };

  rng = rng_start ();
  return cmocka_run_group_tests (tests, NULL, NULL);
}
