/* gpuraid: choose the members of the array.
 *
 * Looks at superblocks without a lock, because another server may use these
 * members.  Whether those that stay make an array is decided when they are
 * opened.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array/config/names.h"
#include "array/open/choose.h"
#include "array/stores/look.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "member/member.h"

/* Names of what is left alone. */
struct list_of_names {
  FILE *fp;
  char *text;
  size_t len;
  unsigned nr;
};

struct choice {
  struct config *c;
  struct found *f;              /* of the one that is looked at */
  struct list_of_names others;  /* members of other arrays */
  struct list_of_names forbidden;       /* found, and this user can't read */
};

enum whose { OURS, OF_OTHERS, NO_MEMBER, FORBIDDEN, UNKNOWN, BAD_URI };

static enum whose
whose (struct choice *ch, const char *path)
{
  const struct superblock *sb;
  const int err = look_at (path, ch->f);

  if (err && member_is_uri (path))
    return err == EINVAL ? BAD_URI : UNKNOWN;
  if (err)
    return err == EINVAL ? NO_MEMBER :
      err == EACCES || err == EPERM ? FORBIDDEN : UNKNOWN;
  sb = found_newest (ch->f);
  if (sb == NULL)
    return NO_MEMBER;
  return memcmp (&sb->array_uuid, &ch->c->uuid, sizeof sb->array_uuid) == 0 ?
    OURS : OF_OTHERS;
}

static void
leave (struct list_of_names *l, const char *path)
{
  fprintf (l->fp, "%s%s", l->nr++ ? ", " : "", path);
}

/* Those that were named.  -1: a URI is bad, which was reported. */
static int
leave_others (struct choice *ch)
{
  struct config *c = ch->c;
  unsigned nr = 0;
  int r = 0;

  for (unsigned i = 0; i < c->nr_members; i++) {
    const enum whose w = r ? UNKNOWN : whose (ch, c->member[i]);

    if (w == BAD_URI)
      r = -1;
    if (w == OF_OTHERS) {
      leave (&ch->others, c->member[i]);
      free (c->member[i]);
    }
    else
      c->member[nr++] = c->member[i];
  }
  c->nr_members = nr;
  return r;
}

/* Is this a second name of one that is chosen? */
static bool
is_chosen (const struct config *c, const char *path)
{
  for (unsigned i = 0; i < c->nr_members; i++)
    if (look_same_store (c->member[i], path))
      return true;
  return false;
}

static int
take (struct choice *ch, const char *path)
{
  const enum whose w = ch->c->has_uuid ? whose (ch, path) : OURS;
  char *copy;

  if (is_chosen (ch->c, path))
    return 0;
  if (w == OF_OTHERS)
    leave (&ch->others, path);
  if (w == FORBIDDEN)
    leave (&ch->forbidden, path);
  if (w != OURS)
    return 0;
  copy = strdup (path);
  if (copy == NULL) {
    log_error ("strdup: %m");
    return -1;
  }
  return config_add_member (ch->c, copy);
}

static int
expand (struct choice *ch, const char *pattern)
{
  glob_t g;
  int r = glob (pattern, 0, NULL, &g);

  if (r == GLOB_NOMATCH) {
    log_notice ("member=%s: nothing is there", pattern);
    return 0;
  }
  if (r) {
    log_error ("member=%s: glob: %s", pattern,
               r == GLOB_NOSPACE ? "out of memory" : "can't be read");
    return -1;
  }
  for (size_t i = 0; i < g.gl_pathc && r == 0; i++)
    r = take (ch, g.gl_pathv[i]);
  globfree (&g);
  return r;
}

static int
choose (struct choice *ch)
{
  struct config *c = ch->c;

  if (c->has_uuid && leave_others (ch) == -1)
    return -1;
  for (unsigned i = 0; i < c->nr_globs; i++)
    if (expand (ch, c->glob[i]) == -1)
      return -1;
  return 0;
}

/* 0, or -1 with errno. */
static int
names_open (struct list_of_names *l)
{
  l->fp = open_memstream (&l->text, &l->len);
  return l->fp ? 0 : -1;
}

/* Say what was left alone, if tell. */
static void
names_close (struct list_of_names *l, bool tell, const char *what)
{
  if (l->fp && fclose (l->fp) == EOF)
    log_error ("fclose: %m");
  else if (tell && l->nr)
    log_notice ("left alone, %s: %s", what, l->text);
  free (l->text);
}

int
config_choose_members (struct config *c)
{
  CLEANUP_FREE struct found *f = malloc (sizeof *f);
  struct choice ch = { .c = c, .f = f };
  int r = -1;

  if (f == NULL || names_open (&ch.others) == -1 ||
      names_open (&ch.forbidden) == -1)
    log_error ("malloc: %m");
  else
    r = choose (&ch);
  names_close (&ch.others, r == 0, "of other arrays");
  names_close (&ch.forbidden, r == 0, "this user can't read them");
  if (r == -1)
    return -1;
  if (c->nr_members == 0) {
    log_error ("%s", c->has_uuid ? "none of the members that are given is of "
               "the array uuid=: gpuraid examine shows the uuid of each" :
               "no member is there: correct the pattern of member=");
    return -1;
  }
  return 0;
}
