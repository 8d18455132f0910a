/* gpuraid: one more member of a running array, for parity or for data, and
 * back.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array/cache/cache.h"
#include "array/change/grow.h"
#include "array/change/hold.h"
#include "array/change/internal.h"
#include "array/change/join.h"
#include "array/change/shape.h"
#include "array/engine/consistency.h"
#include "array/engine/place.h"
#include "array/health/outcome.h"
#include "array/io/superblock.h"
#include "array/plan/code.h"
#include "array/seats/seat.h"
#include "array/seats/unlocked.h"
#include "array/sums/sums.h"
#include "common/plant.h"
#include "raidmap/uuid.h"

/* Clients wait no longer than this for operations that do not end, and not
 * again before the end of a widening has rested.
 */
#define HELD_MAX_NS UINT64_C (10000000000)
#define REST_NS UINT64_C (1000000000)

#define NO_PARITY "no parity is being added"
#define NO_DATA "no data member is being added"

enum wanted {
  WANT_NOTHING,
  WANT_PARITY, WANT_PARITY_BACK,
  WANT_DATA, WANT_DATA_BACK,
  WANT_WIDENED,                 /* the end of what WANT_DATA began */
};

struct shape {
  uint64_t cache_len;           /* bytes, of all that has a share of it */
  unsigned least_n;             /* slots, the fewest since the start */
  enum wanted wanted;           /* it waits until all have ended */
  struct command *cmd;          /* for that; NULL: there is none */
  struct new_member *member;    /* WANT_DATA: it is prepared; owned */
  bool holds;                   /* array/change/hold.h */
  uint64_t since;               /* then: ns */
  uint64_t not_before;          /* WANT_WIDENED: ns */
  bool ends;                    /* it is widened, and the rings begin anew */
  unsigned k, m;                /* if the change comes into force */
  struct solver *solver;        /* for that */
};

static int
shape_init (struct array *a, const struct config *c,
            const struct assembly *as)
{
  a->shape = calloc (1, sizeof *a->shape);
  if (a->shape == NULL)
    return -1;
  a->shape->cache_len = c->cache_len;
  a->shape->least_n = a->n;
  return 0;
}

static void
shape_free (struct array *a)
{
  if (a->shape) {
    solver_free (a->shape->solver);
    new_member_free (a->shape->member);
  }
  free (a->shape);
}

/* ---- what may begin ------------------------------------------------------ */

static bool
is_of_data (enum wanted w)
{
  return w == WANT_DATA || w == WANT_DATA_BACK || w == WANT_WIDENED;
}

/* As it would be. */
static struct geometry
one_more (const struct array *a, bool data)
{
  struct geometry g = a->g;

  if (data)
    g.k++;
  else {
    g.fixed |= BIT (a->n);
    g.m++;
  }
  return g;
}

/* Now, and at the next start. */
static bool
cache_is_enough (const struct array *a, const struct geometry *g)
{
  const uint64_t sums = a->sums ? sums_memory (g, 0) : 0;

  return cache_fits (a, g) &&
    a->shape->cache_len >= cache_min_len (g) + sums;
}

/* Rows that were written before are words of the code with one more data
 * member, which is zeroes.
 */
static bool
columns_stay (const struct array *a)
{
  const unsigned k = a->g.k, m = a->g.m;
  uint8_t now[MAX_SLOTS * MAX_SLOTS / 4], then[MAX_SLOTS * MAX_SLOTS / 4];

  code_parity (a->sb.code, a->sb.w, k, m, now);
  code_parity (a->sb.code, a->sb.w, k + 1, m, then);
  for (unsigned i = 0; i < m; i++)
    if (memcmp (now + i * k, then + i * (k + 1), k) != 0)
      return PLANTED ("widen-columns-unlooked");
  return true;
}

/* Why the array can't have one more at all; NULL: it can. */
static const char *
limit (const struct array *a, bool data)
{
  const struct geometry g = one_more (a, data);

  if (data && a->mark_open)
    return "an array with consistency=none can't be widened: its rows move "
      "through the journal";
  if (a->n >= MAX_SLOTS || a->n >= 1u << a->sb.w)
    return a->n >= MAX_SLOTS ? "the array has as many members as it can" :
      "the array has as many members as its code can: w=4 has no room for "
      "more";
  if (data && !columns_stay (a))
    return "with this code=crs and m the parity of all rows would be another "
      "one: copy the data to a new array";
  if (!cache_is_enough (a, &g))
    return "the cache is too small for one more: start the server with a "
      "larger cache=";
  if (a->n >= a->shape->least_n + MIN (SUMS_MAX_ADDED, LINE_MAX_ADDED))
    return "too many were added since the start: start the server again "
      "first";
  return NULL;
}

