/* gpuraid: what waits for space is tried again.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/io/again.h"
#include "array/io/store.h"
#include "array/io/xfer.h"

bool
space_none_waits (const struct array *a)
{
  return list_empty (&a->no_space) && list_empty (&a->no_space_stores);
}

void
space_try_again (struct array *a)
{
  struct list xfers, stores, *l;

  list_init (&xfers);
  list_init (&stores);
  list_splice (&xfers, &a->no_space);
  list_splice (&stores, &a->no_space_stores);
  while ((l = list_pop (&xfers)) != NULL)
    xfer_again (a, list_item (l, struct xfer, seat_link));
  while ((l = list_pop (&stores)) != NULL)
    store_again (a, list_item (l, struct store, link));
}
