/* gpuraid: tests: mutators for the fuzzers: of lists of steps, and of text.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <string.h>

#include "tests/fuzz/mutate.h"

/* ---- parts of an input -------------------------------------------------- */

/* Make a gap of len bytes at at, or leave the input as it is if it would be
 * too long.
 */
static size_t
open_gap (uint8_t *data, size_t size, size_t max, size_t at, size_t len)
{
  if (len > max - size)
    return size;
  memmove (data + at + len, data + at, size - at);
  return size + len;
}

static size_t
cut (uint8_t *data, size_t size, size_t at, size_t len)
{
  memmove (data + at, data + at + len, size - at - len);
  return size - len;
}

/* ---- steps -------------------------------------------------------------- */

/* Inputs stay on this kind of machine. */
static_assert (sizeof (struct step) == STEP_LEN, "it has no padding");

static void
step_encode (const struct step *s, uint8_t *p)
{
  memcpy (p, s, STEP_LEN);
}

static void
step_decode (const uint8_t *p, struct step *s)
{
  memcpy (s, p, STEP_LEN);
}

static size_t
nr_steps (size_t size)
{
  return size < STEPS_HEAD ? 0 : (size - STEPS_HEAD) / STEP_LEN;
}

bool
step_get (const uint8_t *data, size_t size, unsigned i, struct step *s)
{
  if (i >= nr_steps (size))
    return false;
  step_decode (data + STEPS_HEAD + i * STEP_LEN, s);
  return true;
}

size_t
step_put (uint8_t *data, size_t size, const struct step *s)
{
  step_encode (s, data + size);
  return size + STEP_LEN;
}

void
random_step (struct rng *r, unsigned nr_kinds, struct step *s)
{
  *s = (struct step) {
    .kind = rng_below (r, nr_kinds), .which = rng_next (r),
    .a = rng_next (r), .b = rng_next (r), .v = rng_bits (r, 64),
  };
}

/* One field becomes a small number, any number, or a neighbour's. */
static void
change_step (struct rng *r, unsigned nr_kinds, uint8_t *p)
{
  const uint64_t v = rng_below (r, 2) ? rng_below (r, 8) : rng_bits (r, 64);
  struct step s;

  step_decode (p, &s);
  switch (rng_below (r, 6)) {
  case 0: s.kind = rng_below (r, nr_kinds); break;
  case 1: s.which = v; break;
  case 2: s.a = v; break;
  case 3: s.b = v; break;
  case 4: s.v = v; break;
  default: s.v += rng_below (r, 2) ? 1 : -1; break;
  }
  step_encode (&s, p);
}

size_t
mutate_steps (struct rng *r, uint8_t *data, size_t size, size_t max,
              unsigned nr_kinds)
{
  const size_t nr = nr_steps (size);
  size_t at, to, grown;
  struct step s;

  size = STEPS_HEAD + nr * STEP_LEN;
  if (rng_below (r, 16) == 0)
    data[rng_below (r, STEPS_HEAD)] = rng_next (r);
  at = STEPS_HEAD + rng_below (r, nr + 1) * STEP_LEN;
  to = STEPS_HEAD + rng_below (r, nr + 1) * STEP_LEN;
  switch (rng_below (r, 6)) {
  case 0:
    if (at < size)
      return cut (data, size, at, STEP_LEN);
    break;
  case 1:
    grown = open_gap (data, size, max, at, STEP_LEN);
    random_step (r, nr_kinds, &s);
    if (grown > size)
      step_encode (&s, data + at);
    return grown;
  case 2:
    if (to == size)
      break;
    step_decode (data + to, &s);
    grown = open_gap (data, size, max, at, STEP_LEN);
    if (grown > size)
      step_encode (&s, data + at);
    return grown;
  default:
    if (at < size)
      change_step (r, nr_kinds, data + at);
    break;
  }
  return size;
}

/* ---- text --------------------------------------------------------------- */

static bool
is_separator (uint8_t c)
{
  return c == '\0' || strchr (",:={}[]\n", c) != NULL;
}

/* Where the value at *at begins, and how long it is. */
static size_t
find_value (const uint8_t *data, size_t size, size_t *at)
{
  size_t end = *at;

  while (*at > 0 && !is_separator (data[*at - 1]))
    --*at;
  while (end < size && !is_separator (data[end]))
    end++;
  return end - *at;
}

size_t
mutate_text (struct rng *r, uint8_t *data, size_t size, size_t max,
             const char *const *words, unsigned nr)
{
  size_t at = rng_below (r, size + 1);
  size_t len = rng_below (r, MIN (size - at, 40) + 1);
  const char *word = words[rng_below (r, nr)];
  size_t grown, word_len = strlen (word);

  switch (rng_below (r, 6)) {
  case 0:
    return cut (data, size, at, len);
  case 1:
    grown = open_gap (data, size, max, at, len);
    if (grown > size)           /* repeat what is now behind it */
      memcpy (data + at, data + at + len, len);
    return grown;
  case 2:
    return LLVMFuzzerMutate (data, size, max);
  case 3:
    len = 0;
    break;
  default:
    len = find_value (data, size, &at);
    break;
  }
  size = cut (data, size, at, len);
  grown = open_gap (data, size, max, at, word_len);
  if (grown > size)
    memcpy (data + at, word, word_len);
  return grown;
}
