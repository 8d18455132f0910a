/* gpuraid: check that a member is blank.
 *
 * Blank means no superblock of ours in any place, and no signature that
 * libblkid knows.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_BLANK_H
#define GPURAID_BLANK_H

#include "member/member.h"

#define BLANK_WHY_LEN 256

/* 1 if blank.  0 if not, and why says briefly what was found, to follow the
 * name of the member.  -1 if unknown, with the reason in why.
 */
extern int member_is_blank (struct member *m, char *why);

/* 1 if some place has a superblock of ours, sound or not; 0 if none has; -1
 * if one can't be read, with the reason in why.
 */
extern int member_has_superblock (struct member *m, char *why);

/* Remove foreign signatures, as wipefs does.  0, or -1 reported. */
extern int member_wipe_signatures (struct member *m);

#endif
