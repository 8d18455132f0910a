/* gpuraid: tests: coders on CUDA, on the fake driver, and what they say.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/bits.h"
#include "common/log.h"
#include "tests/gpu/cuda-coder.h"
#include "tests/gpu/fake-cuda.h"

uint64_t seed;

static struct coder *right;
static char dir[] = "/tmp/gpuraid-test-cuda.XXXXXX";

/* ---- messages -------------------------------------------------------- */

static pthread_mutex_t messages_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned nr_messages;    /* with lock held */
static char messages[20000];

static void
keep_message (enum log_level level, const char *fmt, va_list args)
{
  size_t len;

  if (level == LOG_LEVEL_DEBUG)
    return;
  pthread_mutex_lock (&messages_lock);
  nr_messages++;
  len = strlen (messages);
  vsnprintf (messages + len, sizeof messages - len, fmt, args);
  len = strlen (messages);
  snprintf (messages + len, sizeof messages - len, "\n");
  pthread_mutex_unlock (&messages_lock);
}

unsigned
nr_of (const char *text)
{
  unsigned nr = 0;

  pthread_mutex_lock (&messages_lock);
  for (const char *p = messages; (p = strstr (p, text)) != NULL; p++)
    nr++;
  pthread_mutex_unlock (&messages_lock);
  return nr;
}

unsigned
nr_of_all (void)
{
  return nr_messages;
}

void
expect_messages (unsigned nr)
{
  if (nr_messages != nr)
    fail_msg ("%u messages, not %u:\n%s", nr_messages, nr, messages);
}

int
reset (void **state)
{
  static const char *const names[] = {
    "FAKE_CUDA_DEVICES", "FAKE_CUDA_SLOW", "FAKE_CUDA_SLOW_COPIES",
    "FAKE_CUDA_LATE", "FAKE_CUDA_HANG", "FAKE_CUDA_FAIL",
    "FAKE_CUDA_LOST_AFTER", "FAKE_CUDA_ONE_FOR_ALL", "FAKE_NVRTC_FAIL",
  };

  for (size_t i = 0; i < ARRAY_LEN (names); i++)
    fake_cuda_set (names[i], NULL);
  messages[0] = '\0';
  nr_messages = 0;
  return 0;
}

/* ---- coders ---------------------------------------------------------- */

/* Matrices get no kernels of their own unless a test is about them: the
 * fake compiler takes a second for each.
 */
struct cuda_options
plain_options (void)
{
  return (struct cuda_options) {
    .devices = ~UINT64_C (0), .kernel_dir = dir,
    .special_after = ~UINT64_C (0), .fail_device = -1,
  };
}

struct coder *
new_coder (const struct cuda_options *options)
{
  struct coder *c = coder_cuda_new (options, coder_isal_new (0));

  assert_non_null (c);
  return c;
}

struct coder *
start_coder (const struct cuda_options *options)
{
  struct coder *c = new_coder (options);
  size_t len;
  void *arena = cuda_arena (&len);

  if (coder_start (c, arena, len) == -1)
    fail_msg ("it did not start: %s", messages);
  return c;
}

struct kernels_state
wait_for_kernels (struct coder *c)
{
  struct kernels_state s;

  for (unsigned i = 0; i < 60000; i++) {
    coder_cuda_kernels (c, &s);
    if (s.nr_wanted == 0)
      return s;
    usleep (1000);
  }
  fail_msg ("kernels still wanted after a minute");
  return s;
}

struct matrix *
random_matrix (struct ref_random *rnd, unsigned rows, unsigned cols)
{
  uint8_t *coef = ref_alloc (rows * cols);
  struct matrix *a;

  ref_fill (rnd, coef, rows * cols);
  a = matrix_new (rows, cols, coef);
  assert_non_null (a);
  free (coef);
  return a;
}

struct cuda_job *
new_job (struct ref_random *rnd, const struct matrix *a, size_t nr_rects,
         size_t cell_len, bool crc)
{
  return cuda_job_new (rnd, right, a, nr_rects, cell_len, crc);
}

/* One job; false if it went wrong. */
bool
run_one (struct coder *c, struct ref_random *rnd, const struct matrix *a,
         size_t nr_rects, size_t cell_len, bool crc)
{
  struct cuda_job *t = new_job (rnd, a, nr_rects, cell_len, crc);
  bool ok;

  cuda_job_submit (c, t);
  ok = cuda_job_wait (t);
  cuda_job_free (t);
  return ok;
}

