/* gpuraid: which files were members, as written down on this host.
 *
 * A note has a line for each file: its path, without symbolic links, in which a
 * newline is "\n" and a backslash is doubled.  A new note takes the place of
 * the old one in one step, so that a crash leaves one of them whole.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "array/create/known.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/write-all.h"
#include "member/member.h"
#include "raidmap/uuid.h"

#define FOLDER "/var/lib/gpuraid"
#define FOLDER_ENV "GPURAID_STATE_DIR"
#define MAX_LEN (4u << 20)      /* more than any note has */

static const char head[] =
  "# The members of an array that was opened here last: see dir= in\n"
  "# nbdkit-gpuraid-plugin(1).\n";

/* ---- names --------------------------------------------------------------- */

/* Where notes are.  The caller frees it.  NULL: there is no such folder. */
static char *
notes_folder (void)
{
  const char *given = getenv (FOLDER_ENV);
  const char *state = getenv ("XDG_STATE_HOME"), *home = getenv ("HOME");
  char *s = NULL;
  int r = -1;

  if (given && given[0])
    r = asprintf (&s, "%s/known", given);
  else if (geteuid () == 0)
    r = asprintf (&s, FOLDER "/known");
  else if (state && state[0] == '/')
    r = asprintf (&s, "%s/gpuraid/known", state);
  else if (home && home[0] == '/')
    r = asprintf (&s, "%s/.local/state/gpuraid/known", home);
  return r == -1 ? NULL : s;
}

/* The folder and those above it.  False: it can't be made. */
static bool
make_folder (const char *folder)
{
  CLEANUP_FREE char *s = strdup (folder);

  if (s == NULL)
    return false;
  for (char *p = strchr (s + 1, '/'); p; p = strchr (p + 1, '/')) {
    *p = '\0';
    mkdir (s, 0755);
    *p = '/';
  }
  return mkdir (s, 0700) == 0 || errno == EEXIST;
}

/* The file's one name: of one that is not there, that in its real folder.  The
 * caller frees it.  NULL: there is none.
 */
static char *
real_name (const char *name)
{
  const char *last = strrchr (name, '/');
  CLEANUP_FREE char *folder = NULL, *real = NULL;
  char *s = member_is_uri (name) ? NULL : realpath (name, NULL);

  if (s || last == NULL || member_is_uri (name))
    return s;
  folder = strndup (name, last == name ? 1 : last - name);
  real = folder ? realpath (folder, NULL) : NULL;
  if (real == NULL ||
      asprintf (&s, "%s%s", strcmp (real, "/") == 0 ? "" : real, last) == -1)
    return NULL;
  return s;
}

/* A line of a note without its newline.  The caller frees it. */
static char *
line_of (const char *path)
{
  char *s = malloc (2 * strlen (path) + 1), *out = s;

  for (; s && *path; path++) {
    if (*path == '\n' || *path == '\\')
      *out++ = '\\';
    *out++ = *path == '\n' ? 'n' : *path;
  }
  if (s)
    *out = '\0';
  return s;
}

/* ---- notes --------------------------------------------------------------- */

/* The text of a note: the caller frees it.  NULL: there is none. */
static char *
read_note (const char *path)
{
  CLEANUP_CLOSE int fd = open (path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW |
                               O_NONBLOCK);
  struct stat st;
  char *text;
  ssize_t n;

  if (fd == -1 || fstat (fd, &st) == -1 || !S_ISREG (st.st_mode) ||
      st.st_size > MAX_LEN)
    return NULL;
  text = malloc (st.st_size + 1);
  n = text ? read (fd, text, st.st_size) : -1;
  if (n == -1) {
    free (text);
    return NULL;
  }
  text[n] = '\0';
  return text;
}

/* The place of this line in the text; NULL: it is not there. */
static char *
find_line (char *text, const char *line)
{
  const size_t len = strlen (line);

  for (char *p = text; *p; p = *p ? p + 1 : p) {
    char *end = strchrnul (p, '\n');

    if ((size_t) (end - p) == len && memcmp (p, line, len) == 0)
      return p;
    p = end;
  }
  return NULL;
}

/* Put it in the place of the old one.  0, or -1 and errno. */
static int
replace_note (const char *path, const char *text)
{
  CLEANUP_FREE char *new = NULL;
  int fd, err = 0;

  if (asprintf (&new, "%s.XXXXXX", path) == -1)
    return -1;
  fd = mkostemp (new, O_CLOEXEC);
  if (fd == -1)
    return -1;
  if (write_all (fd, text, strlen (text)) == -1 || fsync (fd) == -1 ||
      rename (new, path) == -1)
    err = errno;
  close (fd);
  if (err) {
    unlink (new);
    errno = err;
  }
  return err ? -1 : 0;
}

