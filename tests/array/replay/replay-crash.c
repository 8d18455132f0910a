/* gpuraid test: one crash, and what is made of it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/array/replay/replay-crash.h"

struct crash c;
struct replay r;

void
begin_crash (unsigned k, unsigned m, unsigned rows_per_chunk, uint64_t tail)
{
  crash_begin (&c, k, m, rows_per_chunk);
  for (unsigned slot = 0; slot < k + m; slot++)
    crash_add_member (&c, slot, tail);
}

void
add_block (unsigned member, uint64_t seq, uint64_t row, uint64_t roles,
           bool bad)
{
  crash_add_entry (crash_add_record (&c, member, seq, 0), row, 1, roles, 0,
                   bad);
}

void
expect_row (uint64_t row, const char *kinds)
{
  static const char letter[] = {
    [REPLAY_IN_PLACE] = '.', [REPLAY_RING] = 'R', [REPLAY_ZERO] = '0',
    [REPLAY_ERASED] = 'X', [REPLAY_DIRECT] = 'D',
  };
  const struct replay_run *run = replay_find (&r, row);
  char got[MAX_SLOTS + 1] = "";

  assert_int_equal (run != NULL, kinds != NULL);
  if (run == NULL)
    return;
  for (unsigned slot = 0; slot < c.g.k + c.g.m; slot++)
    got[slot] = letter[run->source[slot].kind];
  assert_string_equal (got, kinds);
}

const struct replay_source *
source_of (uint64_t row, unsigned slot)
{
  return &replay_find (&r, row)->source[slot];
}