/* Bytes by the devices, by the fallback. */
static void
get_bytes (struct coder *c, uint64_t *cuda, uint64_t *fallback)
{
  struct coder_share share[CODER_MAX_SHARES];
  unsigned nr = coder_shares (c, share);

  *cuda = *fallback = 0;
  for (unsigned i = 0; i < nr; i++)
    *(strncmp (share[i].name, "cuda:", 5) == 0 ? cuda : fallback) +=
      share[i].bytes;
}

void
expect_all_on (struct coder *c, bool on_cuda)
{
  uint64_t cuda, fallback;

  get_bytes (c, &cuda, &fallback);
  assert_true (on_cuda ? cuda > 0 && fallback == 0
               : cuda == 0 && fallback > 0);
}

/* ---- many threads ---------------------------------------------------- */

struct client {
  pthread_t thread;
  struct coder *c;
  uint64_t seed;
  unsigned nr_jobs, max_len;
  bool ok;
};

/* Some jobs in flight at once, each of them any. */
static void *
client (void *arg)
{
  enum { AT_ONCE = 3 };
  struct client *cl = arg;
  struct ref_random rnd = { cl->seed };
  struct cuda_job *t[AT_ONCE] = { NULL };
  struct matrix *a[AT_ONCE] = { NULL };

  cl->ok = true;
  for (unsigned n = 0; n < cl->nr_jobs + AT_ONCE; n++) {
    unsigned i = n % AT_ONCE;
    bool crc = ref_below (&rnd, 3) == 0;
    size_t unit = crc ? 4096 : 64, max = 1 + ref_below (&rnd, cl->max_len);
    size_t cell_len, row;

    if (t[i]) {
      cl->ok &= cuda_job_wait (t[i]);
      cuda_job_free (t[i]);
      matrix_free (a[i]);
      t[i] = NULL;
    }
    if (n >= cl->nr_jobs)
      continue;
    a[i] = random_matrix (&rnd, 1 + ref_below (&rnd, 4),
                          1 + ref_below (&rnd, 10));
    row = a[i]->rows + a[i]->cols;
    cell_len = unit * (1 + ref_below (&rnd, max / row / unit + 1));
    t[i] = new_job (&rnd, a[i], 1 + max / row / cell_len,
                         cell_len, crc);
    cuda_job_submit (cl->c, t[i]);
  }
  return NULL;
}

void
run_clients (struct coder *c, unsigned nr_jobs, unsigned max_len)
{
  struct client clients[5];
  bool ok = true;

  for (unsigned i = 0; i < ARRAY_LEN (clients); i++) {
    /* The first has large jobs, too. */
    clients[i] = (struct client) {
      .c = c, .seed = seed + i, .nr_jobs = i ? nr_jobs : nr_jobs / 4,
      .max_len = i ? max_len : max_len * 16,
    };
    assert_int_equal (pthread_create (&clients[i].thread, NULL, client,
                                      &clients[i]), 0);
  }
  for (unsigned i = 0; i < ARRAY_LEN (clients); i++) {
    pthread_join (clients[i].thread, NULL);
    ok &= clients[i].ok;
  }
  assert_true (ok);
}

/* ---- all of it ------------------------------------------------------- */

/* A folder of its own for the test. */
void
own_dir (char path[64])
{
  strcpy (path, "/tmp/gpuraid-test-cuda.XXXXXX");
  assert_non_null (mkdtemp (path));
}

void
remove_dir (const char *path)
{
  char command[200];

  snprintf (command, sizeof command, "rm -rf %s", path);
  assert_int_equal (system (command), 0);
}

int
start_tests (void **state)
{
  use_fake_cuda ();
  log_set_sink (keep_message);
  cuda_arena_new (64 << 20);
  if (mkdtemp (dir) == NULL)
    return -1;
  right = coder_gf_complete_new (0);
  return right && coder_start (right, NULL, 0) == 0 ? 0 : -1;
}

int
stop_tests (void **state)
{
  coder_free (right);
  cuda_arena_free ();
  remove_dir (dir);
  return 0;
}
