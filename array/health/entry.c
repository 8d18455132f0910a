/* gpuraid: what status and events say of one member.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <string.h>

#include "array/health/entry.h"
#include "array/seats/seat.h"

char *
entry_path (const char *path)
{
  return path ? strdup (path) : NULL;
}

struct array_error
entry_error (const struct array *a, const struct seat *s)
{
  const struct seat_error *e = &s->last_error;

  if (e->error == 0)
    return (struct array_error) { 0 };
  return (struct array_error) {
    .error = e->error, .operation = e->operation, .has_off = e->has_off,
    .off = e->off,
    .ago_ns = engine_now (a) - e->when,
  };
}

static enum entry_state
state_of (const struct seat *s)
{
  return s->failing || s->failed ? ENTRY_FAILED :
    s->state == SEAT_ACTIVE ? ENTRY_ACTIVE :
    s->state == SEAT_TARGET ? ENTRY_REBUILDING : ENTRY_SPARE;
}

static struct array_io
io_of (const struct seat_io *io)
{
  return (struct array_io) {
    .ops = atomic_load_explicit (&io->ops, memory_order_relaxed),
    .bytes = atomic_load_explicit (&io->bytes, memory_order_relaxed),
    .ns = atomic_load_explicit (&io->ns, memory_order_relaxed),
  };
}

void
entry_set_io (struct array_entry *e, const struct seat *s)
{
  for (unsigned i = 0; i < NR_LANES; i++) {
    const struct array_io some = io_of (&s->lane[i].reads);

    e->reads.ops += some.ops;
    e->reads.bytes += some.bytes;
    e->reads.ns += some.ns;
  }
  e->writes = io_of (&s->writes);
  e->flushes = io_of (&s->flushes);
}

struct array_entry
entry_of_seat (const struct array *a, const struct seat *s)
{
  const uint64_t stalled_since = seat_stalled_since (s);
  struct array_entry e = {
    .slot = s->slot < a->n ? s->slot : SLOT_NONE,
    .path = entry_path (s->m->path), .uuid = s->uuid, .state = state_of (s),
    .errors = s->nr_errors, .bad_sums = s->nr_bad_sums,
    .no_space = s->no_space,
    .no_space_ns = s->no_space ? engine_now (a) - s->no_space_since : 0,
    .no_answer = stalled_since != 0,
    .no_answer_ns = stalled_since ? engine_now (a) - stalled_since : 0,
    .slow = s->suspect || s->waited_for || s->hedge.slow,
    .no_connection = atomic_load (&s->m->away),
    .deleted = s->deleted && !s->failing,
    .read_median_ns = hedge_percentile (&s->hedge, 50),
    .read_p95_ns = hedge_percentile (&s->hedge, 95),
    .last_error = entry_error (a, s),
  };

  entry_set_io (&e, s);
  return e;
}
