/* gpuraid: checksums in an operation.
 *
 * What is read is compared with the table before it is used.  The coder makes
 * the crcs of what it reads and makes; the others are made here.  A block with
 * another checksum is treated like one that could not be read.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/engine/place.h"
#include "array/ops/internal.h"
#include "array/plan/generations.h"
#include "array/replay/recovery.h"
#include "array/replay/table.h"
#include "array/seats/seat.h"
#include "array/seats/slow.h"
#include "common/bytes/crc32c.h"
#include "common/plant.h"

/* Messages about bad blocks in a minute. */
#define MAX_LOGGED 10u

static uint64_t
slots_of (const struct array *a, const struct op *op, uint64_t roles)
{
  uint64_t slots = 0;

  FOR_EACH_BIT (role, roles)
    slots |= BIT (op_slot (a, op, role));
  return slots;
}

/* ---- what the table says ------------------------------------------------- */

/* A transaction has written the others. */
static uint64_t
old_parity (const struct array *a, const struct op *op, unsigned b,
            uint64_t usable)
{
  uint32_t generation[MAX_SLOTS];

  FOR_EACH_BIT (role, usable)
    generation[role] = op_entry (a, op, role, b).generation;
  return generations_old_parity (generation, a->g.k, usable, a->newest_seq);
}

/* After a crash the journal may say something else. */
static void
look_at_row (struct array *a, struct op *op, unsigned b)
{
  const uint64_t zeroes = line_zeroes (a, op->line->no);
  uint64_t zero = zeroes, lost = 0, known = 0;

  for (unsigned role = 0; role < a->n; role++) {
    const unsigned slot = op_slot (a, op, role);

    if ((op->looked & BIT (slot)) == 0 || zeroes & BIT (role))
      continue;
    if (slot_is_active (a, slot))
      known |= BIT (role);
    switch (table_kind (op_entry (a, op, role, b))) {
    case TABLE_ZERO: zero |= BIT (role); break;
    case TABLE_LOST: lost |= BIT (role); break;
    case TABLE_WRITTEN: break;
    }
  }
  if (recover_is_pending (a)) {
    const uint64_t said = recover_said (a, op->line->no, b);

    zero &= ~said;
    lost &= ~said;
  }
  op->zero_roles[b] = zero;
  op->lost_roles[b] = lost;
  if (op->no_sums) {
    op->zero_roles[b] = op->lost_roles[b] = 0;
    return;
  }
  if (op->all_slots && !recover_is_pending (a))
    op->lost_roles[b] |= old_parity (a, op, b, known & ~lost & ~zero);
}

static bool
needs_all (const struct array *a, const struct op *op)
{
  uint64_t noread, nowrite;

  if (op->type->kind != OP_READ || op->all_slots || op->slow)
    return true;
  line_masks (a, op->line->no, &noread, &nowrite);
  return (op->want & noread) || op_bad_roles (a, op, 0xffff);
}

/* The slots of which a reader does not wait for pages: their members are slow,
 * and what they have is decoded, as if they were absent.
 */
static uint64_t
unawaited_slots (const struct array *a, const struct op *op)
{
  if (op->type->kind != OP_READ || op->patient)
    return 0;
  return slow_slots (a) | slots_of (a, op, op->late);
}

/* Something is wrong with the rows of a reader: it waits for the pages of all
 * slots.  True if it has not looked at all of them yet.
 */
static bool
needs_patience (struct array *a, struct op *op)
{
  if (op->type->kind != OP_READ)
    return false;
  op->patient = op->all_slots = true;
  return op->looked != LOW_BITS (a->n);
}

/* A write stores the page: what can't be read of it now would be lost. */
static bool
waits_for_pages (const struct array *a, const struct op *op)
{
  const uint64_t first = op->log.row;
  const uint64_t end = first + op->log.nr_rows;

  if (op->type->kind == OP_READ || op->type->kind == OP_SCRUB ||
      op->tries >= OP_MAX_TRIES)
    return false;
  for (uint64_t row = first; row < end; row = sums_page_end (row))
    FOR_EACH_BIT (slot, sums_unreadable (&op->pin, row))
      if (slot_is_active (a, slot))
        return true;
  return false;
}

