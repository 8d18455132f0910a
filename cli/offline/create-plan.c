/* gpuraid: what gpuraid create --dry-run prints.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <inttypes.h>
#include <stdio.h>

#include "array/plan/code.h"
#include "cli/cli.h"
#include "cli/offline/create-plan.h"
#include "cli/offline/short-ring.h"

static unsigned
nr_slots (const struct create_plan *p)
{
  return p->g.k + p->g.m;
}

/* Of all members. */
static uint64_t
total_len (const struct create_plan *p)
{
  uint64_t n = 0;

  for (unsigned i = 0; i < nr_slots (p); i++)
    n += p->member[i].size;
  return n;
}

static void
show_part (const struct create_plan *p, const char *what, uint64_t len)
{
  char all[CLI_SIZE_LEN], one[CLI_SIZE_LEN];

  if (len == 0)
    printf ("  %-10s  none\n", what);
  else
    printf ("  %-10s  %s: %s of each member\n", what,
            cli_size (nr_slots (p) * len, all), cli_size (len, one));
}

/* An array that is opened must have more than k members if m >= k: see
 * docs/membership.md.
 */
static void
show_may_fail (const struct create_plan *p)
{
  printf ("  may fail    any %u member%s", p->g.m, p->g.m == 1 ? "" : "s");
  if (p->g.m >= p->g.k)
    printf (" while it runs; opening it with %u missing needs degraded=force",
            p->g.m);
  printf ("\n");
}

/* ---- what is written ---------------------------------------------------- */

static void
show_times (double from, double to, const char *when)
{
  printf ("              %.4g", from);
  if (to > from)
    printf (" to %.4g", to);
  printf (" when %s\n", when);
}

/* With a journal all is written twice, except the first write of a row with
 * checksums.  A single block also makes m blocks of parity, and on each of
 * these members a header of a record, if no other write shares it, and a page
 * of the checksum table, if no other entry does.
 */
static void
show_writes (const struct create_plan *p)
{
  const bool journal = p->c.consistency == CONSISTENCY_JOURNAL;
  const bool sums = p->c.checksum != CHECKSUM_NONE;
  const unsigned times = journal ? 2 : 1, blocks = 1 + p->g.m;
  const double stripe = (double) nr_slots (p) / p->g.k;

  printf ("  written     to members, for each byte written to the array, "
          "about\n");
  if (journal && sums)
    show_times (stripe, 0, "whole stripes are written the first time");
  show_times (times * stripe, 0, journal && sums ?
              "whole stripes are written again" :
              "whole stripes are written");
  show_times (times * blocks, (times + journal + sums) * blocks,
              "single blocks of 4 KiB are written again");
}

void
create_plan_show (const struct create_plan *p)
{
  const struct config *c = &p->c;
  const uint64_t total = total_len (p);
  char size[CLI_SIZE_LEN], all[CLI_SIZE_LEN];

  printf ("%s%s%u+%u, chunk %s, code %s", c->label, c->label[0] ? ": " : "",
          p->g.k, p->g.m, cli_size (p->g.chunk, size), code_name (c->code));
  if (c->code != CODE_RS)
    printf (" w %u", c->w);
  printf (", consistency %s, checksum %s\n",
          c->consistency == CONSISTENCY_JOURNAL ? "journal" : "none",
          c->checksum == CHECKSUM_NONE ? "none" : "crc32c");
  printf ("  size        %s (%" PRIu64 " bytes)\n",
          cli_size (p->g.size, size), p->g.size);
  printf ("  members     %u, with %s in all: %.1f %% of it for data\n",
          nr_slots (p), cli_size (total, all), 100.0 * p->g.size / total);
  show_may_fail (p);
  printf ("  parity      %s\n", cli_size (p->g.m * p->l.data_len, size));
  show_part (p, "journal", p->l.ring_len);
  show_part (p, "checksums", p->l.table_len);
  show_short_ring (&p->l);
  show_writes (p);
}
