/* gpuraid: requests that wait until data is on the members.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdlib.h>

#include "array/cache/cache.h"
#include "array/cache/ticket.h"
#include "array/ops/ops.h"
#include "array/request/request.h"
#include "common/plant.h"

struct ticket {
  struct list link;
  struct request *r;
  uint16_t blocks;
};

void
ticket_add (struct list *tickets, struct request *r, uint16_t blocks)
{
  struct ticket *t = malloc (sizeof *t);

  if (t == NULL) {
    r->ticket_error = ENOMEM;
    return;
  }
  t->r = r;
  t->blocks = blocks;
  r->pending++;
  list_append (tickets, &t->link);
}

void
tickets_take (struct array *a, struct request *r)
{
  op_add_tickets (a, r);
  list_for_each (l, &a->dirty) {
    struct line *line = list_item (l, struct line, link);

    ticket_add (&line->tickets, r, ALL_BLOCKS);
    line->want_out = true;
    if (list_empty (&line->out_link))
      line_out_now (a, line);
  }
}

static void
ticket_end (struct array *a, struct ticket *t, int error)
{
  if (error)
    t->r->ticket_error = error;
  if (--t->r->pending == 0)
    list_move (&a->engine.ready, &t->r->waiter.link);
  free (t);
}

void
tickets_end (struct array *a, struct list *tickets, int error,
             uint16_t blocks)
{
  struct list *l;

  while ((l = list_pop (tickets)) != NULL) {
    struct ticket *t = list_item (l, struct ticket, link);

    ticket_end (a, t, t->blocks & blocks ? error : 0);
  }
}

void
tickets_no_space (struct array *a, struct list *tickets)
{
  list_for_each (l, tickets) {
    struct ticket *t = list_item (l, struct ticket, link);

    if (t->r->flags & ARRAY_WAIT && !a->waits_ended &&
        !PLANTED ("enospc-at-once"))
      continue;
    list_remove (&t->link);
    ticket_end (a, t, ENOSPC);
  }
}
