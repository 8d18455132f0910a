/* gpuraid: name and version.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_VERSION_H
#define GPURAID_VERSION_H

#define GPURAID_VERSION "0.1.0"

#endif
