/* gpuraid: a file or disk, shared by file.c and file-open.c only.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_MEMBER_FILE_H
#define GPURAID_MEMBER_FILE_H

#include <sys/types.h>

#include "member/member.h"

/* Only the size changes after the open. */
struct file_member {
  struct member member;
  int fd;
  int backing;                  /* the file behind a loop device, for its lock;
                                 * or -1 */
  uint64_t backing_off;         /* bytes: where the device begins in it */
  _Atomic uint64_t size;        /* bytes; it only grows */
  bool disk;                    /* a block device */
  bool named;                   /* a file that had a name when opened */
  dev_t dev;                    /* which store: the device and inode of a */
  ino_t ino;                    /* file; of a disk its number, and 0 */
};

extern const struct member_ops file_member_ops;

/* How long a member that is in use is waited for; tests change it. */
extern unsigned file_used_wait_ms;

/* Open the file behind a loop device, or a partition of one, if it can be seen
 * from here.
 */
extern void file_open_backing (struct file_member *f);

/* Close and free; half-built ones and NULL too.  errno survives. */
extern void file_member_free (struct file_member *f);

#endif
