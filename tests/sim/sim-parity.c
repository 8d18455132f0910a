/* gpuraid: tests: what is on the disks of a simulated array: data, and
 * whether its rows are code words.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "raidmap/layout/reshape.h"
#include "tests/sim/sim-array.h"

static uint64_t
row_of (const struct sim_array *sa, uint64_t stripe, unsigned b)
{
  return stripe * (sa->g.chunk / BLOCK_LEN) + b;
}

/* Blocks [b0, b0 + nr) of a role; what was never written reads as zeroes. */
static bool
get_blocks (struct sim_array *sa, struct sim_disk *const *at, uint64_t stripe,
            unsigned role, unsigned b0, unsigned nr, uint8_t *buf)
{
  const uint64_t row = row_of (sa, stripe, b0);
  const unsigned slot = reshape_slot (&sa->g, row, role);
  bool right = true;

  if (reshape_zeroes (&sa->g, row) & BIT (role)) {
    memset (buf, 0, (size_t) nr * BLOCK_LEN);
    return true;
  }
  assert (at[slot] != NULL);
  memcpy (buf, at[slot]->image + layout_data_off (&sa->l, row * BLOCK_LEN),
          (size_t) nr * BLOCK_LEN);
  for (unsigned i = 0; i < nr; i++) {
    if (table_kind (sim_array_entry (sa, at[slot], slot, row + i)) ==
        TABLE_ZERO)
      memset (buf + (size_t) i * BLOCK_LEN, 0, BLOCK_LEN);
    right &= sim_array_sum_is_right (sa, at[slot], slot, row + i);
  }
  return right;
}

static void
coded (struct coder_job *job, int error)
{
  assert (error == 0);
}

static void
init_check (struct sim_array *sa)
{
  if (sa->check.solver)
    return;
  sa->check.solver = solver_new (sa->code, sa->w, sa->g.k, sa->g.m);
  sa->check.coder = coder_isal_new (0);
  assert (sa->check.solver != NULL && sa->check.coder != NULL &&
          coder_start (sa->check.coder, NULL, 0) == 0);
  if (posix_memalign ((void **) &sa->check.cells, BLOCK_LEN,
                      (size_t) (sa->g.k + sa->g.m + 1) * sa->g.chunk))
    abort ();
}

void
sim_array_end_check (struct sim_array *sa)
{
  solver_free (sa->check.solver);
  if (sa->check.coder)
    coder_free (sa->check.coder);
  free (sa->check.cells);
  memset (&sa->check, 0, sizeof sa->check);
}

/* The blocks [b0, b0 + nr) of a stripe, of these roles. */
static bool
blocks_are_right (struct sim_array *sa, struct sim_disk *const *at,
                  uint64_t stripe, unsigned b0, unsigned nr, uint64_t roles,
                  char *why, size_t why_len)
{
  const size_t len = (size_t) nr * BLOCK_LEN;
  const uint8_t *in[MAX_SLOTS];
  uint8_t *out[MAX_SLOTS], *cell = sa->check.cells;
  uint64_t given = 0, make;
  unsigned i = 0;
  struct coder_job job = { .cell_len = len, .nr_rects = 1, .in = in,
                           .out = out, .done = coded };
  struct solution *sol;

  FOR_EACH_BIT (r, roles)
    if (i < sa->g.k) {
      given |= BIT (r);
      in[i++] = cell;
      if (!get_blocks (sa, at, stripe, r, b0, nr, cell)) {
        snprintf (why, why_len, "stripe %" PRIu64 ": role %u (slot %u), "
                  "block %u: another checksum", stripe, r,
                  reshape_slot (&sa->g, row_of (sa, stripe, b0), r), b0);
        return false;
      }
      cell += len;
    }
  make = roles & ~given;
  i = 0;
  FOR_EACH_BIT (r, make) {
    out[i++] = cell;
    cell += len;
  }
  sol = solver_get (sa->check.solver, given, 0, make, 0);
  assert (sol != NULL);
  job.matrix = sol->matrix;
  coder_submit (sa->check.coder, &job);
  solver_put (sa->check.solver, sol);
  i = 0;
  FOR_EACH_BIT (r, make) {
    const bool right = get_blocks (sa, at, stripe, r, b0, nr, cell);

    for (size_t j = 0; (!right || memcmp (cell, out[i], len) != 0) && j < len;
         j++)
      if (!right || cell[j] != out[i][j]) {
        snprintf (why, why_len, "stripe %" PRIu64 ": role %u (slot %u) does "
                  "not fit the others at byte %zu of the chunk%s", stripe, r,
                  reshape_slot (&sa->g, row_of (sa, stripe, b0), r),
                  b0 * BLOCK_LEN + j,
                  right ? "" : " (another checksum)");
        return false;
      }
    i++;
  }
  return true;
}

static bool
is_lost (struct sim_array *sa, const struct sim_disk *d, unsigned slot,
         uint64_t row)
{
  return table_kind (sim_array_entry (sa, d, slot, row)) == TABLE_LOST ||
    (sim_array_is_rotted (sa, d) &&
     !sim_array_sum_is_right (sa, d, slot, row));
}

/* Roles of a row that can be looked at: neither lost in the table nor rotted.
 */
static uint64_t
good_roles (struct sim_array *sa, struct sim_disk *const *at, uint64_t row)
{
  uint64_t roles = reshape_zeroes (&sa->g, row);

  for (unsigned slot = 0; slot < sa->g.k + sa->g.m; slot++)
    if (at[slot] && !is_lost (sa, at[slot], slot, row))
      roles |= BIT (reshape_role (&sa->g, row, slot));
  return reshape_is_dead (&sa->g, row) ? 0 : roles;
}

bool
sim_array_rows_are_right (struct sim_array *sa, struct sim_disk *const *at,
                          uint64_t (*roles) (void *opaque, uint64_t row),
                          void *opaque, char *why, size_t why_len)
{
  const unsigned per_stripe = sa->g.chunk / BLOCK_LEN;
  const uint64_t nr_rows = sa->l.data_len / BLOCK_LEN;
  uint64_t row, end;

  init_check (sa);
  sa->look++;
  for (row = 0; row < nr_rows; row = end) {
    const uint64_t mask = roles (opaque, row) & good_roles (sa, at, row);

    for (end = row + 1; end % per_stripe; end++)
      if ((roles (opaque, end) & good_roles (sa, at, end)) != mask ||
          reshape_is_old (&sa->g, end) != reshape_is_old (&sa->g, row))
        break;
    if (nr_bits (mask) > sa->g.k &&
        !blocks_are_right (sa, at, row / per_stripe, row % per_stripe,
                           end - row, mask, why, why_len))
      return false;
  }
  return true;
}

static uint64_t
all_roles (void *opaque, uint64_t row)
{
  return ~UINT64_C (0);
}

bool
sim_array_parity_is_right (struct sim_array *sa, char *why, size_t len)
{
  return sim_array_rows_are_right (sa, sa->at, all_roles, NULL, why, len);
}

void
sim_array_image (struct sim_array *sa, uint8_t *buf)
{
  struct piece p;

  sa->look++;
  for (uint64_t off = 0; off < sa->g.size; off += p.len) {
    reshape_piece (&sa->g, off, sa->g.size - off, &p);
    get_blocks (sa, sa->at, p.stripe, p.role, p.chunk_off / BLOCK_LEN,
                p.len / BLOCK_LEN, buf + off);
  }
}
