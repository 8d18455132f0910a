/* gpuraid: how changes of the members ended, for wait and status.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdio.h>

#include "array/health/outcome.h"
#include "array/seats/seat.h"

static const char *
note (struct array *a, unsigned slot, const char *name, const char *why)
{
  struct failed_change *f = &a->outcome.slot[slot];

  f->nr = ++a->outcome.nr;
  f->when = engine_now (a);
  snprintf (f->text, sizeof f->text, "%.150s: not rebuilt: %.80s", name, why);
  return f->text;
}

const char *
outcome_failed (struct array *a, const struct seat *s, const char *why)
{
  char name[SEAT_NAME_LEN];

  return note (a, s->slot, seat_name (s, name), why);
}

const char *
outcome_dropped (struct array *a, unsigned slot)
{
  char name[SEAT_NAME_LEN];

  snprintf (name, sizeof name, "slot %u", slot);
  return note (a, slot, name, "the new member was not found, or has failed");
}

void
outcome_good (struct array *a, const struct seat *s)
{
  a->outcome.slot[s->slot].text[0] = '\0';
}

void
outcome_forget (struct array *a, unsigned slot)
{
  a->outcome.slot[slot].text[0] = '\0';
}

const struct failed_change *
outcome_last (const struct array *a)
{
  const struct failed_change *last = NULL;

  for (unsigned i = 0; i < MAX_SLOTS; i++) {
    const struct failed_change *f = &a->outcome.slot[i];

    if (f->text[0] && (last == NULL || f->nr > last->nr))
      last = f;
  }
  return last;
}

uint64_t
outcome_mark (const struct array *a)
{
  return a->outcome.nr_told;
}

const char *
outcome_take (struct array *a, uint64_t since)
{
  const struct failed_change *first = NULL;

  for (unsigned i = 0; i < MAX_SLOTS; i++) {
    const struct failed_change *f = &a->outcome.slot[i];

    if (f->text[0] && f->nr > since && (first == NULL || f->nr < first->nr))
      first = f;
  }
  a->outcome.nr_told = MAX (a->outcome.nr_told, first ? first->nr :
                            a->outcome.nr);
  return first ? first->text : NULL;
}
