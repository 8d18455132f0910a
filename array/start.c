/* gpuraid: start and stop a running array.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "array/cache/cache.h"
#include "array/engine/thread.h"
#include "array/health/event.h"
#include "array/health/health.h"
#include "array/journal/journal.h"
#include "array/journal/recover.h"
#include "array/main-loop.h"
#include "array/open/assemble.h"
#include "array/rooms.h"
#include "array/seats/seat.h"
#include "array/seats/slow.h"
#include "array/stores/copies.h"
#include "array/sums/sums.h"
#include "array/watch/watch.h"
#include "common/threads/memory.h"

/* ---- before the fork ----------------------------------------------------- */

static enum seat_state
state_of (enum member_role role)
{
  return role == MEMBER_CURRENT ? SEAT_ACTIVE : SEAT_IDLE;
}

static int
make_seats (struct array *a, struct assembly *as)
{
  for (unsigned i = 0; i < as->nr_members; i++) {
    struct assembled_member *am = &as->member[i];
    const struct device *d =
      am->dev < SB_MAX_DEVICES ? &as->sb.device[am->dev] : NULL;
    struct seat *s = seat_new (a, am->member, am->dev,
                               d ? d->slot : SLOT_NONE, state_of (am->role));

    if (s == NULL)
      return -1;
    if (am->page_place)
      memcpy (s->page_place, am->page_place, a->nr_pages);
    s->b_first[0] = found_first_copy (&as->found[i], false) == SB_B1;
    s->b_first[1] = found_first_copy (&as->found[i], true) == SB_B2;
    if (d)
      s->uuid = d->uuid;
    s->nr_page_rounds = am->role == MEMBER_CURRENT ? 2 : 0;
    s->replaced = s->state == SEAT_ACTIVE && d->replaced;
    s->failed = d && d->state == DEVICE_FAILED;
    s->behind = as->found[i].behind;
    a->any_direct |= am->member->direct;
  }
  seats_changed (a);
  return 0;
}

static void
take_assembly (struct array *a, struct assembly *as)
{
  a->sb = as->sb;
  copies_fill_host (&a->sb);
  a->g = as->sb.g;
  a->n = a->g.k + a->g.m;
  a->first_len = layout_first_len (&as->sb.l);
  a->membership = as->membership;
  a->readonly = as->readonly;
  memcpy (a->readonly_why, as->readonly_why, sizeof a->readonly_why);
  a->force = as->force;
}

/* The page cache of this host does not show what another host writes. */
static void
warn_of_caches (const struct assembly *as)
{
  for (unsigned i = 0; i < as->nr_members; i++) {
    const struct member *m = as->member[i].member;

    if (!m->async && !m->direct)
      log_notice ("multihost=yes: %s: direct I/O is refused there, so what "
                  "another host writes may be seen late", m->path);
  }
}

/* The record that opens the array for writing brings it to the members. */
static void
set_multihost (struct array *a, const struct assembly *as, int multihost)
{
  a->was_multihost = a->sb.incompat & SB_INCOMPAT_MULTIHOST;
  if (multihost != -1 && multihost != a->was_multihost && a->readonly)
    log_notice ("multihost=%s: not kept, as the array is opened read-only",
                multihost ? "yes" : "no");
  else if (multihost == 0)
    a->sb.incompat &= ~SB_INCOMPAT_MULTIHOST;
  else if (multihost == 1)
    a->sb.incompat |= SB_INCOMPAT_MULTIHOST;
  if (a->sb.incompat & SB_INCOMPAT_MULTIHOST)
    warn_of_caches (as);
}

static void
take_config (struct array *a, const struct assembly *as,
             const struct config *c)
{
  if (c->readonly_why) {
    a->readonly = true;
    snprintf (a->readonly_why, sizeof a->readonly_why, "%s", c->readonly_why);
  }
  set_multihost (a, as, c->multihost);
  if (c->forget_scrub)
    a->sb.scrub = (struct sb_scrub) { 0 };
  a->consistency = a->sb.consistency == CONSISTENCY_JOURNAL ?
    &consistency_journal : &consistency_none;
  a->mark_open = a->sb.consistency == CONSISTENCY_NONE;
  a->writethrough = c->writethrough;
}

static uint64_t
smallest (const struct assembly *as)
{
  uint64_t size = UINT64_MAX;

  for (unsigned i = 0; i < as->nr_members; i++) {
    struct member *m = as->member[i].member;

    if (as->member[i].role == MEMBER_CURRENT)
      size = MIN (size, m->ops->size (m));
  }
  return size;
}

/* Without what the rooms have. */
static void
free_array (struct array *a)
{
  solver_free (a->solver);
  free (a->found);
  left_out_free (&a->left_out);
  pthread_mutex_destroy (&a->writable_lock);
  engine_destroy (&a->engine);
  free (a);
}

static void
array_free_memory (struct array *a)
{
  rooms_free (a);
  free_array (a);
}

/* A cache that is larger than the memory would be filled until the kernel ends
 * the server.  The default is allowed everywhere.  0, or -1 reported.
 */
static int
check_cache (uint64_t len, uint64_t need)
{
  const uint64_t memory =
    (uint64_t) sysconf (_SC_PHYS_PAGES) * sysconf (_SC_PAGESIZE);

  if (len < need) {
    log_error ("cache=%" PRIu64 ": too small, at least %" PRIu64
               " is needed for this array", len, need);
    return -1;
  }
  if (len > MAX (memory, CONFIG_DEFAULT_CACHE)) {
    log_error ("cache=%" PRIu64 ": too large, this machine has %" PRIu64
               " bytes of memory", len, memory);
    return -1;
  }
  return 0;
}

