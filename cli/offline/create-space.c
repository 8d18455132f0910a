/* gpuraid: does a new array use its members' space, and will there be that
 * space?
 *
 * Only messages: the array works without.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "cli/cli.h"
#include "cli/offline/create-plan.h"
#include "common/bits.h"
#include "common/cleanup.h"
#include "common/log.h"

/* Differences of up to a hundredth are not worth a message. */
#define SMALL_PART 100

void
create_warn_sizes (const struct create_plan *p)
{
  char a[CLI_SIZE_LEN], b[CLI_SIZE_LEN];
  const char *larger = NULL;
  uint64_t least = UINT64_MAX, unused = 0;
  unsigned smallest = 0, nr = 0;

  for (unsigned i = 0; i < p->c.nr_members; i++)
    if (!p->member[i].made && p->member[i].size < least) {
      smallest = i;
      least = p->member[i].size;
    }
  for (unsigned i = 0; i < p->c.nr_members; i++)
    if (!p->member[i].made &&
        p->member[i].size - least > least / SMALL_PART) {
      unused += p->member[i].size - least;
      larger = p->c.member[i];
      nr++;
    }
  if (nr == 1)
    log_notice ("%s is larger than the smallest member, %s (%s): %s of it "
                "can't be used", larger, p->c.member[smallest],
                cli_size (least, a), cli_size (unused, b));
  else if (nr > 1)
    log_notice ("%u members are larger than the smallest, %s (%s): %s of them "
                "can't be used", nr, p->c.member[smallest],
                cli_size (least, a), cli_size (unused, b));
}

/* ---- room on file systems ------------------------------------------------ */

struct store {
  bool file;                    /* else it is a disk */
  dev_t dev;                    /* the file system */
  uint64_t missing;             /* bytes not allocated yet */
};

static char *
folder_of (const char *path)
{
  char *dir = strdup (path), *slash = dir ? strrchr (dir, '/') : NULL;

  if (slash)
    slash[slash == dir] = '\0';
  return dir;
}

/* The path, or, of a file that is not there, its folder. */
static char *
existing_path (const char *path)
{
  struct stat st;

  return stat (path, &st) == 0 ? strdup (path) : folder_of (path);
}

static void
look (const char *path, uint64_t size, struct store *s)
{
  CLEANUP_FREE char *where = existing_path (path);
  struct stat st;
  uint64_t has;

  *s = (struct store) { .file = false };
  if (where == NULL || stat (where, &st) == -1 || S_ISBLK (st.st_mode))
    return;
  has = S_ISREG (st.st_mode) ? st.st_blocks * UINT64_C (512) : 0;
  *s = (struct store) { .file = true, .dev = st.st_dev,
                        .missing = size > has ? size - has : 0 };
}

/* 0 if it is not known. */
static uint64_t
room_at (const char *path)
{
  CLEANUP_FREE char *where = existing_path (path);
  struct statvfs fs;

  if (where == NULL || statvfs (where, &fs) == -1)
    return 0;
  return (uint64_t) fs.f_bavail * fs.f_frsize;
}

static void
warn_short (const struct create_plan *p, const char *path, unsigned nr,
            uint64_t missing, uint64_t room)
{
  CLEANUP_FREE char *dir = folder_of (path);
  char a[CLI_SIZE_LEN], b[CLI_SIZE_LEN];

  log_notice ("%s: its file system has %s free, but the %u member%s there can "
              "need %s more: %s", dir ? dir : path, cli_size (room, a), nr,
              nr == 1 ? "" : "s", cli_size (missing, b),
              !p->c.allocate ? "writes wait when it is full (allocate=yes "
              "takes all space at once, or fails)" :
              "writes wait when it is full");
}

void
create_warn_space (const struct create_plan *p)
{
  struct store s[MAX_SLOTS];

  for (unsigned i = 0; i < p->c.nr_members; i++)
    look (p->c.member[i], p->member[i].size, &s[i]);
  for (unsigned i = 0; i < p->c.nr_members; i++) {
    uint64_t missing = 0, room = room_at (p->c.member[i]);
    unsigned nr = 0;

    for (unsigned j = 0; s[i].file && j < p->c.nr_members; j++)
      if (s[j].file && s[j].dev == s[i].dev) {
        if (j < i)              /* said with that one */
          break;
        missing += s[j].missing;
        nr++;
      }
    if (nr > 0 && room > 0 && missing > room)
      warn_short (p, p->c.member[i], nr, missing, room);
  }
}
