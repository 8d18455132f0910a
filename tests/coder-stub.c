/* gpuraid: what a coder of a test does that only has a submit of its own.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "tests/coder-stub.h"

int
coder_stub_start (struct coder *c, void *arena, size_t arena_len)
{
  return 0;
}

unsigned
coder_stub_shares (struct coder *c, struct coder_share *share)
{
  return 0;
}

void
coder_stub_free (struct coder *c)
{
}
