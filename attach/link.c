/* gpuraid: /dev/gpuraid/NAME.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attach/link.h"
#include "attach/state.h"
#include "common/log.h"

#define PATH_LEN (sizeof LINK_FOLDER + STATE_NAME_LEN + 8)

int
link_make (const struct state *s)
{
  char path[PATH_LEN], new[PATH_LEN], target[BLOCK_NAME_LEN + 4];

  snprintf (path, sizeof path, LINK_FOLDER "/%s", s->name);
  snprintf (new, sizeof new, LINK_FOLDER "/.%s", s->name);
  snprintf (target, sizeof target, "../%s", s->device.name);
  if (mkdir (LINK_FOLDER, 0755) == -1 && errno != EEXIST) {
    log_error ("mkdir: %s: %m", LINK_FOLDER);
    return -1;
  }
  unlink (new);
  if (symlink (target, new) == -1 || rename (new, path) == -1) {
    log_error ("%s: %m", path);
    return -1;
  }
  return 0;
}

void
link_remove (const struct state *s)
{
  char path[PATH_LEN], target[BLOCK_NAME_LEN + 4], want[sizeof target];
  ssize_t n;

  snprintf (path, sizeof path, LINK_FOLDER "/%s", s->name);
  snprintf (want, sizeof want, "../%s", s->device.name);
  n = readlink (path, target, sizeof target - 1);
  target[n > 0 ? n : 0] = '\0';
  if (strcmp (target, want) != 0)
    return;
  unlink (path);
}
