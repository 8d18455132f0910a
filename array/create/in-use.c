/* gpuraid: are stores in use by a running array, by what is on them?
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "array/create/in-use.h"
#include "array/open/live.h"
#include "array/stores/copies.h"
#include "array/stores/host-lock.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/plant.h"
#include "raidmap/uuid.h"

bool
in_use_identify (struct member *m, uuid_bytes *array, uuid_bytes *member)
{
  CLEANUP_FREE struct found *f = calloc (1, sizeof *f);
  const struct superblock *sb = NULL;

  if (f && copies_read (m, f, NULL) == 0)
    sb = found_newest (f);
  if (sb == NULL)
    return false;
  *array = sb->array_uuid;
  *member = sb->member_uuid;
  return true;
}

/* It is in use on this host.  Then why gets one line. */
static bool
is_held (const struct member *m, const struct superblock *sb, char *why,
         size_t len)
{
  char text[UUID_TEXT_LEN];

  if (!host_lock_held (&sb->array_uuid) || PLANTED ("member-by-name"))
    return false;
  snprintf (why, len, "%s: a member of the array %s, which runs on this host: "
            "name another, or stop that array first; if it was taken out of "
            "it, erase its first and last MiB", m->path,
            uuid_text (&sb->array_uuid, text));
  return true;
}

bool
in_use_elsewhere (struct member *const *m, unsigned nr, char *why, size_t len)
{
  CLEANUP_FREE struct found *f = calloc (nr + 1, sizeof *f);
  const char *beats = NULL;
  char host[SB_HOST_LEN + 1];
  unsigned which;
  int err;

  if (f == NULL) {
    snprintf (why, len, "out of memory");
    return true;
  }
  for (unsigned i = 0; i < nr; i++) {
    const struct superblock *sb =
      copies_read (m[i], &f[i], NULL) == 0 ? found_newest (&f[i]) : NULL;

    if (sb && is_held (m[i], sb, why, len))
      return true;
    if (sb && live_has_beat (&f[i]) && !PLANTED ("beat-forced"))
      beats = m[i]->path;
  }
  if (beats == NULL)
    return false;
  err = live_wait (m, f, nr, beats, &which, host);
  if (err == 0)
    return false;
  if (err == ENOMEM)
    snprintf (why, len, "out of memory");
  else
    snprintf (why, len, "%s: in use by another server%s%s: name another, or "
              "stop the array there", m[which]->path,
              host[0] ? ", on host " : "", host);
  return true;
}
