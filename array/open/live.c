/* gpuraid: is an array in use by a server on another host?
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "array/membership/rules.h"
#include "array/open/live.h"
#include "array/stores/copies.h"
#include "common/bits.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/plant.h"

/* Of the copies that are sound: the greatest epoch accepted, or of all. */
static uint64_t
epoch_of (const struct found *f, bool accepted_only)
{
  uint64_t epoch = 0;

  for (unsigned c = 0; c < SB_NR_COPIES; c++)
    if (f->result[c] == SB_OK &&
        (!accepted_only || c == SB_A2 || c == SB_B2))
      epoch = MAX (epoch, f->sb[c].record.self.ballot.epoch);
  return epoch;
}

/* A stop only writes A2 and B2, so the others count where they are newer. */
bool
live_has_beat (const struct found *f)
{
  const uint64_t accepted = epoch_of (f, true);

  for (unsigned c = 0; c < SB_NR_COPIES; c++)
    if (f->result[c] == SB_OK && (c == SB_A2 || c == SB_B2) && f->sb[c].beat)
      return true;
  for (unsigned c = 0; c < SB_NR_COPIES; c++)
    if (f->result[c] == SB_OK && f->sb[c].beat &&
        f->sb[c].record.self.ballot.epoch > accepted)
      return true;
  return false;
}

/* The copy that shows that another server writes, or NULL.  One that was not
 * sound before, as it could not be read, says so only if it is newer.
 */
static const struct superblock *
changed (const struct found *before, const struct found *now)
{
  const uint64_t newest = epoch_of (before, false);

  for (unsigned c = 0; c < SB_NR_COPIES; c++) {
    const struct superblock *was = &before->sb[c], *sb = &now->sb[c];

    if (now->result[c] == SB_OK &&
        (before->result[c] == SB_OK ?
         was->beat != sb->beat ||
         !ballot_equal (&was->record.self.ballot, &sb->record.self.ballot) :
         sb->record.self.ballot.epoch > newest))
      return sb;
  }
  return NULL;
}

int
live_look (struct member *m, const struct found *before,
           char host[SB_HOST_LEN + 1])
{
  CLEANUP_FREE struct found *now = calloc (1, sizeof *now);
  const struct superblock *sb;

  if (now == NULL) {
    log_error ("calloc: %m");
    return ENOMEM;
  }
  /* One that can't be read now shows nothing. */
  if (copies_read (m, now, NULL) != 0 || (sb = changed (before, now)) == NULL)
    return 0;
  strcpy (host, sb->host);
  return EBUSY;
}

int
live_wait (struct member *const *m, const struct found *before, unsigned nr,
           const char *path, unsigned *which, char host[SB_HOST_LEN + 1])
{
  const struct timespec second = { .tv_sec = 1 };

  log_notice ("%s: its array was not stopped, or another server uses it: "
              "waiting %u seconds to see which", path, LIVE_WAIT_S);
  for (unsigned waited = 0; waited < LIVE_WAIT_S; waited++) {
    nanosleep (&second, NULL);
    for (*which = 0; *which < nr; (*which)++) {
      const int err = live_look (m[*which], &before[*which], host);

      if (err)
        return err;
    }
  }
  return 0;
}

/* What another server sent last may have arrived only now.  What is read from
 * now on must stay when a member's server restarts.  One that can't flush now
 * can't later, when that has a consequence.
 */
static void
make_stable (const struct assembly *a)
{
  for (unsigned i = 0; i < a->nr_members; i++) {
    struct member *m = a->member[i].member;

    if (!m->readonly)
      m->ops->flush (m);
  }
}

int
live_check (const struct assembly *a, const struct found *found)
{
  CLEANUP_FREE struct member **m = calloc (a->nr_members + 1, sizeof *m);
  const char *path = NULL;
  char host[SB_HOST_LEN + 1];
  uint64_t newest = 0;
  unsigned which;
  int err;

  if (m == NULL) {
    log_error ("calloc: %m");
    return -1;
  }
  /* One that was taken out still has the beat of that time. */
  for (unsigned i = 0; i < a->nr_members; i++)
    newest = MAX (newest, epoch_of (&found[i], true));
  for (unsigned i = 0; i < a->nr_members; i++) {
    m[i] = a->member[i].member;
    if (path == NULL && live_has_beat (&found[i]) &&
        epoch_of (&found[i], false) >= newest &&
        !(PLANTED ("beat-unlooked") && !m[i]->async))
      path = m[i]->path;
  }
  if (path == NULL)
    return 0;
  err = live_wait (m, found, a->nr_members, path, &which, host);
  if (err == EBUSY)
    log_error ("%s: in use by another server%s%s: stop the array there "
               "(gpuraid stop)", m[which]->path, host[0] ? ", on host " : "",
               host);
  if (err)
    return -1;
  make_stable (a);
  return 0;
}
