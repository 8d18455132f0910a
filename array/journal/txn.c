/* gpuraid: one transaction of the journal: its records.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <string.h>

#include "array/cache/cache.h"
#include "array/engine/place.h"
#include "array/health/fail.h"
#include "array/io/xfer.h"
#include "array/journal/txn.h"
#include "array/ops/logged.h"
#include "common/plant.h"

/* Blocks that lie in one cell and follow each other in a record. */
struct txn_piece {
  struct cell *cell;            /* frozen until it is in place; NULL: the
                                 * blocks are written directly */
  unsigned b0, nr;              /* blocks of the cell */
  const uint32_t *crc;          /* of each */
};

/* ---- gathering ------------------------------------------------------- */

/* Memory for len bytes in place of p, with what is in it.  NULL: no memory, and
 * p stays.
 */
static void *
resized (struct txn *t, void *p, struct pool **pool, size_t len)
{
  struct pool *to = pools_at (&t->a->pools, len);
  void *q;

  if (to == *pool)
    return p;
  q = pool_get (to);
  if (q == NULL)
    return NULL;
  if (p) {
    memcpy (q, p, MIN (to->len, (*pool)->len));
    pool_put (*pool, p);
  }
  *pool = to;
  return q;
}

struct txn *
txn_new (struct array *a, uint64_t seq)
{
  struct txn *t = pool_get (pools_at (&a->pools, sizeof *t));

  if (t == NULL)
    return NULL;
  *t = (struct txn) { .a = a, .seq = seq };
  t->record = resized (t, NULL, &t->record_pool,
                       a->nr_seats * sizeof *t->record);
  if (t->record == NULL) {
    txn_free (t);
    return NULL;
  }
  list_init (&t->link);
  list_init (&t->ops);
  list_init (&t->waiter.link);
  return t;
}

void
txn_free (struct txn *t)
{
  if (t->memory)
    xfer_memory_put (t->memory);
  if (t->record)
    pool_put (t->record_pool, t->record);
  if (t->regions)
    pool_put (t->regions_pool, t->regions);
  if (t->zeroed)
    pool_put (t->zeroed_pool, t->zeroed);
  pool_put (pools_at (&t->a->pools, sizeof *t), t);
}

void
txn_logged (struct txn *t)
{
  struct txn_record *record =
    resized (t, t->record, &t->record_pool,
             MAX (t->nr_records, 1) * sizeof *record);

  xfer_memory_put (t->memory);
  t->memory = NULL;
  if (record)
    t->record = record;
}

/* Regions are few, and mostly the last one again. */
static bool
add_regions (struct txn *t, uint64_t first, uint64_t last)
{
  struct txn_regions *p = t->regions;

  if (t->nr_regions > 0 && p[t->nr_regions - 1].first <= first &&
      p[t->nr_regions - 1].last >= last)
    return true;
  p = resized (t, p, &t->regions_pool, (t->nr_regions + 1) * sizeof *p);
  if (p == NULL)
    return false;
  t->regions = p;
  p[t->nr_regions++] = (struct txn_regions) { first, last };
  return true;
}

/* A large range comes as operations that follow each other. */
static bool
add_zeroed (struct txn *t, const struct logged *lg)
{
  const uint64_t row = lg->row, nr = lg->nr_rows;
  struct zeroed_rows *z = t->zeroed;

  if (t->nr_zeroed > 0 && z[t->nr_zeroed - 1].end == row) {
    z[t->nr_zeroed - 1].end += nr;
    return true;
  }
  z = resized (t, z, &t->zeroed_pool, (t->nr_zeroed + 1) * sizeof *z);
  if (z == NULL)
    return false;
  t->zeroed = z;
  z[t->nr_zeroed++] = (struct zeroed_rows) { row, row + nr };
  return true;
}

/* The records that an operation adds to.  A target has no ring. */
static bool
takes_record (const struct seat *s)
{
  return s && s->m && s->state == SEAT_ACTIVE && !s->failing;
}

static struct txn_record *
record_of (struct txn *t, struct seat *s)
{
  for (unsigned i = 0; i < t->nr_records; i++)
    if (t->record[i].seat == s)
      return &t->record[i];
  t->record[t->nr_records] = (struct txn_record) { .seat = s };
  return &t->record[t->nr_records++];
}

/* Rows of which a participant gets the blocks of a role, or zeroes: all on
 * one page of the checksum table.
 */
struct run {
  uint64_t row;                 /* of the members */
  uint32_t nr;
  const struct logged_rect *rect;       /* NULL: zeroes */
  unsigned role;                /* of the rect */
  unsigned b0;                  /* block of the cell */
};

typedef void run_fn (struct array *a, struct txn_record *rec, struct logged *lg,
                     const struct run *run);

