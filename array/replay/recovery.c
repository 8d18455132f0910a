/* gpuraid: recovery from the journal: what is decided, and reads meanwhile.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array/engine/place.h"
#include "array/engine/state.h"
#include "array/replay/internal.h"
#include "common/plant.h"

/* ---- deciding ------------------------------------------------------------ */

static bool
is_current (const struct seat *s)
{
  return s->m && s->state == SEAT_ACTIVE && !s->failing;
}

static bool
is_in_a_ring (const struct recovery *rec, const bool *rings, uint64_t seq)
{
  for (unsigned i = 0; i < MAX_SEATS; i++)
    if (rings[i] && ring_find_record (&rec->ring[i], seq))
      return true;
  return false;
}

/* Of the rings that were read, has one that is lost a transaction that met R1,
 * as a newer one was seen, and none of these?
 */
static bool
forgets (const struct recovery *rec, const bool *rings)
{
  for (unsigned i = 0; i < MAX_SEATS; i++) {
    const struct ring_contents *c = &rec->ring[i];

    for (unsigned j = 0; rec->has_ring[i] && !rings[i] && j < c->nr_records;
         j++) {
      const uint64_t seq = c->record[j].r.seq;

      if (seq >= rec->replay.tail && seq < rec->newest &&
          !is_in_a_ring (rec, rings, seq))
        return true;
    }
  }
  return false;
}

enum recover_decided
recover_decide_now (struct array *a, struct recovery *rec)
{
  struct replay_member member[MAX_SEATS];
  bool decided_for[MAX_SEATS] = { false };
  struct geometry g = a->g;
  struct replay replay;
  struct replay_input in = {
    .g = &g, .member = member, .bad = rec->bad, .nr_bad = rec->nr_bad,
    .known = rec->newest,
  };

  g.frontier = rec->frontier;
  for (unsigned i = 0; i < a->nr_seats; i++) {
    decided_for[i] = is_current (a->seat[i]) && rec->has_ring[i];
    if (decided_for[i])
      member[in.nr_members++] = (struct replay_member) {
        .slot = a->seat[i]->slot, .dev = a->seat[i]->dev,
        .ring = &rec->ring[i],
        .missed = a->seat[i]->ring_behind ? rec->missed : NULL,
        .region_rows = a->sb.l.region_len / BLOCK_LEN,
      };
  }
  /* With a member behind they would not count (replay_says_of_all), and of a
   * seat that is used again it is not known whether its ring was behind.
   */
  for (unsigned i = 0; i < a->nr_seats; i++)
    if (rec->has_ring[i] && !decided_for[i] && rec->missed == NULL)
      member[in.nr_members + in.nr_lost++] =
        (struct replay_member) { .ring = &rec->ring[i] };
  if (replay_decide (&in, &replay) == -1)
    return RECOVER_NO_MEMORY;
  memcpy (rec->decided_for, decided_for, sizeof decided_for);
  rec->bad_noted = false;
  if (rec->nr_decisions > 0 &&
      ((replay.hole && !rec->replay.hole) || forgets (rec, decided_for)) &&
      !PLANTED ("recover-forgets")) {
    replay_free (&replay);
    return RECOVER_FORGETS;
  }
  replay_free (&rec->replay);
  rec->replay = replay;
  a->g.frontier = replay.frontier;
  rec->newest = MAX (rec->newest, replay.newest);
  rec->nr_decisions++;
  return RECOVER_DECIDED;
}

static uint64_t
nr_lacking_rows (const struct replay *r)
{
  uint64_t nr = 0;

  for (unsigned i = 0; i < r->nr_runs; i++)
    nr += r->run[i].lacks ? r->run[i].nr : 0;
  return nr;
}

bool
recover_is_sound (const struct array *a, const struct replay *r)
{
  static const char *const why =
    "too many members, or too much of their rings, are lost";
  const uint64_t nr = nr_lacking_rows (r);
  const char *advice = a->force ? "" : "; so the array is read-only "
    "(degraded=force opens it for writing, without them)";

  if (r->hole)
    log_error ("the journal lacks transactions: %s%s", why, advice);
  else if (nr > 0)
    log_error ("the journal lacks the content of %" PRIu64 " rows: %s%s", nr,
               why, advice);
  return !r->hole && nr == 0;
}

