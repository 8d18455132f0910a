/* gpuraid: gpuraid create.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <ctype.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array/create/create.h"
#include "array/create/known.h"
#include "array/open/choose.h"
#include "array/stores/copies.h"
#include "cli/cli.h"
#include "cli/offline/create-plan.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "raidmap/uuid.h"

/* The length of the key, with nbdkit's rules for "key=value"; 0: no key. */
static size_t
key_len (const char *word)
{
  size_t n = 0;

  if (!isalpha ((unsigned char) word[0]))
    return 0;
  while (isalnum ((unsigned char) word[n]) || strchr ("._-", word[n])) {
    if (word[n] == '\0')
      return 0;
    n++;
  }
  return word[n] == '=' ? n : 0;
}

static int
set_word (struct config *c, const char *word)
{
  size_t len = key_len (word);
  CLEANUP_FREE char *key = strndup (len ? word : "member", len ? len : 6);
  const char *name;
  bool creates = false;

  if (key == NULL) {
    log_error ("strdup: %m");
    return -1;
  }
  for (unsigned i = 0; (name = config_key (i, &creates)) != NULL; i++)
    if (strcmp (name, key) == 0)
      break;
  if (name == NULL || !creates) {
    log_error ("unknown key: %s (gpuraid create --help lists them)", key);
    return -1;
  }
  return config_set (c, key, len ? word + len + 1 : word);
}

/* What was made, in one line; and the members are noted. */
static void
show (const struct config *c)
{
  CLEANUP_FREE struct found *f = calloc (1, sizeof *f);
  struct member *m = member_open (c->member[0], MEMBER_NOLOCK, 0);
  const struct superblock *sb = NULL;
  char uuid[UUID_TEXT_LEN], size[CLI_SIZE_LEN], chunk[CLI_SIZE_LEN];

  if (f && m && copies_read (m, f, NULL) == 0)
    sb = found_accepted (f);
  if (sb)
    known_write (&sb->array_uuid, c->member, c->nr_members);
  if (sb)
    printf ("%s%s%s: %u+%u, %s, chunk %s\n", sb->label,
            sb->label[0] ? " " : "", uuid_text (&sb->array_uuid, uuid),
            sb->g.k, sb->g.m, cli_size (sb->g.size, size),
            cli_size (sb->g.chunk, chunk));
  member_close (m);
}

/* 0, or EXIT_USAGE or EXIT_FAILURE, reported. */
static int
create (const struct config *c, unsigned flags, bool dry_run)
{
  CLEANUP_FREE struct create_plan *p = calloc (1, sizeof *p);

  if (p == NULL) {
    log_error ("calloc: %m");
    return EXIT_FAILURE;
  }
  if (create_check (c) == -1)
    return EXIT_USAGE;
  if (create_plan (c, flags, p) == -1)
    return EXIT_FAILURE;
  if (dry_run)
    create_plan_show (p);
  else if (create_array (c, flags) == -1)
    return EXIT_FAILURE;
  else
    show (c);
  create_warn_sizes (p);
  create_warn_space (p);
  return EXIT_SUCCESS;
}

int
cmd_create (int argc, char **argv)
{
  static const struct option options[] = {
    { "force", no_argument, NULL, 'f' },
    { "any-room", no_argument, NULL, 'r' },
    { "dry-run", no_argument, NULL, 'n' },
    { NULL },
  };
  struct config c;
  unsigned flags = 0;
  bool dry_run = false;
  int opt, r = EXIT_USAGE;

  opterr = 0;
  while ((opt = getopt_long (argc, argv, "", options, NULL)) != -1) {
    flags |= opt == 'f' ? CREATE_FORCE : opt == 'r' ? CREATE_ANY_ROOM : 0;
    dry_run |= opt == 'n';
    if (opt == '?')
      return CLI_USAGE;
  }
  if (optind == argc)
    return CLI_USAGE;

  config_init (&c);
  for (; optind < argc; optind++)
    if (set_word (&c, argv[optind]) == -1)
      goto out;
  if (config_complete (&c, config_choose_members) == 0)
    r = create (&c, flags, dry_run);

 out:
  config_free (&c);
  return r;
}
