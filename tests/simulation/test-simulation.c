/* gpuraid: the engine in a world that fails, one seed one run.
 *
 *   build/tests/test-simulation [NUMBER [FIRST|random]]
 *
 * Runs NUMBER seeds from FIRST on (or from $SEED, or from 1); stops at the
 * first that fails.  SIM_VERBOSE=1 prints every step; SIM_STATES=1 how often
 * rare states were reached; SIM_WITHOUT=unreadable,hang,long,full,rot,pause
 * leaves out kinds of faults; SIM_JOURNAL=1 makes all arrays with a journal, 0
 * none; SIM_SUMS=1 all with checksums, 0 none; SIM_FAIL=die, abort or loop: the
 * first seed fails so.
 *
 * In each run clients read and write an array at random while members give
 * errors, hang, are slow, die, are taken out and replaced; it crashes and is
 * started again, with some members missing.  Reads are checked against
 * sim-model.h, which has no stripes; sim-run.c computes what may be lost
 * with a slot.
 *
 * run-tests: no-thread check=plain,address
 * run-tests: fixed inputs=array,common,gf,member,raidmap,Makefile
 * run-tests: inputs=tests/sim,tests/simulation,tests/?*.[ch]
 * It has one thread.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "common/bits.h"
#include "raidmap/bitmap.h"
#include "tests/seed.h"
#include "tests/simulation/sim-run.h"

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define DEFAULT_NUMBER 100
#define SEED_SECONDS 100        /* of a processor: a seed takes less than one */
#else
#define DEFAULT_NUMBER 800
#define SEED_SECONDS 15
#endif

static volatile uint64_t current;

/* In place of the C library's: what is given back has rubbish afterwards, not
 * zeroes, which a block that was never written has too.
 */
int
madvise (void *p, size_t len, int advice)
{
  if (advice == MADV_DONTNEED) {
    memset (p, 0xdb, len);
    stats.given_back++;
  }
  return 0;
}

static void
start_run (struct run *r, uint64_t seed)
{
  uint64_t nr_stripes, need;
  struct geometry large;
  struct member_layout l;

  *r = (struct run) { .seed = seed };
  nr_stripes = draw_array (r);
  sim_spare_len = r->spare_len;
  r->sa = sim_array_new (seed, &r->g, nr_stripes, r->blocks_less);
  r->sim = r->sa->sim;
  r->sa->spare_delay_ns = r->spare_delay_ns;
  r->sa->hedge = r->hedge;
  r->sa->thread = r->thread;
  r->g = large = r->sa->g;
  l = r->sa->l;
  r->n = r->g.k + r->g.m;
  r->rows_per_stripe = r->g.chunk / BLOCK_LEN;
  r->nr_rows = r->sa->nr_stripes * r->rows_per_stripe;
  while (layout_grow (&large, &l, r->sa->disk_size, &need) == 0)
    ;
  shape_draw (r);
  r->sure_size = r->g.size;
  r->max_size = r->max_k == r->start_k ? large.size : l.data_len * r->max_k;
  r->max_rows = l.data_len / BLOCK_LEN;
  for (unsigned i = 0; r->spare_len && i < r->n; i++)
    sim_array_spoil (r->sa, i);
  r->torn = calloc (r->max_rows, sizeof *r->torn);
  r->was_open = calloc (r->max_rows, sizeof *r->was_open);
  r->unsynced = calloc (div_round_up (r->max_rows, 64), sizeof *r->unsynced);
  r->page = calloc (bitmap_nr_pages (&l), sizeof *r->page);
  r->written_in = calloc (r->max_size / r->g.chunk + 1, 1);
  r->was_lost_at = calloc (r->max_rows, sizeof *r->was_lost_at);
  r->bad_row = calloc (r->max_rows, sizeof *r->bad_row);
  r->buf = malloc (r->max_size);
  r->model = model_new (r->max_size);
  r->max_len = MIN (r->g.size, 3 * (uint64_t) r->g.k * r->g.chunk + 9000);
  for (unsigned i = 0; i < r->nr_clients; i++) {
    r->client[i].run = r;
    r->client[i].buf = malloc (r->max_len);
    assert (r->client[i].buf != NULL);
  }
  assert (r->torn != NULL && r->buf != NULL && r->was_open != NULL &&
          r->unsynced != NULL && r->page != NULL && r->bad_row != NULL &&
          r->was_lost_at != NULL && r->written_in != NULL);
  r->trouble = run_percent (r, 25) ? 0 : 20 + run_below (r, 80);
  r->may_exceed = run_percent (r, 20);
  r->may_lose_rows = run_percent (r, 30);
  r->sa->cache_len += run_below (r, 2) * run_below (r, 3 * r->sa->cache_len);
  r->sa->writethrough = run_percent (r, 10);
  r->sa->window_len = (1 + run_below (r, 16)) * r->g.chunk;
  r->sa->save_ns = 1 + run_below (r, 2) * run_below (r, 6 * SECONDS);
  r->sa->clear_ns = 1 + run_below (r, 2) * run_below (r, 6 * SECONDS);
  r->sa->max_pause_ns = run_below (r, 4) * run_below (r, 1000000);
  r->rules = rules_new (r);
  r->copies = copies_new ();
}

