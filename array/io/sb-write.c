/* gpuraid: write superblock copies of one member.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/io/progress.h"
#include "array/io/sb-write.h"
#include "array/io/store.h"
#include "common/plant.h"

static void
add_copy (struct array *a, struct store *st, struct superblock *sb,
          enum sb_copy copy)
{
  struct member *m = st->seat->m;

  sb->copy = copy;
  superblock_encode (sb, store_add (st, layout_sb_off (m->ops->size (m),
                                                       copy)));
}

static void
add_pair (struct array *a, struct store *st, struct superblock *sb,
          enum sb_copy first, enum sb_copy second, bool swap)
{
  add_copy (a, st, sb, swap ? second : first);
  add_copy (a, st, sb, swap ? first : second);
}

void
sb_write (struct array *a, struct seat *s, enum sb_pairs pairs, bool clean,
          void (*done) (struct array *a, struct store *st))
{
  struct store *st = store_new (a, s, done);
  struct superblock sb = a->sb;

  sb.clean = clean;
  sb.beat = a->ending ||
    (a->stopping && PLANTED ("beat-cleared-early")) ? 0 : a->beat;
  membership_fill (&a->membership, s->dev, &sb);
  progress_fill (a, s, &sb);
  st->tag = pairs;
  if (pairs & SB_PROPOSED)
    add_pair (a, st, &sb, SB_A1, SB_B1, s->b_first[0]);
  if (pairs & SB_ACCEPTED)
    add_pair (a, st, &sb, SB_A2, SB_B2, s->b_first[1]);
  store_start (a, st);
}

void
sb_written (struct array *a, struct store *st)
{
  if (st->error)
    return;
  if (st->tag & SB_PROPOSED)
    st->seat->b_first[0] = false;
  if ((st->tag & SB_ACCEPTED) == 0)
    return;
  st->seat->b_first[1] = false;
  progress_stored (a, st->seat);
}