static void
each_page (struct array *a, struct txn_record *rec, struct logged *lg,
           struct run run, run_fn *fn)
{
  const uint64_t end = run.row + run.nr;
  const uint64_t most = a->sums ? limits.table_page_entries :
    JOURNAL_ZERO_MAX_BLOCKS;

  while (run.row < end) {
    run.nr = MIN (end, (run.row / most + 1) * most) - run.row;
    fn (a, rec, lg, &run);
    run.row += run.nr;
    run.b0 += run.nr;
  }
}

/* Zeroes go to all. */
static void
each_zero_run (struct array *a, struct txn *t, struct logged *lg, uint64_t row,
               uint32_t nr, run_fn *fn)
{
  const struct run run = { .row = row, .nr = nr };

  for (unsigned i = 0; i < a->nr_seats; i++)
    if (takes_record (a->seat[i]))
      each_page (a, record_of (t, a->seat[i]), lg, run, fn);
}

/* Of a role in the rows of a rect. */
static void
each_role_run (struct array *a, struct txn *t, struct logged *lg,
               const struct logged_rect *rect, unsigned role, run_fn *fn)
{
  const uint64_t no = line_of_row (a, lg->row);
  const unsigned slot = line_slot (a, no, role);
  const struct run run = { .row = rect->row, .nr = rect->nr, .rect = rect,
                           .role = role, .b0 = rect->b0 };

  for (unsigned j = 0; j < 2; j++)
    if (takes_record (a->at[slot][j]))
      each_page (a, record_of (t, a->at[slot][j]), lg, run, fn);
}

/* Call fn for each run that a participant gets. */
static void
each_run (struct array *a, struct txn *t, struct logged *lg, run_fn *fn)
{
  if (lg->zeroes)
    each_zero_run (a, t, lg, lg->row, lg->nr_rows, fn);
  for (unsigned i = 0; i < op_nr_rects (lg->op); i++) {
    const struct logged_rect rect = op_logged_rect (a, lg->op, i);

    if (lg->withdrawn)
      each_zero_run (a, t, lg, rect.row, rect.nr, fn);
    else {
      FOR_EACH_BIT (role, rect.write)
        each_role_run (a, t, lg, &rect, role, fn);
    }
  }
}

static void
count_run (struct array *a, struct txn_record *rec, struct logged *lg,
           const struct run *run)
{
  rec->r.nr_entries++;
  if (run->rect == NULL)
    return;
  rec->r.nr_crcs += run->nr;
  rec->nr_pieces++;
  if (lg->direct)
    rec->nr_direct += run->nr;
  else
    rec->r.nr_blocks += run->nr;
}

static void
uncount_run (struct array *a, struct txn_record *rec, struct logged *lg,
             const struct run *run)
{
  rec->r.nr_entries--;
  if (run->rect == NULL)
    return;
  rec->r.nr_crcs -= run->nr;
  rec->nr_pieces--;
  if (lg->direct)
    rec->nr_direct -= run->nr;
  else
    rec->r.nr_blocks -= run->nr;
}

static uint32_t
record_blocks (const struct txn_record *rec)
{
  return journal_header_blocks (rec->r.nr_entries, rec->r.nr_crcs) +
    rec->r.nr_blocks;
}

/* Some of a ring is kept for transactions of zeroes alone: what gives space
 * back must not wait for what needs it.
 */
static uint32_t
reserve (const struct txn *t, const struct ring *ring)
{
  const uint32_t nr = t->a->cell_blocks;

  return t->takes_reserve ? 0 :
    ring_reserve (ring, nr + journal_header_blocks (nr, nr));
}

/* If all that is direct has to be withdrawn, a record that zeroes it takes at
 * most a quarter of the reserve, and fits wherever it begins.  Of each
 * rect there may be two entries, on two pages.  What moves never is.
 */
static bool
may_be_withdrawn (const struct txn *t, const struct ring *ring)
{
  return t->nr_direct_rects == 0 || t->moves ||
    journal_header_blocks (2 * t->nr_direct_rects, 0) <=
    MAX (1, reserve (t, ring) / 4);
}

static bool
all_fit (const struct txn *t, uint32_t max_blocks)
{
  for (unsigned i = 0; i < t->nr_records; i++) {
    const struct txn_record *rec = &t->record[i];
    uint64_t pos;

    const struct ring *ring = &rec->seat->ring;
    const uint32_t nr = record_blocks (rec);

    /* A recovery does not read what was moved directly. */
    if (nr + (t->moves ? 0 : rec->nr_direct) > max_blocks ||
        ((!ring_find (ring, nr, &pos) ||
          !ring_leaves (ring, pos, nr, reserve (t, ring))) &&
         !PLANTED ("journal-no-room")) || !may_be_withdrawn (t, ring))
      return false;
  }
  return true;
}