static void
end_run (struct run *r)
{
  for (unsigned i = 0; i < r->nr_clients; i++)
    free (r->client[i].buf);
  rules_free (r->rules);
  copies_free (r->copies);
  free (r->torn);
  free (r->was_open);
  free (r->unsynced);
  free (r->page);
  free (r->bad_row);
  free (r->was_lost_at);
  free (r->written_in);
  free (r->buf);
  free (r->old_data);
  model_free (r->model);
  sim_array_free (r->sa);
}

/* Whatever a crash leaves of it: an array that opens, or one that is
 * created again.
 */
static void
create (struct run *r)
{
  const bool rubbish = run_percent (r, 50);

  for (unsigned i = 0; rubbish && i < r->n; i++)
    sim_array_spoil (r->sa, i);
  while (run_percent (r, 20)) {
    sim_crash_after (r->sim, 1 + run_below (r, 14 * r->n + 20));
    if (!sim_array_try_create (r->sa)) {
      stats.crash_creation++;
      sim_crash (r->sim);
    }
    sim_crash_after (r->sim, 0);
    if (sim_array_open (r->sa, ~0, DEGRADED_ALLOW, true) == 0) {
      stats.creations_kept++;
      if (!sim_array_stop (r->sa))
        run_die (r, "it does not stop");
      return;
    }
  }
  sim_array_create (r->sa);
}

/* SIM_FAIL=die, abort or loop: so that a test sees what is printed then. */
static void
fail_if_asked (struct run *r)
{
  const char *how = getenv ("SIM_FAIL");

  if (how == NULL)
    return;
  if (strcmp (how, "abort") == 0)
    abort ();
  if (strcmp (how, "loop") == 0)
    raise (SIGPROF);
  run_die (r, "asked to fail");
}

static uint64_t
run (uint64_t seed)
{
  struct run r;
  uint64_t trace;

  start_run (&r, seed);
  fail_if_asked (&r);
  create (&r);
  r.was_active = r.in_force = LOW_BITS (r.n);
  r.promised = MAX_SLOTS;       /* some member may not have been created */
  for (unsigned n = 1 + run_below (&r, 5); n > 0; n--) {
    if (run_percent (&r, 15)) {
      if (!session_start (&r, true))
        goto end;
      session_read (&r);
    }
    if (!session_start (&r, false))
      goto end;
    session_write (&r);
  }
  if (session_start (&r, false))
    end_last (&r);

 end:
  stats.runs++;
  stats.held_reads += r.sa->nr_held;
  trace = sim_trace (r.sim);
  end_run (&r);
  return trace;
}

static double
now (void)
{
  struct timespec ts;

  clock_gettime (CLOCK_MONOTONIC, &ts);
  return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* An assertion failed, or it loops. */
static void
say_seed (int sig)
{
  char text[100], replay[REPLAY_LEN];
  const int len = snprintf (text, sizeof text, "seed %" PRIu64 ": %s\n",
                            current, sig == SIGPROF || sig == SIGALRM ?
                            "never ends" : "aborted");
  ssize_t n = write (2, text, len);

  replay_line (current, replay, sizeof replay);
  n = write (2, replay, strlen (replay));
  (void) n;
  signal (SIGABRT, SIG_DFL);
  abort ();
}

/* On a busy machine a seed may take long.  One that has used no time of a
 * processor meanwhile waits for something that never comes.
 */
static void
look_at_time (int sig)
{
  static uint64_t before;       /* ms */
  struct timespec ts;
  uint64_t used;

  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &ts);
  used = ts.tv_sec * UINT64_C (1000) + ts.tv_nsec / 1000000;
  if (used == before)
    say_seed (sig);
  before = used;
  alarm (SEED_SECONDS);
}

static void
limit_time (void)
{
  const struct itimerval it = { .it_value.tv_sec = SEED_SECONDS };

  setitimer (ITIMER_PROF, &it, NULL);
  alarm (SEED_SECONDS);
}

int
main (int argc, char *argv[])
{
  const uint64_t nr = argc > 1 ? strtoull (argv[1], NULL, 10) :
    DEFAULT_NUMBER;
  const uint64_t first = test_seed (argc > 2 ? argv[2] : NULL);
  const double start = now ();

  replay_init (argv[0]);
  signal (SIGABRT, say_seed);
  signal (SIGSEGV, say_seed);
  signal (SIGPROF, say_seed);
  signal (SIGALRM, look_at_time);
  /* Memory of calloced disks costs only the part that is used; other memory
   * stays, as a kernel that gives it again and again takes half of the time.
   */
  mallopt (M_MMAP_THRESHOLD, 256 * 1024);
  mallopt (M_TRIM_THRESHOLD, 1 << 30);
  mallopt (M_TOP_PAD, 64 << 20);
  for (uint64_t seed = first; seed < first + nr; seed++) {
    uint64_t trace;

    current = seed;
    limit_time ();
    trace = run (seed);
    if (seed == first && run (seed) != trace) {
      fprintf (stderr, "seed %" PRIu64 ": another run does not repeat it\n",
               seed);
      return 1;
    }
  }
  stats_report (now () - start, getenv ("SIM_STATES") != NULL);
  return 0;
}
