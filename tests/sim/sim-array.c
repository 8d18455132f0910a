/* gpuraid: tests: a real array on simulated disks, loop and clock.
 *
 * After a crash everything in flight is failed, and the engine runs to its end:
 * nothing leaks, and the loss of all members at once is tried each time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array/cache/cache.h"
#include "array/create/create.h"
#include "array/main-loop.h"
#include "array/open/assemble.h"
#include "array/plan/code.h"
#include "array/sums/sums.h"
#include "raidmap/bitmap.h"
#include "tests/sim/sim-array.h"

#define MAX_STEPS 2000000u

/* ---- disks ------------------------------------------------------------ */

static void
spoil (struct sim_array *sa, struct sim_disk *d)
{
  uint64_t rubbish[BLOCK_LEN / 8];

  for (unsigned i = 0; i < BLOCK_LEN / 8; i++)
    rubbish[i] = sim_random (sa->sim);
  for (uint64_t off = 0; off < d->size; off += BLOCK_LEN) {
    /* Nothing is between the bitmap and the data. */
    if (off == sa->l.bitmap_off + sa->l.bitmap_len)
      off = sa->l.data_off;
    rubbish[0] = off;
    sim_disk_poke (d, rubbish, BLOCK_LEN, off);
  }
}

void
sim_array_spoil (struct sim_array *sa, unsigned no)
{
  spoil (sa, sa->disk[no]);
}

static unsigned
add_disk (struct sim_array *sa)
{
  char name[16];

  assert (sa->nr_disks < SIM_MAX_DISKS);
  snprintf (name, sizeof name, "disk%u", sa->nr_disks);
  sa->disk[sa->nr_disks] = sim_disk_new (sa->sim, name, sa->disk_size);
  assert (sa->disk[sa->nr_disks] != NULL);
  return sa->nr_disks++;
}

unsigned
sim_array_add_disk (struct sim_array *sa)
{
  const unsigned no = add_disk (sa);

  spoil (sa, sa->disk[no]);
  return no;
}

struct sim_disk *
sim_array_disk_of (const struct seat *s)
{
  /* The path is the disk's name. */
  struct sim_array *sa = list_item (s->a->loop, struct sim_array, loop);

  return s->m ? sa->disk[atoi (s->m->path + 4)] : NULL;
}

struct sim_disk *
sim_array_disk_at (struct sim_array *sa, unsigned slot)
{
  const struct seat *s = sa->a->at[slot][0];

  return s ? sim_array_disk_of (s) : NULL;
}

unsigned
sim_array_disk_no (const struct sim_array *sa, const struct sim_disk *d)
{
  unsigned i = 0;

  while (sa->disk[i] != d)
    i++;
  return i;
}

/* ---- the array -------------------------------------------------------- */

static struct sim_array *said_to;

/* A sink may block, so the engine must have released the array lock. */
static void
check_free (struct array *a)
{
  if (a == NULL)
    return;
  if (pthread_mutex_trylock (&a->engine.lock) != 0) {
    fprintf (stderr, "seed %" PRIu64 ": a message under the lock\n",
             said_to->seed);
    abort ();
  }
  pthread_mutex_unlock (&a->engine.lock);
}

static void
hear_notice (struct sim_array *sa, const char *fmt, va_list args)
{
  char text[4096];
  const char *back;
  va_list again;

  va_copy (again, args);
  vsnprintf (text, sizeof text, fmt, again);
  va_end (again);
  back = strstr (text, "going back to epoch ");
  if (back)
    sscanf (back, "going back to epoch %" SCNu64, &sa->went_back_to);
}

static void
hear (enum log_level level, const char *fmt, va_list args)
{
  va_list again;

  if (said_to)
    check_free (said_to->a);
  if (getenv ("SIM_VERBOSE")) {
    va_copy (again, args);
    fprintf (stderr, "%12.6f ms: ",
             said_to ? sim_now (said_to->sim) / 1e6 : 0.0);
    vfprintf (stderr, fmt, again);
    fputc ('\n', stderr);
    va_end (again);
  }
  if (level != LOG_LEVEL_ERROR && said_to)
    hear_notice (said_to, fmt, args);
  if (level == LOG_LEVEL_ERROR && said_to)
    vsnprintf (said_to->said, sizeof said_to->said, fmt, args);
}

/* Not from the generator of the simulation, so that the rest of a seed's run is
 * the same with any code.
 */
