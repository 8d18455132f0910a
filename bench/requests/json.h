/* gpuraid-bench: what requests and answers are made of.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_BENCH_REQUESTS_JSON_H
#define GPURAID_BENCH_REQUESTS_JSON_H

#include <stdint.h>

#include <json-c/json.h>

/* The member called key, or what it is by default.  A number that is out of
 * range is the nearest that is not.
 */
extern uint64_t request_number (struct json_object *, const char *key,
                                uint64_t most, uint64_t otherwise);
/* "" by default. */
extern const char *request_text (struct json_object *, const char *key);

extern void answer_number (struct json_object *, const char *key, int64_t);
extern void answer_double (struct json_object *, const char *key, double);
extern void answer_text (struct json_object *, const char *key,
                         const char *text);

#endif
