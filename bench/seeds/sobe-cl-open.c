/* gpuraid: open a device for Sobe's equations, and compile them.
 *
 * A GPU if there is one, else any device.  It is opened once in a process,
 * which takes a second, and never closed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/methods.h"
#include "bench/seeds/cauchy.h"
#include "bench/seeds/sobe-cl.h"
#include "common/bits.h"
#include "common/cleanup.h"
#include "measure/clock.h"

static const struct variant {
  const char *name;
  bool iterative;
  enum sobe_style style;
} variants[] = {
  { "direct", false, SOBE_CL },
  { "iterative", true, SOBE_CL },
  { "direct16", false, SOBE_CL16 },
  { "iterative16", true, SOBE_CL16 },
};

int
sobe_cl_check (int r, const char *call, char *why)
{
  if (r == CL_SUCCESS)
    return 0;
  snprintf (why, BENCH_WHY_LEN, "%s: OpenCL error %d", call, r);
  return -1;
}

#define MAX_PLATFORMS 8

/* queue is NULL: not open. */
static struct {
  const struct opencl *cl;
  cl_device_id device;
  cl_context context;
  cl_command_queue queue;
  double seconds;               /* that opening it took */
  char name[256];
} platform;

static int
find_device (uint64_t type)
{
  cl_platform_id platforms[MAX_PLATFORMS];
  unsigned nr = 0;

  if (platform.cl->get_platforms (MAX_PLATFORMS, platforms, &nr) != CL_SUCCESS)
    return -1;
  for (unsigned i = 0; i < MIN (nr, MAX_PLATFORMS); i++)
    if (platform.cl->get_devices (platforms[i], type, 1, &platform.device,
                                  NULL) == CL_SUCCESS)
      return 0;
  return -1;
}

/* Its name, version and driver. */
static void
name_device (void)
{
  static const unsigned what[] = {
    CL_DEVICE_NAME, CL_DEVICE_VERSION, CL_DRIVER_VERSION
  };
  size_t len = 0;

  for (size_t i = 0; i < ARRAY_LEN (what); i++) {
    char text[80];

    if (platform.cl->get_device_info (platform.device, what[i], sizeof text,
                                      text, NULL) == CL_SUCCESS)
      len += snprintf (platform.name + len, sizeof platform.name - len,
                       "%s%.79s", len > 0 ? ", " : "", text);
  }
}

static int
open_device (char *why)
{
  double start = now ();
  int r;

  platform.cl = opencl_get (why, BENCH_WHY_LEN);
  if (platform.cl == NULL)
    return -1;
  if (find_device (CL_DEVICE_TYPE_GPU) == -1 &&
      find_device (CL_DEVICE_TYPE_ALL) == -1) {
    snprintf (why, BENCH_WHY_LEN, "no OpenCL device");
    return -1;
  }
  platform.context = platform.cl->create_context (NULL, 1, &platform.device,
                                                  NULL, NULL, &r);
  if (sobe_cl_check (r, "clCreateContext", why) == -1)
    return -1;
  platform.queue = platform.cl->create_queue
    (platform.context, platform.device, CL_QUEUE_PROFILING_ENABLE, &r);
  if (sobe_cl_check (r, "clCreateCommandQueue", why) == -1) {
    platform.cl->release_context (platform.context);
    platform.queue = NULL;
    return -1;
  }
  platform.seconds = now () - start;
  name_device ();
  return 0;
}

const char *
sobe_cl_device (char *why)
{
  return platform.queue || open_device (why) == 0 ? platform.name : NULL;
}

static int
open_platform (struct sobe_cl *s, char *why)
{
  if (sobe_cl_device (why) == NULL)
    return -1;
  s->cl = platform.cl;
  s->device = platform.device;
  s->context = platform.context;
  s->queue = platform.queue;
  s->phases.platform = platform.seconds;
  return 0;
}

static int
open_buffers (struct sobe_cl *s, char *why)
{
  double start = now ();
  int r = CL_SUCCESS;

  s->in = calloc (s->nr_rects, sizeof *s->in);
  s->out = calloc (s->nr_rects, sizeof *s->out);
  if (s->in == NULL || s->out == NULL) {
    snprintf (why, BENCH_WHY_LEN, "calloc: %s", strerror (errno));
    return -1;
  }
  for (size_t i = 0; r == CL_SUCCESS && i < s->nr_rects; i++) {
    s->in[i] = s->cl->create_buffer (s->context, CL_MEM_READ_ONLY, s->in_len,
                                     NULL, &r);
    if (r == CL_SUCCESS)
      s->out[i] = s->cl->create_buffer (s->context, CL_MEM_WRITE_ONLY,
                                        s->out_len, NULL, &r);
  }
  s->phases.buffers = now () - start;
  return sobe_cl_check (r, "clCreateBuffer", why);
}

