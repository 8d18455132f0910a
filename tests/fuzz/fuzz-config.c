/* gpuraid fuzzer: the keys of the plugin and of the command create.
 *
 * The bytes are lines key=value, a line without = is a member.  A bad value is
 * refused with one message; what is accepted is in range, and an array can be
 * laid out for it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "array/config/config.h"
#include "array/open/choose.h"
#include "member/member.h"
#include "tests/fuzz/mutate.h"

#define DIR "build/fuzz/members"
#define MAX_BYTES 4096u

/* Some names that are those of members and some that are not. */
static void
make_dir (void)
{
  static const char *const name[] = {
    "member-.img", "member-0.img", "member-01.img", "member-\xff.img",
    "member-1.img.bak", "xmember-1.img", "member-a.img",
  };
  static bool made;
  char path[64];
  FILE *fp;

  if (made)
    return;
  made = true;
  mkdir (DIR, 0777);
  for (size_t i = 0; i < ARRAY_LEN (name); i++) {
    snprintf (path, sizeof path, "%s/%s", DIR, name[i]);
    fp = fopen (path, "w");
    if (fp)
      fclose (fp);
  }
}

/* ---- sizes -------------------------------------------------------------- */

/* In units of a millionth of a byte, which is what six digits after the point
 * can be of one byte.
 */
static bool
ref_size (const char *s, uint64_t *r)
{
  const unsigned __int128 too_much = (unsigned __int128) 1 << 100;
  static const char *const none[] = { "", "b", "bytes" };
  static const char unit[] = "kmgtpe";
  unsigned __int128 n = 0, scale = 0;
  unsigned after = 0;
  bool point = false;

  if (!isdigit ((unsigned char) *s))
    return false;
  for (; isdigit ((unsigned char) *s); s++)
    n = MIN (n * 10 + (*s - '0'), too_much);
  if (*s == '.') {
    point = true;
    for (s++; isdigit ((unsigned char) *s); s++, after++)
      n = MIN (n * 10 + (*s - '0'), too_much);
    if (after == 0 || after > 6)
      return false;
  }
  for (; after < 6; after++)
    n = MIN (n * 10, too_much);
  if (*s == ' ')
    s++;
  for (unsigned i = 0; i < ARRAY_LEN (none); i++)
    if ((i < 2 ? strcasecmp : strcmp) (s, none[i]) == 0)
      scale = 1;
  if (strcasecmp (s, "s") == 0)
    scale = 512;
  for (unsigned u = 0; unit[u] && scale == 0; u++)
    if (tolower ((unsigned char) *s) == unit[u] &&
        (s[1] == '\0' || strcasecmp (s + 1, "ib") == 0))
      scale = (unsigned __int128) 1 << (10 * (u + 1));
  if (scale == 0 || (point && scale < 1024))
    return false;
  if (n / 1000000 > INT64_MAX / scale)
    return false;
  n = n * scale / 1000000;
  *r = n;
  return n <= INT64_MAX;
}

static void
check_size (const char *value)
{
  uint64_t n, want;
  bool ok = config_parse_size (value, &n) == 0;

  assert (ok == ref_size (value, &want));
  assert (!ok || n == want);
}

/* ---- keys --------------------------------------------------------------- */

static void
check_path (const char *path)
{
  if (member_is_uri (path))
    return;
  assert (path[0] == '/');
  assert (strstr (path, "//") == NULL && strstr (path, "/./") == NULL);
}

static void
check_values (const struct config *c)
{
  assert (c->k < MAX_SLOTS && c->m < MAX_SLOTS && c->k + c->m <= MAX_SLOTS);
  assert (!c->k == !c->m);
  assert (c->chunk == 0 || (is_power_of_2 (c->chunk) &&
                            c->chunk >= CHUNK_MIN_LEN &&
                            c->chunk <= CHUNK_MAX_LEN));
  assert (c->size % BLOCK_LEN == 0 && c->size <= INT64_MAX);
  assert (c->journal_size % BLOCK_LEN == 0 &&
          c->journal_size <= LAYOUT_MAX_RING_LEN);
  assert (c->code >= -1 && c->code <= CODE_CRS);
  assert (c->w == 0 || c->w == 4 || c->w == 8);
  assert (c->timeout_ns >= 1000000000 && c->timeout_ns <= INT64_MAX);
  assert (c->coder != NULL && c->gpus != 0);
  assert (c->nr_members > 0 && c->nr_members <= CONFIG_MAX_MEMBERS);
  for (unsigned i = 0; i < c->nr_members; i++) {
    check_path (c->member[i]);
    for (unsigned j = 0; j < i; j++)
      assert (strcmp (c->member[i], c->member[j]) != 0);
  }
  if (c->control) {
    check_path (c->control);
    assert (strlen (c->control) <
            sizeof ((struct sockaddr_un *) NULL)->sun_path);
  }
}

