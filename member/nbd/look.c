/* gpuraid: is an NBD export still the one that this server writes?
 *
 * The blocks of its superblocks are read after each connect, every few seconds,
 * and before each write to one of them.  Two servers must not both write: a
 * superblock is written only after a look that began when it was to be written,
 * and anything else only if the last good look is not old.  That also goes for
 * the rest of a request that was sent in part.  To send a look a connection is
 * kept free of changes if there are several; else it is dropped then.
 *
 * How old it is: by a clock that also goes while we don't run, or the machine
 * sleeps, since another server may have taken over then.
 *
 * A read beside a write of the same block may get half of each, down to the
 * byte: servers promise no more.  So what is read while a change of ours is
 * being made proves nothing, and is read again; but not for ever, since the
 * answer to a change may be lost.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdio.h>
#include <stdlib.h>

#include "common/plant.h"
#include "member/io.h"
#include "member/nbd/nbd.h"

/* So often, at least so long after one another. */
#define MAX_TORN 20u
#define TORN_NS UINT64_C (50000000)

_Atomic uint64_t nbd_look_ns = UINT64_C (3000000000);

/* Is a change of a mark among them that the server may be making?  In the queue
 * are such whose connection was lost.
 */
static bool
is_open (const struct nbd_member *n, const struct list *requests)
{
  list_for_each (l, (struct list *) requests) {
    const struct nbd_req *r = list_item (l, struct nbd_req, link);

    if (r->sent && io_changes (r->kind) &&
        nbd_marks_touched (&n->marks, r->off, r->len))
      return true;
  }
  return false;
}

void
nbd_look_begin (struct nbd_member *n)
{
  n->look_open = is_open (n, &n->active) || is_open (n, &n->queue);
  n->look_torn = false;
  n->look_gen = n->marks.gen;
  n->look_good = true;
  n->look_began = running_boot_time ();
  n->look_at = n->look_began + nbd_look_ns;
  for (unsigned i = 0; i < NBD_NR_MARKS; i++) {
    struct nbd_req *r = nbd_req_new (n, NBD_FOR_LOOK, IO_READ, n->marks.off[i],
                                     NBD_MARK_LEN);

    if (r == NULL || (r->data = malloc (NBD_MARK_LEN)) == NULL) {
      if (r)
        nbd_req_free (r);
      snprintf (n->why, sizeof n->why, "out of memory");
      n->lost = true;
      return;
    }
    r->own_data = true;
    r->mark = i;
    n->looks++;
    nbd_req_issue (r, 0);
  }
}

static unsigned
matches (struct nbd_member *n, const struct nbd_req *look,
         const struct list *changes)
{
  unsigned ok = 0;

  list_for_each (l, (struct list *) changes) {
    const struct nbd_req *r = list_item (l, struct nbd_req, link);

    if (io_changes (r->kind) && r->sent && (r->data || r->kind != IO_WRITE))
      ok |= nbd_marks_match (&n->marks, look->mark, look->data, r);
  }
  return ok;
}

/* Each sector is as it was flushed, or as a later change left it. */
static bool
is_ours (struct nbd_member *n, const struct nbd_req *look)
{
  return (nbd_marks_same (&n->marks, look->mark, look->data) |
          matches (n, look, &n->log.changes) | matches (n, look, &n->replay) |
          matches (n, look, &n->active) | matches (n, look, &n->done) |
          matches (n, look, &n->queue)) == NBD_MARK_ALL;
}

bool
nbd_look_answer (struct nbd_member *n, struct nbd_req *r)
{
  const bool changed = n->look_gen != n->marks.gen;
  const bool ours = r->error == 0 &&
    (is_ours (n, r) || PLANTED ("nbd-any-export"));
  const bool torn = r->error == 0 && !ours && n->look_open &&
    n->nr_torn < MAX_TORN && !PLANTED ("nbd-look-torn");

  nbd_req_free (r);
  n->looks--;
  n->look_good &= ours && !changed;
  n->look_torn |= torn;
  if (n->looks == 0 && n->look_good) {
    n->looked = n->look_began;
    n->nr_looked++;
    n->nr_torn = 0;
  }
  else if (n->looks == 0 && n->look_torn) {
    n->nr_torn++;
    n->look_at = running_boot_time () + TORN_NS;
  }
  return ours || changed || torn;
}

bool
nbd_look_allows (struct nbd_member *n, struct nbd_req *r)
{
  if (!io_changes (r->kind))
    return true;
  if (nbd_look_is_old (n))
    return false;
  if (!nbd_marks_touched (&n->marks, r->off, r->len))
    return true;
  if (r->mark == 0)
    r->mark = n->nr_looked + (n->looks ? 2 : 1);
  if (n->nr_looked >= r->mark)
    return true;
  n->look_at = running_boot_time ();
  return false;
}

bool
nbd_look_holds (const struct nbd_member *n, unsigned c)
{
  return nbd_conn_is_full (n->conn[c]) && nbd_look_is_old (n);
}

bool
nbd_look_is_too_late (const struct nbd_member *n)
{
  return n->nr_conns > 0 && nbd_req_conn (n, IO_READ) == n->nr_conns &&
    nbd_look_is_old (n);
}
