/* gpuraid: the request "wait".
 *
 * The status has no news of its own: much of it changes with each request of a
 * client, which must not pay for this.  So the session's thread looks at it,
 * and at whether the client has gone, about every 100 ms, as array_wait does.
 * A state that lasts less may be missed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "common/bits.h"
#include "common/threads/clock.h"
#include "control/condition.h"
#include "control/wait.h"

#define LOOK_NS UINT64_C (100000000)
#define NS_PER_S UINT64_C (1000000000)

struct waiting {
  const struct request_env *env;
  uint64_t until;               /* ns; UINT64_MAX: for ever */
  bool timed_out;
};

static bool
is_over (void *opaque)
{
  struct waiting *w = opaque;

  if (w->env->cancelled (w->env->cancelled_opaque))
    return true;
  w->timed_out = monotonic_ns () >= w->until;
  return w->timed_out;
}

/* Until the array is at rest. */
static struct json_object *
wait_for_rest (struct waiting *w)
{
  const struct request_env *env = w->env;
  char failed[ARRAY_WHY_LEN] = "";
  bool healthy = false;
  int error = env->ops->wait (env->opaque, &healthy, failed, is_over, w);
  struct json_object *reply;

  /* A client that has gone does not read this. */
  if (env->cancelled (env->cancelled_opaque))
    return reply_refuse ("the server is stopping");
  if (error && !w->timed_out) {
    errno = error;
    return reply_refuse ("%m");
  }
  reply = reply_accept ();
  json_add (reply, "reached", json_object_new_boolean (!w->timed_out));
  json_add (reply, "healthy", json_object_new_boolean (healthy));
  json_add (reply, "failed", failed[0] ? json_text (failed) : NULL);
  return reply;
}

static struct json_object *
reply_values (bool reached, const struct condition *c, size_t nr,
              struct json_object *status)
{
  struct json_object *reply = reply_accept ();
  struct json_object *values = json_object_new_object ();

  for (size_t i = 0; i < nr; i++)
    json_add (values, c[i].field,
              json_object_get (condition_value (&c[i], status)));
  json_add (reply, "reached", json_object_new_boolean (reached));
  json_add (reply, "values", values);
  return reply;
}

static bool
all_hold (const struct condition *c, size_t nr, struct json_object *status)
{
  for (size_t i = 0; i < nr; i++)
    if (!condition_holds (&c[i], status))
      return false;
  return true;
}

static void
sleep_a_little (const struct waiting *w)
{
  const uint64_t t = monotonic_ns ();
  const uint64_t ns = t < w->until ? MIN (w->until - t, LOOK_NS) : 0;
  const struct timespec pause = { .tv_nsec = ns };

  nanosleep (&pause, NULL);
}

static struct json_object *
wait_for_conditions (struct waiting *w, const struct condition *c, size_t nr)
{
  struct json_object *reply = NULL;

  while (reply == NULL) {
    struct json_object *status = reply_status (w->env);
    const bool reached = status && all_hold (c, nr, status);

    if (reached || is_over (w))
      reply = reached || w->timed_out ?
        reply_values (reached, c, nr, status) :
        reply_refuse ("the server is stopping");
    json_object_put (status);
    if (reply == NULL)
      sleep_a_little (w);
  }
  return reply;
}

struct json_object *
wait_run (const struct request_env *env, struct json_object *until,
          const double *seconds)
{
  const size_t nr = until ? json_object_array_length (until) : 0;
  struct waiting w = { .env = env, .until = UINT64_MAX };
  struct condition c[WAIT_MAX_CONDITIONS];
  char why[ARRAY_WHY_LEN] = "";
  struct json_object *status;

  if (seconds)
    w.until = monotonic_ns () + (uint64_t) (*seconds * NS_PER_S);
  if (nr == 0)
    return wait_for_rest (&w);
  status = reply_status (env);
  for (size_t i = 0; i < nr && why[0] == '\0'; i++)
    condition_parse (&c[i], json_object_get_string
                     (json_object_array_get_idx (until, i)), status, why);
  json_object_put (status);
  return why[0] ? reply_refuse ("%s", why) :
    wait_for_conditions (&w, c, nr);
}
