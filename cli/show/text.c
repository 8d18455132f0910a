/* gpuraid: parts of a line for a person.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/server/remote.h"
#include "cli/show/text.h"
#include "common/bits.h"

void
text_clean (FILE *fp, const char *s)
{
  for (; s && *s; s++)
    fputc (iscntrl ((unsigned char) *s) ? '?' : *s, fp);
}

void
text_column (FILE *fp, const char *s, int width)
{
  const int len = s ? MIN (strlen (s), (size_t) width) : 0;

  text_clean (fp, s);
  fprintf (fp, "%*s", width - len, "");
}

void
text_time (FILE *fp, struct json_object *o)
{
  const time_t at = get_u64 (o, "time");
  char when[32];
  struct tm tm;

  strftime (when, sizeof when, "%F %H:%M:%S", localtime_r (&at, &tm));
  fprintf (fp, "%s: ", when);
}

char *
text_render (void (*render) (FILE *fp, struct json_object *o),
             struct json_object *o)
{
  char *text = NULL;
  size_t len;
  FILE *fp = open_memstream (&text, &len);

  if (fp == NULL)
    abort ();
  render (fp, o);
  if (fclose (fp) == EOF)
    abort ();
  return text;
}
