/* gpuraid: begin and end of a coder that is made of two.
 *
 * What happens to jobs in between is in gf/coder-auto-jobs.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/lock.h"
#include "common/log.h"
#include "gf/auto-measure.h"
#include "gf/coder-auto-internal.h"

static double
clock_now (void *opaque)
{
  struct timespec t;

  clock_gettime (CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

static void
measure (struct auto_coder *c, void *arena, size_t arena_len)
{
  struct auto_measure m = {
    .side = { c->side[NEAR], c->side[FAR] }, .matrix = c->matrix,
    .cell_len = c->cell_len, .arena = arena, .arena_len = arena_len,
    .clock = &c->clock,
  };
  const struct coder_auto_measured *f = &c->measured;
  int error = auto_measure (&m, &c->balance, &c->measured);

  if (error) {
    log_debug ("coder auto: nothing measured: %s", strerror (error));
    return;
  }
  log_debug ("coder auto: %ux%u: %s %.1f GB/s, %s %.1f GB/s; both at once "
             "%.1f and %.1f", f->rows, f->cols, c->side[NEAR]->ops->name,
             f->near_rate / 1e9, c->side[FAR]->ops->name, f->far_rate / 1e9,
             f->near_shared_rate / 1e9, f->far_shared_rate / 1e9);
}

static int
auto_start (struct coder *coder, void *arena, size_t arena_len)
{
  struct auto_coder *c = (struct auto_coder *) coder;

  if (coder_start (c->side[NEAR], arena, arena_len) == -1)
    return -1;
  if (coder_start (c->side[FAR], arena, arena_len) == -1) {
    log_notice ("coder %s is not used: %s does all",
                c->side[FAR]->ops->name, c->side[NEAR]->ops->name);
    return 0;
  }
  coder_leave (c->side[NEAR], c->near_leaves);
  c->near_leaves_now = true;
  if (c->matrix && arena)
    measure (c, arena, arena_len);
  c->far_works = true;
  return 0;
}

static void
auto_free (struct coder *coder)
{
  struct auto_coder *c = (struct auto_coder *) coder;
  struct auto_part *next;

  coder_free (c->side[FAR]);
  coder_free (c->side[NEAR]);
  for (struct auto_part *p = auto_ended_take (&c->ended); p; p = next) {
    next = p->next;
    auto_part_free (p);
  }
  matrix_free (c->matrix);
  pthread_mutex_destroy (&c->lock);
  free (c);
}

/* What far falls back on may be of the same kind as near. */
static unsigned
add_share (struct coder_share *share, unsigned nr,
           const struct coder_share *more)
{
  for (unsigned i = 0; i < nr && more->failed[0] == '\0'; i++) {
    if (share[i].failed[0] == '\0' &&
        strcmp (share[i].name, more->name) == 0) {
      share[i].nr_jobs += more->nr_jobs;
      share[i].bytes += more->bytes;
      return nr;
    }
  }
  if (nr < CODER_MAX_SHARES)
    share[nr++] = *more;
  return nr;
}

static unsigned
auto_shares (struct coder *coder, struct coder_share *share)
{
  struct auto_coder *c = (struct auto_coder *) coder;
  struct coder_share far[CODER_MAX_SHARES];
  unsigned nr = coder_shares (c->side[NEAR], share);
  unsigned nr_far = coder_shares (c->side[FAR], far);

  for (unsigned i = 0; i < nr_far; i++)
    nr = add_share (share, nr, &far[i]);
  return nr;
}

static const struct coder_ops auto_ops = {
  .name = "auto",
  .start = auto_start,
  .submit = auto_submit,
  .free = auto_free,
  .shares = auto_shares,
};

struct coder *
coder_auto_new (struct coder *near, unsigned near_leaves, struct coder *far,
                const struct matrix *matrix, size_t cell_len)
{
  struct auto_coder *c = aligned_alloc (alignof (struct auto_coder),
                                        sizeof *c);

  if (c == NULL) {
    log_error ("aligned_alloc: %m");
    goto err;
  }
  memset (c, 0, sizeof *c);
  if (matrix) {
    c->matrix = matrix->packet_len ?
      matrix_new_packets (matrix->w, matrix->packet_len, matrix->rows,
                          matrix->cols, matrix->coef) :
      matrix_new (matrix->rows, matrix->cols, matrix->coef);
    if (c->matrix == NULL) {
      log_error ("matrix: %m");
      goto err;
    }
  }
  c->coder.ops = &auto_ops;
  c->side[NEAR] = near;
  c->side[FAR] = far;
  c->cell_len = cell_len;
  c->near_leaves = near_leaves;
  c->clock.now = clock_now;
  lock_init (&c->lock);
  balance_init (&c->balance);
  auto_trial_init (&c->trial);
  auto_slices_init (&c->slices);
  return &c->coder;

 err:
  free (c);
  coder_free (near);
  coder_free (far);
  return NULL;
}

bool
coder_auto_measured (struct coder *coder, struct coder_auto_measured *m)
{
  struct auto_coder *c = (struct auto_coder *) coder;

  if (coder->ops != &auto_ops || c->measured.nr_points == 0)
    return false;
  *m = c->measured;
  return true;
}

void
coder_auto_set_clock (struct coder *coder,
                      const struct coder_auto_clock *clock)
{
  struct auto_coder *c = (struct auto_coder *) coder;

  assert (coder->ops == &auto_ops);
  c->clock = *clock;
}
