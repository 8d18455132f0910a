/* gpuraid: are the other members there?
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>

#include "array/io/xfer.h"
#include "array/watch/ask.h"
#include "common/plant.h"
#include "raidmap/superblock.h"

/* A member that is there answers in this time.  One that comes later, such as a
 * disk that has to start its motor, counts as silent until then.
 */
#define MOMENT_NS UINT64_C (1000000000)
/* They are asked again after this time. */
#define AGAIN_NS (3 * MOMENT_NS)

static void
answered (struct array *a, struct xfer *x)
{
  x->seat->asked = 0;
  x->seat->heard = engine_now (a);  /* an error is an answer */
}

static void
ask (struct array *a, struct seat *s, uint64_t now)
{
  struct xfer_memory *mem = xfer_memory_new (a, SB_LEN);
  struct xfer *x;

  if (mem == NULL)
    return;
  x = xfer_new (a, s, IO_READ, answered);
  x->memory = mem;
  x->buf = mem->p;
  x->len = SB_LEN;
  s->asked = now;
  xfer_start (a, x);
  xfer_memory_put (x->memory);  /* the transfer has its own reference */
}

static bool
is_asked (const struct seat *s)
{
  return s->state == SEAT_ACTIVE && s->m && !s->failing;
}

/* One that has lost its server is known to be away.  One that has not answered
 * yet stays silent.
 */
void
ask_others (struct array *a, bool news, uint64_t now)
{
  if (a->asked > 0 && !news && now < a->asked + AGAIN_NS)
    return;
  a->asked = now;
  for (unsigned i = 0; i < a->nr_seats; i++) {
    struct seat *s = a->seat[i];

    if (is_asked (s) && s->asked == 0 && !s->overdue &&
        !atomic_load (&s->m->away))
      ask (a, s, now);
  }
}

enum ask_answer
ask_answer (const struct array *a, const struct seat *s, uint64_t now)
{
  if (MAX (s->heard, s->answered) >= a->asked || PLANTED ("silent-unasked"))
    return ASK_THERE;
  return now < (s->asked ? s->asked : a->asked) + MOMENT_NS ? ASK_OPEN :
    ASK_SILENT;
}
