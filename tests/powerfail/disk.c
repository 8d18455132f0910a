/* gpuraid: tests: a disk with a cache that forgets.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/bits.h"
#include "common/cleanup.h"
#include "tests/powerfail/disk.h"

/* A write in memory alone. */
struct change {
  struct list link;
  uint64_t off;
  size_t len;
  bool zero;                    /* then no data */
  uint8_t *gone;                /* for each sector: may not be kept, since
                                 * something newer is durable; or NULL */
  uint8_t data[];
};

/* How a change may be torn. */
enum tear { TEAR_HEAD, TEAR_TAIL, TEAR_ANY, NR_TEARS };

static void
change_free (struct change *c)
{
  if (c == NULL)
    return;
  free (c->gone);
  free (c);
}

static struct change *
change_new (const void *buf, size_t len, uint64_t off)
{
  struct change *c = malloc (sizeof *c + (buf ? len : 0));

  if (c == NULL)
    return NULL;
  c->off = off;
  c->len = len;
  c->zero = buf == NULL;
  c->gone = NULL;
  if (buf)
    memcpy (c->data, buf, len);
  return c;
}

/* splitmix64 */
static uint64_t
next_random (uint64_t *state)
{
  uint64_t z = *state += UINT64_C (0x9e3779b97f4a7c15);

  z = (z ^ (z >> 30)) * UINT64_C (0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C (0x94d049bb133111eb);
  return z ^ (z >> 31);
}

static size_t
below (uint64_t *state, size_t n)
{
  return next_random (state) % n;
}

/* ---- the file -------------------------------------------------------- */

/* Make this part of a change durable; a hole for zeroes, as a file would. */
static int
store (struct disk *d, const struct change *c, size_t begin, size_t len)
{
  while (len > 0) {
    ssize_t r;

    if (c->zero) {
      if (fallocate (d->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                     c->off + begin, len) == -1)
        return errno;
      return 0;
    }
    r = pwrite (d->fd, c->data + begin, len, c->off + begin);
    if (r == -1 && errno != EINTR)
      return errno;
    if (r > 0) {
      begin += r;
      len -= r;
    }
  }
  return 0;
}

/* Is this sector of the change kept?  cut: where it is torn, in sectors. */
static bool
is_kept (const struct change *c, size_t sector, enum tear tear, size_t cut,
         uint64_t *rng)
{
  if (c->gone && c->gone[sector])
    return false;
  switch (tear) {
  case TEAR_HEAD: return sector < cut;
  case TEAR_TAIL: return sector >= cut;
  default: return next_random (rng) & 1;
  }
}

/* Sector by sector. */
static int
store_torn (struct disk *d, const struct change *c, enum tear tear, size_t cut,
            uint64_t *rng)
{
  for (size_t s = 0; s < c->len / SECTOR; s++) {
    if (is_kept (c, s, tear, cut, rng)) {
      const int err = store (d, c, s * SECTOR, SECTOR);

      if (err)
        return err;
    }
  }
  return 0;
}

static int
store_all (struct disk *d, const struct change *c)
{
  if (c->gone == NULL)
    return store (d, c, 0, c->len);
  return store_torn (d, c, TEAR_TAIL, 0, NULL);
}

static int
load (struct disk *d)
{
  uint64_t done = 0;

  while (done < d->size) {
    const ssize_t r = pread (d->fd, d->now + done, d->size - done, done);

    if (r == 0 || (r == -1 && errno != EINTR))
      return r == 0 ? EIO : errno;
    if (r > 0)
      done += r;
  }
  return 0;
}

/* ---- open and close -------------------------------------------------- */

struct disk *
disk_open (const char *path, const char *name)
{
  struct disk *d = calloc (1, sizeof *d);
  struct stat st;
  void *p;

  if (d == NULL)
    return NULL;
  list_init (&d->changes);
  pthread_mutex_init (&d->lock, NULL);
  d->on = true;
  d->name = strdup (name);
  d->fd = open (path, O_RDWR | O_CLOEXEC);
  if (d->name == NULL || d->fd == -1 || fstat (d->fd, &st) == -1)
    goto err;
  if (st.st_size == 0 || st.st_size % SECTOR) {
    errno = EINVAL;
    goto err;
  }
  p = mmap (NULL, st.st_size, PROT_READ | PROT_WRITE,
            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED)
    goto err;
  d->now = p;
  d->size = st.st_size;
  errno = load (d);
  if (errno)
    goto err;
  return d;

 err:
  disk_close (d);
  return NULL;
}

static void
forget (struct disk *d)
{
  struct list *l;

  while ((l = list_pop (&d->changes)) != NULL)
    change_free (list_item (l, struct change, link));
  d->stats.unflushed = 0;
}

void
disk_close (struct disk *d)
{
  const int err = errno;

  if (d == NULL)
    return;
  forget (d);
  if (d->now)
    munmap (d->now, d->size);
  if (d->fd >= 0)
    close (d->fd);
  pthread_mutex_destroy (&d->lock);
  free (d->name);
  free (d);
  errno = err;
}

/* ---- requests -------------------------------------------------------- */

unsigned
disk_life (struct disk *d)
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&d->lock);
  return d->life;
}

