/* gpuraid: the values of keys, as text.
 *
 * Pure, and without messages: array/config/keys.c knows the key.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "array/config/config.h"
#include "common/bits.h"

bool
config_is_name (const char *s)
{
  const size_t len = strlen (s);

  return len > 0 && len <= CONFIG_LABEL_LEN &&
    strspn (s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
            "0123456789._-") == len;
}

/* strtoull, without space or sign before the digits. */
static int
parse_number (const char *str, uint64_t *n, char **end)
{
  if (!isdigit ((unsigned char) str[0]))
    return -1;
  errno = 0;
  *n = strtoull (str, end, 10);
  return errno ? -1 : 0;
}

/* The bytes of a unit: "", "b", "bytes", "s", "K" or "KiB", and so on.  0:
 * there is no such unit.
 */
static uint64_t
unit_bytes (const char *unit)
{
  static const char letters[] = "kmgtpe";
  const char *s;

  if (unit[0] == '\0' || strcasecmp (unit, "b") == 0 ||
      strcmp (unit, "bytes") == 0)
    return 1;
  if (strcasecmp (unit, "s") == 0)
    return 512;
  s = strchr (letters, tolower ((unsigned char) unit[0]));
  if (s == NULL || (unit[1] && strcasecmp (unit + 1, "iB") != 0))
    return 0;
  return BIT (10 * (s - letters + 1));
}

/* ".25": part is { 25, 100 }; { 0, 1 } if there is none.  *end is moved past
 * it.  -1: not a number, or more than six digits.
 */
static int
parse_fraction (char **end, uint64_t part[2])
{
  uint64_t n = 0, tenth = 1;
  char *p = *end;

  part[0] = 0;
  part[1] = 1;
  if (*p != '.')
    return 0;
  for (p++; isdigit ((unsigned char) *p); p++) {
    if (tenth == 1000000)
      return -1;
    n = 10 * n + (*p - '0');
    tenth *= 10;
  }
  part[0] = n;
  part[1] = tenth;
  *end = p;
  return tenth == 1 ? -1 : 0;
}

int
config_parse_size (const char *str, uint64_t *r)
{
  char *end;
  uint64_t n, part[2], scale, rest;

  if (parse_number (str, &n, &end) == -1 || parse_fraction (&end, part) == -1)
    return -1;
  if (*end == ' ')
    end++;
  scale = unit_bytes (end);
  if (scale == 0 || n > INT64_MAX / scale || (part[1] > 1 && scale < KIB))
    return -1;
  rest = (unsigned __int128) part[0] * scale / part[1];
  if (rest > INT64_MAX - n * scale)
    return -1;
  *r = n * scale + rest;
  return 0;
}

int
config_parse_rate (const char *str, uint64_t *r)
{
  const size_t len = strlen (str);
  char size[64];

  if (strcmp (str, "max") == 0) {
    *r = 0;
    return 0;
  }
  if (len <= 2 || len >= sizeof size || strcmp (str + len - 2, "/s") != 0)
    return config_parse_size (str, r);
  memcpy (size, str, len - 2);
  size[len - 2] = '\0';
  return config_parse_size (size, r);
}

int
config_parse_time (const char *str, uint64_t *ns)
{
  static const struct {
    const char *name;
    uint64_t ns;
  } unit[] = {
    { "", UINT64_C (1000000000) },
    { "ms", UINT64_C (1000000) },
    { "s", UINT64_C (1000000000) },
    { "m", UINT64_C (60000000000) },
  };
  char *end;
  uint64_t n;

  if (parse_number (str, &n, &end) == -1)
    return -1;
  for (size_t i = 0; i < ARRAY_LEN (unit); i++)
    if (strcmp (end, unit[i].name) == 0) {
      if (n > INT64_MAX / unit[i].ns)
        return -1;
      *ns = n * unit[i].ns;
      return 0;
    }
  return -1;
}

int
config_parse_hedge (const char *str, struct hedge_policy *r)
{
  *r = (struct hedge_policy) { 0 };
  if (strcmp (str, "auto") == 0)
    return 0;
  if (strcmp (str, "no") == 0) {
    r->off = true;
    return 0;
  }
  return config_parse_time (str, &r->delay) == -1 ||
    r->delay < UINT64_C (1000000) || r->delay > HEDGE_MAX_DELAY ? -1 : 0;
}
