/* gpuraid: GPU-RSCode's code, and the variants of its experiments.
 *
 * Pure.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <string.h>

#include "bench/seeds/rscode/rscode-options.h"
#include "common/bits.h"
#include "gf/matrix/field.h"

#define POLYNOMIAL 0x11d

#define TABLE(name, variant, place)                                     \
  { name, RSCODE_MIN_AR, true, false, variant, place, 1 }

static const struct rscode_option options[] = {
  { "minar",  RSCODE_MIN_AR, true, false, 3, RSCODE_PARALLEL, 1 },
  { "ar1",    RSCODE_AR_1,   true, false, 3, RSCODE_PARALLEL, 1 },
  { "maxar",  RSCODE_MAX_AR, true, false, 3, RSCODE_PARALLEL, 1 },
  { "square", RSCODE_SQUARE, true, false, 3, RSCODE_PARALLEL, 1 },
  { "naive",  RSCODE_NAIVE, false, false, 0, RSCODE_CONSTANT, 1 },
  { "byte",   RSCODE_MIN_AR, false, false, 3, RSCODE_PARALLEL, 1 },
  { "loop",   RSCODE_MIN_AR, true, true, 0, RSCODE_PARALLEL, 1 },
  TABLE ("constant0", 0, RSCODE_CONSTANT),
  TABLE ("constant1", 1, RSCODE_CONSTANT),
  TABLE ("constant2", 2, RSCODE_CONSTANT),
  TABLE ("constant3", 3, RSCODE_CONSTANT),
  TABLE ("serial0", 0, RSCODE_SERIAL),
  TABLE ("serial1", 1, RSCODE_SERIAL),
  TABLE ("serial2", 2, RSCODE_SERIAL),
  TABLE ("serial3", 3, RSCODE_SERIAL),
  TABLE ("parallel0", 0, RSCODE_PARALLEL),
  TABLE ("parallel1", 1, RSCODE_PARALLEL),
  TABLE ("parallel2", 2, RSCODE_PARALLEL),
  TABLE ("parallel3", 3, RSCODE_PARALLEL),
  { "2gpus",  RSCODE_MIN_AR, true, false, 3, RSCODE_PARALLEL, 2 },
};

const struct rscode_option *
rscode_option (const char *name)
{
  if (name == NULL)
    return &options[0];
  for (size_t i = 0; i < ARRAY_LEN (options); i++)
    if (strcmp (options[i].name, name) == 0)
      return &options[i];
  return NULL;
}

int
rscode_parity (unsigned k, unsigned m, unsigned w, uint8_t *coef)
{
  const struct field *f = field_get (8);
  bool sound = (m <= 3 && k <= 253) || (k <= 2 && m <= 198);

  if (w != 8 || k + m > 256) {
    errno = ERANGE;
    return -1;
  }
  for (unsigned j = 0; j < k; j++) {
    uint8_t power = 1;

    for (unsigned i = 0; i < m; i++) {
      coef[i * k + j] = sound ? power : f->inv[(k + i) ^ j];
      power = f->mul[power][j + 1];
    }
  }
  return 0;
}

size_t
rscode_tables (unsigned variant, uint8_t tables[RSCODE_TABLES_LEN])
{
  uint16_t log[256] = { variant == 3 ? 510 : 0 };
  uint8_t *exp = tables + (variant == 3 ? 512 : 256);
  unsigned x = 1;

  memset (tables, 0, RSCODE_TABLES_LEN);
  for (unsigned i = 0; i < 255; i++) {
    exp[i] = x;
    if (variant >= 2)
      exp[255 + i] = x;
    log[x] = i;
    x = x << 1 ^ (x & 0x80 ? POLYNOMIAL : 0);
  }
  if (variant == 1)
    exp[255] = 1;
  if (variant == 3)
    memcpy (tables, log, 512);
  else
    for (unsigned i = 0; i < 256; i++)
      tables[i] = log[i];
  return variant == 3 ? 1536 : variant == 2 ? 768 : 512;
}
