/* gpuraid: the io_uring loop and the threads loop do the same.
 *
 * Random I/O from several threads against a model, on members on tmpfs,
 * on a disk, and on one without a file descriptor; then what only shows
 * when something is slow, short, or gone.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/bits.h"
#include "common/list.h"
#include "common/log.h"
#include "member/io.h"
#include "tests/seed.h"

#if defined __SANITIZE_THREAD__
#define WITH_URING 0            /* it hides orders from the sanitizer */
#elif defined __has_feature
#if __has_feature (thread_sanitizer)
#define WITH_URING 0
#endif
#endif
#ifndef WITH_URING
#define WITH_URING 1
#endif

#define BLOCK 4096u
#define NR_LANES 4              /* submitting threads */
#define LANE_BLOCKS 64          /* of each member, for each lane alone */
#define SIZE (NR_LANES * LANE_BLOCKS * BLOCK)
#define NR_MEMBERS 5            /* 2 on tmpfs, 3 on a disk; the last one
                                 * has no file descriptor */

/* cmocka's assertions work in the main thread only. */
#define CHECK(cond)                                                     \
  do {                                                                  \
    if (!(cond)) {                                                      \
      fprintf (stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);       \
      abort ();                                                         \
    }                                                                   \
  } while (0)

static unsigned seed;
static struct loop *loop;
static struct member *members[NR_MEMBERS];
static uint8_t *buffer;         /* registered with the loop */
#define LANE_BUFFER (64 * BLOCK)

/* Counts what is in flight, and waits for it. */
struct group {
  pthread_mutex_t lock;
  pthread_cond_t done;
  unsigned left;
};
#define GROUP_INIT { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0 }

struct test_io {
  struct io io;
  struct group *group;
  struct iovec iov[8], iov_before[8];
};

static void
group_done (struct group *g)
{
  pthread_mutex_lock (&g->lock);
  CHECK (g->left > 0);
  if (--g->left == 0)
    pthread_cond_signal (&g->done);
  pthread_mutex_unlock (&g->lock);
}

static void
group_wait (struct group *g)
{
  pthread_mutex_lock (&g->lock);
  while (g->left > 0)
    pthread_cond_wait (&g->done, &g->lock);
  pthread_mutex_unlock (&g->lock);
}

static void
test_io_done (struct io *io)
{
  struct test_io *t = list_item (io, struct test_io, io);

  CHECK (memcmp (t->iov, t->iov_before, sizeof t->iov) == 0);
  group_done (t->group);
}

static void
init_io (struct test_io *t, struct group *g, struct member *m,
         enum io_kind kind, uint64_t off, void *buf, uint64_t len)
{
  memset (t, 0, sizeof *t);
  t->io = (struct io) {
    .kind = kind, .member = m, .off = off, .len = len, .iov = t->iov,
    .nr_iov = buf ? 1 : 0, .error = -1, .done = test_io_done,
  };
  t->iov[0] = (struct iovec) { buf, len };
  memcpy (t->iov_before, t->iov, sizeof t->iov);
  t->group = g;
}

/* Cut the vector into pieces of whole blocks, and empty ones. */
static void
cut (struct test_io *t, unsigned *rnd)
{
  uint8_t *p = t->iov[0].iov_base;
  uint64_t left = t->io.len;
  unsigned n = 0;

  while (n < 7 && left > 0) {
    uint64_t len = rand_r (rnd) % (left / BLOCK + 1) * BLOCK;

    t->iov[n++] = (struct iovec) { p, len };
    p += len;
    left -= len;
  }
  if (left > 0)
    t->iov[n++] = (struct iovec) { p, left };
  t->io.nr_iov = n;
  memcpy (t->iov_before, t->iov, sizeof t->iov);
}

static void
run (struct test_io *t, size_t nr)
{
  struct io *ios[64];

  CHECK (nr <= 64);
  t[0].group->left = nr;
  for (size_t i = 0; i < nr; ++i)
    ios[i] = &t[i].io;
  loop_submit (loop, ios, nr);
  group_wait (t[0].group);
}

static int
run_one (struct member *m, enum io_kind kind, uint64_t off, void *buf,
         uint64_t len)
{
  struct group g = GROUP_INIT;
  struct test_io t;

  init_io (&t, &g, m, kind, off, buf, len);
  run (&t, 1);
  return t.io.error;
}

