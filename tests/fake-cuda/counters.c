/* gpuraid: tests: a fake CUDA driver: counters of calls and leaks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fake-cuda/fake.h"

/* The mistake of the last kernel, at most len bytes. */
extern void fakeWhy (char *why, size_t len);
/* A counter by its name, see names below; -1: no such one. */
extern long long fakeCount (const char *name);

size_t
fake_count_objects (const struct CUctx_st *c)
{
  size_t nr = 0;

  for (const struct CUstream_st *s = c->streams; s; s = s->next)
    nr += !s->destroyed;
  for (const struct CUevent_st *e = c->events; e; e = e->next)
    nr += !e->destroyed;
  return nr;
}

static long long
count_live (void)
{
  long long nr = 0;

  for (int i = 0; i < fake.nr_devices; i++) {
    const struct CUctx_st *c = &fake.device[i].ctx;

    nr += c->retained + fake_count_objects (c);
    for (const struct CUmod_st *m = c->modules; m; m = m->next)
      nr++;
  }
  for (const struct CUctx_st *c = fake.made; c; c = c->next)
    nr += c->active;
  for (const struct memory *m = fake.memory; m; m = m->next)
    nr++;
  return nr;
}

static const struct name {
  const char *name;
  unsigned long long *counter;
} names[] = {
  { "launches", &fake.counters.launches },
  { "copies", &fake.counters.copies },
  { "copied_len", &fake.counters.copied_len },
  { "pageable_copies", &fake.counters.pageable_copies },
  { "kernel_errors", &fake.counters.kernel_errors },
  { "faults", &fake.counters.faults }, /* injected */
  { "leaked", &fake.counters.leaked }, /* with their context */
  { "misused", &fake.counters.misused }, /* contexts that were gone */
};

long long
fakeCount (const char *name)
{
  long long r = -1;
  int device;

  pthread_mutex_lock (&fake.lock);
  if (strcmp (name, "live") == 0) /* contexts, and all in them */
    r = count_live ();
  if (strcmp (name, "copying back") == 0) /* now */
    r = fake.nr_copying_back;
  if (strcmp (name, "slow") == 0)
    r = fake.nr_slow;
  if (strcmp (name, "hanging") == 0)
    r = fake.nr_hanging;
  if (sscanf (name, "launches:%d", &device) == 1 && device >= 0 &&
      device < MAX_DEVICES)
    r = fake.device[device].nr_launches;
  if (sscanf (name, "batches:%d", &device) == 1 && device >= 0 &&
      device < MAX_DEVICES)
    r = fake.device[device].nr_batches;   /* of copies */
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (strcmp (names[i].name, name) == 0)
      r = *names[i].counter;
  pthread_mutex_unlock (&fake.lock);
  return r;
}

void
fakeWhy (char *why, size_t len)
{
  pthread_mutex_lock (&fake.lock);
  snprintf (why, len, "%s", fake.why);
  pthread_mutex_unlock (&fake.lock);
}

static void __attribute__ ((destructor))
print_report (void)
{
  const char *path = getenv ("FAKE_CUDA_REPORT");
  FILE *f = NULL;

  if (path && fake.initialized && fake.pid == getpid ())
    f = fopen (path, "a");
  if (f == NULL)
    return;
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    fprintf (f, "%s=%llu\n", names[i].name, *names[i].counter);
  for (int i = 0; i < fake.nr_devices; i++)
    fprintf (f, "launches_%d=%llu\nbatches_%d=%llu\n",
             i, fake.device[i].nr_launches, i, fake.device[i].nr_batches);
  fprintf (f, "live=%lld\n", count_live ());
  fclose (f);
}
