/* gpuraid: uuids as text, and which of some is the most frequent.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "raidmap/uuid.h"

void
uuid_scan (const char *text, uuid_bytes *uuid)
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
  uuid_scan (again, uuid);
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
