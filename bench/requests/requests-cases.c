/* gpuraid-bench: the requests about cases.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <inttypes.h>
#include <string.h>

#include "bench/methods.h"
#include "bench/requests/requests.h"
#include "bench/trace.h"
#include "common/bits.h"
#include "common/json-text.h"
#include "measure/clock.h"
#include "measure/run.h"

/* Cases that are open at the same time. */
#define MAX_RUNS 256u

static struct {
  struct run *run;
  char option[OPTION_LEN];      /* of its method */
  bool loaded;                  /* raw: the inputs are on the device */
} runs[MAX_RUNS];

struct run *
bench_request_run (struct json_object *q, char *why)
{
  const uint64_t id = request_number (q, "id", MAX_RUNS, MAX_RUNS);

  if (id < MAX_RUNS && runs[id].run)
    return runs[id].run;
  snprintf (why, BENCH_WHY_LEN, "no case with this id is open");
  return NULL;
}

static int
find_metric (struct json_object *q, const struct run *run, enum metric *metric,
             char *why)
{
  *metric = strcmp (request_text (q, "metric"), "overall") == 0
    ? METRIC_OVERALL : METRIC_RAW;
  if (run_can (run, *metric))
    return 0;
  snprintf (why, BENCH_WHY_LEN, "%s has no %s", run->method->ops->name,
            run_metric_name (*metric));
  return -1;
}

/* ---- a case */

/* "lost": a list of cells, ascending. */
static int
find_losses (struct json_object *q, struct run_request *r,
             unsigned lost[CODE_MAX], char *why)
{
  const char *lose = request_text (q, "lose");
  struct json_object *list;

  r->nr_lost = request_number (q, "nr_lost", CODE_MAX, 0);
  if (strcmp (lose, "random") == 0)
    r->loss = LOSS_RANDOM;
  else if (strcmp (lose, "data") == 0)
    r->loss = LOSS_DATA;
  if (!json_object_object_get_ex (q, "lost", &list))
    return 0;
  r->loss = LOSS_GIVEN;
  r->lost = lost;
  r->nr_lost = json_object_is_type (list, json_type_array)
    ? json_object_array_length (list) : 0;
  for (unsigned i = 0; i < r->nr_lost && i < CODE_MAX; i++) {
    lost[i] = json_object_get_int (json_object_array_get_idx (list, i));
    if (i > 0 && lost[i] <= lost[i - 1])
      r->nr_lost = 0;
  }
  if (r->nr_lost >= 1 && r->nr_lost <= CODE_MAX)
    return 0;
  snprintf (why, BENCH_WHY_LEN, "lost: not a list of cells, ascending");
  return -1;
}

static int
read_case (struct json_object *q, struct run_request *r,
           char option[OPTION_LEN], unsigned lost[CODE_MAX], char *why)
{
  *r = (struct run_request) {
    .code = strcmp (request_text (q, "code"), "crs") == 0 ? CODE_CRS : CODE_RS,
    .k = request_number (q, "k", CODE_MAX, 0),
    .m = request_number (q, "m", CODE_MAX, 0),
    .w = request_number (q, "w", 8, 0),
    .w_floor = request_number (q, "w_floor", 8, 0),
    .cell_len = request_number (q, "cell", 1024 * GIB, 64 * KIB),
    .nr_rects = request_number (q, "rects", 1 << 24, 0),
    .memory_len = request_number (q, "memory", 1024 * GIB, 0),
    .least_rects = request_number (q, "least_rects", 1 << 24, 1),
    .threads = MAX (request_number (q, "threads", 1024, 1), 1),
    .slices = request_number (q, "slices", 4096, 0),
    .seed = request_number (q, "seed", INT64_MAX, 1),
  };
  if (r->k == 0 || r->m == 0) {
    snprintf (why, BENCH_WHY_LEN, "k and m are needed");
    return -1;
  }
  if (request_find_engine (q, &r->ops, option, why) == -1)
    return -1;
  r->option = option[0] ? option : NULL;
  return find_losses (q, r, lost, why);
}