static const char *
rebuilt_beside (const struct array *a)
{
  if (a->irregular_slots & ~a->lost_slots)
    return "a member is being replaced: wait until that has ended (gpuraid "
      "wait)";
  for (unsigned slot = 0; slot < a->n - 1; slot++)
    if (a->at[slot][1])
      return "another member is being rebuilt: wait until that has ended "
        "(gpuraid wait)";
  return a->nr_unsynced ?
    "a resync is under way: wait until it has ended (gpuraid wait)" : NULL;
}

static const char *
obstacle_to_cancel (const struct array *a, bool data)
{
  if (data ? !a->g.widening : !a->sb.record.self.first)
    return data ? NO_DATA : NO_PARITY;
  if (data && (a->g.frontier > 0 || rows_move (a)) &&
      !PLANTED ("widen-cancel-moved"))
    return "rows have moved: it can't be taken back any more";
  return rebuilt_beside (a);
}

static const char *
obstacle (const struct array *a, enum wanted wanted)
{
  const bool data = is_of_data (wanted);
  const bool more = wanted == WANT_PARITY || wanted == WANT_DATA;
  const char *what = more ? grow_obstacle (a) :
    a->failed ? "the array has failed" : a->stopping ? "the array stops" :
    wanted != WANT_WIDENED ? obstacle_to_cancel (a, data) :
    a->irregular_slots ? "a member is lost, or being rebuilt" : NULL;

  if (what)
    return what;
  if (a->sb.scrub.state != SB_SCRUB_NONE)
    return "a scrub is under way: wait until it has ended (gpuraid wait), or "
      "cancel it";
  if (grow_is_running (a))
    return "the array is growing: wait until that has ended";
  return more ? limit (a, data) : NULL;
}

static int
refusal (const char *what, char why[ARRAY_WHY_LEN])
{
  if (what == NULL)
    return 0;
  snprintf (why, ARRAY_WHY_LEN, "%s", what);
  return EINVAL;
}

/* What is being rebuilt or resynced may need a writer to end. */
int
shape_may_begin (const struct array *a, bool data, char why[ARRAY_WHY_LEN])
{
  const bool ends =
    !a->writable && (a->nr_unsynced > 0 || a->irregular_slots > 0);

  return refusal (ends ? NULL : obstacle (a, data ? WANT_DATA : WANT_PARITY),
                  why);
}

int
shape_is_added (const struct array *a, bool data, char why[ARRAY_WHY_LEN])
{
  const bool added = data ? a->g.widening : a->sb.record.self.first;

  return refusal (added ? NULL : data ? NO_DATA : NO_PARITY, why);
}

int
shape_pause (struct array *a, bool data, bool pause, char why[ARRAY_WHY_LEN])
{
  const int err = shape_is_added (a, data, why);

  if (err || a->sb.paused == pause)
    return err;
  a->sb.paused = pause;
  save_want (a);
  if (data)
    log_notice ("widening %s", pause ? "is paused" : "goes on");
  else
    log_notice ("slot %u: to fill the new parity member %s", a->n - 1,
                pause ? "is paused" : "goes on");
  return 0;
}

/* ---- a command ----------------------------------------------------------- */

static void
let_go (struct array *a)
{
  struct shape *p = a->shape;

  new_member_free (p->member);
  p->member = NULL;
  p->wanted = WANT_NOTHING;
  p->cmd = NULL;
  solver_free (p->solver);
  p->solver = NULL;
  if (p->holds)
    hold_end (a);
  p->holds = false;
  if (!a->g.widening && unlocked_place (a) == NULL)
    unlocked_set_place (a);
}

static void
refuse (struct array *a, int error, const char *why)
{
  struct command *cmd = a->shape->cmd;

  if (a->shape->wanted == WANT_WIDENED && !PLANTED ("widen-end-unrested"))
    a->shape->not_before = engine_now (a) + REST_NS;
  let_go (a);
  command_end (a, cmd, error, why);
}

static void
want (struct array *a, enum wanted wanted, struct command *cmd)
{
  struct shape *p = a->shape;

  p->wanted = wanted;
  p->cmd = cmd;
  p->k = a->g.k + (wanted == WANT_DATA) - (wanted == WANT_DATA_BACK);
  p->m = a->g.m + (wanted == WANT_PARITY) - (wanted == WANT_PARITY_BACK);
  p->solver = solver_new (a->sb.code, a->sb.w, p->k, p->m);
  if (p->solver == NULL)
    refuse (a, ENOMEM, "out of memory");
}

static enum wanted
wanted_by (const struct command *cmd)
{
  switch (cmd->kind) {
  case COMMAND_PARITY: return WANT_PARITY;
  case COMMAND_PARITY_CANCEL: return WANT_PARITY_BACK;
  case COMMAND_WIDEN: return WANT_DATA;
  case COMMAND_WIDEN_CANCEL: return WANT_DATA_BACK;
  default: return WANT_NOTHING;
  }
}

