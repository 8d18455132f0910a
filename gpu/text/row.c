/* gpuraid: find sums that the bits of a row have in common.
 *
 * Greedy: always the pair or triple of terms that saves most.  Only within a
 * row, because a shared sum takes a register for as long as it is needed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdbool.h>
#include <string.h>

#include "gpu/text/row.h"

#define NR_TERMS (KERNEL_SHARED + KERNEL_MAX_SHARED)

struct share {
  struct kernel_row *row;
  unsigned parity;              /* of a number of terms that is one too many */
  uint8_t has[NR_TERMS];        /* of each term: which bits have it */
};

struct choice {
  unsigned nr;                  /* of terms */
  uint16_t term[3];
  int gain;
};

/* A pair removes one term, which saves an operation if their number was of the
 * right parity; a triple always does.  To make it costs one.
 */
static uint8_t
worth_in (const struct share *s, uint8_t bits, unsigned nr)
{
  uint8_t worth = 0;

  for (unsigned b = 0; b < 8; b++)
    if ((bits >> b & 1) && (nr == 3 || s->row->bit[b].nr % 2 == s->parity))
      worth |= 1u << b;
  return worth;
}

static void
consider (const struct share *s, struct choice *best, unsigned nr, uint16_t x,
          uint16_t y, uint16_t z)
{
  uint8_t bits = s->has[x] & s->has[y] & (nr == 3 ? s->has[z] : 255);
  int gain = __builtin_popcount (worth_in (s, bits, nr)) - 1;

  if (gain > best->gain)
    *best = (struct choice) { nr, { x, y, z }, gain };
}

/* Only terms that two bits have in common can pay. */
static void
consider_two_bits (const struct share *s, unsigned a, unsigned b,
                   struct choice *best)
{
  uint16_t both[MATRIX_MAX];
  unsigned n = 0;

  for (unsigned i = 0; i < s->row->bit[a].nr; i++)
    if (s->has[s->row->bit[a].term[i]] >> b & 1)
      both[n++] = s->row->bit[a].term[i];
  for (unsigned x = 0; x < n; x++)
    for (unsigned y = x + 1; y < n; y++) {
      consider (s, best, 2, both[x], both[y], 0);
      for (unsigned z = y + 1; z < n; z++)
        consider (s, best, 3, both[x], both[y], both[z]);
    }
}

static bool
is_in (const struct choice *c, uint16_t term)
{
  for (unsigned i = 0; i < c->nr; i++)
    if (c->term[i] == term)
      return true;
  return false;
}

static void
apply (struct share *s, const struct choice *c)
{
  struct kernel_row *row = s->row;
  const uint16_t name = KERNEL_SHARED + row->nr_shared;
  uint8_t bits = s->has[c->term[0]] & s->has[c->term[1]] &
    (c->nr == 3 ? s->has[c->term[2]] : 255);

  bits = worth_in (s, bits, c->nr);
  row->shared[row->nr_shared].nr = c->nr;
  memcpy (row->shared[row->nr_shared++].term, c->term, sizeof c->term);
  s->has[name] = bits;
  for (unsigned i = 0; i < c->nr; i++)
    s->has[c->term[i]] &= ~bits;
  for (unsigned b = 0; b < 8; b++) {
    unsigned n = 0;

    if (!(bits >> b & 1))
      continue;
    for (unsigned i = 0; i < row->bit[b].nr; i++)
      if (!is_in (c, row->bit[b].term[i]))
        row->bit[b].term[n++] = row->bit[b].term[i];
    row->bit[b].term[n++] = name;
    row->bit[b].nr = n;
  }
}

void
kernel_row_share (struct kernel_row *row, bool odd)
{
  struct share s = { .row = row, .parity = odd };

  row->nr_shared = 0;
  for (unsigned b = 0; b < 8; b++)
    for (unsigned i = 0; i < row->bit[b].nr; i++)
      s.has[row->bit[b].term[i]] |= 1u << b;
  while (row->nr_shared < KERNEL_MAX_SHARED) {
    struct choice best = { .gain = 0 };

    for (unsigned a = 0; a < 8; a++)
      for (unsigned b = a + 1; b < 8; b++)
        consider_two_bits (&s, a, b, &best);
    if (best.gain == 0)
      return;
    apply (&s, &best);
  }
}
