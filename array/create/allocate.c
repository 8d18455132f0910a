/* gpuraid: space on file systems for what a new member always has allocated.
 *
 * A file may have space that was allocated and never written, which is a hole
 * to lseek.  Of one that has all of its space nothing is needed, and nothing is
 * given back.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "array/create/allocate.h"
#include "common/bits.h"
#include "common/cleanup.h"

/* Both ends, the ring, and table and bitmap of each part. */
#define MAX_RANGES (3 + 2 * (1 + LAYOUT_MAX_GROWN))

static unsigned
ranges (const struct allocation *r, uint64_t size, struct alloc_range *range)
{
  const uint64_t b = layout_sb_off (size, SB_B1);
  unsigned nr = 0;

  if (r->whole) {
    range[0] = (struct alloc_range) { 0, size };
    return 1;
  }
  range[nr++] = (struct alloc_range) { 0, 2 * BLOCK_LEN };
  range[nr++] = (struct alloc_range) { r->l->ring_off, r->l->ring_len };
  range[nr++] = (struct alloc_range) { r->l->table_off, r->l->table_len };
  range[nr++] = (struct alloc_range) { r->l->bitmap_off, r->l->bitmap_len };
  for (unsigned i = 1; i <= r->l->nr_grown; i++) {
    struct layout_part p;

    layout_part (r->l, i, &p);
    range[nr++] = (struct alloc_range) {
      p.table_off, r->l->table_len ? p.data_off - p.table_off : 0
    };
  }
  range[nr++] = (struct alloc_range) { b, 2 * BLOCK_LEN };
  return nr;
}

/* ---- asking -------------------------------------------------------------- */

/* Bytes in holes of a range. */
static uint64_t
hole_bytes (struct member *m, const struct alloc_range *range)
{
  const uint64_t end = range->off + range->len;
  uint64_t sum = 0, next;

  for (uint64_t off = range->off; off < end; off = next) {
    bool hole;

    if (m->ops->extent (m, off, end - off, &hole, &next) != 0)
      return sum;
    sum += hole ? next - off : 0;
  }
  return sum;
}

/* What a member needs, and on which file system.  False: it is no file. */
static bool
find_need (const struct allocation *r, const struct alloc_member *rm,
           dev_t *dev, uint64_t *need)
{
  struct alloc_range range[MAX_RANGES];
  const unsigned nr = ranges (r, rm->size, range);
  const char *slash = strrchr (rm->path, '/');
  CLEANUP_FREE char *folder = NULL;
  uint64_t has = 0, soon = MIN (r->data, rm->size);
  struct stat st;

  if (rm->m == NULL && !member_is_uri (rm->path) && slash)
    folder = strndup (rm->path, MAX (1, slash - rm->path));
  if (rm->m ? rm->m->ops->fd (rm->m) == -1 ||
      fstat (rm->m->ops->fd (rm->m), &st) == -1 || !S_ISREG (st.st_mode) :
      folder == NULL || stat (folder, &st) == -1)
    return false;
  *dev = st.st_dev;
  if (rm->m)
    has = st.st_blocks * UINT64_C (512);
  *need = 0;
  for (unsigned i = 0; i < nr; i++)
    *need += rm->m ? hole_bytes (rm->m, &range[i]) : range[i].len;
  *need = MIN (*need, rm->size > has ? rm->size - has : 0);
  *need = MAX (*need, soon > has ? soon - has : 0);
  return true;
}

/* UINT64_MAX: the file system does not say. */
static uint64_t
free_bytes (const struct alloc_member *rm)
{
  const char *slash = strrchr (rm->path, '/');
  CLEANUP_FREE char *folder =
    strndup (rm->path, MAX (1, slash ? slash - rm->path : 1));
  struct statvfs fs;

  if ((rm->m ? fstatvfs (rm->m->ops->fd (rm->m), &fs) :
       folder ? statvfs (folder, &fs) : -1) == -1 || fs.f_blocks == 0)
    return UINT64_MAX;
  return (uint64_t) fs.f_frsize *
    (geteuid () == 0 ? fs.f_bfree : fs.f_bavail);
}

bool
alloc_ask (const struct allocation *r, const struct alloc_member *member,
           unsigned nr, struct alloc_short *s)
{
  struct {
    dev_t dev;
    uint64_t need;              /* 0: it is no file, or has its room */
  } of[MAX_SLOTS];

  for (unsigned i = 0; i < nr; i++)
    if (!find_need (r, &member[i], &of[i].dev, &of[i].need))
      of[i].need = 0;
  for (unsigned i = 0; i < nr; i++) {
    if (of[i].need == 0)
      continue;
    *s = (struct alloc_short) { .path = member[i].path };
    for (unsigned j = 0; j < nr; j++)
      if (of[j].need && of[j].dev == of[i].dev) {
        s->need += of[j].need;
        s->nr++;
      }
    s->has = free_bytes (&member[i]);
    if (s->need > s->has)
      return false;
  }
  return true;
}

/* ---- taking -------------------------------------------------------------- */

static int
allocate (int fd, const struct alloc_range *hole)
{
  while (fallocate (fd, FALLOC_FL_KEEP_SIZE, hole->off, hole->len) == -1)
    if (errno != EINTR)
      return errno;
  return 0;
}

static int
add_hole (struct alloc_taken *t, uint64_t off, uint64_t len)
{
  struct alloc_range *p = reallocarray (t->hole, t->nr + 1, sizeof *p);

  if (p == NULL)
    return ENOMEM;
  t->hole = p;
  t->hole[t->nr++] = (struct alloc_range) { off, len };
  return 0;
}

/* Its holes, before anything is allocated. */
static int
find_holes (const struct allocation *r, struct member *m, struct alloc_taken *t)
{
  const uint64_t size = m->ops->size (m);
  struct alloc_range range[MAX_RANGES];
  const unsigned nr = ranges (r, size, range);
  int err = 0;

  for (unsigned i = 0; i < nr && err == 0; i++) {
    const uint64_t end = range[i].off + range[i].len;
    uint64_t next;

    for (uint64_t off = range[i].off; off < end && err == 0; off = next) {
      bool hole;

      err = m->ops->extent (m, off, end - off, &hole, &next);
      if (err == 0 && hole)
        err = add_hole (t, off, next - off);
    }
  }
  return err;
}

int
alloc_take (const struct allocation *r, struct member *m, struct alloc_taken *t)
{
  struct stat st;
  int err;

  *t = (struct alloc_taken) { .fd = -1 };
  if (m->ops->fd (m) == -1 || fstat (m->ops->fd (m), &st) == -1 ||
      !S_ISREG (st.st_mode) ||
      st.st_blocks * UINT64_C (512) >= (uint64_t) st.st_size)
    return 0;
  t->fd = fcntl (m->ops->fd (m), F_DUPFD_CLOEXEC, 3);
  err = t->fd == -1 ? errno : find_holes (r, m, t);
  for (unsigned i = 0; i < t->nr && err == 0; i++)
    err = allocate (t->fd, &t->hole[i]);
  return err == EOPNOTSUPP || err == ENOSYS ? 0 : err;
}

void
alloc_keep (struct alloc_taken *t)
{
  if (t->fd > 0)
    close (t->fd);
  free (t->hole);
  *t = (struct alloc_taken) { .fd = -1 };
}

void
alloc_give_back (struct alloc_taken *t)
{
  for (unsigned i = 0; i < t->nr; i++)
    while (fallocate (t->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                      t->hole[i].off, t->hole[i].len) == -1 &&
           errno == EINTR)
      ;
  alloc_keep (t);
}
