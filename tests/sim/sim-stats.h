/* gpuraid: tests: how often the simulation reached rare states.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TEST_SIM_STATS_H
#define GPURAID_TEST_SIM_STATS_H

#include <stdbool.h>
#include <stdint.h>

/* States that are told by their number in 1,000 seeds. */
#define SIM_STATES(X)                                                   \
  X (crash_creation, "crashes in creation")                             \
  X (creations_kept, "of those, the array opened afterwards")           \
  X (kills, "crashes of the process alone")                             \
  X (kills_power, "after those, power failures while it is not open")   \
  X (crash_open, "crashes in an opening, before it is open")            \
  X (crash_change, "crashes in a change of the record")                 \
  X (crash_two, "crashes while a slot has two active members")          \
  X (read_two, "reads of such an array before it is writable")          \
  X (crash_rebuild, "crashes in a rebuild")                             \
  X (crash_resync, "crashes in a resync")                               \
  X (crash_degraded, "crashes with a slot not active")                  \
  X (torn_pages, "bitmap pages with one place that is no page")         \
  X (pages_cleared, "pages written to close regions")                   \
  X (resynced, "regions resynced")                                      \
  X (forced, "openings by force")                                       \
  X (went_back, "openings by force that went back")                     \
  X (went_back_all, "... all that can be read must be right")           \
  X (went_back_crashed, "... it crashed before it was open for writing") \
  X (went_back_sure, "stripes that must then be right")                 \
  X (absent, "members missing at an opening")                           \
  X (dead, "disks that die")                                            \
  X (slow, "disks that are slow")                                       \
  X (write_errors, "disks with write errors")                           \
  X (flush_errors, "disks with flush errors")                           \
  X (read_errors, "disks with read errors")                             \
  X (bad_blocks, "disks with bad blocks")                               \
  X (bad_pages, "of those, also in the checksum table")                 \
  X (unreadable_unsynced, "either while a region is not synced")        \
  X (rows_lost, "runs in which rows may be lost")                       \
  X (lost_blocks_read, "lost blocks that gave EIO")                     \
  X (held_too_much, "arrays failed with too many such rows")            \
  X (stood_still, "pauses of the process")                              \
  X (given_back, "times that an idle cache gave its memory back")       \
  X (hangs, "disks that hang")                                          \
  X (long_hangs, "of those, for minutes")                               \
  X (held_reads, "reads that wait in a client's thread for one")        \
  X (full, "disks without space")                                       \
  X (trims_full, "trims of whole stripes meanwhile (full)")             \
  X (full_long, "disks without space for minutes")                      \
  X (long_answered, "reads and trims that ended meanwhile (minutes)")   \
  X (enospc, "requests that got ENOSPC")                                \
  X (exceeded, "runs in which more than m members fail")                \
  X (failed_arrays, "arrays failed")                                    \
  X (failed_reads, "reads of failed arrays")                            \
  X (rot_data, "disks with data that rots")                             \
  X (rot_table, "disks with pages of the checksum table that rot")      \
  X (rot_ring, "disks with rings that rot")                             \
  X (rot_superblock, "copies of superblocks that rot")                  \
  X (rot_bitmap, "disks with pages of the bitmap that rot")             \
  X (rest_superblock, "copies of superblocks that rot while it is closed") \
  X (rest_differs, "of those, in a pair that differs")                  \
  X (rest_bitmap, "pages of bitmaps that rot while it is closed")       \
  X (rest_bitmap_both, "of those, in both places")                      \
  X (rest_headers, "members whose ring headers rot while it is closed") \
  X (rest_headers_both, "of those, both headers")                       \
  X (rest_torn, "torn pages of the checksum table that no ring explains") \
  X (rot_open, "blocks that may have rotted in a region left open")     \
  X (rot_writes, "disks that lose, tear or misdirect writes")           \
  X (bad_sums, "blocks found with another checksum")                    \
  X (bad_sums_repaired, "of those, repaired")                           \
  X (bad_table_pages, "damaged pages of the checksum table found")      \
  X (unlocked, "reads without the array lock")                          \
  X (hedged, "reads decoded while they were waited for")                \
  X (hedges_won, "of those, decoded first")                             \
  X (avoided, "reads of slow members decoded from the start")           \
  X (left_out, "sets of m members left out at the end")                  \
  X (fails, "members taken out by command")                             \
  X (replaced, "members replaced")                                      \
  X (readded, "members taken again")                                    \
  X (readded_full, "of those, rebuilt in full")                         \
  X (spares, "spares added")                                            \
  X (pauses, "rebuilds and resyncs paused")                             \
  X (forgotten, "missing spares taken out")                             \
  X (several, "commands that come in one instant with another")        \
  X (fail_in_change, "members that fail in the middle of a change")     \
  X (older_copies, "older copies of members given back")                \
  X (copies_at_rest, "copies made of members of a stopped array")       \
  X (copies_readd, "older copies of members taken again")               \
  X (grown, "openings of an array that has grown")                      \
  X (parity_added, "times that parity was added")                       \
  X (parity_active, "of those, a member of it became active")           \
  X (parity_taken_back, "of those, it was taken back")                  \
  X (parity_opened, "openings of an array with such a slot")            \
  X (parity_last, "either in the last session")                    \
  X (widened, "times that an array was widened")                        \
  X (widen_taken_back, "of those, it was taken back")                   \
  X (widen_moved, "windows of rows that moved")                         \
  X (widen_ended, "of those arrays, all rows had moved")                \
  X (widen_opened, "openings of an array while it was widened")         \
  X (widen_crashed, "crashes while a window was under way")             \
  X (recoveries, "openings with a journal to recover")                  \
  X (recover_incomplete, "of those, the newest transaction is incomplete") \
  X (recover_dropped, "of those, it is dropped in some rows")           \
  X (direct_kept, "the newest wrote rows directly, and keeps some")     \
  X (direct_dropped, "likewise, and some are dropped")                  \
  X (crash_direct, "crashes while a recovery writes direct blocks")     \
  X (crash_relog, "crashes while it logs again")                        \
  X (crash_relog_flush, "crashes while that is flushed")                \
  X (crash_mark, "crashes while it marks what is missed")               \
  X (crash_place, "crashes while it writes in place")                   \
  X (crash_pages, "crashes while pages of moved rows are loaded")       \
  X (crash_list, "crashes while it lists what is lost")                 \
  X (crash_store, "crashes while it stores pages")                      \
  X (crash_place_flush, "crashes while that is flushed (in place)")     \
  X (crash_placed, "crashes before the rings begin anew")               \
  X (ring_wraps, "times that a ring wrapped before a crash")            \
  X (crash_live_degraded, "crashes with live transactions, degraded") \
  X (scrubs, "scrubs begun while clients were there")                   \
  X (scrubs_gone_on, "scrubs that a stop or crash interrupted")         \
  X (scrubs_unknown, "scrubs found where they were not seen")           \
  X (scrub_found, "scrubs at the end that found wrong blocks")

struct stats {
  uint64_t runs, sessions, crashes, refused, readonly, given_up;
  uint64_t requests, errors, lost_blocks;
#define SIM_STATE(name, what) uint64_t name;
  SIM_STATES (SIM_STATE)
#undef SIM_STATE
};

extern struct stats stats;

/* Of all runs so far.  states: the table too. */
extern void stats_report (double seconds, bool states);

#endif
