/* gpuraid: threads that submit jobs for a thread that has no time to.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_AUTO_HAND_H
#define GPURAID_AUTO_HAND_H

#include "gf/coder.h"

struct auto_hand;

/* NULL: reported. */
extern struct auto_hand *auto_hand_start (struct coder *to);
/* No job may be under way.  NULL is nothing. */
extern void auto_hand_stop (struct auto_hand *);
/* Submit job to the coder, soon. */
extern void auto_hand_over (struct auto_hand *, struct coder_job *job);

#endif
