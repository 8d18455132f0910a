/* gpuraid: cells and lines, the memory of the array.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "array/cache/cache.h"
#include "array/cache/ticket.h"
#include "array/engine/place.h"
#include "common/plant.h"

/* The old and new content of every role, at most: a write that decodes reads
 * k cells and makes m, one that updates reads k + m and makes m.
 */
static unsigned
cells_per_op (const struct geometry *g)
{
  return g->k + 2 * g->m;
}

static size_t
cell_len_of (const struct geometry *g)
{
  return MIN (g->chunk, limits.cell_max_len);
}

/* Three operations (a write-out, a read, a rebuild), and two lines. */
uint64_t
cache_min_len (const struct geometry *g)
{
  return (uint64_t) cell_len_of (g) * (3 * cells_per_op (g) + 2 * g->k);
}

/* With this many data roles. */
static size_t
line_size (unsigned k)
{
  return sizeof (struct line) + k * sizeof (struct line_cell);
}

/* What operations may take of it. */
static void
share_cells (struct array *a)
{
  a->op_cells = cells_per_op (&a->g);
  a->max_credit = MAX (3 * a->op_cells, a->nr_cells / 2);
  a->max_held = a->nr_cells - a->max_credit;
}

bool
cache_fits (const struct array *a, const struct geometry *g)
{
  return (uint64_t) a->nr_cells * a->cell_len >= cache_min_len (g);
}

void
cache_size (struct array *a, uint64_t len)
{
  a->cell_len = cell_len_of (&a->g);
  a->cell_blocks = a->cell_len / BLOCK_LEN;
  a->nr_bands = a->g.chunk / a->cell_len;
  a->nr_cells = MIN (len / a->cell_len, 1u << 24);
  share_cells (a);
  a->arena_len = round_up ((uint64_t) a->nr_cells * a->cell_len, 2 * MIB);
  a->nr_buckets = 64;
  while (a->nr_buckets < a->nr_cells)
    a->nr_buckets *= 2;
  a->line_roles = a->g.k;
  pool_init (&a->line_pool, line_size (a->g.k + LINE_MAX_ADDED),
             line_size (a->g.k));
  pool_init (&a->part_pool, sizeof (struct cell), sizeof (struct cell));
  tickets_init (a);
  list_init (&a->dirty);
  list_init (&a->clean);
  list_init (&a->out);
  list_init (&a->cell_waiters);
}

/* The first cells are used first, and reused: memory that is not needed is not
 * touched.
 */
void
cells_sort_free (struct array *a)
{
  for (unsigned i = 0; i < a->nr_cells; i++)
    a->free_cell[a->nr_cells - 1 - i] = &a->cells[i];
}

int
cache_start (struct array *a)
{
  uint8_t *p;

  p = mmap (NULL, a->arena_len, PROT_READ|PROT_WRITE,
            MAP_PRIVATE|MAP_ANONYMOUS|MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED)
    return errno;
  a->arena = p;
  /* Best effort: fewer TLB misses. */
  (void) madvise (p, a->arena_len, MADV_HUGEPAGE);

  a->cells = calloc (a->nr_cells, sizeof *a->cells);
  a->free_cell = calloc (a->nr_cells, sizeof *a->free_cell);
  a->bucket = calloc (a->nr_buckets, sizeof *a->bucket);
  if (a->cells == NULL || a->free_cell == NULL || a->bucket == NULL)
    return ENOMEM;
  for (unsigned i = 0; i < a->nr_cells; i++)
    a->cells[i].data = p + (size_t) i * a->cell_len;
  cells_sort_free (a);
  a->nr_free = a->nr_cells;
  return 0;
}

static void
cache_free (struct array *a)
{
  if (a->bucket)
    for (unsigned b = 0; b < a->nr_buckets; b++)
      for (struct line *line = a->bucket[b], *next; line; line = next) {
        next = line->hash_next;
        free (line);
      }
  pool_end (&a->line_pool);
  pool_end (&a->part_pool);
  pool_end (&a->ticket_pool);
  free (a->bucket);
  free (a->free_cell);
  free (a->cells);
  if (a->arena)
    munmap (a->arena, a->arena_len);
}

/* ---- cells ----------------------------------------------------------- */

