/* gpuraid: launches on cells that are copied to the device and back.
 *
 * A kernel that reads pinned memory in place gets 51 GB/s over a link on which
 * a copy gets 55, and less while another writes; batches of copies of 64 KiB
 * get nearly all of it.  But copies, kernel and copies back take turns, so this
 * is for a stream of large parts; small or single parts are faster in place.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_DEVICE_STAGED_H
#define GPURAID_DEVICE_STAGED_H

#include <stdbool.h>

#include "gpu/device/device.h"
#include "gpu/text/shape.h"

struct staged;

/* For as many launches at once as there are large lanes.  The context is the
 * device's, its lanes exist.  NULL if the driver has no copies in batches, or
 * they don't work, or the device has no memory: then everything is done in
 * place.
 */
extern struct staged *staged_new (struct gpu_device *);
/* Frees what is in the context, which must exist and be current. */
extern void staged_close (struct staged *);
extern void staged_free (struct staged *);

/* Whether a part fits, and its cells are long enough. */
extern bool staged_takes (const struct staged *, const struct job_part *);

/* The stream in which a launch begins: what is put there before is done before
 * the kernel.
 */
extern CUstream staged_stream (const struct staged *);

/* Launch it as number nr, less than DEVICE_NR_LARGE, which nothing else uses
 * until the event is over.  params are filled for a launch in place; its
 * addresses are changed.  *call: the last function called.  Any thread.
 */
extern CUresult staged_launch (struct staged *, unsigned nr,
                               const struct job_part *,
                               const struct kernel_choice *,
                               struct kernel_params *params, CUevent,
                               const char **call);

#endif
