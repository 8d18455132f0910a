/* gpuraid: layouts that have grown: every block has one use, nothing moves,
 * and as much is gained as fits.
 *
 * run-tests: no-thread
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/bits.h"
#include "raidmap/bitmap.h"
#include "raidmap/limits.h"
#include "raidmap/superblock.h"
#include "raidmap/table.h"
#include "tests/format-random.h"
#include "tests/seed.h"

static struct rng rng;

/* What a block of the member is used for: a number that no other use has. */
struct uses {
  uint64_t *use, nr;
};

static void
use (struct uses *u, uint64_t off, uint64_t len, uint64_t what)
{
  assert_true (off % BLOCK_LEN == 0 && len % BLOCK_LEN == 0);
  assert_true ((off + len) / BLOCK_LEN <= u->nr);
  for (uint64_t b = off / BLOCK_LEN; b < (off + len) / BLOCK_LEN; b++) {
    assert_int_equal (u->use[b], 0);
    u->use[b] = what + (b - off / BLOCK_LEN);
  }
}

enum { SB = 1, RING = 1 << 20, TABLE = 1 << 21, BITMAP = 1 << 22,
       DATA = 1 << 23 };

/* Each use has its own blocks, all in a member of this many bytes. */
static struct uses
map (const struct geometry *g, const struct member_layout *l, uint64_t size)
{
  struct uses u = { .nr = size / BLOCK_LEN };

  u.use = calloc (u.nr, sizeof *u.use);
  assert_non_null (u.use);
  for (unsigned copy = 0; copy < SB_NR_COPIES; copy++)
    use (&u, layout_sb_off (size, copy), SB_LEN, SB + copy);
  use (&u, l->ring_off, l->ring_len, RING);
  for (uint64_t p = 0; p < table_nr_pages (l); p++)
    for (unsigned place = 0; place < 2; place++)
      use (&u, table_page_off (l, p, place), TABLE_PAGE_LEN,
           TABLE + 2 * p + place);
  for (uint64_t p = 0; p < bitmap_nr_pages (l); p++)
    for (unsigned place = 0; place < 2; place++)
      use (&u, bitmap_page_off (l, p, place), BITMAP_PAGE_LEN,
           BITMAP + 2 * p + place);
  for (uint64_t pos = 0; pos < l->data_len; pos += g->chunk) {
    assert_true (layout_data_run (l, pos, g->chunk) == g->chunk);
    use (&u, layout_data_off (l, pos), g->chunk, DATA + pos / BLOCK_LEN);
  }
  return u;
}

/* Runs are as long as their part, and what they say is together is. */
static void
check_runs (const struct geometry *g, const struct member_layout *l)
{
  unsigned nr = 0;

  for (uint64_t pos = 0, len; pos < l->data_len; pos += len, nr++) {
    len = layout_data_run (l, pos, l->data_len - pos);
    assert_true (len > 0 && len % g->chunk == 0);
    assert_true (layout_data_off (l, pos) + len - g->chunk ==
                 layout_data_off (l, pos + len - g->chunk));
  }
  assert_int_equal (nr, l->nr_grown + 1);
  for (uint64_t at = 0, len; at < table_len (l); at += len) {
    len = table_run (l, at);
    assert_true (len > 0 && at + len <= table_len (l));
    assert_true (table_off (l, at) + len - TABLE_PAGE_LEN ==
                 table_page_off (l, (at + len) / (2 * TABLE_PAGE_LEN) - 1, 1));
  }
}

/* What was used stays where it is, and keeps its use. */
static void
check_kept (const struct uses *before, const struct uses *after)
{
  for (uint64_t b = 0; b < before->nr; b++)
    if (before->use[b] >= RING)
      assert_int_equal (before->use[b], after->use[b]);
}

static void
check_superblock (const struct geometry *g, const struct member_layout *l)
{
  struct superblock *sb = calloc (2, sizeof *sb), *back = sb + 1;
  uint8_t buf[SB_LEN];
  const char *why;
  struct sb_shape e;

  assert_non_null (sb);
  random_superblock (&rng, sb);
  memset (sb->device, 0, sizeof sb->device);
  memset (&sb->record, 0, sizeof sb->record);
  memset (sb->lost, 0, sizeof sb->lost);
  memset (&sb->scrub, 0, sizeof sb->scrub);
  sb->code = CODE_RS;
  sb->w = 8;
  sb->g = *g;
  sb->l = *l;
  sb->l.nr_grown = 0;
  memset (sb->l.grown, 0, sizeof sb->l.grown);
  sb->incompat = SB_INCOMPAT_MULTIHOST;
  sb->checksum = l->table_len > 0;
  sb->consistency = l->ring_len > 0;
  undo_shape (sb);
  sb_get_shape (sb, &e);
  e.nr_grown = l->nr_grown;
  memcpy (e.grown, l->grown, sizeof e.grown);
  sb_set_shape (sb, &e);
  sb->lost[SB_MAX_LOST_GROWN - 1] = (struct lost_blocks) { .mask = 1 };
  superblock_encode (sb, buf);
  assert_int_equal (superblock_decode (buf, sb->copy, back, &why), SB_OK);
  assert_memory_equal (&back->l, l, sizeof *l);
  assert_int_equal (back->lost[SB_MAX_LOST_GROWN - 1].mask, 1);
  sb_get_shape (back, &e);
  assert_int_equal (e.size, g->size);
  assert_int_equal (e.nr_grown, l->nr_grown);
  assert_int_equal (back->incompat, SB_INCOMPAT_MULTIHOST |
                    (l->nr_grown ? SB_INCOMPAT_GROWN : 0));

  if (l->nr_grown) {
    sb->lost[SB_MAX_LOST_GROWN] = (struct lost_blocks) { .mask = 1 };
    assert_non_null (superblock_check (sb));
    sb->lost[SB_MAX_LOST_GROWN].mask = 0;
    assert_null (superblock_check (sb));
    sb->l.grown[0] += BLOCK_LEN / 2;
    assert_non_null (superblock_check (sb));
    sb->l.grown[0] = sb->l.data_len;
    assert_non_null (superblock_check (sb));
  }
  sb->l = *l;
  sb->incompat ^= SB_INCOMPAT_GROWN;
  assert_non_null (superblock_check (sb));
  free (sb);
}