static bool
put (struct array *a, struct cell *c)
{
  assert (c->refs > 0);
  if (--c->refs > 0)
    return false;
  if (c->of) {
    struct cell *of = c->of;

    pool_put (&a->part_pool, c);
    return put (a, of);
  }
  a->free_cell[a->nr_free++] = c;
  return true;
}

void
cell_put (struct array *a, struct cell *c)
{
  if (put (a, c))
    engine_run_waiters (a, &a->cell_waiters);
}

static void
forget_content (struct array *a, struct line *line, struct line_cell *lc)
{
  lc->c = NULL;
  lc->valid = lc->dirty = 0;
  line->nr_cells--;
  if (!line->is_clean)
    a->nr_held--;
}

/* Drop the content of a clean line.  No waiter is woken: it could have taken
 * these cells when they became clean, and two waiters that need something else
 * as well would take them from each other forever.
 */
static void
drop_all (struct array *a, struct line *line)
{
  for (unsigned r = 0; r < a->g.k; r++)
    if (line->cell[r].c) {
      put (a, line->cell[r].c);
      forget_content (a, line, &line->cell[r]);
    }
}

/* Take back the cells of the clean line that was not used for longest. */
static void
drop_oldest (struct array *a)
{
  struct line *line = list_item (a->clean.next, struct line, link);

  drop_all (a, line);
  line_settle (a, line);
}

void
lines_drop_clean (struct array *a, unsigned nr)
{
  for (unsigned i = 0; i < nr && !list_empty (&a->clean); i++)
    drop_oldest (a);
}

/* Take cells back from clean lines until nr are free. */
static bool
make_free (struct array *a, unsigned nr)
{
  if (a->idle.giving && !PLANTED ("cells-taken-meanwhile"))
    return false;
  while (a->nr_free < nr) {
    if (list_empty (&a->clean))
      return false;
    drop_oldest (a);
  }
  return true;
}

static struct cell *
pop_cell (struct array *a)
{
  struct cell *c = a->free_cell[--a->nr_free];

  a->idle.used = a->idle.touched = true;
  c->refs = 1;
  assert (c->frozen == 0);
  return c;
}

static unsigned
parts_in_cell (const struct array *a, const struct cell_parts *p)
{
  return p->nr == 0 ? 1 : a->cell_blocks / p->nr;
}

unsigned
cell_parts_init (const struct array *a, struct cell_parts *p, unsigned b0,
                 unsigned nr)
{
  *p = (struct cell_parts) { .b0 = b0, .nr = nr };
  if (parts_in_cell (a, p) == 1)
    p->nr = 0;
  return div_round_up (a->op_cells, parts_in_cell (a, p));
}

void
cell_parts_end (struct array *a, struct cell_parts *p)
{
  if (p->of)
    cell_put (a, p->of);
  p->of = NULL;
}

/* The next part.  The data of all begins so that each has its blocks where a
 * whole cell has them.
 */
static struct cell *
next_part (struct array *a, struct cell_parts *p)
{
  ptrdiff_t block;
  struct cell *c;

  if (p->left == 0) {
    cell_parts_end (a, p);
    p->of = pop_cell (a);
    p->left = parts_in_cell (a, p);
  }
  c = pool_get (&a->part_pool);
  if (c == NULL)
    abort ();           /* as in array/io/xfer.c */
  if (p->left > 1 || !PLANTED ("part-given-twice"))
    p->left--;
  c->of = p->of;
  c->of->refs++;
  c->refs = 1;
  block = (ptrdiff_t) (p->left * p->nr) - p->b0;
  c->data = c->of->data + block * (ptrdiff_t) BLOCK_LEN;
  return c;
}

bool
cells_get (struct array *a, struct cell_parts *p, unsigned nr,
           struct cell **cell)
{
  const unsigned more = nr > p->left ? nr - p->left : 0;

  if (!make_free (a, div_round_up (more, parts_in_cell (a, p))))
    return false;
  for (unsigned i = 0; i < nr; i++)
    cell[i] = p->nr ? next_part (a, p) : pop_cell (a);
  return true;
}

/* ---- lines ----------------------------------------------------------- */

static struct line *_Atomic *
bucket_of (const struct array *a, uint64_t no)
{
  return &a->bucket[(no * 0x9e3779b97f4a7c15 >> 20) & (a->nr_buckets - 1)];
}

bool
line_is_absent (const struct array *a, uint64_t no)
{
  return atomic_load_explicit (bucket_of (a, no), memory_order_acquire) == NULL;
}

