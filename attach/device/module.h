/* gpuraid: modules of the kernel.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_ATTACH_MODULE_H
#define GPURAID_ATTACH_MODULE_H

/* Load it.  It may be there already, or not at all: that is not told. */
extern void module_load (const char *module);

#endif
