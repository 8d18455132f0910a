/* gpuraid: gpuraid examine of several members: do they open together, and why
 * not?
 *
 * Decided as the server does it, from the superblocks alone.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/offline/examine.h"
#include "cli/show/render.h"
#include "cli/show/text.h"
#include "common/cleanup.h"
#include "common/log.h"

static const char *const state_text[] = {
  [FOUND_CURRENT] = "current",
  [FOUND_STALE] = "out of date",
  [FOUND_FAILED] = "failed before, out of date",
  [FOUND_TARGET] = "being rebuilt",
  [FOUND_SPARE] = "spare",
  [FOUND_UNLISTED] = "replaced since",
};

/* The epoch of the newest record that the member was proposed, or 0. */
static uint64_t
proposed (const struct found *f)
{
  uint64_t epoch = 0;

  for (enum sb_copy c = 0; c < SB_NR_COPIES; c++)
    if (f->result[c] == SB_OK && f->sb[c].record.self.ballot.epoch > epoch)
      epoch = f->sb[c].record.self.ballot.epoch;
  return epoch;
}

/* The records of one member; with its state, if it was judged. */
static void
show_member (const struct found *f)
{
  const struct superblock *accepted = found_accepted (f);

  printf ("  ");
  text_clean (stdout, f->name);
  if (accepted == NULL)
    printf ("  accepted no record");
  else
    printf ("  accepted epoch %" PRIu64, accepted->record.self.ballot.epoch);
  if (accepted == NULL ||
      proposed (f) > accepted->record.self.ballot.epoch)
    printf (", was proposed epoch %" PRIu64, proposed (f));
  if (f->state != FOUND_REFUSED)
    printf (", %s", state_text[f->state]);
  printf ("\n");
}

/* Each line of text, which is changed. */
static void
show_lines (char *text)
{
  char *rest = NULL;

  for (char *line = strtok_r (text, "\n", &rest); line != NULL;
       line = strtok_r (NULL, "\n", &rest)) {
    printf ("  ");
    text_clean (stdout, line);
    printf ("\n");
  }
}

int
examine_array (struct examined_array *x)
{
  CLEANUP_FREE struct membership_decision *d = malloc (sizeof *d);

  if (d == NULL) {
    log_error ("malloc: %m");
    return -1;
  }
  membership_open (x->found, x->nr, DEGRADED_ALLOW, d);
  printf ("together:\n");
  for (size_t i = 0; i < x->nr; i++)
    show_member (&x->found[i]);
  if (d->sb.record.self.ballot.epoch)
    printf ("  the newest record is of epoch %" PRIu64 "\n",
            d->sb.record.self.ballot.epoch);
  if (d->open) {
    printf ("  they open%s\n", d->degraded ? ", degraded" : "");
    show_lines (d->notice);
    return 0;
  }
  printf ("  they do not open:\n");
  show_lines (d->why);
  membership_open (x->found, x->nr, DEGRADED_FORCE, d);
  if (d->open)
    show_lines (d->notice);
  else
    printf ("  degraded=force would not open them either\n");
  return 0;
}
