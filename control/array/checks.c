/* gpuraid: what is checked of a command before the array gets it: the names in
 * it, and whether the array may be written.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array/stores/look.h"
#include "control/array/internal.h"

bool
check_is_number (const char *s)
{
  return s[0] && s[strspn (s, "0123456789")] == '\0';
}

bool
check_is_entry (const struct array_status *st, const char *which)
{
  uuid_bytes uuid;
  const bool is_uuid = uuid_parse (which, &uuid) == 0;

  if (check_is_number (which))
    return strtoul (which, NULL, 10) < st->g.k + st->g.m;
  for (unsigned i = 0; i < st->nr_entries; i++) {
    const struct array_entry *e = &st->entry[i];

    if (is_uuid ? memcmp (&e->uuid, &uuid, sizeof uuid) == 0 :
        e->path && strcmp (e->path, which) == 0)
      return true;
  }
  return false;
}

bool
check_is_held (const struct array_status *st, const char *path)
{
  for (unsigned i = 0; i < st->nr_entries; i++) {
    const struct array_entry *e = &st->entry[i];

    if (e->path && e->state != ENTRY_FAILED && e->state != ENTRY_MISSING &&
        look_same_store (e->path, path))
      return true;
  }
  return false;
}

int
check_names (struct array *a, const char *which, const char *path,
             char why[ARRAY_WHY_LEN])
{
  struct array_status st;
  bool known, held;

  array_get_status (a, &st);
  known = which == NULL || check_is_entry (&st, which);
  held = path && check_is_held (&st, path);
  array_status_free (&st);
  if (!known)
    snprintf (why, ARRAY_WHY_LEN, "%s: the array has no such member (gpuraid "
              "status lists them)", which);
  else if (held)
    snprintf (why, ARRAY_WHY_LEN, "%s: the array uses it already: name another",
              path);
  return known && !held ? 0 : EINVAL;
}

int
check_writable (const struct array *a, char why[ARRAY_WHY_LEN])
{
  const char *because = array_readonly_why (a);

  if (because == NULL)
    return 0;
  snprintf (why, ARRAY_WHY_LEN, "the array is read-only: %s", because);
  return EROFS;
}

int
make_writable (struct array *a, int (*make) (struct array *a),
               char why[ARRAY_WHY_LEN])
{
  int err = make (a);

  if (err) {
    errno = err;
    snprintf (why, ARRAY_WHY_LEN, "the array cannot be made writable: %m");
  }
  return err;
}
