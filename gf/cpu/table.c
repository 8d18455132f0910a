/* gpuraid: keep tables, and run what needs no multiplication.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <isa-l/raid.h>

#include "common/bits.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/plant.h"
#include "gf/cpu/table.h"
#include "gf/cpu/xor.h"
#include "gf/matrix/field.h"

/* How many matrices are kept.  An array has one matrix for each set of lost
 * members in use, times the kinds of write: small writes of several clients at
 * once have a few hundred.  With k + m <= 64 all tables are 8 MiB or less,
 * programs 16 MiB.  To make one again takes 0.03 ms at 10+4, w 8, 1.2 at 32+16.
 */
#define NR_SLOTS 256

enum kind {
  KIND_XOR,                     /* one row, of ones only */
  KIND_PQ,                      /* a row of ones, and one of powers of 2 */
  KIND_ANY,
};

/* What is kept of one matrix.  Immutable except for refs. */
struct tables {
  const struct table_ops *ops;
  uint64_t id;                  /* the matrix's */
  struct xor_code *code;        /* with packets; then only refs is set below */
  unsigned nr_cols;             /* columns that are not all 0 */
  uint8_t col[MATRIX_MAX];      /* their numbers */
  enum kind kind;
  unsigned refs;                /* with the coder's lock held: users, and 1
                                 * for the slot */
  uint64_t table[];             /* of the product; of KIND_ANY only */
};

struct table_coder {
  struct cpu_coder cpu;         /* first */
  const struct table_ops *ops;
  pthread_mutex_t lock;

  /* With lock held. */
  struct tables *slot[NR_SLOTS]; /* by id modulo NR_SLOTS */
};

static bool
is_zero_column (const struct matrix *a, unsigned i)
{
  for (unsigned j = 0; j < a->rows; j++)
    if (a->coef[j * a->cols + i] != 0)
      return false;
  return true;
}

static enum kind
find_kind (const struct table_ops *ops, unsigned rows, unsigned cols,
           const uint8_t *coef)
{
  const struct field *f = field_get (8);
  uint8_t power = 1;

  for (unsigned i = 0; i < cols; i++)
    if (coef[i] != 1)
      return KIND_ANY;
  if (rows == 1)
    return KIND_XOR;
  if (rows > 2 || cols < 2 || cols > ops->pq_cols)
    return KIND_ANY;
  for (unsigned i = 0; i < cols; i++, power = f->mul[power][2])
    if (coef[cols + i] != power)
      return KIND_ANY;
  return KIND_PQ;
}

/* Columns that are all 0 come from sources that matrix_express did not
 * need.
 */
static struct tables *
tables_new (const struct table_ops *ops, const struct matrix *a)
{
  struct tables *t;
  CLEANUP_FREE uint8_t *coef = NULL;

  t = malloc (sizeof *t + ops->element_len * a->cols * a->rows);
  coef = malloc ((size_t) a->cols * a->rows + 1);
  if (t == NULL || coef == NULL) {
    free (t);
    return NULL;
  }
  t->ops = ops;
  t->id = a->id;
  t->code = NULL;
  t->refs = 0;
  t->nr_cols = 0;
  for (unsigned i = 0; i < a->cols; i++)
    if (!is_zero_column (a, i))
      t->col[t->nr_cols++] = i;

  for (unsigned j = 0; j < a->rows; j++)
    for (unsigned n = 0; n < t->nr_cols; n++)
      coef[j * t->nr_cols + n] = a->coef[j * a->cols + t->col[n]];
  t->kind = find_kind (ops, a->rows, t->nr_cols, coef);
  if (t->kind == KIND_ANY && t->nr_cols > 0)
    ops->make (a->rows, t->nr_cols, coef, t->table);
  return t;
}

static struct tables *
tables_new_packets (const struct matrix *a)
{
  struct tables *t = calloc (1, sizeof *t);

  if (t == NULL)
    return NULL;
  t->id = a->id;
  t->code = xor_code_new (a, XOR_LOADS);
  if (t->code == NULL) {
    free (t);
    return NULL;
  }
  return t;
}

