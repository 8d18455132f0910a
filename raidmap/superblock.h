/* gpuraid: the superblock, as a struct.
 *
 * docs/on-disk-format.md describes the bytes; superblock_encode and
 * superblock_decode convert.  The meaning of the record in it, and the rules
 * for writing the copies, are in docs/rules.md (M1 to M20) and
 * array/membership/membership.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_SUPERBLOCK_H
#define GPURAID_SUPERBLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "raidmap/layout/layout.h"

#define SB_LEN 4096u
#define SB_MAX_DEVICES 96u
#define SB_MAX_SEEN 24u
#define SB_LABEL_LEN 32u
#define SB_HOST_LEN 64u
#define SB_MAX_LOST 28u
#define SB_MAX_LOST_GROWN 16u     /* if the array has grown */
#define SB_MAX_LOST_RESHAPED 15u  /* with SB_INCOMPAT_RESHAPED */
#define SB_LOST_BLOCKS 16u        /* of an entry */
#define SB_LOST_LIMIT (UINT64_C (1) << 44)      /* blocks of a member that
                                                 * an entry can name */
#define SB_MAX_EPOCH (UINT64_MAX / 2)   /* so that adding to one is safe */
#define SB_VERSION 1u
#define SB_INCOMPAT_GROWN UINT64_C (1)  /* l.nr_grown is not 0 */
#define SB_INCOMPAT_RESHAPED UINT64_C (2)       /* sb_is_reshaped */
#define SB_INCOMPAT_MULTIHOST UINT64_C (8)      /* other hosts reach the
                                                 * members: there is a beat */
#define SB_INCOMPAT_KNOWN \
  (SB_INCOMPAT_GROWN | SB_INCOMPAT_RESHAPED | SB_INCOMPAT_MULTIHOST)

typedef struct { uint8_t b[16]; } uuid_bytes;

/* A set of devices, by their place in superblock.device[]. */
struct device_set {
  uint64_t w[2];
};

static inline bool
device_set_has (const struct device_set *s, unsigned dev)
{
  return s->w[dev / 64] >> (dev % 64) & 1;
}

static inline void
device_set_add (struct device_set *s, unsigned dev)
{
  s->w[dev / 64] |= UINT64_C (1) << (dev % 64);
}

static inline void
device_set_remove (struct device_set *s, unsigned dev)
{
  s->w[dev / 64] &= ~(UINT64_C (1) << (dev % 64));
}

static inline unsigned
device_set_count (const struct device_set *s)
{
  return __builtin_popcountll (s->w[0]) + __builtin_popcountll (s->w[1]);
}

/* Names one membership record.  Compare all of it. */
struct ballot {
  uint64_t epoch;
  uint64_t session;             /* random, drawn at every writable open */
};

/* A ballot, its active devices, and how many slots there are for them. */
struct ballot_set {
  struct ballot ballot;
  struct device_set active;
  uint8_t k, m;
  bool first;                   /* parity was added, and no member of the last
                                 * slot has been active since */
  bool widening;                /* it has one data slot more than before, and
                                 * not all rows have: see
                                 * raidmap/layout/reshape.h */
};

static inline unsigned
ballot_set_nr_slots (const struct ballot_set *b)
{
  return b->k + b->m;
}

/* The membership record: docs/rules.md, M1 to M20. */
struct record {
  struct ballot_set self;
  struct ballot_set base;       /* the last known to be in force */
  struct ballot_set parent;     /* the one that this continues */
  uint64_t whole;               /* epoch of the last record in force with
                                 * every slot active */
  unsigned nr_seen;
  struct ballot seen[SB_MAX_SEEN];      /* newest first */
};

enum device_state {
  DEVICE_NONE,                  /* this place is free */
  DEVICE_ACTIVE,                /* also listed in record.self.active */
  DEVICE_FAILED,                /* stays out until readd or replace */
  DEVICE_MISSING,               /* was not there; may come back */
  DEVICE_REBUILDING,            /* a target: cursor counts */
  DEVICE_SPARE,                 /* slot is SLOT_NONE */
};

#define SLOT_NONE 0xffu

struct device {
  uuid_bytes uuid;              /* the member's */
  enum device_state state;
  uint8_t slot;                 /* or SLOT_NONE */
  bool by_bitmap;               /* DEVICE_REBUILDING: only dirty regions */
  bool replaced;                /* DEVICE_ACTIVE: the member that replaces it
                                 * is active too, this one is to be removed */
  uint32_t step;                /* one that is durable on this member; moves
                                 * while the array is written */
  uint64_t cursor;              /* DEVICE_REBUILDING: bytes from data_off,
                                 * below which the target is current */
};

/* Blocks of a slot whose stored content must not be used, until they are
 * written: a rebuild could not make them.
 */
struct lost_blocks {
  uint64_t first;               /* block of the member's data, a multiple of
                                 * SB_LOST_BLOCKS */
  uint16_t mask;                /* bit i: block first + i; 0: a free place */
  uint8_t slot;
};

