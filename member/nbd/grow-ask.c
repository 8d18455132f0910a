/* gpuraid: ask whether an NBD export has become larger.
 *
 * In any thread, as long as it takes; grow.c has what the member's thread does
 * with the answer.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <string.h>
#include <time.h>

#include "common/log.h"
#include "member/nbd/nbd.h"

/* It is not waited for longer than that. */
#define GROW_NS UINT64_C (10000000000)

/* What another connection says: false if that is not more than before.  The
 * blocks at the ends are others then.
 */
static bool
ask (const struct nbd_member *n, struct nbd_larger *l)
{
  char why[NBD_WHY_LEN];
  struct nbd_handle *h = nbd_conn_open (n->member.path, why);
  struct nbd_server s;
  bool more;

  if (h == NULL) {
    log_debug ("%s: its size can't be asked: %s", n->member.path, why);
    return false;
  }
  nbd_conn_ask (h, &s);
  l->size = s.size;
  more = s.size >= n->size + NBD_NR_MARKS * NBD_MARK_LEN;
  if (more)
    nbd_marks_init (&l->marks, s.size);
  for (unsigned i = 0; i < NBD_NR_MARKS && more; i++)
    more = nbd_pread (h, l->marks.flushed[i], NBD_MARK_LEN, l->marks.off[i],
                      0) == 0;
  nbd_conn_close (h);
  return more;
}

void
nbd_grow_ask (struct nbd_member *n)
{
  const struct timespec pause = { .tv_nsec = 20000000 };
  const uint64_t end = running_now () + GROW_NS;
  struct nbd_larger l;

  memset (&l, 0, sizeof l);
  if (n->member.readonly || atomic_load (&n->out) ||
      atomic_load (&n->member.away) || !ask (n, &l))
    return;
  pthread_mutex_lock (&n->lock);
  n->larger = l;
  atomic_store (&n->grows, true);
  pthread_mutex_unlock (&n->lock);
  if (nbd_run_wake (n) != 0)
    return;
  while (atomic_load (&n->grows) && !atomic_load (&n->out) &&
         running_now () < end)
    nanosleep (&pause, NULL);
}
