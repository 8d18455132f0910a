/* gpuraid: the state of the checksum table, for array/sums/ alone.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_SUMS_INTERNAL_H
#define GPURAID_SUMS_INTERNAL_H

#include "array/io/hole.h"
#include "array/sums/sums.h"
#include "common/plant.h"

/* The same page of all slots.  Masks have a bit per slot. */
struct sums_page {
  /* Any thread reads these. */
  struct sums_page *_Atomic hash_next;
  _Atomic uint64_t no;
  _Atomic uint64_t open;        /* of those loaded: clients' threads may look at
                                 * their entries without the array lock */
  struct table_entry *entry;    /* of the slots that there were when it was
                                 * made; constant, also when it becomes another
                                 * page */

  /* Likewise constant, except in slots.c. */
  unsigned nr_first;            /* those slots */
  unsigned nr_slots;            /* with those added since: their entries: */
  struct table_entry *added[SUMS_MAX_ADDED];
  uint64_t *counter;            /* per slot: of the stored page */
  uint64_t *seq;                /* per slot: of the newest change */

  /* All that follows is for this page alone. */
  struct list link;             /* in sums->unused if it may be taken for
                                 * another page; or in sums->dirty */
  struct list store_link;       /* in sums->storing */
  unsigned pins;
  uint64_t loaded, loading;
  unsigned verify_no;           /* sums->verify_no when it was last read */
  uint64_t blank;               /* of those loaded: never written, or bad.
                                 * Which, is known when all are loaded */
  uint64_t bad;                 /* of those: in both places */
  uint64_t empty;               /* slots, also of targets, whose member has both
                                 * places blank */
  uint64_t unreadable;          /* of those loaded: lost for now, to be read
                                 * again */
  uint64_t error_told;          /* slots: its error has counted, and it was not
                                 * read since */
  bool born;                    /* some slot's page was written */
  bool checked;                 /* all were loaded, to know that */
  uint64_t doubtful;            /* one place is bad, or both: to be stored
                                 * when the array may write */
  uint64_t rubbish;             /* of one that was never written: no zeroes
                                 * there; to be zeroed when the array may
                                 * write */
  struct list doubtful_link;    /* in sums->doubtful */
  uint64_t dirty;
  uint64_t again;               /* to be stored a second time, in the other
                                 * place */
  uint64_t twice;               /* of those dirty: without a journal, to be
                                 * stored in both places */
  uint64_t half;                /* of those dirty: good in one place alone, as
                                 * far as known; to be stored in the other */
  uint64_t dirty_seq;           /* the oldest transaction in dirty */
  bool is_dirty, is_storing;
  uint64_t stored;              /* slots, by the last store */
  uint64_t storing_seq;
  unsigned stores;              /* under way */
  uint64_t stored_gen;          /* a->flush_gen when it was last stored */
  struct list waiters;          /* for a load or store */
};

/* From now on they may not.  Before the slots of a page that are loaded become
 * fewer, or it becomes another page.
 */
static inline void
sums_page_close (struct sums_page *p)
{
  atomic_store (&p->open, 0);
}

/* Pages [first, end) were never written.  Of those from there to data_end that
 * is not known, and to ask again would not tell.
 */
struct sums_hole {
  uint64_t first, end, data_end;
  bool asking;                  /* from first on; end is that of no page born
                                 * since */
  struct hole_query query;
  struct list waiters;
};

/* What is behind on the members of these slots is made durable as lost. */
struct sums_behind {
  uint64_t slots;
  uint64_t row, end;            /* rows below are done; of those pinned */
  struct sums_pin pin;
  enum { BEHIND_PIN, BEHIND_STORE, BEHIND_FLUSH } step;
  unsigned flushes;             /* under way */
  struct list waiters;
};

struct sums {
  unsigned nr, max;             /* pages */
  struct sums_page *_Atomic *bucket;    /* read by any thread */
  unsigned nr_buckets;          /* a power of two */
  struct list unused;           /* least recently used first */
  struct list dirty;            /* by dirty_seq */
  struct list storing;          /* by storing_seq */
  struct list doubtful;
  bool may_store;               /* not before the journal is recovered */
  uint64_t store_upto;          /* a seq */
  bool short_of;                /* of pages that may be taken */
  unsigned verify_no;           /* of the scrub */
  uint64_t stuck_gen;           /* a->flushed_gen when no page could be
                                 * stored before a flush; or 0 */
  struct waiter flush_waiter;
  struct list waiters;          /* for a page that may be taken */

  struct sums_hole hole;
  struct sums_behind behind;

  /* Pages being stored on the rebuild's targets. */
  struct sums_pin target_pin;
  uint64_t target_end;          /* row: up to which they are pinned, which
                                 * stays as it is while some are */
  unsigned target_stores;
  unsigned target_tries;        /* to read the pages */
  struct list target_waiters;
  uint32_t seed[MAX_SLOTS];
};

static inline struct sums_page *_Atomic *
sums_bucket (const struct sums *s, uint64_t page_no)
{
  return &s->bucket[(page_no * 0x9e3779b97f4a7c15 >> 20) &
                    (s->nr_buckets - 1)];
}

static inline struct table_entry *
sums_entries (const struct sums_page *p, unsigned slot)
{
  return slot < p->nr_first ? p->entry + slot * limits.table_page_entries :
    p->added[slot - p->nr_first];
}

/* The bytes of member data that a page covers, from data_off. */
static inline uint64_t
sums_page_pos (const struct sums_page *p)
{
  return p->no * limits.table_page_entries * BLOCK_LEN;
}

