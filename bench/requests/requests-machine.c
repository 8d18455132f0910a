/* gpuraid-bench: the requests about the machine and its engines.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <string.h>

#include "bench/ceilings.h"
#include "bench/gpu.h"
#include "bench/method-kernel.h"
#include "bench/methods.h"
#include "bench/requests/requests.h"
#include "bench/seeds/sobe.h"
#include "common/bits.h"
#include "measure/cpu.h"

/* The code of an engine that has one of its own. */
static const char *
own_code (const struct method_ops *ops)
{
  if (ops->packet_len)
    return "crs";
  return ops->parity ? "rs" : "";
}

static struct json_object *
describe (const struct method_ops *ops)
{
  struct json_object *o = json_object_new_object ();
  /* There is nothing to copy.  What copies and is not for a CUDA device is for
   * one of OpenCL, and has no threads of ours either.
   */
  const bool in_memory = !ops->gpu && ops->overall == NULL;

  answer_text (o, "name", ops->name);
  answer_text (o, "what", ops->what);
  answer_text (o, "options", ops->options ?: "");
  answer_text (o, "others", ops->others ?: "");
  answer_text (o, "code", own_code (ops));
  json_object_object_add (o, "gpu", json_object_new_boolean (ops->gpu));
  json_object_object_add (o, "uses_threads", json_object_new_boolean
                          (in_memory || ops->gpu_and_cpu));
  json_object_object_add (o, "in_memory", json_object_new_boolean (in_memory));
  return o;
}

struct json_object *
request_machine (struct json_object *q, char *why)
{
  struct json_object *o = json_object_new_object ();
  struct json_object *list = json_object_new_array ();
  char model[CPU_MODEL_LEN];

  answer_text (o, "version", GPURAID_VERSION);
  answer_text (o, "processor", cpu_model (model));
  answer_number (o, "threads", cpu_count ());
  answer_text (o, "default", method_default ()->name);
  for (size_t i = 0; methods[i]; i++)
    json_object_array_add (list, describe (methods[i]));
  json_object_object_add (o, "engines", list);
  return o;
}

struct json_object *
request_devices (struct json_object *q, char *why)
{
  const uint64_t mask = request_number (q, "mask", UINT64_MAX, 1);
  const unsigned nr = method_nr_devices (why);

  if (mask == 0 || (nr > 0 && nr < 63 && mask != INT64_MAX &&
                    mask >> nr != 0)) {
    snprintf (why, BENCH_WHY_LEN, "no CUDA device %u: there are %u",
              next_bit (mask, nr), nr);
    return NULL;
  }
  method_devices = mask;
  bench_gpu_choose (next_bit (mask, 0));
  return json_object_new_object ();
}

struct json_object *
request_device (struct json_object *q, char *why)
{
  struct bench_gpu *gpu = bench_gpu_get (why);
  struct json_object *o;

  if (gpu == NULL)
    return NULL;
  o = json_object_new_object ();
  answer_text (o, "name", gpu->name);
  answer_number (o, "nr", method_nr_devices (why));
  answer_number (o, "bus", gpu->bus);
  answer_number (o, "arch", gpu->arch);
  answer_number (o, "sms", gpu->nr_sms);
  answer_double (o, "core_hz", gpu->core_hz);
  return o;
}

struct json_object *
request_opencl (struct json_object *q, char *why)
{
  const char *name = sobe_cl_device (why);
  struct json_object *o;

  if (name == NULL)
    return NULL;
  o = json_object_new_object ();
  answer_text (o, "name", name);
  return o;
}

struct json_object *
request_ceilings (struct json_object *q, char *why)
{
  struct ceilings c = { 0 };
  struct json_object *o;

  if (ceilings_gpu (request_number (q, "memory", 1024 * GIB, 512 * MIB),
                    method_devices, &c, why) == -1)
    return NULL;
  o = json_object_new_object ();
  answer_double (o, "copy", c.copy);
  answer_double (o, "h2d", c.h2d);
  answer_double (o, "d2h", c.d2h);
  answer_double (o, "both", c.both);
  return o;
}

struct json_object *
request_memcpy (struct json_object *q, char *why)
{
  struct json_object *o = json_object_new_object ();

  answer_double (o, "copy", ceilings_memcpy
                 (request_number (q, "memory", 1024 * GIB, 512 * MIB),
                  MAX (request_number (q, "threads", 1024, 1), 1)));
  return o;
}

/* ---- the names of engines */

/* Is it a word of the method's list, or another one that it takes? */
static bool
has_option (const struct method_ops *ops, const char *word, char *why)
{
  const size_t len = strlen (word);
  char not[BENCH_WHY_LEN] = "";

  for (const char *p = ops->options; p && *p;) {
    size_t n = strcspn (p, " ");

    if (n == len && strncmp (p, word, n) == 0)
      return true;
    p += n + strspn (p + n, " ");
  }
  if (len < OPTION_LEN && ops->takes && ops->takes (word, not))
    return true;
  snprintf (why, BENCH_WHY_LEN, "%s has no option %.40s (--list lists them)"
            "%s%.140s", ops->name, word, not[0] ? "; " : "", not);
  return false;
}

int
request_find_engine (struct json_object *q, const struct method_ops **ops,
                     char option[OPTION_LEN], char *why)
{
  const char *text = request_text (q, "engine");
  const char *colon = strchr (text, ':');
  char name[40];

  snprintf (name, sizeof name, "%.*s", (int) strcspn (text, ":"), text);
  *ops = strcmp (name, "kernel-any") == 0 ? &method_kernel_any
    : method_find (methods, name);
  if (*ops == NULL) {
    snprintf (why, BENCH_WHY_LEN, "no engine %.60s (--list lists them)", text);
    return -1;
  }
  if (colon && !has_option (*ops, colon + 1, why))
    return -1;
  snprintf (option, OPTION_LEN, "%s", colon ? colon + 1 : "");
  return 0;
}

struct json_object *
request_engine (struct json_object *q, char *why)
{
  const struct method_ops *ops;
  char option[OPTION_LEN];

  if (request_find_engine (q, &ops, option, why) == -1)
    return NULL;
  return json_object_new_object ();
}
