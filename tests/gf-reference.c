/* gpuraid: slow and obvious GF(2^8) for the tests of gf/, and the shipped
 * vectors.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <json-c/json.h>

#include "tests/gf-reference.h"
#include "tests/seed.h"

uint8_t
ref_mul (uint8_t a, uint8_t b)
{
  uint8_t r = 0;

  while (b) {
    if (b & 1)
      r ^= a;
    a = (a << 1) ^ (a & 0x80 ? 0x1d : 0);
    b >>= 1;
  }
  return r;
}

uint8_t
ref_mul_w (unsigned w, unsigned poly, uint8_t a, uint8_t b)
{
  unsigned r = 0;

  for (unsigned bit = 0; bit < w; bit++)
    if (b >> bit & 1)
      r ^= (unsigned) a << bit;
  for (unsigned bit = 2 * w; bit-- > w;)
    if (r >> bit & 1)
      r ^= poly << (bit - w);
  return r;
}

uint8_t
ref_inv (uint8_t a)
{
  unsigned b = 1;

  while (ref_mul (a, b) != 1)
    b++;
  return b;
}

unsigned
ref_rank (unsigned nr, unsigned len, const uint8_t *vectors)
{
  uint8_t *v = ref_alloc ((size_t) nr * len), swap;
  unsigned rank = 0;

  if (nr > 0 && len > 0)
    memcpy (v, vectors, (size_t) nr * len);
  for (unsigned c = 0; c < len && rank < nr; c++) {
    unsigned p = rank;

    while (p < nr && v[p * len + c] == 0)
      p++;
    if (p == nr)
      continue;
    for (unsigned i = 0; i < len; i++) {
      swap = v[p * len + i];
      v[p * len + i] = v[rank * len + i];
      v[rank * len + i] = swap;
    }
    for (unsigned r = rank + 1; r < nr; r++) {
      uint8_t f = ref_mul (v[r * len + c], ref_inv (v[rank * len + c]));

      for (unsigned i = 0; f != 0 && i < len; i++)
        v[r * len + i] ^= ref_mul (f, v[rank * len + i]);
    }
    rank++;
  }
  free (v);
  return rank;
}

/* splitmix64 */
uint64_t
ref_random (struct ref_random *r)
{
  uint64_t z = r->state += 0x9e3779b97f4a7c15;

  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

unsigned
ref_below (struct ref_random *r, unsigned n)
{
  return ref_random (r) % n;
}

void
ref_fill (struct ref_random *r, void *buf, size_t len)
{
  uint8_t *p = buf;

  for (size_t i = 0; i < len; i += 8) {
    uint64_t x = ref_random (r);

    memcpy (p + i, &x, len - i < 8 ? len - i : 8);
  }
}

void
ref_choose (struct ref_random *r, unsigned n, unsigned nr, unsigned *chosen)
{
  unsigned c = 0;

  for (unsigned i = 0; i < n && c < nr; i++)
    if (ref_below (r, n - i) < nr - c)
      chosen[c++] = i;
}

uint64_t
ref_seed (void)
{
  return test_seed (NULL);
}

void *
ref_alloc (size_t len)
{
  void *p = NULL;

  if (posix_memalign (&p, 64, len ? len : 64) != 0)
    fail_msg ("posix_memalign: no memory");
  return p;
}

static void
from_hex (uint8_t *dst, json_object *hex)
{
  const char *s = json_object_get_string (hex);
  unsigned byte;

  for (; s[0] && s[1]; s += 2) {
    assert_int_equal (sscanf (s, "%2x", &byte), 1);
    *dst++ = byte;
  }
}

/* rs.json: a generator from a seed.  other-matrices.json: a formula. */
static void
make_data (uint8_t *cell, unsigned i, size_t len, json_object *seed)
{
  uint32_t x = seed ? (uint32_t) json_object_get_int64 (seed) + i : 0;

  for (size_t b = 0; b < len; b++) {
    if (seed) {
      x = x * 1664525 + 1013904223;
      cell[b] = x >> 24;
    }
    else
      cell[b] = 131 * i + 29 * b + 7 + (b >> 3) * i;
  }
}

/* A row of a matrix is in hex or a list of numbers. */
static unsigned
row_len (json_object *row)
{
  if (json_object_is_type (row, json_type_string))
    return json_object_get_string_len (row) / 2;
  return json_object_array_length (row);
}

static void
row_get (uint8_t *dst, json_object *row)
{
  if (json_object_is_type (row, json_type_string)) {
    from_hex (dst, row);
    return;
  }
  for (size_t i = 0; i < json_object_array_length (row); i++)
    dst[i] = json_object_get_int (json_object_array_get_idx (row, i));
}

static void
check_set (const char *name, json_object *set,
           void (*check) (const struct ref_vectors *, void *), void *opaque)
{
  json_object *matrix = json_object_object_get (set, "matrix");
  json_object *parity = json_object_object_get (set, "parity");
  json_object *seed = json_object_object_get (set, "seed");
  struct ref_vectors v = { .name = name };

  v.rows = json_object_array_length (matrix);
  v.cols = row_len (json_object_array_get_idx (matrix, 0));
  v.len = row_len (json_object_array_get_idx (parity, 0));
  v.coef = ref_alloc (v.rows * v.cols);
  v.in = ref_alloc (v.cols * sizeof v.in[0]);
  v.parity = ref_alloc (v.rows * sizeof v.parity[0]);
  for (unsigned i = 0; i < v.cols; i++) {
    v.in[i] = ref_alloc (v.len);
    make_data (v.in[i], i, v.len, seed);
  }
  for (unsigned j = 0; j < v.rows; j++) {
    row_get (v.coef + j * v.cols, json_object_array_get_idx (matrix, j));
    v.parity[j] = ref_alloc (v.len);
    row_get (v.parity[j], json_object_array_get_idx (parity, j));
  }

  check (&v, opaque);

  for (unsigned i = 0; i < v.cols; i++)
    free (v.in[i]);
  for (unsigned j = 0; j < v.rows; j++)
    free (v.parity[j]);
  free (v.coef);
  free (v.in);
  free (v.parity);
}

unsigned
ref_each_vectors (const char *name,
                  void (*check) (const struct ref_vectors *, void *),
                  void *opaque)
{
  char path[256];
  json_object *file, *sets;
  unsigned nr = 0;

  snprintf (path, sizeof path, "tests/vectors/%s", name);
  file = json_object_from_file (path);
  if (file == NULL)
    fail_msg ("%s", json_util_get_last_err ());
  sets = json_object_object_get (file, "sets");
  assert_non_null (sets);
  if (json_object_is_type (sets, json_type_array))
    for (; nr < json_object_array_length (sets); nr++)
      check_set (name, json_object_array_get_idx (sets, nr), check, opaque);
  else {
    json_object_object_foreach (sets, key, set) {
      check_set (key, set, check, opaque);
      nr++;
    }
  }
  json_object_put (file);
  return nr;
}
