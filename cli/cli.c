/* gpuraid: what several subcommands need.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <json-c/json.h>

#include "cli/cli.h"
#include "common/bits.h"
#include "common/log.h"

bool
cli_is_root (void)
{
  if (geteuid () == 0)
    return true;
  log_error ("only root can attach a block device, or detach one");
  return false;
}

bool
cli_seconds (const char *text, unsigned *seconds)
{
  char *end;
  const unsigned long n = strtoul (text, &end, 10);

  *seconds = n;
  return text[0] >= '0' && text[0] <= '9' && *end == '\0' && n <= INT_MAX;
}

char *
cli_size (uint64_t bytes, char buf[CLI_SIZE_LEN])
{
  static const char unit[] = "KMGTPE";
  double x = bytes;
  int u = -1;

  if (bytes < KIB) {
    snprintf (buf, CLI_SIZE_LEN, "%" PRIu64 " bytes", bytes);
    return buf;
  }
  while (x >= 1024 && u < 5) {
    x /= 1024;
    u++;
  }
  snprintf (buf, CLI_SIZE_LEN, "%.*f %ciB", x < 100 && x != (int) x, x,
            unit[u]);
  return buf;
}

void
cli_print_json (struct json_object *o)
{
  puts (json_object_to_json_string_ext (o, JSON_C_TO_STRING_PRETTY |
                                        JSON_C_TO_STRING_SPACED |
                                        JSON_C_TO_STRING_NOSLASHESCAPE));
}
