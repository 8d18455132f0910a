/* gpuraid: a simulated disk and the members made of it.
 *
 * Decides what an I/O does to the disk and what goes wrong with it;
 * member/sim/store.c has what is stored.  A read returns the content when it
 * completes.  A write is visible from when it completes, and is durable when a
 * flush that was submitted after that has completed; until then it is kept
 * beside the image, so that a crash can undo it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/bits.h"
#include "common/bytes/crc32c.h"
#include "common/log.h"
#include "member/io.h"
#include "member/sim/internal.h"

/* ---- What an I/O does ---------------------------------------------- */

int
sim_disk_read (struct sim_disk *d, void *buf, uint64_t len, uint64_t off)
{
  if (sim_disk_is_bad (d, off, len) ||
      sim_chance (d->sim, d->read_error_ppm)) {
    memset (buf, 0xdb, len);
    return EIO;
  }
  memcpy (buf, d->visible + off, len);
  return 0;
}

/* May this write be lost, torn or misdirected without an error? */
static bool
may_lie (const struct sim_disk *d, const struct flight *f)
{
  return d->lie_end == 0 ||
    (f->off >= d->lie_begin && f->off + f->len <= d->lie_end);
}

static uint64_t
elsewhere (const struct sim_disk *d, const struct flight *f)
{
  const uint64_t end = d->lie_end ? d->lie_end : d->size;

  return d->lie_begin +
    sim_below (d->sim, (end - d->lie_begin - f->len) / SIM_BLOCK + 1) *
    SIM_BLOCK;
}

static void
note_lie (struct sim_disk *d, const struct flight *f)
{
  const uint64_t first = f->off / SIM_BLOCK;

  memset (d->lied + first, 1,
          div_round_up (f->off + f->len, SIM_BLOCK) - first);
}

static void
write_silently (struct sim_disk *d, struct flight *f)
{
  struct sim *sim = d->sim;
  const bool lies = may_lie (d, f);
  bool torn;

  if (sim_chance (sim, lies ? d->lose_write_ppm : 0)) {
    note_lie (d, f);
    flight_free (f);
    return;
  }
  if (sim_chance (sim, lies ? d->misdirect_write_ppm : 0)) {
    note_lie (d, f);
    f->off = elsewhere (d, f);
    note_lie (d, f);
  }
  torn = sim_chance (sim, lies ? d->tear_write_ppm : 0);
  if (torn)
    note_lie (d, f);
  sim_store_write (d, f, torn);
}

static bool
one_fails (struct sim_disk *d)
{
  const bool fails = d->write_errors > 0;

  d->write_errors -= fails;
  return fails;
}

/* Owns f: it goes to the cache or is freed. */
int
sim_disk_write (struct sim_disk *d, struct flight *f)
{
  struct sim *sim = d->sim;
  const uint64_t room = sim_store_room (d, f);

  if (!d->dead && room < f->len) {
    f->len = room;
    if (room > 0)
      sim_store_write (d, f, false);
    else
      flight_free (f);
    return ENOSPC;
  }
  if (d->dead || one_fails (d) || sim_chance (sim, d->write_error_ppm)) {
    sim_store_write (d, f, true);
    return d->dead ? ENODEV : EIO;
  }
  write_silently (d, f);
  return 0;
}

int
sim_disk_flush (struct sim_disk *d, uint64_t mark)
{
  if (d->dead)
    return ENODEV;
  if (sim_chance (d->sim, d->flush_error_ppm)) {
    sim_store_doom (d, mark);
    return EIO;
  }
  sim_store_flush (d, mark);
  return 0;
}

static int
read_vector (struct sim_disk *d, struct io *io)
{
  uint64_t off = io->off;
  int err = 0;

  if (d->dead)
    return ENODEV;
  for (unsigned i = 0; i < io->nr_iov; ++i) {
    int e = sim_disk_read (d, io->iov[i].iov_base, io->iov[i].iov_len, off);

    err = err ? err : e;
    off += io->iov[i].iov_len;
  }
  return err;
}