/* With the lock held. */
static void
tables_unref (struct tables *t)
{
  if (t && --t->refs == 0) {
    xor_code_free (t->code);
    free (t);
  }
}

static const void *
table_get (struct cpu_coder *cpu, const struct matrix *a)
{
  struct table_coder *c = (struct table_coder *) cpu;
  struct tables *t, **slot = &c->slot[a->id % NR_SLOTS];

  pthread_mutex_lock (&c->lock);
  t = *slot;
  if (t && t->id == a->id)
    t->refs++;
  else
    t = NULL;
  pthread_mutex_unlock (&c->lock);
  if (t)
    return t;

  /* Two threads may both make them; the later ones are kept. */
  t = a->packet_len > 0 ? tables_new_packets (a) : tables_new (c->ops, a);
  if (t == NULL)
    return NULL;
  t->refs = 2;
  pthread_mutex_lock (&c->lock);
  tables_unref (*slot);
  *slot = t;
  pthread_mutex_unlock (&c->lock);
  return t;
}

static void
table_put (struct cpu_coder *cpu, const void *tables)
{
  struct table_coder *c = (struct table_coder *) cpu;
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&c->lock);

  tables_unref ((struct tables *) tables);
}

/* xor_gen is 7 % faster than ec_encode_data for a row of ones, pq_gen 2 to 2.4
 * times for P and Q in the cache.  If there are more rows, one call for all is
 * much faster: it reads the inputs once.
 */
static void
table_encode (const struct matrix *a, const void *tables,
              const uint8_t *const *in, uint8_t *const *out,
              size_t off, size_t len)
{
  const struct tables *t = tables;
  uint8_t *cell[MATRIX_MAX + MATRIX_MAX], **dst = cell + t->nr_cols;
  int r = 0;

  for (unsigned n = 0; n < t->nr_cols; n++)
    cell[n] = (uint8_t *) in[t->col[n]] + off;
  for (unsigned j = 0; j < a->rows; j++)
    dst[j] = out[j] + off;

  if (t->nr_cols == 0) {
    for (unsigned j = 0; j < a->rows; j++)
      memset (dst[j], 0, len);
  }
  else if (t->kind == KIND_XOR && t->nr_cols == 1)
    memcpy (dst[0], cell[0], len);
  else if (t->kind == KIND_XOR)
    r = xor_gen (t->nr_cols + 1, len, (void **) cell);
  else if (t->kind == KIND_PQ)
    r = pq_gen (t->nr_cols + 2, len, (void **) cell);
  else
    t->ops->product (a->rows, t->nr_cols, t->table,
                     (const uint8_t *const *) cell, dst, len);
  assert (r == 0);
  (void) r;
  if (PLANTED ("pq-wrong") && t->kind == KIND_PQ)
    dst[1][0] ^= 1;
}

static void
table_encode_packets (const struct matrix *a, const void *tables,
                      const uint8_t *const *in, uint8_t *const *out,
                      size_t off, size_t len)
{
  const struct tables *t = tables;

  xor_code_run (t->code, in, out, off, len);
}

static const struct cpu_ops table_cpu_ops = {
  .get = table_get,
  .put = table_put,
  .encode = table_encode,
  .encode_packets = table_encode_packets,
};

void
table_coder_free (struct coder *coder)
{
  struct table_coder *c = (struct table_coder *) coder;

  cpu_coder_destroy (&c->cpu);
  for (unsigned i = 0; i < NR_SLOTS; i++)
    tables_unref (c->slot[i]);
  pthread_mutex_destroy (&c->lock);
  free (c);
}

struct coder *
table_coder_new (const struct coder_ops *coder_ops,
                 const struct table_ops *ops, int nr_threads)
{
  struct table_coder *c = calloc (1, sizeof *c);

  if (c == NULL) {
    log_error ("calloc: %m");
    return NULL;
  }
  if (cpu_coder_init (&c->cpu, coder_ops, &table_cpu_ops, nr_threads) == -1) {
    free (c);
    return NULL;
  }
  c->ops = ops;
  pthread_mutex_init (&c->lock, NULL);
  return &c->cpu.coder;
}
