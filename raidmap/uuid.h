/* gpuraid: uuids as text, and which of some is the most frequent.
 *
 * Pure.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_RAIDMAP_UUID_H
#define GPURAID_RAIDMAP_UUID_H

#include <stdbool.h>
#include <string.h>

#include "raidmap/superblock.h"

static inline bool
uuid_equal (const uuid_bytes *a, const uuid_bytes *b)
{
  return memcmp (a->b, b->b, sizeof a->b) == 0;
}

/* "01234567-89ab-...", 36 characters and a NUL.  Returns buf. */
#define UUID_TEXT_LEN 37u
extern char *uuid_text (const uuid_bytes *uuid, char buf[UUID_TEXT_LEN]);

/* The other way, of either case.  0, or -1 not reported. */
extern int uuid_parse (const char *text, uuid_bytes *uuid);

/* Likewise of any text: its digits in lower case, in order, and zeroes where
 * there are too few.
 */
extern void uuid_scan (const char *text, uuid_bytes *uuid);

/* The one of which there are more than of any other.  False: there is none. */
extern bool uuid_most (const uuid_bytes *u, unsigned nr, uuid_bytes *most);

#endif
