/* gpuraid: tests: which bytes a read may return.
 *
 * Records each write, when it began and ended, and whether a flush covers it;
 * it has no stripes.  A read may return the bytes of any write that was not
 * certainly overwritten before the read began.  After a crash, data that is
 * certainly durable stays, and each other 512-byte sector has one version,
 * which then stays.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TEST_SIM_MODEL_H
#define GPURAID_TEST_SIM_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct model;

/* One write, or zeroes, or any bytes. */
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

/* From here on acknowledged data may be lost until a flush says that it is
 * durable, or fails; or not any more.
 */
extern void model_shaky (struct model *, bool shaky);

/* These bytes may be zeroes instead, from now on. */
extern void model_may_be_zero (struct model *m, uint64_t off, uint64_t len);
/* A flush failed: all data that is not durable may be lost. */
extern void model_doubt (struct model *);

/* A flush, a read: returns when it began. */
extern uint64_t model_begin (struct model *);
extern void model_flushed (struct model *, uint64_t began);
/* May a read that began then return this?  False: why says what is wrong. */
extern bool model_check (struct model *, uint64_t began, const uint8_t *buf,
                         uint64_t off, uint64_t len, char *why,
                         size_t why_len);
/* The same, when nothing else is in flight, and from here on every read returns
 * it.
 */
extern bool model_settle (struct model *, const uint8_t *buf, uint64_t off,
                          uint64_t len, char *why, size_t why_len);

/* From now on data that is not durable may be lost. */
extern void model_crash (struct model *);
/* Right after a crash: did a write that was not durable touch this? */
extern bool model_was_in_flight (const struct model *, uint64_t off,
                                 uint64_t len);
/* The content of these whole sectors at the last crash is unknown now. */
extern void model_lose (struct model *, uint64_t off, uint64_t len);

#endif
