/* gpuraid: how a crash is kept from losing acknowledged data.
 *
 * The rest of array/ depends on the kind of consistency only through these
 * functions.
 *
 * Call all of these with the array lock held.  A function with a w that
 * returns false has put it on a list: call it again when w is run.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_ENGINE_CONSISTENCY_H
#define GPURAID_ENGINE_CONSISTENCY_H

#include "array/engine/shared.h"

struct logged;

struct consistency_ops {
  const char *name;

  /* Before the first write to bytes [pos, pos + len) of the members' data:
   * is_marked is true if it is durable that they may be wrong, or missed by a
   * slot that is not active.  begin and end count the writers there, from
   * before is_marked until all has been written.
   */
  void (*begin) (struct array *a, uint64_t pos, uint64_t len);
  bool (*is_marked) (struct array *a, uint64_t pos, uint64_t len,
                     struct waiter *w);
  void (*end) (struct array *a, uint64_t pos, uint64_t len);

  /* After the coder: write an operation (array/ops/logged.h).  written is
   * called when all is in place.
   */
  bool wants_crc;               /* the coder makes the crc of each block */
  void (*write) (struct array *a, struct logged *lg);
  void (*written) (struct array *a, struct logged *lg);

  /* What a flush waits for after its tickets: w is run when all data that
   * they covered is durable, or the array has failed.
   */
  void (*flush) (struct array *a, struct waiter *w);

  /* True if what is needed before the first record of the session, before a
   * member leaves, or before this one joins, is durable.
   */
  bool (*may_open) (struct array *a, struct waiter *w);
  bool (*may_leave) (struct array *a, struct waiter *w);
  bool (*may_join) (struct array *a, struct seat *s, struct waiter *w);
  /* May the targets that are complete become active?  Asked in each turn. */
  bool (*may_activate) (struct array *a);
  /* Nothing is under way: begin what is recorded anew on all active members and
   * this one (or NULL); and is that durable?  Asked in each turn until it is.
   */
  void (*begin_anew) (struct array *a, struct seat *also);
  bool (*has_begun) (struct array *a);

  /* May this region count as closed: is all durable that is believed then?  If
   * not, it will be soon.
   */
  bool (*may_close) (struct array *a, uint64_t region);

  /* In each turn of the main loop: start what can be started. */
  void (*turn) (struct array *a);
  /* May rows be written, repaired and copied?  Not before a recovery is over.
   */
  bool (*is_ready) (const struct array *a);
  /* Does what is to be written wait until other writes are in place? */
  bool (*is_stuck) (const struct array *a);
  /* May this operation end unwritten, since its line is to be zeroed? */
  bool (*gives_way) (const struct array *a, const struct logged *lg);
  /* Called periodically while something waits for space. */
  void (*no_space) (struct array *a);
  /* Is nothing under way, so that the array may stop? */
  bool (*is_idle) (const struct array *a);
};

/* consistency=none: dirty bits, and a resync after an unclean start. */
extern const struct consistency_ops consistency_none;

#endif
