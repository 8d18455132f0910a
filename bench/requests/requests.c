/* gpuraid-bench: all requests.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <string.h>

#include "bench/requests/requests.h"
#include "common/bits.h"
#include "measure/method.h"

static const struct {
  const char *name;
  request_handler *answer;
} handlers[] = {
  { "machine", request_machine }, { "devices", request_devices },
  { "device", request_device }, { "opencl", request_opencl },
  { "engine", request_engine },
  { "ceilings", request_ceilings }, { "memcpy", request_memcpy },
  { "open", request_open }, { "check", request_check },
  { "sample", request_sample }, { "close", request_close },
  { "xors", request_xors }, { "tunes", request_tunes },
  { "source", request_source }, { "use", request_use },
  { "phases", request_phases },
};

struct json_object *
requests_answer (struct json_object *q, char *why)
{
  const char *name = request_text (q, "do");

  for (size_t i = 0; i < ARRAY_LEN (handlers); i++)
    if (strcmp (handlers[i].name, name) == 0)
      return handlers[i].answer (q, why);
  snprintf (why, BENCH_WHY_LEN, "do: %.60s: no such request", name);
  return NULL;
}
