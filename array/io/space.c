/* gpuraid: members without space.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>

#include "array/health/event.h"
#include "array/io/space.h"
#include "common/plant.h"

bool
space_is_error (int error)
{
  return error == ENOSPC || error == EDQUOT;
}

bool
space_is_short (const struct array *a, const struct seat *s,
                enum io_kind kind, int error)
{
  return !PLANTED ("enospc-ejects") && space_is_error (error) &&
    kind != IO_READ && kind != IO_FLUSH && s->state == SEAT_ACTIVE &&
    !s->failing && !a->failed;
}

void
space_wait (struct seat *s, struct list *waiting, struct list *link)
{
  list_move (waiting, link);
  if (s->no_space)
    return;
  s->no_space = true;
  s->no_space_since = engine_now (s->a);
  log_notice ("slot %u: %s: no space left; writes are held until there is",
              s->slot, s->m->path);
  event_no_space (s->a, s);
}
