/* gpuraid: a member that is there twice: itself, and a copy of it.
 *
 * Each number that is compared only grows on one member, so the copy that shows
 * less is from an earlier time.  Whether the one that stays is current is
 * decided later, as of any member.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "array/membership/older-copy.h"
#include "array/open/clones.h"
#include "common/bits.h"
#include "common/cleanup.h"
#include "raidmap/journal.h"
#include "raidmap/uuid.h"

#define READ_LEN (1u << 20)

/* What grows, the most significant first. */
enum { EPOCH, PROPOSED, STEP, STOP_OR_BEAT, RING, NR_NUMBERS };

bool
clones_are (const struct found *a, const struct found *b)
{
  const struct superblock *s = found_newest (a), *t = found_newest (b);

  return s && t && uuid_equal (&s->array_uuid, &t->array_uuid) &&
    uuid_equal (&s->member_uuid, &t->member_uuid);
}

static unsigned
slot_of (const struct superblock *sb)
{
  const int dev = membership_find (sb->device, &sb->member_uuid);

  return dev == -1 ? SLOT_NONE : sb->device[dev].slot;
}

/* The counter of the newest header.  False: one of them is bad, and what it had
 * is not known.
 */
static bool
ring_counter (struct member *m, const struct superblock *sb, uint64_t *counter)
{
  uint8_t buf[BLOCK_LEN] __attribute__ ((aligned (BLOCK_LEN)));
  const struct ring_id id = ring_id_of (sb, slot_of (sb));
  struct ring_header h;

  *counter = 0;
  for (unsigned which = 0; sb->l.ring_len && which < 2; which++) {
    if (m->ops->pread (m, buf, sizeof buf,
                       sb->l.ring_off + which * BLOCK_LEN) != 0 ||
        !ring_header_decode (buf, &id, which, &h))
      return false;
    *counter = MAX (*counter, h.counter);
  }
  return true;
}

static uint64_t
proposed_epoch (const struct found *f)
{
  uint64_t epoch = 0;

  for (unsigned c = 0; c < SB_NR_COPIES; c++)
    if (f->result[c] == SB_OK)
      epoch = MAX (epoch, f->sb[c].record.self.ballot.epoch);
  return epoch;
}

/* Within an epoch a stop comes last, and before it there may be beats. */
static uint64_t
stop_or_beat (const struct superblock *accepted)
{
  return accepted == NULL ? 0 : accepted->clean ? UINT64_MAX : accepted->beat;
}

/* False: something is bad, so it may be newer than it seems. */
static bool
count (struct member *m, const struct found *f, uint64_t number[NR_NUMBERS])
{
  const struct superblock *accepted = found_accepted (f);
  const struct superblock *sb = accepted ? accepted : found_newest (f);

  number[EPOCH] = accepted ? accepted->record.self.ballot.epoch : 0;
  number[PROPOSED] = proposed_epoch (f);
  number[STEP] = older_copy_step (f);
  number[STOP_OR_BEAT] = stop_or_beat (accepted);
  for (unsigned c = 0; c < SB_NR_COPIES; c++)
    if (f->result[c] != SB_OK)
      return false;
  return ring_counter (m, sb, &number[RING]);
}

/* All that lies before the data. */
static bool
are_equal (struct member *const m[2], const struct superblock *sb)
{
  CLEANUP_FREE uint8_t *a = aligned_alloc (BLOCK_LEN, READ_LEN);
  CLEANUP_FREE uint8_t *b = aligned_alloc (BLOCK_LEN, READ_LEN);

  if (a == NULL || b == NULL)
    return false;
  for (uint64_t off = 0; off < sb->l.data_off; off += READ_LEN) {
    const size_t len = MIN (READ_LEN, sb->l.data_off - off);

    if (m[0]->ops->pread (m[0], a, len, off) != 0 ||
        m[1]->ops->pread (m[1], b, len, off) != 0 || memcmp (a, b, len) != 0)
      return false;
  }
  return true;
}

static bool
is_type (const struct member *m, mode_t type)
{
  struct stat st;

  return stat (m->path, &st) == 0 && (st.st_mode & S_IFMT) == type;
}

int
clones_leave_out (struct member *const m[2], const struct found *const f[2],
                  const char **why)
{
  uint64_t number[2][NR_NUMBERS];

  for (unsigned i = 0; i < 2; i++)
    if (!count (m[i], f[i], number[i]))
      return -1;
  *why = "an older copy";
  for (unsigned n = 0; n < NR_NUMBERS; n++)
    if (number[0][n] != number[1][n])
      return number[0][n] < number[1][n] ? 0 : 1;
  if (!are_equal (m, found_newest (f[0])))
    return -1;
  *why = "a copy in a file";
  for (unsigned i = 0; i < 2; i++)
    if (is_type (m[i], S_IFREG) && is_type (m[!i], S_IFBLK))
      return i;
  return -1;
}
