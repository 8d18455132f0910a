/* gpuraid: a block device of this host, /dev/nbdN or /dev/loopN.
 *
 * Its number may be of another program's device later, so it has an id: what
 * /sys says of the device that it is.
 *
 * A device has a file system wherever that is mounted, in any name space, and
 * also where a process has a file of it open after umount -l.  No list of
 * mounts shows all of that.  So what decides that nothing uses a device is the
 * kernel's own count: it is told to detach it when it is closed for the last
 * time, and our own file is closed.
 *
 * One thread.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_ATTACH_BLOCK_H
#define GPURAID_ATTACH_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define BLOCK_NAME_LEN 32
#define BLOCK_ID_LEN 64
#define BLOCK_PATH_LEN (BLOCK_NAME_LEN + 8)

struct block {
  char name[BLOCK_NAME_LEN];   /* "nbd0" */
  char id[BLOCK_ID_LEN];
  int fd;                       /* to read; -1: closed */
};

/* Open the device of that name, and note its id if it is empty.  0, or -1 with
 * errno; ESTALE: it is another one now.
 */
extern int block_open (struct block *d);

/* Is it still that one?  It need not be open. */
extern bool block_is_there (const struct block *d);

/* "/dev/nbd0".  Returns buf. */
extern const char *block_path (const struct block *d,
                                char buf[BLOCK_PATH_LEN]);

/* Does this errno of block_open say that the device is detached? */
extern bool block_is_gone (int err);

/* Detach the device, which is open, if nothing else uses it.  1: it is
 * detached; 0: something uses it, and it stays as it is, open; -1: reported:
 * it stays as it is, or if it is not open any more (fd), it may be detached
 * when nothing uses it.
 */
extern int block_detach (struct block *d);

/* The number of nbdN, or of loopN. */
extern unsigned block_number (const struct block *d);

/* A loop device over a file, which is open; detached only by block_detach.
 * 0, open, or -1 reported.
 */
extern int block_make_loop (struct block *d, int file, bool readonly);

/* The size in bytes, or 0; and whether it can't be written.  It is open. */
extern uint64_t block_size (const struct block *d);
extern bool block_is_readonly (const struct block *d);

#endif
