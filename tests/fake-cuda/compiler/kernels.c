/* gpuraid: tests: find the kernels of a source.
 *
 * Not a parser: it searches for the expansion of __global__ in emulator.h, and
 * the function's name is the word before the next parenthesis that belongs to
 * no attribute.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "tests/fake-cuda/compiler/kernels.h"

#define GLOBAL "(\".text.cuda_global\"))"
#define C_BLOCK "extern \"C\" {"
#define EXTERN_SHARED "extern thread_local "

static const char *
skip_spaces (const char *p)
{
  for (;;) {
    while (isspace ((unsigned char) *p))
      p++;
    if (*p != '#')
      return p;
    while (*p && *p != '\n')    /* a line marker */
      p++;
  }
}

static bool
is_word (char c)
{
  return isalnum ((unsigned char) c) || c == '_';
}

/* To after the parenthesis that matches p. */
static const char *
skip_parentheses (const char *p)
{
  int depth = 0;

  do {
    depth += (*p == '(') - (*p == ')');
    p++;
  } while (*p && depth > 0);
  return p;
}

/* The name of the function or variable whose declaration goes on at p, or
 * 0 for its length.
 */
static const char *
find_name (const char *p, const char *ends, int *len)
{
  const char *name = NULL;

  *len = 0;
  while (*(p = skip_spaces (p))) {
    if (strncmp (p, "__attribute__", 13) == 0) {
      p = skip_parentheses (skip_spaces (p + 13));
      continue;
    }
    if (strchr (ends, *p))
      return name;
    if (is_word (*p)) {
      name = p;
      while (is_word (*p))
        p++;
      *len = p - name;
    }
    else
      p++;
  }
  *len = 0;
  return NULL;
}

/* Does the declaration around p have C linkage?  Otherwise its name would be
 * mangled, and no program could ask for it.
 */
static bool
is_extern_c (const char *text, const char *p)
{
  const char *begin = p, *block = strstr (text, C_BLOCK);

  if (block && block < p)
    return true;
  while (begin > text && !strchr (";{}", begin[-1]))
    begin--;
  begin = strstr (begin, "extern \"C\"");
  return begin && begin < p;
}

static void
print_kernels (const char *text, FILE *f)
{
  const char *p = text, *name;
  int len;

  while ((p = strstr (p, GLOBAL)) != NULL) {
    bool c = is_extern_c (text, p);

    p += strlen (GLOBAL);
    name = find_name (p, "(", &len);
    if (name && c)
      fprintf (f, "extern \"C\" const struct emu_kernel emu_kernel_%.*s;\n"
               "const struct emu_kernel emu_kernel_%.*s = {\n"
               "  emu_entry<%.*s>::call, emu_entry<%.*s>::nr,\n"
               "  emu_entry<%.*s>::len };\n",
               len, name, len, name, len, name, len, name, len, name);
  }
}

/* All names are for the same bytes.  Two kernels may declare the same name, so
 * a label is only made if there is none yet.
 */
static void
print_dynamic (const char *text, FILE *f)
{
  const char *p = text, *name;
  bool any = false;
  int len;

  while ((p = strstr (p, EXTERN_SHARED)) != NULL) {
    p += strlen (EXTERN_SHARED);
    name = find_name (p, "[", &len);
    if (name == NULL)
      continue;
    if (!any)
      fprintf (f, "asm (\".pushsection .tbss,\\\"awT\\\",%%nobits\\n\"\n"
               "\".balign 128\\n\"\n");
    any = true;
    fprintf (f, "\".ifndef %.*s\\n.globl %.*s\\n"
             ".type %.*s, %%tls_object\\n%.*s:\\n.endif\\n\"\n",
             len, name, len, name, len, name, len, name);
  }
  if (any)
    fprintf (f, "\".zero 65536\\n.popsection\\n\");\n");
}

void
kernels_print (const char *text, FILE *f)
{
  fprintf (f, "# 1 \"entries\"\n");
  print_kernels (text, f);
  print_dynamic (text, f);
}
