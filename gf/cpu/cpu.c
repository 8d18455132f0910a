/* gpuraid: divide jobs into pieces, share them out, and compute CRCs.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/bits.h"
#include "common/bytes/crc32c.h"
#include "common/log.h"
#include "gf/cpu/cpu.h"
#include "gf/cpu/workers.h"

#define BLOCK_LEN ((size_t) 4096)

/* Jobs below this stay in one thread.  A wake-up takes 50 us and more on a
 * virtual machine: sharing 10+4 x 64 KiB with one other thread made it slower,
 * 95 us rather than 84.  Input counts once for each 4 rows; the value is 130 us
 * of ISA-L at any k + m.
 */
#define SMALL_LEN ((size_t) 1 << 20)
/* The same, for a part of a larger job. */
#define PART_LEN ((size_t) 128 << 10)
/* The same, for a job given to another thread because its own has other work.
 */
#define AWAY_LEN ((size_t) 128 << 10)

/* The cells of a piece are at most this in all, to stay in a second level cache
 * while group after group of rows passes over them.  Pieces above 16 KiB were
 * no faster with any k + m.
 */
#define PIECE_CACHE_LEN ((size_t) 256 << 10)
#define MAX_PIECE_LEN ((size_t) 16 << 10)

/* A job under way. */
struct cpu_job {
  struct work work;             /* first */
  struct cpu_coder *c;
  struct coder_job *job;
  const void *tables;
  size_t piece_len;
  size_t nr_pieces;             /* in a rect; the last may be shorter */
};

unsigned
coder_nr_cpus (void)
{
  cpu_set_t set;
  long nr;

  /* Those that we may use; more than 1024 don't fit into the set. */
  if (sched_getaffinity (0, sizeof set, &set) == 0)
    return CPU_COUNT (&set);
  nr = sysconf (_SC_NPROCESSORS_ONLN);
  return nr > 0 ? nr : 1;
}

int
cpu_coder_init (struct cpu_coder *c, const struct coder_ops *ops,
                const struct cpu_ops *cpu, int nr_threads)
{
  c->coder.ops = ops;
  c->cpu = cpu;
  if (nr_threads < 0)
    nr_threads = coder_nr_cpus () - 1;
  c->workers = workers_new (nr_threads);
  return c->workers ? 0 : -1;
}

void
cpu_coder_destroy (struct cpu_coder *c)
{
  workers_free (c->workers);
}

int
cpu_coder_start (struct coder *coder, void *arena, size_t arena_len)
{
  struct cpu_coder *c = (struct cpu_coder *) coder;

  return workers_start (c->workers);
}

static void
crc_blocks (uint32_t *crc, const uint8_t *buf, size_t len)
{
  for (size_t off = 0; off < len; off += BLOCK_LEN)
    *crc++ = crc32c (buf + off, BLOCK_LEN);
}

/* The CRC of the inputs first: it reads each cell from end to end, which brings
 * it into the cache faster than reading all of them side by side.
 */
static void
run_piece (struct cpu_job *t, size_t rect, size_t off, size_t len)
{
  struct coder_job *job = t->job;
  const struct matrix *a = job->matrix;
  const uint8_t *const *in = job->in + rect * a->cols;
  uint8_t *const *out = job->out + rect * a->rows;
  size_t nr_blocks = job->cell_len / BLOCK_LEN;
  uint32_t *crc = NULL;

  if (job->crc) {
    crc = job->crc + rect * (a->cols + a->rows) * nr_blocks + off / BLOCK_LEN;
    for (unsigned i = 0; i < a->cols; i++, crc += nr_blocks)
      crc_blocks (crc, in[i] + off, len);
  }
  if (a->rows > 0 && a->packet_len > 0)
    t->c->cpu->encode_packets (a, t->tables, in, out, off / a->w, len / a->w);
  else if (a->rows > 0)
    t->c->cpu->encode (a, t->tables, in, out, off, len);
  if (job->crc) {
    for (unsigned j = 0; j < a->rows; j++, crc += nr_blocks)
      crc_blocks (crc, out[j] + off, len);
  }
}

/* ISA-L's functions for AVX-512 leave the upper parts of the registers in use.
 * That slows down later calculations with doubles in this thread, which coder
 * auto makes for each job, by half a microsecond and more.
 */
#ifdef __x86_64__
__attribute__ ((target ("avx")))
static void
zero_upper (void)
{
  __builtin_ia32_vzeroupper ();
}

static void
leave_vectors (void)
{
  if (__builtin_cpu_supports ("avx"))
    zero_upper ();
}
#else
static void
leave_vectors (void)
{
}
#endif

