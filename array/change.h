/* gpuraid: carry out changes of the membership record.
 *
 * array/membership.h decides what the next record is and when it is in
 * force; this writes the copies and holds up those who must wait.  One
 * change at a time.
 *
 * With the array lock held, all of these.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CHANGE_H
#define GPURAID_CHANGE_H

#include "array/internal.h"

struct request;

/* A seat is failing: a record without it is wanted. */
extern void change_request (struct array *a);

/* While a change is under way or wanted nothing is acknowledged and nothing
 * begins to write.  (When the array has failed neither matters any more.)
 * False: not over; w, if not NULL, is run when it is.
 */
static inline bool
change_is_over (struct array *a, struct waiter *w)
{
  if (a->failed || (a->change == NULL && !a->change_wanted))
    return true;
  if (w)
    list_move (&a->change_waiters, &w->link);
  return false;
}

/* May something begin to write to the members? */
static inline bool
array_may_write (const struct array *a)
{
  return a->writable && !a->failed && a->change == NULL && !a->change_wanted;
}

/* Start what is wanted, if nothing is under way: called when something
 * may have changed.
 */
extern void change_decide (struct array *a);

/* Write the device table anew with the record in force (a rebuild's
 * cursor moved, a clean stop).  Skipped while a change is under way; w,
 * if not NULL, is run when done.
 */
extern void change_save (struct array *a, bool clean, struct waiter *w);

/* Commands, with a request whose phase is R_CHANGE; the request is woken
 * when the change is in force or refused.
 */
extern void change_command (struct array *a, struct request *r);

#endif
