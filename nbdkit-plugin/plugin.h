/* gpuraid: what the files of the plugin share.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_PLUGIN_H
#define GPURAID_PLUGIN_H

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include <stdbool.h>

#include "array/array.h"
#include "control/control.h"

/* The array, from .get_ready to .cleanup. */
extern struct array *plugin_array;
/* Its members use direct I/O: a client's read-ahead has no effect. */
extern bool plugin_direct;
/* no-space=wait: all clients wait for space. */
extern bool plugin_waits;

/* ---- log.c ----------------------------------------------------------- */

/* Send messages to nbdkit; notices to stderr. */
extern void log_to_nbdkit (void);
/* Before the fork: where they go later, the value of log=; NULL: as below.
 * 0, or -1 reported.
 */
extern int log_choose (const char *target);

/* After the fork: from now on a thread writes them, and no other waits for
 * stderr.  They go where log_choose says; without that notices go to syslog if
 * the fork made a daemon without a stderr.  0, or -1 reported.
 */
extern int log_start (void);
/* Wait until all is written; stderr may block a second longer.  No other thread
 * of ours runs any more.  Safe without log_start, and twice.
 */
extern void log_stop (void);

/* Would a message be written at once?  nbdkit's own are, by the caller. */
extern bool log_can_write (void);

/* Report an error in a callback for a client.  Uses nbdkit_error, because
 * nbdkit sends that to clients from 1.42 on; if stderr blocks, log_error.
 */
extern void log_to_client (const char *fmt, ...)
  __attribute__ ((format (printf, 1, 2)));

/* ---- log-file.c: messages in a file ----------------------------------- */

/* Before the fork: open it.  path: absolute, borrowed; NULL: there is none.  0,
 * or -1 reported.
 */
extern int log_file_open (const char *path);
/* After the fork: it is stderr from now on.  0, or -1 reported. */
extern int log_file_use (void);
extern bool log_file_is_used (void);
/* If it has become long, rename it, and begin another; after SIGHUP open it
 * again, by its name.  One thread.
 */
extern void log_file_tend (void);
/* What a line there begins with; "" without a file. */
#define LOG_TIME_LEN 32
extern void log_file_time (char text[LOG_TIME_LEN]);

/* ---- server.c: what nbdkit was told ---------------------------------- */

/* In .load: nbdkit changes its command line later. */
extern void server_read_options (void);
/* False: they could not be read. */
extern bool server_options_are_known (void);
/* Was nbdkit started with -r? */
extern bool server_is_readonly (void);
/* In .get_ready, before nbdkit makes the socket of -U: remove a dead one there.
 * 0, or -1 reported: it is used, or is no socket.
 */
extern int server_clear_socket (void);
/* The path of the socket of -U, if this process has made it; else NULL.
 * Borrowed.
 */
extern const char *server_socket (void);
/* Remove it. */
extern void server_remove_socket (void);
extern void server_free (void);

/* ---- resume.c: work goes on without a client --------------------------- */

/* After the fork.  0, or -1 reported. */
extern int resume_start (struct array *array);
/* Before the array is freed.  Safe without resume_start. */
extern void resume_stop (void);

/* ---- descriptors.c: how many files may be open ------------------------- */

/* Raise the limit as far as it may be.  Before the array is opened. */
extern void descriptors_raise (void);
/* Call it for each new connection: are enough left for all but clients?  If
 * not, it was reported, though not for each.  Any thread.
 */
extern bool descriptors_suffice (void);

/* ---- clients.c: the NBD connections ----------------------------------- */

extern void clients_opened (void);
extern void clients_closed (void);
extern unsigned clients_count (void);

/* Whose connections there are, as text: the address, or the program and its
 * process.  Returns how many, also of those that have not got as far as
 * clients_opened; there may be more than are named.
 */
extern unsigned clients_name (const char *control, struct control_clients *c);

/* Disconnect all clients, as if each had gone: what they ask for now ends, and
 * nbdkit closes their connections.
 *
 * control, here and above: the path of a listening socket that is not nbdkit's,
 * or NULL.
 */
extern void clients_disconnect (const char *control);

/* ---- stop.c: nbdkit is told to stop while clients are connected -------- */

/* After the fork.  A client has timeout_ns, UINT64_MAX: no end, to disconnect;
 * then disconnect is called, again and again.  control: borrowed until
 * stop_end.  0, or -1 reported.
 */
extern int stop_watch (struct array *array, uint64_t timeout_ns,
                       const char *control, void (*disconnect) (void));
/* A client connects. */
extern void stop_client_came (void);
/* Before the array is freed.  Safe without stop_watch. */
extern void stop_end (void);

/* ---- ready.c: from the keys to a running array ----------------------- */

extern int plugin_config (const char *key, const char *value);
extern int plugin_config_complete (void);
extern void plugin_load (void);
extern int plugin_get_ready (void);
extern int plugin_after_fork (void);
extern void plugin_cleanup (void);

extern void plugin_unload (void);

/* ---- requests.c: data ------------------------------------------------- */

/* A handle: what its connection may do.  Constant. */
struct client {
  bool may_write;
  bool writethrough;            /* each write is flushed before the answer */
  bool waits;                   /* a flush waits for space */
};

extern int plugin_pread (void *handle, void *buf, uint32_t count,
                         uint64_t offset, uint32_t flags);
extern int plugin_pwrite (void *handle, const void *buf, uint32_t count,
                          uint64_t offset, uint32_t flags);
extern int plugin_flush (void *handle, uint32_t flags);
extern int plugin_trim (void *handle, uint32_t count, uint64_t offset,
                        uint32_t flags);
extern int plugin_zero (void *handle, uint32_t count, uint64_t offset,
                        uint32_t flags);
extern int plugin_extents (void *handle, uint32_t count, uint64_t offset,
                           uint32_t flags, struct nbdkit_extents *extents);

#endif
