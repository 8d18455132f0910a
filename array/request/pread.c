/* gpuraid: read from members in the client's thread.
 *
 * No array lock is held: the steps keep the members open.  Reads that touch on
 * a member are one call, and what was read is compared with its checksums.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array/cache/cache.h"
#include "array/engine/place.h"
#include "array/request/internal.h"
#include "array/seats/seat.h"
#include "array/sums/sums.h"
#include "common/bytes/crc32c.h"

/* Align reads of a member that needs whole, aligned blocks. */
static int
pread_bounced (struct member *m, void *buf, size_t len, uint64_t off)
{
  const uint64_t start = round_down (off, BLOCK_LEN);
  const size_t n = round_up (off + len, BLOCK_LEN) - start;
  void *p = NULL;
  int err;

  err = posix_memalign (&p, BLOCK_LEN, n);
  if (err)
    return err;
  err = m->ops->pread (m, p, n, start);
  if (err == 0)
    memcpy (buf, (uint8_t *) p + (off - start), len);
  free (p);
  return err;
}

/* Whole blocks; off counts from the first one of the step. */
static int
compare (const struct request *r, const struct step *s, const uint8_t *buf,
         uint32_t off, uint32_t len)
{
  const struct array *a = r->a;
  const unsigned slot = s->seat->slot;
  const uint64_t row = line_row (a, s->no) + s->cell_off / BLOCK_LEN +
    off / BLOCK_LEN;
  const uint32_t *sum = &r->sums[s->sum + off / BLOCK_LEN];

  for (uint32_t i = 0; i < len / BLOCK_LEN; i++)
    if (sums_sum (a, slot, row + i,
                  crc32c (buf + (size_t) i * BLOCK_LEN, BLOCK_LEN)) != sum[i])
      return EBADMSG;
  return 0;
}

/* Read whole blocks a piece at a time, and compare each while it is in the
 * processor's cache.
 */
#define CHECK_LEN (64u << 10)

static int
pread_checked (const struct request *r, const struct step *s, uint8_t *buf,
               uint32_t len)
{
  const uint64_t start = round_down (s->member_off, BLOCK_LEN);
  struct member *m = s->seat->m;

  for (uint32_t done = 0, some; done < len; done += some) {
    int err;

    some = MIN (CHECK_LEN, len - done);
    err = m->ops->pread (m, buf + done, some, start + done);
    if (err == 0)
      err = compare (r, s, buf + done, done, some);
    if (err)
      return err;
  }
  return 0;
}

/* The step may begin or end within a block. */
static int
pread_step_checked (const struct request *r, const struct step *s)
{
  const uint32_t start = round_down (s->cell_off, BLOCK_LEN);
  const uint32_t len = round_up (s->cell_off + s->len, BLOCK_LEN) - start;
  void *p = NULL;
  int err;

  if (len == s->len &&
      (!s->seat->m->direct || is_aligned ((uintptr_t) s->buf, BLOCK_LEN)))
    return pread_checked (r, s, s->buf, len);
  err = posix_memalign (&p, BLOCK_LEN, len);
  if (err)
    return err;
  err = pread_checked (r, s, p, len);
  if (err == 0)
    memcpy (s->buf, (uint8_t *) p + (s->cell_off - start), s->len);
  free (p);
  return err;
}

static int
pread_step (const struct request *r, const struct step *s)
{
  const uint64_t off = s->member_off;
  struct member *m = s->seat->m;

  if (r->a->sums)
    return pread_step_checked (r, s);

  if (m->direct &&
      ((uintptr_t) s->buf | off | s->len) & (BLOCK_LEN - 1))
    return pread_bounced (m, s->buf, s->len, off);
  return m->ops->pread (m, s->buf, s->len, off);
}

/* ---- reads that touch ---------------------------------------------------- */

/* With checksums, what is compared should still be in the processor's cache. */
#define CHAIN_MAX_LEN (256u << 10)

struct chain {
  unsigned nr;
  uint64_t len;                 /* bytes */
  struct step *step[REQUEST_STEPS];
};

static bool
may_chain (const struct step *s)
{
  return s->from == STEP_SEAT && s->seat->m->ops->preadv &&
    !s->seat->m->direct &&
    is_aligned (s->cell_off, BLOCK_LEN) && is_aligned (s->len, BLOCK_LEN);
}

/* A step, and those after it that go on where the last one ends. */
static void
chain_find (struct chain *c, struct step *first, const struct step *end)
{
  const struct step *last = first;

  c->nr = 1;
  c->step[0] = first;
  c->len = first->len;
  if (!may_chain (first))
    return;
  for (struct step *s = first + 1; s < end; s++)
    if (may_chain (s) && s->seat == first->seat &&
        s->member_off == last->member_off + last->len &&
        c->len + s->len <= CHAIN_MAX_LEN) {
      c->step[c->nr++] = s;
      c->len += s->len;
      last = s;
    }
}

static int
chain_read (const struct chain *c)
{
  struct member *m = c->step[0]->seat->m;
  struct iovec iov[REQUEST_STEPS];

  for (unsigned i = 0; i < c->nr; i++)
    iov[i] = (struct iovec) { c->step[i]->buf, c->step[i]->len };
  return m->ops->preadv (m, iov, c->nr, c->len, c->step[0]->member_off);
}

static void
chain_run (const struct request *r, const struct chain *c)
{
  const uint64_t since = loop_now (r->a->loop);
  const bool read = c->nr > 1 && chain_read (c) == 0;
  uint64_t ns;

  /* If it failed, which of them fail? */
  for (unsigned i = 0; i < c->nr; i++) {
    struct step *s = c->step[i];

    s->error = !read ? pread_step (r, s) :
      r->a->sums ? compare (r, s, s->buf, 0, s->len) : 0;
  }
  /* Each took its share. */
  ns = loop_now (r->a->loop) - since;
  for (unsigned i = 0; i < c->nr; i++)
    c->step[i]->ns = ns * c->step[i]->len / c->len;
}

void
run_preads (const struct request *r, struct step *step, unsigned nr)
{
  struct chain c;
  uint64_t done = 0;

  for (unsigned i = 0; i < nr; i++) {
    if (step[i].from != STEP_SEAT || done >> i & 1)
      continue;
    chain_find (&c, &step[i], step + nr);
    for (unsigned j = 0; j < c.nr; j++)
      done |= BIT (c.step[j] - step);
    chain_run (r, &c);
  }
}
