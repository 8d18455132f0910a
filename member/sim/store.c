/* gpuraid: what a simulated disk stores: the image that is visible, the one
 * that is durable, and the writes between them; and what a stop leaves.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bits.h"
#include "member/io.h"
#include "member/sim/internal.h"

/* Copy the write to an image, all of it or some of its sectors. */
static void
apply (const struct flight *f, uint8_t *image)
{
  if (f->data)
    memcpy (image + f->off, f->data, f->len);
  else
    memset (image + f->off, 0, f->len);
}

static void
apply_torn (const struct flight *f, uint8_t *image)
{
  struct flight part = *f;
  uint64_t rnd = 0;
  unsigned bits = 0;

  for (uint64_t done = 0; done < f->len; done += part.len) {
    /* Sectors are the disk's: the first piece may be shorter. */
    part.off = f->off + done;
    part.len = MIN (f->len - done, SIM_SECTOR - part.off % SIM_SECTOR);
    part.data = f->data ? f->data + done : NULL;
    if (bits == 0) {
      rnd = sim_random (f->disk->sim);
      bits = 64;
    }
    if (rnd >> --bits & 1)
      apply (&part, image);
  }
}

/* What is left of writes that are not durable after a crash. */
enum survival { NOTHING, ALL, ANY, NEWER };

static void
survive (struct flight *f, enum survival how)
{
  uint64_t r = sim_below (f->disk->sim, 8);

  if (how == ALL || (how == ANY && r < 3))
    apply (f, f->disk->stable);
  else if (how == ANY && r < 6)
    apply_torn (f, f->disk->stable);
}

static void
clear_bad (struct sim_disk *d, uint64_t off, uint64_t len)
{
  uint64_t first = div_round_up (off, SIM_BLOCK);
  uint64_t end = (off + len) / SIM_BLOCK;

  if (end > first)
    memset (d->bad + first, 0, end - first);
}

static void
note_used (struct sim_disk *d, const struct flight *f)
{
  const uint64_t first = f->kind == IO_TRIM ? div_round_up (f->off, SIM_BLOCK) :
    f->off / SIM_BLOCK;
  const uint64_t end = f->kind == IO_TRIM ? (f->off + f->len) / SIM_BLOCK :
    div_round_up (f->off + f->len, SIM_BLOCK);

  if (end > first)
    memset (d->used + first, f->kind != IO_TRIM, end - first);
}

uint64_t
sim_store_room (const struct sim_disk *d, const struct flight *f)
{
  if (!d->full || f->kind == IO_TRIM)
    return f->len;
  if (d->cow)
    return 0;
  for (uint64_t off = f->off; off < f->off + f->len;
       off = round_down (off, SIM_BLOCK) + SIM_BLOCK)
    if (!d->used[off / SIM_BLOCK])
      return off - f->off;
  return f->len;
}

bool
sim_disk_is_bad (const struct sim_disk *d, uint64_t off, uint64_t len)
{
  return len > 0 &&
    memchr (d->bad + off / SIM_BLOCK, 1,
            (off + len - 1) / SIM_BLOCK - off / SIM_BLOCK + 1) != NULL;
}

static bool
any_change (const struct list *list, const struct sim_disk *d, bool left,
            uint64_t off, uint64_t len)
{
  list_for_each (l, list) {
    const struct flight *f = list_item (l, struct flight, link);

    if (io_changes (f->kind) && f->off < off + len && off < f->off + f->len &&
        (!left || f->incarnation != d->incarnation))
      return true;
  }
  return false;
}

bool
sim_disk_is_unflushed (const struct sim_disk *d, uint64_t off, uint64_t len)
{
  return any_change (&d->in_flight, d, false, off, len) ||
    any_change (&d->cached, d, false, off, len);
}

bool
sim_disk_is_lost (const struct sim_disk *d, uint64_t off, uint64_t len)
{
  return any_change (&d->doomed, d, false, off, len) &&
    memcmp (d->visible + off, d->stable + off, len) != 0;
}

bool
sim_disk_is_left (const struct sim_disk *d, uint64_t off, uint64_t len)
{
  return any_change (&d->cached, d, true, off, len);
}

