/* gpuraid: make a grid of tunings.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <string.h>

#include "bench/tuning-grid.h"
#include "bench/tuning.h"
#include "common/bits.h"
#include "gpu/kernel-row.h"

/* Of a multiprocessor, since Volta. */
#define NR_REGISTERS 65536u

struct grid {
  struct kernel_tuning *t;
  unsigned nr;
};

static void
add (struct grid *g, const struct kernel_tuning *t)
{
  char name[TUNING_LEN], other[TUNING_LEN];

  tuning_print (t, name);
  for (unsigned i = 0; i < g->nr; i++)
    if (strcmp (name, tuning_print (&g->t[i], other)) == 0)
      return;
  assert (g->nr < GRID_MAX);
  g->t[g->nr++] = *t;
}

/* Registers for a thread cost threads; between these values a kernel loses with
 * too few registers, or wins with more threads.  0: the compiler chooses, then
 * all it may have, which is not the same.  A small kernel never needs many.
 */
static void
add_frames (struct grid *g, const struct matrix *a, struct kernel_tuning t)
{
  static const unsigned small[] = { 0, 64, 40 };
  static const unsigned large[] = { 0, 255, 170, 128, 96, 64 };
  const bool is_small = a->rows * a->w <= 32;
  const unsigned *regs = is_small ? small : large;
  const unsigned nr = is_small ? ARRAY_LEN (small) : ARRAY_LEN (large);
  const unsigned most = a->packet_len > 0 ? 8 : 16;

  for (t.bytes = is_small || most == 8 ? 4 : 8; t.bytes <= most; t.bytes *= 2)
    for (t.block = 64; t.block <= 256; t.block *= 2)
      for (unsigned i = 0; i < nr; i++) {
        t.min_blocks = regs[i] == 0 ? 0
          : regs[i] == 255 ? 1 : NR_REGISTERS / t.block / regs[i];
        add (g, &t);
      }
}

/* Signed addresses free registers, which sums take. */
static void
add_sums (struct grid *g, const struct matrix *a, struct kernel_tuning t)
{
  static const unsigned multiply[] = { 0, 2, 4, 7 };
  const struct kernel_tuning base = t;

  for (unsigned s = 0; s < 2; s++) {
    t.signed_cells = s ? !base.signed_cells : base.signed_cells;
    if (a->packet_len > 0) {
      add (g, &t);
      continue;
    }
    for (t.share = KERNEL_SHARE_NONE; t.share <= KERNEL_SHARE_ODD; t.share++)
      for (unsigned i = 0; i < ARRAY_LEN (multiply); i++) {
        t.multiply = multiply[i];
        add (g, &t);
      }
  }
  t = base;
  for (t.group = 1; a->packet_len == 0 && t.group <= KERNEL_MAX_GROUP;
       t.group++)
    add (g, &t);
}

unsigned
grid_fill (enum grid_step step, const struct matrix *a,
           const struct kernel_tuning *base, struct kernel_tuning t[GRID_MAX])
{
  struct grid g = { .t = t };

  if (step == GRID_FRAMES)
    add_frames (&g, a, *base);
  else
    add_sums (&g, a, *base);
  return g.nr;
}
