/* gpuraid: seats that clients' threads read without the array lock.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/seats/preads.h"
#include "array/seats/unlocked.h"
#include "common/plant.h"

void
unlocked_close_all (struct array *a)
{
  for (unsigned slot = 0; slot < a->n; slot++)
    if (atomic_load_explicit (&a->open_seat[slot], memory_order_relaxed))
      atomic_store (&a->open_seat[slot], NULL);
}

/* ---- where data lies ----------------------------------------------------- */

void
unlocked_set_place (struct array *a)
{
  struct data_place *d = calloc (1, sizeof *d);

  if (d == NULL)
    return;
  d->g = a->g;
  d->before = a->data_places;
  a->data_places = d;
  atomic_store (&a->data_place, d);
}

void
unlocked_no_place (struct array *a)
{
  atomic_store (&a->data_place, NULL);
  unlocked_close_all (a);
}

void
unlocked_free (struct array *a)
{
  struct data_place *next;

  for (struct data_place *d = a->data_places; d; d = next) {
    next = d->before;
    free (d);
  }
}

/* ---- reads --------------------------------------------------------------- */

struct array_io
unlocked_reads (const struct array *a)
{
  struct array_io sum = { 0, 0, 0 };

  for (unsigned i = 0; i < NR_LANES; i++) {
    sum.ops += atomic_load_explicit (&a->read_lane[i].ops,
                                     memory_order_relaxed);
    sum.bytes += atomic_load_explicit (&a->read_lane[i].bytes,
                                       memory_order_relaxed);
  }
  return sum;
}

struct seat *
unlocked_enter (struct array *a, unsigned slot, unsigned *bucket,
                unsigned lane)
{
  struct seat *s = atomic_load (&a->open_seat[slot]);

  if (s == NULL)
    return NULL;
  *bucket = atomic_load_explicit (&a->pread_now, memory_order_relaxed);
  seat_pread_begun (s, *bucket, lane);
  if (atomic_load (&a->open_seat[slot]) != s && !PLANTED ("unlocked-unasked")) {
    seat_pread_ended (s, *bucket, lane);
    return NULL;
  }
  return s;
}
