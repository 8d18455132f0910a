/* gpuraid: requests for threads that may block.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <pthread.h>
#include <semaphore.h>

#include "array/request/blocking.h"
#include "array/request/standby.h"

static void
post (struct request *r)
{
  sem_post (r->opaque);
}

/* Is it over at once?  Else wait for it. */
static bool
begin (struct request *r, sem_t *sem)
{
  sem_init (sem, 0, 0);
  r->opaque = sem;
  r->wake = post;
  return request_go (r);
}

/* There is one wake each time request_go returns false. */
static int
wait_for (struct request *r, sem_t *sem, bool over)
{
  while (!over) {
    while (sem_wait (sem) == -1)
      ;
    over = request_go (r);
  }
  sem_destroy (sem);
  return r->error;
}

int
request_block (struct request *r)
{
  sem_t sem;
  const bool over = begin (r, &sem);

  return wait_for (r, &sem, over);
}

static int
data_request (struct array *a, enum request_kind kind, void *buf,
              uint64_t len, uint64_t off, unsigned flags)
{
  struct request r;

  if (kind != REQUEST_FLUSH && len == 0)
    return 0;
  request_init (&r, a, kind);
  r.buf = buf;
  r.len = len;
  r.off = off;
  r.flags = flags;
  return request_block (&r);
}

int
array_read (struct array *a, void *buf, uint32_t len, uint64_t off)
{
  return data_request (a, REQUEST_READ, buf, len, off, 0);
}

int
array_write (struct array *a, const void *buf, uint32_t len, uint64_t off,
             unsigned flags)
{
  return data_request (a, REQUEST_WRITE, (void *) buf, len, off, flags);
}

int
array_zero (struct array *a, uint32_t len, uint64_t off, unsigned flags)
{
  return data_request (a, REQUEST_ZERO, NULL, len, off, flags);
}

int
array_flush (struct array *a, unsigned flags)
{
  return data_request (a, REQUEST_FLUSH, NULL, 0, 0, flags);
}

static int
make_writable (struct array *a, bool of_client)
{
  struct request r;
  bool over = false;
  sem_t sem;
  int err;

  request_init (&r, a, REQUEST_COMMAND);
  r.command.kind = COMMAND_WRITABLE;
  r.command.of_client = of_client;
  pthread_mutex_lock (&a->writable_lock);
  err = standby_check (a);
  if (err == 0)
    over = begin (&r, &sem);
  pthread_mutex_unlock (&a->writable_lock);
  return err ? err : wait_for (&r, &sem, over);
}

int
array_make_writable (struct array *a)
{
  return make_writable (a, false);
}

int
array_serve_writer (struct array *a)
{
  return make_writable (a, true);
}
