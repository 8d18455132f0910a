/* gpuraid: make a new array: check the members, and choose its size.
 *
 * No existing member is written before all members have been opened, locked
 * and checked.  array/create/write.c writes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "array/create/allocate.h"
#include "array/create/blank.h"
#include "array/create/create.h"
#include "array/create/in-use.h"
#include "common/bits.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "raidmap/journal.h"

struct creation {
  struct config c;              /* borrowed, with the defaults filled in */
  struct member *member[MAX_SLOTS];     /* NULL: still absent */
  bool made[MAX_SLOTS];
  struct alloc_taken taken[MAX_SLOTS];
  struct geometry g;
  struct member_layout l;
  uint64_t need;                /* bytes of an absent member; unset if there is
                                 * none */
};

int
create_is_wanted (const struct config *c)
{
  const struct member *dirty = NULL;
  const char *small = NULL;
  char why[BLANK_WHY_LEN], dirty_why[BLANK_WHY_LEN];
  int r = 1;

  for (unsigned i = 0; i < c->nr_members && r == 1; i++) {
    struct member *m = member_open (c->member[i],
                                    MEMBER_NOLOCK | MEMBER_LISTED, 0);
    int blank;

    if (m == NULL) {
      /* Don't create on a dead disk.  The open decides if the array can do
       * without it.
       */
      if (errno == ENXIO || errno == EIO)
        r = 0;
      else if (errno == ENODATA)
        small = c->member[i];
      else if (errno != ENOENT)
        r = -1;
      continue;
    }
    blank = member_has_superblock (m, why);
    if (blank != 0)
      r = 0;
    else if (dirty == NULL) {
      blank = member_is_blank (m, why);
      if (blank != 1) {
        dirty = m;
        strcpy (dirty_why, why);
        continue;
      }
    }
    member_close (m);
  }
  if (dirty && r == 1) {
    log_error ("%s: %s (gpuraid create --force takes it)", dirty->path,
               dirty_why);
    r = -1;
  }
  member_close ((struct member *) dirty);
  if (small && r == 1) {
    member_close (member_open (small, MEMBER_NOLOCK, 0));       /* reports */
    r = -1;
  }
  return r;
}

static int
check_journal (const struct config *c)
{
  const struct geometry g = { .chunk = c->chunk };
  const uint64_t least = journal_min_ring_len (&g);

  if (c->journal_size && c->consistency != CONSISTENCY_JOURNAL) {
    log_error ("journal-size= goes with consistency=journal only: leave it "
               "out, or give that");
    return -1;
  }
  if (c->journal_size && c->journal_size < least) {
    log_error ("journal-size=%" PRIu64 ": too small, at least %" PRIu64
               " is needed with this chunk=", c->journal_size, least);
    return -1;
  }
  return 0;
}

static int
check_config (const struct config *c)
{
  if (c->k == 0 || c->m == 0) {
    log_error ("k= and m= are needed to create an array (k=4 m=2: any 2 of 6 "
               "members may fail)");
    return -1;
  }
  if (c->w && c->code != CODE_CRS) {
    log_error ("w=%u: goes with code=crs only: give that too, or leave w= out",
               c->w);
    return -1;
  }
  if (c->nr_members != c->k + c->m) {
    log_error ("k=%u m=%u needs %u members, but %u %s given: %s", c->k, c->m,
               c->k + c->m, c->nr_members, c->nr_members == 1 ? "is" : "are",
               c->nr_members < c->k + c->m ? "name more" :
               "leave some out (gpuraid replace can use them later)");
    return -1;
  }
  return 0;
}

static int
open_existing (struct creation *cr)
{
  for (unsigned i = 0; i < cr->c.nr_members; i++) {
    const char *path = cr->c.member[i];

    cr->member[i] = member_open (path, 0, 0);
    if (cr->member[i] == NULL) {
      if (errno == ENXIO || errno == EIO)
        log_error ("open: %s: %m: leave it out, or name another", path);
      if (errno != ENOENT)
        return -1;
      if (cr->c.size == 0) {
        log_error ("%s: no such file (size= is needed to make it)", path);
        return -1;
      }
    }
    for (unsigned j = 0; j < i; j++)
      if (cr->member[i] && cr->member[j] &&
          cr->member[i]->ops->same (cr->member[i], cr->member[j])) {
        log_error ("%s and %s are the same file or disk: leave one out, or "
                   "name another", cr->c.member[j], path);
        return -1;
      }
  }
  return 0;
}

static const char *
last_part (const char *path)
{
  return strrchr (path, '/') + 1;
}

