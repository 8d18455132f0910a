/* gpuraid: the state of the array, as status says it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/health/health.h"
#include "array/health/lost.h"
#include "array/seats/seat.h"

static bool
lacks_space (const struct array *a)
{
  for (unsigned i = 0; i < a->nr_seats; i++)
    if (a->seat[i]->no_space && !a->seat[i]->failing)
      return true;
  return false;
}

static bool
is_stalled (const struct array *a)
{
  for (unsigned i = 0; i < a->nr_seats; i++)
    if (seat_stalled_since (a->seat[i]) && !a->seat[i]->failing)
      return true;
  return false;
}

enum array_state
health (const struct array *a, unsigned *reasons)
{
  *reasons = 0;
  if (a->lost_slots & ~seats_first_slot (a))
    *reasons |= ARRAY_WHY_MEMBERS;
  if (a->nr_unsynced > 0)
    *reasons |= a->writable ? ARRAY_WHY_RESYNC : ARRAY_WHY_RESYNC_PENDING;
  if (lost_any (a))
    *reasons |= ARRAY_WHY_BLOCKS;
  if (lacks_space (a))
    *reasons |= ARRAY_WHY_NO_SPACE;
  if (is_stalled (a))
    *reasons |= ARRAY_WHY_STALLED;
  if (a->nr_wrong > 0)
    *reasons |= ARRAY_WHY_WRONG;
  if (a->failed || nr_good_slots (a) < a->g.k)
    return ARRAY_FAILED;
  return *reasons & ~ARRAY_WHY_WRONG ? ARRAY_DEGRADED : ARRAY_HEALTHY;
}

void
health_note_wrong (struct array *a, uint64_t nr, bool all)
{
  a->nr_wrong = all ? nr : MAX (nr, a->nr_wrong);
}

void
health_notice (const struct array *a)
{
  unsigned nr = 0;

  for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++)
    nr += seat_spare_is_missing (a, dev);
  if (nr > 0)
    log_notice ("%u spare%s not there: name %s among the members, or take %s "
                "out with gpuraid fail", nr, nr == 1 ? " is" : "s are",
                nr == 1 ? "it" : "them", nr == 1 ? "it" : "them");
  if (a->nr_unsynced > 0)
    log_notice ("degraded, resync pending: it was not stopped cleanly, and the "
                "parity of %" PRIu64 " regions of %u bytes is made anew when "
                "it is opened for writing", a->nr_unsynced, a->sb.l.region_len);
  if (lost_any (a))
    log_notice ("degraded, blocks lost: some are listed as lost, and give EIO "
                "until they are written");
}
