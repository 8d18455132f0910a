/* gpuraid: arrays by NAME: the folder of their sockets.
 *
 * RUNDIR is /run/gpuraid for root, and $XDG_RUNTIME_DIR/gpuraid for others.
 * The array NAME has two sockets there: NAME.sock for NBD, and NAME.control;
 * and, without a syslog, NAME.log.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CLI_NAMES_H
#define GPURAID_CLI_NAMES_H

#include <stdbool.h>

#include "control/client.h"

#define NAMES_CONTROL ".control"
#define NAMES_NBD ".sock"
#define NAMES_LOG ".log"

/* RUNDIR, which need not exist; the caller frees it.  NULL: reported. */
extern char *names_rundir (void);

/* That of root, for any user; a test may have another. */
#define NAMES_ROOT_RUNDIR "/run/gpuraid"
extern const char *names_root_rundir (void);

/* Make RUNDIR if it is not there.  0, or -1 reported. */
extern int names_make_rundir (void);

/* Is it a NAME?  If not, that is reported. */
extern bool names_check (const char *name);

/* RUNDIR/NAME.control, or that with another suffix; the caller frees it.  NULL:
 * reported; also if name is no NAME, or the path is too long for a socket.
 */
extern char *names_socket (const char *name, const char *suffix);

/* The NBD URI of the socket at this path; the caller frees it.  NULL: reported.
 */
extern char *names_uri (const char *path);

/* The names in RUNDIR that have a control socket, in order; nr of them, and the
 * caller frees each and the list.  Where there is no RUNDIR there are none.
 * NULL: reported.
 */
extern char **names_list (unsigned *nr);

enum socket_state {
  SOCKET_NONE,                  /* nothing is there */
  SOCKET_ALIVE,                 /* a server listens */
  SOCKET_DEAD,                  /* its server has gone */
  SOCKET_UNKNOWN,               /* errno: ENOTSOCK, EACCES, ... */
};

/* Reports nothing. */
extern enum socket_state names_state (const char *path);

/* Remove the socket if it is dead.  As names_state before it was removed;
 * SOCKET_UNKNOWN is reported.
 */
extern enum socket_state names_remove_dead (const char *path);

/* Connect to CONTROL: the path of a socket, or a NAME, which has no slash.
 * seconds: as for control_connect.  NULL: reported.
 */
extern struct control_client *names_connect (const char *control,
                                             unsigned seconds);

/* Read the file of the array's keys; complete: and choose the members.  Reports
 * nothing: what is wrong in it is for the server to say, at the start.  False:
 * there was something.  In any case config_free is for the caller.
 */
struct config;
extern bool names_read_config (const char *name, bool complete,
                               struct config *c);

/* After a command has given the array named likewise a new member: say so if
 * the file of its keys does not name that, because the next start then opens
 * the array without it.  path: absolute.
 */
extern void names_remind (const char *control, const char *path);

/* The status of a running array, named likewise; the caller frees it.  NULL:
 * reported; also if it does not answer within ten seconds.
 */
extern struct json_object *names_status (const char *control);

#endif
