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
#include <sys/stat.h>

#include "array/open/assemble.h"
#include "array/open/bitmaps.h"
#include "array/open/clones.h"
#include "array/open/live.h"
#include "array/open/settle.h"
#include "array/open/several.h"
#include "array/plan/code.h"
#include "array/stores/copies.h"
#include "common/bits.h"
#include "common/bytes/random.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/plant.h"
#include "raidmap/uuid.h"

/* Remarks added to the decision's message, separated by "; ". */
struct remarks {
  char text[1024];
  size_t len;
  struct left_out *left_out;    /* members of which they are */
  unsigned nr_strangers;        /* listed files and disks that are there, and
                                 * are no members of this array */
};

static void remark (struct remarks *r, const char *fmt, ...)
  __attribute__ ((format (printf, 2, 3)));
static void leave_out (struct remarks *r, const char *path, const char *fmt,
                       ...) __attribute__ ((format (printf, 3, 4)));

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

/* A listed member that is not used. */
static void
leave_out (struct remarks *r, const char *path, const char *fmt, ...)
{
  char why[sizeof r->text];
  va_list args;

  va_start (args, fmt);
  vsnprintf (why, sizeof why, fmt, args);
  va_end (args);
  remark (r, "%s%s: %s", r->len ? "; " : "", path, why);
  left_out_add (r->left_out, path, why);
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
  left_out_free (&a->left_out);
  memset (a, 0, sizeof *a);
}

/* A listed file or disk that is there, and is no member of this array. */
static void
remark_stranger (struct remarks *r, const char *path, const char *what)
{
  leave_out (r, path, "%s", what);
  r->nr_strangers++;
}

static bool
is_opened (const char *path, struct member *const *members, unsigned nr)
{
  for (unsigned i = 0; i < nr; i++)
    if (strcmp (path, members[i]->path) == 0)
      return true;
  return false;
}

/* A file that open_members did not open because it is too small; else NULL. */
static const char *
why_too_small (const char *path)
{
  struct stat st;

  if (stat (path, &st) == -1 || !S_ISREG (st.st_mode) ||
      st.st_size >= SB_NR_COPIES * SB_LEN)
    return NULL;
  return st.st_size == 0 ? "file is empty" : "too small for a member";
}

static void
remark_left_out (const struct config *c, const struct absent *absent,
                 struct remarks *rem)
{
  bool first = true;

  for (unsigned i = 0; i < c->nr_members; i++)
    if (absent->unwritable[i]) {
      char why[ARRAY_WHY_LEN];

      remark (rem, "%s%s (%s)", !first ? ", " : rem->len ?
              "; left out, can't be written: " : "left out, can't be written: ",
              c->member[i], absent->unwritable[i]);
      snprintf (why, sizeof why, "can't be written (%s)",
                absent->unwritable[i]);
      left_out_add (rem->left_out, c->member[i], why);
      first = false;
    }
}

/* The listed paths that were not opened. */
static void
remark_absent (const struct config *c, struct member *const *members,
               unsigned nr, const struct absent *absent, struct remarks *rem)
{
  bool first = true;

  for (unsigned i = 0; i < c->nr_members; i++)
    if (!is_opened (c->member[i], members, nr) &&
        !(absent->left_out && absent->unwritable[i]) &&
        !why_too_small (c->member[i])) {
      remark (rem, "%s%s", first ? "not there: " : ", ", c->member[i]);
      left_out_add (rem->left_out, c->member[i], "not there");
      first = false;
    }
  for (unsigned i = 0; i < c->nr_members; i++) {
    const char *why = why_too_small (c->member[i]);

    if (why && !is_opened (c->member[i], members, nr))
      remark_stranger (rem, c->member[i], why);
  }
  if (absent->left_out)
    remark_left_out (c, absent, rem);
}

static bool
is_too_short (struct member *m, const struct found *f)
{
  const struct superblock *sb = found_newest (f);

  return sb && m->ops->size (m) < layout_end (&sb->l);
}

/* Why it is no member of any array; NULL if it is one.  A newer version's
 * superblock is for membership_open to refuse.
 */
static const char *
why_no_member (const struct found *f)
{
  bool damaged = false;

  for (unsigned c = 0; c < SB_NR_COPIES; c++) {
    if (f->result[c] == SB_OK || f->result[c] == SB_TOO_NEW)
      return NULL;
    damaged |= f->result[c] == SB_CORRUPT;
  }
  return damaged ? "all copies of its superblock are damaged"
    : "no superblock";
}

/* Take over the members, except the unusable ones. */
static int
take_members (struct assembly *a, struct member **members, unsigned nr,
              struct remarks *rem)
{
  CLEANUP_FREE int *unflushed = calloc (nr + 1, sizeof *unflushed);
  unsigned i = 0;

