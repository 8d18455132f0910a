/* gpuraid: choose the members of the array, for config_complete.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CHOOSE_H
#define GPURAID_CHOOSE_H

#include "array/config/config.h"

/* Add what the globs find to the members.  A second name of one file or disk is
 * left out.
 *
 * With uuid=, leave members of other arrays out, so that they are neither
 * locked nor opened, and say so in one notice.  What a glob finds is also left
 * out if it is no member of any array, or can't be read: that this user may not
 * is one more notice.  What can't be read stays if it was named.
 *
 * 0, or -1 reported.
 */
extern int config_choose_members (struct config *c);

#endif
