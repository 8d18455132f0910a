/* gpuraid: write two superblock copies of one member, one after the
 * other: A1, flush, B1, flush, or A2, flush, B2, flush.  The first time
 * after opening B may have to be before A.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_SB_WRITE_H
#define GPURAID_SB_WRITE_H

#include "array/internal.h"

/* With the baton.  accepted: A2 and B2, else A1 and B1; the content is
 * what membership_fill gives now.  done is called with the baton; error
 * is 0 or a positive errno.
 */
extern void sb_write (struct array *a, struct seat *s, bool accepted,
                      bool clean,
                      void (*done) (struct array *a, struct seat *s,
                                    int error));

#endif
