/* gpuraid: the control socket, server side.
 *
 * Binds the Unix socket, accepts clients, reads their requests and answers
 * them: docs/control-protocol.md has the messages.  The caller gives a table of
 * operations for the commands, so that a test can run the server on a fake
 * array; control_array below is the table for a real one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CONTROL_H
#define GPURAID_CONTROL_H

#include <stdbool.h>

#include "array/array.h"

/* Of a new member. */
#define CONTROL_FORCE 1u        /* also a new member that is not blank */
#define CONTROL_ANY_ROOM 2u     /* what its file system says that it has free
                                 * is not asked */

/* The NBD clients. */
#define CONTROL_MAX_NAMED 8u
#define CONTROL_NAME_LEN 80u
struct control_clients {
  unsigned connections;
  uint64_t stop_timeout_ns;     /* a stop waits so long for them; UINT64_MAX:
                                 * without an end */
  unsigned nr_named;            /* of them; also those that are no connections
                                 * yet, as they have not said what they want */
  char name[CONTROL_MAX_NAMED][CONTROL_NAME_LEN];
};

/* What the server does for its clients.  Called from several threads at once,
 * with no lock held; may block.  Those that return int return 0 or a positive
 * errno, and why then has one line, without a newline, for the user of the
 * command; an empty why means strerror.
 */
struct control_ops {
  void (*status) (void *opaque, struct array_status *st);
  void (*status_free) (struct array_status *st);
  /* which: a slot number in decimal, or an absolute path.  *already: it was out
   * before.
   */
  int (*fail) (void *opaque, const char *which, bool *already,
               char why[ARRAY_WHY_LEN]);
  /* path: the new member, absolute or a URI.  flags: CONTROL_FORCE ... */
  int (*replace) (void *opaque, const char *which, const char *path,
                  unsigned flags, char why[ARRAY_WHY_LEN]);
  int (*spare) (void *opaque, const char *path, unsigned flags,
                char why[ARRAY_WHY_LEN]);
  /* One more member, for data or parity.  For data path may be a spare. */
  int (*add) (void *opaque, bool data, const char *path, unsigned flags,
              char why[ARRAY_WHY_LEN]);
  int (*shape_control) (void *opaque, bool data,
                        enum array_shape_command command,
                        char why[ARRAY_WHY_LEN]);
  /* *full: it is rebuilt in full. */
  int (*readd) (void *opaque, const char *which, bool *full,
                char why[ARRAY_WHY_LEN]);
  int (*scrub_start) (void *opaque, bool repair, char why[ARRAY_WHY_LEN]);
  int (*scrub_control) (void *opaque, enum array_scrub_command command,
                        char why[ARRAY_WHY_LEN]);
  int (*rebuild_pause) (void *opaque, bool pause, char why[ARRAY_WHY_LEN]);
  void (*rate) (void *opaque, uint64_t limit);
  /* As array_wait: cancelled (wait_opaque) is true once the client has
   * gone or the server stops.
   */
  int (*wait) (void *opaque, bool *healthy, char failed[ARRAY_WHY_LEN],
               bool (*cancelled) (void *wait_opaque), void *wait_opaque);
  /* As array_grow; cancelled as for wait. */
  int (*grow) (void *opaque, struct array_growth *growth,
               bool (*cancelled) (void *wait_opaque), void *wait_opaque,
               char why[ARRAY_WHY_LEN]);
  void (*clients) (void *opaque, struct control_clients *c);
  /* Begin to end the server, which calls control_stop then.  force: although
   * clients are connected; disconnect is then called until control_stop is.
   */
  int (*stop) (void *opaque, bool force, char why[ARRAY_WHY_LEN]);
  void (*disconnect) (void *opaque);
};

struct control;

/* Before the fork (in .get_ready): make the socket at path (absolute), mode
 * 0600, and listen.  Makes no thread; clients that connect now wait until
 * control_start.  A stale socket there, on which no process listens, is
 * replaced; one that answers, and any file that is no socket, is refused.
 * NULL: reported in one line.
 */
extern struct control *control_bind (const char *path);

/* After the fork (in .after_fork, once the array is started): serve.  ops and
 * opaque are borrowed until control_stop.  0, or -1 reported; control_stop must
 * be called either way.
 */
extern int control_start (struct control *c, const struct control_ops *ops,
                          void *opaque);

/* How long clients have to read their last reply when we stop, in seconds; for
 * tests.
 */
extern unsigned control_last_s;

/* Cancel waits, let other commands end, drop the clients, join all threads,
 * remove the socket (if it is still ours), free c.  Call it while the array
 * still exists: in .cleanup, or in .unload if start never happened.  Safe on
 * NULL and without control_start.
 */
extern void control_stop (struct control *c);

/* The clients that asked for the stop. */
#define CONTROL_MAX_SESSIONS 32
struct control_last {
  unsigned nr;
  int fd[CONTROL_MAX_SESSIONS];
};

/* As control_stop, but these clients stay connected.  last->nr may be 0. */
extern void control_stop_last (struct control *c, struct control_last *last);

/* The last thing that the server does: tell them that it has stopped, and
 * whether everything was written out.  They stay connected until the process
 * has ended, which tells them that.
 */
extern void control_answer_last (struct control_last *last, bool written_out);

/* ---- the operations on a real array --------------------------------- */

/* Pass &control_array_ops and a struct control_array to control_start.  It is
 * only read, and must live until control_stop.
 *
 * What changes something is refused first if the array is read-only, with the
 * reason.  fail and replace then check whether the member exists.  replace,
 * spare and add then open the new member if its path exists, and refuse one
 * that is too small, one that the array uses, and, unless forced, one that is
 * not blank.
 * Only then they call array_make_writable, so that a mistyped command has
 * changed nothing.  A path that does not exist is created, of length
 * array_member_size, and removed if the array refuses it.  readd opens the
 * member unless the array has it open from its start.
 */
struct control_array {
  struct array *array;
  /* Open name with the MEMBER_* flags, as member_open does. */
  struct member *(*open) (const char *name, unsigned flags, uint64_t size);
  /* 1: blank, no signature on it; 0: not blank, and why says what was found, to
   * be printed after the name; -1: unknown, and why says why.
   */
  int (*blank) (struct member *m, char why[ARRAY_WHY_LEN]);
  /* The NBD server, see control_ops. */
  void (*clients) (struct control_clients *c);
  void (*shut_down) (void);
  void (*disconnect) (void);
};

extern const struct control_ops control_array_ops;
/* How long readd, replace, spare and add wait for I/O to a member that is out;
 * tests change it.
 */
extern unsigned control_closing_ms;

#endif