/* The folder of an absent member: st is what it is.  0, or -1 reported. */
static int
check_folder (const char *path, struct stat *st)
{
  CLEANUP_FREE char *folder = strndup (path, last_part (path) - path);
  struct stat link;

  if (folder == NULL) {
    log_error ("strndup: %m");
    return -1;
  }
  if (member_is_no_device (path)) {
    log_error ("%s: no such device", path);
    return -1;
  }
  if (lstat (path, &link) == 0) {
    log_error ("%s: is a symbolic link to a file that is not there: make that "
               "file, or name another", path);
    return -1;
  }
  if (stat (folder, st) == 0 && access (folder, W_OK | X_OK) == 0)
    return 0;
  log_error ("open: %s: %m%s", path, errno == ENOENT ?
             ": make its folder first" : errno == EACCES ?
             ": run this as root, or as the owner of the folder" : "");
  return -1;
}

/* Can the absent members be made? */
static int
check_absent (const struct creation *cr)
{
  struct stat folder[MAX_SLOTS];

  for (unsigned i = 0; i < cr->c.nr_members; i++) {
    const char *path = cr->c.member[i];

    if (cr->member[i])
      continue;
    if (check_folder (path, &folder[i]) == -1)
      return -1;
    for (unsigned j = 0; j < i; j++)
      if (cr->member[j] == NULL && folder[j].st_dev == folder[i].st_dev &&
          folder[j].st_ino == folder[i].st_ino &&
          strcmp (last_part (cr->c.member[j]), last_part (path)) == 0) {
        log_error ("%s and %s are the same file: leave one out, or name "
                   "another", cr->c.member[j], path);
        return -1;
      }
  }
  return 0;
}

static int
check_blank (const struct creation *cr)
{
  char why[BLANK_WHY_LEN];

  for (unsigned i = 0; i < cr->c.nr_members; i++)
    if (cr->member[i] && member_is_blank (cr->member[i], why) != 1) {
      log_error ("%s: %s (gpuraid create --force takes it, and what is on it "
                 "is lost; or leave it out)", cr->member[i]->path, why);
      return -1;
    }
  return 0;
}

/* Check that each existing member is large enough. */
static int
check_sizes (struct creation *cr)
{
  const struct member *least = NULL;
  uint64_t size = UINT64_MAX;

  for (unsigned i = 0; i < cr->c.nr_members; i++) {
    struct member *m = cr->member[i];

    if (m && m->ops->size (m) < size) {
      least = m;
      size = m->ops->size (m);
    }
  }
  /* Where all are absent they are as long as it takes. */
  cr->g = (struct geometry) { .k = cr->c.k, .m = cr->c.m,
                              .chunk = cr->c.chunk };
  if (layout_fit (&cr->g, size, cr->c.size, create_ring_len (&cr->c, size),
                  cr->c.checksum == CHECKSUM_CRC32C, &cr->l,
                  &cr->need) == 0)
    return 0;
  if (cr->need == UINT64_MAX)
    log_error ("size=%" PRIu64 " is too large for an array: give a smaller "
               "one", cr->c.size);
  else
    log_error ("%s: has %" PRIu64 " bytes, but %s each member needs at least "
               "%" PRIu64 ": name a larger one, or give a smaller %s",
               least->path, size,
               cr->c.size ? "for this size=" : "for this k=, m= and chunk=",
               cr->need, cr->c.size ? "size=" : "chunk= or journal-size=");
  return -1;
}

/* How to come by with less. */
static const char *
smaller (const struct config *c)
{
  return c->allocate ? "leave allocate=yes out, or give a smaller size=" :
    c->consistency == CONSISTENCY_JOURNAL ?
    "give a smaller journal-size= or size=" : "give a smaller size=";
}

static int
no_room (const struct creation *cr, const struct alloc_short *s, int err,
         const char *or_else)
{
  const int folder_len = last_part (s->path) - s->path - 1;

  log_error ("%.*s: %s: %u member%s there need%s %" PRIu64 " bytes more at "
             "once, but its file system has %" PRIu64 " free: make room, or "
             "%s%s",
             MAX (folder_len, 1), s->path, strerror (err), s->nr,
             s->nr == 1 ? "" : "s", s->nr == 1 ? "s" : "", s->need, s->has,
             smaller (&cr->c), or_else);
  return -1;
}

/* As much as can be known before it is taken. */
static bool
ask_room (const struct creation *cr, struct alloc_short *s)
{
  const struct allocation r = { .l = &cr->l, .whole = cr->c.allocate };
  struct alloc_member rm[MAX_SLOTS];

  for (unsigned i = 0; i < cr->c.nr_members; i++) {
    struct member *m = cr->member[i];

    rm[i] = (struct alloc_member) { .path = cr->c.member[i], .m = m,
                                    .size = m ? m->ops->size (m) : cr->need };
  }
  return alloc_ask (&r, rm, cr->c.nr_members, s);
}

