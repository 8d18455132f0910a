/* gpuraid scan: the arrays that members make.
 *
 * What an array is, and whether it can be opened, is decided as the server
 * does it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>
#include <string.h>

#include "cli/offline/scan.h"
#include "common/log.h"

static const uuid_bytes *
array_of (const struct scanned *m)
{
  return &found_newest (&m->f)->array_uuid;
}

static bool
is_of (const struct scanned *a, const struct scanned *b)
{
  return memcmp (array_of (a), array_of (b), sizeof (uuid_bytes)) == 0;
}

unsigned
scan_slot (const struct superblock *sb, const struct scanned *m)
{
  const int dev =
    membership_find (sb->device, &found_newest (&m->f)->member_uuid);

  return dev == -1 ? SLOT_NONE : sb->device[dev].slot;
}

static int
by_slot (const void *va, const void *vb, void *opaque)
{
  const struct scanned *const *a = va, *const *b = vb;

  return (int) scan_slot (opaque, *a) - (int) scan_slot (opaque, *b);
}

int
scan_array_make (struct scan_array *a, const struct scan *s, size_t i)
{
  memset (a, 0, sizeof *a);
  for (size_t j = 0; j < i; j++)
    if (is_of (s->member[j], s->member[i]))
      return 0;
  a->member = calloc (s->nr, sizeof *a->member);
  a->found = calloc (s->nr, sizeof *a->found);
  a->d = calloc (1, sizeof *a->d);
  if (a->member == NULL || a->found == NULL || a->d == NULL) {
    log_error ("calloc: %m");
    return -1;
  }
  for (size_t j = i; j < s->nr; j++)
    if (is_of (s->member[j], s->member[i])) {
      const struct superblock *sb = found_newest (&s->member[j]->f);

      if (a->sb == NULL ||
          sb->record.self.ballot.epoch > a->sb->record.self.ballot.epoch)
        a->sb = sb;
      a->member[a->nr++] = s->member[j];
    }
  qsort_r (a->member, a->nr, sizeof *a->member, by_slot, (void *) a->sb);
  for (size_t j = 0; j < a->nr; j++)
    a->found[j] = a->member[j]->f;
  membership_open (a->found, a->nr, DEGRADED_ALLOW, a->d);
  return 0;
}

void
scan_array_free (struct scan_array *a)
{
  free (a->member);
  free (a->found);
  free (a->d);
}
