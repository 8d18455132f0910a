/* gpuraid: the tables and shapes of the kernels on tensor cores.
 *
 * The matrix's bits are divided among groups of slots
 * (gpu/kernels/tensor.cuh): of a group, for each block of 16 cells, there are
 * 32 columns of 128 bits, 4 words.  Column n is bit 2 * (n / 8) + n % 2 of slot
 * n % 8 / 2, so that the lane that has a slot gets all bits of it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "gf/matrix/bit-matrix.h"
#include "gpu/text/tensor.h"

#define CHUNK 128u
#define GROUP 4u
#define GROUP_LEN 512u
#define MAX_SLOTS 512u
/* As in gpu/kernels/tensor-loads.cuh and tensor-device.cu. */
#define LOADS_THREADS 128u
#define DEVICE_THREADS_32 512u
#define DEVICE_THREADS_64 384u
#define MAX_STAGES 3u
#define QUAD_PAD 32u

#define IMAGE(name)                                                     \
  extern const unsigned char image_tensor_##name[];                     \
  extern const size_t image_tensor_##name##_len;
IMAGE (host)
IMAGE (device)
IMAGE (sync)

static const struct kernel_image image[KERNEL_TENSOR_KINDS] = {
  [KERNEL_TENSOR_HOST] = {
    NULL, image_tensor_host, &image_tensor_host_len,
  },
  [KERNEL_TENSOR_DEVICE] = {
    NULL, image_tensor_device, &image_tensor_device_len,
  },
  [KERNEL_TENSOR_SYNC] = {
    NULL, image_tensor_sync, &image_tensor_sync_len,
  },
};

/* They have 8448 bytes anyway. */
const unsigned kernel_tensor_max_shared[KERNEL_TENSOR_KINDS] = {
  [KERNEL_TENSOR_HOST] = 227 * 1024 - 8448,
  [KERNEL_TENSOR_DEVICE] = 227 * 1024 - 8448,
  [KERNEL_TENSOR_SYNC] = 99 * 1024 - 8448,
};

/* Up to 32 columns, more; each for counts up to 255, for all. */
const char *const kernel_tensor_name[KERNEL_TENSOR_KINDS][KERNEL_TENSOR_NR] = {
  [KERNEL_TENSOR_HOST] = {
    "gpuraid_host32", "gpuraid_host32_safe",
    "gpuraid_host64", "gpuraid_host64_safe",
  },
  [KERNEL_TENSOR_DEVICE] = {
    "gpuraid_device32", "gpuraid_device32_safe",
    "gpuraid_device64", "gpuraid_device64_safe",
  },
  [KERNEL_TENSOR_SYNC] = {
    "gpuraid_sync32", "gpuraid_sync32_safe",
    "gpuraid_sync64", "gpuraid_sync64_safe",
  },
};

int
kernel_tensor_kind (int arch, enum kernel_place place)
{
  const enum kernel_tensor_kind own = place == KERNEL_ON_HOST
    ? KERNEL_TENSOR_HOST : KERNEL_TENSOR_DEVICE;

  if (arch == 90 && *image[own].len > 0)
    return own;
  if ((arch == 90 || arch / 10 == 8) && *image[KERNEL_TENSOR_SYNC].len > 0)
    return KERNEL_TENSOR_SYNC;
  return -1;
}

/* How a matrix is divided. */
struct division {
  unsigned blocks;              /* of cells: 2, for more than 32 cells 4 */
  unsigned by_block, lanes_log; /* chunks */
  unsigned nr_slots, nr_groups;
  unsigned stages;
  size_t tables_len, stage_len;
};

static unsigned
device_threads (const struct division *v)
{
  return v->blocks == 4 ? DEVICE_THREADS_64 : DEVICE_THREADS_32;
}

static unsigned
nr_chunks (const struct division *v)
{
  return v->by_block << v->lanes_log;
}

/* Set what follows from the chunks; true if shared memory has room for it. */
static bool
fits (const struct matrix *a, struct division *v)
{
  const size_t tile = (size_t) nr_chunks (v) * CHUNK * device_threads (v) / 32;

  v->nr_slots = nr_chunks (v) * a->rows;
  v->nr_groups = div_round_up (v->nr_slots, GROUP);
  v->tables_len = (size_t) v->nr_groups * v->blocks * GROUP_LEN;
  v->stage_len = div_round_up (a->cols, 4) * (4 * tile + QUAD_PAD);
  return v->nr_slots <= MAX_SLOTS &&
    v->tables_len + v->stages * v->stage_len <=
    kernel_tensor_max_shared[KERNEL_TENSOR_DEVICE];
}

/* As many chunks as few columns leave room for; then fewer chunks rather than
 * fewer stages, because two are too few to hide the memory's latency.
 */
