/* gpuraid: tests: which functions of array/ a request enters.
 *
 * scripts/dev/walks builds it, with array/ compiled by -finstrument-functions,
 * and turns what it prints into files: a line "WALK ADDRESS" for each function
 * that a walk enters, in this order.
 *
 * In a turn the main loop asks each room what it can start.  What that enters
 * when there is nothing to start is learnt before each walk, in an array that
 * rests.  In a turn of the walk it does not count, except on the way to another
 * function, and where another one called it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array/main-loop.h"
#include "raidmap/limits.h"
#include "tests/sim/sim-array.h"

#define SECOND UINT64_C (1000000000)
#define CHUNK 65536u
#define STRIPE_LEN (4 * CHUNK)
#define NR_STRIPES 64u

/* ---- what is entered ----------------------------------------------------- */

struct function {
  void *fn;
  bool idle;                    /* a turn that finds nothing enters it */
  unsigned no;                  /* the order in which they count; 0: not */
};

static struct function table[4096];
static unsigned nr_counted;
static enum { OFF, LEARNS, WALKS } recorder;

/* What a turn is in, the hook first. */
static struct function *turn[256];
static unsigned depth;

static struct function *
find (void *fn)
{
  const unsigned nr = sizeof table / sizeof table[0];
  unsigned i = ((uintptr_t) fn >> 2) % nr;

  while (table[i].fn && table[i].fn != fn)
    i = (i + 1) % nr;
  table[i].fn = fn;
  return &table[i];
}

static void
count (struct function *f)
{
  if (f->no == 0)
    f->no = ++nr_counted;
}

/* The engine calls it each time before the lock is released. */
static bool
is_hook (const void *fn)
{
  return fn == (void *) main_loop_hooks.turn ||
    fn == (void *) main_loop_hooks.last;
}

static bool
turn_works (void)
{
  for (unsigned i = 1; i < depth; i++)
    if (!turn[i]->idle)
      return true;
  return false;
}

extern void __cyg_profile_func_enter (void *fn, void *site);
extern void __cyg_profile_func_exit (void *fn, void *site);

void
__cyg_profile_func_enter (void *fn, void *site)
{
  struct function *f;

  if (recorder == OFF)
    return;
  f = find (fn);
  if (depth == 0 && !is_hook (fn)) {
    if (recorder == WALKS)
      count (f);
    return;
  }
  assert (depth < sizeof turn / sizeof turn[0]);
  turn[depth++] = f;
  if (recorder == LEARNS)
    f->idle = true;
  else if (turn_works ())
    for (unsigned i = 1; i < depth; i++)
      count (turn[i]);
}

void
__cyg_profile_func_exit (void *fn, void *site)
{
  if (recorder != OFF && depth > 0)
    depth--;
}

/* ---- the walks ----------------------------------------------------------- */

static uint8_t buf[NR_STRIPES * STRIPE_LEN];

static void
must (bool is_so, const char *what)
{
  if (!is_so) {
    fprintf (stderr, "walks: %s\n", what);
    exit (1);
  }
}

static void
nothing (void *arg)
{
}

static void
wait (struct sim_array *sa, uint64_t ns)
{
  sim_at (sa->sim, ns, nothing, NULL);
  must (sim_array_pause (sa, ns), "it crashed");
}

/* When all that was done before is in place. */
static void
learn (struct sim_array *sa)
{
  wait (sa, SECOND);
  engine_kick (sa->a);          /* begins what waited for another's end */
  wait (sa, SECOND);
  find ((void *) engine_now)->idle = true;      /* the clock alone is no work */
  recorder = LEARNS;
  engine_lock (sa->a);
  engine_unlock (sa->a);
  recorder = OFF;
}

static void
begin (void)
{
  for (unsigned i = 0; i < sizeof table / sizeof table[0]; i++)
    table[i].no = 0;
  nr_counted = 0;
  recorder = WALKS;
}

static void
end (const char *walk)
{
  recorder = OFF;
  for (unsigned no = 1; no <= nr_counted; no++)
    for (unsigned i = 0; i < sizeof table / sizeof table[0]; i++)
      if (table[i].no == no)
        printf ("%s %p\n", walk, table[i].fn);
}