static void
describe (const struct array *a, const struct recovery *rec)
{
  const struct replay *r = &rec->replay;
  uint64_t nr_records = 0, nr_blocks = 0;

  if (r->nr_runs == 0)
    return;
  for (unsigned i = 0; i < a->nr_seats; i++)
    for (unsigned j = 0; j < rec->ring[i].nr_records; j++) {
      const struct journal_record *jr = &rec->ring[i].record[j].r;

      if (jr->seq < r->tail)
        continue;
      nr_records++;
      nr_blocks += jr->nr_blocks +
        journal_header_blocks (jr->nr_entries, jr->nr_crcs);
    }
  log_notice ("the array was not stopped: its journal is recovered, "
              "transactions %" PRIu64 " to %" PRIu64 ": %" PRIu64
              " records of %" PRIu64 " KiB", r->tail, r->newest, nr_records,
              nr_blocks * (BLOCK_LEN / 1024));
}

static unsigned
find_targets (const struct array *a, struct ring_table table[MAX_SEATS])
{
  unsigned nr = 0;

  for (unsigned i = 0; i < a->nr_found; i++) {
    const struct found *f = &a->found[i];
    const struct seat *s = a->seat[i];

    if (f->state == FOUND_TARGET && s->m)
      table[nr++] = (struct ring_table) {
        s->m, s->slot, f->covered ? UINT64_MAX : f->cursor,
      };
  }
  return nr;
}

/* Only the newest transaction may lack some of its direct blocks, or be
 * dropped.
 */
static int
check_newest (const struct array *a, struct ring_reading *rd, unsigned nr)
{
  struct ring_table target[MAX_SEATS];
  const unsigned nr_targets = find_targets (a, target);
  uint64_t newest = 0;

  for (unsigned i = 0; i < nr; i++)
    if (rd[i].c->nr_records > 0)
      newest = MAX (newest, rd[i].c->record[rd[i].c->nr_records - 1].r.seq);
  for (unsigned i = 0; i < nr; i++)
    if (ring_check_placed (&rd[i], &a->sb, target, nr_targets, newest) == -1)
      return -1;
  return 0;
}

/* Of the current members. */
static int
read_rings (struct array *a, struct recovery *rec)
{
  struct ring_reading rd[MAX_SEATS];
  unsigned nr = 0;

  for (unsigned i = 0; i < a->nr_seats; i++) {
    rec->has_ring[i] = is_current (a->seat[i]);
    if (rec->has_ring[i])
      rd[nr++] = (struct ring_reading) {
        .m = a->seat[i]->m, .slot = a->seat[i]->slot, .c = &rec->ring[i],
      };
  }
  if (rings_read (&a->sb, rd, nr) == -1 ||
      check_newest (a, rd, nr) == -1)
    return -1;
  for (unsigned i = 0; i < a->nr_seats; i++) {
    a->seat[i]->ring_counter = rec->ring[i].header.counter;
    a->seat[i]->ring_which = rec->ring[i].which;
    a->seat[i]->ring_behind = a->sums && !PLANTED ("behind-ring-counts") &&
      (a->seat[i]->behind || rec->ring[i].header.behind);
  }
  return 0;
}

/* Without a header it is not known which rows have moved. */
static int
find_frontier (const struct array *a, struct recovery *rec)
{
  bool found = !a->g.widening;

  for (unsigned i = 0; a->g.widening && i < a->nr_seats; i++)
    if (rec->has_ring[i] && rec->ring[i].begun) {
      found = true;
      rec->frontier = MAX (rec->frontier, rec->ring[i].header.frontier);
    }
  if (!found || rec->frontier % a->cell_blocks != 0) {
    log_error ("the array is being widened, and no member's journal says how "
               "far");
    return -1;
  }
  return 0;
}

bool
recover_ring_behind (const struct array *a)
{
  for (unsigned i = 0; i < a->nr_seats; i++)
    if (a->seat[i]->ring_behind)
      return true;
  return false;
}

int
recover_init (struct array *a,
              uint64_t *(*find_missed) (const struct array *a))
{
  struct recovery *rec;

  if (a->sb.l.ring_len == 0)
    return 0;
  a->recovery = rec = calloc (1, sizeof *rec);
  if (rec == NULL) {
    log_error ("calloc: %m");
    return -1;
  }
  if (read_rings (a, rec) == -1 || find_frontier (a, rec) == -1)
    return -1;
  if (recover_ring_behind (a) && (rec->missed = find_missed (a)) == NULL)
    return -1;
  if (recover_decide_now (a, rec) == RECOVER_NO_MEMORY)
    return -1;
  describe (a, rec);
  if (!recover_is_sound (a, &rec->replay) && !a->force && !a->readonly) {
    a->readonly = true;
    snprintf (a->readonly_why, sizeof a->readonly_why, "its journal lacks "
              "something (degraded=force opens it for writing, without that)");
  }
  return 0;
}

/* ---- reading meanwhile --------------------------------------------------- */