/* The rows that are written, or all: what the table says of others does not
 * matter to a write-out.
 */
static uint16_t
looked_rows (const struct array *a, const struct op *op)
{
  uint16_t rows = 0;

  if (op->type->kind != OP_OUT)
    return block_mask (0, a->cell_blocks);
  for (unsigned r = 0; r < a->g.k; r++)
    rows |= op->role[r].given_blocks;
  return PLANTED ("rows-unlooked") ? rows & (rows - 1) : rows;
}

bool
op_pin_sums (struct array *a, struct op *op)
{
  const uint64_t row = op->log.row;
  const uint64_t nr = op->log.nr_rows;
  uint16_t rows;

  if (a->sums == NULL)
    return true;
  op->all_slots = needs_all (a, op);
  if (!sums_pin (a, &op->pin, row, nr,
                 (op->all_slots ? LOW_BITS (a->n) :
                  slots_of (a, op, op->want)) & ~unawaited_slots (a, op),
                 &op->waiter))
    return false;
  if (waits_for_pages (a, op) && !PLANTED ("sums-unreadable-written")) {
    sums_unpin (a, &op->pin);
    op->tries++;
    list_move (&a->pause_waiters, &op->waiter.link);
    return false;
  }
  if (op->type->kind == OP_ZERO)
    return true;
  op->bad_sums = false;
  /* It stays so: some may have been read before the region was synced. */
  op->no_sums |= !PLANTED ("none-believed") &&
    line_is_unsynced (a, op->line->no);
  op->looked = 0;
  for (unsigned slot = 0; slot < a->n; slot++)
    if (sums_has_slots (a, &op->pin, BIT (slot)))
      op->looked |= BIT (slot);
  rows = looked_rows (a, op);
  FOR_EACH_BIT (b, rows)
    look_at_row (a, op, b);
  return true;
}

uint64_t
op_lost_roles (const struct array *a, const struct op *op,
               const struct rect *rect)
{
  uint64_t roles = op->lost_roles[rect->b0];

  if (roles == 0 || op->pin.nr == 0)
    return 0;
  FOR_EACH_BIT (slot, sums_unreadable (&op->pin, op_row (op, rect->b0)))
    roles &= ~BIT (line_role (a, op->line->no, slot));
  return roles;
}

bool
op_lacks_sums (struct array *a, struct op *op)
{
  uint64_t read = 0;

  if (a->sums == NULL || op->no_sums)
    return false;
  for (unsigned i = 0; i < op->nr_rects; i++)
    read |= op->rect[i].p.read;
  if (slots_of (a, op, read) & unawaited_slots (a, op) & ~op->looked) {
    op->patient = true;
    return true;
  }
  if (op->all_slots)
    return false;
  /* Of others it was not looked at what the table says. */
  op->all_slots = (read & ~op->want) != 0;
  return op->all_slots;
}

/* ---- comparing ----------------------------------------------------------- */

static void
note_bad (struct array *a, struct op *op, unsigned role, unsigned b,
          uint32_t crc)
{
  const unsigned slot = op_slot (a, op, role);
  struct seat *s = a->at[slot][0];
  struct op_role *o = &op->role[role];
  const uint16_t block = block_mask (b, 1);

  op->bad_sums = true;
  needs_patience (a, op);
  o->bad_blocks |= block;
  o->wrong_blocks |= block;
  o->wrong_crc[b] = crc;
  o->old_blocks &= ~block;
  if (op->type->kind == OP_SCRUB)
    op->scrubbed->wrong[b] |= BIT (role);
  if (op->tries > 0 || s == NULL || op->type->kind == OP_SCRUB)
    return;
  s->nr_bad_sums++;
  a->counters.corrupt_found++;
  if (a->bad_sums_logged++ < MAX_LOGGED)
    log_notice ("slot %u: %s: block %" PRIu64 " has another checksum: it is "
                "made anew", slot, s->m->path, op_row (op, b));
}

