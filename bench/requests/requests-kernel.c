/* gpuraid-bench: the requests about tunings of a kernel.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/method-kernel.h"
#include "bench/requests/requests.h"
#include "bench/tuning.h"
#include "common/cleanup.h"
#include "measure/run.h"

struct json_object *
request_tunes (struct json_object *q, char *why)
{
  struct run *run = bench_request_run (q, why);
  struct kernel_tuning tuning;
  struct json_object *o;
  char name[TUNING_LEN];

  if (run == NULL)
    return NULL;
  o = json_object_new_object ();
  kernel_tune (run->matrix, &tuning);
  answer_text (o, "tuning", tuning_print (&tuning, name));
  return o;
}

/* The text of the kernel with the tuning that is named, which the caller
 * frees, and its shape.  NULL: why.
 */
static char *
make_source (struct json_object *q, const struct run *run,
             struct kernel_shape *shape, char *why)
{
  struct kernel_tuning tuning;
  char *source;

  if (tuning_parse (request_text (q, "tuning"), &tuning, why) == -1 ||
      tuning_check (&tuning, run->matrix, why) == -1)
    return NULL;
  source = kernel_source (run->matrix, false, &tuning, shape);
  if (source == NULL)
    snprintf (why, BENCH_WHY_LEN, "no special kernel for this matrix: %s",
              strerror (errno));
  return source;
}

struct json_object *
request_source (struct json_object *q, char *why)
{
  struct run *run = bench_request_run (q, why);
  struct kernel_shape shape;
  CLEANUP_FREE char *source = run ? make_source (q, run, &shape, why) : NULL;
  struct json_object *o;

  if (source == NULL)
    return NULL;
  o = json_object_new_object ();
  answer_text (o, "source", source);
  return o;
}

void *
read_all (FILE *fp, size_t *len)
{
  size_t room = 1 << 16, n;
  char *buf = malloc (room), *more;

  *len = 0;
  while (buf && (n = fread (buf + *len, 1, room - *len - 1, fp)) > 0) {
    *len += n;
    buf[*len] = '\0';
    if (*len + 1 < room)
      continue;
    room *= 2;
    more = realloc (buf, room);
    if (more == NULL)
      free (buf);
    buf = more;
  }
  return buf;
}

static void *
read_code (const char *file, char *why)
{
  FILE *fp = fopen (file, "r");
  void *code = NULL;
  size_t len = 0;

  if (fp) {
    code = read_all (fp, &len);
    fclose (fp);
  }
  if (code && len > 0)
    return code;
  snprintf (why, BENCH_WHY_LEN, "no machine code: %.100s", file);
  free (code);
  return NULL;
}

struct json_object *
request_use (struct json_object *q, char *why)
{
  struct run *run = bench_request_run (q, why);
  struct kernel_shape shape;
  CLEANUP_FREE char *source = NULL;
  CLEANUP_FREE void *code = NULL;
  int nr_registers, local_len;
  struct json_object *o;

  if (run == NULL)
    return NULL;
  if (run->method->ops != &method_kernel_any) {
    snprintf (why, BENCH_WHY_LEN, "only for engine kernel-any");
    return NULL;
  }
  source = make_source (q, run, &shape, why);
  code = source ? read_code (request_text (q, "file"), why) : NULL;
  if (code == NULL || kernel_method_use (run->method, &shape, code,
                                         &nr_registers, &local_len, why) == -1)
    return NULL;
  o = json_object_new_object ();
  answer_number (o, "registers", nr_registers);
  answer_number (o, "local", local_len);
  return o;
}