struct lane {
  pthread_t thread;
  unsigned no, rnd;
  uint8_t model[NR_MEMBERS][LANE_BLOCKS];       /* each block's byte */
};

/* One I/O on blocks of its own among the round's: [b, b+n) of member mi. */
static void
lane_io (struct lane *l, struct test_io *t, struct group *g, unsigned mi,
         unsigned b, unsigned n, uint8_t *buf)
{
  uint64_t off = ((uint64_t) l->no * LANE_BLOCKS + b) * BLOCK;
  unsigned kind = rand_r (&l->rnd) % 10;

  if (kind < 4) {
    memset (buf, 0xdd, n * BLOCK);
    init_io (t, g, members[mi], IO_READ, off, buf, n * BLOCK);
  }
  else if (kind < 8) {
    uint8_t c = rand_r (&l->rnd);

    memset (buf, c, n * BLOCK);
    memset (&l->model[mi][b], c, n);
    init_io (t, g, members[mi], IO_WRITE, off, buf, n * BLOCK);
  }
  else if (kind == 8) {
    memset (&l->model[mi][b], 0, n);
    init_io (t, g, members[mi], rand_r (&l->rnd) % 2 ? IO_ZERO : IO_TRIM,
             off, NULL, n * BLOCK);
  }
  else
    init_io (t, g, members[mi], IO_FLUSH, 0, NULL, 0);
  if (kind < 8 && rand_r (&l->rnd) % 2)
    cut (t, &l->rnd);
}

static void
lane_check (struct lane *l, struct test_io *t)
{
  uint8_t *p = t->iov_before[0].iov_base;
  uint64_t block = t->io.off / BLOCK - l->no * LANE_BLOCKS;
  unsigned mi = 0;

  CHECK (t->io.error == 0);
  if (t->io.kind != IO_READ)
    return;
  while (members[mi] != t->io.member)
    ++mi;
  for (uint64_t i = 0; i < t->io.len; ++i)
    CHECK (p[i] == l->model[mi][block + i / BLOCK]);
}

static void *
lane_run (void *arg)
{
  struct lane *l = arg;
  struct group g = GROUP_INIT;
  struct test_io t[NR_MEMBERS * 4];
  uint8_t *buf = buffer + l->no * LANE_BUFFER;
  void *own = NULL;

  CHECK (posix_memalign (&own, BLOCK, LANE_BUFFER) == 0);
  for (int round = 0; round < 150; ++round) {
    unsigned nr = 0, used = 0;

    for (unsigned mi = 0; mi < NR_MEMBERS; ++mi) {
      unsigned b = 0;

      while (nr < (mi + 1) * 4) {
        unsigned n = 1 + rand_r (&l->rnd) % 3;

        b += rand_r (&l->rnd) % 12;
        lane_io (l, &t[nr++], &g, mi, b, n,
                 (round % 2 ? buf : (uint8_t *) own) + used * BLOCK);
        b += n;
        used += n;
      }
    }
    run (t, nr);
    for (unsigned i = 0; i < nr; ++i)
      lane_check (l, &t[i]);
  }
  free (own);
  return NULL;
}

static void
test_random (void **state)
{
  struct lane lanes[NR_LANES];

  for (unsigned mi = 0; mi < NR_MEMBERS; ++mi)
    assert_int_equal (run_one (members[mi], IO_TRIM, 0, NULL, SIZE), 0);
  memset (lanes, 0, sizeof lanes);
  for (unsigned i = 0; i < NR_LANES; ++i) {
    lanes[i].no = i;
    lanes[i].rnd = seed + i;
    assert_int_equal (pthread_create (&lanes[i].thread, NULL, lane_run,
                                      &lanes[i]), 0);
  }
  for (unsigned i = 0; i < NR_LANES; ++i)
    pthread_join (lanes[i].thread, NULL);
}

/* A file that is served without its descriptor, as NBD members are. */
static struct member_ops no_fd_ops;

static int
no_fd (struct member *m)
{
  return -1;
}

static void
test_refused (void **state)
{
  struct member *m = members[0], *ro;

  assert_int_equal (run_one (m, IO_READ, SIZE, buffer, BLOCK), EIO);
  assert_int_equal (run_one (m, IO_WRITE, SIZE - BLOCK, buffer, 2 * BLOCK),
                    EIO);
  assert_int_equal (run_one (m, IO_ZERO, SIZE - BLOCK, NULL, 2 * BLOCK), EIO);
  assert_int_equal (run_one (m, IO_READ, 0, NULL, 0), 0);
  ro = member_open (m->path, MEMBER_NOLOCK, 0);
  assert_non_null (ro);
  assert_int_equal (run_one (ro, IO_READ, 0, buffer, BLOCK), 0);
  assert_int_equal (run_one (ro, IO_WRITE, 0, buffer, BLOCK), EROFS);
  assert_int_equal (run_one (ro, IO_TRIM, 0, buffer, BLOCK), EROFS);
  member_close (ro);

}

