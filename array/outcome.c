/* gpuraid: how changes of the members ended, for wait and status.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdio.h>

#include "array/outcome.h"
#include "array/seat.h"

void
outcome_failed (struct array *a, const struct seat *s, const char *why)
{
  struct failed_change *o = &a->outcome;
  char name[SEAT_NAME_LEN];

  o->nr++;
  o->slot = s->slot;
  o->when = loop_now (a->loop);
  snprintf (o->text, sizeof o->text, "%.150s: not rebuilt: %.80s",
            seat_name (s, name), why);
}

void
outcome_good (struct array *a, const struct seat *s)
{
  if (a->outcome.slot == s->slot)
    a->outcome.text[0] = '\0';
}

uint64_t
outcome_mark (const struct array *a)
{
  return a->outcome.nr_told;
}

const char *
outcome_take (struct array *a, uint64_t since)
{
  struct failed_change *o = &a->outcome;

  o->nr_told = o->nr;
  return o->nr > since && o->text[0] ? o->text : NULL;
}
