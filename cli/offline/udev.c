/* gpuraid: a superblock as properties for udev.
 *
 * The names are those of udev's own blkid, so that lsblk and others
 * need not know us.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/offline/udev.h"
#include "raidmap/uuid.h"

/* Would udev take it as it is, in a name of a link too? */
static bool
is_plain (char c)
{
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
    (c >= 'A' && c <= 'Z') || strchr ("#+-.:=@_", c) != NULL;
}

/* KEY, where other bytes are replaced, and KEY_ENC, where they are \xNN. */
static void
show_text (const char *key, const char *value)
{
  printf ("%s=", key);
  for (const char *p = value; *p; p++)
    putchar (is_plain (*p) ? *p : '_');
  printf ("\n%s_ENC=", key);
  for (const char *p = value; *p; p++)
    if (is_plain (*p))
      putchar (*p);
    else
      printf ("\\x%02x", (unsigned char) *p);
  printf ("\n");
}

void
udev_show (const struct superblock *sb)
{
  char uuid[UUID_TEXT_LEN];

  printf ("ID_FS_USAGE=raid\n"
          "ID_FS_TYPE=gpuraid_member\n"
          "ID_FS_VERSION=%u\n", sb->version);
  show_text ("ID_FS_UUID", uuid_text (&sb->array_uuid, uuid));
  show_text ("ID_FS_UUID_SUB", uuid_text (&sb->member_uuid, uuid));
  if (sb->label[0])
    show_text ("ID_FS_LABEL", sb->label);
}