struct array *
array_new (const struct config *c, struct assembly *as, struct coder *coder)
{
  const uint64_t need = cache_min_len (&as->sb.g) +
    (as->sb.l.table_len > 0 ? sums_memory (&as->sb.g, 0) : 0);
  struct array *a;

  if (check_cache (c->cache_len, need) == -1)
    return NULL;
  a = alloc_lines (sizeof *a);
  if (a == NULL) {
    log_error ("aligned_alloc: %m");
    return NULL;
  }
  if (engine_init (&a->engine, &main_loop_hooks)) {
    free (a);
    log_error ("pthread_mutex_init failed");
    return NULL;
  }
  pthread_mutex_init (&a->writable_lock, NULL);
  a->tick.fire = tick_fire;
  take_assembly (a, as);
  take_config (a, as, c);
  a->member_size = smallest (as);
  cache_size (a, c->cache_len - sums_share (&a->sb, c->cache_len));
  a->solver = solver_new (a->sb.code, a->sb.w, a->g.k, a->g.m);
  if (a->solver == NULL || rooms_init (a, c, as) == -1) {
    log_error ("out of memory");
    free_array (a);
    return NULL;
  }
  if (make_seats (a, as) == -1) {
    log_error ("out of memory");
    array_free_memory (a);
    return NULL;
  }
  health_notice (a);
  a->found = as->found;
  a->nr_found = as->nr_members;
  as->found = NULL;
  if (recover_begin (a) == -1) {
    array_free_memory (a);
    return NULL;
  }

  a->coder = coder;
  for (unsigned i = 0; i < as->nr_members; i++)
    as->member[i].member = NULL;
  a->left_out = as->left_out;
  as->left_out.nr = 0;
  assembly_free (as);
  return a;
}

/* ---- after the fork ------------------------------------------------------ */

int
array_start (struct array *a, struct loop *loop)
{
  int err;

  a->loop = loop;
  a->last_clear = loop_now (loop);
  err = cache_start (a);
  if (err) {
    log_error ("cache: %s", strerror (err));
    return -1;
  }
  /* The coder first: pinning the arena may replace its pages, as in the
   * tests' CUDA driver, and the ring would keep the old ones.
   */
  if (coder_start (a->coder, a->arena, a->arena_len) == -1)
    return -1;
  if (loop->ops->add_buffer)
    loop->ops->add_buffer (loop, a->arena, a->arena_len);
  if (coder_nr_cpus () >= limits.engine_thread_min_cpus) {
    err = engine_thread_start (a);
    if (err) {
      log_error ("pthread_create: %s", strerror (err));
      return -1;
    }
  }
  if (a->events->fn) {
    engine_lock (a);            /* it may be degraded already */
    engine_unlock (a);
  }
  slow_compare (a);
  watch_start (a);
  return 0;
}

/* A remote member that was taken out, and still has I/O, ends it when it is
 * told to, without its server.
 */
static void
end_remote_io (struct array *a)
{
  bool any = true;

  for (unsigned n = 0; any && n < 2000; n++) {
    const struct timespec ms = { .tv_nsec = 1000000 };

    any = false;
    for (unsigned i = 0; i < a->nr_seats; i++) {
      struct seat *s = a->seat[i];

      if (s->m == NULL || !s->m->async || seat_users (s) == 0)
        continue;
      atomic_store (&s->m->unused, true);
      any = true;
    }
    if (any)
      nanosleep (&ms, NULL);
  }
}

/* Such I/O may write to memory, so don't free it: the process ends soon. */
static bool
has_io_in_flight (const struct array *a)
{
  for (unsigned i = 0; i < a->nr_seats; i++)
    if (seat_users (a->seat[i]) > 0)
      return true;
  return false;
}

/* Returns the error of the last flush. */
static int
write_out (struct array *a)
{
  int err = 0;

  stop_hurry (a);
  if (a->writable && !a->stopping)
    err = a->failed ? EIO : array_flush (a, 0);
  while (!stop_step (a)) {
    const struct timespec ms = { .tv_nsec = 1000000 };

    nanosleep (&ms, NULL);
  }
  return err == 0 && a->writable && a->failed ? EIO : err;
}

int
array_free (struct array *a)
{
  int err = 0;

  if (a == NULL)
    return 0;
  if (a->loop) {
    err = write_out (a);
    if (a->loop->ops->timer) {
      loop_timer (a->loop, &a->tick, 0);
      loop_timer (a->loop, &a->hedge_timer, 0);
      watch_stop (a);
    }
  }
  engine_thread_stop (a);
  end_remote_io (a);
  if (has_io_in_flight (a)) {
    log_notice ("a member that was taken out still owes answers");
    return err;
  }
  coder_free (a->coder);
  /* Before the loop, which they may still be about to use. */
  for (unsigned i = 0; i < a->nr_seats; i++)
    if (a->seat[i]->m && a->seat[i]->m->ops->end)
      a->seat[i]->m->ops->end (a->seat[i]->m);
  loop_free (a->loop);
  for (unsigned i = 0; i < a->nr_seats; i++)
    member_close (a->seat[i]->m);
  array_free_memory (a);
  return err;
}

bool
array_is_readonly (const struct array *a)
{
  return a->readonly;
}

const char *
array_readonly_why (const struct array *a)
{
  return a->readonly ? a->readonly_why : NULL;
}

uint64_t
array_size (struct array *a)
{
  uint64_t size;

  engine_lock (a);
  size = a->g.size;
  engine_unlock (a);
  return size;
}

const uuid_bytes *
array_uuid (const struct array *a)
{
  return &a->sb.array_uuid;
}

void
array_end_waits (struct array *a, bool forced)
{
  engine_lock (a);
  a->waits_ended = true;
  a->forced_end |= forced;
  engine_unlock (a);
}
