/* gpuraid: open a member by name.
 *
 * Only decides which kind of store a name means.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <string.h>

#include "common/bits.h"
#include "common/log.h"
#include "member/member.h"

static bool
is_nbd_uri (const char *name)
{
  static const char *const schemes[] = {
    "nbd://", "nbds://", "nbd+unix://", "nbds+unix://",
    "nbd+vsock://", "nbds+vsock://",
  };

  for (size_t i = 0; i < ARRAY_LEN (schemes); ++i)
    if (strncmp (name, schemes[i], strlen (schemes[i])) == 0)
      return true;
  return false;
}

struct member *
member_open (const char *name, unsigned flags, uint64_t size)
{
  if (is_nbd_uri (name)) {
    errno = ENOTSUP;
    log_error ("%s: NBD members are not in this version", name);
    return NULL;
  }
  return member_open_file (name, flags, size);
}
