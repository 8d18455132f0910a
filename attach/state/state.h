/* gpuraid: the state of an attached server: RUNDIR/attached/NAME/
 *
 *   lock      locked by the process that owns the device, from attach to detach
 *   control   its socket, see ask.h
 *   server    what server_identity says
 *   uri       that it was attached with
 *   export    its name, that the server was asked for
 *   what      its description
 *   how       kernel or fuse
 *   device    /dev/nbd0, or /dev/loop0
 *   id        that it is still this device, see block.h
 *   pid       the process of nbdfuse, which has locked the file helper
 *   log-from  the number of the last line in the kernel's log before it
 *   lost      a line: what was written and is lost; not there if nothing is
 *   fuse/     where nbdfuse is mounted until the device is made
 *   log       the messages of the owner, and of nbdfuse
 *   mountpoint   where it is mounted; locked while scripts/mount unmounts it
 *
 * RUNDIR/attached.lock is locked while these folders are looked at, made and
 * removed.  A state whose owner was killed stays, so that another process can
 * go on with the device, or detach it.  So does one with something lost that
 * was not told: the next to detach it, or to attach a server of that name, says
 * so.
 *
 * A process has at most one state open at a time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_ATTACH_STATE_H
#define GPURAID_ATTACH_STATE_H

#include <stdbool.h>
#include <stddef.h>

#include "attach/device/block.h"

#define STATE_NAME_LEN 65
#define STATE_TEXT_LEN 4096

struct state {
  char *dir;                    /* its folder */
  char name[STATE_NAME_LEN];
  bool kernel;                  /* how: the kernel's driver, not nbdfuse */
  struct block device;         /* closed; without a name: there is none yet */
};

/* Lock what this is about.  rundir need not exist.  A descriptor that is closed
 * to unlock it, or -1 reported.
 */
extern int state_lock_all (const char *rundir);

/* Read the state of that name.  0; -1 with errno, ENOENT: there is none.  The
 * caller calls state_free, also after -1.
 */
extern int state_read (struct state *s, const char *rundir, const char *name);
extern void state_free (struct state *s);

/* The names of all, and the number; the caller frees each and the list.  NULL:
 * reported.
 */
extern char **state_list (const char *rundir, unsigned *nr);

/* Is the owner alive?  Or nbdfuse?  Does scripts/mount unmount it just now,
 * which locks the file mountpoint?
 */
extern bool state_has_owner (const struct state *s);
extern bool state_has_helper (const struct state *s);
extern bool state_is_unmounted (const struct state *s);

/* Alive: has an owner, or a device that is still there, or nbdfuse. */
extern bool state_is_live (const struct state *s);

/* Make a new one, all locked, with the owner's lock, which is returned: this
 * process is the owner until it closes that.  -1: reported.
 */
extern int state_make (struct state *s, const char *rundir, const char *name,
                       bool kernel);

/* Become the owner of one whose owner was killed.  -1 with errno. */
extern int state_take (const struct state *s);

/* Remove it: it is detached.  0, or -1 reported.  Its name is free at once. */
extern int state_remove (const struct state *s);

/* A file in the folder; path: PATH_MAX. */
extern char *state_path (const struct state *s, const char *file, char *path);

/* Write a line, at once or not at all; or read it, without its newline, empty
 * if there is none.  Write: 0, or -1 reported.
 */
extern int state_write (const struct state *s, const char *file,
                        const char *text);
extern void state_read_text (const struct state *s, const char *file,
                             char buf[STATE_TEXT_LEN]);

/* Note the device as soon as it is there: from then on it is found if this
 * process is killed.  0, or -1 reported.
 */
extern int state_note_device (const struct state *s);

/* Note what is lost, once, with the time.  Any thread. */
extern void state_note_lost (struct state *s, const char *what);

#endif