/* The spare of a command. */
static struct seat *
find_spare (const struct array *a, const uuid_bytes *uuid)
{
  for (unsigned i = 0; i < a->nr_seats; i++) {
    struct seat *s = a->seat[i];

    if (s->m && !s->failing && s->state == SEAT_SPARE &&
        uuid_equal (&s->uuid, uuid))
      return s;
  }
  return NULL;
}

void
shape_start (struct array *a, struct command *cmd)
{
  struct shape *p = a->shape;
  const enum wanted wanted = wanted_by (cmd);
  const char *what = shape_is_busy (a) ?
    "another member is being added: try again" : obstacle (a, wanted);
  struct seat *s = NULL;

  if (what == NULL && wanted == WANT_DATA) {
    s = find_spare (a, &cmd->uuid);
    if (s == NULL)
      what = "the new member is no spare any more";
    else if (s->m->ops->size (s->m) < layout_end (&a->sb.l))
      what = "the new member is too small";
  }
  if (what) {
    command_end (a, cmd, EINVAL, what);
    return;
  }
  want (a, wanted, cmd);
  if (s && p->wanted)
    p->member = new_member (a, s);
}

void
shape_end_widening (struct array *a)
{
  if (!shape_is_busy (a) && engine_now (a) >= a->shape->not_before)
    want (a, WANT_WIDENED, NULL);
}

bool
shape_is_busy (const struct array *a)
{
  return a->shape->wanted || a->shape->ends;
}

/* ---- the record ---------------------------------------------------------- */

/* Reads in clients' threads, and their looks at holes, have users in the
 * seats.  In the thread of such a read data has its old place.
 */
static bool
has_users (const struct array *a)
{
  for (unsigned slot = 0; slot < a->n; slot++)
    for (unsigned i = 0; i < 2; i++)
      if (a->at[slot][i] && seat_users (a->at[slot][i]) > 0)
        return true;
  return false;
}

/* Where data moves, or has moved, reads have ended too; and then the headers of
 * the journal say that no row has moved (W2).
 */
static bool
is_ready (struct array *a)
{
  const struct shape *p = a->shape;

  if (!hold_is_quiet (a))
    return false;
  if (!is_of_data (p->wanted))
    return true;
  unlocked_no_place (a);
  if (!hold_reads (a) || has_users (a))
    return false;
  return p->wanted != WANT_DATA || new_member_joins (a, p->member);
}

/* Bytes, of all rows. */
static uint64_t
widened_size (const struct array *a)
{
  return a->sb.l.data_len * a->g.k;
}

static bool
begin (struct array *a, struct seat **s, char *why)
{
  const struct shape *p = a->shape;
  const uint32_t crc = code_parity_crc (a->sb.code, a->sb.w, p->k, p->m);

  switch (p->wanted) {
  case WANT_PARITY:
    *s = join_parity (a, p->cmd, crc, why);
    return *s;
  case WANT_PARITY_BACK:
    return membership_begin_cancel (&a->membership, crc, why) == 0;
  case WANT_DATA:
    *s = new_member_seat (p->member);
    return membership_begin_widen (&a->membership, (*s)->dev, crc, why) == 0;
  case WANT_DATA_BACK:
    return membership_begin_widen_cancel (&a->membership, crc, why) == 0;
  case WANT_WIDENED:
    return membership_end_widening (&a->membership, widened_size (a),
                                    why) == 0;
  case WANT_NOTHING:
    break;
  }
  return false;
}

/* What is in the way of what is wanted. */
static const char *
problem (const struct array *a)
{
  const struct shape *p = a->shape;
  const char *what = obstacle (a, p->wanted);

  return what == NULL && p->member ? new_member_problem (p->member) : what;
}

bool
shape_begin (struct array *a, struct command **cmd, struct seat **s)
{
  struct shape *p = a->shape;
  char why[MEMBERSHIP_TEXT_LEN] = "";

  if (p->wanted == WANT_NOTHING || !p->holds || problem (a) || !is_ready (a))
    return false;
  *cmd = p->cmd;
  *s = NULL;
  if (begin (a, s, why))
    return true;
  refuse (a, EINVAL, why);
  return false;
}

static bool
has_shape (const struct array *a)
{
  const struct sb_shape *s = &a->membership.shape;

  return a->g.k == s->k && a->g.m == s->m &&
    (a->shape->wanted != WANT_WIDENED || a->g.widening == s->widening);
}

bool
shape_may_follow (struct array *a)
{
  return has_shape (a) || hold_reads (a);
}

/* A slot that is not there any more, or was not to be. */
static void
forget_slot (struct array *a, unsigned slot)
{
  free (a->slot_path[slot]);
  a->slot_path[slot] = NULL;
  a->new_targets &= ~BIT (slot);
  outcome_forget (a, slot);
}

