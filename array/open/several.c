/* gpuraid: more than one whole array among the members.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>

#include "array/open/several.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "raidmap/uuid.h"

static const uuid_bytes *
array_of (const struct found *f)
{
  const struct superblock *sb = found_newest (f);

  return sb ? &sb->array_uuid : NULL;
}

static bool
is_of (const struct found *f, const uuid_bytes *uuid)
{
  return array_of (f) && uuid_equal (array_of (f), uuid);
}

/* Is there one of this array before it? */
static bool
was_seen (const struct found *found, unsigned i)
{
  for (unsigned j = 0; j < i; j++)
    if (is_of (&found[j], array_of (&found[i])))
      return true;
  return false;
}

/* How many members it has; 0 if it is not whole.  some has room for all. */
static unsigned
count_whole (const struct found *found, unsigned nr, const uuid_bytes *uuid,
             struct found *some, struct membership_decision *d)
{
  unsigned n = 0;

  for (unsigned i = 0; i < nr; i++)
    if (is_of (&found[i], uuid))
      some[n++] = found[i];
  membership_open (some, n, DEGRADED_ALLOW, d);
  return d->open && !d->degraded ? n : 0;
}

static bool
are_several (const struct found *found, unsigned nr)
{
  unsigned n = 0;

  for (unsigned i = 0; i < nr; i++)
    n += array_of (&found[i]) && !was_seen (found, i);
  return n > 1;
}

int
refuse_several (const struct found *found, unsigned nr)
{
  CLEANUP_FREE struct found *some = calloc (nr + 1, sizeof *some);
  CLEANUP_FREE struct membership_decision *d = malloc (sizeof *d);
  char first[UUID_TEXT_LEN], second[UUID_TEXT_LEN];
  unsigned nr_first = 0;

  if (!are_several (found, nr))
    return 0;
  if (some == NULL || d == NULL) {
    log_error ("calloc: %m");
    return -1;
  }
  for (unsigned i = 0; i < nr; i++) {
    unsigned n;

    if (array_of (&found[i]) == NULL || was_seen (found, i))
      continue;
    n = count_whole (found, nr, array_of (&found[i]), some, d);
    if (n && nr_first) {
      log_error ("the members are of two arrays that are whole: %s (%u "
                 "members) and %s (%u members): give uuid= of the one that is "
                 "meant, or leave out the members of the other", first,
                 nr_first, uuid_text (array_of (&found[i]), second), n);
      return -1;
    }
    if (n) {
      uuid_text (array_of (&found[i]), first);
      nr_first = n;
    }
  }
  return 0;
}
