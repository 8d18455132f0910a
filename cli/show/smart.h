/* gpuraid: what SMART says of an array's members.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_SHOW_SMART_H
#define GPURAID_SHOW_SMART_H

#include <stdio.h>

#include <json-c/json.h>

/* A line for each member that is a disk of this host, if smartctl is in PATH;
 * otherwise nothing.  Takes ten seconds or so at most.  The caller ends soon:
 * processes of smartctl are not waited for.
 */
extern void smart_print (FILE *fp, struct json_object *status);

#endif