bool
txn_add (struct array *a, struct txn *t, struct logged *lg,
         uint32_t max_blocks)
{
  const uint64_t region_rows = a->sb.l.region_len / BLOCK_LEN;
  const unsigned nr_rects = lg->direct ? op_nr_rects (lg->op) : 0;
  const unsigned had = t->nr_records;

  if (t->nr_ops == limits.txn_max_ops ||
      !add_regions (t, lg->row / region_rows,
                    (lg->row + lg->nr_rows - 1) / region_rows))
    return false;
  each_run (a, t, lg, count_run);
  t->nr_direct_rects += nr_rects;
  if (!all_fit (t, max_blocks) ||
      ((lg->zeroes || lg->withdrawn) && !add_zeroed (t, lg))) {
    each_run (a, t, lg, uncount_run);
    t->nr_direct_rects -= nr_rects;
    t->nr_records = had;
    return false;
  }
  list_move (&t->ops, &lg->link);
  lg->txn = t;
  t->nr_ops++;
  t->any_direct |= lg->direct;
  return true;
}

uint32_t
txn_direct_blocks (const struct txn *t)
{
  uint32_t nr = 0;

  for (unsigned i = 0; !t->moves && i < t->nr_records; i++)
    nr = MAX (nr, t->record[i].nr_direct);
  return nr;
}

/* ---- making records ---------------------------------------------------- */

/* The arrays of all records are one piece of memory; headers first, for
 * they are written with O_DIRECT.
 */
static bool
get_memory (struct txn *t)
{
  size_t len = 0;
  uint8_t *p;

  for (unsigned i = 0; i < t->nr_records; i++) {
    struct txn_record *rec = &t->record[i];

    rec->nr_header = journal_header_blocks (rec->r.nr_entries,
                                            rec->r.nr_crcs);
    len += rec->nr_header * BLOCK_LEN + rec->nr_pieces * sizeof *rec->piece +
      rec->r.nr_entries * sizeof *rec->r.entry +
      round_up (rec->r.nr_crcs, 2) * sizeof *rec->r.crc;
  }
  t->memory = xfer_memory_new (t->a, round_up (len, BLOCK_LEN));
  if (t->memory == NULL)
    return false;
  p = t->memory->p;
  for (unsigned i = 0; i < t->nr_records; i++) {
    t->record[i].header = p;
    p += t->record[i].nr_header * BLOCK_LEN;
  }
  for (unsigned i = 0; i < t->nr_records; i++) {
    struct txn_record *rec = &t->record[i];

    rec->piece = (struct txn_piece *) p;
    p += rec->nr_pieces * sizeof *rec->piece;
    rec->r.entry = (struct journal_entry *) p;
    p += rec->r.nr_entries * sizeof *rec->r.entry;
    rec->r.crc = (uint32_t *) p;
    p += round_up (rec->r.nr_crcs, 2) * sizeof *rec->r.crc;
    rec->r.nr_entries = rec->nr_pieces = 0;
  }
  return true;
}

static void
add_run (struct array *a, struct txn_record *rec, struct logged *lg,
         const struct run *run)
{
  struct journal_entry *e = &rec->r.entry[rec->r.nr_entries++];

  *e = (struct journal_entry) {
    .generation = (uint32_t) lg->txn->seq,
    .roles = run->rect ? run->rect->changed : LOW_BITS (a->n),
    .first_block = run->row, .nr_blocks = run->nr,
    .before = op_logged_before (a, lg->op, rec->seat->slot, run->row),
  };
  if (run->rect == NULL) {
    e->flags = JOURNAL_ENTRY_ZERO;
    return;
  }
  rec->piece[rec->nr_pieces++] = (struct txn_piece) {
    .cell = lg->direct ? NULL : op_logged_cell (lg->op, run->rect, run->role),
    .b0 = run->b0, .nr = run->nr,
    .crc = op_logged_crcs (lg->op, run->role) + run->b0,
  };
  if (lg->direct)
    e->flags = JOURNAL_ENTRY_DIRECT;
}

/* Places are taken for all before the first record is made: each names
 * those of the others.
 */