/* The least member with which something is gained, by trying. */
static void
check_need (const struct geometry *g, const struct member_layout *l,
            uint64_t need)
{
  struct geometry g2 = *g;
  struct member_layout l2 = *l;
  uint64_t again;

  assert_int_equal (layout_grow (&g2, &l2, need - BLOCK_LEN, &again), -1);
  assert_int_equal (again, need);
  assert_memory_equal (&l2, l, sizeof l2);
  assert_int_equal (layout_grow (&g2, &l2, need, &again), 0);
  assert_int_equal (g2.size, g->size + (uint64_t) g->k * g->chunk);
}

static void
grow_often (unsigned ring_blocks, bool checksums)
{
  struct geometry g = { .k = 1 + rng_below (&rng, 3), .m = 1,
                        .chunk = 4096u << rng_below (&rng, 3) };
  const uint64_t first = 1 + rng_below (&rng, 40);
  struct member_layout l;
  uint64_t need, size;
  struct uses before, after;

  assert_int_equal (layout_fit (&g, UINT64_MAX / 4, first * g.k * g.chunk,
                                ring_blocks * BLOCK_LEN, checksums, &l,
                                &need), 0);
  assert_int_equal (layout_end (&l), need);
  size = need;
  before = map (&g, &l, size);
  for (unsigned i = 0; i < LAYOUT_MAX_GROWN; i++) {
    assert_int_equal (layout_grow (&g, &l, size, &need), -1);
    check_need (&g, &l, need);
    size = need + rng_below (&rng, 100) * BLOCK_LEN;
    assert_int_equal (layout_grow (&g, &l, size, &need), 0);
    assert_int_equal (l.nr_grown, i + 1);
    assert_null (layout_check (&g, &l));
    assert_true (layout_end (&l) <= size);
    assert_int_equal (g.size, l.data_len / g.chunk * g.k * g.chunk);
    /* One more stripe would not fit. */
    l.data_len += g.chunk;
    assert_true (layout_end (&l) > size);
    l.data_len -= g.chunk;
    after = map (&g, &l, size);
    check_kept (&before, &after);
    check_runs (&g, &l);
    check_superblock (&g, &l);
    free (before.use);
    before = after;
  }
  free (before.use);
  assert_int_equal (layout_grow (&g, &l, UINT64_MAX, &need), -1);
  assert_true (need == UINT64_MAX);
}

static void
test_parts (void **state)
{
  limits.page_regions = 3;
  limits.table_page_entries = 7;
  limits.region_min_len = 8192;
  limits.grow_min_len = 1;
  for (unsigned i = 0; i < 300; i++)
    grow_often (i % 2 ? 600 : 0, i / 2 % 2);
  limits = default_limits;
}

/* The last stripe was not exported whole: it is, with the next one. */
static void
test_rest (void **state)
{
  struct geometry g = { .k = 2, .m = 1, .chunk = 65536 };
  struct member_layout l;
  uint64_t need;

  assert_int_equal (layout_fit (&g, UINT64_MAX / 4, 200000, 0, 1, &l, &need),
                    0);
  assert_int_equal (layout_grow (&g, &l, layout_end (&l), &need), -1);
  assert_int_equal (g.size, 200000 / 4096 * 4096);
  assert_int_equal (layout_grow (&g, &l, need, &need), 0);
  assert_int_equal (g.size, 4 * 65536 + 2 * (2 << 20));
}

/* What rounding left over is not gained later. */
static void
test_rounding (void **state)
{
  for (unsigned i = 0; i < 20000; i++) {
    struct geometry g = { .k = 4, .m = 2, .chunk = 4096u << i % 11 };
    struct member_layout l;
    uint64_t need, size = (4 << 20) + rng_bits (&rng, 36);

    if (layout_fit (&g, size, 0, 0, i % 2, &l, &need) == -1)
      continue;
    size += rng_bits (&rng, 36);
    if (layout_grow (&g, &l, size, &need) == 0)
      assert_int_equal (layout_grow (&g, &l, size, &need), -1);
  }
}

/* The largest members and arrays that there can be. */
static void
test_large (void **state)
{
  for (unsigned i = 0; i < 2000; i++) {
    struct geometry g = { 0 };
    struct member_layout l;
    uint64_t need;

    random_geometry (&rng, &g);
    if (layout_fit (&g, UINT64_MAX, BLOCK_LEN + rng_bits (&rng, 62), 0,
                    i % 2, &l, &need) == -1)
      continue;
    for (unsigned j = 0; j < 3; j++)
      if (layout_grow (&g, &l, rng_bits (&rng, 64), &need) == 0) {
        assert_null (layout_check (&g, &l));
        assert_true (layout_end (&l) <= LAYOUT_MAX_SIZE);
      }
  }
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_parts),
    cmocka_unit_test (test_rest),
    cmocka_unit_test (test_rounding),
    cmocka_unit_test (test_large),
  };

  rng.state = test_seed (argc > 1 ? argv[1] : NULL);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