static bool
divide (const struct matrix *a, struct division *v)
{
  v->blocks = a->cols <= 32 ? 2 : 4;
  for (v->stages = MAX_STAGES; v->stages >= 2; v->stages--) {
    v->by_block = a->cols <= 16 ? 2 : 1;
    v->lanes_log = a->cols <= 4 ? 2 : a->cols <= 8 ? 1 : 0;
    for (;;) {
      if (fits (a, v))
        return true;
      if (v->lanes_log > 0)
        v->lanes_log--;
      else if (v->by_block == 2)
        v->by_block = 1;
      else
        break;
    }
  }
  return false;
}

/* Of a row of the bit matrix those of 4 cells; 0 behind the last one. */
static uint32_t
bits_of_quad (const struct bit_matrix *b, unsigned row, unsigned quad)
{
  if (quad * 32 >= b->cols)
    return 0;
  return b->word[(size_t) row * b->row_words + quad / 2] >> quad % 2 * 32;
}

/* Word q of column n of a block in a group. */
static uint32_t
table_word (const struct matrix *a, const struct bit_matrix *b,
            const struct division *v, unsigned group, unsigned block,
            unsigned n, unsigned q)
{
  const unsigned slot = group * GROUP + n % 8 / 2;
  const unsigned bit = n / 8 * 2 + n % 2;
  const unsigned by_lane = q >> (2 - v->lanes_log);
  const unsigned quad = q & (3 >> v->lanes_log);
  /* What the block has: chunk, quad of cells. */
  const unsigned chunk = v->by_block == 2
    ? (block << v->lanes_log) + by_lane : by_lane;
  const unsigned first = v->by_block == 2 ? 0 : block * (4 >> v->lanes_log);

  if (slot >= v->nr_slots || slot / a->rows != chunk)
    return 0;
  return bits_of_quad (b, slot % a->rows * 8 + bit, first + quad);
}

static void
fill_tables (const struct matrix *a, const struct bit_matrix *b,
             const struct division *v, uint32_t *t)
{
  for (unsigned group = 0; group < v->nr_groups; group++)
    for (unsigned pair = 0; pair < v->blocks; pair += 2)
      for (unsigned n8 = 0; n8 < 32; n8 += 8)
        for (unsigned block = pair; block < pair + 2; block++)
          for (unsigned n = n8; n < n8 + 8; n++)
            for (unsigned q = 0; q < 4; q++)
              *t++ = table_word (a, b, v, group, block, n, q);
}

/* Whether a bit of an output is made from more than 255 bits. */
static bool
is_full (const struct bit_matrix *b)
{
  for (unsigned row = 0; row < b->rows; row++) {
    unsigned nr = 0;

    for (unsigned i = 0; i < b->row_words; i++)
      nr += nr_bits (b->word[(size_t) row * b->row_words + i]);
    if (nr > 255)
      return true;
  }
  return false;
}

static void
fill_shapes (const struct division *v, bool full,
             struct kernel_shape shape[KERNEL_TENSOR_KINDS])
{
  const bool wide = v->blocks == 4;
  const unsigned which = 2 * wide + full;

  for (unsigned kind = 0; kind < KERNEL_TENSOR_KINDS; kind++)
    shape[kind] = (struct kernel_shape) {
      .name = kernel_tensor_name[kind][which], .image = &image[kind],
      .block = LOADS_THREADS, .bytes = CHUNK / 32 * nr_chunks (v),
      .per_sm = wide ? 2 : 3, .shared_len = v->tables_len,
      .block_chunks = v->by_block, .lane_chunks_log = v->lanes_log,
      .stages = v->stages,
    };
  shape[KERNEL_TENSOR_DEVICE].block = device_threads (v);
  shape[KERNEL_TENSOR_DEVICE].per_sm = 1;
  shape[KERNEL_TENSOR_DEVICE].shared_len += v->stages * v->stage_len;
  if (v->tables_len > kernel_tensor_max_shared[KERNEL_TENSOR_SYNC])
    shape[KERNEL_TENSOR_SYNC].name = NULL;
}

void *
kernel_tensor (const struct matrix *a, size_t *len,
               struct kernel_shape shape[KERNEL_TENSOR_KINDS])
{
  CLEANUP_FREE struct bit_matrix *b = NULL;
  struct division v;
  uint32_t *t;

  if (a->packet_len > 0 || a->rows == 0 || a->cols == 0 || a->cols > 64 ||
      !divide (a, &v)) {
    errno = ENOTSUP;
    return NULL;
  }
  b = bit_matrix_new (a);
  if (b == NULL)
    return NULL;
  t = malloc (v.tables_len);
  if (t == NULL)
    return NULL;
  fill_tables (a, b, &v, t);
  fill_shapes (&v, is_full (b), shape);
  *len = v.tables_len;
  return t;
}

/* On an H200, docs/benchmarks.md has the figures: with many rows compiled code
 * is bound by its arithmetic, and with fewer than 4 neither is.  On devices of
 * compute capability 8.x nothing was measured.
 */
bool
kernel_tensor_is_best (enum kernel_tensor_kind kind, unsigned rows,
                       unsigned cols)
{
  return kind != KERNEL_TENSOR_SYNC &&
    (rows >= 12 || (rows >= 4 && cols >= 32));
}
