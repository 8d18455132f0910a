/* gpuraid-bench: requests and their answers.
 *
 * A request is a JSON object whose member "do" says what:
 *
 *   machine   version, processor and engines
 *   devices   choose those that bits of "mask" name
 *   device    the first of these, and how many there are
 *   opencl    the name of the device that OpenCL has for Sobe's equations
 *   engine    is there an engine of the name "engine"?
 *   ceilings  bytes a second that devices copy, with buffers of "memory"
 *   memcpy    the same in memory, by "threads" threads
 *   open      prepare a case, with random inputs: its "id", and what it is
 *   check     code case "id" once by "metric" and compare about "bytes" bytes
 *             of the outputs, or 0: all; "wrong": what is not as it should be
 *   sample    code it "times" times, at least "nr" times over and for "for"
 *             seconds: the seconds for coding once, of each sample
 *   close     forget it
 *   xors      the XORs of the programs for "k", "m" and "w"
 *
 * and for an open case of engine kernel-any:
 *
 *   tunes     the tuning that the coder uses; where there are two, the second
 *             one if that needs less local memory
 *   source    the text with "tuning"
 *   use       from now on code by it: "file" has its machine code
 *
 * and for an open case of engine cuda that was opened with "trace" 1:
 *
 *   phases    of "nr" jobs, each one launch, as many of them in flight as the
 *             case has: medians in us (requests-phases.c names them).
 *             "wait" is how the submitter waits: sleep, spin, or look, for
 *             which the launching thread itself looks at the event;
 *             "pause": us before each job
 *
 * One thread.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_BENCH_REQUESTS_H
#define GPURAID_BENCH_REQUESTS_H

#include <stdio.h>

#include "bench/requests/json.h"

/* A new object for the caller; NULL: why (BENCH_WHY_LEN bytes). */
extern struct json_object *requests_answer (struct json_object *request,
                                            char *why);

/* ---- between the files of bench/requests/ */

/* The open case that is named; NULL: why. */
struct run;
extern struct run *bench_request_run (struct json_object *, char *why);

typedef struct json_object *request_handler (struct json_object *, char *why);
extern request_handler request_machine, request_devices, request_device;
extern request_handler request_engine, request_ceilings, request_memcpy;
extern request_handler request_opencl;
extern request_handler request_open, request_close;
extern request_handler request_check, request_sample;
extern request_handler request_xors;
extern request_handler request_tunes, request_source, request_use;
extern request_handler request_phases;

/* "kernel:special" as a method and its option, "" without one.  0, or -1:
 * why.
 */
#define OPTION_LEN 64
struct method_ops;
extern int request_find_engine (struct json_object *,
                                const struct method_ops **,
                                char option[OPTION_LEN], char *why);

/* All of it, and its length; the caller frees it.  NULL with errno. */
extern void *read_all (FILE *, size_t *len);

#endif
