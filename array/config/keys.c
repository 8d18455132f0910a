/* gpuraid: read the keys.
 *
 * Each key has one function in one table.  Checks that need an open member
 * are elsewhere; array/config/names.c makes paths absolute and lists the files
 * of a dir=.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "array/config/config.h"
#include "array/config/file.h"
#include "array/config/names.h"
#include "array/plan/code.h"
#include "common/bits.h"
#include "common/log.h"
#include "raidmap/uuid.h"

void
config_init (struct config *c)
{
  memset (c, 0, sizeof *c);
  c->code = c->consistency = c->checksum = c->multihost = -1;
  c->cache_len = CONFIG_DEFAULT_CACHE;
  c->timeout_ns = CONFIG_DEFAULT_TIMEOUT;
  c->spare_delay_ns = CONFIG_DEFAULT_SPARE_DELAY;
  c->stop_timeout_ns = CONFIG_DEFAULT_STOP_TIMEOUT;
  c->gpus = ~UINT64_C (0);
}

void
config_free (struct config *c)
{
  for (unsigned i = 0; i < c->nr_members; i++)
    free (c->member[i]);
  free (c->member);
  for (unsigned i = 0; i < c->nr_globs; i++)
    free (c->glob[i]);
  free (c->glob);
  free (c->file);
  free (c->dir);
  free (c->coder);
  free (c->kernel_cache);
  free (c->control);
  free (c->log);
  free (c->hook);
  config_init (c);
}

void
config_geometry_defaults (struct config *c)
{
  if (c->chunk == 0)
    c->chunk = CONFIG_DEFAULT_CHUNK;
  if (c->code == -1)
    c->code = CODE_RS;
  if (c->w == 0)
    c->w = code_default_w (c->code, c->k, c->m);
  if (c->consistency == -1)
    c->consistency = CONSISTENCY_JOURNAL;
  if (c->checksum == -1)
    c->checksum = c->consistency == CONSISTENCY_JOURNAL ? CHECKSUM_CRC32C :
      CHECKSUM_NONE;
}

/* ---- values ---------------------------------------------------------- */

static int
parse_size (const char *key, const char *value, uint64_t *r)
{
  if (config_parse_size (value, r) == -1) {
    log_error ("%s=%s: not a size (bytes, or a number with K, M, G or T)",
               key, value);
    return -1;
  }
  return 0;
}

static int
set_label (struct config *c, const char *key, const char *value)
{
  if (!config_is_name (value)) {
    log_error ("%s=%s: must be at most %u letters, digits, dots, underscores "
               "and dashes", key, value, CONFIG_LABEL_LEN);
    return -1;
  }
  strcpy (c->label, value);
  return 0;
}

/* It is read once all keys of the command line are known. */
static int
set_file (struct config *c, const char *key, const char *value)
{
  if (!strchr (value, '/') && !config_is_name (value)) {
    log_error ("%s=%s: must be a NAME (at most %u letters, digits, dots, "
               "underscores and dashes) or a file with a slash", key, value,
               CONFIG_LABEL_LEN);
    return -1;
  }
  c->file = strdup (value);
  if (c->file == NULL) {
    log_error ("strdup: %m");
    return -1;
  }
  return 0;
}

static int
set_uuid (struct config *c, const char *key, const char *value)
{
  if (uuid_parse (value, &c->uuid) == -1) {
    log_error ("%s=%s: not a uuid (gpuraid examine shows that of an array)",
               key, value);
    return -1;
  }
  c->has_uuid = true;
  return 0;
}

static int
set_member (struct config *c, const char *key, const char *value)
{
  char *path = config_member_name (value);

  return path ? config_add_member (c, path) : -1;
}

static int
set_dir (struct config *c, const char *key, const char *value)
{
  c->dir = config_absolute_path (value);
  return c->dir ? 0 : -1;
}

