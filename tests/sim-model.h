/* gpuraid: tests: which bytes a read may return.
 *
 * Knows each write, when it began and ended, and whether a flush covers
 * it; nothing of stripes.  A read may return what any write brought that
 * was not surely overwritten before the read began.  After a crash, what
 * is surely durable stays, and of the rest each 512-byte sector has one
 * thing or another, for good.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TEST_SIM_MODEL_H
#define GPURAID_TEST_SIM_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct model;

/* One write, or zeroes, or anything at all. */
struct model_write {
  uint64_t id;
  uint64_t off, len;            /* bytes */
  enum { MODEL_DATA, MODEL_ZEROES, MODEL_ANYTHING } kind;
  uint64_t start, end;          /* the model's time; end is UINT64_MAX while
                                 * it is under way */
  bool good;                    /* it was acknowledged */
  bool durable;                 /* and a flush covers it */
};

/* All zeroes, durable. */
extern struct model *model_new (uint64_t size);
extern void model_free (struct model *);

/* A write begins; zeroes if kind says so.  Owned by the model. */
extern struct model_write *model_write (struct model *, uint64_t off,
                                        uint64_t len, int kind);
/* What it writes. */
extern void model_fill (const struct model_write *, uint8_t *buf);
/* It ended; error: it may have been carried out in part, or not at all.
 * fua: it is durable.
 */
extern void model_written (struct model *, struct model_write *, bool good,
                           bool fua);

/* From here on what is acknowledged may be lost until a flush says that
 * it is durable, or fails; or not any more.
 */
extern void model_shaky (struct model *, bool shaky);
/* A flush failed: whatever is not durable may be lost. */
extern void model_doubt (struct model *);

/* A flush, a read: returns when it began. */
extern uint64_t model_begin (struct model *);
extern void model_flushed (struct model *, uint64_t began);
/* Is this what a read that began then may return?  False: why says what
 * is wrong.
 */
extern bool model_check (struct model *, uint64_t began, const uint8_t *buf,
                         uint64_t off, uint64_t len, char *why,
                         size_t why_len);
/* The same, when nothing else is under way, and from here on it is what
 * every read returns.
 */
extern bool model_settle (struct model *, const uint8_t *buf, uint64_t off,
                          uint64_t len, char *why, size_t why_len);

/* What is not durable may be lost, from now on. */
extern void model_crash (struct model *);
/* Right after a crash: did a write that was not durable touch this? */
extern bool model_was_in_flight (const struct model *, uint64_t off,
                                 uint64_t len);
/* Of what was in these whole sectors at the last crash, nothing is known
 * any more.
 */
extern void model_lose (struct model *, uint64_t off, uint64_t len);

#endif
