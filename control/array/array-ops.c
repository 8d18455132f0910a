/* gpuraid: the control socket's operations on a real array.  The array decides
 * what is not checked here.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdio.h>

#include "control/array/internal.h"

static void
ops_status (void *opaque, struct array_status *st)
{
  const struct control_array *ca = opaque;

  array_get_status (ca->array, st);
}

static int
ops_wait (void *opaque, bool *healthy, char failed[ARRAY_WHY_LEN],
          bool (*cancelled) (void *), void *wait_opaque)
{
  const struct control_array *ca = opaque;

  return array_wait (ca->array, healthy, failed, cancelled, wait_opaque);
}

static int
ops_fail (void *opaque, const char *which, bool *already,
          char why[ARRAY_WHY_LEN])
{
  const struct control_array *ca = opaque;
  int err = check_writable (ca->array, why);

  if (err == 0)
    err = check_names (ca->array, which, NULL, why);
  if (err == 0)
    err = make_writable (ca->array, array_serve_writer, why);
  return err ? err : array_fail (ca->array, which, already, why);
}

static int
ops_shape_control (void *opaque, bool data, enum array_shape_command command,
                   char why[ARRAY_WHY_LEN])
{
  const struct control_array *ca = opaque;
  const int err = check_writable (ca->array, why);

  return err ? err : array_shape_control (ca->array, data, command, why);
}

static int
ops_scrub_start (void *opaque, bool repair, char why[ARRAY_WHY_LEN])
{
  const struct control_array *ca = opaque;
  int err = repair ? check_writable (ca->array, why) : 0;

  if (repair && err == 0)
    err = make_writable (ca->array, array_make_writable, why);
  return err ? err : array_scrub_start (ca->array, repair, why);
}

static int
ops_scrub_control (void *opaque, enum array_scrub_command command,
                   char why[ARRAY_WHY_LEN])
{
  const struct control_array *ca = opaque;

  return array_scrub_control (ca->array, command, why);
}

static int
ops_rebuild_pause (void *opaque, bool pause, char why[ARRAY_WHY_LEN])
{
  const struct control_array *ca = opaque;

  return array_rebuild_pause (ca->array, pause, why);
}

static void
ops_rate (void *opaque, uint64_t limit)
{
  const struct control_array *ca = opaque;

  array_set_rate (ca->array, limit);
}

static int
ops_grow (void *opaque, struct array_growth *growth,
          bool (*cancelled) (void *), void *wait_opaque,
          char why[ARRAY_WHY_LEN])
{
  const struct control_array *ca = opaque;
  int err = check_writable (ca->array, why);

  return err ? err : array_grow (ca->array, growth, cancelled, wait_opaque,
                                 why);
}

static void
ops_clients (void *opaque, struct control_clients *c)
{
  const struct control_array *ca = opaque;

  ca->clients (c);
}

static int
ops_stop (void *opaque, bool force, char why[ARRAY_WHY_LEN])
{
  const struct control_array *ca = opaque;
  struct control_clients c = { 0 };

  ca->clients (&c);
  if (c.connections && !force) {
    snprintf (why, ARRAY_WHY_LEN, "%u NBD connection%s in use", c.connections,
              c.connections == 1 ? " is" : "s are");
    return EBUSY;
  }
  /* From then on nbdkit answers requests with an error, which the kernel's
   * driver passes on; what is not answered it sends again later.
   */
  if (force)
    ca->disconnect ();
  ca->shut_down ();
  return 0;
}

static void
ops_disconnect (void *opaque)
{
  const struct control_array *ca = opaque;

  ca->disconnect ();
}

const struct control_ops control_array_ops = {
  .status = ops_status,
  .status_free = array_status_free,
  .fail = ops_fail,
  .replace = control_replace,
  .spare = control_spare,
  .add = control_add,
  .shape_control = ops_shape_control,
  .readd = control_readd,
  .scrub_start = ops_scrub_start,
  .scrub_control = ops_scrub_control,
  .rebuild_pause = ops_rebuild_pause,
  .rate = ops_rate,
  .wait = ops_wait,
  .grow = ops_grow,
  .clients = ops_clients,
  .stop = ops_stop,
  .disconnect = ops_disconnect,
};
