/* gpuraid: the names of NBD exports.
 *
 * A URI is libnbd's to understand.  Only the files that it names are made
 * absolute here, because a server does not stay in the folder that it was
 * started in.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "common/bits.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "member/member.h"

bool
member_is_uri (const char *name)
{
  static const char *const schemes[] = {
    "nbd://", "nbds://", "nbd+unix://", "nbds+unix://",
    "nbd+vsock://", "nbds+vsock://",
  };

  for (size_t i = 0; i < ARRAY_LEN (schemes); ++i)
    if (strncmp (name, schemes[i], strlen (schemes[i])) == 0)
      return true;
  return false;
}

bool
member_uri_lacks_socket (const char *uri)
{
  const char *query = strchr (uri, '?');

  return strstr (uri, "+unix://") && (query == NULL ||
                                      strstr (query, "socket=") == NULL);
}

/* A parameter of the query that is a file, and is not absolute. */
static bool
is_relative (const char *param, size_t *name_len)
{
  static const char *const names[] = {
    "socket=", "tls-certificates=", "tls-psk-file=",
  };

  for (size_t i = 0; i < ARRAY_LEN (names); i++) {
    *name_len = strlen (names[i]);
    if (strncmp (param, names[i], *name_len) == 0)
      return param[*name_len] != '/' &&
        strncasecmp (param + *name_len, "%2f", 3) != 0;
  }
  return false;
}

static void
put_folder (FILE *fp, const char *folder)
{
  for (const char *p = folder; *p; p++)
    if (strchr ("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                "0123456789/-._~", *p))
      fputc (*p, fp);
    else
      fprintf (fp, "%%%02X", (unsigned char) *p);
  if (strcmp (folder, "/") != 0)
    fputc ('/', fp);
}

static void
put_query (FILE *fp, const char *query, const char *folder)
{
  while (*query) {
    const size_t len = strcspn (query, "&;");
    size_t name_len;

    if (is_relative (query, &name_len)) {
      fwrite (query, 1, name_len, fp);
      put_folder (fp, folder);
    }
    else
      name_len = 0;
    fwrite (query + name_len, 1, len - name_len, fp);
    query += len;
    if (*query)
      fputc (*query++, fp);
  }
}

char *
member_absolute_uri (const char *uri, const char *folder)
{
  const char *query = strchr (uri, '?');
  CLEANUP_FREE char *cwd = folder ? NULL : getcwd (NULL, 0);
  char *text = NULL;
  size_t len;
  FILE *fp;

  if (folder == NULL && (folder = cwd) == NULL) {
    log_error ("getcwd: %m");
    return NULL;
  }
  fp = open_memstream (&text, &len);
  if (fp == NULL) {
    log_error ("open_memstream: %m");
    return NULL;
  }
  fwrite (uri, 1, query ? (size_t) (query + 1 - uri) : strlen (uri), fp);
  if (query)
    put_query (fp, query + 1, folder);
  if (fclose (fp) == EOF) {
    log_error ("fclose: %m");
    free (text);
    return NULL;
  }
  return text;
}
