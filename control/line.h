/* gpuraid: lines over a socket, bounded.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CONTROL_LINE_H
#define GPURAID_CONTROL_LINE_H

#include <stddef.h>

/* Longest lines, newline included, that the two sides take.  A reply
 * may carry the paths of 96 members.
 */
#define LINE_MAX_REQUEST (64u << 10)
#define LINE_MAX_REPLY (16u << 20)

struct line_buf {
  size_t max;                   /* bytes of a line; set it, zero the rest */
  char *p;                      /* owned */
  size_t cap;                   /* bytes of p */
  size_t len;                   /* bytes in p */
  size_t used;                  /* bytes of the line handed out last */
};

enum line_result {
  LINE_OK,
  LINE_EOF,                     /* bytes after the last newline are lost */
  LINE_TOO_LONG,                /* the stream can't be used any more */
  LINE_ERROR,                   /* errno says what */
};

/* Wait for a whole line.  *line is borrowed until the next call and has
 * a NUL in place of the newline; *len does not count that.
 */
extern enum line_result line_read (struct line_buf *b, int fd,
                                   char **line, size_t *len);
extern void line_free (struct line_buf *b);

/* Send text and a newline.  0, or -1 with errno; never a SIGPIPE. */
extern int line_write (int fd, const char *text, size_t len);

#endif
