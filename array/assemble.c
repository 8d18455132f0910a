/* gpuraid: make an array from members, before anything runs.
 *
 * Reads what is on the members and calls array/membership to decide.  Then
 * checks what that cannot know: the given keys, absent members, and an
 * unclean stop.  Reports everything in one line.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array/assemble.h"
#include "array/code.h"
#include "array/copies.h"
#include "array/dirty-read.h"
#include "common/bits.h"
#include "common/cleanup.h"
#include "common/crc32c.h"
#include "common/log.h"
#include "common/random.h"

/* Remarks added to the decision's message, separated by "; ". */
struct remarks {
  char text[1024];
  size_t len;
};

static void remark (struct remarks *r, const char *fmt, ...)
  __attribute__ ((format (printf, 2, 3)));

static void
remark (struct remarks *r, const char *fmt, ...)
{
  va_list args;
  int n;

  va_start (args, fmt);
  n = vsnprintf (r->text + r->len, sizeof r->text - r->len, fmt, args);
  va_end (args);
  if (n > 0)
    r->len = MIN (r->len + n, sizeof r->text - 1);
}

void
assembly_free (struct assembly *a)
{
  for (unsigned i = 0; i < a->nr_members; i++) {
    member_close (a->member[i].member);
    free (a->member[i].page_place);
  }
  free (a->member);
  free (a->found);
  free (a->page);
  memset (a, 0, sizeof *a);
}

/* The listed paths that were not opened. */
static void
remark_absent (const struct config *c, struct member *const *members,
               unsigned nr, struct remarks *rem)
{
  bool first = true;

  for (unsigned i = 0; i < c->nr_members; i++) {
    bool there = false;

    for (unsigned j = 0; j < nr; j++)
      there |= strcmp (c->member[i], members[j]->path) == 0;
    if (there)
      continue;
    remark (rem, "%s%s", first ? "not there: " : ", ", c->member[i]);
    first = false;
  }
}

static bool
is_too_short (struct member *m, const struct found *f)
{
  const struct superblock *sb = found_newest (f);

  return sb && m->ops->size (m) < sb->l.data_off + sb->l.data_len +
    2 * SB_LEN;
}

/* Take over the members, except the unusable ones. */
static int
take_members (struct assembly *a, struct member **members, unsigned nr,
              struct remarks *rem)
{
  unsigned i = 0;

  a->member = calloc (nr + 1, sizeof *a->member);
  a->found = calloc (nr + 1, sizeof *a->found);
  if (a->member == NULL || a->found == NULL) {
    log_error ("calloc: %m");
    goto err;
  }
  for (; i < nr; i++) {
    struct member *m = members[i];
    struct found *f = &a->found[a->nr_members];
    int err = copies_read (m, f, NULL);
    const char *sep = rem->len ? "; " : "";

    if (err)
      remark (rem, "%s%s: can't be read: %s", sep, m->path, strerror (err));
    else if (is_too_short (m, f))
      remark (rem, "%s%s: is shorter than it was", sep, m->path);
    else {
      a->member[a->nr_members++].member = m;
      continue;
    }
    member_close (m);
  }
  return 0;

 err:
  for (; i < nr; i++)
    member_close (members[i]);
  return -1;
}

static int
check_key (const char *key, uint64_t given, uint64_t is)
{
  if (given == is)
    return 0;
  log_error ("%s=%" PRIu64 ": but the array has %s=%" PRIu64, key, given,
             key, is);
  return -1;
}

/* Check the given keys against those of the array. */
static int
check_keys (const struct config *c, const struct superblock *sb)
{
  if ((c->k && check_key ("k", c->k, sb->g.k) == -1) ||
      (c->m && check_key ("m", c->m, sb->g.m) == -1) ||
      (c->chunk && check_key ("chunk", c->chunk, sb->g.chunk) == -1) ||
      (c->size && check_key ("size", c->size, sb->g.size) == -1) ||
      (c->w && check_key ("w", c->w, sb->w) == -1) ||
      (c->journal_size &&
       check_key ("journal-size", c->journal_size, sb->l.ring_len) == -1))
    return -1;
  if ((c->code != -1 && c->code != (int) sb->code) ||
      (c->consistency != -1 && c->consistency != (int) sb->consistency) ||
      (c->checksum != -1 && c->checksum != (int) sb->checksum)) {
    log_error ("the array has code=%s consistency=%s checksum=%s",
               code_name (sb->code),
               sb->consistency == CONSISTENCY_NONE ? "none" : "journal",
               sb->checksum == CHECKSUM_NONE ? "none" : "crc32c");
    return -1;
  }
  return 0;
}

