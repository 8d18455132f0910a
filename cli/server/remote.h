/* gpuraid: shared by the subcommands for a running array.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CLI_REMOTE_H
#define GPURAID_CLI_REMOTE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <json-c/json.h>

#include "control/client.h"

/* What may be said of a new member. */
struct new_flags {
  bool force, any_room;
};

/* Read the arguments of a subcommand that has nr of them and at most
 * these flags (NULL: none).  Returns the place in argv of the first; 0 if they
 * are not right: return CLI_USAGE then.
 */
extern int remote_args (int argc, char **argv, int nr, struct new_flags *f);

/* A request; the caller frees it with json_object_put. */
extern struct json_object *remote_request (const char *command);
extern void remote_add (struct json_object *request, const char *key,
                        const char *text);

/* Of a replace or spare: the new member. */
extern void remote_add_new (struct json_object *request, const char *name,
                            const struct new_flags *f);

/* The array's status; the caller frees it.  NULL: reported, except that the
 * server has gone if not report_gone.
 */
extern struct json_object *remote_status (struct control_client *c,
                                          bool report_gone);

/* Send a request that changes something, and free it.  Returns an exit status;
 * errors are reported.
 */
extern int remote_change (struct control_client *c,
                          struct json_object *request);

/* Convert arg, a member named by the user, to the server's name: a slot number
 * stays; else a path, of one of the array's members if arg is any name of it.
 * The caller frees it.  NULL: reported.
 */
extern char *remote_member (struct control_client *c, const char *arg);

/* Convert arg, a new member, to the server's name: a path, and a file that a
 * URI names, made absolute.  The caller frees it.  NULL: reported.
 */
extern char *remote_new_name (const char *arg);

/* Get a value from a reply.  If it is missing or of another type the result is
 * 0, NULL or false: another version may have answered.
 */
extern struct json_object *get_object (struct json_object *o, const char *key);
extern uint64_t get_u64 (struct json_object *o, const char *key);
extern const char *get_text (struct json_object *o, const char *key);
extern bool get_bool (struct json_object *o, const char *key);

/* Of what may be no list: the number of entries, and one, borrowed.  0, NULL:
 * it is none, or has fewer.
 */
extern size_t list_len (struct json_object *list);
extern struct json_object *list_at (struct json_object *list, size_t i);

/* The members in a status, likewise. */
extern size_t nr_members (struct json_object *status);
extern struct json_object *member_at (struct json_object *status, size_t i);

#endif
