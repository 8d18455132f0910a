/* gpuraid: one more parity member, and back.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "array/cache/cache.h"
#include "array/change/command.h"
#include "array/change/grow.h"
#include "array/change/hold.h"
#include "array/change/join.h"
#include "array/change/parity.h"
#include "array/engine/consistency.h"
#include "array/health/outcome.h"
#include "array/io/superblock.h"
#include "array/plan/code.h"
#include "array/seats/seat.h"
#include "array/sums/sums.h"

/* Clients wait no longer than this for operations that do not end. */
#define HELD_MAX_NS UINT64_C (10000000000)

#define NOT_ADDED "no parity is being added"

struct parity {
  uint64_t cache_len;           /* bytes, of all that has a share of it */
  unsigned least_n;             /* slots, the fewest since the start */
  struct command *cmd;          /* it waits until all have ended; or NULL */
  bool holds;                   /* array/change/hold.h */
  uint64_t since;               /* then: ns */
  unsigned to;                  /* m, if the change comes into force */
  struct solver *solver;        /* for that */
};

static int
parity_init (struct array *a, const struct config *c,
             const struct assembly *as)
{
  a->parity = calloc (1, sizeof *a->parity);
  if (a->parity == NULL)
    return -1;
  a->parity->cache_len = c->cache_len;
  a->parity->least_n = a->n;
  return 0;
}

static void
parity_free (struct array *a)
{
  if (a->parity)
    solver_free (a->parity->solver);
  free (a->parity);
}

/* ---- what may begin ------------------------------------------------------ */

static bool
is_cancel (const struct command *cmd)
{
  return cmd->kind == COMMAND_PARITY_CANCEL;
}

/* As it would be. */
static struct geometry
more_parity (const struct array *a)
{
  struct geometry g = a->g;

  g.fixed |= BIT (a->n);
  g.m++;
  return g;
}

/* Now, and at the next start. */
static bool
cache_is_enough (const struct array *a, const struct geometry *g)
{
  const uint64_t sums = a->sums ? sums_memory (g, 0) : 0;

  return cache_fits (a, g) &&
    a->parity->cache_len >= cache_min_len (g) + sums;
}

/* Why the array can't have one more at all; NULL: it can. */
static const char *
limit (const struct array *a)
{
  const struct geometry g = more_parity (a);

  if (a->n >= MAX_SLOTS || a->n >= 1u << a->sb.w)
    return a->n >= MAX_SLOTS ? "the array has as many members as it can" :
      "the array has as many members as its code can: w=4 has no room for "
      "more";
  if (!cache_is_enough (a, &g))
    return "the cache is too small for one more: start the server with a "
      "larger cache=";
  if (a->n >= a->parity->least_n + SUMS_MAX_ADDED)
    return "too many were added since the start: start the server again "
      "first";
  return NULL;
}

static const char *
obstacle_to_cancel (const struct array *a)
{
  if (!a->sb.record.self.first)
    return NOT_ADDED;
  if (a->irregular_slots & ~a->lost_slots)
    return "a member is being replaced: wait until that has ended (gpuraid "
      "wait)";
  for (unsigned slot = 0; slot < a->n - 1; slot++)
    if (a->at[slot][1])
      return "another member is being rebuilt: wait until that has ended "
        "(gpuraid wait)";
  if (a->nr_unsynced)
    return "a resync is under way: wait until it has ended (gpuraid wait)";
  return NULL;
}