static void
copy_out (uint8_t *data, const struct io *io)
{
  for (unsigned i = 0; i < io->nr_iov; ++i) {
    memcpy (data, io->iov[i].iov_base, io->iov[i].iov_len);
    data += io->iov[i].iov_len;
  }
}

/* Memory given to a member is frozen until done. */
static void
assert_unchanged (const struct flight *f, const struct io *io)
{
  const uint8_t *data = f->data;

  if (io->kind != IO_WRITE)
    return;
  for (unsigned i = 0; i < io->nr_iov; ++i) {
    assert (memcmp (data, io->iov[i].iov_base, io->iov[i].iov_len) == 0);
    data += io->iov[i].iov_len;
  }
}

int
sim_disk_carry_out (struct sim_disk *d, struct flight *f, struct io *io)
{
  int err = io_check (io->member, d->size, io->kind, io->off, io->len);

  if (err == 0 && io_changes (io->kind)) {
    assert_unchanged (f, io);
    return sim_disk_write (d, f);
  }
  if (err == 0)
    err = io->kind == IO_READ ? read_vector (d, io) :
      sim_disk_flush (d, f->mark);
  flight_free (f);
  return err;
}

static void
complete (void *arg)
{
  struct flight *f = arg;
  struct sim_disk *d = f->disk;
  struct io *io = f->io;

  if (d->hung) {
    f->parked = true;
    return;
  }
  list_remove (&f->link);
  io->error = sim_disk_carry_out (d, f, io);
  sim_note (d->sim, d->sim->now_ns ^ io->off, io->kind << 16 | io->error);
  if (d->sim->verbose)
    log_debug ("sim: %" PRIu64 " ns: %s: %c %" PRIu64 "+%" PRIu64
               ": error %d", d->sim->now_ns, d->name, "RWFZT"[io->kind],
               io->off, io->len, io->error);
  if (!sim_moment (d->sim))
    io->done (io);
}

static void
schedule (struct flight *f)
{
  struct sim_disk *d = f->disk;

  assert (d->min_delay_ns <= d->max_delay_ns);
  sim_at (d->sim, d->min_delay_ns +
          sim_below (d->sim, d->max_delay_ns - d->min_delay_ns + 1),
          complete, f);
}

/* The sum of the pieces is the length.  From now on the disk owns the memory,
 * and for a read fills it with rubbish until the data is there.
 */
static void
check_vector (struct sim_disk *d, const struct io *io)
{
  uint64_t sum = 0;

  if (io->kind == IO_FLUSH)
    return;
  if (d->direct)
    assert (is_aligned (io->off | io->len, 4096));
  if (io->kind != IO_READ && io->kind != IO_WRITE)
    return;
  assert (io->nr_iov <= IO_MAX_IOV);
  for (unsigned i = 0; i < io->nr_iov; ++i) {
    sum += io->iov[i].iov_len;
    if (d->direct)
      assert (is_aligned ((uintptr_t) io->iov[i].iov_base |
                          io->iov[i].iov_len, 4096));
    if (io->kind == IO_READ)
      memset (io->iov[i].iov_base, 0xdb, io->iov[i].iov_len);
  }
  assert (sum == io->len);
}

struct flight *
flight_new (struct sim_disk *d, enum io_kind kind, uint64_t off, uint64_t len)
{
  struct flight *f = calloc (1, sizeof *f);

  assert (f != NULL);
  list_init (&f->link);
  f->disk = d;
  f->kind = kind;
  f->off = off;
  f->len = len;
  f->mark = d->nr_completed;
  f->incarnation = d->incarnation;
  if (kind == IO_WRITE && len > 0) {
    f->data = malloc (len);
    assert (f->data != NULL);
  }
  ++d->nr_ios[kind];
  d->nr_bytes[kind] += len;
  return f;
}

