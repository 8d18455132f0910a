/* gpuraid: which parity of a row is old, by the generations of its blocks.
 *
 * Pure functions; any thread.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_PLAN_GENERATIONS_H
#define GPURAID_PLAN_GENERATIONS_H

#include <stdint.h>

/* In a good row all parity has one generation.  Where it differs, one is the
 * row's, and the roles of parity with another are returned: they are erasures.
 *
 * If all data is known, of those generations that some data has, if any: then
 * the youngest, by its age at the sequence number seq (modulo 2^32).  Otherwise
 * the youngest of all: what the newest transaction wrote may be the data that
 * is not there, so an older generation may be all that the rest has.
 *
 * generation: by role, k of data and then parity; only those of usable count,
 * which must not have zeroes or lost blocks.  A block that was not written for
 * 2^32 transactions looks young, so the ages of data and parity are never
 * compared.
 */
extern uint64_t generations_old_parity (const uint32_t *generation, unsigned k,
                                        uint64_t usable, uint32_t seq);

/* The youngest of some roles, of which there is one, at seq. */
extern uint32_t generations_youngest (const uint32_t *generation,
                                      uint64_t roles, uint32_t seq);

#endif
