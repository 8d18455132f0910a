/* gpuraid: tests: a simulated array that is full of data, that data, and the
 * I/Os that it takes.
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

#include "common/bits.h"
#include "tests/engine-array.h"

uint8_t *data, *back;

int
free_data (void **state)
{
  free (data);
  free (back);
  data = back = NULL;
  return 0;
}

static int
setup (enum consistency c, enum checksum s)
{
  sim_consistency = c;
  sim_checksum = s;
  return 0;
}

int
setup_bare (void **state)
{
  return setup (CONSISTENCY_NONE, CHECKSUM_NONE);
}

int
setup_sums (void **state)
{
  return setup (CONSISTENCY_NONE, CHECKSUM_CRC32C);
}

int
setup_journal (void **state)
{
  return setup (CONSISTENCY_JOURNAL, CHECKSUM_NONE);
}

int
setup_both (void **state)
{
  return setup (CONSISTENCY_JOURNAL, CHECKSUM_CRC32C);
}

struct sim_array *
start_empty (unsigned k, unsigned m, uint32_t chunk, uint64_t nr_stripes)
{
  const struct geometry g = { .k = k, .m = m, .chunk = chunk };
  struct sim_array *sa = sim_array_new (1, &g, nr_stripes, 0);

  free_data (NULL);
  data = calloc (1, sa->g.size);
  back = malloc (sa->g.size);
  assert_non_null (data);
  assert_non_null (back);
  sa->cache_len = MAX (1 << 20, sa->cache_len);
  sim_array_create (sa);
  assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, false), 0);
  assert_int_equal (sim_array_writable (sa), 0);
  return sa;
}

struct sim_array *
start_full (unsigned k, unsigned m, uint32_t chunk, uint64_t nr_stripes)
{
  struct sim_array *sa = start_empty (k, m, chunk, nr_stripes);

  for (uint64_t i = 0; i < sa->g.size; i++)
    data[i] = (i * 0x9e3779b97f4a7c15) >> 40;
  assert_int_equal (sim_array_write (sa, data, sa->g.size, 0, ARRAY_FUA), 0);
  return sa;
}

void
open_again (struct sim_array *sa, uint64_t which, bool writable)
{
  if (sa->a)
    assert_true (sim_array_stop (sa));
  assert_int_equal (sim_array_open (sa, which, DEGRADED_ALLOW, false), 0);
  if (writable)
    assert_int_equal (sim_array_writable (sa), 0);
}

void
crash_array (struct sim_array *sa)
{
  assert_true (sim_array_abandon (sa));
  sim_crash (sa->sim);
}

void
check_range (struct sim_array *sa, uint64_t off, uint64_t len)
{
  memset (back, 0x55, len);
  assert_int_equal (sim_array_read (sa, back, len, off), 0);
  assert_memory_equal (back, data + off, len);
}

void
check_all (struct sim_array *sa)
{
  check_range (sa, 0, sa->g.size);
}

void
ignore_end (struct sim_request *q)
{
}

struct sim_request *
start_request (struct sim_array *sa, enum request_kind kind, void *buf,
               uint64_t off, uint64_t len, unsigned flags)
{
  struct sim_request *q = calloc (1, sizeof *q);

  assert_non_null (q);
  sim_request_init (q, sa, kind);
  q->r.buf = buf;
  q->r.off = off;
  q->r.len = len;
  q->r.flags = flags;
  q->done = ignore_end;
  sim_request_start (q);
  return q;
}

struct sim_request *
start_writable (struct sim_array *sa)
{
  struct sim_request *q = calloc (1, sizeof *q);

  assert_non_null (q);
  sim_command_init (q, sa, COMMAND_WRITABLE);
  q->done = ignore_end;
  sim_request_start (q);
  return q;
}

int
serve (struct sim_array *sa)
{
  struct sim_request q;

  sim_request_init (&q, sa, REQUEST_COMMAND);
  q.r.command.kind = COMMAND_WRITABLE;
  q.r.command.of_client = true;
  return sim_array_run (&q);
}

void
put (struct sim_array *sa, uint64_t off, uint64_t len, unsigned flags)
{
  for (uint64_t i = off; i < off + len; i++)
    data[i] += 1 + i % 5;
  assert_int_equal (sim_array_write (sa, data + off, len, off, flags), 0);
}

void
end_whole (struct sim_array *sa)
{
  char why[200];

  check_all (sa);
  assert_true (sim_array_stop (sa));
  if (!sim_array_parity_is_right (sa, why, sizeof why))
    fail_msg ("%s", why);
  sim_array_free (sa);
}

void
end_degraded (struct sim_array *sa)
{
  assert_true (sim_array_stop (sa));
  sim_array_free (sa);
}

/* ---- counting I/O -------------------------------------------------------- */

void
count_from_here (struct sim_array *sa)
{
  for (unsigned i = 0; i < sa->nr_disks; i++) {
    memset (sa->disk[i]->nr_ios, 0, sizeof sa->disk[i]->nr_ios);
    memset (sa->disk[i]->nr_bytes, 0, sizeof sa->disk[i]->nr_bytes);
  }
}

uint64_t
ios (const struct sim_array *sa, enum io_kind kind)
{
  uint64_t nr = 0;

  for (unsigned i = 0; i < sa->nr_disks; i++)
    nr += sa->disk[i]->nr_ios[kind];
  return nr;
}

uint64_t
bytes (const struct sim_array *sa, enum io_kind kind)
{
  uint64_t nr = 0;

  for (unsigned i = 0; i < sa->nr_disks; i++)
    nr += sa->disk[i]->nr_bytes[kind];
  return nr;
}

uint64_t
place (const struct sim_array *sa, uint64_t stripe, uint64_t chunk_off)
{
  return layout_data_off (&sa->l, stripe * sa->g.chunk) + chunk_off;
}

struct sim_disk *
disk_of_role (struct sim_array *sa, uint64_t stripe, unsigned role)
{
  return sim_array_disk_at (sa, layout_slot (&sa->g, stripe, role));
}
