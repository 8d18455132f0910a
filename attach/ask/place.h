/* gpuraid: which state a server has, and which name a new one gets.
 *
 * With all states locked (state_lock_all), or only to say something.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_ATTACH_PLACE_H
#define GPURAID_ATTACH_PLACE_H

#include <stdbool.h>

#include "attach/request.h"
#include "attach/server/server.h"
#include "attach/state/state.h"

/* Find the live state of the server with that identity.  0, and s is it; the
 * caller frees it.  -1: there is none.
 */
extern int place_of_server (const char *rundir, const char *identity,
                            struct state *s);

/* That of a NAME, a device, or a link to one.  -1: reported. */
extern int place_of_name (const char *rundir, const char *text,
                          struct state *s);

/* One that was attached with the same URI, and the same name if there is one
 * now, but its owner was killed.
 */
extern int place_of_orphan (const struct attach_request *r, struct state *s);

/* With again: detach the server if it is not in use.  Without the lock. */
extern void place_again (const struct attach_request *r,
                         const struct server_export *e);

/* For a server that is to be attached.  0, and *adopt: it is attached, but its
 * owner was killed: s is to be taken; else name is that of its new state.  -1:
 * reported: it is attached already, or the name is taken.
 */
extern int place_new (const struct attach_request *r,
                      const struct server_export *e, struct state *s,
                      char name[STATE_NAME_LEN], bool *adopt);

#endif
