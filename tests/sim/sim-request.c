/* gpuraid: tests: requests of simulated clients.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "array/change/grow.h"
#include "array/change/join.h"
#include "array/change/readd.h"
#include "array/passes/pass.h"
#include "array/request/internal.h"
#include "array/sums/internal.h"
#include "tests/sim/sim-array.h"

#define MAX_STEPS 2000000u
#define HELD_NS UINT64_C (10000000)

/* Mostly short, now and then long. */
uint64_t
sim_array_pause_ns (struct sim_array *sa)
{
  switch (sim_below (sa->sim, 8)) {
  case 0: return 0;
  case 1: return sim_below (sa->sim, sa->max_pause_ns + 1);
  default: return sim_below (sa->sim, sa->max_pause_ns / 50 + 1);
  }
}

static void step_request (void *arg);

static void
step_soon (struct sim_request *q)
{
  if (!q->sa->dead)
    sim_at (q->sa->sim, sim_array_pause_ns (q->sa), step_request, q);
}

static void
end_request (struct sim_request *q)
{
  q->state = SIM_IDLE;
  list_remove (&q->link);
  q->done (q);
}

/* Is one of these a read, in the client's thread, of a disk that hangs? */
static bool
any_hangs (const struct step *step, unsigned nr)
{
  for (unsigned i = 0; i < nr; i++)
    if (step[i].from == STEP_SEAT && sim_array_disk_of (step[i].seat)->hung)
      return true;
  return false;
}

static bool
is_held (const struct sim_request *q)
{
  const struct request *r = &q->r;

  if (r->phase != R_COPY || q->sa->dead)
    return false;
  return r->kind == REQUEST_READ ? any_hangs (r->step, r->nr_steps) :
    any_hangs (r->fill, r->nr_fills);
}

/* What is open was found under the lock, and is closed by each change of it: so
 * whenever the lock is free it holds for all that is open.
 */
static void
check_open (const struct array *a)
{
  for (unsigned slot = 0; slot < a->n; slot++) {
    const struct seat *s = atomic_load (&a->open_seat[slot]);

    assert (s == NULL || (s == a->at[slot][0] && unlocked_may_open (a, slot)));
  }
  for (unsigned b = 0; a->sums && b < a->sums->nr_buckets; b++)
    for (struct sums_page *p = a->sums->bucket[b]; p; p = p->hash_next)
      assert (sums_is_loaded (a, p, p->open));
}

/* Now and then as if another thread had the array lock: that one decides, and
 * the engine thread may be woken.
 */
static enum request_next
decide (struct sim_request *q)
{
  struct array *a = q->sa->a;
  enum request_next next;

  check_open (a);
  if (sim_below (q->sa->sim, 4) > 0 || sim_thread_decides (q->sa))
    return request_decide (&q->r);
  engine_lock (a);
  next = request_decide (&q->r);
  engine_unlock (a);
  sim_thread_woken (q->sa);
  return next;
}

static void
step_request (void *arg)
{
  struct sim_request *q = arg;
  const bool was = q->held;

  q->held = q->state == SIM_COPIES && is_held (q);
  q->sa->nr_held += q->held && !was;
  if (q->held) {
    sim_at (q->sa->sim, HELD_NS, step_request, q);
    return;
  }
  if (q->state == SIM_COPIES) {
    q->state = SIM_DECIDES;
    if (request_copy (&q->r))
      end_request (q);
    else
      step_soon (q);
    return;
  }
  assert (q->state == SIM_DECIDES);
  q->state = SIM_WAITS;
  switch (decide (q)) {
  case REQUEST_WAIT:
    break;
  case REQUEST_COPY:
    q->state = SIM_COPIES;
    step_soon (q);
    break;
  case REQUEST_END:
    end_request (q);
    break;
  }
}

static void
wake (struct request *r)
{
  struct sim_request *q = r->opaque;

  q->state = SIM_DECIDES;
  step_soon (q);
}

void
sim_request_init (struct sim_request *q, struct sim_array *sa,
                  enum request_kind kind)
{
  request_init (&q->r, sa->a, kind);
  q->r.opaque = q;
  q->r.wake = wake;
  q->sa = sa;
  q->state = SIM_IDLE;
  q->held = false;
  list_init (&q->link);
}

void
sim_command_init (struct sim_request *q, struct sim_array *sa,
                  enum command_kind kind)
{
  sim_request_init (q, sa, REQUEST_COMMAND);
  q->r.command.kind = kind;
}

void
sim_request_start (struct sim_request *q)
{
  assert (q->state == SIM_IDLE && !q->sa->dead);
  list_append (&q->sa->requests, &q->link);
  q->state = SIM_DECIDES;
  step_soon (q);
}