/* The seq of a page of which it is not known. */
#define SUMS_SEQ_UNKNOWN UINT32_MAX
/* The counter of a page of which it is not known. */
#define SUMS_COUNTER_UNKNOWN UINT64_MAX
/* dirty_seq: no transaction waits for the page to be stored. */
#define SUMS_NO_SEQ (UINT64_MAX - 1)

/* array/sums/memory.c. */
extern int sums_init (struct array *a, const struct config *c,
                      const struct assembly *as);
extern void sums_free (struct array *a);
/* One more page, which is no page of the table yet. */
extern struct sums_page *sums_new_page (const struct array *a);
/* All its entries are zeroes. */
extern void sums_clear_slots (struct sums_page *p);
/* One that nothing uses, or NULL. */
extern struct sums_page *sums_take_unused (struct array *a);

/* array/sums/pages.c. */
/* The member with the entries of a slot, or NULL.  A target has those that were
 * copied.
 */
extern struct seat *sums_source (const struct array *a,
                                 const struct sums_page *p, unsigned slot);
/* True if the entries of these slots are there. */
extern bool sums_is_loaded (const struct array *a, const struct sums_page *p,
                            uint64_t slots);
/* Pin the pages of these rows, all or none.  False: there is no room. */
extern bool sums_pin_pages (struct array *a, struct sums_pin *pin,
                            uint64_t row, uint64_t nr);
/* Its pins, loads or stores have changed. */
extern void sums_settle (struct array *a, struct sums_page *p);
/* It differs from what is stored, by the transaction seq. */
extern void sums_mark_dirty (struct array *a, struct sums_page *p,
                             uint64_t slots, uint64_t seq);

/* array/sums/store.c: store these slots of a page as they are in memory, before
 * the array is open for writing.
 */
extern void sums_store_now (struct array *a, struct sums_page *p,
                            uint64_t slots);
/* Store what is left of it to be stored. */
extern void sums_store_again (struct array *a, struct sums_page *p);

/* array/sums/behind.c: slots of which the member is behind. */
extern uint64_t sums_slots_behind (const struct array *a);
/* Is some block of the page in a region that was missed? */
extern bool sums_is_missed (const struct array *a, const struct sums_page *p);
/* Slots whose member may lack something of the page. */
extern uint64_t sums_behind (const struct array *a, const struct sums_page *p);
/* A slot of the page was loaded.  What its member does not
 * have is lost.
 */
extern void sums_lose_behind (const struct array *a, struct sums_page *p,
                              unsigned slot);

/* Is the page in the hole that was found last? */
static inline bool
sums_hole_has (const struct sums *s, uint64_t page_no)
{
  return page_no >= s->hole.first && page_no < s->hole.end;
}

/* array/sums/hole.c: a page that is in it is to be stored. */
extern void sums_hole_born (struct sums *s, uint64_t page_no);

/* Of a row that is not in it: the first one behind it that may be in a hole, as
 * far as was asked.
 */
extern uint64_t sums_hole_after (const struct sums *s, uint64_t row);

/* array/sums/slots.c: the array has more slots, or fewer. */
extern void sums_reshaped (struct array *a);
extern void sums_page_free (struct sums_page *p);
/* The same entry for all blocks of a slot. */
extern void sums_set_all (struct sums_page *p, unsigned slot,
                          struct table_entry e);

/* Forget what was in memory of slots that have new members. */
extern void sums_forget_slots (struct array *a);

/* array/sums/trust.c: all are lost, as far as it is known; those beyond the
 * data are zeroes.
 */
extern void sums_no_entries (const struct array *a, struct sums_page *p,
                             unsigned slot);
/* One place is bad: it is stored again. */
extern void sums_add_doubtful (struct array *a, struct sums_page *p,
                               unsigned slot);
/* It was never written, as the others prove, and is no zeroes on this slot:
 * without enough of the others it would seem damaged.
 */
extern void sums_page_rubbish (struct array *a, struct sums_page *p,
                               unsigned slot);
/* It can't be trusted. */
extern void sums_page_damaged (struct array *a, struct sums_page *p,
                               unsigned slot);
/* A crash interrupted the first write to it. */
extern bool sums_is_first_write (const struct array *a,
                                 const struct sums_page *p);
/* Was nothing stored there yet, that counts?  Where the cursor has passed pages
 * were, in both places; and a member that came back was written to before.  A
 * slot that is added for data has nothing in old rows, but has what moves now.
 */
static inline bool
sums_is_ahead (const struct sums_page *p, const struct seat *s)
{
  const struct geometry *g = &s->a->g;

  return (s->state == SEAT_TARGET && !s->by_bitmap &&
          s->cursor <= sums_page_pos (p)) ||
    (g->widening && s->slot == s->a->n - 1 &&
     sums_page_pos (p) >=
     (PLANTED ("widen-page-ahead") ? g->frontier :
      MAX (g->frontier, s->a->moving.end)) * BLOCK_LEN);
}

/* Without a journal, a page that no active member has: may this one of a target
 * be of a write before a crash?  If so it is dropped.
 */
extern bool sums_is_left_over (const struct array *a,
                               const struct sums_page *p,
                               const struct seat *s,
                               const struct table_entry *e);
extern void sums_drop_page (struct array *a, struct sums_page *p,
                            struct seat *t);
/* All are loaded, as far as they have a member, and some seem never written, or
 * are bad: decide what they are.
 */
extern void sums_check_blank (struct array *a, struct sums_page *p);
/* It was written, also where it seemed never written. */
extern void sums_page_born (struct array *a, struct sums_page *p);

/* array/sums/load.c: begin to load these slots.  p->waiters is run when any
 * has ended.
 */
extern void sums_load (struct array *a, struct sums_page *p, uint64_t slots);

#endif
