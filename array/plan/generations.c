/* gpuraid: which parity of a row is old, by the generations of its blocks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdbool.h>

#include "array/plan/generations.h"
#include "common/bits.h"
#include "common/plant.h"

/* Those of these roles that have the generation. */
static uint64_t
roles_with (const uint32_t *generation, uint64_t roles, uint32_t g)
{
  uint64_t with = 0;

  FOR_EACH_BIT (role, roles)
    if (generation[role] == g)
      with |= BIT (role);
  return with;
}

/* Parity that has the generation of some data. */
static uint64_t
carried (const uint32_t *generation, uint64_t parity, uint64_t data)
{
  uint64_t roles = 0;

  FOR_EACH_BIT (d, data)
    roles |= roles_with (generation, parity, generation[d]);
  return roles;
}

uint32_t
generations_youngest (const uint32_t *generation, uint64_t roles, uint32_t seq)
{
  uint32_t g = generation[__builtin_ctzll (roles)];

  FOR_EACH_BIT (role, roles)
    if (seq - generation[role] < seq - g)
      g = generation[role];
  return g;
}

uint64_t
generations_old_parity (const uint32_t *generation, unsigned k,
                        uint64_t usable, uint32_t seq)
{
  const uint64_t data = LOW_BITS (k), parity = usable & ~data;
  const bool all = (data & ~usable) == 0 ||
    PLANTED ("generations-data-first");
  uint64_t from = parity;

  if (parity == 0 || (!all && PLANTED ("generations-unread")))
    return 0;
  if (all && carried (generation, parity, data & usable))
    from = carried (generation, parity, data & usable);
  return parity &
    ~roles_with (generation, parity,
                 generations_youngest (generation, from, seq));
}
