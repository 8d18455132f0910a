/* gpuraid: read the four superblock copies of a member synchronously.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "array/stores/copies.h"
#include "common/bytes/random.h"
#include "common/cleanup.h"
#include "raidmap/uuid.h"

int
copies_read (struct member *m, struct found *f,
             const char *why[SB_NR_COPIES])
{
  uint8_t buf[SB_LEN] __attribute__ ((aligned (SB_LEN)));
  unsigned nr_unread = 0;
  int err = 0;

  f->name = m->path;
  for (enum sb_copy copy = 0; copy < SB_NR_COPIES; copy++) {
    const char *dummy;
    const char **w = why ? &why[copy] : &dummy;
    int r = m->ops->pread (m, buf, sizeof buf,
                           layout_sb_off (m->ops->size (m), copy));

    if (r != 0) {
      err = r;
      nr_unread++;
      f->result[copy] = SB_CORRUPT;
      *w = "can't be read";
      continue;
    }
    f->result[copy] = superblock_decode (buf, copy, &f->sb[copy], w);
  }
  return nr_unread == SB_NR_COPIES ? err : 0;
}

void
copies_fill_host (struct superblock *sb)
{
  CLEANUP_CLOSE int fd = -1;
  char text[UUID_TEXT_LEN] = "";

  memset (sb->host, 0, sizeof sb->host);
  if (gethostname (sb->host, sizeof sb->host) == -1)
    sb->host[0] = '\0';

  fd = open ("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (fd == -1 || read (fd, text, sizeof text - 1) == -1)
    text[0] = '\0';
  uuid_scan (text, &sb->boot_id);
}

int
copies_new_uuid (uuid_bytes *uuid)
{
  if (random_bytes (uuid->b, sizeof uuid->b) == -1)
    return -1;
  uuid->b[6] = (uuid->b[6] & 0x0f) | 0x40;
  uuid->b[8] = (uuid->b[8] & 0x3f) | 0x80;
  return 0;
}