  a->member = calloc (nr + 1, sizeof *a->member);
  a->found = calloc (nr + 1, sizeof *a->found);
  if (a->member == NULL || a->found == NULL || unflushed == NULL) {
    log_error ("calloc: %m");
    goto err;
  }
  settle (members, nr, unflushed);
  for (; i < nr; i++) {
    struct member *m = members[i];
    struct found *f = &a->found[a->nr_members];
    int err = unflushed[i] && !PLANTED ("open-flush-ignored") ?
      unflushed[i] : copies_read (m, f, NULL);

    if (err)
      leave_out (rem, m->path, "can't be %s: %s",
                 unflushed[i] ? "flushed" : "read", strerror (err));
    else if (is_too_short (m, f))
      leave_out (rem, m->path, "is shorter than it was");
    else if (why_no_member (f))
      remark_stranger (rem, m->path, why_no_member (f));
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

/* The array of a member; NULL if only a newer version knows. */
static const uuid_bytes *
array_of (const struct assembly *a, unsigned i)
{
  const struct superblock *sb = found_newest (&a->found[i]);

  return sb ? &sb->array_uuid : NULL;
}

/* The array that more of the members are of than of any other.  False: there
 * is none, and membership_open refuses the members.
 */
static bool
find_main (const struct assembly *a, uuid_bytes *uuid)
{
  uuid_bytes u[CONFIG_MAX_MEMBERS];
  unsigned nr = 0;

  for (unsigned i = 0; i < a->nr_members; i++)
    if (array_of (a, i))
      u[nr++] = *array_of (a, i);
  return uuid_most (u, nr, uuid);
}

/* Leave out the members of other arrays. */
static void
drop_foreign (struct assembly *a, struct remarks *rem)
{
  uuid_bytes uuid;
  unsigned nr = 0;

  if (!find_main (a, &uuid))
    return;
  for (unsigned i = 0; i < a->nr_members; i++) {
    if (array_of (a, i) && !uuid_equal (array_of (a, i), &uuid)) {
      remark_stranger (rem, a->member[i].member->path,
                       "a member of another array");
      member_close (a->member[i].member);
      continue;
    }
    if (nr != i) {
      a->member[nr] = a->member[i];
      a->found[nr] = a->found[i];
    }
    nr++;
  }
  a->nr_members = nr;
}

static void
forget (struct assembly *a, unsigned i)
{
  member_close (a->member[i].member);
  free (a->member[i].page_place);
  a->nr_members--;
  memmove (&a->member[i], &a->member[i + 1],
           (a->nr_members - i) * sizeof *a->member);
  memmove (&a->found[i], &a->found[i + 1],
           (a->nr_members - i) * sizeof *a->found);
}

/* Of a member and its copy leave out the one that is a copy.  If it can't be
 * told both stay, and membership_open refuses them.
 */
static void
drop_copies (struct assembly *a, struct remarks *rem)
{
  for (unsigned i = 1; i < a->nr_members; i++)
    for (unsigned j = 0; j < i; j++) {
      struct member *m[2] = { a->member[j].member, a->member[i].member };
      const struct found *f[2] = { &a->found[j], &a->found[i] };
      const char *why;
      int which;

      if (!clones_are (f[0], f[1]))
        continue;
      which = clones_leave_out (m, f, &why);
      if (which == -1)
        continue;
      leave_out (rem, m[which]->path, "left out: %s of %s", why,
                 m[!which]->path);
      forget (a, which ? i : j);
      i--;
      break;
    }
}

/* Leave out those that would be used, but lack room for what was added when the
 * array had grown: an old image may.  True if there is one.
 */
static bool
drop_short (struct assembly *a, const struct superblock *sb,
            struct remarks *rem)
{
  unsigned nr = 0;

  for (unsigned i = 0; i < a->nr_members; i++) {
    struct member *m = a->member[i].member;
    const enum found_state state = a->found[i].state;

    if (m->ops->size (m) < layout_end (&sb->l) &&
        (state == FOUND_CURRENT || state == FOUND_STALE ||
         state == FOUND_TARGET)) {
      leave_out (rem, m->path, "is too short for the array, which has grown");
      member_close (m);
      continue;
    }
    if (nr != i) {
      a->member[nr] = a->member[i];
      a->found[nr] = a->found[i];
    }
    nr++;
  }
  if (nr == a->nr_members)
    return false;
  a->nr_members = nr;
  return true;
}

static int
check_key (const char *key, uint64_t given, uint64_t is)
{
  if (given == is)
    return 0;
  log_error ("%s=%" PRIu64 ": but the array has %s=%" PRIu64 ": leave the key "
             "out", key, given, key, is);
  return -1;
}

/* A member may be added, or taken back: the k and m of before do until no
 * record has them any more.
 */
static int
check_m (const struct config *c, const struct superblock *sb)
{
  const struct record *r = &sb->record;

  return c->m == 0 || c->m == r->base.m || c->m == r->parent.m ? 0 :
    check_key ("m", c->m, sb->g.m);
}

static int
check_k (const struct config *c, const struct superblock *sb)
{
  const struct record *r = &sb->record;

  if (c->k == 0 || c->k == r->base.k || c->k == r->parent.k ||
      (r->self.widening && c->k + 1 == sb->g.k))
    return 0;
  return check_key ("k", c->k, sb->g.k);
}

/* Check the given keys against those of the array. */
static int
check_keys (const struct config *c, const struct superblock *sb)
{
  if (check_k (c, sb) == -1 || check_m (c, sb) == -1 ||
      (c->chunk && check_key ("chunk", c->chunk, sb->g.chunk) == -1) ||
      (c->size && !(sb->l.nr_grown && c->size < sb->g.size) &&
       check_key ("size", c->size, sb->g.size) == -1) ||
      (c->w && check_key ("w", c->w, sb->w) == -1) ||
      (c->journal_size &&
       check_key ("journal-size", c->journal_size, sb->l.ring_len) == -1))
    return -1;
  if (c->label[0] && strcmp (c->label, sb->label) != 0) {
    log_error ("label=%s: but the array has %s%s: leave the key out", c->label,
               sb->label[0] ? "label=" : "no label", sb->label);
    return -1;
  }
  if ((c->code != -1 && c->code != (int) sb->code) ||
      (c->consistency != -1 && c->consistency != (int) sb->consistency) ||
      (c->checksum != -1 && c->checksum != (int) sb->checksum)) {
    log_error ("the array has code=%s consistency=%s checksum=%s: leave these "
               "keys out",
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
  if (sb->matrix_crc !=
      code_parity_crc (sb->code, sb->w, sb->g.k, sb->g.m)) {
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

  drop_copies (a, rem);
  if (refuse_several (a->found, a->nr_members) == -1)
    return -1;
  drop_foreign (a, rem);
  if (live_check (a, a->found) == -1)
    return -1;
  membership_open (a->found, a->nr_members, c->degraded, d);
  if (d->open && drop_short (a, &d->sb, rem))
    membership_open (a->found, a->nr_members, c->degraded, d);
  if (!d->open) {
    log_error ("%s%s%s%s", d->why, rem->len ? " (" : "", rem->text,
               rem->len ? ")" : "");
    return -1;
  }
  if (check_version (&d->sb) == -1 ||
      check_keys (c, &d->sb) == -1)
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

/* They are not held, so that replace and add-parity can take them again. */
static void
close_unlisted (struct assembly *a)
{
  for (unsigned i = 0; i < a->nr_members;)
    if (a->found[i].state == FOUND_UNLISTED && a->found[i].dev == -1)
      forget (a, i);
    else
      i++;
}

/* The lines of notice; the remarks go to the last one. */
static void
report (char *notice, const char *remarks)
{
  char *end;

  while ((end = strchr (notice, '\n')) != NULL) {
    *end = '\0';
    log_notice ("%s", notice);
    notice = end + 1;
  }
  if (*notice || *remarks)
    log_notice ("%s%s%s", notice, *notice && *remarks ? "; " : "", remarks);
}

static void
explain_readonly (const struct config *c, const struct absent *absent,
                  struct assembly *a)
{
  const char *path = NULL;

  for (unsigned i = 0; absent && path == NULL && i < c->nr_members; i++)
    if (absent->unwritable[i])
      path = c->member[i];

  if (c->readonly)
    snprintf (a->readonly_why, sizeof a->readonly_why,
              "its members are open for reading only");
  else
    snprintf (a->readonly_why, sizeof a->readonly_why, "%s can't be written",
              path ? path : "a member");
}

int
assemble (const struct config *c, struct member **members, unsigned nr,
          const struct absent *absent, struct assembly *a)
{
  CLEANUP_FREE struct membership_decision *d = malloc (sizeof *d);
  struct remarks rem = { .left_out = &a->left_out };

  memset (a, 0, sizeof *a);
  if (absent)
    remark_absent (c, members, nr, absent, &rem);
  if (take_members (a, members, nr, &rem) == -1)
    goto err;
  if (d == NULL) {
    log_error ("malloc: %m");
    goto err;
  }
  if (decide (c, a, d, &rem) == -1)
    goto err;
  if (rem.nr_strangers)
    remark (&rem, d->degraded ?
            "; gpuraid replace rebuilds a missing member, with --force onto "
            "one that is not blank" : "; the array is complete without");
  if (a->readonly)
    explain_readonly (c, absent, a);
  if (a->readonly && !c->readonly)
    remark (&rem, "%s%s, so the array is read-only", rem.len ? "; " : "",
            a->readonly_why);
  report (d->notice, rem.text);
  close_unlisted (a);
  return 0;

 err:
  assembly_free (a);
  return -1;
}