uint64_t
recover_next_seq (const struct array *a)
{
  return a->recovery ? a->recovery->replay.next_seq : 1;
}

/* Until all is in place. */
static bool
is_wanted (const struct recovery *rec)
{
  return rec->replay.nr_runs > 0 && rec->phase != PLACED;
}

bool
recovery_has_line (const struct array *a, uint64_t no)
{
  const struct recovery *rec = a->recovery;

  if (!is_wanted (rec))
    return false;
  for (unsigned b = 0; b < a->cell_blocks; b++)
    if (replay_find (&rec->replay, line_row (a, no) + b))
      return true;
  return false;
}

struct seat *
recover_seat (const struct array *a, const struct replay_source *src)
{
  for (unsigned i = 0; i < a->nr_seats; i++)
    if (is_current (a->seat[i]) && a->seat[i]->dev == src->dev)
      return a->seat[i];
  return NULL;
}

/* The roles of a row that a recovery has such sources for. */
static uint64_t
roles_from (const struct array *a, uint64_t no, unsigned b,
            bool (*is_such) (const struct array *,
                             const struct replay_source *))
{
  const struct replay_run *run;
  uint64_t roles = 0;

  if (!is_wanted (a->recovery) ||
      (run = replay_find (&a->recovery->replay, line_row (a, no) + b)) == NULL)
    return 0;
  for (unsigned slot = 0; slot < a->n; slot++)
    if (is_such (a, &run->source[slot]))
      roles |= BIT (line_role (a, no, slot));
  return roles;
}

static bool
is_erased (const struct array *a, const struct replay_source *src)
{
  return src->kind == REPLAY_ERASED ||
    (src->kind == REPLAY_RING && recover_seat (a, src) == NULL);
}

static bool
is_known (const struct array *a, const struct replay_source *src)
{
  return src->kind == REPLAY_RING || src->kind == REPLAY_ZERO;
}

uint64_t
recovery_erased (const struct array *a, uint64_t no, unsigned b)
{
  return roles_from (a, no, b, is_erased);
}

uint64_t
recovery_known (const struct array *a, uint64_t no, unsigned b)
{
  return roles_from (a, no, b, is_known);
}

/* What the newest transaction was to write in place before it counts. */
uint64_t
recover_lacks_direct (const struct array *a, const struct replay_run *run)
{
  uint64_t slots = 0;

  if (!run->newest || run->lost)
    return 0;
  FOR_EACH_BIT (slot, run->erased)
    if (run->source[slot].direct && a->at[slot][0] &&
        run->source[slot].seq == a->recovery->replay.newest)
      slots |= BIT (slot);
  return slots;
}

/* Of a lost row only what is known.  What was written directly stays as it is,
 * but a target may lack it.
 */
static uint64_t
wanted_slots (const struct array *a, const struct replay_run *run)
{
  uint64_t slots = run->changed | run->erased;

  if (a->recovery->phase == DIRECT)
    return recover_lacks_direct (a, run);
  FOR_EACH_BIT (slot, slots) {
    const enum replay_kind kind = run->source[slot].kind;

    if ((run->lost && kind != REPLAY_RING && kind != REPLAY_ZERO) ||
        (kind == REPLAY_DIRECT && !PLANTED ("direct-rewritten") &&
         (a->at[slot][1] == NULL || a->at[slot][1]->state != SEAT_TARGET)))
      slots &= ~BIT (slot);
  }
  return slots;
}

uint64_t
recover_wanted (const struct array *a, uint64_t no, unsigned b)
{
  const struct replay_run *run =
    replay_find (&a->recovery->replay, line_row (a, no) + b);
  uint64_t roles = 0;

  FOR_EACH_BIT (slot, wanted_slots (a, run))
    if (a->at[slot][0] || a->at[slot][1])
      roles |= BIT (line_role (a, no, slot));
  return roles & ~line_zeroes (a, no);
}

uint64_t
recover_direct (const struct array *a, uint64_t no, unsigned b)
{
  const struct replay_run *run =
    replay_find (&a->recovery->replay, line_row (a, no) + b);
  uint64_t roles = 0;

  FOR_EACH_BIT (slot, run->changed)
    if (run->source[slot].kind == REPLAY_DIRECT)
      roles |= BIT (line_role (a, no, slot));
  return roles;
}

bool
recover_is_early (const struct array *a)
{
  return a->recovery->phase == DIRECT;
}

