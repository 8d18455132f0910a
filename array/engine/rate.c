/* gpuraid: how fast a long work goes, from the last ten seconds of it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <string.h>

#include "array/engine/rate.h"
#include "common/bits.h"

#define SAMPLE_NS UINT64_C (1000000000)

void
rate_reset (struct rate *r)
{
  memset (r, 0, sizeof *r);
}

void
rate_note (struct rate *r, uint64_t now, uint64_t pos)
{
  const unsigned last = (r->next + RATE_SAMPLES - 1) % RATE_SAMPLES;

  if (r->nr > 0 && pos < r->sample[last].pos)
    rate_reset (r);
  else if (r->nr > 0 && now - r->sample[last].at < SAMPLE_NS)
    return;
  r->sample[r->next].at = now;
  r->sample[r->next].pos = pos;
  r->next = (r->next + 1) % RATE_SAMPLES;
  r->nr = MIN (r->nr + 1, RATE_SAMPLES);
}

uint64_t
rate_get (const struct rate *r, uint64_t now, uint64_t pos)
{
  const unsigned oldest = (r->next + RATE_SAMPLES - r->nr) % RATE_SAMPLES;

  if (r->nr == 0 || now <= r->sample[oldest].at ||
      pos < r->sample[oldest].pos)
    return 0;
  return (uint64_t) ((double) (pos - r->sample[oldest].pos) * 1e9 /
                     (now - r->sample[oldest].at));
}

void
rate_fill (const struct rate *r, uint64_t now, uint64_t pos, uint64_t left,
           struct array_progress *p)
{
  p->bytes_per_second = rate_get (r, now, pos);
  p->eta_seconds = p->bytes_per_second ? left / p->bytes_per_second : 0;
}