bool
sim_array_step_request (struct sim_array *sa)
{
  list_for_each (l, &sa->requests) {
    struct sim_request *q = list_item (l, struct sim_request, link);

    if (q->state == SIM_WAITS)
      continue;
    step_request (q);
    return true;
  }
  return false;
}

/* ---- blocking forms --------------------------------------------------- */

static void
nothing (struct sim_request *q)
{
}

int
sim_array_run (struct sim_request *q)
{
  q->done = nothing;
  sim_request_start (q);
  for (unsigned i = 0; i < MAX_STEPS; i++) {
    if (q->state == SIM_IDLE)
      return q->r.error;
    if (!sim_step (q->sa->sim))
      return -1;
  }
  return -1;
}

static struct sim_request *
new_request (void)
{
  struct sim_request *q = malloc (sizeof *q);

  assert (q != NULL);
  return q;
}

void
sim_array_end_readd (struct sim_request *q)
{
  readd_free (q->r.command.back);
  member_close (q->r.command.target);
  q->r.command.back = NULL;
  q->r.command.target = NULL;
}

static void
free_request (struct sim_request *q)
{
  if (q->r.kind == REQUEST_COMMAND)
    sim_array_end_readd (q);
  free (q);
}

/* After a crash it is still on the list: abandoning frees it. */
static int
run_and_free (struct sim_request *q)
{
  const int r = sim_array_run (q);

  if (q->state == SIM_IDLE)
    free_request (q);
  else
    q->done = free_request;
  return r;
}

static int
data_request (struct sim_array *sa, enum request_kind kind, void *buf,
              uint64_t len, uint64_t off, unsigned flags)
{
  struct sim_request *q = new_request ();

  sim_request_init (q, sa, kind);
  q->r.buf = buf;
  q->r.len = len;
  q->r.off = off;
  q->r.flags = flags;
  return run_and_free (q);
}

int
sim_array_writable (struct sim_array *sa)
{
  struct sim_request *q = new_request ();

  sim_command_init (q, sa, COMMAND_WRITABLE);
  return run_and_free (q);
}

int
sim_array_read (struct sim_array *sa, void *buf, uint64_t len, uint64_t off)
{
  return data_request (sa, REQUEST_READ, buf, len, off, 0);
}

int
sim_array_write (struct sim_array *sa, const void *buf, uint64_t len,
                 uint64_t off, unsigned flags)
{
  return data_request (sa, REQUEST_WRITE, (void *) buf, len, off, flags);
}

int
sim_array_zero (struct sim_array *sa, uint64_t len, uint64_t off,
                unsigned flags)
{
  return data_request (sa, REQUEST_ZERO, NULL, len, off, flags);
}

int
sim_array_flush (struct sim_array *sa)
{
  return data_request (sa, REQUEST_FLUSH, NULL, 0, 0, 0);
}

int
sim_array_fail (struct sim_array *sa, unsigned slot)
{
  struct seat *s =
    sa->a->at[slot][0] ? sa->a->at[slot][0] : sa->a->at[slot][1];
  struct sim_request *q;

  if (s == NULL)
    return EINVAL;
  q = new_request ();
  sim_command_init (q, sa, COMMAND_FAIL);
  q->r.command.seat = s;
  return run_and_free (q);
}

static void
init_new (struct sim_request *q, struct sim_array *sa, enum command_kind kind,
          unsigned disk)
{
  sim_command_init (q, sa, kind);
  for (unsigned i = 0; i < sizeof q->r.command.uuid.b; i++)
    q->r.command.uuid.b[i] = sim_random (sa->sim);
  q->r.command.target = sim_disk_open (sa->disk[disk], 0);
  assert (q->r.command.target != NULL);
}

void
sim_array_init_replace (struct sim_request *q, struct sim_array *sa,
                        unsigned slot, unsigned disk)
{
  init_new (q, sa, COMMAND_REPLACE, disk);
  q->r.command.slot = slot;
}

void
sim_array_init_spare (struct sim_request *q, struct sim_array *sa,
                      unsigned disk)
{
  init_new (q, sa, COMMAND_SPARE, disk);
}

void
sim_array_init_parity (struct sim_request *q, struct sim_array *sa,
                       unsigned disk)
{
  init_new (q, sa, COMMAND_PARITY, disk);
}

static int
run_shape (struct sim_request *q)
{
  struct sim_array *sa = q->sa;
  char why[ARRAY_WHY_LEN] = "";
  int r;

  q->r.command.why = why;
  r = sim_array_run (q);
  q->r.command.why = NULL;
  if (r > 0)
    snprintf (sa->said, sizeof sa->said, "%s", why);
  else if (r == 0)
    sim_array_note_shape (sa);
  if (q->state == SIM_IDLE)
    free_request (q);
  else
    q->done = free_request;
  return r;
}

