/* gpuraid: cells and lines, the memory of the array.
 *
 * Cells are carved from the arena.  Three users take them: lines that hold
 * dirty or frozen data (bounded by a->max_held), operations (at most
 * a->max_credit, each at most a->op_cells), and clean lines, which give them
 * back when others need them.  So an operation that has a credit always gets
 * its cells, perhaps after a reader has copied out, and a full cache can
 * always be written out.
 *
 * Call all of these with the array lock held, unless they say otherwise.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CACHE_H
#define GPURAID_CACHE_H

#include "array/engine/room.h"

struct cell {
  uint8_t *data;                /* a->cell_len bytes of the arena, of which a
                                 * part has some */
  struct cell *of;              /* it is a part of this one; or NULL */
  unsigned refs;                /* a line, operations, readers copying out */
  unsigned frozen;              /* operations, and abandoned writes, that
                                 * read it: not to be written to */
};

/* One data role of a line.  Masks have a bit per block of the cell. */
struct line_cell {
  struct cell *c;               /* newest content, or NULL */
  uint16_t valid;               /* blocks that are in c */
  uint16_t dirty;               /* of those, newer than the members */
  uint16_t busy;                /* being filled for the first time: not yet
                                 * valid, and not to be filled by others */
  uint16_t outdated;            /* of those, on the member: newer content could
                                 * not be written out */
  struct cell *out;             /* the line's operation writes it out, or
                                 * NULL: frozen */
  uint16_t out_blocks;
};

/* A cache line: one stripe's data over one band of a->cell_len bytes. */
struct line {
  struct line *hash_next;
  uint64_t no;                  /* stripe * a->nr_bands + band */
  struct list link;             /* in a->dirty, a->clean, or neither */
  bool is_dirty, is_clean;      /* the list it is on */
  bool want_out;                /* a flush waits: so do new writers */
  bool stuck;                   /* some of it could not be written out: too
                                 * few blocks of its row can be read */
  bool torn;                    /* the array failed while its rows were being
                                 * written: they can't be decoded */
  struct list out_link;         /* in a->out: to be written out now */
  uint64_t out_since;           /* ns, when it came there */
  struct op *op;                /* the operation that writes to its rows */
  unsigned readers;             /* operations that read its rows, have read
                                 * them, or wait for that: no write begins */
  unsigned reading;             /* of those, have begun and not ended: no
                                 * zeroing begins either */
  unsigned pins;                /* requests copying into it */
  unsigned nr_cells;            /* of its own, and frozen in its operation */
  uint64_t dirty_since;         /* ns */
  struct list waiters;          /* struct waiter: run when any field above
                                 * changed for the better */
  struct list tickets;          /* flushes that wait for its dirty data */
  struct line_cell cell[];      /* k, and room for those that may be added */
};

/* Data roles that may be added to k before the next start. */
#define LINE_MAX_ADDED 8u

extern const struct room room_cache;

/* The least cache= for a geometry, in bytes. */
extern uint64_t cache_min_len (const struct geometry *g);

/* Is the cache that there is large enough for this geometry? */
extern bool cache_fits (const struct array *a, const struct geometry *g);

/* Set the sizes from len bytes (at least cache_min_len). */
extern void cache_size (struct array *a, uint64_t len);
/* Get the memory, after the fork.  0 or a positive errno. */
extern int cache_start (struct array *a);

/* The cells of an operation.  If it needs few blocks, several of these are
 * parts of one cell: struct cells, too, which have only these blocks.
 */
struct cell_parts {
  unsigned b0, nr;              /* blocks of a part; nr 0: no cell is divided */
  struct cell *of;              /* the last one that was; or NULL */
  unsigned left;                /* parts of it that are left */
};

/* How many cells one operation takes at most, if it needs these blocks. */
extern unsigned cell_parts_init (const struct array *a, struct cell_parts *p,
                                 unsigned b0, unsigned nr);
extern void cell_parts_end (struct array *a, struct cell_parts *p);

/* Get nr cells, or parts, for an operation, with one reference each.  If false,
 * wait on a->cell_waiters.
 */
extern bool cells_get (struct array *a, struct cell_parts *p, unsigned nr,
                       struct cell **cell);
extern void cell_put (struct array *a, struct cell *c);

/* Drop the content of clean lines, of up to nr of them. */
extern void lines_drop_clean (struct array *a, unsigned nr);

/* Without the array lock, while a->idle.giving: the first cells are used first
 * again.
 */
extern void cells_sort_free (struct array *a);

static inline void
cell_ref (struct array *a, struct cell *c)
{
  a->idle.used = true;
  c->refs++;
}

/* The line with this number; NULL if there is none (line_get: if there is no
 * memory).
 */
extern struct line *line_find (struct array *a, uint64_t no);
extern struct line *line_get (struct array *a, uint64_t no);

/* Any thread, without the array lock.  True: there was no line with this number
 * when that was looked at, nor another one in its bucket: it had no content
 * newer than that of the members.  False: there may be one.
 */
extern bool line_is_absent (const struct array *a, uint64_t no);

/* Call when a line has changed: puts it on the right list, forgets it if it
 * holds nothing, runs its waiters.  The line may be gone afterwards.
 */
extern void line_changed (struct array *a, struct line *line);

/* The same, if nothing changed for the better: no waiter is run. */
extern void line_settle (struct array *a, struct line *line);

/* The line has dirty data and must be written out at once. */
static inline void
line_out_now (struct array *a, struct line *line)
{
  if (list_empty (&line->out_link))
    line->out_since = engine_now (a);
  list_move (&a->out, &line->out_link);
}

/* Make room for new content in one role: a cell that may be written to.
 * False if too many are held: wait on a->cell_waiters.  The line may be gone
 * then.
 */
extern bool line_reserve_cell (struct array *a, struct line *line,
                               unsigned role);

/* Cells for the new content of all of a line, which is read from others first:
 * up to k, of which *nr are there.  They count as held.  False if too many are:
 * wait on a->cell_waiters.
 */
extern bool line_cells_get (struct array *a, struct cell *cell[],
                            unsigned *nr);
extern void line_cells_put (struct array *a, struct cell *cell[], unsigned nr);

/* k of them are its content now, and newer than what the members have.  Nothing
 * uses the line, which is clean: what it had is dropped.
 */
extern void line_fill (struct array *a, struct line *line,
                       struct cell *cell[]);

/* Mark the line as used: it can't be taken as clean. */
extern void line_hold (struct array *a, struct line *line);

/* Forget the content of a line, where it is neither dirty nor in use. */
extern void line_drop_clean (struct array *a, struct line *line);

/* Forget the content of one role, which must not be busy. */
extern void line_drop_cell (struct array *a, struct line *line,
                            unsigned role);

/* Blocks of a role that are frozen in the line's writing operation. */
extern uint16_t line_frozen (const struct line *line, unsigned role,
                             struct cell **c);

#endif
