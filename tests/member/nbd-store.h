/* gpuraid: tests: an NBD server that loses what was not flushed, and a member
 * that is its export.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TEST_NBD_STORE_H
#define GPURAID_TEST_NBD_STORE_H

#include "member/member.h"

/* In a folder of its own (tests/scratch.h), which must be the current one: the
 * file "disk" of that size.  nbd_store_uri is its URI.  The test is skipped
 * where there is no such server.
 */
extern void nbd_store_new (uint64_t size);
extern const char *nbd_store_uri;
/* Is it multi-conn, from the next start on? */
extern bool nbd_store_multi_conn;
/* --filter=... and up to three parameters of it, from the next start on; or
 * NULL.
 */
extern const char *nbd_store_filter[4];
/* Start the server, or start it again: what was flushed is there. */
extern void nbd_store_start (void);
/* SIGKILL: its memory is gone. */
extern void nbd_store_kill (void);
extern void nbd_store_signal (int sig);
/* A line to the control socket of volatile-plugin.c. */
extern void nbd_store_control (const char *line);
/* Kill it if it runs. */
extern void nbd_store_end (void);

/* One I/O and its end. */
struct nbd_io {
  struct io io;
  struct iovec iov[4];
  atomic_bool ended;
};
/* Submit; buf is for len bytes, in nr pieces. */
extern void nbd_io_start (struct nbd_io *w, struct loop *l, struct member *m,
                          enum io_kind kind, void *buf, uint64_t len,
                          uint64_t off, unsigned nr);
/* Wait at most 60 seconds.  Its error. */
extern int nbd_io_wait (struct nbd_io *w);

#endif
