/* gpuraid: tests: the same on both loops, io_uring and threads.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/list.h"
#include "tests/member/loop-both.h"

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

struct loop *loop;
struct member *members[NR_MEMBERS];
uint8_t *buffer;

/* ---- I/Os ----------------------------------------------------------- */

void
group_done (struct group *g)
{
  pthread_mutex_lock (&g->lock);
  CHECK (g->left > 0);
  if (--g->left == 0)
    pthread_cond_signal (&g->done);
  pthread_mutex_unlock (&g->lock);
}

void
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

void
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

void
split_vector (struct test_io *t, unsigned *rnd)
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

void
run_ios (struct test_io *t, size_t nr)
{
  struct io *ios[64];

  CHECK (nr <= 64);
  t[0].group->left = nr;
  for (size_t i = 0; i < nr; ++i)
    ios[i] = &t[i].io;
  loop_submit (loop, ios, nr);
  group_wait (t[0].group);
}

int
run_io (struct member *m, enum io_kind kind, uint64_t off, void *buf,
        uint64_t len)
{
  struct group g = GROUP_INIT;
  struct test_io t;

  init_io (&t, &g, m, kind, off, buf, len);
  run_ios (&t, 1);
  return t.io.error;
}

/* ---- members and loops ---------------------------------------------- */

/* A file that is served without its descriptor, as NBD members are. */
static struct member_ops no_fd_ops;

static int
no_fd (struct member *m)
{
  return -1;
}

struct member *
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

int
start_uring (void **state)
{
  return setup (loop_uring_new ());
}

int
start_threads (void **state)
{
  return setup (loop_threads_new ());
}

int
stop_loop (void **state)
{
  for (unsigned i = 0; i < NR_MEMBERS; ++i) {
    unlink (members[i]->path);
    member_close (members[i]);
  }
  loop_free (loop);
  return munmap (buffer, NR_LANES * LANE_BUFFER);
}

bool
with_uring (void)
{
  if (!WITH_URING)
    printf ("thread sanitizer: io_uring is left out\n");
  else if (!loop_uring_works ())
    printf ("io_uring is not allowed here: left out\n");
  else
    return true;
  return false;
}
