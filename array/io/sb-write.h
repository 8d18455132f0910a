/* gpuraid: write superblock copies of one member, one after the other:
 * A1, flush, B1, flush, or A2, flush, B2, flush, or all of that.  The
 * first time after opening B may have to be before A.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_SB_WRITE_H
#define GPURAID_SB_WRITE_H

#include "array/io/store.h"

enum sb_pairs {
  SB_PROPOSED = 1,              /* A1 and B1 */
  SB_ACCEPTED = 2,              /* A2 and B2 */
  SB_BOTH = 3,                  /* A1 and B1, then A2 and B2 */
};

/* With the array lock held.  The content comes from membership_fill at the
 * time of the call.  done is as in array/io/store.h, and calls sb_written
 * first.
 */
extern void sb_write (struct array *a, struct seat *s, enum sb_pairs pairs,
                      bool clean,
                      void (*done) (struct array *a, struct store *st));
extern void sb_written (struct array *a, struct store *st);

#endif