int
sim_array_add_parity (struct sim_array *sa, unsigned disk)
{
  struct sim_request *q = new_request ();

  sim_array_init_parity (q, sa, disk);
  return run_shape (q);
}

static int
widen_to (struct sim_array *sa, const uuid_bytes *spare)
{
  struct sim_request *q = new_request ();

  sim_command_init (q, sa, COMMAND_WIDEN);
  q->r.command.uuid = *spare;
  return run_shape (q);
}

int
sim_array_widen (struct sim_array *sa, unsigned disk)
{
  struct sim_request *q = new_request ();
  uuid_bytes spare;
  int r;

  sim_array_init_spare (q, sa, disk);
  spare = q->r.command.uuid;
  r = run_and_free (q);
  return r ? r : widen_to (sa, &spare);
}

int
sim_array_cancel_widen (struct sim_array *sa)
{
  struct sim_request *q = new_request ();

  sim_command_init (q, sa, COMMAND_WIDEN_CANCEL);
  return run_shape (q);
}

int
sim_array_cancel_parity (struct sim_array *sa)
{
  struct sim_request *q = new_request ();

  sim_command_init (q, sa, COMMAND_PARITY_CANCEL);
  return run_shape (q);
}

int
sim_array_spare (struct sim_array *sa, unsigned disk)
{
  struct sim_request *q = new_request ();

  sim_array_init_spare (q, sa, disk);
  return run_and_free (q);
}

int
sim_array_replace (struct sim_array *sa, unsigned slot, unsigned disk)
{
  struct sim_request *q = new_request ();

  sim_array_init_replace (q, sa, slot, disk);
  return run_and_free (q);
}

bool
sim_array_init_readd (struct sim_request *q, struct sim_array *sa,
                      unsigned disk)
{
  struct member *m = readd_take_idle (sa->a, sa->disk[disk]->name);
  char why[MEMBERSHIP_TEXT_LEN];

  sim_command_init (q, sa, COMMAND_READD);
  if (m == NULL)
    m = sim_disk_open (sa->disk[disk], 0);
  if (m == NULL)
    return false;
  q->r.command.target = m;
  q->r.command.back = readd_new (sa->a, m, why);
  if (q->r.command.back)
    return true;
  snprintf (sa->said, sizeof sa->said, "%s", why);
  sim_array_end_readd (q);
  return false;
}

int
sim_array_readd (struct sim_array *sa, unsigned disk, bool *full)
{
  struct sim_request *q = new_request ();
  char why[ARRAY_WHY_LEN] = "";
  int r;

  if (!sim_array_init_readd (q, sa, disk)) {
    free (q);
    return EINVAL;
  }
  q->r.command.why = why;
  r = sim_array_run (q);
  *full = q->r.command.full;
  q->r.command.why = NULL;
  if (r > 0)
    snprintf (sa->said, sizeof sa->said, "%s", why);
  if (q->state == SIM_IDLE)
    free_request (q);
  else
    q->done = free_request;
  return r;
}

bool
sim_array_settle (struct sim_array *sa, uint64_t limit_ns)
{
  const uint64_t end = sim_now (sa->sim) + limit_ns;
  struct array *a = sa->a;
  unsigned slot;

  for (unsigned i = 0; i < MAX_STEPS; i++) {
    if (!a->failed && !pass_is_wanted (a) && !a->change &&
        !a->change_wanted && join_find_spare (a, &slot) == NULL)
      return true;
    if (sim_now (sa->sim) > end || !sim_step (sa->sim))
      return false;
  }
  return false;
}

int
sim_array_grow (struct sim_array *sa)
{
  struct array_growth growth;
  char why[ARRAY_WHY_LEN];
  int err;

  engine_lock (sa->a);
  err = grow_start (sa->a, why);
  engine_unlock (sa->a);
  for (unsigned i = 0; err == 0 && grow_is_running (sa->a); i++)
    if (i == MAX_STEPS || !sim_step (sa->sim))
      return -1;
  if (err == 0)
    err = grow_result (sa->a, &growth, why);
  if (err)
    snprintf (sa->said, sizeof sa->said, "%s", why);
  else
    sim_array_note_shape (sa);
  return err;
}

bool
sim_array_pause (struct sim_array *sa, uint64_t ns)
{
  const uint64_t end = sim_now (sa->sim) + ns;

  while (sim_now (sa->sim) < end)
    if (!sim_step (sa->sim))
      return !sim_crashed (sa->sim);
  return true;
}
