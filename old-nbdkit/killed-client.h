/* gpuraid: nbdkit 1.32.4 to 1.33.11, and clients that are killed.
 *
 * There a connection that has ended sets its socket to -1, while other threads
 * may still wait to send a reply.  They then fail an assertion, which ends the
 * process, for every client.  With TLS they send while the session says
 * goodbye in another thread.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_OLD_NBDKIT_KILLED_CLIENT_H
#define GPURAID_OLD_NBDKIT_KILLED_CLIENT_H

#include <stdbool.h>

/* version: "1.32.5".  Does a killed client end this nbdkit?  False if it is not
 * a version.  Pure.
 */
extern bool killed_client_ends (const char *version);

/* In .get_ready, before there are connections: if this process is such an
 * nbdkit, see to it that it lives on; if that can't be done, say so in one
 * notice.  Touches nothing in any other process.
 */
extern void killed_client_survive (void);

#endif
