/* gpuraid: parts of a line for a person.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_SHOW_TEXT_H
#define GPURAID_SHOW_TEXT_H

#include <stdio.h>

#include <json-c/json.h>

/* A text that may contain control codes for a terminal: "?" in their place.
 * Safe on NULL.
 */
extern void text_clean (FILE *fp, const char *s);
/* The same, with spaces up to that many bytes. */
extern void text_column (FILE *fp, const char *s, int width);
/* "2026-01-31 12:00:00: ", when it happened. */
extern void text_time (FILE *fp, struct json_object *o);

/* What render writes of o.  The caller frees it.  Aborts if there is no memory
 * for the few KiB.
 */
extern char *text_render (void (*render) (FILE *fp, struct json_object *o),
                          struct json_object *o);

#endif
