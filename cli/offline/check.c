/* gpuraid check: scrub an array that is not running.
 *
 * The array is opened as the plugin does it, for reading only unless it is to
 * be repaired, after the same tests of crc32c and the coder.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "array/array.h"
#include "array/open/assemble.h"
#include "array/open/choose.h"
#include "array/plan/code.h"
#include "array/stores/host-lock.h"
#include "cli/cli.h"
#include "cli/show/render.h"
#include "cli/show/text.h"
#include "common/bytes/crc32c.h"
#include "common/log.h"
#include "gf/coder-check.h"

static struct host_lock *host_lock;

/* 0; or -1: reported, and nothing is left open. */
static int
open_assembly (const struct config *c, struct assembly *as)
{
  struct member *members[CONFIG_MAX_MEMBERS];
  struct absent absent;
  unsigned nr;

  if (open_members (c, members, &nr, &absent) == -1)
    return -1;
  if (host_lock_members (members, nr, &host_lock) == -1) {
    for (unsigned i = 0; i < nr; i++)
      member_close (members[i]);
    return -1;
  }
  if (assemble (c, members, nr, &absent, as) == -1)
    return -1;
  if (host_lock_covers (host_lock, &as->sb.array_uuid))
    return 0;
  assembly_free (as);
  return -1;
}

/* The coder that is used, without threads, codes as this array does.  Wrong
 * results would find good members wrong, and with --repair make them so.
 */
static bool
coder_is_right (const struct superblock *sb)
{
  const struct geometry *g = &sb->g;
  struct coder *coder = coder_fastest_new (0);
  struct matrix *encode = NULL;
  uint8_t coef[MAX_SLOTS * MAX_SLOTS];
  bool right;

  code_parity (sb->code, sb->w, g->k, g->m, coef);
  encode = code_matrix (sb->code, sb->w, g->m, g->k, coef);
  if (encode == NULL)
    log_error ("out of memory");
  right = encode && coder && coder_start (coder, NULL, 0) == 0 &&
    coder_check (coder, encode, NULL) == 0;
  coder_free (coder);
  matrix_free (encode);
  return right;
}

/* NULL: reported. */
static struct array *
open_array (const struct config *c)
{
  struct coder *coder = NULL;
  struct loop *loop = NULL;
  struct array *array = NULL;
  struct assembly as;

  if (crc32c_check () == -1 || open_assembly (c, &as) == -1)
    return NULL;
  if (coder_is_right (&as.sb))
    coder = coder_fastest_new (-1);
  if (coder)
    array = array_new (c, &as, coder);
  if (array == NULL) {
    coder_free (coder);
    assembly_free (&as);
    return NULL;
  }
  loop = loop_threads_new ();
  if (loop && array_start (array, loop) == 0)
    return array;
  array_free (array);
  return NULL;
}

static void
show_progress (const struct array_progress *p)
{
  char done[CLI_SIZE_LEN], total[CLI_SIZE_LEN], rate[CLI_SIZE_LEN];

  fprintf (stderr, "\r\033[K%5.1f %%  %s of %s of each member  %s/s",
           p->total ? p->done * 100.0 / p->total : 100.0,
           cli_size (p->done, done), cli_size (p->total, total),
           cli_size (p->bytes_per_second, rate));
}

static struct array_status
wait_for_scrub (struct array *a)
{
  const struct timespec pause = { .tv_nsec = 20000000 };
  const bool tty = isatty (STDERR_FILENO);
  struct array_status st;

  for (;;) {
    array_get_status (a, &st);
    if (!st.scrub.running || st.state == ARRAY_FAILED)
      break;
    if (tty)
      show_progress (&st.scrub);
    array_status_free (&st);
    nanosleep (&pause, NULL);
  }
  if (tty)
    fprintf (stderr, "\r\033[K");
  return st;
}

static void
show_member (const struct array_entry *e)
{
  if (e->slot == SLOT_NONE || (e->state == ENTRY_ACTIVE &&
                               e->scrub_found == 0))
    return;
  printf ("slot %u: ", e->slot);
  if (e->state == ENTRY_ACTIVE)
    printf ("%" PRIu64 " wrong, %" PRIu64 " repaired: ", e->scrub_found,
            e->scrub_repaired);
  else
    printf ("not there, or not current: ");
  text_clean (stdout, e->path ? e->path : "-");
  printf ("\n");
}

/* The exit status. */
static int
show (const struct array_status *st, uint64_t bad_pages)
{
  const struct array_scrub_count *c = &st->last_scrub;

  for (unsigned i = 0; i < st->nr_entries; i++)
    show_member (&st->entry[i]);
  if (bad_pages)
    printf ("%" PRIu64 " pages of the checksum table are damaged\n",
            bad_pages);
  if (c->skipped_rows)
    printf ("%" PRIu64 " rows were not looked at: they are in the journal, or "
            "were being written when the array was stopped\n",
            c->skipped_rows);
  if (c->unlocated_rows)
    printf ("%" PRIu64 " rows do not fit together, and nothing says which "
            "block is wrong\n", c->unlocated_rows);
  if (c->lost_rows)
    printf ("%" PRIu64 " rows are lost: too little of them is right\n",
            c->lost_rows);
  if (!st->last_scrub_complete) {
    log_error ("the array was not looked at to the end");
    return EXIT_FAILURE;
  }
  printf ("%" PRIu64 " blocks were wrong, %" PRIu64 " of them were "
          "repaired\n", c->found, c->repaired);
  return c->found || c->unlocated_rows || c->lost_rows || bad_pages ||
    st->state != ARRAY_HEALTHY ? EXIT_FAILURE : EXIT_SUCCESS;
}

static bool
is_widened (struct array *a)
{
  struct array_status st;
  bool is;

  array_get_status (a, &st);
  is = st.reshape.state != RESHAPE_NONE && st.reshape.widens;
  array_status_free (&st);
  return is;
}

static int
check (struct array *a, bool repair)
{
  char why[ARRAY_WHY_LEN] = "";
  struct array_status st;
  int r;

  if (is_widened (a)) {
    log_error ("the array is being widened: start it, and check it when its "
               "rows have moved (gpuraid wait)");
    return EXIT_FAILURE;
  }
  if (array_scrub_start (a, repair, why)) {
    log_error ("%s", why);
    return EXIT_FAILURE;
  }
  st = wait_for_scrub (a);
  r = show (&st, st.counters.corrupt_table_pages);
  array_status_free (&st);
  return r;
}

int
cmd_check (int argc, char **argv)
{
  static const struct option options[] = {
    { "repair", no_argument, NULL, 'r' },
    { NULL },
  };
  struct array *a = NULL;
  int opt, r = EXIT_USAGE;
  bool repair = false;
  struct config c;

  opterr = 0;
  while ((opt = getopt_long (argc, argv, "", options, NULL)) != -1) {
    if (opt != 'r')
      return CLI_USAGE;
    repair = true;
  }
  if (optind == argc)
    return CLI_USAGE;
  config_init (&c);
  c.keep_unwritable = true;
  c.readonly = !repair;
  c.forget_scrub = true;
  for (; optind < argc; optind++)
    if (config_set (&c, "member", argv[optind]) == -1)
      goto out;
  if (config_complete (&c, config_choose_members) == -1)
    goto out;
  a = open_array (&c);
  r = a ? check (a, repair) : EXIT_FAILURE;

 out:
  array_free (a);
  host_lock_free (host_lock);
  config_free (&c);
  return r;
}
