/* gpuraid: parity rows of any size, and matrices to decode with them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bits.h"
#include "common/cleanup.h"
#include "measure/code.h"
#include "measure/reference.h"

/* A method with packets of its own always codes crs, one with rows of its own
 * and no packets rs.
 */
enum code
code_of (const struct method_ops *ops, enum code asked)
{
  if (ops->packet_len)
    return CODE_CRS;
  return ops->parity ? CODE_RS : asked;
}

int
code_w (const struct method_ops *ops, enum code code, unsigned k, unsigned m,
        unsigned asked, unsigned floor, unsigned *w, char *why)
{
  if (code == CODE_RS) {
    *w = 8;
    return 0;
  }
  *w = asked ? asked : MAX (floor, 1);
  while (asked == 0 && *w < 8 && 1u << *w < k + m)
    ++*w;
  if (asked == 0 && ops->parity == NULL)
    *w = *w <= 4 ? 4 : 8;
  if (1u << *w < k + m) {
    snprintf (why, BENCH_WHY_LEN, "%u+%u has no code with w %u", k, m, *w);
    return -1;
  }
  return 0;
}

/* x_i = i, y_j = k + j: all different, so no square minor is 0. */
static void
cauchy (unsigned k, unsigned m, unsigned w, uint8_t *coef)
{
  const struct reference_field *f = reference_field (w);

  for (unsigned j = 0; j < m; j++)
    for (unsigned i = 0; i < k; i++)
      coef[j * k + i] = f->inv[i ^ (k + j)];
}

int
method_parity (const struct method_ops *ops, enum code code, unsigned k,
               unsigned m, unsigned w, uint8_t *coef, char *why)
{
  if (ops->parity) {
    if (ops->parity (k, m, w, coef) == 0)
      return 0;
    snprintf (why, BENCH_WHY_LEN, "%s has no code for %u+%u", ops->name, k, m);
    return -1;
  }
  if (k + m > 1u << w) {
    snprintf (why, BENCH_WHY_LEN, "%u+%u is too big for w %u", k, m, w);
    return -1;
  }
  if (code == CODE_RS && k + m <= 64)
    matrix_rs_parity (k, m, coef);
  else if (code == CODE_CRS)
    matrix_crs_parity (k, m, w, coef);
  else
    cauchy (k, m, w, coef);
  return 0;
}

/* Our own packets: as in an array, 4096 / w, or the power of two below. */
static size_t
array_packet_len (unsigned w)
{
  size_t len = 4096;

  while (len * w > 4096)
    len /= 2;
  return len;
}

size_t
code_packet_len (const struct method_ops *ops, enum code code, unsigned w,
                 size_t cell_len, const char *option, size_t *unit)
{
  size_t len;

  *unit = 64;
  if (code == CODE_RS)
    return 0;
  len = ops->packet_len ? ops->packet_len (w, cell_len, option)
    : array_packet_len (w);
  if (len > 0)
    *unit = common_multiple (64, w * len);
  return len;
}

/* Row s of the generator. */
static void
generator_row (unsigned k, const uint8_t *parity, unsigned s, uint8_t *row)
{
  if (s >= k) {
    memcpy (row, parity + (s - k) * k, k);
    return;
  }
  memset (row, 0, k);
  row[s] = 1;
}

/* Gauss-Jordan on nr rows of len elements, of which the first nr become the
 * identity.
 */
static int
eliminate (const struct reference_field *f, unsigned nr, unsigned len,
           uint8_t *row)
{
  for (unsigned c = 0; c < nr; c++) {
    unsigned p = c;
    uint8_t *pivot = row + c * len;

    while (p < nr && row[p * len + c] == 0)
      p++;
    if (p == nr)
      return -1;
    /* Adding the row makes the diagonal 1 or more: no swap needed. */
    for (unsigned i = 0; p != c && i < len; i++)
      pivot[i] ^= row[p * len + i];
    for (unsigned i = 0, x = f->inv[pivot[c]]; i < len; i++)
      pivot[i] = f->mul[x][pivot[i]];
    for (unsigned r = 0; r < nr; r++) {
      unsigned x = row[r * len + c];

      for (unsigned i = 0; r != c && x != 0 && i < len; i++)
        row[r * len + i] ^= f->mul[x][pivot[i]];
    }
  }
  return 0;
}

/* With S the rows of the k survivors and L those of the lost cells, we
 * want D with D S = L.  Transposed that is S^T D^T = L^T: one elimination of
 * k rows [S^T | L^T].
 */
int
code_decode (unsigned k, unsigned m, unsigned w, const uint8_t *parity,
             unsigned nr_lost, const unsigned *lost, uint8_t *coef)
{
  unsigned len = k + nr_lost, nr = 0, next = 0;
  uint8_t row[CODE_MAX];
  CLEANUP_FREE uint8_t *sys = malloc ((size_t) k * len);

  if (sys == NULL || nr_lost > m)
    return -1;
  for (unsigned s = 0; s < k + m && nr < k; s++) {
    if (next < nr_lost && lost[next] == s) {
      next++;
      continue;
    }
    generator_row (k, parity, s, row);
    for (unsigned i = 0; i < k; i++)
      sys[i * len + nr] = row[i];
    nr++;
  }
  for (unsigned t = 0; t < nr_lost; t++) {
    generator_row (k, parity, lost[t], row);
    for (unsigned i = 0; i < k; i++)
      sys[i * len + k + t] = row[i];
  }
  if (eliminate (reference_field (w), k, len, sys) == -1)
    return -1;
  for (unsigned t = 0; t < nr_lost; t++)
    for (unsigned s = 0; s < k; s++)
      coef[t * k + s] = sys[s * len + k + t];
  return 0;
}

void
code_choose (uint64_t *random, unsigned n, unsigned nr, unsigned *lost)
{
  unsigned c = 0;

  for (unsigned i = 0; i < n && c < nr; i++)
    if (reference_random (random) % (n - i) < nr - c)
      lost[c++] = i;
}