/* Check that this version can serve such an array. */
static int
check_version (const struct superblock *sb)
{
  uint8_t matrix[MAX_SLOTS * MAX_SLOTS / 4];

  code_parity (sb->code, sb->w, sb->g.k, sb->g.m, matrix);
  if (sb->matrix_crc != crc32c (matrix, sb->g.k * sb->g.m)) {
    log_error ("the array was made with another generator matrix");
    return -1;
  }
  return 0;
}

static void
fill_roles (struct assembly *a)
{
  for (unsigned i = 0; i < a->nr_members; i++) {
    struct assembled_member *am = &a->member[i];
    const struct found *f = &a->found[i];

    am->dev = f->dev == -1 ? SB_MAX_DEVICES : (unsigned) f->dev;
    switch (f->state) {
    case FOUND_CURRENT:
      am->role = MEMBER_CURRENT;
      break;
    case FOUND_STALE:
      am->role = a->force ? MEMBER_FAILED : MEMBER_TARGET;
      am->by_bitmap = f->covered;
      break;
    case FOUND_TARGET:
      am->role = MEMBER_TARGET;
      am->by_bitmap = f->covered;
      am->cursor = f->cursor;
      break;
    case FOUND_FAILED:
      am->role = MEMBER_FAILED;
      break;
    case FOUND_SPARE:
      am->role = MEMBER_IS_SPARE;
      break;
    case FOUND_UNLISTED:
    case FOUND_REFUSED:
      am->role = MEMBER_UNLISTED;
      break;
    }
    a->readonly |= am->member->readonly;
  }
}

/* If a slot is not active, rows in flight at an unclean stop may have lost
 * that slot's blocks; unless the journal has them.
 */
static int
check_unclean (const struct assembly *a, const struct membership_decision *d)
{
  unsigned slot = 0;

  if (!a->unclean || !d->degraded || a->force ||
      a->sb.consistency == CONSISTENCY_JOURNAL)
    return 0;
  while (d->active[slot] != -1)
    slot++;
  log_error ("the array was not shut down cleanly, and slot %u has no "
             "current member: what was being written then may be damaged "
             "(degraded=force opens it)", slot);
  return -1;
}

static int
decide (const struct config *c, struct assembly *a,
        struct membership_decision *d, struct remarks *rem)
{
  uint64_t session;

  membership_open (a->found, a->nr_members, c->degraded, d);
  if (!d->open) {
    log_error ("%s%s%s%s", d->why, rem->len ? " (" : "", rem->text,
               rem->len ? ")" : "");
    return -1;
  }
  if (check_keys (c, &d->sb) == -1 || check_version (&d->sb) == -1)
    return -1;
  a->sb = d->sb;
  a->force = c->degraded == DEGRADED_FORCE;
  fill_roles (a);
  if (dirty_read (a) == -1 || check_unclean (a, d) == -1 ||
      random_bytes (&session, sizeof session) == -1)
    return -1;
  membership_start (&a->membership, d, a->found, a->nr_members, session);
  return 0;
}

int
assemble (const struct config *c, struct member **members, unsigned nr,
          unsigned nr_absent, struct assembly *a)
{
  CLEANUP_FREE struct membership_decision *d = malloc (sizeof *d);
  struct remarks rem = { .len = 0 };

  memset (a, 0, sizeof *a);
  if (nr_absent)
    remark_absent (c, members, nr, &rem);
  if (take_members (a, members, nr, &rem) == -1)
    goto err;
  if (d == NULL) {
    log_error ("malloc: %m");
    goto err;
  }
  if (decide (c, a, d, &rem) == -1)
    goto err;
  if (a->readonly && !c->readonly)
    remark (&rem, "%sa member can't be written, so the array is read-only",
            rem.len ? "; " : "");
  if (d->notice[0] || rem.len)
    log_notice ("%s%s%s", d->notice, d->notice[0] && rem.len ? "; " : "",
                rem.text);
  return 0;

 err:
  assembly_free (a);
  return -1;
}