static bool
is_good (const struct array *a, const struct op *op, unsigned role,
         unsigned b, uint32_t crc)
{
  const struct table_entry e = op_entry (a, op, role, b);
  const struct replay_source *src =
    recover_source (a, op->line->no, role, b);

  if ((PLANTED ("sums-unverified") && op->type->kind != OP_READ) ||
      (PLANTED ("hedge-unverified") && op->hedged))
    return true;
  if (src)
    return (src->kind != REPLAY_RING && src->kind != REPLAY_DIRECT) ||
      src->crc == crc || PLANTED ("ring-unverified");
  return e.generation != 0 &&
    e.sum == sums_sum (a, op_slot (a, op, role), op_row (op, b), crc);
}

static void
compare (struct array *a, struct op *op, const struct rect *rect,
         unsigned role, const uint32_t *crc)
{
  struct op_role *o = &op->role[role];

  /* What was read may be of a transaction that does not count any more. */
  if (op->type->kind != OP_SCRUB && op->decision != recover_decision (a)) {
    op->bad_sums = true;
    return;
  }
  /* Its crcs are needed, and made again if it is planned again. */
  if (op->anew)
    return;
  for (unsigned b = rect->b0; b < rect->b0 + rect->nr; b++, crc++) {
    if ((o->checked_blocks | ~o->old_blocks) >> b & 1)
      continue;
    if (op->no_sums || is_good (a, op, role, b, *crc))
      o->checked_blocks |= block_mask (b, 1);
    else
      note_bad (a, op, role, b, *crc);
  }
}

/* ---- what was read ------------------------------------------------------- */

/* The roles that were read, some of them perhaps for an earlier plan, which did
 * not get as far as to compare them.
 */
static uint64_t
read_roles (const struct op *op, const struct rect *rect)
{
  const uint16_t mask = block_mask (rect->b0, rect->nr);
  uint64_t roles = rect->p.read;

  FOR_EACH_BIT (role, rect->have)
    if ((op->role[role].old_blocks & mask) == mask)
      roles |= BIT (role);
  return roles;
}

/* The blocks of a role that the coder does not look at, and that are not
 * replaced: the crcs of these are those of the new content.
 */
static uint16_t
uncoded_blocks (const struct op *op, const struct rect *rect, unsigned role)
{
  if (rect->given & BIT (role) || (rect->p.make && rect->p.in & BIT (role)))
    return 0;
  return block_mask (rect->b0, rect->nr) & ~op->role[role].checked_blocks;
}

/* The crcs of some blocks of a role, of its old content or what is new. */
static void
make_crcs (struct op *op, const struct rect *rect, unsigned role,
           uint16_t blocks)
{
  const struct cell *c = rect->given & BIT (role) ? op->role[role].given :
    op_old (op, rect, role);
  struct op_role *o = &op->role[role];

  FOR_EACH_BIT (b, blocks) {
    o->crc[b] = crc32c (c->data + b * BLOCK_LEN, BLOCK_LEN);
    o->crc_blocks |= block_mask (b, 1);
  }
}

/* The roles whose content is stored as it is.  What is new has its crc from the
 * coder, or from the journal.
 */
static uint64_t
copied_roles (const struct op *op, const struct rect *rect)
{
  if (op->type->kind == OP_FIX && !rect->zeroes)
    return rect->p.write & ~rect->p.make &
      ~(rect->p.make ? rect->p.in : 0);
  return op->type->kind == OP_OUT && op->a->mark_open && rect->p.make == 0 ?
    rect->p.write : 0;
}

static uint16_t
missing_crcs (const struct op *op, const struct rect *rect, unsigned role)
{
  return block_mask (rect->b0, rect->nr) & ~op->role[role].crc_blocks;
}

static void
check_call (struct call *c)
{
  struct op *op = list_item (c, struct op, check_call);

  for (unsigned i = 0; i < op->nr_rects; i++) {
    const struct rect *rect = &op->rect[i];

    FOR_EACH_BIT (role, read_roles (op, rect))
      make_crcs (op, rect, role, uncoded_blocks (op, rect, role));
    FOR_EACH_BIT (role, copied_roles (op, rect))
      make_crcs (op, rect, role, missing_crcs (op, rect, role));
  }
  engine_post (op->a, &op->check_news);
}

