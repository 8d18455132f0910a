/* gpuraid: waiting on both loops: more I/O than a queue is long, threads that
 * end, I/O that is submitted from done, a member that hangs, data that arrives
 * in pieces, and timers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "common/bits.h"
#include "common/list.h"
#include "tests/member/loop-both.h"
#include "tests/seed.h"

static unsigned seed;

/* More at once than any queue is long. */
static void
test_many (void **state)
{
  enum { NR = 6000 };
  struct group g = GROUP_INIT;
  struct test_io *t = calloc (NR, sizeof *t);
  struct io **ios = calloc (NR, sizeof *ios);
  uint8_t *buf = NULL;

  assert_int_equal (posix_memalign ((void **) &buf, BLOCK, NR * BLOCK), 0);
  for (unsigned i = 0; i < NR; ++i) {
    init_io (&t[i], &g, members[i % NR_MEMBERS], IO_READ,
             i / NR_MEMBERS % (SIZE / BLOCK) * BLOCK,
             buf + i * BLOCK, BLOCK);
    ios[i] = &t[i].io;
  }
  g.left = NR;
  loop_submit (loop, ios, NR);
  group_wait (&g);
  for (unsigned i = 0; i < NR; ++i)
    assert_int_equal (t[i].io.error, 0);
  free (buf);
  free (ios);
  free (t);
}

/* The thread that submitted may end before its I/O does. */
static void *
submit_and_end (void *arg)
{
  loop_submit (loop, arg, 64);
  return NULL;
}

static void
test_submitter_ends (void **state)
{
  struct group g = GROUP_INIT;
  struct test_io *t = calloc (64, sizeof *t);
  struct io *ios[64];

  for (int round = 0; round < 50; ++round) {
    pthread_t thread;

    for (unsigned i = 0; i < 64; ++i) {
      struct member *m = members[i % NR_MEMBERS];

      if (i % 4 == 3)
        init_io (&t[i], &g, m, IO_FLUSH, 0, NULL, 0);
      else
        init_io (&t[i], &g, m, IO_WRITE, i * BLOCK, buffer + i * BLOCK,
                 BLOCK);
      ios[i] = &t[i].io;
    }
    g.left = 64;
    assert_int_equal (pthread_create (&thread, NULL, submit_and_end, ios), 0);
    pthread_join (thread, NULL);
    group_wait (&g);
    for (unsigned i = 0; i < 64; ++i)
      assert_int_equal (t[i].io.error, 0);
  }
  free (t);
}

/* A done may submit: a chain of I/Os without a thread that waits. */
struct chain {
  struct test_io t;
  struct group group;
  unsigned left;
};

static void
chain_done (struct io *io)
{
  struct chain *c = list_item (io, struct chain, t.io);

  CHECK (io->error == 0);
  if (--c->left > 0)
    loop_submit (loop, &io, 1);
  else
    group_done (&c->group);
}

static void
test_chain (void **state)
{
  for (unsigned mi = 0; mi < NR_MEMBERS; ++mi) {
    struct chain c = { .group = GROUP_INIT, .left = 500 };

    init_io (&c.t, &c.group, members[mi], IO_READ, 0, buffer, 2 * BLOCK);
    c.t.io.done = chain_done;
    c.group.left = 1;
    loop_submit (loop, (struct io *[]) { &c.t.io }, 1);
    group_wait (&c.group);
    assert_int_equal (c.left, 0);
  }
}

/* A member made by the tests: reads come from a pipe, or hang. */
struct fake {
  struct member member;
  int fd;                       /* given to the loop, or -1 */
  sem_t *gate;                  /* submit waits for this */
  unsigned nap_us;              /* and then so long */
  atomic_uint nr;               /* submits seen */
  const struct fake *other;
  unsigned nr_of_other;         /* what it had seen at the last one */
  pthread_t thread;             /* of the last one */
};

static uint64_t
fake_size (struct member *m)
{
  return SIZE;
}

static int
fake_fd (struct member *m)
{
  return ((struct fake *) m)->fd;
}

