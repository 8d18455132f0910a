/* gpuraid: an intrusive doubly linked list.
 *
 * A head is a link that points at itself when the list is empty; an item embeds
 * a link.  No locks: the owner of the list owns its links.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_LIST_H
#define GPURAID_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
  struct list *next, *prev;
};

#define list_item(link, type, field) \
  ((type *) ((char *) (link) - offsetof (type, field)))

static inline void
list_init (struct list *l)
{
  l->next = l->prev = l;
}

static inline bool
list_empty (const struct list *l)
{
  return l->next == l;
}

static inline void
list_append (struct list *head, struct list *l)
{
  l->prev = head->prev;
  l->next = head;
  head->prev->next = l;
  head->prev = l;
}

/* Leaves l pointing at itself, so that removing twice is harmless. */
static inline void
list_remove (struct list *l)
{
  l->prev->next = l->next;
  l->next->prev = l->prev;
  list_init (l);
}

/* From wherever it is to the end of head. */
static inline void
list_move (struct list *head, struct list *l)
{
  list_remove (l);
  list_append (head, l);
}

static inline struct list *
list_pop (struct list *head)
{
  struct list *l = head->next;

  if (l == head)
    return NULL;
  list_remove (l);
  return l;
}

/* Move all of src to the end of dst. */
static inline void
list_splice (struct list *dst, struct list *src)
{
  if (list_empty (src))
    return;
  src->next->prev = dst->prev;
  src->prev->next = dst;
  dst->prev->next = src->next;
  dst->prev = src->prev;
  list_init (src);
}

/* The body may remove l. */
#define list_for_each(l, head)                                  \
  for (struct list *l = (head)->next, *_n_##l = l->next;        \
       l != (head);                                             \
       l = _n_##l, _n_##l = l->next)

#endif
