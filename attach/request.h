/* gpuraid: what is asked for when a server is to be attached.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_ATTACH_REQUEST_H
#define GPURAID_ATTACH_REQUEST_H

#include <stdbool.h>

enum attach_way { ATTACH_ANY, ATTACH_KERNEL, ATTACH_FUSE };

struct attach_request {
  const char *rundir;
  const char *uri;
  const char *name;             /* NULL: one that fits the URI */
  enum attach_way way;
  unsigned dead_timeout;        /* seconds that users wait for the server */
  unsigned patience;            /* seconds that a server may need to start */
  const char *mountpoint;       /* noted in the state; when the device is
                                 * unmounted it is detached.  NULL: neither */
  bool again;                   /* detach it first, if it is not in use */
  bool link;                    /* make /dev/gpuraid/NAME */
};

#endif
