/* gpuraid: how fast a rebuild and a scrub go: the limit that the user set, and
 * clients first.
 *
 * Both count what they begin here, so that one limit is for both together.  A
 * resync has no limit: until it is done a member that is lost may take data
 * with it.
 *
 * Call all of these with the array lock held.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_PACE_H
#define GPURAID_PACE_H

#include "array/engine/shared.h"

struct pace {
  uint64_t limit;               /* bytes of a member a second; 0: none */
  uint64_t next;                /* ns: the limit lets the next line begin */
  uint64_t client_ops;          /* that had begun when last looked at */
  uint64_t client_until;        /* ns: until then clients are there */
  uint64_t burst_since;         /* ns: the first line of the burst began */
  uint64_t burst_len;           /* bytes of a member, begun in it */
  uint64_t rest_until;          /* ns: the next burst, if clients are there */
};

/* limit: bytes of a member a second; 0 for none. */
extern void pace_set (struct array *a, uint64_t limit);

/* May a line begin?  If not, it may in a later turn; a tick is needed. */
extern bool pace_may_begin (struct array *a);

/* It begins, and ends; in_flight: how many are left of its pass. */
extern void pace_begun (struct array *a);
extern void pace_ended (struct array *a, unsigned in_flight);

#endif
