/* gpuraid: lines over a socket, bounded.
 *
 * The buffer starts small and grows with the line, so that a client that sends
 * little costs little.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/bits.h"
#include "control/line.h"

static int
grow (struct line_buf *b)
{
  size_t cap = MIN (b->cap ? b->cap * 2 : 1024, b->max);
  char *p = realloc (b->p, cap);

  if (p == NULL)
    return -1;
  b->p = p;
  b->cap = cap;
  return 0;
}

enum line_result
line_read (struct line_buf *b, int fd, char **line, size_t *len)
{
  size_t searched = 0;          /* no newline in these bytes */

  if (b->used) {
    b->len -= b->used;
    memmove (b->p, b->p + b->used, b->len);
    b->used = 0;
  }

  for (;;) {
    char *nl = b->len > searched ?
      memchr (b->p + searched, '\n', b->len - searched) : NULL;
    ssize_t r;

    if (nl) {
      *nl = '\0';
      *line = b->p;
      *len = nl - b->p;
      b->used = *len + 1;
      return LINE_OK;
    }
    searched = b->len;
    if (b->len == b->max)
      return LINE_TOO_LONG;
    if (b->len == b->cap && grow (b) == -1)
      return LINE_ERROR;

    r = recv (fd, b->p + b->len, b->cap - b->len, 0);
    if (r == 0)
      return LINE_EOF;
    if (r == -1) {
      if (errno == EINTR)
        continue;
      return LINE_ERROR;
    }
    b->len += r;
  }
}

void
line_free (struct line_buf *b)
{
  free (b->p);
  b->p = NULL;
  b->cap = b->len = b->used = 0;
}

static int
send_all (int fd, const char *p, size_t len)
{
  while (len > 0) {
    ssize_t r = send (fd, p, len, MSG_NOSIGNAL);

    if (r == -1) {
      if (errno == EINTR)
        continue;
      return -1;
    }
    p += r;
    len -= r;
  }
  return 0;
}

int
line_write (int fd, const char *text, size_t len)
{
  if (send_all (fd, text, len) == -1)
    return -1;
  return send_all (fd, "\n", 1);
}