enum sb_scrub_state { SB_SCRUB_NONE, SB_SCRUB_RUNNING, SB_SCRUB_PAUSED };

/* A scrub that has not ended: it goes on when the array is started again.
 * Counts stay at their greatest value rather than wrap.
 */
struct sb_scrub {
  enum sb_scrub_state state;    /* NONE: the rest is 0 */
  bool repair;
  uint64_t pos;                 /* bytes from data_off, below which it has
                                 * looked; whole blocks */
  uint32_t found, repaired;     /* blocks, below pos */
  uint16_t unlocated_rows, lost_rows, skipped_rows;
};

enum consistency { CONSISTENCY_NONE = 0, CONSISTENCY_JOURNAL = 1 };
enum checksum { CHECKSUM_NONE = 0, CHECKSUM_CRC32C = 1 };
enum code { CODE_RS = 0, CODE_CRS = 1 };

struct superblock {
  uint32_t version;
  uint64_t compat, ro_compat, incompat;  /* feature flags: SB_INCOMPAT_* */
  uuid_bytes array_uuid;
  uuid_bytes member_uuid;       /* this member */
  char label[SB_LABEL_LEN + 1];         /* no control characters */
  struct geometry g;
  unsigned layout;              /* 1 if g.fixed is not 0, else 0 */
  enum code code;
  unsigned w;                   /* bits of a symbol: 8 for rs */
  uint32_t matrix_id;           /* 0: that of docs/on-disk-format.md */
  uint32_t matrix_crc;          /* crc32c of the m x k parity rows */
  enum checksum checksum;
  enum consistency consistency;
  struct member_layout l;
  bool clean;                   /* informative: shut down with no open bit */
  uint32_t beat;                /* grows while a server has the array open for
                                 * writing, if other hosts reach a member;
                                 * else 0 */
  uuid_bytes boot_id;           /* of the host that wrote this copy */
  char host[SB_HOST_LEN + 1];           /* likewise */
  enum sb_copy copy;            /* which copy this is */
  struct lost_blocks lost[SB_MAX_LOST];
  struct sb_scrub scrub;
  bool paused;                  /* with SB_INCOMPAT_RESHAPED: by a person; it
                                 * changes without a new record */
  struct device device[SB_MAX_DEVICES];
  struct record record;
};

/* What a membership record can change of the geometry: how far the array has
 * grown, and its slots.
 */
struct sb_shape {
  uint64_t size;                /* as in struct geometry */
  uint64_t data_len;            /* as in struct member_layout */
  unsigned nr_grown;
  uint64_t grown[LAYOUT_MAX_GROWN];
  unsigned k, m;                /* as in struct geometry */
  uint64_t fixed;
  bool first, widening;         /* as in struct ballot_set */
  uint32_t matrix_crc;
};

/* Of a superblock and its record `self'. */
extern void sb_get_shape (const struct superblock *sb, struct sb_shape *s);
/* Sets the feature flags too, for which base and parent must be there, and
 * clears what only counts with one, and lost blocks of slots that s does not
 * have.
 */
extern void sb_set_shape (struct superblock *sb, const struct sb_shape *s);

/* Of a record of an array that always had this k and m. */
extern void sb_set_record_slots (struct record *r, unsigned k, unsigned m);

/* Have members been added, is the array widened, or does one of the records
 * have another k or m?
 */
extern bool sb_is_reshaped (const struct superblock *sb);

/* How many lost blocks there is room for in sb->lost. */
static inline unsigned
sb_max_lost (const struct superblock *sb)
{
  return sb->incompat & SB_INCOMPAT_RESHAPED ? SB_MAX_LOST_RESHAPED :
    sb->l.nr_grown ? SB_MAX_LOST_GROWN : SB_MAX_LOST;
}

/* Is every value in range, so that later code can't overflow?  NULL, or a
 * constant string that says what is wrong.  Do not encode a superblock that is
 * not valid: it would not decode.
 */
extern const char *superblock_check (const struct superblock *sb);

/* sb -> bytes, crc included.  cursor and by_bitmap of a device that is
 * not rebuilding are left out, replaced of one that is not active, and all
 * of a free place, and of a scrub that is none; when decoded they are 0, and
 * the slot of a free place is SLOT_NONE.  Control characters in strings become
 * '?'.
 */
extern void superblock_encode (const struct superblock *sb,
                               uint8_t buf[SB_LEN]);

/* What decoding found. */
enum sb_result {
  SB_OK,
  SB_BLANK,             /* no magic of ours */
  SB_CORRUPT,           /* our magic, but crc, place or a value is wrong */
  SB_TOO_NEW,           /* a sound superblock with a version, an incompat flag
                         * or something of a record that we do not know */
};

/* bytes -> sb.  copy is where the bytes were read from: a copy in the
 * wrong place is SB_CORRUPT.  why, if not NULL, gets a constant string
 * that says what was wrong.
 */
extern enum sb_result superblock_decode (const uint8_t buf[SB_LEN],
                                         enum sb_copy copy,
                                         struct superblock *sb,
                                         const char **why);

#endif
