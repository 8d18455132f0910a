/* gpuraid: choose the kernel for a matrix.
 *
 * The generic kernels can code with any matrix at once: those on tensor cores,
 * where a device has them and there are no CRCs to make, else those with
 * tables.  A matrix that is used much gets kernels of its own, made by one
 * thread in the background, compiled or found in the store; but none for a
 * matrix for which tensor cores are as fast.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CHOICE_KERNELS_H
#define GPURAID_CHOICE_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gf/matrix/matrix.h"
#include "gpu/text/shape.h"
#include "gpu/text/tensor.h"

/* The most devices of a coder. */
#define KERNELS_MAX_DEVICES 16

/* Bytes of input after which a matrix is worth a compilation. */
#define KERNELS_DEFAULT_AFTER ((uint64_t) 4 << 20)

struct gpu_device;
struct kernels;
struct kernel;                  /* of one matrix, with CRCs or without */

struct kernels_options {
  const char *dir;              /* see kernel_store_open */
  uint64_t after;               /* bytes; 0: the default; ~0: never */
  unsigned max;                 /* matrices kept in memory beside those in
                                 * use; 0: the default */
};

/* No thread yet.  NULL: reported. */
extern struct kernels *kernels_new (const struct kernels_options *);
/* Load the generic kernels onto a device; before kernels_start.  0, or -1
 * reported.
 */
extern int kernels_add_device (struct kernels *, struct gpu_device *);
/* Make the thread.  0, or -1 reported. */
extern int kernels_start (struct kernels *);
/* No kernel is in use; the devices still exist.  A compilation may take seconds
 * more; then its process is killed, if it has one of its own.
 */
extern void kernels_free (struct kernels *);

/* The kernel for a matrix, kept until kernels_put, that will code this many
 * more bytes of input.  Matrices with the same content share one.  Any thread;
 * microseconds, except for a matrix not seen before.  NULL with errno: ENOTSUP
 * if only a CPU can do it.
 */
extern struct kernel *kernels_get (struct kernels *, const struct matrix *,
                                   bool crc, uint64_t bytes);
extern void kernels_put (struct kernels *, struct kernel *);

/* Specialise it now, however little it was used. */
extern void kernels_want (struct kernels *, const struct matrix *, bool crc);

/* The function to launch on a device now, for cells in that place. */
extern void kernel_choose (const struct kernel *, const struct gpu_device *,
                           enum kernel_place, struct kernel_choice *);

/* Does the program have machine code of the generic kernels, or only source? */
extern bool kernels_built_in (void);

struct kernels_state {
  unsigned nr;                  /* kernels in memory */
  unsigned nr_special;          /* specialised, on any device */
  unsigned nr_wanted;           /* waiting for the background thread, or with
                                 * it */
  unsigned nr_compiled, nr_from_store, nr_failed; /* so far */
};
extern void kernels_get_state (struct kernels *, struct kernels_state *);

#endif
