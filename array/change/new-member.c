/* gpuraid: a spare is prepared to be one more data member.
 *
 * Before the record names it as active it has a checksum table of zeroes, a
 * bitmap with all pages, and a journal with headers (W2 of docs/rules.md).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>

#include "array/change/internal.h"
#include "array/engine/consistency.h"
#include "array/health/fail.h"
#include "array/io/xfer.h"
#include "array/seats/seat.h"
#include "common/plant.h"
#include "raidmap/table.h"

#define ZERO_LEN (UINT64_C (1) << 30)

struct new_member {
  struct seat *s;
  bool busy;                    /* a transfer is under way */
  bool orphan;                  /* then it is freed */
  bool begun;
  uint64_t zeroed;              /* bytes of the table */
  bool flushed;
  bool joins;                   /* the rings are to be begun */
  struct waiter waiter;
};

static void
nothing (struct array *a, struct waiter *w)
{
}

struct new_member *
new_member (struct array *a, struct seat *s)
{
  struct new_member *nm = calloc (1, sizeof *nm);

  if (nm == NULL)
    abort ();           /* as in array/io/xfer.c */
  nm->s = s;
  nm->waiter.run = nothing;
  list_init (&nm->waiter.link);
  /* What it gets has its slot. */
  s->slot = a->n;
  s->nr_page_rounds = 0;
  return nm;
}

void
new_member_free (struct new_member *nm)
{
  if (nm == NULL)
    return;
  list_remove (&nm->waiter.link);
  if (nm->s->state == SEAT_SPARE)
    nm->s->slot = SLOT_NONE;
  /* What it was given is of another slot. */
  if (nm->s->state != SEAT_ACTIVE) {
    nm->s->ring_state = RING_UNKNOWN;
    nm->s->nr_page_rounds = 0;
  }
  nm->orphan = true;
  if (!nm->busy)
    free (nm);
}

struct seat *
new_member_seat (const struct new_member *nm)
{
  return nm->s;
}

const char *
new_member_problem (const struct new_member *nm)
{
  return nm->s->m == NULL || nm->s->failing || nm->s->state != SEAT_SPARE ?
    "the new member has failed, or is used for a slot that was lost" : NULL;
}

static void
done (struct array *a, struct xfer *x)
{
  struct new_member *nm = x->owner;

  nm->busy = false;
  if (x->error)
    seat_fail (a, x->seat, x->kind == IO_FLUSH ? "flush" : "checksum table",
               x->error);
  else if (x->kind == IO_FLUSH)
    nm->flushed = true;
  else
    nm->zeroed += x->len;
  if (nm->orphan)
    engine_free (a, nm);
}

static void
start (struct array *a, struct new_member *nm, struct xfer *x)
{
  x->owner = nm;
  nm->busy = true;
  xfer_start (a, x);
}

static bool
table_is_zero (struct array *a, struct new_member *nm)
{
  struct xfer *x;

  if (a->sums == NULL || nm->zeroed == table_len (&a->sb.l))
    return true;
  if (!nm->busy) {
    x = xfer_new (a, nm->s, IO_ZERO, done);
    x->off = table_off (&a->sb.l, nm->zeroed);
    x->len = MIN (ZERO_LEN, table_run (&a->sb.l, nm->zeroed));
    start (a, nm, x);
  }
  return false;
}

static bool
is_flushed (struct array *a, struct new_member *nm)
{
  if (!nm->flushed && !nm->busy)
    start (a, nm, xfer_new (a, nm->s, IO_FLUSH, done));
  return nm->flushed;
}

/* The journal and the bitmap flush what they write.  What it got before, for a
 * widening that was refused, is to be there first.
 */
bool
new_member_is_ready (struct array *a, struct new_member *nm)
{
  if (!nm->begun && !xfers_have_ended (a, nm->s) &&
      !PLANTED ("widen-member-unended"))
    return false;
  nm->begun = true;
  return table_is_zero (a, nm) &&
    a->consistency->may_join (a, nm->s, &nm->waiter) && is_flushed (a, nm);
}

bool
new_member_joins (struct array *a, struct new_member *nm)
{
  if (!nm->joins && !a->consistency->may_join (a, nm->s, &nm->waiter))
    return false;
  if (!nm->joins)
    a->consistency->begin_anew (a, nm->s);
  nm->joins = true;
  return a->consistency->has_begun (a);
}