struct line *
line_find (struct array *a, uint64_t no)
{
  struct line *line;

  for (line = *bucket_of (a, no); line; line = line->hash_next)
    if (line->no == no)
      return line;
  return NULL;
}

struct line *
line_get (struct array *a, uint64_t no)
{
  struct line *line = line_find (a, no);
  struct line *_Atomic *b;

  if (line)
    return line;
  line = pool_get (&a->line_pool);
  if (line == NULL)
    return NULL;
  line->no = no;
  list_init (&line->link);
  list_init (&line->out_link);
  list_init (&line->waiters);
  list_init (&line->tickets);
  b = bucket_of (a, no);
  line->hash_next = *b;
  *b = line;
  a->nr_lines++;
  return line;
}

static void
line_forget (struct array *a, struct line *line)
{
  struct line *_Atomic *b = bucket_of (a, line->no);
  struct line *before = *b;

  if (before == line)
    *b = line->hash_next;
  else {
    while (before->hash_next != line)
      before = before->hash_next;
    before->hash_next = line->hash_next;
  }
  engine_run_waiters (a, &line->waiters);
  list_remove (&line->link);
  list_remove (&line->out_link);
  a->nr_lines--;
  pool_put (&a->line_pool, line);
}

static void
leave_list (struct array *a, struct line *line)
{
  list_remove (&line->link);
  if (line->is_dirty)
    a->nr_dirty--;
  if (line->is_clean)
    a->nr_held += line->nr_cells;
  line->is_dirty = line->is_clean = false;
}

/* A clean line that is used again counts against the cells that lines may
 * hold; its content is dropped if that is too much.
 */
void
line_hold (struct array *a, struct line *line)
{
  if (!line->is_clean)
    return;
  if (a->nr_held + line->nr_cells > a->max_held)
    drop_all (a, line);
  leave_list (a, line);
}

/* Put the line on the right list.  True if it has become clean.  It counts as
 * dirty also where a client is writing over what could not be written out: a
 * flush must wait for that, or fail.
 */
static bool
settle (struct array *a, struct line *line, bool *unused)
{
  uint16_t dirty = 0, busy = 0;
  bool idle;

  for (unsigned r = 0; r < a->g.k; r++) {
    dirty |= line->cell[r].dirty;
    if (!PLANTED ("flush-skips-overwritten"))
      dirty |= line->cell[r].outdated;
    busy |= line->cell[r].busy;
  }
  idle = !busy && line->op == NULL && line->readers == 0 && line->pins == 0;
  *unused = idle && !dirty && line->nr_cells == 0 && !line->torn;
  if (dirty && !line->is_dirty) {
    leave_list (a, line);
    line->is_dirty = true;
    line->dirty_since = engine_now (a);
    list_append (&a->dirty, &line->link);
    a->nr_dirty++;
  }
  if (dirty)
    return false;
  if (line->op == NULL) {
    a->nr_stuck -= line->stuck;
    line->stuck = false;
  }
  line->want_out = false;
  list_remove (&line->out_link);
  if (line->is_dirty || (line->is_clean && !idle))
    leave_list (a, line);
  if (!idle || line->is_clean || line->nr_cells == 0)
    return false;
  line->is_clean = true;
  a->nr_held -= line->nr_cells;
  list_append (&a->clean, &line->link);
  return true;
}

void
line_settle (struct array *a, struct line *line)
{
  bool unused;

  settle (a, line, &unused);
  if (unused)
    line_forget (a, line);
}

void
line_changed (struct array *a, struct line *line)
{
  bool unused;

  if (settle (a, line, &unused))
    engine_run_waiters (a, &a->cell_waiters);
  engine_run_waiters (a, &line->waiters);
  if (unused)
    line_forget (a, line);
}

void
line_drop_cell (struct array *a, struct line *line, unsigned role)
{
  struct line_cell *lc = &line->cell[role];

  assert (lc->busy == 0);
  cell_put (a, lc->c);
  forget_content (a, line, lc);
}

uint16_t
line_frozen (const struct line *line, unsigned role, struct cell **c)
{
  *c = line->cell[role].out;
  return line->cell[role].out_blocks;
}

/* Drop the cells of a line that are not dirty, being filled or in use.  No
 * waiter is woken, as in drop_all.
 */