void
sim_store_write (struct sim_disk *d, struct flight *f, bool torn)
{
  note_used (d, f);
  if (!torn) {
    apply (f, d->visible);
    clear_bad (d, f->off, f->len);
  }
  else {
    /* The sectors are drawn once, for the flush too. */
    uint8_t *data = malloc (f->len);

    assert (data != NULL);
    apply_torn (f, d->visible);
    memcpy (data, d->visible + f->off, f->len);
    free (f->data);
    f->data = data;
  }
  f->io = NULL;
  f->mark = ++d->nr_completed;
  list_append (&d->cached, &f->link);
}

void
sim_store_flush (struct sim_disk *d, uint64_t mark)
{
  list_for_each (l, &d->cached) {
    struct flight *f = list_item (l, struct flight, link);

    if (f->mark > mark)
      break;
    apply (f, d->stable);
    list_remove (l);
    flight_free (f);
  }
}

void
sim_store_doom (struct sim_disk *d, uint64_t mark)
{
  list_for_each (l, &d->cached) {
    struct flight *f = list_item (l, struct flight, link);

    if (f->mark > mark)
      break;
    survive (f, ANY);
    list_remove (l);
    list_append (&d->doomed, l);
  }
}

/* ---- Crashes ------------------------------------------------------- */

static unsigned
list_len (const struct list *list)
{
  unsigned nr = 0;

  list_for_each (l, list)
    nr++;
  return nr;
}

static void
crash_list (struct sim_disk *d, struct list *list, enum survival how)
{
  unsigned nr_lost = how == NEWER ?
    sim_below (d->sim, list_len (list) + 1) : 0;

  list_for_each (l, list) {
    struct flight *f = list_item (l, struct flight, link);

    if (how == NEWER && nr_lost > 0) {
      nr_lost--;
      continue;
    }
    if (io_changes (f->kind) &&
        io_check (&(struct member) { 0 }, d->size, f->kind, f->off,
                  f->len) == 0)
      survive (f, how == NEWER ? ALL : how);
  }
}

/* The image goes back to what is stable wherever a write touched it. */
static void
forget_list (struct sim_disk *d, struct list *list)
{
  struct list *l;

  while ((l = list_pop (list)) != NULL) {
    struct flight *f = list_item (l, struct flight, link);

    if (io_changes (f->kind) && f->off <= d->size &&
        f->len <= d->size - f->off)
      memcpy (d->visible + f->off, d->stable + f->off, f->len);
    flight_free (f);
  }
}

/* Independent draws for each write would make long runs of kept or lost writes
 * too rare.  So half of the time a cache keeps all, or loses all, or keeps all
 * that is older than some write.
 */
void
sim_draw_crash (struct sim *sim, struct crash *c)
{
  static const uint8_t cached[8] = { NOTHING, ALL, ANY, ANY, ANY, ANY, NEWER,
                                     NEWER };
  static const uint8_t in_flight[4] = { NOTHING, ALL, ANY, ANY };

  c->cached = cached[sim_below (sim, 8)];
  c->in_flight = in_flight[sim_below (sim, 4)];
}

void
sim_disk_crash (struct sim_disk *d, const struct crash *c)
{
  crash_list (d, &d->cached, c->cached);
  crash_list (d, &d->in_flight, c->in_flight);
  forget_list (d, &d->doomed);
  forget_list (d, &d->cached);
  forget_list (d, &d->in_flight);
  d->hung = false;
  d->readers = d->writers = 0;
  ++d->incarnation;
}

/* Some of what was in flight gets as far as the cache.  What a failed flush has
 * doomed is lost with the process, as if power had failed.
 */
void
sim_disk_kill (struct sim_disk *d, const struct crash *c)
{
  struct list *l;

  if (!list_empty (&d->doomed)) {
    sim_disk_crash (d, c);
    return;
  }
  while ((l = list_pop (&d->in_flight)) != NULL) {
    struct flight *f = list_item (l, struct flight, link);
    const uint64_t r = sim_below (d->sim, 3);

    if (r > 0 && io_changes (f->kind) && !d->dead &&
        io_check (&(struct member) { 0 }, d->size, f->kind, f->off,
                  f->len) == 0 && sim_store_room (d, f) == f->len)
      sim_store_write (d, f, r == 2 && f->kind == IO_WRITE);
    else
      flight_free (f);
  }
  d->hung = false;
  d->readers = d->writers = 0;
  ++d->incarnation;
}
