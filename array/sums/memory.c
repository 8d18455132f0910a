/* gpuraid: the memory of the checksum table: how much it is, and where a page
 * comes from: a new one, or one that nothing uses.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>
#include <string.h>

#include "array/cache/cache.h"
#include "array/io/flush.h"
#include "array/sums/internal.h"

static size_t
page_len (unsigned n)
{
  return sizeof (struct sums_page) + n * 2 * sizeof (uint64_t) +
    n * limits.table_page_entries * sizeof (struct table_entry);
}

uint64_t
sums_memory (const struct geometry *g, uint64_t cache_len)
{
  return MAX (cache_len / 8,
              limits.sums_min_pages * page_len (g->k + g->m));
}

uint64_t
sums_share (const struct superblock *sb, uint64_t cache_len)
{
  const uint64_t least = sums_memory (&sb->g, 0);

  return sb->l.table_len == 0 ? 0 :
    MAX (least, MIN (sums_memory (&sb->g, cache_len),
                     cache_len - cache_min_len (&sb->g) - least));
}

static void
flushed (struct array *a, struct waiter *w)
{
  engine_run_waiters (a, &a->sums->waiters);
}

int
sums_init (struct array *a, const struct config *c, const struct assembly *as)
{
  const uint64_t len = sums_share (&a->sb, c->cache_len);
  struct sums *s;

  if (a->sb.l.table_len == 0)
    return 0;
  a->sums = s = calloc (1, sizeof *s);
  if (s == NULL)
    return -1;
  s->max = MIN (MAX (len / page_len (a->n), limits.sums_min_pages), 1u << 24);
  s->nr_buckets = 64;
  while (s->nr_buckets < s->max)
    s->nr_buckets *= 2;
  s->bucket = calloc (s->nr_buckets, sizeof *s->bucket);
  list_init (&s->unused);
  list_init (&s->dirty);
  list_init (&s->storing);
  list_init (&s->doubtful);
  list_init (&s->waiters);
  list_init (&s->target_waiters);
  list_init (&s->hole.waiters);
  list_init (&s->behind.waiters);
  list_init (&s->flush_waiter.link);
  s->may_store = a->mark_open;
  s->flush_waiter.run = flushed;
  for (unsigned slot = 0; slot < MAX_SLOTS; slot++)
    s->seed[slot] = table_seed (&a->sb.array_uuid, slot);
  return s->bucket ? 0 : -1;
}

void
sums_free (struct array *a)
{
  struct sums *s = a->sums;

  if (s == NULL)
    return;
  for (unsigned b = 0; s->bucket && b < s->nr_buckets; b++)
    for (struct sums_page *p = s->bucket[b], *next; p; p = next) {
      next = p->hash_next;
      sums_page_free (p);
    }
  free (s->bucket);
  free (s);
  a->sums = NULL;
}

struct sums_page *
sums_new_page (const struct array *a)
{
  struct sums_page *p = malloc (page_len (a->n));

  if (p == NULL)
    return NULL;
  p->open = 0;
  p->nr_first = p->nr_slots = a->n;
  p->counter = (uint64_t *) (p + 1);
  p->seq = p->counter + a->n;
  p->entry = (struct table_entry *) (p->seq + a->n);
  return p;
}

void
sums_clear_slots (struct sums_page *p)
{
  memset (p->counter, 0, p->nr_slots * sizeof *p->counter);
  memset (p->seq, 0, p->nr_slots * sizeof *p->seq);
  for (unsigned slot = 0; slot < p->nr_slots; slot++)
    sums_set_all (p, slot, (struct table_entry) { 0, 0 });
}

/* An unused page is taken when its last store is durable: before, the place of
 * the next one would not be known.  A failed array stores nothing more, and no
 * flush of it counts.
 */
struct sums_page *
sums_take_unused (struct array *a)
{
  struct sums *s = a->sums;
  struct sums_page *p, *_Atomic *q;

  if (list_empty (&s->unused))
    return NULL;
  p = list_item (s->unused.next, struct sums_page, link);
  if (p->stored_gen && a->flushed_gen <= p->stored_gen && !a->failed) {
    if (list_empty (&s->flush_waiter.link))
      flush_members (a, &s->flush_waiter);
    return NULL;
  }
  sums_page_close (p);
  for (q = sums_bucket (s, p->no); *q != p; q = &(*q)->hash_next)
    ;
  *q = p->hash_next;
  list_remove (&p->link);
  list_remove (&p->doubtful_link);
  return p;
}