static void
drop_clean (struct array *a, struct line *line)
{
  for (unsigned r = 0; r < a->g.k; r++) {
    struct line_cell *lc = &line->cell[r];

    if (lc->c && lc->dirty == 0 && lc->busy == 0 && lc->c->frozen == 0) {
      put (a, lc->c);
      forget_content (a, line, lc);
    }
  }
}

void
line_drop_clean (struct array *a, struct line *line)
{
  drop_clean (a, line);
  line_settle (a, line);
}

bool
line_cells_get (struct array *a, struct cell *cell[], unsigned *nr)
{
  while (*nr < a->g.k && a->nr_held < a->max_held && make_free (a, 1)) {
    cell[(*nr)++] = pop_cell (a);
    a->nr_held++;
  }
  return *nr == a->g.k;
}

void
line_cells_put (struct array *a, struct cell *cell[], unsigned nr)
{
  a->nr_held -= nr;
  for (unsigned r = 0; r < nr; r++)
    cell_put (a, cell[r]);
}

void
line_fill (struct array *a, struct line *line, struct cell *cell[])
{
  const uint16_t all = block_mask (0, a->cell_blocks);

  drop_all (a, line);
  leave_list (a, line);
  for (unsigned r = 0; r < a->g.k; r++)
    line->cell[r] = (struct line_cell) { .c = cell[r], .valid = all,
                                         .dirty = all };
  line->nr_cells = a->g.k;
}

bool
line_reserve_cell (struct array *a, struct line *line, unsigned role)
{
  struct line_cell *lc = &line->cell[role];
  struct cell *frozen = NULL, *c;

  line_hold (a, line);
  if (lc->c && lc->c->frozen == 0)
    return true;
  /* If stuck lines hold most cells, the clean cells of this line may be in
   * its own way.
   */
  if (a->nr_held >= a->max_held && line->op == NULL && line->readers == 0)
    drop_clean (a, line);
  if (a->nr_held >= a->max_held || !make_free (a, 1)) {
    line_settle (a, line);
    return false;
  }
  c = pop_cell (a);

  if (lc->c && lc->dirty) {
    /* Frozen by an abandoned write: move the line's content. */
    assert (lc->busy == 0);
    memcpy (c->data, lc->c->data, a->cell_len);
    cell_put (a, lc->c);
    lc->c = c;
    return true;
  }
  if (lc->c) {
    /* Frozen: the operation keeps blocks that are to be written, for readers.
     */
    assert (lc->busy == 0);
    line_frozen (line, role, &frozen);
    if (frozen == lc->c)
      cell_put (a, lc->c);              /* the line still pays for it */
    else
      line_drop_cell (a, line, role);
  }
  lc->c = c;
  lc->valid = lc->dirty = 0;
  line->nr_cells++;
  a->nr_held++;
  return true;
}

/* ---- the room ------------------------------------------------------------ */

/* Lines that there are may have one data role more now. */
static void
cache_reshaped (struct array *a)
{
  const size_t added = MAX (a->g.k, a->line_roles) - a->line_roles;

  for (unsigned b = 0; added && b < a->nr_buckets; b++)
    for (struct line *line = a->bucket[b]; line; line = line->hash_next)
      memset (&line->cell[a->line_roles], 0, added * sizeof line->cell[0]);
  a->line_roles = a->g.k;
  a->line_pool.clear = line_size (a->g.k);
  share_cells (a);
}

/* Counted here, not at each change: there are at most some thousand dirty
 * lines, and status is rarely asked for.
 */
static uint64_t
dirty_len (const struct array *a)
{
  uint64_t nr_blocks = 0;

  list_for_each (l, &a->dirty) {
    const struct line *line = list_item (l, struct line, link);

    for (unsigned r = 0; r < a->g.k; r++)
      nr_blocks += __builtin_popcount (line->cell[r].dirty);
  }
  return nr_blocks * BLOCK_LEN;
}

static void
cache_status (const struct array *a, struct array_status *st)
{
  st->cache_len = (uint64_t) a->nr_cells * a->cell_len;
  st->cache_used = (uint64_t) (a->nr_cells - a->nr_free) * a->cell_len;
  st->cache_dirty = dirty_len (a);
}

const struct room room_cache = {
  .free = cache_free, .status = cache_status, .reshaped = cache_reshaped,
};