void
recover_wrote_direct (struct array *a, uint64_t no, unsigned role, unsigned b,
                      uint32_t crc)
{
  struct replay_run *run = (struct replay_run *)
    replay_find (&a->recovery->replay, line_row (a, no) + b);
  const unsigned slot = line_slot (a, no, role);

  run->source[slot].kind = REPLAY_DIRECT;
  run->source[slot].dev = a->at[slot][0]->dev;
  run->source[slot].crc = crc;
  run->erased &= ~BIT (slot);
}

bool
recovery_is_pending (const struct array *a)
{
  return is_wanted (a->recovery);
}

const struct replay_source *
recovery_source (const struct array *a, uint64_t no, unsigned role, unsigned b)
{
  const struct replay_run *run;
  const struct replay_source *src;

  if (!is_wanted (a->recovery) ||
      (run = replay_find (&a->recovery->replay, line_row (a, no) + b)) == NULL)
    return NULL;
  src = &run->source[line_slot (a, no, role)];
  return src->kind == REPLAY_IN_PLACE ? NULL : src;
}

/* ---- carrying it out ----------------------------------------------------- */

bool
recovery_is_outdated (const struct array *a)
{
  const struct recovery *rec = a->recovery;

  if (a->failed || !is_wanted (rec) || rec->phase > RELOG_FLUSH)
    return false;
  for (unsigned i = 0; i < a->nr_seats; i++)
    if (rec->decided_for[i] && !is_current (a->seat[i]))
      return true;
  return rec->bad_noted;
}

unsigned
recovery_decision (const struct array *a)
{
  return is_wanted (a->recovery) ? a->recovery->nr_decisions : 0;
}

/* A block of a ring can't be read: it will be logged again if it is of the
 * newest transaction.
 */
static void
note_bad_in_ring (struct ring_contents *c, uint32_t place)
{
  for (unsigned i = 0; i < c->nr_records; i++) {
    const struct ring_record *rec = &c->record[i];
    uint32_t at = rec->r.place +
      journal_header_blocks (rec->r.nr_entries, rec->r.nr_crcs), done = 0;

    for (uint32_t j = 0; j < rec->r.nr_entries; j++) {
      const struct journal_entry *e = &rec->r.entry[j];

      if (e->flags == 0) {
        if (place >= at && place - at < e->nr_blocks)
          rec->good[done + place - at] = false;
        at += e->nr_blocks;
      }
      if ((e->flags & JOURNAL_ENTRY_ZERO) == 0)
        done += e->nr_blocks;
    }
  }
}

static void
note_bad_in_place (struct array *a, uint64_t row, uint64_t slots)
{
  struct recovery *rec = a->recovery;
  struct replay_bad *p =
    realloc (rec->bad, (rec->nr_bad + 1) * sizeof *rec->bad);

  if (p == NULL) {
    array_set_failed (a, "no memory to recover its journal");
    return;
  }
  rec->bad = p;
  rec->bad[rec->nr_bad++] = (struct replay_bad) { row, slots };
}

static bool
is_in_place (const struct replay_source *src)
{
  return src == NULL || src->kind == REPLAY_DIRECT;
}

void
recover_note_bad (struct array *a, uint64_t no, unsigned b, uint64_t roles)
{
  struct recovery *rec = a->recovery;

  FOR_EACH_BIT (role, roles) {
    const struct replay_source *src = recover_source (a, no, role, b);

    if (is_in_place (src))
      note_bad_in_place (a, line_row (a, no) + b,
                         BIT (line_slot (a, no, role)));
    else
      for (unsigned i = 0; i < a->nr_seats; i++)
        if (rec->has_ring[i] && a->seat[i]->dev == src->dev)
          note_bad_in_ring (&rec->ring[i], src->place);
  }
  rec->bad_noted = true;
}

static bool
is_noted (const struct recovery *rec, uint64_t row, uint64_t slots)
{
  for (unsigned i = 0; i < rec->nr_bad; i++)
    if (rec->bad[i].row == row)
      slots &= ~rec->bad[i].slots;
  return slots == 0;
}

bool
recover_bad_row (struct array *a, uint64_t no, unsigned b, uint64_t roles)
{
  struct recovery *rec = a->recovery;
  const uint64_t row = line_row (a, no) + b;
  const struct replay_run *run =
    rec && is_wanted (rec) && rec->phase <= RELOG_FLUSH ?
    replay_find (&rec->replay, row) : NULL;
  uint64_t in_place = 0;

  if (run == NULL || !run->newest || a->failed)
    return false;
  FOR_EACH_BIT (role, roles)
    if (is_in_place (recover_source (a, no, role, b)))
      in_place |= BIT (line_slot (a, no, role));
  if (is_noted (rec, row, in_place))
    return false;
  note_bad_in_place (a, row, in_place);
  rec->bad_noted = true;
  return true;
}