static struct member *
open_member (unsigned i)
{
  char path[64];
  struct member *m;

  snprintf (path, sizeof path, "%s/gpuraid-test-loop-%d-%u",
            i < 2 ? "/dev/shm" : "/var/tmp", getpid (), i);
  unlink (path);
  m = member_open (path, MEMBER_CREATE, SIZE);
  /* Through the ring, which refuses nothing that is not direct. */
  if (m && (i == 0 || i == 2))
    m->direct = true;
  if (m && i == 4)
    m->ops = &no_fd_ops;
  return m;
}

/* Cut short behind our back: no kind of I/O takes it for whole. */
static void
test_cut (void **state)
{
  for (unsigned mi = 0; mi < NR_MEMBERS; ++mi)
    for (int i = 0; i < 6; ++i) {
      struct member *m;
      const uint64_t cut = SIZE - 8 * BLOCK - 100 * (i % 2);
      struct stat st;

      member_close (members[mi]);
      m = members[mi] = open_member (mi);
      assert_non_null (m);
      assert_int_equal (truncate (m->path, cut), 0);
      switch (i / 2) {
      case 0:
        assert_int_equal (run_one (m, IO_READ, SIZE - 12 * BLOCK, buffer,
                                   8 * BLOCK), ENXIO);
        break;
      case 1:
        /* Longer again: what is below reads as zeroes. */
        assert_int_equal (run_one (m, IO_WRITE, SIZE - 2 * BLOCK, buffer,
                                   BLOCK), 0);
        assert_int_equal (run_one (m, IO_READ, SIZE - 4 * BLOCK, buffer,
                                   BLOCK), ENXIO);
        break;
      case 2:
        /* This would make it as long as it was. */
        assert_int_equal (run_one (m, IO_WRITE, SIZE - BLOCK, buffer, BLOCK),
                          ENXIO);
        assert_int_equal (stat (m->path, &st), 0);
        assert_int_equal (st.st_size, cut);
        break;
      }
      assert_int_equal (run_one (m, IO_FLUSH, 0, NULL, 0), ENXIO);
      assert_int_equal (run_one (m, IO_READ, 0, buffer, BLOCK), ENXIO);
      assert_int_equal (run_one (m, IO_WRITE, 0, buffer, BLOCK), ENXIO);
      assert_int_equal (run_one (m, IO_TRIM, 0, NULL, BLOCK), ENXIO);
    }
  for (unsigned mi = 0; mi < NR_MEMBERS; ++mi) {
    member_close (members[mi]);
    members[mi] = open_member (mi);
    assert_non_null (members[mi]);
    assert_int_equal (truncate (members[mi]->path, SIZE - 4 * BLOCK), 0);
    assert_int_equal (run_one (members[mi], IO_FLUSH, 0, NULL, 0), ENXIO);
    member_close (members[mi]);
    members[mi] = open_member (mi);
    assert_non_null (members[mi]);
  }
}

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
  unsigned nr;                  /* submits seen */
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
  ++f->nr;
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
      assert_int_equal (run_one (members[mi], IO_READ, 0, buffer, BLOCK), 0);
  loop_submit (loop, ios + 10, 10);
  for (unsigned mi = 0; mi < NR_MEMBERS; ++mi)
    assert_int_equal (run_one (members[mi], IO_FLUSH, 0, NULL, 0), 0);
  assert_int_equal (g.left, 20);
  for (int i = 0; i < 20; ++i)
    sem_post (&gate);
  group_wait (&g);
  assert_int_equal (f.nr, 20);
  sem_destroy (&gate);
}

