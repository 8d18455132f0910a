/* gpuraid: waits until data is on the members.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>

#include "array/cache/ticket.h"
#include "common/plant.h"

struct ticket {
  struct list link;
  struct completion *c;
  uint16_t blocks;
  bool waits;
};

void
tickets_init (struct array *a)
{
  pool_init (&a->ticket_pool, sizeof (struct ticket), 0);
}

void
ticket_add (struct array *a, struct list *tickets, struct completion *c,
            uint16_t blocks, bool waits)
{
  struct ticket *t = pool_get (&a->ticket_pool);

  if (t == NULL) {
    c->error = ENOMEM;
    return;
  }
  t->c = c;
  t->blocks = blocks;
  t->waits = waits;
  c->pending++;
  list_append (tickets, &t->link);
}

static void
ticket_end (struct array *a, struct ticket *t, int error)
{
  if (error)
    t->c->error = error;
  completion_end (a, t->c);
  pool_put (&a->ticket_pool, t);
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

    if (t->waits && !a->waits_ended && !PLANTED ("enospc-at-once"))
      continue;
    list_remove (&t->link);
    ticket_end (a, t, ENOSPC);
  }
}
