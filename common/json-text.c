/* gpuraid: a string for JSON.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/json-text.h"

/* The bytes of one well-formed UTF-8 character at s, 0 if it is none. */
static size_t
utf8_len (const unsigned char *s)
{
  static const unsigned char least[] = { 0, 0, 0x80, 0xa0, 0x90 };
  size_t n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 :
    s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;

  for (size_t i = 1; i < n; i++)
    if ((s[i] & 0xc0) != 0x80)
      return 0;
  /* Longer than need be, a surrogate, or past the last character. */
  if ((s[0] == 0xe0 || s[0] == 0xf0) && s[1] < least[n])
    return 0;
  if ((s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf4 && s[1] > 0x8f))
    return 0;
  return n;
}

struct json_object *
json_text (const char *s)
{
  size_t len = strlen (s);
  CLEANUP_FREE char *clean = malloc (3 * len + 1);
  char *p = clean;

  if (clean == NULL)
    return NULL;
  while (*s) {
    size_t n = utf8_len ((const unsigned char *) s);

    if (n == 0) {
      memcpy (p, "\357\277\275", 3);
      p += 3;
      s++;
      continue;
    }
    memcpy (p, s, n);
    p += n;
    s += n;
  }
  return json_object_new_string_len (clean, p - clean);
}

bool
json_text_keeps (const char *s)
{
  size_t n;

  for (; *s; s += n) {
    n = utf8_len ((const unsigned char *) s);
    if (n == 0)
      return false;
  }
  return true;
}
