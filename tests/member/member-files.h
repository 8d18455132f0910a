/* gpuraid: tests: files to open as members, on tmpfs and on the file system
 * of /var/tmp.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TEST_MEMBER_FILES_H
#define GPURAID_TEST_MEMBER_FILES_H

#include "common/bits.h"
#include "member/io.h"

#define SIZE (4 * MIB)

extern char dirs[2][64];        /* [0] on tmpfs, [1] on a disk */
/* For a group: these two. */
extern int make_dirs (void **state);
extern int remove_dirs (void **state);

/* A file of SIZE bytes in dir at path, and none at path2. */
extern char path[128], path2[128];
extern void new_file (const char *dir);

/* Opens without a message about errors. */
extern struct member *open_ok (const char *name, unsigned flags,
                               uint64_t size);
/* Fails with this errno, and exactly this number of messages. */
extern void open_fails (const char *name, unsigned flags, uint64_t size,
                        int err, int nr);

extern int file_errors;         /* messages, since the last of these */
extern int file_notices;        /* since the test set it to 0 */

/* Have the member do it at once, through its submit: the error. */
extern int submit_io (struct member *m, enum io_kind kind, uint64_t off,
                      struct iovec *iov, unsigned nr_iov, uint64_t len);

#endif
