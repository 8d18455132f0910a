/* gpuraid: the names of members.
 *
 * Makes paths absolute and finds the members of a dir=.  Opens nothing.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "array/config/config.h"
#include "array/config/names.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "member/member.h"

char *
config_absolute_path (const char *path)
{
  CLEANUP_FREE char *cwd = NULL;
  char *abs, *out;

  if (path[0] == '/')
    abs = strdup (path);
  else {
    cwd = getcwd (NULL, 0);
    if (cwd == NULL) {
      log_error ("getcwd: %m");
      return NULL;
    }
    if (asprintf (&abs, "%s/%s", cwd, path) == -1)
      abs = NULL;
  }
  if (abs == NULL) {
    log_error ("strdup: %m");
    return NULL;
  }

  /* ".." stays: its meaning depends on symbolic links. */
  out = abs;
  for (const char *in = abs; *in; in++) {
    while (in[0] == '/' && (in[1] == '/' ||
                            (in[1] == '.' && (in[2] == '/' || !in[2])))) {
      in += in[1] == '/' ? 1 : 2;
      if (*in == '\0')
        break;
    }
    if (*in == '\0')
      break;
    *out++ = *in;
  }
  if (out > abs + 1 && out[-1] == '/')
    out--;
  if (out == abs)
    *out++ = '/';
  *out = '\0';
  return abs;
}

char *
config_member_name (const char *name)
{
  if (member_is_uri (name))
    return member_absolute_uri (name, NULL);
  if (strstr (name, "://") == NULL)
    return config_absolute_path (name);
  log_error ("%s: not a URI of a member: these begin with nbd://, nbds://, "
             "nbd+unix://, nbds+unix://, nbd+vsock:// or nbds+vsock://", name);
  return NULL;
}

int
config_add_member (struct config *c, char *path)
{
  char **p;

  for (unsigned i = 0; i < c->nr_members; i++)
    if (strcmp (c->member[i], path) == 0) {
      log_error ("%s: this member is given twice: leave one out", path);
      goto err;
    }
  if (c->nr_members == CONFIG_MAX_MEMBERS) {
    log_error ("too many members: an array has at most %u", MAX_SLOTS);
    goto err;
  }
  p = reallocarray (c->member, c->nr_members + 1, sizeof *p);
  if (p == NULL) {
    log_error ("realloc: %m");
    goto err;
  }
  c->member = p;
  c->member[c->nr_members++] = path;
  return 0;

 err:
  free (path);
  return -1;
}

int
config_add_glob (struct config *c, const char *glob)
{
  char **p = reallocarray (c->glob, c->nr_globs + 1, sizeof *p);

  if (p)
    c->glob = p;
  if (p == NULL || (p[c->nr_globs] = strdup (glob)) == NULL) {
    log_error ("malloc: %m");
    return -1;
  }
  c->nr_globs++;
  return 0;
}

static int
is_member_name (const struct dirent *d)
{
  size_t len = strlen (d->d_name);

  return strncmp (d->d_name, "member-", 7) == 0 && len > 11 &&
    strcmp (d->d_name + len - 4, ".img") == 0;
}

/* What goes between c->dir and a name in it. */
static const char *
separator (const struct config *c)
{
  return strcmp (c->dir, "/") == 0 ? "" : "/";
}

/* Add DIR/member-00.img ... if they do not exist; this also continues an
 * interrupted creation.
 */
static int
add_absent (struct config *c)
{
  for (unsigned i = 0; i < c->k + c->m; i++) {
    bool there = false;
    char *path;

    if (asprintf (&path, "%s%smember-%02u.img", c->dir, separator (c), i)
        == -1) {
      log_error ("asprintf: %m");
      return -1;
    }
    for (unsigned j = 0; j < c->nr_members && !there; j++)
      there = strcmp (c->member[j], path) == 0;
    if (there)
      free (path);
    else if (config_add_member (c, path) == -1)
      return -1;
  }
  return 0;
}

int
config_expand_dir (struct config *c)
{
  struct dirent **d = NULL;
  bool can_create = c->create != CREATE_NO && c->k && c->size;
  int n, r = 0;

  n = scandir (c->dir, &d, is_member_name, alphasort);
  if (n == -1) {
    log_error ("dir=%s: %m%s", c->dir, errno == ENOENT ?
               ": mount its file system, or make this folder first" : "");
    return -1;
  }
  for (int i = 0; i < n; i++) {
    char *path;

    if (r == 0) {
      if (asprintf (&path, "%s%s%s", c->dir, separator (c), d[i]->d_name)
          == -1) {
        log_error ("asprintf: %m");
        r = -1;
      }
      else
        r = config_add_member (c, path);
    }
    free (d[i]);
  }
  free (d);
  if (r == -1)
    return -1;
  if (n == 0 && !can_create) {
    log_error ("dir=%s: no member-*.img there%s", c->dir,
               c->create == CREATE_NO ? ""
               : " (k=, m= and size= are needed to make them)");
    return -1;
  }
  if (can_create && (unsigned) n < c->k + c->m)
    return add_absent (c);
  return 0;
}
