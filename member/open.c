/* gpuraid: open a member by name.
 *
 * Only decides which kind of store a name means.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "member/member.h"

struct member *
member_open (const char *name, unsigned flags, uint64_t size)
{
  if (member_is_uri (name))
    return member_open_nbd (name, flags);
  return member_open_file (name, flags, size);
}
