/* gpuraid: how fast a long work goes, from the last ten seconds of it.
 *
 * Pure.  Not from its beginning: clients come and go, and parts that were never
 * written take no time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_ENGINE_RATE_H
#define GPURAID_ENGINE_RATE_H

#include <stdint.h>

#include "array/array.h"

#define RATE_SAMPLES 10u

/* Samples are at least a second apart; all zeroes is none. */
struct rate {
  struct {
    uint64_t at;                /* ns */
    uint64_t pos;               /* bytes */
  } sample[RATE_SAMPLES];       /* a ring */
  unsigned nr, next;
};

/* The work is at pos.  Call it as it goes on; if pos is less than before, or
 * after rate_reset, the rate begins anew there.
 */
extern void rate_note (struct rate *r, uint64_t now, uint64_t pos);
extern void rate_reset (struct rate *r);

/* Bytes a second until now, when it is at pos; 0 if unknown. */
extern uint64_t rate_get (const struct rate *r, uint64_t now, uint64_t pos);

/* p->bytes_per_second and, for what is left in bytes, p->eta_seconds. */
extern void rate_fill (const struct rate *r, uint64_t now, uint64_t pos,
                       uint64_t left, struct array_progress *p);

#endif