/* The ring sees a transfer stop short wherever the writer paused. */
static void *
dribble (void *arg)
{
  int fd = *(int *) arg;
  uint8_t buf[5120];
  unsigned sent = 0, rnd = seed;

  while (sent < 20000) {
    unsigned n = MIN ((1 + rand_r (&rnd) % 10) * 512u, 20000 - sent);

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
    return;                     /* test-member-file shows it for the others */
  for (int vector = 0; vector < 2; ++vector) {
    assert_int_equal (pipe (fds), 0);
    f.fd = fds[0];
    memset (buffer, 0xdd, 20480);
    init_io (&t, &g, &f.member, IO_READ, 0, buffer, 16384);
    if (vector)
      cut (&t, &seed);
    assert_int_equal (pthread_create (&thread, NULL, dribble, &fds[1]), 0);
    run (&t, 1);
    assert_int_equal (t.io.error, 0);
    for (unsigned i = 0; i < 16384; ++i)
      assert_int_equal (buffer[i], i % 251);
    /* The rest is less than asked for. */
    assert_int_equal (run_one (&f.member, IO_READ, 0, buffer, 8192), EIO);
    pthread_join (thread, NULL);
    close (fds[0]);
  }
}

struct test_timer {
  struct timer timer;
  struct group *group;
  uint64_t fired_at;
  unsigned nr;
};

static void
fire (struct timer *timer)
{
  struct test_timer *t = list_item (timer, struct test_timer, timer);

  t->fired_at = loop_now (loop);
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
  assert_true (t[4].fired_at < t[0].fired_at);
}

/* Containers forbid io_uring like this. */
static int
forbidden (void)
{
  struct sock_filter code[] = {
    BPF_STMT (BPF_LD | BPF_W | BPF_ABS, offsetof (struct seccomp_data, nr)),
    BPF_JUMP (BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
    BPF_STMT (BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    BPF_STMT (BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog prog = { ARRAY_LEN (code), code };

  if (prctl (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1 ||
      prctl (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) == -1)
    return 77;
  if (loop_uring_works ())
    return 1;
  errno = 0;
  return loop_uring_new () != NULL || errno != EPERM;
}

static void
test_forbidden (void **state)
{
  int status;
  pid_t pid = fork ();

  if (pid == 0)
    _exit (forbidden ());
  assert_int_equal (waitpid (pid, &status, 0), pid);
  assert_true (WIFEXITED (status));
  if (WEXITSTATUS (status) == 77)
    print_message ("no seccomp here\n");
  else
    assert_int_equal (WEXITSTATUS (status), 0);
}

static int
setup (struct loop *l)
{
  loop = l;
  if (loop == NULL)
    return -1;
  buffer = mmap (NULL, NR_LANES * LANE_BUFFER, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (buffer == MAP_FAILED)
    return -1;
  memset (buffer, 0, NR_LANES * LANE_BUFFER);
  loop->ops->add_buffer (loop, buffer, NR_LANES * LANE_BUFFER);
  for (unsigned i = 0; i < NR_MEMBERS; ++i) {
    members[i] = open_member (i);
    if (members[i] == NULL)
      return -1;
    if (i == 0) {
      no_fd_ops = *members[i]->ops;
      no_fd_ops.fd = no_fd;
    }
  }
  return 0;
}

static int
setup_uring (void **state)
{
  return setup (loop_uring_new ());
}

static int
setup_threads (void **state)
{
  return setup (loop_threads_new ());
}

static int
teardown (void **state)
{
  for (unsigned i = 0; i < NR_MEMBERS; ++i) {
    unlink (members[i]->path);
    member_close (members[i]);
  }
  loop_free (loop);
  return munmap (buffer, NR_LANES * LANE_BUFFER);
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_random),
    cmocka_unit_test (test_refused),
    cmocka_unit_test (test_cut),
    cmocka_unit_test (test_many),
    cmocka_unit_test (test_submitter_ends),
    cmocka_unit_test (test_chain),
    cmocka_unit_test (test_hung_member),
    cmocka_unit_test (test_short_reads),
    cmocka_unit_test (test_timers),
  };
  const struct CMUnitTest none[] = {
    cmocka_unit_test (test_forbidden),
  };
  int failed;

  seed = test_seed (argc > 1 ? argv[1] : NULL);
  failed = cmocka_run_group_tests_name ("threads", tests, setup_threads,
                                        teardown);
  failed += cmocka_run_group_tests_name ("forbidden", none, NULL, NULL);
  if (!WITH_URING)
    printf ("thread sanitizer: io_uring is left out\n");
  else if (!loop_uring_works ())
    printf ("io_uring is not allowed here: left out\n");
  else
    failed += cmocka_run_group_tests_name ("io_uring", tests, setup_uring,
                                           teardown);
  return failed != 0;
}
