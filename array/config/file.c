/* gpuraid: read the file that config= names.
 *
 * Decides what a line says and which lines count.  The keys and their values
 * are those of the command line, so array/config/keys.c checks them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "array/config/file.h"
#include "array/config/names.h"
#include "common/bits.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "member/member.h"

#define FOLDER "/etc/gpuraid.d"
#define FOLDER_ENV "GPURAID_CONFIG_DIR"         /* for tests */

struct reader {
  struct config *c;
  const char *path;             /* absolute */
  uint64_t on_command_line;     /* as c->given */
  bool other_members;           /* the command line has some, or a dir= */
};

/* A text that a person has written is never longer. */
#define MAX_LEN (1 << 20)

/* The file's path; the caller frees it.  NULL: reported. */
char *
config_file_path (const char *name)
{
  const char *folder = getenv (FOLDER_ENV);
  char *path;

  if (strchr (name, '/'))
    return config_absolute_path (name);
  if (asprintf (&path, "%s/%s.conf", folder ? folder : FOLDER, name) == -1) {
    log_error ("asprintf: %m");
    return NULL;
  }
  return path;
}

/* ---- one line -------------------------------------------------------- */

static bool
is_uri (const char *value)
{
  return strstr (value, "://") != NULL;
}

static bool
is_glob (const char *value)
{
  return strpbrk (value, "*?[") != NULL && !is_uri (value);
}

/* A value that is the name of a file, seen from the folder of this file; else
 * the value.  The caller frees it.  NULL: reported.
 */
static char *
resolve (const struct reader *r, const char *key, const char *value)
{
  static const char *const names[] = {
    "member", "dir", "control", "log", "kernel-cache", "hook",
  };
  const int folder_len = strrchr (r->path, '/') - r->path;
  CLEANUP_FREE char *folder = strndup (r->path, MAX (folder_len, 1));
  bool is_name = value[0] && value[0] != '/' && !is_uri (value);
  bool found = false;
  char *s;

  for (size_t i = 0; i < ARRAY_LEN (names); i++)
    found |= strcmp (key, names[i]) == 0;
  if ((strcmp (key, "kernel-cache") == 0 && strcmp (value, "none") == 0) ||
      (strcmp (key, "log") == 0 && config_is_log_word (value)))
    is_name = false;
  if (folder && strcmp (key, "member") == 0 && member_is_uri (value))
    return member_absolute_uri (value, folder);
  if (asprintf (&s, "%.*s%s%s", found && is_name ? folder_len : 0, r->path,
                found && is_name ? "/" : "", value) == -1) {
    log_error ("asprintf: %m");
    return NULL;
  }
  return s;
}

static int
set (const struct reader *r, const char *key, const char *value)
{
  const bool member = strcmp (key, "member") == 0;
  const int nr = config_find_key (key);
  CLEANUP_FREE char *resolved = NULL;

  if (nr == -1) {
    log_error ("unknown key: %s (nbdkit gpuraid --help lists them)", key);
    return -1;
  }
  if (strcmp (key, "config") == 0) {
    log_error ("config=%s: a file can't name another one: leave this line out",
               value);
    return -1;
  }
  if (r->on_command_line >> nr & 1 ||
      (r->other_members && (member || strcmp (key, "dir") == 0)))
    return 0;
  resolved = resolve (r, key, value);
  if (resolved == NULL)
    return -1;
  return member && is_glob (value) ? config_add_glob (r->c, resolved)
    : config_set (r->c, key, resolved);
}

/* The text without space at both ends. */
static char *
trim (char *s)
{
  char *end = s + strlen (s);

  while (isspace ((unsigned char) *s))
    s++;
  while (end > s && isspace ((unsigned char) end[-1]))
    end--;
  *end = '\0';
  return s;
}

/* The mark of UTF-8, with which some editors begin a file. */
#define MARK "\357\273\277"

static int
read_line (const struct reader *r, char *line, size_t len)
{
  char *eq;

  if (strlen (line) != len) {
    log_error ("has a byte that is zero: this is no text file (gpuraid.conf(5) "
               "describes it)");
    return -1;
  }
  line = trim (line);
  if (line[0] == '\0' || line[0] == '#')
    return 0;
  eq = strchr (line, '=');
  if (eq == NULL) {
    log_error ("%s: not key=value (a member is member=%s)", line, line);
    return -1;
  }
  *eq = '\0';
  return set (r, trim (line), trim (eq + 1));
}

/* ---- all lines ------------------------------------------------------- */

/* NULL: reported. */
static FILE *
open_file (const char *name, const char *path)
{
  struct stat st;
  FILE *fp;

  /* First, because opening a pipe would wait. */
  if (stat (path, &st) == 0 &&
      (!S_ISREG (st.st_mode) || st.st_size > MAX_LEN)) {
    log_error ("config=%s: %s is %s (gpuraid.conf(5) describes it)", name,
               path, S_ISREG (st.st_mode) ? "too long" : "not a file");
    return NULL;
  }
  fp = fopen (path, "re");
  if (fp == NULL)
    log_error ("config=%s: %s: %m%s", name, path, errno == ENOENT ?
               " (gpuraid.conf(5) describes this file)" : "");
  return fp;
}

/* With its number in front of each message. */
static int
read_numbered (const struct reader *r, unsigned nr, char *line, size_t len)
{
  CLEANUP_FREE char *where = NULL;
  int result;

  if (nr == 1 && strncmp (line, MARK, strlen (MARK)) == 0) {
    line += strlen (MARK);
    len -= strlen (MARK);
  }
  if (asprintf (&where, "%s:%u", r->path, nr) == -1) {
    log_error ("asprintf: %m");
    return -1;
  }
  log_set_prefix (where);
  result = read_line (r, line, len);
  log_set_prefix (NULL);
  return result;
}

int
config_read_file (struct config *c)
{
  CLEANUP_FREE char *path = config_file_path (c->file);
  CLEANUP_FREE char *line = NULL;
  const struct reader r = {
    .c = c, .path = path, .on_command_line = c->given,
    .other_members = c->nr_members || c->dir,
  };
  unsigned nr = 0;
  size_t size = 0;
  ssize_t len;
  int result = 0;
  FILE *fp;

  if (path == NULL)
    return -1;
  fp = open_file (c->file, path);
  if (fp == NULL)
    return -1;
  while (result == 0 && (len = getline (&line, &size, fp)) != -1)
    result = read_numbered (&r, ++nr, line, len);
  if (result == 0 && ferror (fp)) {
    log_error ("%s: %m", path);
    result = -1;
  }
  fclose (fp);
  return result;
}
