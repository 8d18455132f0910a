/* gpuraid: what an operation has stored, as entries of the checksum table.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/engine/place.h"
#include "array/engine/state.h"
#include "array/ops/internal.h"
#include "array/plan/generations.h"
#include "array/replay/recovery.h"
#include "array/replay/table.h"
#include "array/seats/seat.h"
#include "common/bytes/crc32c.h"
#include "common/plant.h"

/* ---- first writes -------------------------------------------------------- */

/* Absent slots are not asked: k blocks of zeroes prove that all are. */
bool
op_is_first_write (const struct array *a, const struct op *op)
{
  uint64_t asked = 0;

  for (unsigned role = 0; role < a->n; role++)
    for (unsigned i = 0; i < 2; i++) {
      const struct seat *s = a->at[op_slot (a, op, role)][i];

      if (s && seat_writable_at (a, s, op_pos (op)))
        asked |= BIT (role);
    }
  if (nr_bits (asked) < a->g.k)
    return false;
  for (unsigned i = 0; i < op->nr_rects; i++)
    for (unsigned b = op->rect[i].b0; b < op->rect[i].b0 + op->rect[i].nr; b++)
      if (asked & ~op->zero_roles[b])
        return false;
  return true;
}

/* ---- what is stored ------------------------------------------------------ */

void
op_make_crcs (struct op *op)
{
  for (unsigned i = 0; i < op->nr_rects; i++) {
    const struct rect *rect = &op->rect[i];

    FOR_EACH_BIT (role, rect->p.write) {
      struct op_role *o = &op->role[role];
      const struct cell *c = op_new_cell (op, rect, role);

      FOR_EACH_BIT (b, block_mask (rect->b0, rect->nr) & ~o->crc_blocks) {
        o->crc[b] = crc32c (c->data + b * BLOCK_LEN, BLOCK_LEN);
        o->crc_blocks |= block_mask (b, 1);
      }
    }
  }
}

static void
change (struct array *a, struct op *op, unsigned role, unsigned b,
        uint32_t generation, uint64_t seq)
{
  const unsigned slot = op_slot (a, op, role);
  const uint64_t row = op_row (op, b);
  const struct table_entry e = {
    .sum = sums_sum (a, slot, row, op->role[role].crc[b]),
    .generation = generation,
  };

  sums_change (a, &op->pin, slot, row, e, seq);
}

/* The roles whose block, as it will be in place, is known. */
static uint64_t
known_roles (const struct array *a, const struct op *op,
             const struct rect *rect, unsigned b)
{
  uint64_t roles = rect->p.make;

  for (unsigned role = 0; role < a->n; role++)
    if (op->role[role].old_blocks & op->role[role].crc_blocks &
        block_mask (b, 1))
      roles |= BIT (role);
  return roles;
}

static bool
is_zeroes (const struct op *op, unsigned role, unsigned b)
{
  static const uint8_t zeroes[BLOCK_LEN];

  return op->role[role].crc[b] == crc32c (zeroes, BLOCK_LEN);
}

/* Those that are zeroes, of which the table says the same. */
static uint64_t
zero_roles (const struct array *a, const struct op *op, uint64_t roles,
            unsigned b)
{
  uint64_t zero = 0;

  FOR_EACH_BIT (role, roles)
    if (is_zeroes (op, role, b) &&
        table_kind (op_entry (a, op, role, b)) == TABLE_ZERO)
      zero |= BIT (role);
  return zero;
}

/* A resync takes data as it is in place, and so are its entries.  They are
 * stored even if they are the same: the page's other place may be older.
 * Parity is zeroes only where all is.
 */
static void
note_anew (struct array *a, struct op *op, const struct rect *rect, unsigned b)
{
  const uint64_t known = known_roles (a, op, rect, b);
  uint64_t zero = zero_roles (a, op, known, b);

  if (zero != known)
    zero &= LOW_BITS (a->g.k);
  for (unsigned role = 0; role < a->n; role++) {
    const unsigned slot = op_slot (a, op, role);
    const uint64_t row = op_row (op, b);

    if (!slot_is_active (a, slot))
      continue;
    if (zero & BIT (role))
      sums_change (a, &op->pin, slot, row, (struct table_entry) { 0, 0 }, 0);
    else if (known & BIT (role))
      change (a, op, role, b, SUMS_ONE_SEQ, 0);
    else
      sums_change (a, &op->pin, slot, row, TABLE_ENTRY_LOST, 0);
  }
}

void
op_note_sums (struct array *a, struct op *op, uint64_t seq)
{
  if (a->sums == NULL)
    return;
  for (unsigned i = 0; op->anew && i < op->nr_rects; i++)
    for (unsigned b = 0; b < op->rect[i].nr; b++)
      note_anew (a, op, &op->rect[i], op->rect[i].b0 + b);
  if (op->anew)
    return;
  if (op->type->kind == OP_ZERO) {
    sums_change_zero (a, &op->pin, op->log.row, op->log.nr_rows, seq);
    return;
  }
  for (unsigned i = 0; op->log.withdrawn && i < op->nr_rects; i++)
    sums_change_zero (a, &op->pin, op_row (op, op->rect[i].b0),
                      op->rect[i].nr, seq);
  if (op->log.withdrawn)
    return;
  for (unsigned i = 0; i < op->nr_rects; i++) {
    const struct rect *rect = &op->rect[i];

    FOR_EACH_BIT (role, rect->p.write)
      for (unsigned b = rect->b0; b < rect->b0 + rect->nr; b++)
        change (a, op, role, b, (uint32_t) seq, seq);
  }
}

