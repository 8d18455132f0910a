/* gpuraid: a server that gets so much done with each use of two coders.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <string.h>

#include "common/bits.h"
#include "tests/trial-server.h"

void
server_init (struct server *s, uint64_t seed, double near, double far,
             double both)
{
  *s = (struct server) {
    .rate = { [USE_NEAR] = near, [USE_FAR] = far, [USE_BOTH] = both },
    .nr_clients = 16, .noise = 0.1, .cold = 1, .rnd = { seed }, .now = 1000,
  };
  auto_trial_init (&s->trial);
}

static double
noisy (struct server *s, double seconds)
{
  return seconds * (1 + s->noise * (ref_below (&s->rnd, 2001) / 1000. - 1));
}

static double
rate (struct server *s)
{
  if (s->age != s->trial.age)
    s->changed = s->now;
  s->age = s->trial.age;
  return s->rate[s->trial.use] *
    (s->now - s->changed < s->warm_up ? s->cold : 1);
}

static void
give (struct server *s, struct client *c)
{
  c->age = auto_trial_begin (&s->trial, true, s->now);
  c->waits = true;
  c->at = s->now + noisy (s, c->work * s->nr_clients / rate (s));
}

static void
ask (struct server *s, struct client *c)
{
  s->given[auto_trial_use (&s->trial, s->now)]++;
  c->work = s->large > 0 && ref_below (&s->rnd, 2) ? s->large : 1;
  give (s, c);
}

static void
answer (struct server *s, struct client *c)
{
  const bool fails = s->fails && ref_below (&s->rnd, s->fails) == 0;
  double alone[2] = { 0 };

  for (unsigned i = 0; i < 2 && !fails; i++)
    if (s->alone_rate[i] > 0)
      alone[i] = c->work / s->alone_rate[i];
  auto_trial_done (&s->trial, c->age, fails ? 0 : c->work, alone, s->now);
  c->waits = false;
  if (fails) {
    give (s, c);
    return;
  }
  s->done += c->work;
  c->at = s->now + (s->think > 0 ? noisy (s, s->think) : 0);
}

void
server_step (struct server *s)
{
  struct client *first = &s->client[0];

  for (unsigned i = 1; i < s->nr_clients; i++)
    if (s->client[i].at < first->at)
      first = &s->client[i];
  s->now = MAX (s->now, first->at);
  if (first->waits)
    answer (s, first);
  if (!first->waits && first->at <= s->now)
    ask (s, first);
}

double
server_run (struct server *s, double seconds)
{
  const double began = s->now, before = s->done;

  while (s->now < began + seconds)
    server_step (s);
  return (s->done - before) / (s->now - began);
}

double
server_seconds_until (struct server *s, enum auto_use use)
{
  const double began = s->now;
  double other = s->now;

  while (s->now - other < 0.4 && s->now - began < 20) {
    server_step (s);
    if (s->trial.best != use)
      other = s->now;
  }
  return other - began;
}

void
server_silence (struct server *s, double seconds)
{
  double last = s->now;

  for (unsigned i = 0; i < s->nr_clients; i++)
    last = MAX (last, s->client[i].at);
  for (unsigned i = 0; i < s->nr_clients; i++) {
    struct client *c = &s->client[i];

    if (c->waits)
      answer (s, c);
    c->at = last + seconds;
  }
}
