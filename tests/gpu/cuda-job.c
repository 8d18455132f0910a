/* gpuraid: tests: jobs for the coder on CUDA, in an arena.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "common/bits.h"
#include "common/cleanup.h"
#include "tests/gpu/cuda-job.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t room = PTHREAD_COND_INITIALIZER;
static uint8_t *arena;
static size_t arena_len;
/* With lock held: pages, used or not. */
static bool *used;

#define PAGE 4096u

void
cuda_arena_new (size_t len)
{
  arena = mmap (NULL, len, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS,
                -1, 0);
  assert_ptr_not_equal (arena, MAP_FAILED);
  arena_len = len;
  used = calloc (len / PAGE, sizeof *used);
  assert_non_null (used);
}

void
cuda_arena_free (void)
{
  munmap (arena, arena_len);
  free (used);
}

void *
cuda_arena (size_t *len)
{
  *len = arena_len;
  return arena;
}

/* With lock held: nr free pages in a row, or arena_len. */
static size_t
find_room (size_t nr)
{
  size_t n = 0;

  for (size_t i = 0; i < arena_len / PAGE; i++) {
    n = used[i] ? 0 : n + 1;
    if (n == nr)
      return i + 1 - nr;
  }
  return arena_len;
}

/* Wait until other jobs free enough room. */
static void
take_room (struct cuda_job *t, size_t len)
{
  size_t nr = MAX (div_round_up (len, PAGE), 1);
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&lock);

  while ((t->place = find_room (nr)) == arena_len)
    pthread_cond_wait (&room, &lock);
  memset (used + t->place, true, nr);
  t->place_len = nr;
}

static void
job_done (struct coder_job *job, int error)
{
  struct cuda_job *t = (struct cuda_job *) job;
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&t->lock);

  t->nr_done += error ? 1000 : 1;
  pthread_cond_signal (&t->cond);
}

static void
wait_done (struct cuda_job *t)
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&t->lock);

  while (t->nr_done == 0)
    pthread_cond_wait (&t->cond, &t->lock);
}

/* Cells in random order, a few bytes apart at times. */
static void
place_cells (struct ref_random *rnd, struct cuda_job *t, size_t cell_len)
{
  size_t nr = t->nr_in + t->nr_out;
  size_t gap = ref_below (rnd, 3) * 64, *place = ref_alloc (nr * sizeof *place);
  uint8_t *mem;

  take_room (t, nr * (cell_len + gap));
  mem = arena + t->place * PAGE;
  ref_fill (rnd, mem, nr * (cell_len + gap));
  for (size_t i = 0; i < nr; i++) {
    size_t other = ref_below (rnd, i + 1);

    place[i] = place[other];
    place[other] = i;
  }
  for (size_t i = 0; i < nr; i++) {
    uint8_t *cell = mem + place[i] * (cell_len + gap);

    if (i < t->nr_in)
      t->in[i] = cell;
    else
      t->out[i - t->nr_in] = cell;
  }
  free (place);
}

/* The other coder writes to memory of its own. */
static void
expect (struct cuda_job *t, struct coder *right)
{
  struct coder_job job = t->job;

  t->expected = ref_alloc (t->nr_out * sizeof *t->expected);
  for (size_t i = 0; i < t->nr_out; i++)
    t->expected[i] = ref_alloc (job.cell_len);
  if (job.crc)
    t->expected_crc = ref_alloc (t->nr_crcs * sizeof *t->expected_crc);
  t->job.out = t->expected;
  t->job.crc = t->expected_crc;
  coder_submit (right, &t->job);
  wait_done (t);
  t->job = job;
  t->nr_done = 0;
}

struct cuda_job *
cuda_job_new (struct ref_random *rnd, struct coder *right,
              const struct matrix *a, size_t nr_rects, size_t cell_len,
              bool crc)
{
  struct cuda_job *t = ref_alloc (sizeof *t);

  memset (t, 0, sizeof *t);
  t->nr_in = nr_rects * a->cols;
  t->nr_out = nr_rects * a->rows;
  t->nr_crcs = (t->nr_in + t->nr_out) * (cell_len / 4096);
  t->in = ref_alloc (t->nr_in * sizeof *t->in);
  t->out = ref_alloc (t->nr_out * sizeof *t->out);
  place_cells (rnd, t, cell_len);
  t->job.matrix = a;
  t->job.cell_len = cell_len;
  t->job.nr_rects = nr_rects;
  t->job.in = t->in;
  t->job.out = t->out;
  if (crc) {
    t->job.crc = ref_alloc (t->nr_crcs * sizeof *t->job.crc);
    memset (t->job.crc, 0xee, t->nr_crcs * sizeof *t->job.crc);
  }
  t->job.done = job_done;
  pthread_mutex_init (&t->lock, NULL);
  pthread_cond_init (&t->cond, NULL);
  expect (t, right);
  return t;
}

void
cuda_job_submit (struct coder *c, struct cuda_job *t)
{
  t->nr_done = 0;
  coder_submit (c, &t->job);
}

bool
cuda_job_wait (struct cuda_job *t)
{
  wait_done (t);
  if (t->nr_done != 1)
    return false;
  for (size_t i = 0; i < t->nr_out; i++)
    if (memcmp (t->out[i], t->expected[i], t->job.cell_len) != 0)
      return false;
  return t->job.crc == NULL ||
    memcmp (t->job.crc, t->expected_crc,
            t->nr_crcs * sizeof *t->job.crc) == 0;
}

void
cuda_job_free (struct cuda_job *t)
{
  {
    ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&lock);

    memset (used + t->place, false, t->place_len);
    pthread_cond_broadcast (&room);
  }
  for (size_t i = 0; i < t->nr_out; i++)
    free (t->expected[i]);
  free (t->expected);
  free (t->expected_crc);
  free (t->job.crc);
  free (t->in);
  free (t->out);
  pthread_mutex_destroy (&t->lock);
  pthread_cond_destroy (&t->cond);
  free (t);
}
