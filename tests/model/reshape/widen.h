/* gpuraid: the model of widening: what its files share.  widen.c says what is
 * modelled.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GPURAID_TESTS_MODEL_WIDEN_H
#define GPURAID_TESTS_MODEL_WIDEN_H

#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;

/* At most: members, stripes, chunks, transactions not freed, stripes of a
 * window.
 */
enum { NM = 5, SM = 6, CM = 12, TXM = 4, WM = 2 };

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
} shape;

#define SUMS (shape.sums)

/* ---- mistakes that can be planted --------------------------------------- */

/* P (name, 1 if it must be caught and 0 if it must not, text, the shape that
 * catches it).  Those that must not be are tried in more shapes with --all.
 */
#define SMALL   { 2, 0, 1, 1, 4, 0, 1, 1, 0 }
#define SUMMED  { 2, 0, 1, 1, 6, 1, 1, 1, 0 }
#define WITHREAD { 2, 1, 1, 1, 6, 0, 0, 1, 0 }
#define TWICE   { 2, 0, 1, 1, 4, 0, 2, 1, 0 }
#define PARTIAL { 1, 0, 2, 1, 4, 0, 1, 2, 0 }
#define REBUILT { 2, 0, 1, 1, 4, 0, 1, 1, 1 }
#define PLANTS(P) \
  P (front1, 1, "the frontier is made durable on one member only", SMALL) \
  P (early, 1, "the frontier moves before the new stripes are flushed", SMALL) \
  P (unflushed, 1, \
     "what depends on the frontier begins before it is in force", SMALL) \
  P (pages, 1, \
     "the frontier moves before the table pages are flushed", SUMMED) \
  P (notfreed, 1, \
     "the frontier moves although older transactions are not freed", SMALL) \
  P (replay, 1, \
     "recovery replays entries of old rows into dead or new ones", SMALL) \
  P (firstdirect, 1, \
     "the first stripes are written without the journal", SMALL) \
  P (wide, 1, "a window is one stripe longer than the dead zone", SMALL) \
  P (noexcl, 1, "clients may write into the window", SMALL) \
  P (untyped, 0, \
     "recovery takes an entry for one of the geometry of its row now", SMALL) \
  P (notalone, 0, "a journaled move is not alone in the rings", SMALL) \
  P (rowwise, 1, "recovery keeps or drops a journaled move row by row", SMALL) \
  P (least, 1, "the least frontier of any header counts", SMALL) \
  P (ownzero, 1, "recovery writes fresh headers without the frontier", SMALL) \
  P (recearly, 1, \
     "recovery moves the frontier before the blocks are flushed", TWICE) \
  P (norelog, 1, \
     "recovery keeps a move without writing its records again", TWICE) \
  P (stale, 1, \
     "no fresh headers before the record: an older frontier counts", SMALL) \
  P (tail, 1, "what lies beyond the last new stripe is not made zero", SMALL) \
  P (partial, 1, \
     "parity of a partly moved old row is made from clients' data", PARTIAL) \
  P (zerocol, 1, \
     "NEW's column of an old row is read, not taken as zeroes", SMALL) \
  P (degraded, 0, "moves begin while a slot is not active", REBUILT) \
  P (norotate, 1, \
     "rows that were not moved have the rotation of k + 1", SMALL) \
  P (reader, 1, \
     "a row gets its new content while a read of the old goes on", WITHREAD) \
  P (readj, 1, "reads of a journaled window go to the members", WITHREAD) \
  P (join, 0, \
     "a rebuilt member joins with a header without the frontier", REBUILT)
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
  L_CRASH, L_FAIL, L_JOIN, L_END, L_RSTEP, L_READ, L_READEND
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
extern void mkplan (const St *s, Plan *pl);
extern void check_plan (const St *s, const Plan *pl);
extern void check_rest (const St *s);

/* widen_steps.c: the steps of a running array */
extern int pending (const St *s);
extern void del_tx (St *s, int i);
extern void flush (St *s);
extern int may_lose (const St *s, unsigned x);
extern void run (const St *s);

/* widen_crash.c: a crash, and the steps of a recovery */
extern void crash (const St *s);
extern void recovery (const St *s);

#endif
