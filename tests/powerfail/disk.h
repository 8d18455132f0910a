/* gpuraid: tests: a disk with a cache that forgets.
 *
 * Decides what a disk holds after its power has failed.  Reads return what was
 * written last.  What was not flushed is in memory alone, as a list of changes;
 * when the power fails each is kept, dropped or torn by sector, and those that
 * are kept reach the file in any order.  No sector ever goes back behind what a
 * flush, or a write with FUA, has made durable.
 *
 * Without nbdkit; volatile-plugin.c serves it.  Any thread may call.  Functions
 * return 0 or an errno, or what is said.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_POWERFAIL_DISK_H
#define GPURAID_POWERFAIL_DISK_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/list.h"

#define SECTOR 512u

/* What becomes of changes that were not flushed. */
enum power_mode {
  POWER_DROP,                   /* none is kept */
  POWER_SOME,                   /* each is kept, dropped or torn */
  POWER_KEEP,                   /* all are kept, in order */
};

struct disk_stats {
  uint64_t writes, flushes;     /* done since disk_open; zeroes are writes */
  uint64_t unflushed;           /* changes now in memory alone */
  uint64_t kept, dropped, torn; /* by all failures of the power */
};

struct disk {
  struct list link;             /* the owner's */
  char *name;
  int fd;                       /* what is durable */
  uint64_t size;                /* bytes */

  pthread_mutex_t lock;
  /* With lock held. */
  uint8_t *now;                 /* size bytes: what reads return */
  struct list changes;          /* not flushed, oldest first */
  bool on;
  unsigned life;                /* counts failures of the power */
  struct disk_stats stats;
};

/* Serve the file, whose size must be a multiple of SECTOR.  NULL with errno. */
extern struct disk *disk_open (const char *path, const char *name);
extern void disk_close (struct disk *d);

/* The life in which a request arrived: it fails with EIO when it is carried out
 * in another one, or when there is no power.
 */
extern unsigned disk_life (struct disk *d);

/* Ranges are whole sectors inside the disk.  buf of disk_write: NULL for
 * zeroes.
 */
extern int disk_read (struct disk *d, unsigned life, void *buf, size_t len,
                      uint64_t off);
extern int disk_write (struct disk *d, unsigned life, const void *buf,
                       size_t len, uint64_t off, bool fua);
extern int disk_flush (struct disk *d, unsigned life);

/* The power fails: what the seed says becomes durable. */
extern int disk_off (struct disk *d, enum power_mode mode, uint64_t seed);
extern int disk_on (struct disk *d);
/* Without power: all zeroes, as a new disk. */
extern int disk_blank (struct disk *d);

extern struct disk_stats disk_stats (struct disk *d);

#endif
