/* gpuraid: an NBD server, as the kernel needs it: a connection that has ended
 * the handshake, and what the server said about its export.
 *
 * libnbd makes the connection.  A server that starts makes its socket before it
 * listens there, so there are tries; and one that is not an NBD server may
 * never say a word, so each has a limit.
 *
 * One thread.  Nothing here blocks, except server_reach, and the look-up of a
 * host's name.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_ATTACH_SERVER_H
#define GPURAID_ATTACH_SERVER_H

#include <stdbool.h>
#include <stdint.h>

/* Exports of gpuraid, with which users never see that members have no space: a
 * write is flushed when it is answered; or as with the export without a name.
 */
#define SERVER_WRITETHROUGH "writethrough"
#define SERVER_WAIT "wait"

/* The description of an export of gpuraid: a uuid follows. */
#define SERVER_ARRAY "gpuraid array "

#define SERVER_WHY_LEN 256

struct server_export {
  uint64_t size;                /* bytes */
  uint32_t block;               /* bytes of the smallest request, from 512 on */
  uint16_t flags;               /* NBD_FLAG_* of the protocol */
  bool tls;
  char name[256];               /* that was asked for */
  char what[256];               /* its description; may be empty */
  char address[256];            /* the same for each name of one server */
};

/* A try to connect.  uri: borrowed until the end.  export: its name is asked
 * for; NULL: that of the URI, or where that has none and gpuraid offers it,
 * better.  NULL: reported.
 */
struct server_try;
extern struct server_try *server_begin (const char *uri, const char *export,
                                        const char *better);

/* What to poll for. */
extern int server_fd (const struct server_try *t);
extern short server_events (const struct server_try *t);

/* Go on; revents may be 0.  1: connected; 0: not yet; -1: failed, and why has a
 * line that says so.  After a time it fails.
 */
extern int server_go (struct server_try *t, short revents,
                      char why[SERVER_WHY_LEN]);

/* After 1: what the server said; the socket, which the caller owns; with
 * keep false -1, and the connection is closed in a proper way.
 */
extern int server_end (struct server_try *t, struct server_export *e,
                       bool keep);

/* At any other time. */
extern void server_abandon (struct server_try *t);

/* All of it at once, trying for some seconds while nothing listens.  As
 * server_end, or -1 with why.
 */
extern int server_reach (const char *uri, const char *better,
                         unsigned seconds, bool keep, struct server_export *e,
                         char why[SERVER_WHY_LEN]);

/* What is known of an export that was attached before: what it is compared with
 * when the server is there again.
 */
extern void server_known (struct server_export *e, uint64_t size, bool readonly,
                          const char *name, const char *what);

/* What one array is served as has the same text, whatever the address; so has
 * another server by each of its names.  Borrowed from e.
 */
extern const char *server_identity (const struct server_export *e);

/* NULL if what answers now may be what it was before, which may have grown;
 * else why not.
 */
extern const char *server_another (const struct server_export *before,
                                   const struct server_export *now,
                                   char why[SERVER_WHY_LEN]);

#endif
