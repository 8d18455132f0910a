/* gpuraid: an NBD export that has become larger.
 *
 * A server says a size once to each connection.  So one more is made to ask it,
 * and if there is more the others are closed, and made again as after a loss.
 * What tells this export from another is also at its end: the blocks there are
 * read through the connection that asked, and count from when the size does.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/log.h"
#include "member/nbd/nbd.h"

/* A look that is under way reads the old end. */
void
nbd_grow_step (struct nbd_member *n)
{
  if (!atomic_load (&n->grows) || n->looks > 0)
    return;
  pthread_mutex_lock (&n->lock);
  if (n->server.size >= n->larger.size) {
    for (unsigned i = NBD_NR_MARKS / 2; i < NBD_NR_MARKS; i++) {
      n->marks.off[i] = n->larger.marks.off[i];
      memcpy (n->marks.flushed[i], n->larger.marks.flushed[i], NBD_MARK_LEN);
    }
    n->marks.gen++;
    n->size = n->larger.size;
    log_debug ("%s: %" PRIu64 " bytes now", n->member.path, n->larger.size);
  }
  else if (!n->larger.tried) {
    n->larger.tried = true;
    snprintf (n->why, sizeof n->why, "it is made again, as the export is "
              "larger now");
    n->lost = true;
  }
  if (!n->lost)
    atomic_store (&n->grows, false);
  pthread_mutex_unlock (&n->lock);
}