static void
choose_code (struct sim_array *sa)
{
  const unsigned n = (sa->seed * UINT64_C (0x9e3779b97f4a7c15)) >> 62;

  sa->code = n < 2 ? CODE_RS : CODE_CRS;
  sa->w = n == 3 ? 8 : code_default_w (sa->code, sa->g.k, sa->g.m);
}

enum consistency sim_consistency = CONSISTENCY_NONE;
enum checksum sim_checksum = CHECKSUM_NONE;
uint64_t sim_spare_len;

/* How large the disks are. */
static void
lay_out (struct sim_array *sa)
{
  struct config c = { .k = sa->g.k, .chunk = sa->g.chunk,
                      .size = sa->g.size, .consistency = sa->consistency };
  struct geometry fit = sa->g;
  uint64_t need;

  layout_fit (&fit, 0, sa->g.size, create_ring_len (&c, 0),
              sa->checksum != CHECKSUM_NONE, &sa->l, &need);
  sa->disk_size = need + sim_spare_len;
}

struct sim_array *
sim_array_new (uint64_t seed, const struct geometry *g, uint64_t nr_stripes,
               unsigned blocks_less)
{
  struct sim_array *sa = calloc (1, sizeof *sa);

  assert (sa != NULL);
  sa->sim = sim_new (seed);
  assert (sa->sim != NULL);
  said_to = sa;
  log_set_sink (hear);
  sim_verbose (sa->sim, getenv ("SIM_VERBOSE") != NULL);
  sim_random_seed (seed);
  sa->seed = seed;
  sa->g = *g;
  choose_code (sa);
  sa->g.size = nr_stripes * g->k * g->chunk - blocks_less * BLOCK_LEN;
  sa->nr_stripes = layout_nr_stripes (&sa->g);
  sa->consistency = sim_consistency;
  sa->checksum = sim_checksum;
  lay_out (sa);
  sa->cache_len = cache_min_len (g);
  if (sa->checksum != CHECKSUM_NONE)
    sa->cache_len += sums_memory (g, 0);
  sa->max_pause_ns = 500000;
  list_init (&sa->requests);
  sim_array_init_loop (sa);
  for (unsigned i = 0; i < g->k + g->m; i++)
    add_disk (sa);
  return sa;
}

void
sim_array_free (struct sim_array *sa)
{
  if (sa == NULL)
    return;
  assert (sa->a == NULL);
  sim_array_end_check (sa);
  free (sa->written);
  sim_free (sa->sim);
  said_to = NULL;
  free (sa);
}

static void
init_config (struct sim_array *sa)
{
  config_init (&sa->c);
  sa->c.k = sa->widens ? 0 : sa->g.k;
  sa->c.m = sa->more_parity || sa->widens ? 0 : sa->g.m;
  sa->c.chunk = sa->g.chunk;
  sa->c.size = sa->back_once || sa->widens ? 0 : sa->g.size;
  sa->c.consistency = sa->consistency;
  sa->c.checksum = sa->checksum;
  sa->c.code = sa->code;
  sa->c.w = sa->w;
  sa->c.cache_len = sa->cache_len;
  sa->c.writethrough = sa->writethrough;
  sa->c.hedge = sa->hedge;
}

bool
sim_array_try_create (struct sim_array *sa)
{
  struct member *m[MAX_SLOTS];
  int r;

  init_config (sa);
  config_geometry_defaults (&sa->c);
  for (unsigned i = 0; i < sa->g.k + sa->g.m; i++)
    m[i] = sim_disk_open (sa->disk[i], 0);
  r = create_on_members (&sa->c, m);
  for (unsigned i = 0; i < sa->g.k + sa->g.m; i++)
    member_close (m[i]);
  return r == 0;
}

void
sim_array_create (struct sim_array *sa)
{
  if (!sim_array_try_create (sa))
    abort ();
}

int
sim_array_open (struct sim_array *sa, uint64_t which,
                enum degraded_policy policy, bool readonly)
{
  struct member *m[SIM_MAX_DISKS];
  struct assembly as;
  unsigned nr = 0;

