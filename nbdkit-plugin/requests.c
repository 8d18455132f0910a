/* gpuraid: data requests.
 *
 * Translates flags and errors.  Messages here go to clients: they have no
 * paths.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <string.h>

#include "common/bits.h"
#include "nbdkit-plugin/plugin.h"

/* Only these reach a client unchanged; nbdkit makes EINVAL of all others. */
static int
client_errno (int err)
{
  switch (err) {
  case EPERM:
  case EROFS:
  case EIO:
  case ENOMEM:
  case ENOSPC:
  case EDQUOT:
  case EFBIG:
  case ESHUTDOWN:
    return err;
  default:
    return EIO;
  }
}

static int
result (const char *what, uint32_t count, uint64_t offset, int err)
{
  if (err == 0)
    return 0;
  log_to_client ("%s of %u bytes at %llu: %s", what, (unsigned) count,
                 (unsigned long long) offset, strerror (err));
  nbdkit_set_error (client_errno (err));
  return -1;
}

static unsigned
array_flags (const struct client *c, uint32_t flags)
{
  return (flags & NBDKIT_FLAG_FUA || c->writethrough ? ARRAY_FUA : 0) |
    (c->waits || plugin_waits ? ARRAY_WAIT : 0) |
    (flags & NBDKIT_FLAG_MAY_TRIM ? ARRAY_TRIM : 0) |
    (flags & NBDKIT_FLAG_FAST_ZERO ? ARRAY_FAST : 0);
}

int
plugin_pread (void *handle, void *buf, uint32_t count, uint64_t offset,
              uint32_t flags)
{
  return result ("read", count, offset,
                 array_read (plugin_array, buf, count, offset));
}

int
plugin_pwrite (void *handle, const void *buf, uint32_t count,
               uint64_t offset, uint32_t flags)
{
  return result ("write", count, offset,
                 array_write (plugin_array, buf, count, offset,
                              array_flags (handle, flags)));
}

int
plugin_flush (void *handle, uint32_t flags)
{
  int err = array_flush (plugin_array, array_flags (handle, flags));

  if (err == 0)
    return 0;
  log_to_client ("flush: %s", strerror (err));
  nbdkit_set_error (client_errno (err));
  return -1;
}

int
plugin_trim (void *handle, uint32_t count, uint64_t offset, uint32_t flags)
{
  return result ("trim", count, offset,
                 array_zero (plugin_array, count, offset,
                             array_flags (handle, flags) | ARRAY_TRIM));
}

int
plugin_zero (void *handle, uint32_t count, uint64_t offset, uint32_t flags)
{
  int err = array_zero (plugin_array, count, offset,
                        array_flags (handle, flags));

  /* Not a failure.  Without the flag ENOTSUP must not be returned: nbdkit would
   * write the zeroes itself.
   */
  if (err == ENOTSUP && (flags & NBDKIT_FLAG_FAST_ZERO)) {
    nbdkit_set_error (ENOTSUP);
    return -1;
  }
  return result ("zero", count, offset, err);
}

/* nbdkit aborts on an extent beyond the requested range. */
struct extents {
  struct nbdkit_extents *e;
  uint64_t next, end;           /* bytes */
  bool one, failed;
};

static int
add_extent (void *opaque, uint64_t off, uint64_t len, bool hole)
{
  struct extents *x = opaque;
  uint64_t end = MIN (off + len, x->end);

  if (off > x->next || end <= x->next)
    return 0;
  if (nbdkit_add_extent (x->e, x->next, end - x->next,
                         hole ? NBDKIT_EXTENT_HOLE | NBDKIT_EXTENT_ZERO
                         : 0) == -1) {
    x->failed = true;
    return 1;
  }
  x->next = end;
  return x->one || end == x->end;
}

int
plugin_extents (void *handle, uint32_t count, uint64_t offset,
                uint32_t flags, struct nbdkit_extents *extents)
{
  struct extents x = {
    .e = extents, .next = offset, .end = offset + count,
    .one = flags & NBDKIT_FLAG_REQ_ONE,
  };
  int err = array_extents (plugin_array, count, offset, add_extent, &x);

  return x.failed ? -1 : result ("block status", count, offset, err);
}
