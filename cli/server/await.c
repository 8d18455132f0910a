/* gpuraid: wait for the members of an array that is to be started.
 *
 * The superblocks of those that are there list the others.  Those that were in
 * use are waited for, and spares; not those that had failed or were missing
 * already: a disk that has died would delay each start.  Whether the array
 * opens is for its server to decide, which also says what is wrong in its file.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "array/config/config.h"
#include "array/stores/look.h"
#include "cli/server/await.h"
#include "cli/server/names.h"
#include "common/log.h"
#include "common/threads/clock.h"

enum presence { ALL_THERE, SOME_THERE, TOO_FEW };

/* Do the superblocks name one that is not there?  *nr: how many. */
static enum presence
compare (const struct found *found, size_t nr_found,
         const struct membership_decision *d, unsigned *nr)
{
  *nr = 0;
  for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++) {
    const enum device_state state = d->sb.device[dev].state;
    bool there = state == DEVICE_NONE || state == DEVICE_FAILED ||
      state == DEVICE_MISSING;

    for (size_t i = 0; i < nr_found && !there; i++)
      there = found[i].dev == (int) dev && found[i].state != FOUND_REFUSED;
    *nr += !there;
  }
  return *nr ? SOME_THERE : ALL_THERE;
}

static enum presence
look_at_members (const struct config *c, unsigned *nr)
{
  struct found *found = calloc (c->nr_members, sizeof *found);
  struct membership_decision *d = calloc (1, sizeof *d);
  enum presence r = TOO_FEW;
  size_t n = 0;

  if (found && d) {
    for (unsigned i = 0; i < c->nr_members; i++)
      n += look_at (c->member[i], &found[n]) == 0 && found_newest (&found[n]);
    membership_open (found, n, DEGRADED_ALLOW, d);
    if (d->open)
      r = compare (found, n, d, nr);
    else if (n == 0 && c->create != CREATE_NO)
      r = ALL_THERE;
  }
  free (found);
  free (d);
  return r;
}

/* A file that can't be read, or keys that do not fit together, do not get
 * better; a pattern that nothing fits may.
 */
static enum presence
look (const char *name, unsigned *nr)
{
  enum presence r = ALL_THERE;
  struct config c;

  if (names_read_config (name, true, &c)) {
    log_set_sink (log_nowhere);
    r = look_at_members (&c, nr);
    log_set_sink (NULL);
  }
  else if (c.nr_globs && c.nr_members == 0)
    r = TOO_FEW;
  config_free (&c);
  return r;
}

void
await_members (const char *name, unsigned seconds)
{
  const struct timespec pause = { .tv_nsec = 300000000 };
  const uint64_t end = monotonic_ns () + seconds * UINT64_C (1000000000);
  enum presence now, said = ALL_THERE;
  unsigned nr = 0;

  while (monotonic_ns () < end && (now = look (name, &nr)) != ALL_THERE) {
    if (now == SOME_THERE && now != said)
      log_notice ("%s: waiting for %u member%s, %u s at most", name, nr,
                  nr == 1 ? "" : "s", seconds);
    if (now == TOO_FEW && now != said)
      log_notice ("%s: waiting for members, %u s at most", name, seconds);
    said = now;
    nanosleep (&pause, NULL);
  }
}
