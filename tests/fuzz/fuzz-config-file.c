/* gpuraid fuzzer: the file of config=.
 *
 * The bytes are the file.  A mistake is refused with one message; what is
 * accepted has members, with absolute names.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "array/config/config.h"
#include "array/open/choose.h"
#include "member/member.h"
#include "tests/fuzz/fuzzing.h"
#include "tests/fuzz/mutate.h"

#define DIR "build/fuzz/config"
#define FILE_NAME DIR "/a.conf"
#define MAX_BYTES 4096u

static void
write_file (const uint8_t *data, size_t size)
{
  FILE *fp;

  mkdir ("build", 0777);
  mkdir ("build/fuzz", 0777);
  mkdir (DIR, 0777);
  fp = fopen (FILE_NAME, "w");
  assert (fp);
  assert (fwrite (data, 1, size, fp) == size);
  assert (fclose (fp) == 0);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  struct config c;
  int r;

  write_file (data, size);
  config_init (&c);
  assert (config_set (&c, "config", FILE_NAME) == 0);
  fuzzing_nr_errors = 0;
  r = config_complete (&c, config_choose_members);
  assert (fuzzing_nr_errors == (r == -1));
  if (r == 0)
    assert (c.nr_members > 0);
  for (unsigned i = 0; i < c.nr_members; i++)
    assert (c.member[i][0] == '/' || member_is_uri (c.member[i]));
  for (unsigned i = 0; i < c.nr_globs; i++)
    assert (c.glob[i][0] == '/');
  config_free (&c);
  return 0;
}

/* ---- inputs ------------------------------------------------------------- */

/* No glob that begins with a slash: it could find all files there are. */
static const char *const words[] = {
  "member=a\n", "member=*.conf\n", "k=4\nm=2\n", "# a comment\n", "\n",
  " chunk = 64K \n", "label=tank\n", "degraded=force\n", "dir=.\n",
  "uuid=00112233-4455-6677-8899-aabbccddeeff\n", "control=c\r\n",
  "kernel-cache=none\n", "config=a\n",
  "member", "=", "#", "\n", " ", "\t", "\r", "?", "[a-z]", "\\", "\x01", "%s%n",
};

size_t
fuzzing_seed (struct rng *r, uint8_t *data, size_t max)
{
  size_t size = 0;

  for (unsigned i = 0; i <= rng_below (r, 12); i++) {
    const char *word = words[i == 0 ? rng_below (r, 2) : rng_below (r, 13)];

    memcpy (data + size, word, strlen (word));
    size += strlen (word);
  }
  return size;
}

size_t
LLVMFuzzerCustomMutator (uint8_t *data, size_t size, size_t max, unsigned seed)
{
  struct rng r = { seed };

  return mutate_text (&r, data, size, MIN (max, MAX_BYTES), words,
                      ARRAY_LEN (words));
}