/* The generation of a block that was made for a slot that had none: that of
 * the parity; of parity with no other parity, that of the newest data.  Other
 * parity may come back later, and has the same then.
 */
static uint32_t
generation_of (const struct array *a, const struct op *op, unsigned role,
               unsigned b)
{
  const uint64_t usable = LOW_BITS (a->n) & ~op->noread &
    ~op->lost_roles[b] & ~op->zero_roles[b] & ~BIT (role);
  const uint64_t parity = usable & ~LOW_BITS (a->g.k);
  uint32_t generation[MAX_SLOTS];

  if (usable == 0)
    return 0;
  FOR_EACH_BIT (r, usable)
    generation[r] = op_entry (a, op, r, b).generation;
  if (parity == 0 && PLANTED ("made-parity-any"))
    return generation[63 - __builtin_clzll (usable)];
  return generations_youngest (generation, parity ? parity : usable,
                               a->newest_seq);
}

/* Such a block was stored.  If no other block has a generation it is one of a
 * row that was never written, or was in memory.
 */
static void
change_made (struct array *a, struct op *op, unsigned role, unsigned b)
{
  const uint32_t generation = generation_of (a, op, role, b);

  if (generation == 0 && is_zeroes (op, role, b))
    sums_change (a, &op->pin, op_slot (a, op, role), op_row (op, b),
                 (struct table_entry) { 0, 0 }, 0);
  else
    change (a, op, role, b, MAX (generation, 1), 0);
}

/* Of a recovery, before the newest transaction counts. */
static void
note_direct (struct array *a, struct op *op, const struct rect *rect)
{
  const unsigned b = rect->b0;

  FOR_EACH_BIT (role, rect->p.write)
    if (slot_is_active (a, op_slot (a, op, role)))
      recover_wrote_direct (a, op->line->no, role, b, op->role[role].crc[b]);
  if (rect->lost && op_errors (op, b))
    recover_note_bad (a, op->line->no, b, op_errors (op, b));
  else if (rect->lost && !recover_is_outdated (a))
    array_set_failed (a, "its journal can't be read");
}

/* A target may have the page of the transaction that was the first to write to
 * it, in one place, also on a slot of which no block changes.
 */
static void
store_on_targets (struct array *a, struct op *op, unsigned b, uint64_t roles)
{
  uint64_t newest = 0;
  bool zero;

  FOR_EACH_BIT (role, roles)
    newest = MAX (newest, recover_seq (a, op->line->no, role, b, &zero));
  for (unsigned slot = 0; slot < a->n; slot++)
    if (a->at[slot][1])
      sums_store_both (a, &op->pin, slot, op_row (op, b), newest);
}

static void
note_placed (struct array *a, struct op *op, const struct rect *rect)
{
  const unsigned b = rect->b0;
  const uint64_t direct = recover_direct (a, op->line->no, b);
  const uint64_t lost = LOW_BITS (a->n) & ~rect->p.write &
    (rect->lost | recover_erased (a, op->line->no, b));

  if (!PLANTED ("recover-target-page-kept"))
    store_on_targets (a, op, b, rect->p.write | direct | lost);
  FOR_EACH_BIT (role, rect->p.write | direct | lost) {
    const unsigned slot = op_slot (a, op, role);
    const uint64_t row = op_row (op, b);
    bool zero;
    const uint64_t seq = recover_seq (a, op->line->no, role, b, &zero);

    if (direct & BIT (role)) {  /* it was not made here */
      op->role[role].crc[b] = recover_source (a, op->line->no, role, b)->crc;
      op->role[role].crc_blocks |= block_mask (b, 1);
    }
    if (lost & BIT (role))
      sums_change (a, &op->pin, slot, row, TABLE_ENTRY_LOST, seq);
    else if (zero)
      sums_change (a, &op->pin, slot, row, (struct table_entry) { 0, 0 },
                   seq);
    else if (seq)
      change (a, op, role, b, (uint32_t) seq, seq);
    else if (table_kind (op_entry (a, op, role, b)) == TABLE_LOST)
      change_made (a, op, role, b);
  }
}

void
op_note_copied (struct array *a, struct op *op)
{
  const uint64_t seq = 0;

  if (a->sums == NULL || a->failed)
    return;
  for (unsigned i = 0; op->replay && i < op->nr_rects; i++)
    if (recover_is_early (a))
      note_direct (a, op, &op->rect[i]);
    else
      note_placed (a, op, &op->rect[i]);
  if (op->replay)
    return;
  for (unsigned i = 0; i < op->nr_rects; i++) {
    const struct rect *rect = &op->rect[i];

    for (unsigned b = rect->b0; b < rect->b0 + rect->nr; b++)
      FOR_EACH_BIT (role, op->want) {
        const unsigned slot = op_slot (a, op, role);
        const uint64_t row = op_row (op, b);

        /* The entry is that of both members of a slot. */
        if (rect->lost & BIT (role))
          sums_change (a, &op->pin, slot, row, TABLE_ENTRY_LOST, seq);
        else if (slot_is_active (a, slot))
          continue;
        else if (rect->p.write & BIT (role) && !rect->zeroes)
          change_made (a, op, role, b);
        else
          sums_change (a, &op->pin, slot, row, (struct table_entry) { 0, 0 },
                       seq);
      }
  }
}
