/* gpuraid: tests: mutators for the fuzzers: of lists of steps, and of text.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TEST_MUTATE_H
#define GPURAID_TEST_MUTATE_H

#include "tests/fuzz/fuzzing.h"

/* An input that says, step by step, how to make something that is far too
 * long or too fragile to be mutated itself: STEPS_HEAD bytes with a meaning of
 * their own, then steps.  Bytes that are no whole step are left out.
 */
#define STEPS_HEAD 8u
#define STEP_LEN 16u

struct step {
  uint8_t kind, which;
  uint16_t a;
  uint32_t b;
  uint64_t v;
};

/* Step i of an input; false past the end. */
extern bool step_get (const uint8_t *data, size_t size, unsigned i,
                      struct step *s);
/* Put a step behind size bytes; returns the new size. */
extern size_t step_put (uint8_t *data, size_t size, const struct step *s);

/* Change, add, remove, move or repeat a step, or change the head.  Kinds from 0
 * to nr_kinds - 1 are drawn.
 */
extern size_t mutate_steps (struct rng *r, uint8_t *data, size_t size,
                            size_t max, unsigned nr_kinds);
extern void random_step (struct rng *r, unsigned nr_kinds, struct step *s);

/* Put in one of nr words, also in place of what is between two separators of
 * JSON or of keys, remove or repeat a part of the text, or change a few bytes.
 */
extern size_t mutate_text (struct rng *r, uint8_t *data, size_t size,
                           size_t max, const char *const *words, unsigned nr);

#endif
