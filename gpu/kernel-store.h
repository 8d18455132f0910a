/* gpuraid: compiled kernels kept on disk.
 *
 * Safe with any number of processes.  Any failure just means that there is
 * nothing, and that it has to be compiled.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_KERNEL_STORE_H
#define GPURAID_KERNEL_STORE_H

#include <stddef.h>
#include <stdint.h>

struct kernel_store;

#define KERNEL_STORE_DEFAULT_LEN ((uint64_t) 256 << 20)

/* dir is made where it is missing; "": /var/cache/gpuraid for root, whatever
 * the environment says, and for others $XDG_CACHE_HOME/gpuraid, or
 * .cache/gpuraid in $HOME if that is their own.  Of the store's own files in
 * it the oldest go when they have more than max_len bytes; all other files
 * are left alone.  NULL, dir too: nothing is kept; a folder that can't be
 * used, is a symbolic link, or that others may write to, is reported, as a
 * notice.
 */
extern struct kernel_store *kernel_store_open (const char *dir,
                                               uint64_t max_len);
extern void kernel_store_close (struct kernel_store *);

/* What was put with this key: 0 and *code, which the caller frees; or -1.
 * NULL as a store has nothing.  One thread at a time.
 */
extern int kernel_store_get (struct kernel_store *, const void *key,
                             size_t key_len, void **code, size_t *len);
extern void kernel_store_put (struct kernel_store *, const void *key,
                              size_t key_len, const void *code, size_t len);
/* It is of no use. */
extern void kernel_store_remove (struct kernel_store *, const void *key,
                                 size_t key_len);

#endif
