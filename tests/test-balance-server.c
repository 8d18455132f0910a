/* gpuraid: coder auto in a server whose threads want the processors that
 * near takes: no less gets done than with the better coder alone.
 *
 * In virtual time.  Each client's request needs a processor of the server, is
 * coded, needs one again, and then the client may wait before its next one.
 *
 * run-tests: no-thread
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/bits.h"
#include "gf/balance.h"
#include "gf/matrix.h"
#include "tests/auto-sim.h"

enum { max_clients = 32 };

/* A host, and what its clients ask for. */
struct host {
  const char *name;
  unsigned k, m;
  double processors;
  double near_threads, near;    /* bytes a second of one; large jobs take
                                 * all of them */
  double far, far_fixed, far_threads;
  double ceiling;
  unsigned nr_clients;
  size_t nr_rects;              /* of a request */
  double before, after;         /* seconds of a processor */
  double wait;
};

struct client {
  struct coder_job job;         /* first */
  struct sim_work work;
  enum { BEFORE, AFTER, WAIT } stage;
  struct server *server;
};

struct server {
  const struct host *h;
  struct coder_sim *sim;
  struct coder *coder;
  const struct matrix *matrix;
  bool stop;
  double bytes;                 /* of requests that are done */
  struct client client[max_clients];
};

static void
begin_stage (struct client *c, unsigned stage)
{
  const struct host *h = c->server->h;

  c->stage = stage;
  c->work.waits = stage == WAIT;
  c->work.seconds = stage == BEFORE ? h->before :
    stage == AFTER ? h->after : h->wait;
  coder_sim_work (c->server->sim, &c->work);
}

static void
coded (struct coder_job *job, int error)
{
  assert_int_equal (error, 0);
  begin_stage ((struct client *) job, AFTER);
}

static void
stage_done (struct sim_work *w)
{
  struct client *c = (struct client *) ((char *) w -
                                        offsetof (struct client, work));
  struct server *s = c->server;

  if (c->stage == BEFORE) {
    coder_submit (s->coder, &c->job);
    return;
  }
  if (c->stage == AFTER)
    s->bytes += auto_sim_bytes (&c->job);
  if (!s->stop)
    begin_stage (c, c->stage == AFTER && s->h->wait > 0 ? WAIT : BEFORE);
}

/* Bytes a second over so many. */
static double
serve (struct coder_sim *sim, const struct host *h, struct coder *coder,
       const struct matrix *a, double seconds)
{
  struct server s = { .h = h, .sim = sim, .coder = coder, .matrix = a };
  const double began = sim->now;
  double r;

  for (unsigned i = 0; i < h->nr_clients; i++) {
    struct client *c = &s.client[i];

    auto_sim_job (&c->job, a, h->nr_rects);
    c->job.done = coded;
    c->work.done = stage_done;
    c->server = &s;
    begin_stage (c, BEFORE);
  }
  while (sim->now < began + seconds)
    assert_true (coder_sim_step (sim));
  r = s.bytes / (sim->now - began);
  s.stop = true;
  while (coder_sim_step (sim))
    ;
  return r;
}

static void
init_host (struct coder_sim *sim, const struct host *h)
{
  coder_sim_init (sim, h->ceiling * GB);
  sim->processors = h->processors;
  sim->side[NEAR].fixed = 1 * US;
  sim->side[NEAR].rate = h->near_threads * h->near * GB;
  sim->side[NEAR].single = h->near * GB;
  sim->side[NEAR].small_len = 1 << 20;
  sim->side[NEAR].threads = h->near_threads;
  sim->side[FAR].fixed = h->far_fixed * US;
  sim->side[FAR].rate = h->far * GB;
  sim->side[FAR].threads = h->far_threads;
}

static const struct host hosts[] = {
  /* Of 16 processors and an H200. */
  { "processors", 10, 4, 16, 14, 4.5, 49, 27, 0, 97, 32, 4,
    400 * US, 350 * US, 0 },
  { "processors, far's too", 10, 4, 16, 14, 4.5, 49, 27, 2, 97, 32, 4,
    400 * US, 350 * US, 0 },
  { "processors, one row of rects", 10, 4, 16, 14, 4.5, 49, 27, 0, 97, 32, 1,
    100 * US, 90 * US, 0 },
  { "processors, large", 10, 4, 16, 14, 4.5, 49, 27, 0, 97, 16, 16,
    1600 * US, 1400 * US, 0 },
  { "processors, many rows", 20, 8, 16, 14, 1.6, 49, 27, 0, 97, 32, 4,
    800 * US, 700 * US, 0 },
  { "processors, a slow far", 10, 4, 16, 14, 4.5, 8, 27, 0, 97, 32, 4,
    400 * US, 350 * US, 0 },
  { "the coder", 10, 4, 16, 14, 4.5, 49, 27, 0, 97, 32, 16,
    50 * US, 50 * US, 0 },
  { "the coder, a slow far", 10, 4, 16, 14, 4.5, 8, 100, 0, 97, 32, 16,
    50 * US, 50 * US, 0 },
  { "the coder, a fast far", 20, 8, 16, 14, 1.6, 98, 27, 0, 120, 32, 16,
    50 * US, 50 * US, 0 },
  { "light", 10, 4, 16, 14, 4.5, 49, 27, 0, 97, 2, 4,
    200 * US, 200 * US, 2 * MS },
  { "light, small", 10, 4, 16, 14, 4.5, 49, 27, 0, 97, 4, 1,
    50 * US, 50 * US, 1 * MS },
  { "one client", 10, 4, 16, 14, 4.5, 49, 27, 0, 97, 1, 16,
    100 * US, 100 * US, 0 },
  { "two processors", 10, 4, 2, 1, 5, 20, 40, 0, 40, 8, 4,
    300 * US, 300 * US, 0 },
};

static void
test_server (void **state)
{
  unsigned nr_bad = 0;

  for (unsigned i = 0; i < ARRAY_LEN (hosts); i++) {
    const struct host *h = &hosts[i];
    struct matrix *a = auto_sim_encode (h->k, h->m);
    struct coder_sim sim;
    struct coder *c;
    double alone[2], both;
    bool bad;

    for (unsigned s = 0; s < 2; s++) {
      init_host (&sim, h);
      alone[s] = serve (&sim, h, &sim.side[s].coder, a, 1);
    }
    init_host (&sim, h);
    c = auto_sim_start (&sim, a);
    both = serve (&sim, h, c, a, 5);
    bad = both < 0.95 * MAX (alone[NEAR], alone[FAR]);
    print_message ("%s: near %.1f far %.1f auto %.1f GB/s%s\n", h->name,
                   alone[NEAR] / GB, alone[FAR] / GB, both / GB,
                   bad ? ": too slow" : "");
    nr_bad += bad;
    coder_free (c);
    matrix_free (a);
  }
  assert_int_equal (nr_bad, 0);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_server),
  };

  return cmocka_run_group_tests (tests, auto_sim_set_up, auto_sim_tear_down);
}