static void
take_places (struct txn *t, uint64_t session)
{
  struct device_set participants = {{ 0, 0 }};
  uint32_t place[SB_MAX_DEVICES] = { 0 };

  for (unsigned i = 0; i < t->nr_records; i++) {
    struct txn_record *rec = &t->record[i];
    struct ring *ring = &rec->seat->ring;

    (void) ring_find (ring, record_blocks (rec), &rec->pos);
    ring_take (ring, rec->pos, record_blocks (rec));
    device_set_add (&participants, rec->seat->dev);
    place[rec->seat->dev] = ring_place (ring, rec->pos);
  }
  for (unsigned i = 0; i < t->nr_records; i++) {
    struct journal_record *r = &t->record[i].r;

    r->session = session;
    r->seq = t->seq;
    r->dev = t->record[i].seat->dev;
    r->place = place[r->dev];
    r->participants = participants;
    if (t->moves) {
      r->move_first = t->a->g.frontier;
      r->move_rows = t->a->moving.end - t->a->g.frontier;
    }
    memcpy (r->place_of, place, sizeof place);
  }
}

/* Without the lock, when op_make_crcs has made all crcs. */
static void
encode_record (const struct array *a, struct txn_record *rec)
{
  const struct ring_id id = ring_id_of (&a->sb, rec->seat->slot);
  uint32_t *crc = rec->r.crc;

  for (unsigned i = 0; i < rec->nr_pieces; i++) {
    const struct txn_piece *p = &rec->piece[i];

    memcpy (crc, p->crc, p->nr * sizeof *crc);
    crc += p->nr;
  }
  journal_record_encode (&rec->r, &id, rec->header);
}

/* ---- writing records --------------------------------------------------- */

static void
io_done (struct array *a, struct xfer *x)
{
  struct txn *t = x->owner;

  if (x->error && !PLANTED ("journal-error-ignored"))
    seat_fail (a, x->seat, "journal", x->error);
  else
    x->seat->write_gen++;
  if (--t->pending == 0)
    t->written (a, t);
}

static void
issue (struct array *a, struct txn *t, struct seat *s, uint64_t off,
       void *buf, uint64_t len, struct cell *cell)
{
  struct xfer *x = xfer_new (a, s, IO_WRITE, io_done);

  x->off = off;
  x->len = len;
  x->buf = buf;
  x->cell = cell;
  x->memory = cell ? NULL : t->memory;
  x->owner = t;
  t->pending++;
  a->counters.member_write_ops++;
  a->counters.member_write_bytes += len;
  xfer_start (a, x);
}

static void
issue_record (struct array *a, struct txn *t, const struct txn_record *rec)
{
  uint64_t off = a->sb.l.ring_off + (uint64_t) rec->r.place * BLOCK_LEN;
  uint64_t len = rec->nr_header * BLOCK_LEN;

  issue (a, t, rec->seat, off, rec->header, len, NULL);
  for (unsigned i = 0; i < rec->nr_pieces; i++) {
    const struct txn_piece *p = &rec->piece[i];

    if (p->cell == NULL)
      continue;
    off += len;
    len = (uint64_t) p->nr * BLOCK_LEN;
    issue (a, t, rec->seat, off, p->cell->data + (size_t) p->b0 * BLOCK_LEN,
           len, p->cell);
  }
}

static void
direct_written (struct array *a, struct logged *lg)
{
  struct txn *t = lg->txn;

  if (--t->pending == 0)
    t->written (a, t);
}

/* A member that fails meanwhile gets no record: the transaction goes on
 * when a membership record without it is in force.
 */
static void
encoded_news (struct array *a, struct news *n)
{
  struct txn *t = list_item (n, struct txn, news);

  t->pending = 1;
  list_for_each (l, &t->ops) {
    struct logged *lg = list_item (l, struct logged, link);

    if (lg->direct && !PLANTED ("direct-late")) {
      t->pending++;
      a->counters.direct_writes++;
      op_write_direct (a, lg->op, direct_written);
    }
  }
  for (unsigned i = 0; i < t->nr_records; i++)
    if (takes_record (t->record[i].seat) &&
        (i == 0 || !PLANTED ("journal-one-record")))
      issue_record (a, t, &t->record[i]);
  if (--t->pending == 0)
    t->written (a, t);
}

static void
encode_call (struct call *c)
{
  struct txn *t = list_item (c, struct txn, call);

  list_for_each (l, &t->ops)
    op_make_crcs (list_item (l, struct logged, link)->op);
  for (unsigned i = 0; i < t->nr_records; i++)
    encode_record (t->a, &t->record[i]);
  engine_post (t->a, &t->news);
}

bool
txn_write (struct array *a, struct txn *t, uint64_t session,
           void (*written) (struct array *a, struct txn *t))
{
  if (!get_memory (t))
    return false;
  list_for_each (l, &t->ops)
    each_run (a, t, list_item (l, struct logged, link), add_run);
  take_places (t, session);
  t->phase = TXN_WRITING;
  t->written = written;
  t->call.run = encode_call;
  t->news.run = encoded_news;
  engine_call (a, &t->call);
  return true;
}