/* A note that is read, and was found in the folder. */
struct note {
  uuid_bytes array;
  char *path;
  char *text;
};

/* The next one; false: there are no more.  n is zeroes before the first. */
static bool
next_note (DIR *dir, const char *folder, struct note *n)
{
  const struct dirent *d;

  free (n->path);
  free (n->text);
  *n = (struct note) { .path = NULL };
  while (dir && (d = readdir (dir)) != NULL) {
    if (uuid_parse (d->d_name, &n->array) == -1 ||
        asprintf (&n->path, "%s/%s", folder, d->d_name) == -1)
      continue;
    n->text = read_note (n->path);
    if (n->text)
      return true;
    free (n->path);
    n->path = NULL;
  }
  return false;
}

/* ---- writing ------------------------------------------------------------- */

/* The note that these names give.  *any: there is a file among them.  The
 * caller frees it; NULL: no memory.
 */
static char *
compose (char *const *name, unsigned nr, bool *any)
{
  char *text = NULL;
  size_t len;
  FILE *fp = open_memstream (&text, &len);

  *any = false;
  if (fp == NULL)
    return NULL;
  fputs (head, fp);
  for (unsigned i = 0; i < nr; i++) {
    CLEANUP_FREE char *real = name[i] ? real_name (name[i]) : NULL;
    CLEANUP_FREE char *line = NULL;
    struct stat st;

    if (real == NULL || stat (real, &st) == -1 || !S_ISREG (st.st_mode) ||
        (line = line_of (real)) == NULL)
      continue;
    fprintf (fp, "%s\n", line);
    *any = true;
  }
  if (fclose (fp) == 0)
    return text;
  free (text);
  return NULL;
}

/* Take the lines of one note out of another. */
static void
take_out (struct note *n, const char *lines)
{
  CLEANUP_FREE char *copy = strdup (lines + strlen (head));
  char *rest = copy, *line, *p;
  bool changed = false;

  while (copy && (line = strsep (&rest, "\n")) != NULL)
    while (line[0] && (p = find_line (n->text, line)) != NULL) {
      const size_t len = strlen (line) + (p[strlen (line)] == '\n');

      memmove (p, p + len, strlen (p + len) + 1);
      changed = true;
    }
  if (changed && strchr (n->text, '/') == NULL)
    unlink (n->path);
  else if (changed && replace_note (n->path, n->text) == -1)
    log_debug ("%s: %m", n->path);
}

void
known_write (const uuid_bytes *array, char *const *name, unsigned nr)
{
  CLEANUP_FREE char *folder = notes_folder (), *path = NULL;
  CLEANUP_FREE char *text = NULL;
  struct note n = { .path = NULL };
  char uuid[UUID_TEXT_LEN];
  bool any, same = false;
  DIR *dir;

  if (folder == NULL || (text = compose (name, nr, &any)) == NULL ||
      asprintf (&path, "%s/%s", folder, uuid_text (array, uuid)) == -1)
    return;
  dir = opendir (folder);
  while (next_note (dir, folder, &n))
    if (uuid_equal (&n.array, array))
      same = strcmp (n.text, text) == 0;
    else
      take_out (&n, text);
  if (dir)
    closedir (dir);
  if (!any)
    unlink (path);
  else if (!same &&
           (!make_folder (folder) || replace_note (path, text) == -1))
    log_debug ("%s: %m: the members are not noted", path);
}

/* ---- asking -------------------------------------------------------------- */

bool
known_refuse (char *const *name, unsigned nr)
{
  CLEANUP_FREE char *folder = notes_folder ();
  struct note n = { .path = NULL };
  DIR *dir = folder ? opendir (folder) : NULL;
  bool found = false;

  while (!found && next_note (dir, folder, &n))
    for (unsigned i = 0; i < nr && !found; i++) {
      CLEANUP_FREE char *real = real_name (name[i]);
      CLEANUP_FREE char *line = real ? line_of (real) : NULL;
      char uuid[UUID_TEXT_LEN];

      found = line && find_line (n.text, line);
      if (found)
        log_error ("%s: was a member of the array %s, and is not there, or "
                   "blank: mount its file system; or, if a new array is to be "
                   "made: rm %s (create=again makes one at each such start)",
                   name[i], uuid_text (&n.array, uuid), n.path);
    }
  if (dir)
    closedir (dir);
  free (n.path);
  free (n.text);
  return found;
}
