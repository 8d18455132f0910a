/* gpuraid bench: parse the names of methods.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/methods.h"
#include "cli/bench.h"
#include "common/bits.h"
#include "common/log.h"

static bool
is_ours (const struct method_ops *ops)
{
  return ops == &method_isal || ops == &method_gf_complete ||
    ops == &method_xor || ops == &method_cuda || ops == &method_kernel ||
    ops == &method_auto;
}

static bool
in_group (const struct method_ops *ops, const char *name)
{
  if (strcmp (name, "all") == 0)
    return true;
  if (strcmp (name, "cpu") == 0)
    return !ops->gpu;
  if (strcmp (name, "gpu") == 0)
    return ops->gpu;
  if (strcmp (name, "ours") == 0)
    return is_ours (ops);
  return strcmp (name, "seeds") == 0 && !is_ours (ops) &&
    ops != &method_jerasure;
}

/* The option of a method with this name; NULL: it has none. */
static const char *
find_option (const struct method_ops *ops, const char *word, size_t len,
             char *why)
{
  const char *p = ops->options;
  char *other, not[BENCH_WHY_LEN];

  while (p && *p) {
    size_t n = strcspn (p, " ");

    if (n == len && strncmp (p, word, n) == 0)
      return strndup (p, n);
    p += n + strspn (p + n, " ");
  }
  snprintf (why, BENCH_WHY_LEN, "%s has no option %.*s (--list lists them)",
            ops->name, (int) MIN (len, 60), word);
  other = ops->takes ? strndup (word, len) : NULL;
  if (other && ops->takes (other, not))
    return other;
  if (other)
    snprintf (why, BENCH_WHY_LEN, "%s has no option %.*s (--list lists "
              "them); %.160s", ops->name, (int) MIN (len, 40), word, not);
  free (other);
  return NULL;
}

static int
add_choice (struct sweep *s, const struct method_ops *ops, const char *option)
{
  if (s->nr_choices == SWEEP_MAX_CHOICES) {
    log_error ("--engine: more than %u", SWEEP_MAX_CHOICES);
    return -1;
  }
  s->choice[s->nr_choices++] = (struct choice) { ops, option };
  return 0;
}

/* Add one method with those words of --option that it knows; if it knows none
 * of them, with its default.
 */
static int
add_method (struct bench_options *o, const struct method_ops *ops)
{
  const char *list = o->option, *word;
  char why[BENCH_WHY_LEN];
  bool any = false;

  if (list && strcmp (list, "all") == 0)
    list = ops->options;
  while (list && *list) {
    size_t len = strcspn (list, ", ");

    word = find_option (ops, list, len, why);
    if (word) {
      any = true;
      if (add_choice (&o->sweep, ops, word) == -1)
        return -1;
    }
    list += len + strspn (list + len, ", ");
  }
  if (o->crc && !any) {
    word = find_option (ops, "crc", 3, why);
    if (word == NULL) {
      log_error ("--crc: %s makes no CRCs", ops->name);
      return -1;
    }
    return add_choice (&o->sweep, ops, word);
  }
  return any ? 0 : add_choice (&o->sweep, ops, NULL);
}

static int
add_named (struct bench_options *o, char *name)
{
  char *colon = strchr (name, ':');
  const struct method_ops *ops;
  const char *word;
  char why[BENCH_WHY_LEN];
  bool any = false;

  for (size_t i = 0; methods[i]; i++) {
    if (in_group (methods[i], name)) {
      any = true;
      if (add_method (o, methods[i]) == -1)
        return -1;
    }
  }
  if (any)
    return 0;
  if (colon)
    *colon = '\0';
  ops = method_find (name);
  if (ops == NULL) {
    log_error ("--engine: no engine %s (--list lists them)", name);
    return -1;
  }
  if (colon == NULL)
    return add_method (o, ops);
  word = find_option (ops, colon + 1, strlen (colon + 1), why);
  if (word == NULL) {
    log_error ("--engine: %s", why);
    return -1;
  }
  return add_choice (&o->sweep, ops, word);
}

int
bench_parse_methods (struct bench_options *o)
{
  char list[1024], *save = NULL;

  if (strlen (o->methods) >= sizeof list) {
    log_error ("--engine: too long a list");
    return -1;
  }
  snprintf (list, sizeof list, "%s", o->methods);
  for (char *p = strtok_r (list, ",", &save); p;
       p = strtok_r (NULL, ",", &save))
    if (add_named (o, p) == -1)
      return -1;
  if (o->sweep.nr_choices == 0) {
    log_error ("--engine: which?");
    return -1;
  }
  return 0;
}