static void
fake_submit (struct member *m, struct io *io)
{
  struct fake *f = (struct fake *) m;

  while (sem_wait (f->gate) == -1)
    CHECK (errno == EINTR);
  if (f->nap_us > 0)
    usleep (f->nap_us);
  ++f->nr;
  if (f->other)
    f->nr_of_other = f->other->nr;
  f->thread = pthread_self ();
  io_done (io, 0);
}

static const struct member_ops fake_ops = {
  .size = fake_size, .fd = fake_fd, .submit = fake_submit,
};

static void
test_hung_member (void **state)
{
  struct group g = GROUP_INIT;
  sem_t gate;
  struct fake f = { .member.ops = &fake_ops, .fd = -1, .gate = &gate };
  struct test_io t[20];
  struct io *ios[20];

  assert_int_equal (sem_init (&gate, 0, 0), 0);
  for (unsigned i = 0; i < 20; ++i) {
    init_io (&t[i], &g, &f.member, IO_WRITE, 0, buffer, BLOCK);
    ios[i] = &t[i].io;
  }
  g.left = 20;
  loop_submit (loop, ios, 10);
  for (int i = 0; i < 100; ++i)
    for (unsigned mi = 0; mi < NR_MEMBERS; ++mi)
      assert_int_equal (run_io (members[mi], IO_READ, 0, buffer, BLOCK), 0);
  loop_submit (loop, ios + 10, 10);
  for (unsigned mi = 0; mi < NR_MEMBERS; ++mi)
    assert_int_equal (run_io (members[mi], IO_FLUSH, 0, NULL, 0), 0);
  assert_int_equal (g.left, 20);
  for (int i = 0; i < 20; ++i)
    sem_post (&gate);
  group_wait (&g);
  assert_int_equal (f.nr, 20);
  sem_destroy (&gate);
}

/* On a busy machine any I/O may take long: then that does not count. */
static void
all_is_quick (bool all)
{
  loop_quick_hangs_ns = all ? UINT64_MAX / 2 : 10000000;
  loop_quick_long_ns = all ? UINT64_MAX / 2 : 1000000;
}

/* Members whose I/O was quick share a thread, until that of one hangs. */
static void
test_quick_members (void **state)
{
  struct group g = GROUP_INIT, hung = GROUP_INIT;
  sem_t open, gate;
  struct fake a = { .member.ops = &fake_ops, .member.quick = ~0u, .fd = -1,
                    .gate = &open };
  struct fake b = { .member.ops = &fake_ops, .member.quick = ~0u, .fd = -1,
                    .gate = &open };
  struct test_io t[8];
  struct io *ios[8];

  assert_int_equal (sem_init (&open, 0, 1000), 0);
  assert_int_equal (sem_init (&gate, 0, 0), 0);
  for (unsigned i = 0; i < 8; ++i) {
    init_io (&t[i], &g, i % 2 ? &b.member : &a.member, IO_WRITE, 0, buffer,
             BLOCK);
    ios[i] = &t[i].io;
  }
  g.left = 8;
  all_is_quick (true);
  loop_submit (loop, ios, 8);
  group_wait (&g);
  all_is_quick (false);
  assert_true (a.nr == 4 && b.nr == 4);
  assert_true (pthread_equal (a.thread, b.thread));

  /* a hangs, with I/O of both behind it. */
  a.gate = &gate;
  for (unsigned i = 0; i < 8; ++i)
    init_io (&t[i], i % 2 ? &g : &hung, i % 2 ? &b.member : &a.member,
             IO_WRITE, 0, buffer, BLOCK);
  hung.left = g.left = 4;
  loop_submit (loop, ios, 8);
  group_wait (&g);
  assert_true (a.nr == 4 && b.nr == 8);
  assert_false (pthread_equal (a.thread, b.thread));
  for (unsigned mi = 0; mi < NR_MEMBERS; ++mi)
    assert_int_equal (run_io (members[mi], IO_READ, 0, buffer, BLOCK), 0);

  /* More for it does not hang others again. */
  init_io (&t[1], &hung, &a.member, IO_WRITE, 0, buffer, BLOCK);
  init_io (&t[3], &g, &b.member, IO_WRITE, 0, buffer, BLOCK);
  hung.left++;
  g.left = 1;
  loop_submit (loop, ios + 1, 1);
  loop_submit (loop, ios + 3, 1);
  group_wait (&g);
  assert_true (a.nr == 4 && b.nr == 9);
  for (int i = 0; i < 5; ++i)
    sem_post (&gate);
  group_wait (&hung);
  assert_int_equal (a.nr, 9);
  sem_destroy (&open);
  sem_destroy (&gate);
}

