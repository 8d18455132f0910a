/* gpuraid: a string for JSON.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_COMMON_JSON_TEXT_H
#define GPURAID_COMMON_JSON_TEXT_H

#include <stdbool.h>

#include <json-c/json.h>

/* For all that is printed or answered; the caller's.  Bytes that are not UTF-8
 * become U+FFFD: json-c would send them unchanged, and the reader would refuse
 * the whole object.  NULL: no memory.  Any thread.
 */
extern struct json_object *json_text (const char *s);

/* Is all of it UTF-8, so that json_text keeps it? */
extern bool json_text_keeps (const char *s);

#endif