static const char *
obstacle (const struct array *a, bool cancel)
{
  const char *what = cancel ? a->failed ? "the array has failed" :
    a->stopping ? "the array stops" : obstacle_to_cancel (a) :
    grow_obstacle (a);

  if (what)
    return what;
  if (a->sb.scrub.state != SB_SCRUB_NONE)
    return "a scrub is under way: wait until it has ended (gpuraid wait), or "
      "cancel it";
  if (grow_is_running (a))
    return "the array is growing: wait until that has ended";
  return cancel ? NULL : limit (a);
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
parity_may_begin (const struct array *a, char why[ARRAY_WHY_LEN])
{
  const bool ends =
    !a->writable && (a->nr_unsynced > 0 || a->irregular_slots > 0);

  return refusal (ends ? NULL : obstacle (a, false), why);
}

int
parity_is_added (const struct array *a, char why[ARRAY_WHY_LEN])
{
  return refusal (a->sb.record.self.first ? NULL : NOT_ADDED, why);
}

int
parity_pause (struct array *a, bool pause, char why[ARRAY_WHY_LEN])
{
  const int err = parity_is_added (a, why);

  if (err || a->sb.paused == pause)
    return err;
  a->sb.paused = pause;
  log_notice ("slot %u: to fill the new parity member %s", a->n - 1,
              pause ? "is paused" : "goes on");
  return 0;
}

/* ---- a command ----------------------------------------------------------- */

static void
let_go (struct array *a)
{
  struct parity *p = a->parity;

  p->cmd = NULL;
  solver_free (p->solver);
  p->solver = NULL;
  if (p->holds)
    hold_end (a);
  p->holds = false;
}

static void
refuse (struct array *a, int error, const char *why)
{
  struct command *cmd = a->parity->cmd;

  let_go (a);
  command_end (a, cmd, error, why);
}

void
parity_start (struct array *a, struct command *cmd)
{
  struct parity *p = a->parity;
  const char *what = p->cmd ? "another member is being added: try again" :
    obstacle (a, is_cancel (cmd));

  if (what) {
    command_end (a, cmd, EINVAL, what);
    return;
  }
  p->cmd = cmd;
  p->to = a->g.m + (is_cancel (cmd) ? -1 : 1);
  p->solver = solver_new (a->sb.code, a->sb.w, a->g.k, p->to);
  if (p->solver == NULL)
    refuse (a, ENOMEM, "out of memory");
}

/* ---- the record ---------------------------------------------------------- */

bool
parity_begin (struct array *a, struct command **cmd, struct seat **s)
{
  struct parity *p = a->parity;
  char why[MEMBERSHIP_TEXT_LEN] = "";
  uint32_t crc;

  if (p->cmd == NULL || obstacle (a, is_cancel (p->cmd)) ||
      !hold_is_quiet (a))
    return false;
  crc = code_parity_crc (a->sb.code, a->sb.w, a->g.k, p->to);
  *cmd = p->cmd;
  *s = NULL;
  if (is_cancel (p->cmd) ?
      membership_begin_cancel (&a->membership, crc, why) == 0 :
      (*s = join_parity (a, p->cmd, crc, why)) != NULL)
    return true;
  refuse (a, EINVAL, why);
  return false;
}

bool
parity_may_follow (struct array *a)
{
  if (a->g.m == a->membership.shape.m)
    return true;
  return hold_reads (a);
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
parity_follow (struct array *a)
{
  struct parity *p = a->parity;
  struct solver *solver = a->solver;

  a->sb.paused &= a->membership.shape.first;
  if (a->g.m == a->membership.shape.m)
    return;
  a->g.m = a->membership.shape.m;
  a->g.fixed = a->membership.shape.fixed;
  a->n = a->g.k + a->g.m;
  p->least_n = MIN (p->least_n, a->n);
  a->solver = p->solver;
  p->solver = solver;
  sb_set_shape (&a->sb, &a->membership.shape);
  a->engine.hooks->reshaped (a);
}

int
parity_decided (struct array *a, const char **why)
{
  const struct parity *p = a->parity;
  const bool cancel = is_cancel (p->cmd), done = a->g.m == p->to;
  const unsigned slot = a->n - 1;

  let_go (a);
  if (a->n < MAX_SLOTS)
    forget_slot (a, a->n);
  if (done && cancel)
    log_notice ("parity is not added: slot %u is taken back", a->n);
  else if (done)
    log_notice ("slot %u: parity is added: %u members may be lost, and %u "
                "when it is filled", slot, a->g.m - 1, a->g.m);
  *why = done ? NULL : "a member has failed meanwhile: nothing was changed";
  return done ? 0 : EIO;
}

/* ---- the room ------------------------------------------------------------ */

static void
parity_turn (struct array *a)
{
  struct parity *p = a->parity;
  const char *what;

  if (p->cmd == NULL || a->change)
    return;
  what = obstacle (a, is_cancel (p->cmd));
  if (what)
    refuse (a, EINVAL, what);
  else if (!p->holds) {
    p->holds = hold_begin (a);
    p->since = engine_now (a);
  }
  else if (engine_now (a) - p->since > HELD_MAX_NS)
    refuse (a, EBUSY, "operations that are under way do not end, as some "
            "member does not answer or has no space: try again");
}

/* Of the slot that is filled. */
static const struct seat *
new_member (const struct array *a)
{
  const struct seat *s = a->at[a->n - 1][1];

  return s && s->state == SEAT_TARGET && !s->failing ? s : NULL;
}

static void
parity_status (const struct array *a, struct array_status *st)
{
  struct array_reshape *r = &st->reshape;
  const struct seat *s = new_member (a);

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
parity_wants_tick (const struct array *a)
{
  return a->parity->cmd != NULL;
}

const struct room room_parity = {
  .init = parity_init, .free = parity_free, .turn = parity_turn,
  .wants_tick = parity_wants_tick, .status = parity_status,
};
