/* gpuraid: members made of simulated disks.
 *
 * The synchronous calls, opening and locking.  disk.c decides what a disk
 * does.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bits.h"
#include "common/bytes/zeroes.h"
#include "common/log.h"
#include "member/io.h"
#include "member/sim/internal.h"

struct sim_member {
  struct member member;
  struct sim_disk *disk;
  unsigned incarnation;         /* of the disk when it was opened */
  bool locked;
};

static const struct member_ops sim_member_ops;

bool
sim_is_disk (const struct member *m)
{
  return m->ops == &sim_member_ops;
}

struct sim_disk *
sim_disk_of (const struct member *m)
{
  const struct sim_member *s = (const struct sim_member *) m;

  /* A member from before the crash does no more I/O. */
  assert (s->incarnation == s->disk->incarnation);
  return s->disk;
}

/* ---- The synchronous calls ----------------------------------------- */

/* 0, or the errno for a call that can't be carried out. */
static int
check_sync (struct member *m, enum io_kind kind, uint64_t off, uint64_t len,
            const void *buf)
{
  struct sim_disk *d = sim_disk_of (m);

  if (d->direct && kind != IO_FLUSH)
    assert (is_aligned (off | len | (uintptr_t) buf, 4096));
  if (d->sim->crashed || d->hung)
    return EIO;
  if (d->dead)
    return ENODEV;
  return io_check (m, d->size, kind, off, len);
}

static int
sim_pread (struct member *m, void *buf, size_t len, uint64_t off)
{
  struct sim_disk *d = sim_disk_of (m);
  int err = check_sync (m, IO_READ, off, len, buf);

  if (err)
    return err;
  ++d->nr_ios[IO_READ];
  d->nr_bytes[IO_READ] += len;
  sim_look (d, IO_READ, NULL, len, off);
  return sim_disk_read (d, buf, len, off);
}

static int
sim_preadv (struct member *m, struct iovec *iov, unsigned nr_iov, size_t len,
            uint64_t off)
{
  struct sim_disk *d = sim_disk_of (m);
  int err = check_sync (m, IO_READ, off, len, NULL);

  if (err)
    return err;
  ++d->nr_ios[IO_READ];
  d->nr_bytes[IO_READ] += len;
  for (unsigned i = 0; err == 0 && i < nr_iov; off += iov[i++].iov_len)
    err = sim_disk_read (d, iov[i].iov_base, iov[i].iov_len, off);
  return err;
}

static int
sync_write (struct member *m, enum io_kind kind, const void *buf,
            uint64_t len, uint64_t off)
{
  struct sim_disk *d = sim_disk_of (m);
  int err = check_sync (m, kind, off, len, buf);
  struct flight *f;

  if (err)
    return err;
  f = flight_new (d, kind, off, len);
  if (f->data)
    memcpy (f->data, buf, len);
  sim_look (d, kind, f->data, len, off);
  if (sim_moment (d->sim)) {
    list_append (&d->in_flight, &f->link);
    return EIO;
  }
  return sim_disk_write (d, f);
}

static int
sim_pwrite (struct member *m, const void *buf, size_t len, uint64_t off)
{
  return sync_write (m, IO_WRITE, buf, len, off);
}

static int
sim_discard (struct member *m, uint64_t off, uint64_t len)
{
  return sync_write (m, IO_TRIM, NULL, len, off);
}

static int
sim_allocate (struct member *m, uint64_t off, uint64_t len)
{
  return sync_write (m, IO_ZERO, NULL, len, off);
}

static int
sim_flush (struct member *m)
{
  struct sim_disk *d = sim_disk_of (m);
  int err = check_sync (m, IO_FLUSH, 0, 0, NULL);

  if (err)
    return err;
  ++d->nr_ios[IO_FLUSH];
  return sim_moment (d->sim) ? EIO : sim_disk_flush (d, d->nr_completed);
}

static uint64_t
sim_size (struct member *m)
{
  return ((struct sim_member *) m)->disk->size;
}

