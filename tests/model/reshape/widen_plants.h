/* gpuraid: the model of widening: the mistakes that can be planted.
 *
 * P (name, 1 if it must be detected and 0 if it must not, text, a shape).
 * Those that must not be are tried in more shapes with --all:
 *
 *   untyped    with "the frontier moves only in the header that also frees all
 *              older transactions" no entry of the other geometry is ever live
 *   notalone   to be alone in the rings keeps the recovery of a journaled move
 *              simple, no more
 *   degraded   moves may go on while a slot is not active, as long as nothing
 *              is rebuilt; see moverebuild, movereplace
 *   join       the greatest frontier counts, and another active member has it
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GPURAID_TESTS_MODEL_WIDEN_PLANTS_H
#define GPURAID_TESTS_MODEL_WIDEN_PLANTS_H

/* Longest window, reads, k, m, stripes, checksums, crashes, writes, rebuilds,
 * 1 where these are in steps and 2 where active members are replaced too, 1
 * where pages are torn, pages that rot.
 */
#define SMALL       { 2, 0, 1, 1, 4, 0, 1, 1, 0, 0 }
#define SUMMED      { 2, 0, 1, 1, 6, 1, 1, 1, 0, 0 }
#define WITHREAD    { 2, 1, 1, 1, 6, 0, 0, 1, 0, 0 }
#define TWICE       { 2, 0, 1, 1, 4, 0, 2, 1, 0, 0 }
#define MOVES_TWICE { 2, 0, 1, 1, 4, 0, 2, 0, 0, 0 }
#define PARTIAL     { 1, 0, 2, 1, 4, 0, 1, 2, 0, 0 }
#define REBUILT     { 2, 0, 1, 1, 4, 0, 1, 1, 1, 0 }
#define STEPS       { 2, 0, 1, 1, 4, 0, 1, 1, 1, 1 }
#define STEPS_SUMS  { 2, 0, 1, 1, 4, 1, 1, 0, 1, 1 }
#define STEPS_TWICE { 2, 0, 1, 1, 4, 0, 2, 0, 1, 1 }
#define STEPS_2_1   { 2, 0, 2, 1, 4, 0, 0, 1, 1, 1 }
#define STEPS_1_2   { 2, 0, 1, 2, 4, 0, 0, 1, 2, 1 }
#define REPLACED    { 2, 0, 1, 1, 4, 0, 0, 0, 1, 2 }
#define TEARS       { 2, 0, 1, 1, 4, 1, 1, 1, 0, 0, 1 }
#define ROTS        { 2, 0, 1, 1, 4, 1, 1, 1, 0, 0, 1, 1 }

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
     "recovery moves the frontier before the blocks are flushed", MOVES_TWICE) \
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
     "rows that were not moved have the rotation of k + 1", STEPS) \
  P (reader, 1, \
     "a row gets its new content while a read of the old goes on", WITHREAD) \
  P (readj, 1, "reads of a journaled window go to the members", WITHREAD) \
  P (unmarked, 1, "what clients write while a slot is out is not marked", \
     STEPS) \
  P (unmarkedleave, 1, "a member leaves, and live transactions' rows are not", \
     STEPS) \
  P (unmarkedwin, 1, "likewise, only those of a direct window are not", STEPS) \
  P (unmarkedrec, 1, "a recovery marks no rows", STEPS) \
  P (clearedearly, 1, \
     "marks are cleared while another slot is out", STEPS_1_2) \
  P (rebuildearly, 1, "a rebuild begins while a window is under way", STEPS) \
  P (moverebuild, 1, "moves go on during a rebuild", STEPS) \
  P (movereplace, 1, "moves go on while an active member is replaced", \
     REPLACED) \
  P (copyearly, 1, "a row is copied while what changes it is not in place", \
     STEPS) \
  P (inside, 1, "what changes the row that is copied does not wait", STEPS) \
  P (copydead, 1, "a rebuild reads dead rows", STEPS_SUMS) \
  P (copyclient, 1, \
     "a rebuild makes old rows from what clients have", STEPS_2_1) \
  P (cursorearly, 1, "the cursor moves before the row is flushed", STEPS) \
  P (ownhdr, 1, "a member that comes back joins with the header that it has", \
     STEPS_TWICE) \
  P (unrecorded, 1, "a direct window has no records, with checksums", TEARS) \
  P (directunread, 1, "what its records say of pages is not believed", TEARS) \
  P (pageunmet, 1, "pages have entries of what has not met R1", TEARS) \
  P (tornleft, 1, "a recovery stores no page that only they explain", TEARS) \
  P (anyrecord, 1, "any live record explains a bad place", ROTS) \
  P (blankpage, 1, "NEW's table is zeroes, so its first record has before 0", \
     ROTS) \
  P (join, 0, \
     "a rebuilt member joins with a header without the frontier", REBUILT)

#endif