/* What is done is not left to I/O of another member, which may hang. */
static void
test_quick_more (void **state)
{
  struct group g = GROUP_INIT;
  sem_t open;
  struct fake a = { .member.ops = &fake_ops, .member.quick = ~0u, .fd = -1,
                    .gate = &open };
  struct fake b = { .member.ops = &fake_ops, .member.quick = ~0u, .fd = -1,
                    .gate = &open };
  struct test_io t[4];
  struct io *ios[] = { &t[0].io, &t[1].io, &t[2].io, &t[3].io };

  assert_int_equal (sem_init (&open, 0, 4), 0);
  init_io (&t[0], &g, &a.member, IO_WRITE, 0, buffer, BLOCK);
  init_io (&t[1], &g, &a.member, IO_WRITE, 0, buffer, BLOCK);
  init_io (&t[2], &g, &b.member, IO_WRITE, 0, buffer, BLOCK);
  init_io (&t[3], &g, &a.member, IO_FLUSH, 0, NULL, 0);
  g.left = 4;
  all_is_quick (true);
  loop_submit (loop, ios, 4);
  group_wait (&g);
  all_is_quick (false);
  assert_true (t[0].io.more);
  for (unsigned i = 1; i < 4; ++i)
    assert_false (t[i].io.more);
  sem_destroy (&open);
}

/* I/O of a member that takes long, but does not hang, delays another's only
 * once.
 */
static void
test_quick_no_more (void **state)
{
  enum { NR = 16 };
  struct group g = GROUP_INIT;
  sem_t open;
  struct fake a = { .member.ops = &fake_ops, .member.quick = ~0u, .fd = -1,
                    .gate = &open, .nap_us = 8000 };
  struct fake b = { .member.ops = &fake_ops, .member.quick = ~0u, .fd = -1,
                    .gate = &open, .other = &a };
  struct test_io t[NR];
  struct io *ios[NR];

  assert_int_equal (sem_init (&open, 0, NR), 0);
  for (unsigned i = 0; i < NR; ++i) {
    init_io (&t[i], &g, i == NR - 1 ? &b.member : &a.member, IO_WRITE, 0,
             buffer, BLOCK);
    ios[i] = &t[i].io;
  }
  g.left = NR;
  loop_submit (loop, ios, NR);
  group_wait (&g);
  assert_true (a.nr == NR - 1 && b.nr == 1);
  assert_true (b.nr_of_other < NR - 1);
  sem_destroy (&open);
}

/* Direct I/O is left to a thread for each member, however fast it is. */
static void
test_quick_direct (void **state)
{
  for (unsigned mi = 0; mi < NR_MEMBERS; ++mi) {
    assert_int_equal (run_io (members[mi], IO_WRITE, 0, buffer, BLOCK), 0);
    assert_int_equal (run_io (members[mi], IO_READ, 0, buffer, BLOCK), 0);
    if (members[mi]->direct)
      assert_int_equal (members[mi]->quick, 0);
  }
}

/* The ring sees a transfer stop short wherever the writer paused. */
static void *
dribble (void *arg)
{
  int fd = *(int *) arg;
  uint8_t buf[5120];
  unsigned sent = 0, rnd = seed;

  while (sent < 20000) {
    const unsigned most = (1 + rand_r (&rnd) % 10) * 512;
    const unsigned n = MIN (most, 20000 - sent);

    for (unsigned i = 0; i < n; ++i)
      buf[i] = (sent + i) % 251;
    CHECK (write (fd, buf, n) == (ssize_t) n);
    sent += n;
    usleep (500);
  }
  close (fd);
  return NULL;
}