static int
set_km (struct config *c, const char *key, const char *value)
{
  unsigned long n;
  char *end;

  errno = 0;
  n = strtoul (value, &end, 10);
  if (errno || !isdigit ((unsigned char) value[0]) || *end || n < 1 ||
      n >= MAX_SLOTS) {
    log_error ("%s=%s: must be a number from 1 to %u", key, value,
               MAX_SLOTS - 1);
    return -1;
  }
  if (key[0] == 'k')
    c->k = n;
  else
    c->m = n;
  return 0;
}

static int
set_chunk (struct config *c, const char *key, const char *value)
{
  uint64_t n;

  if (parse_size (key, value, &n) == -1)
    return -1;
  if (!is_power_of_2 (n) || n < CHUNK_MIN_LEN || n > CHUNK_MAX_LEN) {
    log_error ("%s=%s: must be a power of two from 4K to 4M", key, value);
    return -1;
  }
  c->chunk = n;
  return 0;
}

static int
set_size (struct config *c, const char *key, const char *value)
{
  uint64_t n;

  if (parse_size (key, value, &n) == -1)
    return -1;
  n = round_down (n, BLOCK_LEN);
  if (n == 0) {
    log_error ("%s=%s: must be at least %u bytes", key, value, BLOCK_LEN);
    return -1;
  }
  c->size = n;
  return 0;
}

static int
set_journal_size (struct config *c, const char *key, const char *value)
{
  uint64_t n;

  if (parse_size (key, value, &n) == -1)
    return -1;
  if (n == 0 || n > LAYOUT_MAX_RING_LEN) {
    log_error ("%s=%s: must be at least 1 byte and at most 1T", key, value);
    return -1;
  }
  c->journal_size = round_up (n, BLOCK_LEN);
  return 0;
}

/* Find value among "|"-separated words: its number, or -1 reported. */
static int
choose (const char *key, const char *value, const char *words)
{
  size_t len = strlen (value);
  const char *p = words;

  for (int i = 0;; i++) {
    const char *end = strchrnul (p, '|');

    if (len == (size_t) (end - p) && strncmp (p, value, len) == 0)
      return i;
    if (*end == '\0')
      break;
    p = end + 1;
  }
  log_error ("%s=%s: must be one of %s", key, value, words);
  return -1;
}

static int
set_code (struct config *c, const char *key, const char *value)
{
  c->code = choose (key, value, "rs|crs");
  return MIN (c->code, 0);
}

static int
set_w (struct config *c, const char *key, const char *value)
{
  int n = choose (key, value, "4|8");

  c->w = n == 0 ? 4 : 8;
  return MIN (n, 0);
}

static int
set_consistency (struct config *c, const char *key, const char *value)
{
  c->consistency = choose (key, value, "none|journal");
  return MIN (c->consistency, 0);
}

static int
set_checksum (struct config *c, const char *key, const char *value)
{
  c->checksum = choose (key, value, "none|crc32c");
  return MIN (c->checksum, 0);
}

static int
set_create (struct config *c, const char *key, const char *value)
{
  int n = choose (key, value, "no|missing|again");

  c->create = n == 0 ? CREATE_NO : n == 1 ? CREATE_MISSING : CREATE_AGAIN;
  return MIN (n, 0);
}

static int
set_allocate (struct config *c, const char *key, const char *value)
{
  int n = choose (key, value, "no|yes");

  c->allocate = n == 1;
  return MIN (n, 0);
}

static int
set_multihost (struct config *c, const char *key, const char *value)
{
  c->multihost = choose (key, value, "no|yes");
  return MIN (c->multihost, 0);
}

static int
set_coder (struct config *c, const char *key, const char *value)
{
  int n = choose (key, value, "auto|simd|isal|gf-complete|cuda");

  if (n == -1)
    return -1;
  c->coder = strdup (value);
  if (c->coder == NULL) {
    log_error ("strdup: %m");
    return -1;
  }
  return 0;
}

static int
set_cache (struct config *c, const char *key, const char *value)
{
  return parse_size (key, value, &c->cache_len);
}

