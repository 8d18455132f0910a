/* gpuraid: an older copy of a member.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/membership/older-copy.h"
#include "array/membership/rules.h"
#include "common/bits.h"
#include "common/plant.h"
#include "raidmap/uuid.h"

uint32_t
older_copy_own_step (const struct superblock *sb)
{
  const int dev = membership_find (sb->device, &sb->member_uuid);

  return dev == -1 ? 0 : sb->device[dev].step;
}

uint32_t
older_copy_step (const struct found *f)
{
  uint32_t step = 0;

  for (unsigned c = 0; c < SB_NR_COPIES; c++)
    if (f->result[c] == SB_OK &&
        (copy_is_accepted (c) || PLANTED ("copy-proposed-step")))
      step = MAX (step, older_copy_own_step (&f->sb[c]));
  return step;
}

/* Only a copy of this record, or of one that was to follow it: what is older
 * may know of a step from before a member was rebuilt.
 */
static bool
counts (const struct superblock *sb, const struct record *r)
{
  return ballot_equal (&sb->record.self.ballot, &r->self.ballot) ||
    ballot_equal (&sb->record.parent.ballot, &r->self.ballot);
}

/* What others may be told of it: if one copy alone has a step, and rots, the
 * member shows less.
 */
static uint32_t
durable_step (const struct found *f)
{
  uint32_t step = UINT32_MAX;

  if (PLANTED ("copy-step-one-place"))
    return older_copy_step (f);
  for (unsigned c = 0; c < SB_NR_COPIES; c++)
    if (f->result[c] == SB_OK && copy_is_accepted (c))
      step = MIN (step, older_copy_own_step (&f->sb[c]));
  return step == UINT32_MAX ? 0 : step;
}

/* What a copy knows of the others, and of its own member only what is durable:
 * not a step that it was only proposed.
 */
static void
learn (struct device *device, const struct superblock *from, uint32_t own)
{
  for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++)
    if (device[dev].state != DEVICE_NONE &&
        uuid_equal (&device[dev].uuid, &from->device[dev].uuid))
      device[dev].step =
        MAX (device[dev].step,
             uuid_equal (&device[dev].uuid, &from->member_uuid) ?
             MIN (own, from->device[dev].step) : from->device[dev].step);
}

void
older_copy_find (struct found *found, size_t nr, struct superblock *sb,
                 bool back)
{
  const int source = membership_find (sb->device, &sb->member_uuid);

  if (source != -1)
    sb->device[source].step = 0;
  for (size_t i = 0; i < nr; i++)
    for (unsigned c = 0; c < SB_NR_COPIES; c++)
      if (found[i].result[c] == SB_OK &&
          counts (&found[i].sb[c], &sb->record))
        learn (sb->device, &found[i].sb[c],
               copy_is_accepted (c) ? durable_step (&found[i]) : 0);
  for (size_t i = 0; i < nr; i++)
    found[i].older = (back && found[i].older && !PLANTED ("copy-back")) ||
      (found[i].dev != -1 && !PLANTED ("copy-step-ignored") &&
       older_copy_step (&found[i]) < sb->device[found[i].dev].step);
}
