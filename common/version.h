/* gpuraid: the release.
 *
 * What users are told is GPURAID_VERSION, which also has the commit.  The
 * Makefile defines it, from scripts/dev/version, for the files that print it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_VERSION_H
#define GPURAID_VERSION_H

#define GPURAID_RELEASE "0.1.0"

#endif
