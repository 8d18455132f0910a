/* gpuraid: print and parse the text of a struct kernel_tuning.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdio.h>
#include <string.h>

#include "bench/tuning.h"
#include "common/bits.h"
#include "gpu/text/row.h"
#include "measure/method.h"

#define MAX_BLOCK 1024u
#define MAX_MIN_BLOCKS 32u      /* no device has room for more */
#define MAX_MULTIPLY 7u

static const char *const share_name[] = {
  [KERNEL_SHARE_NONE] = "", [KERNEL_SHARE_EVEN] = "even",
  [KERNEL_SHARE_ODD] = "odd",
};

char *
tuning_print (const struct kernel_tuning *t, char buf[TUNING_LEN])
{
  size_t len = 0;

#define ADD(...) len += snprintf (buf + len, TUNING_LEN - len, __VA_ARGS__)
  ADD ("%ux%u", t->bytes, t->block);
  if (t->min_blocks > 0)
    ADD ("-min%u", t->min_blocks);
  if (t->signed_cells)
    ADD ("-signed");
  if (t->group > 1)
    ADD ("-g%u", t->group);
  if (t->share != KERNEL_SHARE_NONE)
    ADD ("-%s", share_name[t->share]);
  if (t->multiply > 0)
    ADD ("-mul%u", t->multiply);
#undef ADD
  return buf;
}

/* A number from least to most, which is the rest of a word. */
static bool
parse_number (const char *word, size_t len, const char *begin, unsigned least,
              unsigned most, unsigned *n)
{
  size_t i = strlen (begin);

  if (len <= i || len > i + 4 || strncmp (word, begin, i) != 0)
    return false;
  for (*n = 0; i < len; i++) {
    if (word[i] < '0' || word[i] > '9')
      return false;
    *n = *n * 10 + word[i] - '0';
  }
  return *n >= least && *n <= most;
}

/* "8x128" */
static bool
parse_frame (const char *word, size_t len, struct kernel_tuning *t)
{
  const char *x = memchr (word, 'x', len);

  return x && parse_number (word, x - word, "", 4, 16, &t->bytes) &&
    (t->bytes & (t->bytes - 1)) == 0 &&
    parse_number (x, word + len - x, "x", 32, MAX_BLOCK, &t->block) &&
    t->block % 32 == 0;
}

/* The field that a word belongs to, as a bit; 0: none. */
static unsigned
parse_word (const char *word, size_t len, struct kernel_tuning *t)
{
  if (parse_number (word, len, "min", 1, MAX_MIN_BLOCKS, &t->min_blocks))
    return 1;
  if (len == 6 && strncmp (word, "signed", len) == 0) {
    t->signed_cells = true;
    return 2;
  }
  if (parse_number (word, len, "g", 1, KERNEL_MAX_GROUP, &t->group))
    return 4;
  for (size_t i = 1; i < ARRAY_LEN (share_name); i++) {
    if (strlen (share_name[i]) == len &&
        strncmp (word, share_name[i], len) == 0) {
      t->share = i;
      return 8;
    }
  }
  if (parse_number (word, len, "mul", 1, MAX_MULTIPLY, &t->multiply))
    return 16;
  return 0;
}

int
tuning_parse (const char *text, struct kernel_tuning *t, char *why)
{
  const char *p = text;
  size_t len = strcspn (p, "-");
  unsigned had = 0, bit;

  *t = (struct kernel_tuning) { .group = 1 };
  if (!parse_frame (p, len, t)) {
    snprintf (why, BENCH_WHY_LEN, "%.60s: does not begin as 8x128: 4, 8 or 16 "
              "bytes, and a multiple of 32 threads up to %u", text, MAX_BLOCK);
    return -1;
  }
  for (p += len; *p; p += len) {
    p++;
    len = strcspn (p, "-");
    bit = parse_word (p, len, t);
    if (bit == 0 || had & bit) {
      snprintf (why, BENCH_WHY_LEN, "%.60s: %.*s: %s", text,
                (int) MIN (len, 60), p, bit ? "is there twice" : "not min1 to "
                "min32, signed, g1 to g4, even, odd or mul1 to mul7");
      return -1;
    }
    had |= bit;
  }
  return 0;
}

int
tuning_check (const struct kernel_tuning *t, const struct matrix *a, char *why)
{
  if (a->packet_len == 0 ||
      (t->bytes <= 8 && t->group <= 1 && t->share == KERNEL_SHARE_NONE &&
       t->multiply == 0))
    return 0;
  snprintf (why, BENCH_WHY_LEN, "packets are done 4 or 8 bytes a thread, "
            "with no g, even, odd or mul");
  return -1;
}