static bool
sim_same (struct member *m, struct member *m2)
{
  return sim_is_disk (m2) && ((struct sim_member *) m)->disk ==
    ((struct sim_member *) m2)->disk;
}

/* A hole has nothing that could be bad. */
static bool
is_hole (const struct sim_disk *d, uint64_t pos)
{
  return all_zeroes (d->visible + pos, SIM_BLOCK) && !d->bad[pos / SIM_BLOCK];
}

/* Blocks that are zero are holes, aligned ones only. */
static int
sim_extent (struct member *m, uint64_t off, uint64_t len,
            bool *hole, uint64_t *end)
{
  struct sim_disk *d = sim_disk_of (m);
  uint64_t pos = round_down (off, SIM_BLOCK);
  int err = io_check (m, d->size, IO_READ, off, len);

  if (err)
    return err;
  *hole = is_hole (d, pos);
  do
    pos += SIM_BLOCK;
  while (pos < off + len &&
         is_hole (d, pos) == *hole);
  *end = MIN (pos, off + len);
  return 0;
}

/* For a loop that is not simulated: without delay. */
static void
sim_member_submit (struct member *m, struct io *io)
{
  struct sim_disk *d = sim_disk_of (m);

  io_done (io, sim_disk_carry_out (d, flight_of (d, io), io));
}

static int
sim_check (struct member *m)
{
  return ((struct sim_member *) m)->disk->deleted ? ENOENT : 0;
}

static int
sim_fd (struct member *m)
{
  return -1;
}

static void
sim_close (struct member *m)
{
  struct sim_member *s = (struct sim_member *) m;

  if (s->locked && s->incarnation == s->disk->incarnation) {
    if (m->readonly)
      --s->disk->readers;
    else
      --s->disk->writers;
  }
  free (m->path);
  free (s);
}

static const struct member_ops sim_member_ops = {
  .size = sim_size,
  .same = sim_same,
  .pread = sim_pread,
  .preadv = sim_preadv,
  .pwrite = sim_pwrite,
  .flush = sim_flush,
  .discard = sim_discard,
  .allocate = sim_allocate,
  .extent = sim_extent,
  .submit = sim_member_submit,
  .fd = sim_fd,
  .check = sim_check,
  .close = sim_close,
};

/* ---- Opening ------------------------------------------------------- */

static bool
take_lock (struct sim_disk *d, struct sim_member *s)
{
  if (d->writers > 0 || (d->readers > 0 && !s->member.readonly)) {
    errno = EWOULDBLOCK;
    log_error ("%s: in use by another process, or given twice", d->name);
    return false;
  }
  if (s->member.readonly)
    ++d->readers;
  else
    ++d->writers;
  s->locked = true;
  return true;
}

struct member *
sim_disk_open (struct sim_disk *d, unsigned flags)
{
  struct sim_member *s;

  if (!(flags & MEMBER_CREATE) && (d->absent || d->dead)) {
    errno = d->absent ? ENOENT : ENXIO;
    return NULL;
  }
  if (flags & MEMBER_CREATE) {
    if (!d->absent) {
      errno = EEXIST;
      log_error ("open: %s: %m", d->name);
      return NULL;
    }
    d->absent = false;
    sim_disk_blank (d);
  }

  s = calloc (1, sizeof *s);
  if (s == NULL) {
    log_error ("calloc: %m");
    return NULL;
  }
  s->member.ops = &sim_member_ops;
  s->member.readonly = (flags & (MEMBER_RDONLY | MEMBER_NOLOCK)) != 0;
  s->member.direct = d->direct;
  s->member.local = true;
  s->disk = d;
  s->incarnation = d->incarnation;
  s->member.path = strdup (d->name);
  if (s->member.path == NULL) {
    log_error ("strdup: %m");
    goto err;
  }
  if (!(flags & MEMBER_NOLOCK) && !take_lock (d, s))
    goto err;
  return &s->member;

 err:
  sim_close (&s->member);
  return NULL;
}
