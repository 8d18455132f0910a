/* gpuraid: kernels by the content of their matrix.
 *
 * Not by its id: the same matrix comes again and again under new ids, as
 * members fail and come back.  The oldest unused kernels are dropped.
 *
 * gpu/choice/thread.c makes and unloads specialised kernels; this file chooses
 * the kernel to use meanwhile.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/bits.h"
#include "common/bytes/crc32c.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "gpu/choice/internal.h"

struct kernels *
kernels_new (const struct kernels_options *options)
{
  struct kernels *ks = calloc (1, sizeof *ks);

  if (ks == NULL) {
    log_error ("calloc: %m");
    return NULL;
  }
  ks->after = options->after ? options->after : KERNELS_DEFAULT_AFTER;
  ks->max = options->max ? options->max : DEFAULT_MAX;
  list_init (&ks->used);
  list_init (&ks->wanted);
  list_init (&ks->dead);
  pthread_mutex_init (&ks->lock, NULL);
  pthread_cond_init (&ks->wake, NULL);
  ks->store = kernel_store_open (options->dir, KERNEL_STORE_DEFAULT_LEN);
  return ks;
}

static uint32_t
hash_matrix (const struct matrix *a, bool crc)
{
  uint64_t head[5] = { a->rows, a->cols, a->w, a->packet_len, crc };

  return crc32c_more (crc32c (head, sizeof head), a->coef,
                      (size_t) a->rows * a->cols);
}

static bool
is_of (const struct kernel *k, uint32_t hash, const struct matrix *a, bool crc)
{
  const struct matrix *b = k->matrix;

  return k->hash == hash && k->crc == crc && b->rows == a->rows &&
    b->cols == a->cols && b->w == a->w && b->packet_len == a->packet_len &&
    memcmp (b->coef, a->coef, (size_t) a->rows * a->cols) == 0;
}

/* With lock held. */
static struct kernel *
find (struct kernels *ks, uint32_t hash, const struct matrix *a, bool crc)
{
  struct kernel *k = ks->bucket[hash % NR_BUCKETS];

  while (k && !is_of (k, hash, a, crc))
    k = k->next;
  return k;
}

void
kernel_free (struct kernel *k)
{
  if (k == NULL)
    return;
  matrix_free (k->matrix);
  free (k->tables);
  free (k->tensor_tables);
  free (k);
}

static struct kernel *
kernel_new (struct kernels *ks, uint32_t hash, const struct matrix *a,
            bool crc)
{
  struct kernel *k = calloc (1, sizeof *k);

  if (k == NULL)
    return NULL;
  k->ks = ks;
  k->hash = hash;
  k->crc = crc;
  k->serial = atomic_fetch_add_explicit (&ks->last_serial, 1,
                                         memory_order_relaxed) + 1;
  k->matrix = a->packet_len
    ? matrix_new_packets (a->w, a->packet_len, a->rows, a->cols, a->coef)
    : matrix_new (a->rows, a->cols, a->coef);
  if (k->matrix == NULL)
    goto err;
  k->tables = kernel_generic (k->matrix, crc, &k->tables_len,
                              &k->generic_shape);
  if (k->tables == NULL)
    goto err;
  if (k->tables_len > DEVICE_MAX_TABLES) {
    errno = ENOTSUP;
    goto err;
  }
  kernel_find_generic (ks, k);
  kernel_find_tensor (ks, k);
  list_init (&k->link);
  list_init (&k->work);
  return k;

 err:
  kernel_free (k);
  return NULL;
}

/* With lock held: drop the oldest unused kernels.  The thread unloads the
 * loaded ones; the caller frees the rest.
 */
static void
make_room (struct kernels *ks, struct list *unloaded)
{
  list_for_each (l, &ks->used) {
    struct kernel *k = list_item (l, struct kernel, link), **p;

    if (ks->nr <= ks->max)
      break;
    if (k->nr_users > 0)
      continue;
    p = &ks->bucket[k->hash % NR_BUCKETS];
    while (*p != k)
      p = &(*p)->next;
    *p = k->next;
    ks->nr--;
    list_remove (&k->link);
    if (k->state == KERNEL_SPECIAL) {
      list_append (&ks->dead, &k->work);
      pthread_cond_signal (&ks->wake);
    }
    else
      list_append (unloaded, &k->work);
  }
}