void
shape_follow (struct array *a)
{
  const struct sb_shape *s = &a->membership.shape;
  struct shape *p = a->shape;
  struct solver *solver = a->solver;

  a->sb.paused &= s->first || s->widening;
  if (has_shape (a))
    return;
  a->g.k = s->k;
  a->g.m = s->m;
  a->g.fixed = s->fixed;
  a->g.size = s->size;
  p->ends = a->g.widening && !s->widening && p->wanted == WANT_WIDENED;
  a->g.widening = s->widening;
  a->g.frontier = a->moving.end = 0;
  a->n = a->g.k + a->g.m;
  p->least_n = MIN (p->least_n, a->n);
  a->solver = p->solver;
  p->solver = solver;
  sb_set_shape (&a->sb, s);
  a->engine.hooks->reshaped (a);
}

static void
say_done (const struct array *a, enum wanted wanted)
{
  switch (wanted) {
  case WANT_PARITY:
    log_notice ("slot %u: parity is added: %u members may be lost, and %u "
                "when it is filled", a->n - 1, a->g.m - 1, a->g.m);
    break;
  case WANT_PARITY_BACK:
    log_notice ("parity is not added: slot %u is taken back", a->n);
    break;
  case WANT_DATA:
    log_notice ("slot %u: the array is widened: its rows move now", a->n - 1);
    break;
  case WANT_DATA_BACK:
    log_notice ("the array is not widened: slot %u is taken back", a->n);
    break;
  case WANT_WIDENED:
    log_notice ("the array is widened, to %" PRIu64 " bytes", a->g.size);
    break;
  case WANT_NOTHING:
    break;
  }
}

int
shape_decided (struct array *a, const char **why)
{
  struct shape *p = a->shape;
  const enum wanted wanted = p->wanted;
  const bool done = a->g.k == p->k && a->g.m == p->m &&
    (wanted != WANT_WIDENED || p->ends);

  if (p->ends) {                /* and it still holds all else */
    p->wanted = WANT_NOTHING;
    a->consistency->begin_anew (a, NULL);
  }
  else
    let_go (a);
  if (a->n < MAX_SLOTS)
    forget_slot (a, a->n);
  if (done)
    say_done (a, wanted);
  *why = done ? NULL : "a member has failed meanwhile: nothing was changed";
  return done ? 0 : EIO;
}

/* ---- the room ------------------------------------------------------------ */

static void
hold (struct array *a)
{
  struct shape *p = a->shape;

  if (!p->holds) {
    p->holds = !a->ops_held && hold_begin (a);
    p->since = engine_now (a);
  }
  else if (engine_now (a) - p->since > HELD_MAX_NS)
    refuse (a, EBUSY, "operations that are under way do not end, as some "
            "member does not answer or has no space: try again");
}

static void
shape_turn (struct array *a)
{
  struct shape *p = a->shape;
  const char *what;

  if (p->ends && (a->failed || a->consistency->has_begun (a))) {
    p->ends = false;
    let_go (a);
  }
  if (p->wanted == WANT_NOTHING || p->ends || a->change)
    return;
  what = problem (a);
  if (what)
    refuse (a, EINVAL, what);
  else if (p->member == NULL || new_member_is_ready (a, p->member))
    hold (a);
}

/* Of the slot that is filled. */
static const struct seat *
filled_member (const struct array *a)
{
  const struct seat *s = a->at[a->n - 1][1];

  return s && s->state == SEAT_TARGET && !s->failing ? s : NULL;
}

/* That of added parity. */
static void
shape_status (const struct array *a, struct array_status *st)
{
  struct array_reshape *r = &st->reshape;
  const struct seat *s = filled_member (a);

  if (!a->sb.record.self.first)
    return;
  *r = (struct array_reshape) {
    .state = RESHAPE_MOVING, .k = a->g.k, .m = a->g.m,
    .done = s ? s->cursor : 0, .total = a->sb.l.data_len,
  };
  if (s && s->complete)
    r->state = RESHAPE_FINISHING;
  else if (a->sb.paused)
    r->state = RESHAPE_PAUSED;
  else if (s == NULL || !a->writable) {
    r->state = RESHAPE_WAITING;
    r->why = !a->writable ? "for the first connection that may write" :
      "its member is lost: replace it, or take the slot back (gpuraid "
      "add-parity CONTROL cancel)";
  }
  else {
    r->bytes_per_second = st->rebuild.bytes_per_second;
    r->eta_seconds = st->rebuild.eta_seconds;
  }
}

static bool
shape_wants_tick (const struct array *a)
{
  return shape_is_busy (a);
}

const struct room room_shape = {
  .init = shape_init, .free = shape_free, .turn = shape_turn,
  .wants_tick = shape_wants_tick, .status = shape_status,
};
