/* gpuraid: Sobe through OpenCL: code.
 *
 * One block a launch and blocking copies, as published.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdio.h>

#include "bench/methods.h"
#include "bench/seeds/cauchy.h"
#include "bench/seeds/sobe-cl.h"
#include "measure/clock.h"

void
sobe_cl_phases (const struct method *e, struct sobe_phases *phases)
{
  *phases = ((const struct sobe_cl *) e)->phases;
}

static uint8_t *
sobe_cl_in (struct method *e, size_t r, unsigned i)
{
  struct sobe_cl *s = (struct sobe_cl *) e;

  return s->host_in + r * s->in_len + i * s->cell_len;
}

static uint8_t *
sobe_cl_out (struct method *e, size_t r, unsigned j)
{
  struct sobe_cl *s = (struct sobe_cl *) e;

  return s->host_out + r * s->out_len + j * s->cell_len;
}

static int
copy_in (struct sobe_cl *s, size_t r, char *why)
{
  return CL (enqueue_write (s->queue, s->in[r], CL_TRUE, 0, s->in_len,
                            s->host_in + r * s->in_len, 0, NULL, NULL));
}

static int
copy_out (struct sobe_cl *s, size_t r, char *why)
{
  return CL (enqueue_read (s->queue, s->out[r], CL_TRUE, 0, s->out_len,
                           s->host_out + r * s->out_len, 0, NULL, NULL));
}

/* event: NULL, or the caller's to release. */
static int
start_kernel (struct sobe_cl *s, size_t r, cl_event *event, char *why)
{
  if (CL (set_kernel_arg (s->kernel, 0, sizeof s->in[r], &s->in[r])) == -1 ||
      CL (set_kernel_arg (s->kernel, 1, sizeof s->out[r], &s->out[r])) == -1)
    return -1;
  return CL (enqueue_kernel (s->queue, s->kernel, 1, NULL, &s->global,
                             &s->local, 0, NULL, event));
}

/* Only the outputs, which are wrong in host memory then. */
static int
sobe_cl_spoil (struct method *e, char *why)
{
  struct sobe_cl *s = (struct sobe_cl *) e;

  for (size_t r = 0; r < s->nr_rects; r++)
    if (CL (enqueue_write (s->queue, s->out[r], CL_TRUE, 0, s->out_len,
                           s->host_out + r * s->out_len, 0, NULL,
                           NULL)) == -1)
      return -1;
  return 0;
}

static int
sobe_cl_load (struct method *e, char *why)
{
  struct sobe_cl *s = (struct sobe_cl *) e;

  for (size_t r = 0; r < s->nr_rects; r++)
    if (copy_in (s, r, why) == -1)
      return -1;
  return 0;
}

static int
sobe_cl_fetch (struct method *e, char *why)
{
  struct sobe_cl *s = (struct sobe_cl *) e;

  for (size_t r = 0; r < s->nr_rects; r++)
    if (copy_out (s, r, why) == -1)
      return -1;
  return 0;
}

/* Nanoseconds of the device's clock. */
static int
get_time (struct sobe_cl *s, cl_event event, unsigned what, uint64_t *ns,
          char *why)
{
  return CL (get_event_profile (event, what, sizeof *ns, ns, NULL));
}

/* From the start of the first kernel to the end of the last. */
static int
sobe_cl_raw (struct method *e, unsigned nr, double *seconds, char *why)
{
  struct sobe_cl *s = (struct sobe_cl *) e;
  cl_event first = NULL, last = NULL;
  uint64_t start, end;
  int r = 0;

  for (unsigned n = 0; r == 0 && n < nr; n++)
    for (size_t i = 0; r == 0 && i < s->nr_rects; i++) {
      cl_event *event = first ? &last : &first;

      if (event == &last && last)
        s->cl->release_event (last);
      *event = NULL;
      r = start_kernel (s, i, event, why);
    }
  if (r == 0)
    r = CL (finish (s->queue));
  if (r == 0 && first)
    r = get_time (s, first, CL_PROFILING_COMMAND_START, &start, why);
  if (r == 0 && first)
    r = get_time (s, last ? last : first, CL_PROFILING_COMMAND_END, &end, why);
  if (r == 0)
    *seconds = first ? (end - start) / 1e9 : 0;
  if (first)
    s->cl->release_event (first);
  if (last)
    s->cl->release_event (last);
  return r;
}

static int
code_rect (struct sobe_cl *s, size_t r, char *why)
{
  double t0 = now (), t1, t2;

  if (copy_in (s, r, why) == -1)
    return -1;
  t1 = now ();
  if (start_kernel (s, r, NULL, why) == -1 || CL (finish (s->queue)) == -1)
    return -1;
  t2 = now ();
  if (copy_out (s, r, why) == -1)
    return -1;
  s->phases.copy_in = t1 - t0;
  s->phases.kernel = t2 - t1;
  s->phases.copy_out = now () - t2;
  return 0;
}

static int
sobe_cl_overall (struct method *e, unsigned nr, double *seconds, char *why)
{
  struct sobe_cl *s = (struct sobe_cl *) e;
  double start = now ();

  for (unsigned n = 0; n < nr; n++)
    for (size_t r = 0; r < s->nr_rects; r++)
      if (code_rect (s, r, why) == -1)
        return -1;
  *seconds = now () - start;
  return 0;
}

static void
sobe_cl_note (struct method *e, char *text, size_t text_len)
{
  const struct sobe_phases *p = &((struct sobe_cl *) e)->phases;

  snprintf (text, text_len, "ms: platform %.1f, buffers %.3f, compile %.1f, "
            "copy in %.3f, kernel %.3f, copy out %.3f", p->platform * 1e3,
            p->buffers * 1e3, p->compile * 1e3, p->copy_in * 1e3,
            p->kernel * 1e3, p->copy_out * 1e3);
}

const struct method_ops method_sobe_cl = {
  .name = "sobe_cl",
  .what = "Sobe: generated equations, OpenCL",
  .options = "direct iterative direct16 iterative16",
  .parity = cauchy_high,
  .packet_len = sobe_packet_len,
  .open = sobe_cl_open,
  .close = sobe_cl_close,
  .in = sobe_cl_in,
  .out = sobe_cl_out,
  .spoil = sobe_cl_spoil,
  .load = sobe_cl_load,
  .raw = sobe_cl_raw,
  .fetch = sobe_cl_fetch,
  .overall = sobe_cl_overall,
  .note = sobe_cl_note,
};
