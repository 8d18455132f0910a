/* gpuraid: the model of widening: what its files share.  widen.c says what is
 * modelled.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GPURAID_TESTS_MODEL_WIDEN_H
#define GPURAID_TESTS_MODEL_WIDEN_H

#include <stdint.h>

#include "widen_plants.h"

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;

/* At most: members and one that replaces an active one, stripes, chunks,
 * transactions not freed, stripes of a window.
 */
enum { NM = 6, SM = 6, CM = 12, TXM = 4, WM = 2 };

/* ---- what is tried ------------------------------------------------------ */

/* The array is K + M, and becomes K + 1 + M.  S stripes, a row each; N members
 * and NC chunks; FEND: how many new stripes have chunks.
 */
extern int K, M, N, S, NC, FEND;

extern struct shape {
  int wmax;             /* stripes of the longest window */
  int reads;            /* reads that find their place first, and read later */
  int k, m, stripes, sums, crashes, writes;
  int rejoins;          /* members that failed and come back */
  int steps;            /* 1: these are rebuilt in steps; 2: also members that
                         * are active are replaced
                         */
  int tear;             /* crashes tear pages */
  int rot;              /* pages that rot, at a crash */
} shape;

#define SUMS (shape.sums)

/* ---- mistakes that can be planted --------------------------------------- */

enum {
#define P(name, caught, text, ...) P_##name,
  PLANTS (P)
#undef P
    NR_PLANTS
};
extern u8 plant[NR_PLANTS];
#define ON(x) plant[P_##x]

/* ---- states ------------------------------------------------------------- */

enum { OLD = 1, NEW, JOURNAL, DIRECT };         /* kinds of transactions */
/* Their stages; MOVED: its frontier is in force. */
enum { SENT = 1, MET, PLACING, DONE, MOVED };

typedef struct {
  u8 seq, type, row, w, slots, chunk, stage, val[WM][NM];
  u8 before[NM];                /* what changed the page before */
} Tx;

typedef struct {
  u8 tail, F;
} Hdr;

enum { RUN, REC };

typedef struct {
  /* durable */
  u8 data[NM][SM];
  u16 te[NM][SM];               /* entries of the table: generation, content */
  Hdr h[NM];
  u8 rec[NM];                   /* bit 2 * transaction + row of its window */

  /* written, not flushed: blocks, pages, headers, records */
  u8 pd[NM][SM], pdm[NM];
  u16 pt[NM][SM];
  u8 ptm, phm, prec[NM];
  Hdr ph;

  Tx tx[TXM];
  u8 ntx;
  u8 phase;                     /* the record has 0: k; 1: k + 1, *widening*;
                                 * 2: k + 1 */
  u8 mode, step, active, F, prep, next;

  /* of each chunk: the newest, the last flushed, what lies in the old row */
  u8 cur[CM], dur[CM], oldv[CM];
  u8 crashes, writes, rejoins, nw;

  /* a read under way: chunk + 1, where it reads, what it may get beside what
   * is newest
   */
  u8 reads, rd, rrow, rslot, rold, rmid;

  /* A rebuild in steps: its target + 1, which is N + 1 where it replaces an
   * active member, and the slot + 1 of that; whether only missed rows are
   * copied, the rows that are copied; of the next one whether its content is
   * known (1: held, held_gen) or written (2); the durable cursor, and one that
   * was written and not flushed.
   */
  u8 tgt, repl, part, cursor, win, held, held_gen, dcur, pcur;
  u8 miss, pmiss;               /* *missed* bits of rows: durable, written */
  /* With tear: what the older place of a page has; the newest transaction in
   * each, and in what is written; members of which one place is bad; the last
   * transaction that will be in the page.
   */
  u16 ote[NM][SM];
  u8 tseq[NM], otseq[NM], ptseq[NM], torn, last[NM], rot;
  u8 back;                      /* members that are out, with what they had */
} St;

/* What a recovery makes of the members. */
typedef struct {
  int F, tail;
  int keepj;                    /* a journaled move that is kept: number + 1 */
  int drop;                     /* mask of transactions that are dropped */
  u8 val[CM], oldv[CM];         /* what every chunk has */
  u16 ne[NM][SM];               /* blocks to be written: entry, value, rows */
  u8 nv[NM][SM], wr[NM];
  unsigned newest;
} Plan;

/* widen_code.c: code words */
extern void field (void);
extern int role_before (int s, int slot);
extern int role (int nw, int s, int slot);
extern u8 cell (int r, const u8 *d);
extern int decode (int nw, int s, unsigned good, const u8 *v, u8 *d);
extern int dead_end (int F);
extern int full (void);
extern int pop (unsigned x);
extern int is_new (const St *s, int row);
extern unsigned must (const St *s);

/* widen_states.c: the states that were seen.  LAB: what led to one */
enum {
  L_WRITE = 1, L_FLUSH, L_PLACE, L_HDR, L_PREP, L_RECORD, L_MOVEJ, L_MOVED,
  L_CRASH, L_FAIL, L_JOIN, L_END, L_RSTEP, L_READ, L_READEND, L_LEAVE, L_FULL,
  L_BACK, L_REPLACE, L_COPY, L_PUT, L_COPIED, L_CURSOR
};
#define LAB(t, a, b) ((u32) (t) << 24 | ((a) & 0xfff) << 12 | ((b) & 0xfff))
extern u64 nr_plans, nr_checks;
extern int most_pending;
extern void canon (St *s);
extern void emit (St *s, u32 l);
extern void viol (const char *what, int a, int b);
extern void explore (const St *start, void (*next) (const St *s));

/* widen_plan.c: decisions of a recovery, and what must always be so */
extern u16 entry (u8 v, int gen, int zero);
extern void row_in_place (const St *s, int nw, int r, unsigned act,
                          unsigned *good, u8 *v);
extern void mkplan (const St *s, Plan *pl);
extern void check_plan (const St *s, const Plan *pl);
extern void check_rest (const St *s);

/* widen_steps.c: the steps of a running array */
extern int pending (const St *s);
extern int window (const St *s, int *lo, int *hi);
extern void del_tx (St *s, int i);
extern void flush (St *s);
extern int may_lose (const St *s, unsigned x);
extern void run (const St *s);

/* widen_pages.c: pages of the checksum table */
extern int page_known (const St *s, int p);
extern void page_stored (St *s, const St *from, int p);
extern void page_torn (St *s, int p);
extern void page_rots (St *s, int p);
extern void page_chain (St *s, Tx *t);
extern void pages (St *s);
extern void page_anew (St *s, int p);
extern int page_generation (const St *s, int nw, int row, int p);

/* widen_rebuild.c: members that fail, and a rebuild in steps */
extern int slot_of (const St *s, int p);
extern int on_target (const St *s, int p, int row);
extern void inherit (St *s);
extern unsigned rows_of_tx (const St *s);
extern void leave (const St *s);
extern void rejoin (const St *s);
extern void rebuild (const St *s, int quiet);

/* widen_crash.c: a crash, and the steps of a recovery */
extern void crash (const St *s);
extern void recovery (const St *s);

#endif
