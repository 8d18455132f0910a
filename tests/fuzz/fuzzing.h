/* gpuraid: tests: what all fuzzers share.
 *
 * A fuzzer, fuzz-NAME.c, has the three functions below.  It is linked
 * with clang's libFuzzer, or with fuzzing-plain.c where that is missing.
 * Run with --seeds=FOLDER, it writes a seed corpus there and ends.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TEST_FUZZING_H
#define GPURAID_TEST_FUZZING_H

#include <stddef.h>
#include <stdint.h>

#include "tests/format-random.h"

#define FUZZING_NR_SEEDS 64u

/* ---- of the fuzzer ------------------------------------------------------ */

/* Make a valid input of at most max bytes, which are at least 64 KiB.  Returns
 * its length.
 */
extern size_t fuzzing_seed (struct rng *r, uint8_t *data, size_t max);

/* As libFuzzer's manual describes them. */
extern size_t LLVMFuzzerCustomMutator (uint8_t *data, size_t size, size_t max,
                                       unsigned seed);
extern int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);

/* ---- for the fuzzer ----------------------------------------------------- */

extern size_t LLVMFuzzerMutate (uint8_t *data, size_t size, size_t max);
extern int LLVMFuzzerInitialize (int *argc, char ***argv);

/* Where messages go: errors are counted, and must be one line. */
extern unsigned fuzzing_nr_errors;

#endif
