/* gpuraid: detach the device of a state.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "attach/state/link.h"
#include "attach/way/detach.h"
#include "attach/way/way.h"
#include "common/log.h"

/* The last try may have closed the device, and not opened it again: then it is
 * attached while something uses it.  False: that is not known, reported.
 */
static bool
know_device (struct state *s)
{
  if (s->device.fd >= 0 || !block_is_there (&s->device) ||
      block_open (&s->device) == 0 || block_is_gone (errno))
    return true;
  log_error ("/dev/%s: %m", s->device.name);
  return false;
}

int
detach_device (struct state *s, pid_t helper, char lost[STATE_TEXT_LEN])
{
  char what[BLOCK_NAME_LEN + 128];
  int r;

  lost[0] = '\0';
  if (!know_device (s))
    return -1;
  if (s->device.fd >= 0) {
    if (!s->kernel)
      fuse_look (s);
    if (fsync (s->device.fd) == -1) {
      snprintf (what, sizeof what, "/dev/%s: can't be flushed: %s",
                s->device.name, strerror (errno));
      state_note_lost (s, what);
    }
    r = block_detach (&s->device);
    if (r != 1)
      return r;
  }
  if (!s->kernel)
    fuse_end (s, helper);
  state_read_text (s, "lost", lost);
  link_remove (s);
  return 1;
}