/* Any number, small and huge ones alike. */
static uint64_t
member_size (const uint8_t *data, size_t size)
{
  struct rng r = { 0 };

  for (size_t i = 0; i < size; i++)
    r.state = r.state * 31 + data[i];
  return rng_bits (&r, 63);
}

/* An array of these values on members of any size. */
static void
check_layout (struct config *c, uint64_t member_size)
{
  struct member_layout l;
  struct geometry g;
  uint64_t need;

  if (c->k == 0)
    return;
  config_geometry_defaults (c);
  g = (struct geometry) { .k = c->k, .m = c->m, .chunk = c->chunk };
  if (layout_fit (&g, member_size, c->size, c->journal_size, 0, &l, &need)
      == 0) {
    assert (layout_check_geometry (&g) == NULL);
    assert (layout_check (&g, &l) == NULL);
    assert (l.data_off + l.data_len + 2 * SB_LEN <= member_size);
    assert (c->size == 0 || g.size == c->size);
  }
  else
    assert (need > member_size);
}

/* Neither a space nor a sign is taken before a number. */
static void
check_accepted (const char *key, const char *value)
{
  static const char *const numbers[] = {
    "k", "m", "chunk", "size", "journal-size", "w", "cache", "timeout", "gpus",
  };

  assert (value[0] != '\0');
  if (strcmp (value, "all") == 0)
    return;
  for (size_t i = 0; i < ARRAY_LEN (numbers); i++)
    assert (strcmp (key, numbers[i]) != 0 ||
            isdigit ((unsigned char) value[0]));
  if (strcmp (key, "gpus") == 0)
    for (const char *p = value; *p; p++)
      assert (isdigit ((unsigned char) *p) ||
              (*p == ',' && isdigit ((unsigned char) p[1])));
}

/* 0, -1 or 1: as config_set. */
static int
set_line (struct config *c, char *line)
{
  char *eq = strchr (line, '=');
  int r;

  fuzzing_nr_errors = 0;
  if (eq == NULL)
    r = config_set (c, "member", line);
  else {
    *eq = '\0';
    check_size (eq + 1);
    r = config_set (c, line, eq + 1);
    if (r == 0)
      check_accepted (line, eq + 1);
  }
  assert (fuzzing_nr_errors == (r == -1));
  return r;
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  static char text[MAX_BYTES + 1];
  char *line, *save;
  struct config c;
  int r = 0;

  make_dir ();
  size = MIN (size, MAX_BYTES);
  memcpy (text, data, size);
  text[size] = '\0';
  config_init (&c);
  for (line = strtok_r (text, "\n", &save); line && r != -1;
       line = strtok_r (NULL, "\n", &save))
    r = set_line (&c, line);
  if (r != -1) {
    fuzzing_nr_errors = 0;
    r = config_complete (&c, config_choose_members);
    assert (fuzzing_nr_errors == (r == -1));
    if (r == 0) {
      check_values (&c);
      check_layout (&c, member_size (data, size));
    }
  }
  config_free (&c);
  return 0;
}

/* ---- inputs ------------------------------------------------------------- */

static const char *const words[] = {
  "k=4\nm=2\n", "a\nb\nc\n", "dir=" DIR "\n", "size=1M\n", "chunk=64K\n",
  "code=crs\nw=8\n", "consistency=journal\n", "journal-size=1G\n",
  "checksum=none\n", "create=missing\n", "gpus=0,2\n",
  "kernel-cache=none\n", "cache=64M\n", "cache-mode=writethrough\n",
  "timeout=2500ms\n", "degraded=force\n", "control=/run/x\n", "create=no\n",
  "no-space=wait\n",
  "label=tank\n", "uuid=00112233-4455-6677-8899-aabbccddeeff\n",
  "member", "gpus", "dir", "k", "m", "chunk", "size", "w", "=", "\n", ",", "/",
  "//", "/./", "/.", "..", "0", "63", "64", "-1", "18446744073709551615", "8E",
  "s", "ms", "m", "K", "nbd://", "all", "rs", "\x01", "%s%n", " 1", "+1",
  "0x10", ".", "1.5", " ", "KiB", "iB", "bytes", "size=2.5 GiB\n", "7.999999",
};

size_t
fuzzing_seed (struct rng *r, uint8_t *data, size_t max)
{
  size_t size = 0;

  for (unsigned i = 0; i <= rng_below (r, 12); i++) {
    /* Whole lines, of which the first say what to open or make. */
    const char *word = words[i == 0 ? 0 : i == 1 ? 1 + rng_below (r, 2) :
                             rng_below (r, 18)];

    memcpy (data + size, word, strlen (word));
    size += strlen (word);
  }
  return size;
}

size_t
LLVMFuzzerCustomMutator (uint8_t *data, size_t size, size_t max, unsigned seed)
{
  struct rng r = { seed };

  return mutate_text (&r, data, size, max, words, ARRAY_LEN (words));
}
