/* gpuraid: random walks of arrays, by array/membership alone: sessions open
 * some of the members, write, lose and rebuild members, and crash anywhere, in
 * the middle of a superblock copy too.  An array that opens later must have
 * every acknowledged write on every member that counts as current, below every
 * cursor that counts, and everywhere on a member that the bitmap covers except
 * for the regions that it says were missed.
 *
 *   test-membership-walk [SEED|random [WALKS]]
 *
 * run-tests: no-thread
 * run-tests: fixed inputs=array,common,gf,member,raidmap,Makefile
 * run-tests: inputs=tests/array/membership,tests/?*.[ch]
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
#include "tests/array/membership/membership-world.h"
#include "tests/seed.h"

#ifdef __SANITIZE_THREAD__      /* there is one thread, and it is slow */
#define NR_WALKS 20
#else
#define NR_WALKS 400
#endif

static unsigned first_seed, nr_walks = NR_WALKS;

/* Is it a member now, so that the others can tell an old image of it? */
static bool
has_image (const struct world *w, unsigned i)
{
  const struct membership *ms = &w->ms;
  const int dev = membership_find (ms->device, &w->disk[i].sb[0].member_uuid);

  if (!ms->in_force || ms->session != w->session || dev == -1)
    return false;
  return ms->device[dev].state == DEVICE_REBUILDING ||
    (ms->device[dev].state == DEVICE_ACTIVE &&
     device_set_count (&ms->cur.self.active) > 1);
}

static void
walk (unsigned s)
{
  static const struct { unsigned k, m; } sizes[] = {
    { 1, 1 }, { 1, 2 }, { 2, 1 }, { 2, 2 }, { 3, 1 }, { 3, 2 }, { 4, 2 },
    { 2, 3 }, { 1, 3 },
  };
  static struct world w;
  unsigned size;

  below_seed (s);
  for (unsigned i = 0; i < 4; i++)
    size = below (ARRAY_LEN (sizes));
  memset (&w, 0, sizeof w);
  w.seed = s;
  w.at = "start";
  w.k = sizes[size].k;
  w.m = sizes[size].m;
  w.brief = below (2);
  w.adds_parity = below (2);
  w.adds_data = s % 8 == 0;
  w.nr = w.k + w.m + below (w.brief ? 2 : 4) + w.adds_parity + w.adds_data;
  w.nr = MIN (w.nr, 10);        /* their names end with one digit */
  w.nr_uuids = w.nr;
  for (unsigned slot = 0; slot < MAX_SLOTS; slot++)
    w.stays[slot] = MEMBERS_MAX;
  members_create (w.disk, w.nr, w.k, w.m, ++w.session);
  for (unsigned round = 0; round < 40; round++) {
    unsigned used = world_used (&w), mask = used;

    for (unsigned i = 0; i < w.nr; i++)
      if (below (w.adds_parity || w.adds_data ? 9 : w.brief ? 3 : 5) == 0)
        mask &= ~(1u << i);
    memset (&w.ms, 0, sizeof w.ms);
    world_session (&w, mask);
    world_check (&w);
    for (unsigned i = 0; i < w.nr; i++)
      if (has_image (&w, i))
        world_check_image (&w, i);
    world_check_rot (&w, round % w.nr);
  }
  world_check_twice (&w);
  world_fork (&w);
}

static void
test_walks (void **state)
{
  for (unsigned i = 0; i < nr_walks; i++)
    walk (first_seed + i);
  print_message ("%u opens, %u refused, %u records in force, %u crashes, "
                 "%u covered, %u cursors, %u replaced, %u with two, "
                 "%u images, %u rotted, %u in two ways, %u grown, %u not, "
                 "%u with parity added, %u taken back, %u active, "
                 "%u widened, %u taken back, %u to the end\n",
                 walked.opens, walked.refused, walked.in_force,
                 walked.crashes, walked.covered, walked.cursors,
                 walked.replaced, walked.two, walked.images, walked.rotted,
                 walked.forked, walked.grown, walked.not_grown,
                 walked.parity, walked.taken_back, walked.parity_active,
                 walked.widened, walked.narrowed, walked.wide);
  if (nr_walks >= 100)
    assert_true (walked.widened);
  if (nr_walks >= 20)
    assert_true (walked.covered && walked.cursors && walked.replaced &&
                 walked.two && walked.images && walked.rotted &&
                 walked.forked && walked.grown && walked.not_grown &&
                 walked.parity && walked.taken_back && walked.parity_active);
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_walks),
  };

  first_seed = test_seed (argc > 1 ? argv[1] : NULL);
  if (argc > 2)
    nr_walks = strtoul (argv[2], NULL, 10);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
