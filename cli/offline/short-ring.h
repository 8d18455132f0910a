/* gpuraid: what a short journal costs, for a person.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_OFFLINE_SHORT_RING_H
#define GPURAID_OFFLINE_SHORT_RING_H

#include <stdio.h>

#include "cli/cli.h"
#include "raidmap/journal.h"

static inline void
show_short_ring (const struct member_layout *l)
{
  char has[CLI_SIZE_LEN], good[CLI_SIZE_LEN];

  if (journal_ring_is_short (l))
    printf ("  short       journal of %s: overwriting in large writes may take "
            "3 times as\n              long as with %s, and it can't be "
            "changed later\n", cli_size (l->ring_len, has),
            cli_size (JOURNAL_GOOD_RING_LEN, good));
}

#endif