void
op_start_check (struct array *a, struct op *op)
{
  uint16_t blocks = 0;

  op->pending = 0;
  for (unsigned i = 0; a->sums && i < op->nr_rects; i++) {
    const struct rect *rect = &op->rect[i];

    FOR_EACH_BIT (role, read_roles (op, rect))
      blocks |= uncoded_blocks (op, rect, role);
    FOR_EACH_BIT (role, copied_roles (op, rect))
      blocks |= missing_crcs (op, rect, role);
  }
  if (blocks)
    op_call (a, op, check_call);
}

bool
op_check (struct array *a, struct op *op)
{
  for (unsigned i = 0; a->sums && i < op->nr_rects; i++) {
    const struct rect *rect = &op->rect[i];

    FOR_EACH_BIT (role, read_roles (op, rect))
      if (uncoded_blocks (op, rect, role))
        compare (a, op, rect, role, &op->role[role].crc[rect->b0]);
  }
  return !op->bad_sums;
}

void
op_check_coded (struct array *a, struct op *op, struct rect *rect,
                uint64_t in, const uint32_t *crc)
{
  if (a->sums == NULL)
    return;
  FOR_EACH_BIT (role, in) {
    if (read_roles (op, rect) & BIT (role))
      compare (a, op, rect, role, crc);
    crc += rect->nr;
  }
}

/* ---- what was made ------------------------------------------------------- */

/* The entry says something else than what was decoded, from blocks that have
 * their checksums.  Was its block written later than it says?  Only if that is
 * what was decoded: else another slot may have both an old block and its entry.
 */
static bool
is_outdated (const struct array *a, const struct op *op, unsigned role,
             unsigned b)
{
  const struct op_role *o = &op->role[role];
  const uint64_t data = LOW_BITS (a->g.k), others = LOW_BITS (a->n) &
    ~BIT (role) & ~op->noread & ~op->lost_roles[b] &
    ~line_zeroes (a, op->line->no);
  const uint32_t own = op_entry (a, op, role, b).generation;
  uint32_t generation = 0;

  if (!PLANTED ("sums-outdated-unread") &&
      (!(o->wrong_blocks >> b & 1) || o->wrong_crc[b] != o->crc[b]))
    return false;
  FOR_EACH_BIT (r, others & ~data)
    generation = op_entry (a, op, r, b).generation;
  if (generation == 0 || own == generation)
    return false;
  if (BIT (role) & ~data)
    return true;
  FOR_EACH_BIT (r, others & data)
    if (op->zero_roles[b] & BIT (r) ||
        op_entry (a, op, r, b).generation == generation)
      return false;
  return true;
}

/* Old content that was made for a slot whose entry is known. */
void
op_check_made (struct array *a, struct op *op, struct rect *rect)
{
  if (a->sums == NULL || op->bad_sums || rect->given || op->to_targets ||
      op->replay || op->type->kind == OP_SCRUB || op->proven || op->no_sums ||
      PLANTED ("sums-result-unchecked"))
    return;
  FOR_EACH_BIT (role, rect->p.make) {
    const unsigned slot = op_slot (a, op, role);
    const struct op_role *o = &op->role[role];

    for (unsigned b = rect->b0; b < rect->b0 + rect->nr; b++)
      if (slot_is_active (a, slot) &&
          op->looked & BIT (slot) &&
          !((op->lost_roles[b] | op->zero_roles[b]) & BIT (role)) &&
          !is_good (a, op, role, b, o->crc[b])) {
        if (needs_patience (a, op)) {
          op->bad_sums = true;  /* plan again */
          return;
        }
        if (is_outdated (a, op, role, b))
          continue;
        rect->lost |= op->type->kind == OP_READ ? BIT (role) : ~UINT64_C (0);
        log_notice ("line %" PRIu64 ", row %u: what was decoded for slot %u "
                    "has another checksum", op->line->no, b, slot);
      }
  }
  if (rect->lost && op->type->kind == OP_FIX)
    rect->p.write = 0;
}