static void
test_short_reads (void **state)
{
  struct group g = GROUP_INIT;
  struct fake f = { .member.ops = &fake_ops, .member.direct = true };
  struct test_io t;
  pthread_t thread;
  int fds[2];

  if (strcmp (loop->ops->name, "io_uring") != 0)
    return;                     /* test-member-io shows it for the others */
  for (int vector = 0; vector < 2; ++vector) {
    assert_int_equal (pipe (fds), 0);
    f.fd = fds[0];
    memset (buffer, 0xdd, 20480);
    init_io (&t, &g, &f.member, IO_READ, 0, buffer, 16384);
    if (vector)
      split_vector (&t, &seed);
    assert_int_equal (pthread_create (&thread, NULL, dribble, &fds[1]), 0);
    run_ios (&t, 1);
    assert_int_equal (t.io.error, 0);
    for (unsigned i = 0; i < 16384; ++i)
      assert_int_equal (buffer[i], i % 251);
    /* The rest is less than asked for. */
    assert_int_equal (run_io (&f.member, IO_READ, 0, buffer, 8192), EIO);
    pthread_join (thread, NULL);
    close (fds[0]);
  }
}

struct test_timer {
  struct timer timer;
  struct group *group;
  uint64_t first_at, fired_at;
  unsigned nr;
};

static void
fire (struct timer *timer)
{
  struct test_timer *t = list_item (timer, struct test_timer, timer);

  t->fired_at = loop_now (loop);
  if (t->first_at == 0)
    t->first_at = t->fired_at;
  if (++t->nr > 1 && t->nr <= 3)        /* the last one goes on by itself */
    loop_timer (loop, timer, t->fired_at + 1000000);
  group_done (t->group);
}

static void
test_timers (void **state)
{
  struct group g = GROUP_INIT;
  struct test_timer t[5];
  uint64_t start = loop_now (loop), ms = 1000000;

  memset (t, 0, sizeof t);
  for (int i = 0; i < 5; ++i)
    t[i] = (struct test_timer) { .timer.fire = fire, .group = &g };
  g.left = 3 + 3;
  t[4].nr = 1;
  loop_timer (loop, &t[0].timer, start + 60 * ms);
  loop_timer (loop, &t[1].timer, start + 20 * ms);      /* before it */
  loop_timer (loop, &t[2].timer, start + 30 * ms);
  loop_timer (loop, &t[2].timer, start + 90 * ms);      /* later */
  loop_timer (loop, &t[3].timer, start + 40 * ms);
  loop_timer (loop, &t[3].timer, 0);                    /* not at all */
  loop_timer (loop, &t[3].timer, 0);
  loop_timer (loop, &t[4].timer, start + 3600000 * ms);
  loop_timer (loop, &t[4].timer, start - 1);            /* at once */
  group_wait (&g);
  assert_int_equal (t[3].nr, 0);
  assert_int_equal (t[4].nr, 4);
  assert_true (t[0].nr == 1 && t[1].nr == 1 && t[2].nr == 1);
  assert_true (t[0].fired_at >= start + 60 * ms);
  assert_true (t[1].fired_at >= start + 20 * ms);
  assert_true (t[2].fired_at >= start + 90 * ms);
  assert_true (t[1].fired_at < t[0].fired_at);
  assert_true (t[0].fired_at < t[2].fired_at);
  /* It is due first, and its others may be late with the machine. */
  assert_true (t[4].first_at < t[1].fired_at);
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_many),
    cmocka_unit_test (test_submitter_ends),
    cmocka_unit_test (test_chain),
    cmocka_unit_test (test_hung_member),
    cmocka_unit_test (test_quick_members),
    cmocka_unit_test (test_quick_more),
    cmocka_unit_test (test_quick_no_more),
    cmocka_unit_test (test_quick_direct),
    cmocka_unit_test (test_short_reads),
    cmocka_unit_test (test_timers),
  };

  seed = test_seed (argc > 1 ? argv[1] : NULL);
  return run_on_both (tests) != 0;
}