static int
set_cache_mode (struct config *c, const char *key, const char *value)
{
  int n = choose (key, value, "writeback|writethrough");

  c->writethrough = n == 1;
  return MIN (n, 0);
}

static int
set_no_space (struct config *c, const char *key, const char *value)
{
  int n = choose (key, value, "error|wait");

  c->wait_for_space = n == 1;
  return MIN (n, 0);
}

static int
read_time (const char *key, const char *value, uint64_t *ns)
{
  if (config_parse_time (value, ns) == 0)
    return 0;
  log_error ("%s=%s: not a time (seconds, or a number with ms, s or m)",
             key, value);
  return -1;
}

static int
set_spare_delay (struct config *c, const char *key, const char *value)
{
  return read_time (key, value, &c->spare_delay_ns);
}

static int
set_stop_timeout (struct config *c, const char *key, const char *value)
{
  if (strcmp (value, "no") == 0) {
    c->stop_timeout_ns = UINT64_MAX;
    return 0;
  }
  return read_time (key, value, &c->stop_timeout_ns);
}

/* A name, or a number. */
static int
set_socket_group (struct config *c, const char *key, const char *value)
{
  const struct group *g = getgrnam (value);
  unsigned long n;
  char *end;

  errno = 0;
  n = strtoul (value, &end, 10);
  if (g == NULL && (errno || !isdigit ((unsigned char) value[0]) || *end ||
                    n > INT32_MAX)) {
    log_error ("%s=%s: this machine has no such group", key, value);
    return -1;
  }
  c->socket_gid = g ? g->gr_gid : n;
  c->has_socket_group = true;
  return 0;
}

/* The owner always connects. */
static int
set_socket_mode (struct config *c, const char *key, const char *value)
{
  unsigned long n;
  char *end;

  errno = 0;
  n = strtoul (value, &end, 8);
  if (errno || !isdigit ((unsigned char) value[0]) || *end || n & ~0666ul ||
      (n & 0600) != 0600) {
    log_error ("%s=%s: must be an octal number from 0600 to 0666, of reading "
               "and writing", key, value);
    return -1;
  }
  c->socket_mode = n;
  return 0;
}

static int
set_timeout (struct config *c, const char *key, const char *value)
{
  uint64_t ns;

  if (read_time (key, value, &ns) == -1)
    return -1;
  if (ns < UINT64_C (1000000000)) {
    log_error ("%s=%s: must be at least 1s", key, value);
    return -1;
  }
  c->timeout_ns = ns;
  return 0;
}

static int
set_hedge (struct config *c, const char *key, const char *value)
{
  if (config_parse_hedge (value, &c->hedge) == 0)
    return 0;
  log_error ("%s=%s: must be auto, no, or a delay from 1ms to 1s", key, value);
  return -1;
}

static int
set_rebuild_rate (struct config *c, const char *key, const char *value)
{
  if (config_parse_rate (value, &c->rebuild_rate) == -1) {
    log_error ("%s=%s: not bytes a second (a number, also with K, M, G or T; "
               "0 or max for no limit)", key, value);
    return -1;
  }
  return 0;
}

static int
set_degraded (struct config *c, const char *key, const char *value)
{
  int n = choose (key, value, "allow|refuse|force");

  c->degraded = n == 1 ? DEGRADED_REFUSE
    : n == 2 ? DEGRADED_FORCE : DEGRADED_ALLOW;
  return MIN (n, 0);
}

static int
set_control (struct config *c, const char *key, const char *value)
{
  c->control = config_absolute_path (value);
  if (c->control == NULL)
    return -1;
  if (strlen (c->control) >= sizeof ((struct sockaddr_un *) NULL)->sun_path) {
    log_error ("%s=%s: too long a path for a socket: give one of at most %zu "
               "bytes", key, value,
               sizeof ((struct sockaddr_un *) NULL)->sun_path - 1);
    return -1;
  }
  return 0;
}

bool
config_is_log_word (const char *value)
{
  return strcmp (value, "stderr") == 0 || strcmp (value, "syslog") == 0;
}

