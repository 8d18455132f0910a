/* gpuraid: read the four superblock copies of a member synchronously.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "array/membership/rules.h"
#include "array/open/copies.h"
#include "common/cleanup.h"
#include "common/random.h"

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

/* Parse "xxxxxxxx-xxxx-..." as the kernel prints it. */
static void
parse_uuid (const char *text, uuid_bytes *uuid)
{
  unsigned i = 0;

  memset (uuid, 0, sizeof *uuid);
  for (const char *p = text; *p && i < 32; p++) {
    const char *digits = "0123456789abcdef", *d = strchr (digits, *p);

    if (d) {
      uuid->b[i / 2] |= (d - digits) << (i % 2 ? 0 : 4);
      i++;
    }
  }
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
  parse_uuid (text, &sb->boot_id);
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

char *
uuid_text (const uuid_bytes *uuid, char buf[UUID_TEXT_LEN])
{
  char *p = buf;

  for (unsigned i = 0; i < sizeof uuid->b; i++) {
    if (i == 4 || i == 6 || i == 8 || i == 10)
      *p++ = '-';
    p += sprintf (p, "%02x", uuid->b[i]);
  }
  return buf;
}

int
uuid_parse (const char *text, uuid_bytes *uuid)
{
  char again[UUID_TEXT_LEN];

  if (strlen (text) != UUID_TEXT_LEN - 1)
    return -1;
  for (size_t i = 0; i < UUID_TEXT_LEN; i++)
    again[i] = tolower ((unsigned char) text[i]);
  parse_uuid (again, uuid);
  uuid_text (uuid, again);
  return strcasecmp (text, again) == 0 ? 0 : -1;
}

static unsigned
nr_equal (const uuid_bytes *u, unsigned nr, const uuid_bytes *to)
{
  unsigned n = 0;

  for (unsigned i = 0; i < nr; i++)
    n += uuid_equal (&u[i], to);
  return n;
}

bool
uuid_most (const uuid_bytes *u, unsigned nr, uuid_bytes *most)
{
  unsigned greatest = 0;
  bool tie = false;

  for (unsigned i = 0; i < nr; i++) {
    const unsigned n = nr_equal (u, nr, &u[i]);

    if (n > greatest) {
      greatest = n;
      *most = u[i];
      tie = false;
    }
    else if (n == greatest)
      tie |= !uuid_equal (&u[i], most);
  }
  return greatest > 0 && !tie;
}
