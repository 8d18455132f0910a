/* gpuraid: the coder on ISA-L; with packets, on XOR programs.
 *
 * ISA-L works from tables that it makes from a matrix, in a layout of its own:
 * 2.31 packs them differently if the CPU has GFNI.  So they are made for
 * exactly the rows and columns of one call, have the size that its
 * documentation asks for, and are never read here.  They are kept for the next
 * job with the same matrix, as are the programs of a matrix with packets.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <isa-l/erasure_code.h>
#include <isa-l/raid.h>

#include "common/bits.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "gf/coder-cpu.h"
#include "gf/coder-xor.h"

/* How many matrices are kept.  An array has one matrix for each set of lost
 * members in use, times the kinds of write: small writes of several clients at
 * once have a few hundred.  With k + m <= 64 all tables are 8 MiB or less,
 * programs 16 MiB.  To make one again takes 0.03 ms at 10+4, w 8, 1.2 at 32+16.
 */
#define NR_SLOTS 256

/* What ISA-L needs of one matrix.  Immutable except for refs. */
struct tables {
  uint64_t id;                  /* the matrix's */
  struct xor_code *code;        /* with packets; then only refs is set below */
  unsigned nr_cols;             /* columns that are not all 0 */
  uint8_t col[MATRIX_MAX];      /* their numbers */
  bool xor;                     /* one row, of ones only */
  unsigned refs;                /* with the coder's lock held: users, and 1
                                 * for the slot */
  uint8_t gftbls[];             /* 32 * nr_cols * rows, unless xor */
};

struct isal {
  struct cpu_coder cpu;         /* first */
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

/* Columns that are all 0 come from sources that matrix_express did not
 * need.
 */
static struct tables *
tables_new (const struct matrix *a)
{
  struct tables *t;
  CLEANUP_FREE uint8_t *coef = NULL;

  t = malloc (sizeof *t + (size_t) 32 * a->cols * a->rows);
  coef = malloc ((size_t) a->cols * a->rows + 1);
  if (t == NULL || coef == NULL) {
    free (t);
    return NULL;
  }
  t->id = a->id;
  t->code = NULL;
  t->refs = 0;
  t->nr_cols = 0;
  for (unsigned i = 0; i < a->cols; i++)
    if (!is_zero_column (a, i))
      t->col[t->nr_cols++] = i;

  t->xor = a->rows == 1;
  for (unsigned j = 0; j < a->rows; j++) {
    for (unsigned n = 0; n < t->nr_cols; n++) {
      coef[j * t->nr_cols + n] = a->coef[j * a->cols + t->col[n]];
      if (coef[j * t->nr_cols + n] != 1)
        t->xor = false;
    }
  }
  if (!t->xor && t->nr_cols > 0)
    ec_init_tables (t->nr_cols, a->rows, coef, t->gftbls);
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
isal_get (struct cpu_coder *cpu, const struct matrix *a)
{
  struct isal *c = (struct isal *) cpu;
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
  t = a->packet_len > 0 ? tables_new_packets (a) : tables_new (a);
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
isal_put (struct cpu_coder *cpu, const void *tables)
{
  struct isal *c = (struct isal *) cpu;
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&c->lock);

  tables_unref ((struct tables *) tables);
}

/* xor_gen is 7 % faster than ec_encode_data for a row of ones.  If there are
 * more rows, one call for all is much faster: it reads the inputs once.
 */
static void
isal_encode (const struct matrix *a, const void *tables,
             const uint8_t *const *in, uint8_t *const *out,
             size_t off, size_t len)
{
  const struct tables *t = tables;
  uint8_t *src[MATRIX_MAX + 1], *dst[MATRIX_MAX];
  int r;

  for (unsigned n = 0; n < t->nr_cols; n++)
    src[n] = (uint8_t *) in[t->col[n]] + off;
  for (unsigned j = 0; j < a->rows; j++)
    dst[j] = out[j] + off;

  if (t->nr_cols == 0) {
    for (unsigned j = 0; j < a->rows; j++)
      memset (dst[j], 0, len);
  }
  else if (t->xor && t->nr_cols == 1)
    memcpy (dst[0], src[0], len);
  else if (t->xor) {
    src[t->nr_cols] = dst[0];
    r = xor_gen (t->nr_cols + 1, len, (void **) src);
    assert (r == 0);
    (void) r;
  }
  else
    ec_encode_data (len, t->nr_cols, a->rows, (uint8_t *) t->gftbls, src, dst);
}

static void
isal_encode_packets (const struct matrix *a, const void *tables,
                     const uint8_t *const *in, uint8_t *const *out,
                     size_t off, size_t len)
{
  const struct tables *t = tables;

  xor_code_run (t->code, in, out, off, len);
}

static const struct cpu_ops isal_cpu_ops = {
  .get = isal_get,
  .put = isal_put,
  .encode = isal_encode,
  .encode_packets = isal_encode_packets,
};

static void
isal_free (struct coder *coder)
{
  struct isal *c = (struct isal *) coder;

  cpu_coder_destroy (&c->cpu);
  for (unsigned i = 0; i < NR_SLOTS; i++)
    tables_unref (c->slot[i]);
  pthread_mutex_destroy (&c->lock);
  free (c);
}

static const struct coder_ops isal_ops = {
  .name = "isal",
  .start = cpu_coder_start,
  .submit = cpu_coder_submit,
  .shares = cpu_coder_shares,
  .free = isal_free,
};

struct coder *
coder_isal_new (int nr_threads)
{
  struct isal *c = calloc (1, sizeof *c);

  if (c == NULL) {
    log_error ("calloc: %m");
    return NULL;
  }
  if (cpu_coder_init (&c->cpu, &isal_ops, &isal_cpu_ops, nr_threads) == -1) {
    free (c);
    return NULL;
  }
  pthread_mutex_init (&c->lock, NULL);
  return &c->cpu.coder;
}
