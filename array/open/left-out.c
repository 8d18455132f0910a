/* gpuraid: the listed members that an array was opened without, and why.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>
#include <string.h>

#include "array/open/left-out.h"

void
left_out_add (struct left_out *l, const char *path, const char *why)
{
  char *p, *w;

  if (l->nr == CONFIG_MAX_MEMBERS)
    return;
  p = strdup (path);
  w = strdup (why);
  if (p == NULL || w == NULL) {
    free (p);
    free (w);
    return;
  }
  l->member[l->nr].path = p;
  l->member[l->nr++].why = w;
}

static bool
is_member (const struct array_status *st, const char *path)
{
  for (unsigned i = 0; i < st->nr_entries; i++) {
    const struct array_entry *e = &st->entry[i];

    if (e->path && e->state != ENTRY_MISSING && strcmp (e->path, path) == 0)
      return true;
  }
  return false;
}

void
left_out_status (const struct left_out *l, struct array_status *st)
{
  for (unsigned i = 0; i < l->nr; i++)
    if (!is_member (st, l->member[i].path))
      st->left_out[st->nr_left_out++] = (struct array_left_out) {
        .path = l->member[i].path, .why = l->member[i].why,
      };
}

void
left_out_free (struct left_out *l)
{
  for (unsigned i = 0; i < l->nr; i++) {
    free (l->member[i].path);
    free (l->member[i].why);
  }
  l->nr = 0;
}