static int
check_room (const struct creation *cr)
{
  struct alloc_short s;

  return ask_room (cr, &s) ? 0 :
    no_room (cr, &s, ENOSPC,
             ", or, if that is wrong, gpuraid create --any-room");
}

static void
give_room_back (struct creation *cr)
{
  for (unsigned i = 0; i < MAX_SLOTS; i++)
    alloc_give_back (&cr->taken[i]);
}

/* Before the first write.  Others may have taken it meanwhile. */
static int
take_room (struct creation *cr)
{
  const struct allocation r = { .l = &cr->l, .whole = cr->c.allocate };

  for (unsigned i = 0; i < cr->c.nr_members; i++) {
    const int err = alloc_take (&r, cr->member[i], &cr->taken[i]);
    struct alloc_short s;

    if (err == 0)
      continue;
    give_room_back (cr);
    if (!ask_room (cr, &s))
      return no_room (cr, &s, err, "");
    log_error ("fallocate: %s: %s", cr->member[i]->path, strerror (err));
    return -1;
  }
  return 0;
}

static int
make_absent (struct creation *cr)
{
  for (unsigned i = 0; i < cr->c.nr_members; i++) {
    if (cr->member[i])
      continue;
    cr->member[i] = member_open (cr->c.member[i], MEMBER_CREATE, cr->need);
    if (cr->member[i] == NULL)
      return -1;
    cr->made[i] = true;
  }
  return 0;
}

/* Remove foreign signatures, so that no other program claims the member. */
static int
wipe (const struct creation *cr)
{
  for (unsigned i = 0; i < cr->c.nr_members; i++)
    if (!cr->made[i] && member_wipe_signatures (cr->member[i]) == -1)
      return -1;
  return 0;
}

int
create_check (const struct config *c)
{
  struct config full = *c;

  config_geometry_defaults (&full);
  return check_config (c) == 0 && check_journal (&full) == 0 ? 0 : -1;
}

/* All that can be known before anything is written. */
static int
check_unused (struct creation *cr)
{
  struct member *m[MAX_SLOTS];
  unsigned nr = 0;
  char why[512];

  for (unsigned i = 0; i < MAX_SLOTS; i++)
    if (cr->member[i])
      m[nr++] = cr->member[i];
  if (!in_use_elsewhere (m, nr, why, sizeof why))
    return 0;
  log_error ("%s", why);
  return -1;
}

static int
prepare (struct creation *cr, const struct config *c, unsigned flags)
{
  cr->c = *c;
  config_geometry_defaults (&cr->c);
  if (create_check (c) == -1 ||
      open_existing (cr) == -1 ||
      check_unused (cr) == -1 ||
      check_absent (cr) == -1 ||
      ((flags & CREATE_FORCE) == 0 && check_blank (cr) == -1) ||
      check_sizes (cr) == -1)
    return -1;
  return flags & CREATE_ANY_ROOM ? 0 : check_room (cr);
}

static void
close_all (struct creation *cr)
{
  for (unsigned i = 0; i < MAX_SLOTS; i++)
    member_close (cr->member[i]);
}

int
create_plan (const struct config *c, unsigned flags, struct create_plan *p)
{
  struct creation cr = { .need = 0 };
  int r = prepare (&cr, c, flags);

  if (r == 0) {
    *p = (struct create_plan) { .c = cr.c, .g = cr.g, .l = cr.l };
    for (unsigned i = 0; i < c->nr_members; i++) {
      struct member *m = cr.member[i];

      p->member[i].made = m == NULL;
      p->member[i].size = m ? m->ops->size (m) : cr.need;
    }
  }
  close_all (&cr);
  return r;
}

int
create_array (const struct config *c, unsigned flags)
{
  struct creation cr = { .need = 0 };
  int r = -1;

  if (prepare (&cr, c, flags) == 0 &&
      make_absent (&cr) == 0 &&
      take_room (&cr) == 0 &&
      ((flags & CREATE_FORCE) == 0 || wipe (&cr) == 0))
    r = create_on_members (&cr.c, cr.member);

  for (unsigned i = 0; i < MAX_SLOTS; i++) {
    if (r == 0)
      alloc_keep (&cr.taken[i]);
    if (r == -1 && cr.made[i])
      unlink (cr.member[i]->path);
  }
  give_room_back (&cr);
  close_all (&cr);
  return r;
}
