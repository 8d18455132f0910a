/* gpuraid: compiled kernels kept on disk.
 *
 * Safe with any number of processes.  After any failure the store is empty, and
 * kernels have to be compiled.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CHOICE_STORE_H
#define GPURAID_CHOICE_STORE_H

#include <stddef.h>
#include <stdint.h>

struct kernel_store;

#define KERNEL_STORE_DEFAULT_LEN ((uint64_t) 256 << 20)

/* dir is created if missing; "": /var/cache/gpuraid for root, whatever the
 * environment says, and for others $XDG_CACHE_HOME/gpuraid, or .cache/gpuraid
 * in $HOME if they own that.  When the store's own files exceed max_len bytes,
 * the oldest are deleted; all other files are left alone.  NULL, dir too:
 * nothing is kept.  A folder that can't be used, is a symbolic link, or that
 * others may write to, is reported, as a notice.
 */
extern struct kernel_store *kernel_store_open (const char *dir,
                                               uint64_t max_len);
extern void kernel_store_close (struct kernel_store *);

/* Get what was put with this key: 0 and *code, which the caller frees; or -1.
 * A store that is NULL is empty.  One thread at a time.
 */
extern int kernel_store_get (struct kernel_store *, const void *key,
                             size_t key_len, void **code, size_t *len);
extern void kernel_store_put (struct kernel_store *, const void *key,
                              size_t key_len, const void *code, size_t len);
/* Delete it: it is of no use. */
extern void kernel_store_remove (struct kernel_store *, const void *key,
                                 size_t key_len);

#endif
