/* gpuraid: is there anything on a member?
 *
 * Blank means no superblock of ours in any place, and no signature of
 * something else that libblkid knows.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_BLANK_H
#define GPURAID_BLANK_H

#include "member/member.h"

#define BLANK_WHY_LEN 256

/* 1: blank.  0: not, and why says in a few words what was found, to go
 * after the name of the member.  -1: can't tell, and why says so.
 */
extern int member_is_blank (struct member *m, char *why);

/* 1: some place has a superblock of ours, sound or not; 0: none has; -1:
 * why says that it can't be read.
 */
extern int member_has_superblock (struct member *m, char *why);

/* Remove the signatures of others, as wipefs does.  0, or -1 reported. */
extern int member_wipe_signatures (struct member *m);

#endif