  assert (sa->a == NULL);
  sa->back_once |= sa->went_back_to > 0;
  init_config (sa);
  sa->c.degraded = policy;
  sa->said[0] = '\0';
  sa->went_back_to = 0;
  FOR_EACH_BIT (i, which & LOW_BITS (sa->nr_disks)) {
    m[nr] = sim_disk_open (sa->disk[i], readonly ? MEMBER_RDONLY : 0);
    if (m[nr])
      nr++;
  }
  if (assemble (&sa->c, m, nr, NULL, &as) == -1)
    return -1;
  sa->uuid = as.sb.array_uuid;
  sa->dead = false;
  sa->dead_ns = 0;
  sa->coder.inner = coder_isal_new (0);
  assert (sa->coder.inner != NULL);
  limits.ring_threads = 1;
  limits.engine_thread_min_cpus = UINT_MAX;
  sa->a = array_new (&sa->c, &as, &sa->coder.coder);
  if (sa->a == NULL) {          /* the journal can't be recovered */
    assembly_free (&as);
    coder_free (sa->coder.inner);
    sa->coder.inner = NULL;
    return -1;
  }
  free (sa->written);
  sa->written = NULL;
  sim_array_note_shape (sa);
  if (sa->save_ns)
    sa->a->save_ns = sa->save_ns;
  if (sa->clear_ns)
    sa->a->clear_ns = sa->clear_ns;
  if (sa->spare_delay_ns)
    sa->a->spare_delay_ns = sa->spare_delay_ns;
  sa->a->watch_ns = sa->watch_ns;
  /* The few reads of a test would earn too little. */
  hedge_earn (&sa->a->hedge, 100 * HEDGE_SAVED);
  if (sa->window_len)
    sa->a->window_len = round_up (sa->window_len, sa->a->cell_len);
  if (sa->event)
    array_set_events (sa->a, sa->event, sa);
  if (array_start (sa->a, &sa->loop) == -1)
    abort ();
  sim_thread_start (sa);
  return 0;
}

void
sim_array_note_shape (struct sim_array *sa)
{
  const uint64_t had = sa->written ? sa->l.data_len / BLOCK_LEN : 0;
  const uint64_t has = sa->a->sb.l.data_len / BLOCK_LEN;

  if (sa->g.m != sa->a->g.m || sa->g.k != sa->a->g.k)
    sim_array_end_check (sa);
  sa->l = sa->a->sb.l;
  sa->g = sa->a->g;
  sa->nr_stripes = layout_nr_stripes (&sa->g);
  sa->written = realloc (sa->written, has * sizeof *sa->written);
  assert (sa->written != NULL);
  memset (sa->written + had, 0, (has - had) * sizeof *sa->written);
}

/* A member that was taken out may not have answered yet.  A server leaks the
 * memory and ends.
 */
static void
wait_for_answers (struct sim_array *sa)
{
  for (unsigned i = 0; i < sa->nr_disks && !list_empty (&sa->in_flight); i++)
    if (sa->disk[i]->hung)
      sim_disk_hang (sa->disk[i], false);
  while (!list_empty (&sa->in_flight) && sim_step (sa->sim))
    ;
}

bool
sim_array_stop (struct sim_array *sa)
{
  const uint64_t end = sim_now (sa->sim) + UINT64_C (600000000000);

  while (!stop_step (sa->a)) {
    if (!sim_step (sa->sim) && sim_crashed (sa->sim))
      return false;
    if (sim_now (sa->sim) > end)
      return false;
  }
  wait_for_answers (sa);
  assert (list_empty (&sa->requests));
  if (!list_empty (&sa->in_flight))
    return false;
  for (unsigned slot = 0; slot < sa->a->n; slot++)
    sa->at[slot] = sim_array_disk_at (sa, slot);
  sim_array_note_shape (sa);     /* it may have grown while it stopped */
  /* It would flush once more, blocking, what can't be written out. */
  sa->a->writable = false;
  array_free (sa->a);
  sa->a = NULL;
  return true;
}

/* Run whatever can run without time passing.  False: nothing can. */
static bool
fail_one (struct sim_array *sa)
{
  return sim_array_fail_io (sa) || sim_array_step_request (sa);
}

bool
sim_array_abandon (struct sim_array *sa)
{
  bool stopped = false;

  sa->dead = true;
  sim_thread_stop (sa);
  for (unsigned i = 0; i < MAX_STEPS && !stopped; i++)
    if (!fail_one (sa)) {
      stopped = stop_step (sa->a) && !fail_one (sa);
      if (!stopped) {
        sa->dead_ns += limits.tick_ns;
        tick_fire (&sa->a->tick);
      }
    }
  if (!stopped || !list_empty (&sa->requests))
    return false;
  array_free (sa->a);
  sa->a = NULL;
  return true;
}
