/* gpuraid: what the files of gpuraid scan share.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CLI_SCAN_H
#define GPURAID_CLI_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "array/membership/membership.h"

/* One member that was found. */
struct scanned {
  char *path;
  struct found f;
};

#define SCAN_NAMED 3            /* as many are named */

/* All that were found, of any array.  Owned; zero at first. */
struct scan {
  struct scanned **member;
  size_t nr;
  unsigned nr_forbidden;        /* disks, and files of folders, that we may not
                                 * read */
  char *forbidden[SCAN_NAMED];  /* the first of them; NULL: not known */
  bool folders;                 /* in folders; they were not looked at */
};

/* Look at all disks of this machine.  0, or -1 reported. */
extern int scan_disks (struct scan *s);
/* Look at a file or disk, or at all of a folder.  0, or -1 reported. */
extern int scan_path (struct scan *s, const char *path);
extern void scan_free (struct scan *s);
/* How many of the four superblocks are good. */
extern unsigned scan_nr_good (const struct found *f);

/* ---- an array of them ------------------------------------------------- */

struct scan_array {
  const struct superblock *sb;  /* the newest; borrowed from the scan */
  struct scanned **member;      /* its members, in the order of their slots;
                                 * each borrowed */
  size_t nr;
  struct membership_decision *d;        /* what an opener would decide */
  struct found *found;          /* what it decided about each member */
};

/* The array of member i if that is its first member, else sb is NULL.  0, or -1
 * reported; scan_array_free must be called either way.
 */
extern int scan_array_make (struct scan_array *a, const struct scan *s,
                            size_t i);
extern void scan_array_free (struct scan_array *a);

/* The slot of a member, as the array's superblock says; or SLOT_NONE. */
extern unsigned scan_slot (const struct superblock *sb,
                           const struct scanned *m);

#endif