static void
open_array (struct sim_array *sa)
{
  must (sim_array_open (sa, ~UINT64_C (0), DEGRADED_ALLOW, false) == 0 &&
        sim_array_writable (sa) == 0, sa->said);
}

static void
write_at (struct sim_array *sa, uint64_t off)
{
  must (sim_array_write (sa, buf, BLOCK_LEN, off, ARRAY_FUA) == 0,
        "a write failed");
}

static void
read_at (struct sim_array *sa, uint64_t len, uint64_t off)
{
  must (sim_array_read (sa, buf, len, off) == 0, "a read failed");
}

/* An array that is full of data, with nothing in its cache.  Work of the timer
 * is no part of a walk.
 */
static struct sim_array *
start (bool hedge)
{
  const struct geometry g = { .k = 4, .m = 2, .chunk = CHUNK };
  struct sim_array *sa = sim_array_new (1, &g, NR_STRIPES, 0);

  assert (sa->g.size == sizeof buf);
  sa->hedge.off = !hedge;
  sa->code = CODE_RS;
  sa->w = 8;
  sim_array_create (sa);
  open_array (sa);
  must (sim_array_write (sa, buf, sizeof buf, 0, ARRAY_FUA) == 0,
        "a write failed");
  must (sim_array_stop (sa), "it does not stop");
  open_array (sa);
  wait (sa, 60 * SECOND);
  limits.tick_ns = 3600 * SECOND;
  return sa;
}

static void
stop (struct sim_array *sa)
{
  must (sim_array_abandon (sa), "it does not end");
  sim_array_free (sa);
  limits = default_limits;
}

/* In another stripe first: then the page of the checksum table is in memory,
 * and the region is marked.
 */
static void
walk_write (const char *walk)
{
  struct sim_array *sa = start (true);

  write_at (sa, 0);
  learn (sa);
  begin ();
  write_at (sa, STRIPE_LEN);
  end (walk);
  stop (sa);
}

/* In other stripes first, from each member. */
static void
walk_read (const char *walk, bool degraded)
{
  struct sim_array *sa = start (true);

  if (degraded)
    must (sim_array_fail (sa, layout_slot (&sa->g, 1, 0)) == 0, sa->said);
  read_at (sa, 6 * STRIPE_LEN, 2 * STRIPE_LEN);
  learn (sa);
  begin ();
  read_at (sa, BLOCK_LEN, STRIPE_LEN);
  end (walk);
  stop (sa);
}

/* In other stripes first, and once the same, with the lock. */
static void
walk_unlocked_read (const char *walk)
{
  struct sim_array *sa = start (false);

  read_at (sa, 6 * STRIPE_LEN, 2 * STRIPE_LEN);
  read_at (sa, BLOCK_LEN, STRIPE_LEN);
  begin ();
  read_at (sa, BLOCK_LEN, STRIPE_LEN);
  end (walk);
  stop (sa);
}

/* It moves when a window ends. */
static void
wait_for_cursor (struct sim_array *sa)
{
  const uint64_t was = sa->a->at[0][1]->cursor;

  while (sa->a->at[0][1] && sa->a->at[0][1]->cursor == was)
    must (sim_step (sa->sim), "a rebuild stands still");
  must (sa->a->at[0][1], "a rebuild ended early");
}

static void
walk_rebuild (const char *walk)
{
  struct sim_array *sa = start (true);
  struct sim_request q;

  sa->a->window_len = CHUNK;
  must (sim_array_fail (sa, 0) == 0, sa->said);
  learn (sa);
  sim_array_init_replace (&q, sa, 0, sim_array_add_disk (sa));
  must (sim_array_run (&q) == 0, sa->said);
  wait_for_cursor (sa);
  begin ();
  wait_for_cursor (sa);
  end (walk);
  stop (sa);
}

int
main (void)
{
  sim_consistency = CONSISTENCY_JOURNAL;
  sim_checksum = CHECKSUM_CRC32C;
  for (size_t i = 0; i < sizeof buf; i++)
    buf[i] = (i * UINT64_C (0x9e3779b97f4a7c15)) >> 40;
  walk_write ("write");
  walk_read ("read", false);
  walk_unlocked_read ("unlocked-read");
  walk_read ("degraded-read", true);
  walk_rebuild ("rebuild-window");
  return 0;
}
