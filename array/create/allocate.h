/* gpuraid: space on file systems for what a new member always has allocated.
 *
 * That is the superblock's copies, ring, table and bitmap; with allocate=yes
 * all of the file.  It is asked for, and then taken, before anything is
 * written, so that a command that there is no room for leaves files as they
 * were.  Disks, NBD exports, and file systems that don't say what is free or
 * can't allocate, are left alone.
 *
 * Any thread; synchronous calls, which may wait for the store.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CREATE_ALLOCATE_H
#define GPURAID_CREATE_ALLOCATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "member/member.h"
#include "raidmap/layout/layout.h"

struct alloc_range {
  uint64_t off, len;            /* bytes */
};

/* What an array allocates of each of its members. */
struct allocation {
  const struct member_layout *l;        /* borrowed */
  bool whole;                   /* allocate=yes */
  uint64_t data;                /* bytes that a member will have allocated at
                                 * least, soon; 0: unknown */
};

struct alloc_member {
  const char *path;             /* borrowed */
  struct member *m;             /* NULL: it is not there yet */
  uint64_t size;                /* bytes that it has, or gets */
};

struct alloc_short {
  const char *path;             /* a member on that file system */
  unsigned nr;                  /* members on it that need room */
  uint64_t need, has;           /* bytes */
};

/* Is there room for these members?  False: s says on which file system there
 * is too little.
 */
extern bool alloc_ask (const struct allocation *r,
                       const struct alloc_member *member, unsigned nr,
                       struct alloc_short *s);

/* What was taken of one member.  Zeroes: nothing. */
struct alloc_taken {
  int fd;                       /* a duplicate, which has the member's lock */
  struct alloc_range *hole;      /* was in no use before; owned */
  unsigned nr;
};

/* Allocate it.  0, or an errno (ENOSPC, EDQUOT, ENOMEM); call one of the next
 * two in any case.
 */
extern int alloc_take (const struct allocation *r, struct member *m,
                       struct alloc_taken *t);
/* It is used. */
extern void alloc_keep (struct alloc_taken *t);
/* The member is not used: what was in no use before is not any more, and reads
 * as zeroes.
 */
extern void alloc_give_back (struct alloc_taken *t);

#endif