/* What became of the request: a method may have changed cell, w and rects. */
static struct json_object *
describe (const struct run *run, unsigned id)
{
  const struct bench_case *bc = &run->bc;
  struct json_object *o = json_object_new_object ();
  struct json_object *metrics = json_object_new_array ();

  answer_number (o, "id", id);
  answer_text (o, "code", bc->matrix->packet_len > 0 ? "crs" : "rs");
  answer_number (o, "w", bc->w);
  answer_number (o, "rows", bc->matrix->rows);
  answer_number (o, "cell", bc->cell_len);
  answer_number (o, "rects", bc->nr_rects);
  for (enum metric m = METRIC_RAW; m <= METRIC_OVERALL; m++)
    if (run_can (run, m))
      json_object_array_add (metrics,
                             json_text (run_metric_name (m)));
  json_object_object_add (o, "metrics", metrics);
  return o;
}

struct json_object *
request_open (struct json_object *q, char *why)
{
  unsigned lost[CODE_MAX], id = 0;
  struct run_request r;

  while (id < MAX_RUNS && runs[id].run)
    id++;
  if (id == MAX_RUNS) {
    snprintf (why, BENCH_WHY_LEN, "more than %u cases are open", MAX_RUNS);
    return NULL;
  }
  if (read_case (q, &r, runs[id].option, lost, why) == -1)
    return NULL;
  method_driver = request_number (q, "trace", 1, 0) ? trace_driver (why) : NULL;
  if (method_driver == NULL && request_number (q, "trace", 1, 0))
    return NULL;
  runs[id].run = run_open (&r, why);
  runs[id].loaded = false;
  return runs[id].run ? describe (runs[id].run, id) : NULL;
}

struct json_object *
request_close (struct json_object *q, char *why)
{
  struct run *run = bench_request_run (q, why);

  if (run == NULL)
    return NULL;
  runs[request_number (q, "id", MAX_RUNS, MAX_RUNS)].run = NULL;
  run_close (run);
  return json_object_new_object ();
}

struct json_object *
request_check (struct json_object *q, char *why)
{
  struct run *run = bench_request_run (q, why);
  struct json_object *o;
  enum metric metric;
  int r;

  if (run == NULL || find_metric (q, run, &metric, why) == -1)
    return NULL;
  runs[request_number (q, "id", MAX_RUNS, MAX_RUNS)].loaded = false;
  r = run_verify (run, metric, request_number (q, "bytes", SIZE_MAX, 0), why);
  if (r == -1)
    return NULL;
  o = json_object_new_object ();
  if (r == 1)
    answer_text (o, "wrong", why);
  return o;
}

/* ---- samples */

static int
load (struct json_object *q, struct run *run, char *why)
{
  const uint64_t id = request_number (q, "id", MAX_RUNS, MAX_RUNS);

  if (runs[id].loaded || run->method->ops->load == NULL)
    return 0;
  if (run->method->ops->load (run->method, why) == -1)
    return -1;
  runs[id].loaded = true;
  return 0;
}

static int
take (struct json_object *q, struct run *run, enum metric metric,
      struct json_object *list, char *why)
{
  const unsigned times = MAX (request_number (q, "times", 1 << 24, 1), 1);
  const uint64_t nr = request_number (q, "nr", 1 << 24, 1);
  const double start = now ();
  struct json_object *least = NULL;
  double seconds;

  json_object_object_get_ex (q, "for", &least);
  do {
    if (run_code (run, metric, times, &seconds, why) == -1)
      return -1;
    json_object_array_add (list, json_object_new_double (seconds / times));
  } while (json_object_array_length (list) < nr ||
           (least && now () - start < json_object_get_double (least)));
  return 0;
}

struct json_object *
request_sample (struct json_object *q, char *why)
{
  struct run *run = bench_request_run (q, why);
  struct json_object *o, *list;
  char note[BENCH_WHY_LEN] = "";
  enum metric metric;
  double cpu;

  if (run == NULL || find_metric (q, run, &metric, why) == -1 ||
      (metric == METRIC_RAW && load (q, run, why) == -1))
    return NULL;
  list = json_object_new_array ();
  cpu = cpu_now ();
  if (take (q, run, metric, list, why) == -1) {
    json_object_put (list);
    return NULL;
  }
  o = json_object_new_object ();
  answer_double (o, "cpu", cpu_now () - cpu);
  json_object_object_add (o, "seconds", list);
  if (run->method->ops->note)
    run->method->ops->note (run->method, note, sizeof note);
  answer_text (o, "note", note);
  return o;
}