/* The power may have failed and come back since the request arrived. */
static bool
is_alive (const struct disk *d, unsigned life)
{
  return d->on && d->life == life;
}

int
disk_read (struct disk *d, unsigned life, void *buf, size_t len, uint64_t off)
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&d->lock);
  if (!is_alive (d, life))
    return EIO;
  memcpy (buf, d->now + off, len);
  return 0;
}

/* What is older than new may not be kept in its place. */
static int
supersede (struct disk *d, const struct change *new)
{
  list_for_each (l, &d->changes) {
    struct change *c = list_item (l, struct change, link);
    const uint64_t begin = MAX (c->off, new->off);
    const uint64_t end = MIN (c->off + c->len, new->off + new->len);

    if (begin >= end)
      continue;
    if (c->gone == NULL)
      c->gone = calloc (c->len / SECTOR, 1);
    if (c->gone == NULL)
      return ENOMEM;
    memset (c->gone + (begin - c->off) / SECTOR, 1, (end - begin) / SECTOR);
  }
  return 0;
}

int
disk_write (struct disk *d, unsigned life, const void *buf, size_t len,
            uint64_t off, bool fua)
{
  struct change *c = change_new (buf, len, off);
  int err = 0;

  if (c == NULL)
    return ENOMEM;
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&d->lock);
  if (!is_alive (d, life)) {
    change_free (c);
    return EIO;
  }
  if (buf)
    memcpy (d->now + off, buf, len);
  else
    memset (d->now + off, 0, len);
  d->stats.writes++;
  if (!fua) {
    list_append (&d->changes, &c->link);
    d->stats.unflushed++;
    return 0;
  }
  err = supersede (d, c);
  if (!err)
    err = store_all (d, c);
  change_free (c);
  return err;
}

int
disk_flush (struct disk *d, unsigned life)
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&d->lock);
  if (!is_alive (d, life))
    return EIO;
  list_for_each (l, &d->changes) {
    const int err = store_all (d, list_item (l, struct change, link));

    if (err)
      return err;
  }
  forget (d);
  d->stats.flushes++;
  return 0;
}

/* ---- the power ------------------------------------------------------- */

/* Move the changes to a list in random order. */
static void
shuffle (struct list *to, struct list *from, size_t nr, uint64_t *rng)
{
  for (; nr > 0; nr--) {
    struct list *l = from->next;

    for (size_t i = below (rng, nr); i > 0; i--)
      l = l->next;
    list_move (to, l);
  }
}

static int
store_some (struct disk *d, const struct change *c, uint64_t *rng)
{
  const size_t nr_sectors = c->len / SECTOR;
  const enum tear tear = below (rng, NR_TEARS);

  d->stats.torn++;
  return store_torn (d, c, tear, below (rng, nr_sectors + 1), rng);
}

/* Each of the changes, in random order.  Most failures keep about half, some
 * nearly all or nearly none: a single one that is missing is worth a try too.
 */
static int
store_subset (struct disk *d, uint64_t seed)
{
  static const unsigned of_100[] = { 5, 50, 50, 95 };
  uint64_t rng = seed;
  const unsigned keep = of_100[below (&rng, ARRAY_LEN (of_100))];
  const unsigned tear = below (&rng, 2) ? 20 : 0;
  struct list order;
  int err = 0;

  list_init (&order);
  shuffle (&order, &d->changes, d->stats.unflushed, &rng);
  list_for_each (l, &order) {
    const struct change *c = list_item (l, struct change, link);

    if (err)
      break;
    if (below (&rng, 100) < tear)
      err = store_some (d, c, &rng);
    else if (below (&rng, 100) < keep) {
      d->stats.kept++;
      err = store_all (d, c);
    }
    else
      d->stats.dropped++;
  }
  list_splice (&d->changes, &order);
  return err;
}

static int
store_in_order (struct disk *d)
{
  list_for_each (l, &d->changes) {
    const int err = store_all (d, list_item (l, struct change, link));

    if (err)
      return err;
    d->stats.kept++;
  }
  return 0;
}

int
disk_off (struct disk *d, enum power_mode mode, uint64_t seed)
{
  int err = 0;

  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&d->lock);
  if (!d->on)
    return 0;
  d->on = false;
  d->life++;
  switch (mode) {
  case POWER_DROP: d->stats.dropped += d->stats.unflushed; break;
  case POWER_SOME: err = store_subset (d, seed); break;
  case POWER_KEEP: err = store_in_order (d); break;
  }
  forget (d);
  return err;
}

int
disk_on (struct disk *d)
{
  int err;

  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&d->lock);
  if (d->on)
    return 0;
  err = load (d);
  d->on = err == 0;
  return err;
}

int
disk_blank (struct disk *d)
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&d->lock);
  if (d->on)
    return EBUSY;
  if (ftruncate (d->fd, 0) == -1 || ftruncate (d->fd, d->size) == -1)
    return errno;
  return 0;
}

struct disk_stats
disk_stats (struct disk *d)
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&d->lock);
  return d->stats;
}