static int
set_log (struct config *c, const char *key, const char *value)
{
  c->log = config_is_log_word (value) ? strdup (value) :
    config_absolute_path (value);
  return c->log ? 0 : -1;
}

static int
set_hook (struct config *c, const char *key, const char *value)
{
  c->hook = config_absolute_path (value);
  return c->hook ? 0 : -1;
}

/* "all", or "0,2". */
static int
set_gpus (struct config *c, const char *key, const char *value)
{
  const char *p = value;
  uint64_t gpus = 0;

  if (strcmp (value, "all") == 0)
    return 0;
  for (;;) {
    char *end;
    unsigned long n;

    errno = 0;
    n = strtoul (p, &end, 10);
    if (errno || !isdigit ((unsigned char) *p) || n > 63 ||
        (*end && *end != ',')) {
      log_error ("%s=%s: must be all, or numbers from 0 to 63 with commas "
                 "in between", key, value);
      return -1;
    }
    gpus |= BIT (n);
    if (*end == '\0')
      break;
    p = end + 1;
  }
  c->gpus = gpus;
  return 0;
}

static int
set_kernel_cache (struct config *c, const char *key, const char *value)
{
  if (strcmp (value, "none") == 0) {
    c->no_kernel_cache = true;
    return 0;
  }
  c->kernel_cache = config_absolute_path (value);
  return c->kernel_cache ? 0 : -1;
}

static int
set_resume (struct config *c, const char *key, const char *value)
{
  const int n = choose (key, value, "no|yes");

  c->resume = n == 1;
  return MIN (n, 0);
}

static const struct key {
  const char *name;
  int (*set) (struct config *c, const char *key, const char *value);
  bool creates;                 /* describes an array to create */
} keys[] = {
  { "member", set_member, true },
  { "config", set_file },
  { "dir", set_dir },
  { "k", set_km, true },
  { "m", set_km, true },
  { "chunk", set_chunk, true },
  { "size", set_size, true },
  { "journal-size", set_journal_size, true },
  { "allocate", set_allocate, true },
  { "label", set_label, true },
  { "multihost", set_multihost, true },
  { "uuid", set_uuid },
  { "code", set_code, true },
  { "w", set_w, true },
  { "create", set_create },
  { "coder", set_coder },
  { "gpus", set_gpus },
  { "kernel-cache", set_kernel_cache },
  { "cache", set_cache },
  { "cache-mode", set_cache_mode },
  { "no-space", set_no_space },
  { "consistency", set_consistency, true },
  { "checksum", set_checksum, true },
  { "timeout", set_timeout },
  { "hedge", set_hedge },
  { "spare-delay", set_spare_delay },
  { "rebuild-rate", set_rebuild_rate },
  { "degraded", set_degraded },
  { "stop-timeout", set_stop_timeout },
  { "control", set_control },
  { "socket-group", set_socket_group },
  { "socket-mode", set_socket_mode },
  { "log", set_log },
  { "hook", set_hook },
  { "resume", set_resume },
};

const char *
config_key (unsigned i, bool *creates)
{
  if (i >= ARRAY_LEN (keys))
    return NULL;
  *creates = keys[i].creates;
  return keys[i].name;
}

int
config_find_key (const char *key)
{
  for (size_t i = 0; i < ARRAY_LEN (keys); i++)
    if (strcmp (keys[i].name, key) == 0)
      return i;
  return -1;
}

int
config_set (struct config *c, const char *key, const char *value)
{
  const int i = config_find_key (key);

  if (i == -1)
    return 1;
  if (value[0] == '\0') {
    log_error ("%s=: a value is missing: give one, or leave the key out", key);
    return -1;
  }
  if (keys[i].set != set_member) {
    if (c->given & BIT (i)) {
      log_error ("%s=%s: this key is given twice: leave one out", key, value);
      return -1;
    }
    c->given |= BIT (i);
  }
  return keys[i].set (c, key, value);
}
