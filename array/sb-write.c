/* gpuraid: write superblock copies of one member.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>

#include "array/sb-write.h"

struct sb_job {
  struct call call;
  struct news news;
  struct io io;
  struct iovec iov;
  struct array *a;
  struct seat *seat;
  struct member *m;
  struct superblock sb;
  enum sb_pairs pairs;
  enum sb_copy copy[SB_NR_COPIES];
  unsigned nr_copies;
  unsigned nr_done;             /* of them, written and flushed */
  uint8_t *buf;
  void (*done) (struct array *a, struct seat *s, int error);
};

static void
write_copy (struct sb_job *j)
{
  struct io *io = &j->io;

  j->sb.copy = j->copy[j->nr_done];
  superblock_encode (&j->sb, j->buf);
  j->iov = (struct iovec) { j->buf, SB_LEN };
  j->io.kind = IO_WRITE;
  j->io.off = layout_sb_off (j->m->ops->size (j->m), j->sb.copy);
  j->io.len = SB_LEN;
  j->io.iov = &j->iov;
  j->io.nr_iov = 1;
  loop_submit (j->a->loop, &io, 1);
}

static void
sb_news (struct array *a, struct news *n)
{
  struct sb_job *j = list_item (n, struct sb_job, news);

  atomic_fetch_sub (&j->seat->users, 1);
  if (j->io.error == 0 && (j->pairs & SB_PROPOSED))
    j->seat->b_first[0] = false;
  if (j->io.error == 0 && (j->pairs & SB_ACCEPTED))
    j->seat->b_first[1] = false;
  j->done (a, j->seat, j->io.error);
  free (j->buf);
  free (j);
}

static void
sb_io_done (struct io *io)
{
  struct sb_job *j = list_item (io, struct sb_job, io);
  struct array *a = j->a;

  if (io->error == 0 && io->kind == IO_WRITE) {
    io->kind = IO_FLUSH;
    io->off = io->len = 0;
    io->iov = NULL;
    io->nr_iov = 0;
    loop_submit (a->loop, &io, 1);
    engine_kick (a);
  }
  else if (io->error == 0 && ++j->nr_done < j->nr_copies) {
    write_copy (j);
    engine_kick (a);
  }
  else
    engine_post (a, &j->news);
}

static void
sb_start (struct call *call)
{
  write_copy (list_item (call, struct sb_job, call));
}

static void
add_pair (struct sb_job *j, enum sb_copy a, enum sb_copy b, bool b_first)
{
  j->copy[j->nr_copies++] = b_first ? b : a;
  j->copy[j->nr_copies++] = b_first ? a : b;
}

void
sb_write (struct array *a, struct seat *s, enum sb_pairs pairs, bool clean,
          void (*done) (struct array *a, struct seat *s, int error))
{
  struct sb_job *j = calloc (1, sizeof *j);

  if (j == NULL || posix_memalign ((void **) &j->buf, BLOCK_LEN, SB_LEN))
    abort ();
  j->call.run = sb_start;
  j->news.run = sb_news;
  j->io.member = j->m = s->m;
  j->io.done = sb_io_done;
  j->a = a;
  j->seat = s;
  j->sb = a->sb;
  j->sb.clean = clean;
  membership_fill (&a->membership, s->dev, &j->sb);
  j->pairs = pairs;
  if (pairs & SB_PROPOSED)
    add_pair (j, SB_A1, SB_B1, s->b_first[0]);
  if (pairs & SB_ACCEPTED)
    add_pair (j, SB_A2, SB_B2, s->b_first[1]);
  j->done = done;
  atomic_fetch_add (&s->users, 1);
  engine_call (a, &j->call);
}