struct flight *
flight_of (struct sim_disk *d, struct io *io)
{
  struct flight *f = flight_new (d, io->kind, io->off, io->len);

  check_vector (d, io);
  f->io = io;
  if (f->data) {
    copy_out (f->data, io);
    sim_note (d->sim, crc32c (f->data, f->len), f->len);
  }
  return f;
}

void
sim_disk_submit (struct sim_disk *d, struct io *io)
{
  struct flight *f = flight_of (d, io);

  sim_look (d, f->kind, f->data, f->len, f->off);
  list_append (&d->in_flight, &f->link);
  schedule (f);
  sim_moment (d->sim);
}

void
sim_disk_hang (struct sim_disk *d, bool hang)
{
  bool was = d->hung;

  d->hung = hang;
  if (!was || hang)
    return;
  list_for_each (l, &d->in_flight) {
    struct flight *f = list_item (l, struct flight, link);

    if (f->parked)
      schedule (f);
    f->parked = false;
  }
}

/* ---- Making and changing ------------------------------------------- */

static void
free_list (struct list *list)
{
  struct list *l;

  while ((l = list_pop (list)) != NULL)
    flight_free (list_item (l, struct flight, link));
}

void
sim_disk_blank (struct sim_disk *d)
{
  free_list (&d->cached);
  free_list (&d->doomed);
  memset (d->visible, 0, d->size);
  memset (d->stable, 0, d->size);
  memset (d->bad, 0, d->size / SIM_BLOCK);
  memset (d->used, 0, d->size / SIM_BLOCK);
}

void
sim_disk_restore (struct sim_disk *d, const uint8_t *image)
{
  free_list (&d->cached);
  free_list (&d->doomed);
  memcpy (d->visible, image, d->size);
  memcpy (d->stable, image, d->size);
  memset (d->used, 1, d->size / SIM_BLOCK);
}

void
sim_disk_set_bad (struct sim_disk *d, uint64_t off, uint64_t len)
{
  assert (off <= d->size && len <= d->size - off);
  for (uint64_t b = off / SIM_BLOCK; b * SIM_BLOCK < off + len; ++b)
    d->bad[b] = 1;
}

void
sim_disk_poke (struct sim_disk *d, const void *buf, size_t len, uint64_t off)
{
  assert (off <= d->size && len <= d->size - off);
  memcpy (d->visible + off, buf, len);
  memcpy (d->stable + off, buf, len);
  memset (d->used + off / SIM_BLOCK, 1,
          div_round_up (off + len, SIM_BLOCK) - off / SIM_BLOCK);
}

struct sim_disk *
sim_disk_new (struct sim *sim, const char *name, uint64_t size)
{
  struct sim_disk *d = calloc (1, sizeof *d);

  assert (is_aligned (size, SIM_BLOCK));
  if (d == NULL)
    goto err;
  d->sim = sim;
  d->size = size;
  d->min_delay_ns = 10000;
  d->max_delay_ns = 1000000;
  d->direct = true;
  list_init (&d->link);
  list_init (&d->in_flight);
  list_init (&d->cached);
  list_init (&d->doomed);
  d->name = strdup (name);
  d->image = d->visible = calloc (1, size);
  d->stable = calloc (1, size);
  d->bad = calloc (1, size / SIM_BLOCK);
  d->lied = calloc (1, size / SIM_BLOCK);
  d->used = calloc (1, size / SIM_BLOCK);
  if (!d->name || !d->visible || !d->stable || !d->bad || !d->lied || !d->used)
    goto err;
  list_append (&sim->disks, &d->link);
  return d;

 err:
  log_error ("calloc: %m");
  sim_disk_free (d);
  return NULL;
}

void
sim_disk_free (struct sim_disk *d)
{
  if (d == NULL)
    return;
  list_remove (&d->link);
  free_list (&d->in_flight);
  free_list (&d->cached);
  free_list (&d->doomed);
  free (d->name);
  free (d->visible);
  free (d->stable);
  free (d->bad);
  free (d->lied);
  free (d->used);
  free (d);
}
