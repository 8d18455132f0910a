/* gpuraid: tests: one I/O on a simulated disk of a few blocks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/sim/sim-io.h"

static uint64_t nr_done;

static void
test_done (struct io *io)
{
  struct sim_io *t = (struct sim_io *) io;

  assert_false (t->done);
  t->done = true;
  t->no = ++nr_done;
}

void
sim_io_init (struct sim_io *t, struct member *m, enum io_kind kind, unsigned b,
             unsigned n, uint8_t c)
{
  memset (t, 0, sizeof *t);
  if (kind == IO_READ || kind == IO_WRITE) {
    assert_int_equal (posix_memalign ((void **) &t->buf, BLOCK, n * BLOCK), 0);
    memset (t->buf, c, n * BLOCK);
  }
  t->iov = (struct iovec) { t->buf, n * BLOCK };
  t->io = (struct io) {
    .kind = kind, .member = m, .off = b * BLOCK, .len = n * BLOCK,
    .iov = &t->iov, .nr_iov = t->buf ? 1 : 0, .error = -1, .done = test_done,
  };
  if (kind == IO_FLUSH)
    t->io.off = t->io.len = 0;
}

void
sim_io_submit (struct sim *sim, struct sim_io *t)
{
  struct io *io = &t->io;

  loop_submit (sim_loop (sim), &io, 1);
}

int
sim_io_run (struct sim *sim, struct member *m, enum io_kind kind, unsigned b,
            unsigned n, uint8_t c)
{
  struct sim_io t;

  sim_io_init (&t, m, kind, b, n, c);
  sim_io_submit (sim, &t);
  while (!t.done && sim_step (sim))
    ;
  if (t.done && t.io.error == 0 && kind == IO_READ)
    for (unsigned i = 0; i < n * BLOCK; ++i)
      assert_int_equal (t.buf[i], c);
  free (t.buf);
  return t.done ? t.io.error : -1;
}