/* A part is a range of pieces of all rects. */
static void
run_part (struct work *work, size_t part)
{
  struct cpu_job *t = (struct cpu_job *) work;
  size_t nr = t->job->nr_rects * t->nr_pieces;
  size_t end = nr * (part + 1) / work->nr_parts;

  for (size_t i = nr * part / work->nr_parts; i < end; i++) {
    size_t off = i % t->nr_pieces * t->piece_len;

    run_piece (t, i / t->nr_pieces, off,
               MIN (t->piece_len, t->job->cell_len - off));
  }
  leave_vectors ();
}

/* Counted before done, so that the owner of the job finds it counted. */
static void
finish (struct cpu_coder *c, struct coder_job *job, const void *tables)
{
  c->cpu->put (c, tables);
  atomic_fetch_add_explicit (&c->nr_jobs, 1, memory_order_relaxed);
  atomic_fetch_add_explicit (&c->bytes,
                      job->nr_rects * job->matrix->cols * job->cell_len,
                      memory_order_relaxed);
  job->done (job, 0);
}

static void
job_done (struct work *work)
{
  struct cpu_job *t = (struct cpu_job *) work;

  finish (t->c, t->job, t->tables);
  /* After done: freeing what another thread has allocated takes a while. */
  free (t);
}

/* The length of a piece is a multiple of this.  With packets a piece is a part
 * of each packet of a block, or, with CRCs, whole blocks.
 */
static size_t
piece_unit (const struct coder_job *job)
{
  const struct matrix *a = job->matrix;
  const size_t block_len = a->w * a->packet_len;

  if (a->packet_len == 0)
    return BLOCK_LEN;
  if (job->crc)
    return common_multiple (block_len, BLOCK_LEN);
  if (block_len <= MAX_PIECE_LEN)
    return block_len;
  return a->w * (is_aligned (a->packet_len, 64) ? 64 : 8);
}

static void
choose_pieces (struct cpu_job *t)
{
  const struct coder_job *job = t->job;
  const size_t unit = piece_unit (job);
  size_t len, nr_cells = job->matrix->rows + job->matrix->cols;

  len = PIECE_CACHE_LEN / MAX (nr_cells, 1);
  len = MIN (len, MAX_PIECE_LEN);
  len = MAX (len / unit, 1) * unit;
  /* A block is best coded right after its CRC: with 4096 4+2 was 17 % faster
   * than with 16384, 10+4 12 %, 32+16 2 % slower.
   */
  if (job->crc)
    len = unit;
  t->piece_len = len;
  t->nr_pieces = div_round_up (job->cell_len, len);
}

/* Bytes of input that take the same time. */
static size_t
cost_len (const struct coder_job *job)
{
  return job->nr_rects * job->matrix->cols * job->cell_len *
    MAX (job->matrix->rows, 4) / 4;
}

static size_t
choose_nr_parts (const struct cpu_job *t)
{
  const struct coder_job *job = t->job;
  unsigned nr_threads = workers_nr (t->c->workers);
  size_t len = cost_len (job);

  if (nr_threads == 0 || len < SMALL_LEN)
    return 1;
  /* Some more than there are threads, since not all begin at once. */
  return MIN (MIN (len / PART_LEN, 4 * (nr_threads + 1)),
              job->nr_rects * t->nr_pieces);
}

void
cpu_coder_submit (struct coder *coder, struct coder_job *job)
{
  struct cpu_coder *c = (struct cpu_coder *) coder;
  struct cpu_job *t = NULL, here = {
    .work = { .nr_parts = 1, .run = run_part, .done = job_done },
    .c = c, .job = job,
  };
  bool away;

  coder_job_check (job);
  here.tables = c->cpu->get (c, job->matrix);
  if (here.tables == NULL) {
    job->done (job, errno);
    return;
  }
  choose_pieces (&here);
  here.work.nr_parts = choose_nr_parts (&here);
  away = job->away && workers_nr (c->workers) > 0 &&
    cost_len (job) >= AWAY_LEN;

  if (away || here.work.nr_parts > 1)
    t = malloc (sizeof *t);
  if (t) {
    *t = here;
    (away ? workers_give : workers_run) (c->workers, &t->work);
    return;
  }
  /* Small, or no memory to share it. */
  here.work.nr_parts = 1;
  run_part (&here.work, 0);
  finish (c, job, here.tables);
}

unsigned
cpu_coder_shares (struct coder *coder, struct coder_share *share)
{
  struct cpu_coder *c = (struct cpu_coder *) coder;

  *share = (struct coder_share) {
    .nr_jobs = atomic_load_explicit (&c->nr_jobs, memory_order_relaxed),
    .bytes = atomic_load_explicit (&c->bytes, memory_order_relaxed),
  };
  snprintf (share->name, sizeof share->name, "%s", coder->ops->name);
  return 1;
}