static int
build (struct sobe_cl *s, const char *text, char *why)
{
  double start = now ();
  int r;

  s->program = s->cl->create_program (s->context, 1, &text, NULL, &r);
  if (sobe_cl_check (r, "clCreateProgramWithSource", why) == -1 ||
      CL (build_program (s->program, 1, &s->device, "", NULL, NULL)) == -1)
    return -1;
  s->kernel = s->cl->create_kernel (s->program, "code", &r);
  s->phases.compile = now () - start;
  return sobe_cl_check (r, "clCreateKernel", why);
}

/* Work groups are as large as the device lets them be. */
static int
set_size (struct sobe_cl *s, size_t items, char *why)
{
  size_t local;

  if (CL (get_device_info (s->device, CL_DEVICE_MAX_WORK_GROUP_SIZE,
                           sizeof s->local, &s->local, NULL)) == -1 ||
      CL (get_work_group_info (s->kernel, s->device, CL_KERNEL_WORK_GROUP_SIZE,
                               sizeof local, &local, NULL)) == -1)
    return -1;
  s->local = MIN (MIN (s->local, local), items);
  s->global = div_round_up (items, s->local) * s->local;
  return 0;
}

static int
open_kernel (struct sobe_cl *s, const struct matrix *a, char *why)
{
  struct xor_program *q = sobe_equations (a, s->iterative, why);
  CLEANUP_FREE char *text = NULL;
  size_t width = s->style == SOBE_CL16 ? 16 : 1;

  if (q)
    text = sobe_text (q, s->style, a->packet_len, why);
  xor_program_free (q);
  if (text == NULL || build (s, text, why) == -1)
    return -1;
  return set_size (s, a->packet_len / width, why);
}

static int
alloc_host (struct sobe_cl *s, char *why)
{
  void *in = NULL, *out = NULL;
  int r = posix_memalign (&in, 4096, s->nr_rects * s->in_len);

  if (r == 0)
    r = posix_memalign (&out, 4096, s->nr_rects * s->out_len);
  s->host_in = in;
  s->host_out = out;
  if (r != 0) {
    snprintf (why, BENCH_WHY_LEN, "posix_memalign: %s", strerror (r));
    return -1;
  }
  memset (in, 0, s->nr_rects * s->in_len);
  memset (out, 0, s->nr_rects * s->out_len);
  return 0;
}

void
sobe_cl_close (struct method *e)
{
  struct sobe_cl *s = (struct sobe_cl *) e;

  if (s == NULL)
    return;
  if (s->kernel)
    s->cl->release_kernel (s->kernel);
  if (s->program)
    s->cl->release_program (s->program);
  for (size_t r = 0; s->in && s->out && r < s->nr_rects; r++) {
    if (s->in[r])
      s->cl->release_mem (s->in[r]);
    if (s->out[r])
      s->cl->release_mem (s->out[r]);
  }
  free (s->in);
  free (s->out);
  free (s->host_in);
  free (s->host_out);
  free (s);
}

static const struct variant *
find_variant (const char *option)
{
  for (size_t i = 0; i < ARRAY_LEN (variants); i++)
    if (option == NULL || strcmp (variants[i].name, option) == 0)
      return &variants[i];
  return NULL;
}

/* Check that the equations can be written for the case. */
static int
check_case (const struct bench_case *bc, const struct variant *v, char *why)
{
  if (v == NULL) {
    snprintf (why, BENCH_WHY_LEN, "no option %s", bc->option);
    return -1;
  }
  if (cauchy_check (bc, bc->cell_len / bc->matrix->w, why) == -1)
    return -1;
  if (v->style == SOBE_CL16 && bc->matrix->packet_len % 16 != 0) {
    snprintf (why, BENCH_WHY_LEN, "a unit of %zu bytes is no multiple of 16",
              bc->matrix->packet_len);
    return -1;
  }
  return 0;
}

struct method *
sobe_cl_open (const struct bench_case *bc, char *why)
{
  const struct variant *v = find_variant (bc->option);
  struct sobe_cl *s;

  if (check_case (bc, v, why) == -1)
    return NULL;
  s = calloc (1, sizeof *s);
  if (s == NULL) {
    snprintf (why, BENCH_WHY_LEN, "calloc: %s", strerror (errno));
    return NULL;
  }
  *s = (struct sobe_cl) {
    .e.ops = &method_sobe_cl, .iterative = v->iterative,
    .style = v->style, .nr_rects = bc->nr_rects,
    .cell_len = bc->cell_len, .in_len = bc->matrix->cols * bc->cell_len,
    .out_len = bc->matrix->rows * bc->cell_len,
  };
  if (alloc_host (s, why) == -1 || open_platform (s, why) == -1 ||
      open_buffers (s, why) == -1 || open_kernel (s, bc->matrix, why) == -1) {
    sobe_cl_close (&s->e);
    return NULL;
  }
  return &s->e;
}
