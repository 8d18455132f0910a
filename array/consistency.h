/* gpuraid: what is done so that a crash loses nothing that was promised.
 *
 * A kind of consistency answers four questions.  Nothing else in array/
 * asks which kind it is.
 *
 * With the array lock held, all of these.  What returns false puts w on a
 * list, and is to be called again when w is run.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CONSISTENCY_H
#define GPURAID_CONSISTENCY_H

#include "array/internal.h"

struct consistency_ops {
  const char *name;

  /* Before the first write to bytes [pos, pos + len) of the members' data:
   * is it durable that they may be wrong, or missed by a slot that is not
   * active?  begin and end count those that write there, from before the
   * question until all has been written.
   */
  void (*begin) (struct array *a, uint64_t pos, uint64_t len);
  bool (*is_marked) (struct array *a, uint64_t pos, uint64_t len,
                     struct waiter *w);
  void (*end) (struct array *a, uint64_t pos, uint64_t len);

  /* After the coder: write what the operation has been given and has made.
   * It goes on when its pending transfers have ended.
   */
  void (*write) (struct array *a, struct op *op);

  /* What a flush waits for, once its tickets have ended: w is run when all
   * that they covered is durable, or the array has failed.
   */
  void (*flush) (struct array *a, struct waiter *w);

  /* Is what must be settled before a member leaves, or before this one
   * joins, durable?
   */
  bool (*may_leave) (struct array *a, struct waiter *w);
  bool (*may_join) (struct array *a, struct seat *s, struct waiter *w);
};

/* consistency=none: dirty bits, and a resync after an unclean start. */
extern const struct consistency_ops consistency_none;

#endif
