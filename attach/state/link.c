/* gpuraid: /dev/gpuraid/NAME.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attach/device/uevent.h"
#include "attach/state/link.h"
#include "attach/state/state.h"
#include "common/log.h"

#define PATH_LEN (sizeof LINK_FOLDER + STATE_NAME_LEN + 8)
#define NOTE_LEN (sizeof LINK_NOTES + BLOCK_NAME_LEN + BLOCK_ID_LEN + 4)

/* The id is part of its name, so that udev does not find it for what another
 * program attaches at that number later.
 */
static const char *
note_path (const struct state *s, char path[NOTE_LEN])
{
  char *space;

  snprintf (path, NOTE_LEN, LINK_NOTES "/%s-%s", s->device.name,
            s->device.id);
  space = strchr (path, ' ');
  if (space)
    *space = '-';
  return path;
}

/* 0, or -1 reported. */
static int
write_note (const struct state *s)
{
  char path[NOTE_LEN];
  FILE *fp;
  bool ok;

  if (mkdir (LINK_NOTES, 0755) == -1 && errno != EEXIST) {
    log_error ("mkdir: %s: %m", LINK_NOTES);
    return -1;
  }
  fp = fopen (note_path (s, path), "we");
  ok = fp && fprintf (fp, "GPURAID_NAME=%s\n", s->name) > 0;
  if (fp && fclose (fp) == 0 && ok)
    return 0;
  log_error ("%s: %m", path);
  return -1;
}

int
link_make (const struct state *s, bool wait)
{
  char path[PATH_LEN], new[PATH_LEN], target[BLOCK_NAME_LEN + 4];

  snprintf (path, sizeof path, LINK_FOLDER "/%s", s->name);
  snprintf (new, sizeof new, LINK_FOLDER "/.%s", s->name);
  snprintf (target, sizeof target, "../%s", s->device.name);
  if (mkdir (LINK_FOLDER, 0755) == -1 && errno != EEXIST) {
    log_error ("mkdir: %s: %m", LINK_FOLDER);
    return -1;
  }
  if (write_note (s) == -1)
    return -1;
  unlink (new);
  if (symlink (target, new) == -1 || rename (new, path) == -1) {
    log_error ("%s: %m", path);
    return -1;
  }
  uevent_change (s->device.name, wait);
  return 0;
}

void
link_remove (const struct state *s)
{
  char path[PATH_LEN], target[BLOCK_NAME_LEN + 4], want[sizeof target];
  char note[NOTE_LEN];
  const bool noted = unlink (note_path (s, note)) == 0;
  ssize_t n;

  snprintf (path, sizeof path, LINK_FOLDER "/%s", s->name);
  snprintf (want, sizeof want, "../%s", s->device.name);
  n = readlink (path, target, sizeof target - 1);
  target[n > 0 ? n : 0] = '\0';
  if (strcmp (target, want) == 0)
    unlink (path);
  if (noted)
    uevent_change (s->device.name, true);
}