static bool
is_tensor_best (const struct kernel *k, const struct tensor_use *t)
{
  return t->function && k->tensor_is_best[t->kind];
}

bool
kernel_needs_special (const struct kernels *ks, const struct kernel *k)
{
  for (unsigned i = 0; i < ks->nr_devices; i++)
    if (!is_tensor_best (k, &k->tensor[i][KERNEL_ON_HOST]))
      return true;
  return false;
}

/* With lock held: have the thread specialise it. */
static void
want (struct kernels *ks, struct kernel *k)
{
  if (k->state != KERNEL_PLAIN || !ks->has_thread || ks->no_compiler ||
      !kernel_needs_special (ks, k))
    return;
  k->state = KERNEL_WANTED;
  k->nr_users++;                /* the thread */
  ks->nr_wanted++;
  list_append (&ks->wanted, &k->work);
  pthread_cond_signal (&ks->wake);
}

/* With lock held: one more user. */
static struct kernel *
use (struct kernels *ks, struct kernel *k, uint64_t bytes)
{
  k->nr_users++;
  k->bytes += bytes;
  list_move (&ks->used, &k->link);
  if (k->state == KERNEL_PLAIN && k->bytes >= ks->after)
    want (ks, k);
  return k;
}

/* Add a new kernel, unless another thread was faster. */
static struct kernel *
add (struct kernels *ks, struct kernel *new, uint64_t bytes)
{
  struct kernel *k;
  struct list unloaded;

  list_init (&unloaded);
  {
    ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&ks->lock);

    k = find (ks, new->hash, new->matrix, new->crc);
    if (k)
      list_append (&unloaded, &new->work);
    else {
      k = new;
      k->next = ks->bucket[k->hash % NR_BUCKETS];
      ks->bucket[k->hash % NR_BUCKETS] = k;
      list_append (&ks->used, &k->link);
      ks->nr++;
    }
    use (ks, k, bytes);
    make_room (ks, &unloaded);
  }
  for (struct list *l; (l = list_pop (&unloaded)) != NULL; )
    kernel_free (list_item (l, struct kernel, work));
  return k;
}

struct kernel *
kernels_get (struct kernels *ks, const struct matrix *a, bool crc,
             uint64_t bytes)
{
  uint32_t hash = hash_matrix (a, crc);
  struct kernel *k;

  {
    ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&ks->lock);

    k = find (ks, hash, a, crc);
    if (k)
      return use (ks, k, bytes);
  }
  k = kernel_new (ks, hash, a, crc);
  return k ? add (ks, k, bytes) : NULL;
}

void
kernels_put (struct kernels *ks, struct kernel *k)
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&ks->lock);

  assert (k->nr_users > 0);
  k->nr_users--;
}

void
kernels_want (struct kernels *ks, const struct matrix *a, bool crc)
{
  struct kernel *k = kernels_get (ks, a, crc, 0);

  if (k == NULL)
    return;
  {
    ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&ks->lock);

    want (ks, k);
  }
  kernels_put (ks, k);
}

void
kernel_choose (const struct kernel *k, const struct gpu_device *dev,
               enum kernel_place place, struct kernel_choice *c)
{
  const struct tensor_use *tensor = &k->tensor[dev->index][place];
  const CUfunction special =
    atomic_load_explicit (&k->function[dev->index], memory_order_acquire);

  if (is_tensor_best (k, tensor) || (tensor->function && special == NULL))
    *c = (struct kernel_choice) {
      .function = tensor->function, .shape = k->tensor_shape[tensor->kind],
      .tables = k->tensor_tables, .tables_len = k->tensor_len,
    };
  else if (special)
    *c = (struct kernel_choice) { .function = special, .shape = k->shape };
  else
    *c = (struct kernel_choice) {
      .function = k->generic[dev->index], .shape = k->generic_shape,
      .tables = k->tables, .tables_len = k->tables_len,
    };
  c->serial = k->serial;
}

void
kernels_get_state (struct kernels *ks, struct kernels_state *s)
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&ks->lock);

  *s = (struct kernels_state) {
    .nr = ks->nr, .nr_wanted = ks->nr_wanted,
    .nr_compiled = ks->nr_compiled, .nr_from_store = ks->nr_from_store,
    .nr_failed = ks->nr_failed,
  };
  list_for_each (l, &ks->used)
    if (list_item (l, struct kernel, link)->state == KERNEL_SPECIAL)
      s->nr_special++;
}
