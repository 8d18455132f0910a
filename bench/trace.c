/* gpuraid-bench: when a job calls the driver.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "bench/trace.h"
#include "measure/clock.h"
#include "measure/method.h"

static const struct driver *real;
static struct driver traced;

static struct trace *const *watched;
static unsigned nr_watched;
static bool at_once;
static __thread struct trace *mine;

static CUresult
launch_kernel (CUfunction function, unsigned grid_x, unsigned grid_y,
               unsigned grid_z, unsigned block_x, unsigned block_y,
               unsigned block_z, unsigned shared_len, CUstream stream,
               void **params, void **extra)
{
  const double at = now ();
  CUresult r = real->launch_kernel (function, grid_x, grid_y, grid_z, block_x,
                                    block_y, block_z, shared_len, stream,
                                    params, extra);

  if (mine) {
    mine->launch = at;
    mine->launched = now ();
    mine->nr_launches++;
  }
  return r;
}

static void
note_look (struct trace *t, double at, CUresult r)
{
  const double end = now ();

  if (t->nr_looks++ == 0)
    t->first_look = at;
  t->query += end - at;
  if (r == CUDA_ERROR_NOT_READY)
    t->last_look = at;
  else {
    t->seen = end;
    atomic_store_explicit (&t->event, NULL, memory_order_release);
  }
}

static CUresult
event_record (CUevent event, CUstream stream)
{
  CUresult r = real->event_record (event, stream);

  if (mine == NULL)
    return r;
  mine->recorded = now ();
  atomic_store_explicit (&mine->event, event, memory_order_release);
  while (at_once && r == CUDA_SUCCESS && mine->seen == 0)
    note_look (mine, now (), real->event_query (event));
  return r;
}

/* Only the thread of the device looks, unless the launching one has done so. */
static CUresult
event_query (CUevent event)
{
  const double at = now ();
  CUresult r = real->event_query (event);

  for (unsigned n = 0; n < nr_watched; n++)
    if (atomic_load_explicit (&watched[n]->event, memory_order_acquire) ==
        event) {
      note_look (watched[n], at, r);
      break;
    }
  return r;
}

void
trace_watch (struct trace *const *list, unsigned nr)
{
  nr_watched = 0;
  watched = list;
  nr_watched = nr;
}

void
trace_name (struct trace *t)
{
  mine = t;
}

void
trace_look_at_once (bool yes)
{
  at_once = yes;
}

const struct driver *
trace_driver (char *why)
{
  if (real)
    return &traced;
  real = driver_get (why, BENCH_WHY_LEN);
  if (real == NULL)
    return NULL;
  traced = *real;
  traced.launch_kernel = launch_kernel;
  traced.event_record = event_record;
  traced.event_query = event_query;
  return &traced;
}
