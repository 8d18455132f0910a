/* gpuraid: is a store in use by a running array, by what is on it?
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdio.h>
#include <stdlib.h>

#include "array/copies.h"
#include "array/host-lock.h"
#include "array/in-use.h"
#include "common/cleanup.h"
#include "common/plant.h"

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

bool
in_use_elsewhere (struct member *m, char *why, size_t len)
{
  char text[UUID_TEXT_LEN];
  uuid_bytes array, member;

  if (!in_use_identify (m, &array, &member) || !host_lock_held (&array) ||
      PLANTED ("member-by-name"))
    return false;
  snprintf (why, len, "%s: a member of the array %s, which runs on this host: "
            "name another, or stop that array first; if it was taken out of "
            "it, erase its first and last MiB", m->path,
            uuid_text (&array, text));
  return true;
}
