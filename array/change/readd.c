/* gpuraid: take a member again that was taken out, or was missing.
 *
 * array/membership decides whether it may return, and whether the dirty bits
 * cover what it missed.  From then on it is a rebuild's target like one that
 * came back when the array was opened.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array/change/command.h"
#include "array/change/readd.h"
#include "array/dirty/dirty.h"
#include "array/open/bitmaps.h"
#include "array/open/settle.h"
#include "array/seats/seat.h"
#include "array/stores/copies.h"
#include "common/bits.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/plant.h"
#include "raidmap/bitmap.h"

void
readd_free (struct readd *rd)
{
  if (rd == NULL)
    return;
  free (rd->page_place);
  free (rd->page_counter);
  free (rd);
}

struct seat *
readd_find_idle (struct array *a, const char *path)
{
  for (unsigned i = 0; i < a->nr_seats; i++) {
    struct seat *s = a->seat[i];

    if (s->m && s->state == SEAT_IDLE && !s->failing &&
        strcmp (s->m->path, path) == 0)
      return s;
  }
  return NULL;
}

/* From here on its seat is like one whose member was closed. */
struct member *
readd_take_idle (struct array *a, const char *path)
{
  struct member *m = NULL;
  struct seat *s;

  engine_lock (a);
  s = readd_find_idle (a, path);
  if (s) {
    m = s->m;
    s->m = NULL;
    if (s->slot < a->n) {
      free (a->slot_path[s->slot]);
      a->slot_path[s->slot] = strdup (path);
    }
  }
  engine_unlock (a);
  return m;
}

static int
read_it (const struct superblock *own, struct member *m, struct readd *rd,
         char why[MEMBERSHIP_TEXT_LEN])
{
  const struct superblock *sb;
  int unflushed, err, dev;

  unflushed = 0;
  if (!PLANTED ("readd-unflushed"))
    settle (&m, 1, &unflushed);
  err = unflushed ? unflushed : copies_read (m, &rd->found, NULL);

  if (err) {
    snprintf (why, MEMBERSHIP_TEXT_LEN, "%s: can't be %s: %s", m->path,
              unflushed ? "flushed" : "read", strerror (err));
    return -1;
  }
  if (membership_resembles (&rd->found, own, why) == -1)
    return -1;
  if (m->ops->size (m) < layout_end (&own->l)) {
    snprintf (why, MEMBERSHIP_TEXT_LEN, "%s: is too short: %" PRIu64 " bytes "
              "are needed: replace it", m->path, layout_end (&own->l));
    return -1;
  }
  sb = found_newest (&rd->found);
  dev = membership_find (sb->device, &sb->member_uuid);
  return dirty_read_places (m, own, dev == -1 ? SLOT_NONE :
                            sb->device[dev].slot, rd->page_place,
                            rd->page_counter);
}

struct readd *
readd_new (struct array *a, struct member *m,
           char why[MEMBERSHIP_TEXT_LEN])
{
  CLEANUP_FREE struct superblock *own = malloc (sizeof *own);
  struct readd *rd = calloc (1, sizeof *rd);

  snprintf (why, MEMBERSHIP_TEXT_LEN, "out of memory");
  if (rd == NULL || own == NULL) {
    free (rd);
    return NULL;
  }
  engine_lock (a);
  *own = a->sb;
  engine_unlock (a);
  rd->nr_pages = bitmap_nr_pages (&own->l);
  rd->page_place = calloc (rd->nr_pages, sizeof *rd->page_place);
  rd->page_counter = calloc (rd->nr_pages, sizeof *rd->page_counter);
  if (rd->page_place == NULL || rd->page_counter == NULL ||
      read_it (own, m, rd, why) == -1) {
    readd_free (rd);
    return NULL;
  }
  return rd;
}

/* Why it can't return, or NULL; and its slot. */
static const char *
obstacle (struct array *a, struct member *m, const struct found *f,
          unsigned *slot)
{
  *slot = a->membership.device[f->dev].slot;
  for (unsigned i = 0; i < a->nr_seats; i++) {
    struct member *own = a->seat[i]->m;

    if (own && own->ops->same (own, m))
      return "in use already: there is nothing to do";
  }
  if (*slot >= a->n)
    return "a spare: it is used when a member fails";
  if (a->at[*slot][0])
    return "its slot has an active member: gpuraid spare takes it as another";
  if (a->at[*slot][1])
    return "its slot is being rebuilt already: wait for the end (gpuraid wait)";
  return NULL;
}

/* The place where the next copy goes must not have the newest one, and the
 * next counter must be greater than any.
 */
static void
take_pages (struct array *a, struct seat *s, const struct readd *rd)
{
  memcpy (s->page_place, rd->page_place, a->nr_pages);
  for (uint64_t i = 0; i < a->nr_pages; i++)
    a->page[i]->want.counter = MAX (a->page[i]->want.counter,
                                    rd->page_counter[i]);
}

/* A file that was truncated and is as long again has lost data, and its last
 * copies.
 */
static bool
has_all_copies (const struct found *f)
{
  for (unsigned c = 0; c < SB_NR_COPIES; c++)
    if (f->result[c] != SB_OK)
      return false;
  return true;
}

struct seat *
readd_begin (struct array *a, struct command *cmd,
             char why[MEMBERSHIP_TEXT_LEN])
{
  struct found *f = &cmd->back->found;
  const char *what;
  struct seat *s;
  unsigned slot;

  if (cmd->back->nr_pages != a->nr_pages) {
    snprintf (why, MEMBERSHIP_TEXT_LEN,
              "the array has grown meanwhile: try again");
    return NULL;
  }
  if (membership_meet (&a->membership, f, &a->sb, why) == -1)
    return NULL;
  what = obstacle (a, cmd->target, f, &slot);
  if (what) {
    snprintf (why, MEMBERSHIP_TEXT_LEN, "%s: %s", f->name, what);
    return NULL;
  }
  s = seat_new (a, NULL, SB_MAX_DEVICES, SLOT_NONE, SEAT_IDLE);
  if (s == NULL) {
    snprintf (why, MEMBERSHIP_TEXT_LEN,
              "no room for another member: too many are open; start the "
              "server again");
    return NULL;
  }
  f->covered &= has_all_copies (f);
  s->uuid = a->membership.device[f->dev].uuid;
  if (membership_begin_target (&a->membership, &s->uuid, slot, f->covered,
                               &s->dev, why) == -1)
    return NULL;
  s->m = cmd->target;
  s->slot = slot;
  s->state = SEAT_TARGET;
  s->by_bitmap = f->covered;
  s->older = f->older;
  s->b_first[0] = found_first_copy (f, false) == SB_B1;
  s->b_first[1] = found_first_copy (f, true) == SB_B2;
  take_pages (a, s, cmd->back);
  seats_changed (a);
  cmd->target = NULL;
  cmd->full = !s->by_bitmap;
  return s;
}

void
readd_say (const struct seat *s)
{
  log_notice ("slot %u: %s: taken again: %s", s->slot, s->m->path,
              s->by_bitmap ? "what was changed meanwhile is rebuilt" :
              s->older ? "it is an older copy of the member, so it is rebuilt "
              "in full" :
              "the dirty bits do not tell all that it missed, so it is rebuilt "
              "in full");
}
