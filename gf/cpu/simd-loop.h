/* gpuraid: simd_product for one length of vectors.
 *
 * Included once for each by simd-product.c, which defines NAME, TARGET,
 * VECTOR_LEN, MAX_ROWS and MULTIPLY; there are no guards.
 *
 * A pass makes up to MAX_ROWS outputs, four vectors of each at a time, whose
 * sums are registers.  The sums are variables and not an array, because
 * compilers differ in whether they keep an array in registers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#define vector NAME (vector)
#define quad NAME (quad)
#define pass NAME (pass)
#define add_product NAME (add_product)
#define fetch NAME (fetch)
#define INLINE static inline __attribute__ ((always_inline)) TARGET

/* Cells are bytes elsewhere. */
typedef uint64_t vector
  __attribute__ ((vector_size (VECTOR_LEN), may_alias));

struct quad {
  vector v0, v1, v2, v3;
};

INLINE void
add_product (struct quad *sum, const struct quad *x, uint64_t a)
{
  const vector all = a - (vector) { 0 };

  sum->v0 ^= MULTIPLY (x->v0, all);
  sum->v1 ^= MULTIPLY (x->v1, all);
  sum->v2 ^= MULTIPLY (x->v2, all);
  sum->v3 ^= MULTIPLY (x->v3, all);
}

/* The processor itself does not read this many cells side by side ahead. */
INLINE void
fetch (const struct quad *x)
{
  for (size_t line = 0; line < sizeof *x; line += 64)
    __builtin_prefetch ((const uint8_t *) x + FETCH_AHEAD + line);
}

/* What is left at the end, less than a quad. */
INLINE void
NAME (rest) (unsigned rows, unsigned stride, unsigned cols, const uint64_t *a,
             const uint8_t *const *src, uint8_t *const *dst, size_t off)
{
  for (unsigned j = 0; j < rows; j++) {
    vector sum = { 0 };

    for (unsigned i = 0; i < cols; i++)
      sum ^= MULTIPLY (*(const vector *) (src[i] + off),
                       a[i * stride + j] - (vector) { 0 });
    *(vector *) (dst[j] + off) = sum;
  }
}

/* rows is a constant in each call, at most MAX_ROWS; stride: how many rows
 * the matrix has; first: the inputs may not be in the cache yet.
 */
INLINE void
pass (const unsigned rows, bool first, unsigned stride, unsigned cols,
      const uint64_t *a, const uint8_t *const *src, uint8_t *const *dst,
      size_t len)
{
  size_t off;

  for (off = 0; off + sizeof (struct quad) <= len;
       off += sizeof (struct quad)) {
    struct quad sum0 = { { 0 } }, sum1 = sum0, sum2 = sum0, sum3 = sum0;

    for (unsigned i = 0; i < cols; i++) {
      const struct quad *x = (const struct quad *) (src[i] + off);
      const uint64_t *c = a + i * stride;

      if (first)
        fetch (x);
      add_product (&sum0, x, c[0]);
      if (rows > 1)
        add_product (&sum1, x, c[1]);
      if (rows > 2)
        add_product (&sum2, x, c[2]);
      if (rows > 3)
        add_product (&sum3, x, c[3]);
    }
    *(struct quad *) (dst[0] + off) = sum0;
    if (rows > 1)
      *(struct quad *) (dst[1] + off) = sum1;
    if (rows > 2)
      *(struct quad *) (dst[2] + off) = sum2;
    if (rows > 3)
      *(struct quad *) (dst[3] + off) = sum3;
  }
  for (; off < len; off += VECTOR_LEN)
    NAME (rest) (rows, stride, cols, a, src, dst, off);
}

/* As few passes as possible, with as equal numbers of rows as possible. */
TARGET void
NAME (simd_product) (unsigned rows, unsigned cols, const uint64_t *a,
                     const uint8_t *const *src, uint8_t *const *dst,
                     size_t len)
{
  const unsigned nr_passes = div_round_up (rows, MAX_ROWS);

  for (unsigned p = 0; p < nr_passes; p++) {
    const unsigned j = rows * p / nr_passes;
    const uint64_t *b = a + j;
    uint8_t *const *d = dst + j;

    switch (rows * (p + 1) / nr_passes - j) {
    case 1: pass (1, p == 0, rows, cols, b, src, d, len); break;
    case 2: pass (2, p == 0, rows, cols, b, src, d, len); break;
    case 3: pass (3, p == 0, rows, cols, b, src, d, len); break;
#if MAX_ROWS == 4
    case 4: pass (4, p == 0, rows, cols, b, src, d, len); break;
#endif
    }
  }
}

#undef vector
#undef quad
#undef pass
#undef add_product
#undef fetch
#undef INLINE
#undef NAME
#undef TARGET
#undef VECTOR_LEN
#undef MAX_ROWS
#undef MULTIPLY
