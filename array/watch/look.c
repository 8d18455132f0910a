/* gpuraid: has another server taken over, while this one did not run?
 *
 * Its first record is on R members of this server's last one, and any k of
 * these have one of them (docs/rules.md, Membership).  So k that show nothing
 * are enough.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "array/engine/state.h"
#include "array/io/lease.h"
#include "array/io/store.h"
#include "array/io/superblock.h"
#include "array/io/xfer.h"
#include "array/watch/look.h"
#include "common/bits.h"

/* Others that don't answer are waited for as long. */
#define ALL_NS UINT64_C (1000000000)

/* What one disk shows: the memory that its reads share. */
struct copies {
  uint8_t image[SB_NR_COPIES][BLOCK_LEN];
  unsigned waiting;             /* have not answered */
  unsigned ours;                /* by enum sb_copy: show no other server */
};

static bool
is_looked_at (const struct seat *s)
{
  return s->state == SEAT_ACTIVE && s->m && !s->failing && !s->m->async;
}

/* ---- the end ------------------------------------------------------------- */

static void
give_up (struct array *a)
{
  struct lease *l = &a->lease;
  struct list *e;

  while ((e = list_pop (&l->xfers)) != NULL)
    xfer_give_up (a, list_item (e, struct xfer, seat_link), EIO);
  while ((e = list_pop (&l->stores)) != NULL)
    store_give_up (a, list_item (e, struct store, link), EIO);
  l->wanted = l->looking = false;
}

/* The beat is shown in any case before another one could have waited. */
static void
go_on (struct array *a)
{
  struct lease *l = &a->lease;
  struct list xfers, stores, *e;

  list_init (&xfers);
  list_init (&stores);
  list_splice (&xfers, &l->xfers);
  list_splice (&stores, &l->stores);
  l->wanted = l->looking = false;
  lease_renew (a, l->began);
  save_beat (a);
  while ((e = list_pop (&stores)) != NULL)
    store_again (a, list_item (e, struct store, link));
  while ((e = list_pop (&xfers)) != NULL)
    xfer_again (a, list_item (e, struct xfer, seat_link));
}

static bool
is_enough (const struct array *a, bool all)
{
  const unsigned good = nr_bits (a->lease.good);

  return good >= (all ? MIN (a->g.k, nr_bits (a->lease.asked)) : a->g.k);
}

/* ---- the superblocks ----------------------------------------------------- */

/* Of another server that may write: its session is another. */
static bool
is_foreign (const struct array *a, const struct superblock *sb)
{
  const struct ballot *ours = &a->membership.cur.self.ballot;
  const struct ballot *b = &sb->record.self.ballot;

  return b->session != ours->session && b->epoch >= ours->epoch;
}

static void
take_over (struct array *a, const struct seat *s, const struct superblock *sb)
{
  char why[ARRAY_WHY_LEN];

  snprintf (why, sizeof why, "%s: another server%s%s has used it, while this "
            "one did not run", s->m->path, sb->host[0] ? ", on host " : "",
            sb->host);
  array_set_failed (a, why);
  give_up (a);
}

/* The first record of another server is in one copy of a pair before it is in
 * the other, so a disk has shown nothing before all copies have answered.  Of a
 * pair one may be bad.
 */
static bool
is_shown (const struct copies *c)
{
  return c->waiting == 0 &&
         c->ours & (BIT (SB_A1) | BIT (SB_B1)) &&
         c->ours & (BIT (SB_A2) | BIT (SB_B2));
}

static void
read_done (struct array *a, struct xfer *x)
{
  struct lease *l = &a->lease;
  struct copies *c = x->memory->p;
  struct superblock *sb;

  c->waiting--;
  if (x->write_gen != l->nr_looks || !l->looking || a->failed)
    return;
  l->pending--;
  sb = malloc (sizeof *sb);
  if (sb && x->error == 0 &&
      superblock_decode (x->buf, x->b0, sb, NULL) == SB_OK &&
      uuid_equal (&sb->array_uuid, &a->sb.array_uuid)) {
    if (is_foreign (a, sb))
      take_over (a, x->seat, sb);
    else
      c->ours |= BIT (x->b0);
  }
  free (sb);
  if (is_shown (c))
    l->good |= BIT (x->seat->slot);
  if (!l->looking || l->pending > 0)
    return;
  if (is_enough (a, true))
    go_on (a);
  else {
    l->looking = false;         /* the next tick tries again */
    l->rests = true;
  }
}

static void
read_seat (struct array *a, struct seat *s)
{
  struct lease *l = &a->lease;
  struct xfer_memory *memory =
    xfer_memory_new (a, round_up (sizeof (struct copies), BLOCK_LEN));
  struct copies *c;

  if (memory == NULL)
    return;
  c = memory->p;
  c->waiting = SB_NR_COPIES;
  c->ours = 0;
  l->asked |= BIT (s->slot);
  for (unsigned copy = 0; copy < SB_NR_COPIES; copy++) {
    struct xfer *x = xfer_new (a, s, IO_READ, read_done);

    x->off = layout_sb_off (s->m->ops->size (s->m), copy);
    x->len = BLOCK_LEN;
    x->buf = c->image[copy];
    x->memory = memory;
    x->b0 = copy;
    x->write_gen = l->nr_looks;
    x->alone = true;
    l->pending++;
    xfer_start (a, x);
  }
  xfer_memory_put (memory);
}

static void
begin (struct array *a)
{
  struct lease *l = &a->lease;

  l->looking = true;
  l->nr_looks++;
  l->began = loop_boot_time (a->loop);
  l->since = engine_now (a);
  l->asked = l->good = 0;
  l->pending = 0;
  for (unsigned i = 0; i < a->nr_seats; i++)
    if (is_looked_at (a->seat[i]))
      read_seat (a, a->seat[i]);
  if (l->pending == 0) {
    l->looking = false;
    l->rests = true;
  }
}

void
look_turn (struct array *a)
{
  struct lease *l = &a->lease;

  if (!l->wanted)
    return;
  if (a->failed)
    give_up (a);
  else if (!l->looking && !l->rests)
    begin (a);
}

void
look_tick (struct array *a)
{
  struct lease *l = &a->lease;

  l->rests = false;
  if (l->looking && engine_now (a) - l->since > ALL_NS &&
      is_enough (a, false))
    go_on (a);
}
