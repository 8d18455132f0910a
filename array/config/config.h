/* gpuraid: the keys of both the plugin and the command.
 *
 * Reads key=value into a struct and checks everything that does not need an
 * open member.  array/create/create.h and array/open/assemble.h check the rest.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CONFIG_H
#define GPURAID_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "array/plan/hedge.h"
#include "raidmap/superblock.h"

enum degraded_policy { DEGRADED_ALLOW, DEGRADED_REFUSE, DEGRADED_FORCE };
enum create_policy {
  CREATE_DEFAULT, CREATE_NO, CREATE_MISSING,
  CREATE_AGAIN,                 /* as missing, also where create/known.h knows
                                 * of an array */
};

#define CONFIG_LABEL_LEN 31u    /* the longest label */
#define CONFIG_DEFAULT_CHUNK (64u << 10)
#define CONFIG_DEFAULT_CACHE (256u << 20)
#define CONFIG_DEFAULT_TIMEOUT UINT64_C (30000000000)   /* ns */
#define CONFIG_DEFAULT_SPARE_DELAY UINT64_C (300000000000)      /* ns */
#define CONFIG_DEFAULT_STOP_TIMEOUT UINT64_C (20000000000)      /* ns */

struct config {
  /* Geometry.  0 (or -1 where 0 means something) if not given. */
  unsigned k, m;
  uint32_t chunk;               /* bytes */
  uint64_t size;                /* bytes */
  int code;                     /* enum code, or -1 */
  unsigned w;                   /* bits of a symbol */
  int consistency;              /* enum consistency, or -1 */
  int checksum;                 /* enum checksum, or -1 */
  int multihost;                /* 0 or 1, or -1: as the array has it */
  uint64_t journal_size;        /* bytes of a member, whole blocks; 0: the
                                 * default */
  bool allocate;                /* creating: files get all of their space */

  /* Members, as given; paths made absolute.  Owned. */
  char **member;
  unsigned nr_members;
  char *dir;                    /* absolute, or NULL */
  char **glob;                  /* members= of a file that are globs, absolute;
                                 * owned */
  unsigned nr_globs;
  char *file;                   /* config=: a name, or a path; or NULL */

  enum create_policy create;
  enum degraded_policy degraded;
  char *coder;                  /* "auto", "simd", "isal", "gf-complete",
                                 * "cuda" */
  uint64_t gpus;                /* bit n: CUDA device n; ~0: all there are */
  char *kernel_cache;           /* absolute, or NULL: the default folder */
  bool no_kernel_cache;
  uint64_t cache_len;           /* bytes */
  bool writethrough;
  bool wait_for_space;          /* each request has ARRAY_WAIT */
  uint64_t timeout_ns;          /* at least a second */
  struct hedge_policy hedge;
  uint64_t spare_delay_ns;      /* a spare waits so long for a member that was
                                 * not there */
  uint64_t rebuild_rate;        /* bytes of a member a second, also of a
                                 * scrub; 0: no limit */
  uint64_t stop_timeout_ns;     /* a stop waits so long for clients;
                                 * UINT64_MAX: without an end */
  char *control;                /* absolute path, or NULL */
  bool has_socket_group;
  gid_t socket_gid;             /* then: the group of the sockets */
  unsigned socket_mode;         /* their mode; 0: not given */
  char *log;                    /* as control */
  char *hook;                   /* likewise */
  char label[CONFIG_LABEL_LEN + 1];     /* "": not given */
  bool has_uuid;
  uuid_bytes uuid;              /* of the array to open */

  bool resume;                  /* open for writing without a client, if there
                                 * is work to go on with */

  bool readonly;                /* members are opened so; no key */
  bool keep_unwritable;         /* one that can't be written is not left out:
                                 * all are opened for reading; no key */
  const char *readonly_why;     /* not NULL: nothing is written, and that is
                                 * why, in a few words; borrowed; no key */
  bool forget_scrub;            /* one that was interrupted does not go on; no
                                 * key */
  uint64_t given;               /* keys.c: which keys were given */
};

/* More names than an array can have: slots, replacements and spares. */
#define CONFIG_MAX_MEMBERS SB_MAX_DEVICES

extern void config_init (struct config *c);
extern void config_free (struct config *c);

/* Set one key.  0; -1 reported in one line, for a bad value or a key that is
 * not in this version; 1, not reported, if the key is not ours.
 */
extern int config_set (struct config *c, const char *key, const char *value);

/* May this be a label, or the NAME of an array: 1 to 31 bytes of letters,
 * digits, dots, underscores and dashes?
 */
extern bool config_is_name (const char *s);

/* After the last key: check that the keys fit together.  Expands dir=, and with
 * globs or uuid= calls choose, which adds the members: config_choose_members
 * (array/open/choose.h).  0, or -1 reported.
 */
extern int config_complete (struct config *c,
                            int (*choose) (struct config *c));

/* Set the geometry that an array is created with if a key was not given. */
extern void config_geometry_defaults (struct config *c);

/* The name of key i of the table, "member" first, and whether it describes an
 * array to create; NULL past the end.
 */
extern const char *config_key (unsigned i, bool *creates);

/* log=: is this one of the words, and no file? */
extern bool config_is_log_word (const char *value);

/* Make a path absolute, without "." and double slashes, because nbdkit
 * changes its folder, and for status.  The path need not exist.  The caller
 * frees it.  NULL if reported.
 */
extern char *config_absolute_path (const char *path);
/* The same for a member, which may be an NBD URI: then for files in it. */
extern char *config_member_name (const char *name);

/* A limit in bytes a second: a size, also with "/s", or max, which gives 0, for
 * none.  0, or -1 not reported.
 */
extern int config_parse_rate (const char *str, uint64_t *r);

/* Parse bytes with a suffix as nbdkit does: 65536, 64K, 1G, 8s (sectors of
 * 512); and as they are printed: 64KiB, 1.5 GiB, 100 bytes.  0, or -1 not
 * reported.
 */
extern int config_parse_size (const char *str, uint64_t *r);

/* Parse the value of hedge=.  0, or -1 not reported. */
extern int config_parse_hedge (const char *str, struct hedge_policy *r);

/* Parse a time: 30 and 30s are seconds, 1500ms, 2m.  0, or -1 not reported. */
extern int config_parse_time (const char *str, uint64_t *ns);

#endif
