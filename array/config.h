/* gpuraid: the keys of both the plugin and the command.
 *
 * Reads key=value into a struct and checks everything that does not need an
 * open member.  array/create.h and array/assemble.h check the rest.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CONFIG_H
#define GPURAID_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "raidmap/superblock.h"

enum degraded_policy { DEGRADED_ALLOW, DEGRADED_REFUSE, DEGRADED_FORCE };
enum create_policy { CREATE_DEFAULT, CREATE_NO, CREATE_MISSING };

#define CONFIG_DEFAULT_CHUNK (64u << 10)
#define CONFIG_DEFAULT_CACHE (256u << 20)
#define CONFIG_DEFAULT_TIMEOUT UINT64_C (30000000000)   /* ns */

struct config {
  /* Geometry.  0 (or -1 where 0 means something) if not given. */
  unsigned k, m;
  uint32_t chunk;               /* bytes */
  uint64_t size;                /* bytes */
  int code;                     /* enum code, or -1 */
  unsigned w;                   /* bits of a symbol */
  int consistency;              /* enum consistency, or -1 */
  int checksum;                 /* enum checksum, or -1 */
  uint64_t journal_size;        /* bytes of a member, whole blocks; 0: the
                                 * default */

  /* Members, as given; paths made absolute.  Owned. */
  char **member;
  unsigned nr_members;
  char *dir;                    /* absolute, or NULL */

  enum create_policy create;
  enum degraded_policy degraded;
  char *coder;                  /* "auto", "isal", "gf-complete", "cuda" */
  uint64_t gpus;                /* bit n: CUDA device n; ~0: all there are */
  char *kernel_cache;           /* absolute, or NULL: the default folder */
  bool no_kernel_cache;
  uint64_t cache_len;           /* bytes */
  bool writethrough;
  uint64_t timeout_ns;          /* at least a second */
  uint64_t rebuild_rate;        /* bytes of a member a second, also of a
                                 * scrub; 0: no limit */
  char *control;                /* absolute path, or NULL */


  bool readonly;                /* members are opened so; no key */
  bool forget_scrub;            /* one that was interrupted does not go on; no
                                 * key */
  uint32_t given;               /* config.c: which keys were given */
};

/* More names than an array can have: slots, replacements and spares. */
#define CONFIG_MAX_MEMBERS SB_MAX_DEVICES

extern void config_init (struct config *c);
extern void config_free (struct config *c);

/* Set one key.  0; -1 reported in one line, for a bad value or a key that is
 * not in this version; 1, not reported, if the key is not ours.
 */
extern int config_set (struct config *c, const char *key, const char *value);

/* After the last key: check that the keys fit together.  Expands dir=.  0, or
 * -1 reported.
 */
extern int config_complete (struct config *c);

/* Set the geometry that an array is created with if a key was not given. */
extern void config_geometry_defaults (struct config *c);

/* The name of key i of the table, "member" first, and whether it describes an
 * array to create; NULL past the end.
 */
extern const char *config_key (unsigned i, bool *creates);

/* Make a path absolute, without "." and double slashes, because nbdkit
 * changes its folder, and for status.  The path need not exist.  The caller
 * frees it.  NULL if reported.
 */
extern char *config_absolute_path (const char *path);

/* A limit in bytes a second: a size, or max, which gives 0, for none.  0, or -1
 * not reported.
 */
extern int config_parse_rate (const char *str, uint64_t *r);

/* Parse bytes with a suffix as nbdkit does: 65536, 64K, 1G, 8s (sectors of
 * 512).  0, or -1 not reported.
 */
extern int config_parse_size (const char *str, uint64_t *r);

#endif
