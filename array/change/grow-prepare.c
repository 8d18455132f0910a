/* gpuraid: prepare on the members what an array that grows adds.
 *
 * One transfer at a time on each member, so that clients are not held up.
 * Until the record says otherwise no client
 * can read it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array/change/grow-internal.h"
#include "array/io/xfer.h"
#include "common/plant.h"
#include "raidmap/bitmap.h"
#include "raidmap/table.h"

#define ZERO_LEN (64 * MIB)
#define MAX_PAGES 64u           /* of the bitmap, in both places, at once */

/* Where its data must be zeroes: with a journal the checksum table says
 * durably what was never written.
 */
static bool
needs_zeroes (const struct array *a)
{
  return a->sums == NULL || a->mark_open;
}

uint64_t
grow_area_len (const struct array *a, const struct grow *gr,
               enum grow_area area)
{
  switch (area) {
  case GROW_TABLE: return gr->part.nr_table_pages * 2 * TABLE_PAGE_LEN;
  case GROW_DATA: return needs_zeroes (a) ? gr->part.len : 0;
  case GROW_BITMAP: return gr->part.nr_bitmap_pages * 2 * BITMAP_PAGE_LEN;
  default: return 0;
  }
}

static uint64_t
area_off (const struct grow *gr, enum grow_area area)
{
  return area == GROW_TABLE ? gr->part.table_off :
    area == GROW_DATA ? gr->part.data_off : gr->part.bitmap_off;
}

void
grow_fail (struct array *a, int error, const char *fmt, ...)
{
  struct grow *gr = a->grow;
  va_list args;

  if (gr->error)
    return;
  gr->error = error;
  va_start (args, fmt);
  vsnprintf (gr->why, sizeof gr->why, fmt, args);
  va_end (args);
}

static void
prepared (struct array *a, struct xfer *x)
{
  struct grow_seat *gs = x->owner;
  struct grow *gr = a->grow;

  gs->len = 0;
  if (x->error) {
    grow_fail (a, x->error, "%s: what was to be added can't be written: %s",
               x->seat->m->path, strerror (x->error));
    return;
  }
  x->seat->write_gen++;
  gs->done += x->len;
  gr->done += x->len;
}

static struct xfer *
zero (struct array *a, struct grow_seat *gs, uint64_t left)
{
  const bool trim = gs->area == GROW_DATA;
  struct xfer *x = xfer_new (a, gs->seat, trim ? IO_TRIM : IO_ZERO, prepared);

  x->len = MIN (left, trim ? limits.rebuild_trim_len : ZERO_LEN);
  return x;
}

/* Page by page, both places of each. */
static struct xfer *
write_pages (struct array *a, struct grow_seat *gs, uint64_t left)
{
  const uint64_t first = a->grow->part.bitmap_page +
    gs->done / (2 * BITMAP_PAGE_LEN);
  const unsigned nr = MIN (left / (2 * BITMAP_PAGE_LEN), MAX_PAGES);
  struct bitmap_page *page = calloc (1, sizeof *page);
  struct xfer *x = xfer_new (a, gs->seat, IO_WRITE, prepared);
  struct xfer_memory *mem = xfer_memory_new (a, nr * 2 * BITMAP_PAGE_LEN);

  if (page == NULL || mem == NULL)
    abort ();           /* as in array/io/xfer.c */
  for (unsigned i = 0; i < 2 * nr; i++) {
    page->page_no = first + i / 2;
    page->counter = DIRTY_NEW_COUNTER - 1 + i % 2;
    bitmap_page_encode (page, &a->sb.array_uuid, gs->seat->slot,
                        (uint8_t *) mem->p + i * BITMAP_PAGE_LEN);
  }
  free (page);
  x->len = nr * 2 * BITMAP_PAGE_LEN;
  x->buf = mem->p;
  x->memory = mem;
  return x;
}

/* False if nothing is left. */
static bool
next_xfer (struct array *a, struct grow_seat *gs)
{
  const struct grow *gr = a->grow;
  uint64_t left;
  struct xfer *x;

  for (; gs->area < GROW_NR_AREAS; gs->area++, gs->done = 0) {
    left = grow_area_len (a, gr, gs->area) - gs->done;
    if (left == 0 || (gs->area == GROW_TABLE && PLANTED ("grow-table-kept")) ||
        (gs->area == GROW_DATA && PLANTED ("grow-data-kept")))
      continue;
    x = gs->area == GROW_BITMAP ? write_pages (a, gs, left) :
      zero (a, gs, left);
    x->off = area_off (gr, gs->area) + gs->done;
    x->owner = gs;
    x->no_wait = true;
    gs->len = x->len;
    xfer_start (a, x);
    if (x->memory)
      xfer_memory_put (x->memory);
    return true;
  }
  return false;
}

bool
grow_prepare (struct array *a)
{
  bool all = true;

  for (unsigned slot = 0; slot < a->n; slot++) {
    struct grow_seat *gs = &a->grow->seat[slot];

    if (gs->len > 0 || next_xfer (a, gs))
      all = false;
  }
  return all;
}

bool
grow_is_busy (const struct array *a)
{
  for (unsigned slot = 0; slot < a->n; slot++)
    if (a->grow->seat[slot].len > 0)
      return true;
  return false;
}
