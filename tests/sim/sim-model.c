/* gpuraid: tests: which bytes a read may return.
 *
 * Each sector has a list of the writes, or parts of writes, that may be
 * seen in it.  "b overwrites a" means that b began after a had ended; a
 * write leaves the list when a durable one overwrites it and no read can
 * see it any more.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bits.h"
#include "tests/sim/sim-model.h"

#define SECTOR 512u

/* Bytes [lo, hi) of a sector. */
struct version {
  struct model_write *w;        /* NULL: what a read after a crash said */
  uint16_t lo, hi;
};

struct sector {
  struct version *v;
  uint16_t nr, max;
  bool in_flight;               /* at the last crash */
  bool may_be_zero;
  uint8_t *literal;             /* SECTOR bytes, of the version without a
                                 * write */
  uint64_t since;               /* of that version */
};

struct model {
  uint64_t size;
  uint64_t now;
  uint64_t crashed;             /* the last crash */
  uint64_t nr_sectors;
  struct sector *sector;
  struct model_write base;      /* zeroes */
  struct model_write **write;
  size_t nr_writes, max_writes, nr_settled;
  bool shaky;
};

static uint64_t
mix (uint64_t z)
{
  z = (z ^ z >> 30) * UINT64_C (0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C (0x94d049bb133111eb);
  return z ^ z >> 31;
}

/* Of the eight bytes around pos; the first is the lowest. */
static uint64_t
content_word (const struct model_write *w, uint64_t pos)
{
  if (w->kind == MODEL_ZEROES)
    return 0;
  return htole64 (mix (w->id * UINT64_C (0x9e3779b97f4a7c15) + pos / 8));
}

static uint8_t
content (const struct model_write *w, uint64_t pos)
{
  return le64toh (content_word (w, pos)) >> pos % 8 * 8;
}

void
model_fill (const struct model_write *w, uint8_t *buf)
{
  for (uint64_t i = 0; i < w->len; ) {
    const uint64_t word = content_word (w, w->off + i);

    if ((w->off + i) % 8 == 0 && i + 8 <= w->len) {
      memcpy (buf + i, &word, 8);
      i += 8;
    }
    else {
      buf[i] = content (w, w->off + i);
      i++;
    }
  }
}

/* ---- the versions of a sector ------------------------------------------- */

static void
add_version (struct sector *s, struct model_write *w, unsigned lo, unsigned hi)
{
  if (s->nr == s->max) {
    s->max = s->max ? 2 * s->max : 2;
    s->v = realloc (s->v, s->max * sizeof *s->v);
    assert (s->v != NULL);
  }
  s->v[s->nr++] = (struct version) { w, lo, hi };
}

static uint64_t
end_of (const struct sector *s, const struct version *v)
{
  return v->w ? v->w->end : s->since;
}

/* Take the bytes [lo, hi) from version i. */
static void
cut_version (struct sector *s, unsigned i, unsigned lo, unsigned hi)
{
  struct version *v = &s->v[i];
  const unsigned end = v->hi;

  if (lo <= v->lo && hi >= v->hi)
    *v = s->v[--s->nr];
  else if (lo <= v->lo)
    v->lo = hi;
  else {
    v->hi = lo;
    if (hi < end)
      add_version (s, v->w, hi, end);
  }
}

/* Drop one version that a durable write that ended before a time has
 * overwritten.  False: there is none.
 */
static bool
prune_one (struct sector *s, uint64_t before)
{
  for (unsigned j = 0; j < s->nr; j++) {
    const struct version d = s->v[j];

    if (d.w == NULL || !d.w->durable || d.w->end >= before)
      continue;
    for (unsigned i = 0; i < s->nr; i++) {
      const struct version *v = &s->v[i];

      if (v->lo < d.hi && d.lo < v->hi && d.w->start > end_of (s, v)) {
        cut_version (s, i, d.lo, d.hi);
        return true;
      }
    }
  }
  return false;
}

static void
prune (struct sector *s, uint64_t before)
{
  while (s->nr > 1 && prune_one (s, before))
    ;
}

/* ---- writes -------------------------------------------------------------- */

struct model *
model_new (uint64_t size)
{
  struct model *m = calloc (1, sizeof *m);

  assert (m != NULL);
  m->size = size;
  m->nr_sectors = size / SECTOR;
  m->sector = calloc (m->nr_sectors, sizeof *m->sector);
  assert (m->sector != NULL);
  m->base = (struct model_write) {
    .len = size, .kind = MODEL_ZEROES, .good = true, .durable = true,
  };
  m->now = 1;
  for (uint64_t i = 0; i < m->nr_sectors; i++)
    add_version (&m->sector[i], &m->base, 0, SECTOR);
  return m;
}

void
model_free (struct model *m)
{
  if (m == NULL)
    return;
  for (uint64_t i = 0; i < m->nr_sectors; i++) {
    free (m->sector[i].v);
    free (m->sector[i].literal);
  }
  for (size_t i = 0; i < m->nr_writes; i++)
    free (m->write[i]);
  free (m->write);
  free (m->sector);
  free (m);
}

/* The part of [off, off + len) that lies in sector i. */
static void
part (uint64_t i, uint64_t off, uint64_t len, unsigned *lo, unsigned *hi)
{
  *lo = off > i * SECTOR ? off - i * SECTOR : 0;
  *hi = MIN (SECTOR, off + len - i * SECTOR);
}

struct model_write *
model_write (struct model *m, uint64_t off, uint64_t len, int kind)
{
  struct model_write *w = calloc (1, sizeof *w);

  assert (w != NULL && len > 0 && off + len <= m->size);
  if (m->nr_writes == m->max_writes) {
    m->max_writes = 2 * m->max_writes + 64;
    m->write = realloc (m->write, m->max_writes * sizeof *m->write);
    assert (m->write != NULL);
  }
  m->write[m->nr_writes++] = w;
  *w = (struct model_write) {
    .id = m->nr_writes, .off = off, .len = len, .kind = kind,
    .start = ++m->now, .end = UINT64_MAX,
  };
  for (uint64_t i = off / SECTOR; i * SECTOR < off + len; i++) {
    struct sector *s = &m->sector[i];
    unsigned lo, hi;

    part (i, off, len, &lo, &hi);
    add_version (s, w, lo, hi);
  }
  return w;
}

void
model_written (struct model *m, struct model_write *w, bool good, bool fua)
{
  w->end = ++m->now;
  w->good = good;
  w->durable = good && fua;
}

void
model_shaky (struct model *m, bool shaky)
{
  m->shaky = shaky;
}

void
model_may_be_zero (struct model *m, uint64_t off, uint64_t len)
{
  for (uint64_t i = off / SECTOR;
       i * SECTOR < MIN (off + len, m->size); i++)
    m->sector[i].may_be_zero = true;
}

void
model_doubt (struct model *m)
{
  for (size_t i = m->nr_settled; i < m->nr_writes; i++)
    if (!m->write[i]->durable)
      m->write[i]->good = false;
}

uint64_t
model_begin (struct model *m)
{
  return ++m->now;
}

void
model_flushed (struct model *m, uint64_t began)
{
  for (size_t i = m->nr_settled; i < m->nr_writes; i++)
    if (m->write[i]->good && m->write[i]->end < began)
      m->write[i]->durable = true;
  while (m->nr_settled < m->nr_writes &&
         m->write[m->nr_settled]->durable)
    m->nr_settled++;
}

/* ---- reads --------------------------------------------------------------- */

static bool
is_sure (const struct model *m, const struct model_write *w)
{
  return m->shaky ? w->durable : w->good;
}

/* Was this version surely overwritten at a byte before a read began? */
static bool
is_gone (const struct model *m, const struct sector *s,
         const struct version *v, unsigned byte, uint64_t began)
{
  for (unsigned j = 0; j < s->nr; j++) {
    const struct version *d = &s->v[j];

    if (d != v && d->w && d->lo <= byte && byte < d->hi && is_sure (m, d->w) &&
        d->w->start > end_of (s, v) && d->w->end < began)
      return true;
  }
  return false;
}

static bool
has (const struct sector *s, const struct version *v, unsigned byte,
     uint64_t pos, uint8_t is)
{
  if (byte < v->lo || byte >= v->hi)
    return false;
  if (v->w == NULL)
    return s->literal[byte] == is;
  return v->w->kind == MODEL_ANYTHING || content (v->w, pos) == is;
}

static void
explain (const struct model *m, uint64_t i, unsigned byte, uint8_t is,
         uint64_t began, char *why, size_t len)
{
  const struct sector *s = &m->sector[i];
  const uint64_t pos = i * SECTOR + byte;
  int n = snprintf (why, len, "byte %" PRIu64 " (sector %" PRIu64 ") is %#x "
                    "in a read from %" PRIu64 "; allowed:", pos, i, is, began);

  for (unsigned j = 0; j < s->nr && n > 0 && (size_t) n < len; j++) {
    const struct version *v = &s->v[j];

    if (byte < v->lo || byte >= v->hi)
      continue;
    if (v->w == NULL)
      n += snprintf (why + n, len - n, " [read at %" PRIu64 ": %#x%s]",
                     s->since, s->literal[byte],
                     is_gone (m, s, v, byte, began) ? " gone" : "");
    else
      n += snprintf (why + n, len - n, " [write %" PRIu64 " %" PRIu64 "+%"
                     PRIu64 " kind %d from %" PRIu64 " to %" PRId64 " %s%s: "
                     "%#x%s]", v->w->id, v->w->off, v->w->len, v->w->kind,
                     v->w->start, (int64_t) v->w->end,
                     v->w->good ? "good" : "bad",
                     v->w->durable ? " durable" : "", content (v->w, pos),
                     is_gone (m, s, v, byte, began) ? " gone" : "");
  }
  for (size_t j = 0; j < m->nr_writes && n > 0 && (size_t) n < len; j++)
    if (m->write[j]->off <= pos && pos - m->write[j]->off < m->write[j]->len &&
        m->write[j]->kind == MODEL_DATA && content (m->write[j], pos) == is)
      n += snprintf (why + n, len - n, " (write %" PRIu64 " had it)",
                     m->write[j]->id);
}

/* Is it all one version, which nothing surely overwrote in any byte? */
static bool
is_one (const struct model *m, const struct sector *s,
        const struct version *v, uint64_t began,
        const uint8_t *buf, uint64_t pos, unsigned lo, unsigned hi)
{
  const struct model_write *w = v->w;

  if (v->lo > lo || v->hi < hi)
    return false;
  for (unsigned j = 0; j < s->nr; j++) {
    const struct version *d = &s->v[j];

    if (d->w && d->lo < hi && lo < d->hi && is_sure (m, d->w) &&
        d->w->start > end_of (s, v) && d->w->end < began)
      return false;
  }
  if (w == NULL)
    return memcmp (s->literal + lo, buf, hi - lo) == 0;
  if (w->kind == MODEL_ANYTHING)
    return true;
  for (unsigned b = lo; b < hi; ) {
    const uint64_t word = content_word (w, pos + b);
    const unsigned end = MIN (hi, (b | 7) + 1);

    if (end - b == 8 ? memcmp (&word, buf + (b - lo), 8) != 0 :
        buf[b - lo] != content (w, pos + b))
      return false;
    b = end - b == 8 ? end : b + 1;
  }
  return true;
}

static bool
check_sector (struct model *m, uint64_t i, uint64_t began, const uint8_t *buf,
              unsigned lo, unsigned hi, char *why, size_t why_len)
{
  struct sector *s = &m->sector[i];

  for (unsigned j = s->nr; j-- > 0; )
    if (is_one (m, s, &s->v[j], began, buf, i * SECTOR, lo, hi))
      return true;
  for (unsigned b = lo; b < hi; b++) {
    const uint64_t pos = i * SECTOR + b;
    bool right = s->may_be_zero && buf[b - lo] == 0;

    for (unsigned j = s->nr; j-- > 0 && !right; )
      right = has (s, &s->v[j], b, pos, buf[b - lo]) &&
        !is_gone (m, s, &s->v[j], b, began);
    if (!right) {
      explain (m, i, b, buf[b - lo], began, why, why_len);
      return false;
    }
  }
  return true;
}

bool
model_check (struct model *m, uint64_t began, const uint8_t *buf,
             uint64_t off, uint64_t len, char *why, size_t why_len)
{
  for (uint64_t i = off / SECTOR; i * SECTOR < off + len; i++) {
    unsigned lo, hi;

    part (i, off, len, &lo, &hi);
    if (!check_sector (m, i, began, buf + (i * SECTOR + lo - off), lo, hi,
                       why, why_len))
      return false;
  }
  return true;
}

static bool
has_anything (const struct sector *s)
{
  for (unsigned j = 0; j < s->nr; j++)
    if (s->v[j].w && s->v[j].w->kind == MODEL_ANYTHING)
      return true;
  return false;
}

bool
model_settle (struct model *m, const uint8_t *buf, uint64_t off, uint64_t len,
              char *why, size_t why_len)
{
  const uint64_t began = model_begin (m);

  assert (is_aligned (off | len, SECTOR));
  if (!model_check (m, began, buf, off, len, why, why_len))
    return false;
  for (uint64_t i = off / SECTOR; i * SECTOR < off + len; i++) {
    struct sector *s = &m->sector[i];

    prune (s, began);
    if (s->nr == 1 || has_anything (s))
      continue;
    if (s->literal == NULL)
      s->literal = malloc (SECTOR);
    assert (s->literal != NULL);
    memcpy (s->literal, buf + (i * SECTOR - off), SECTOR);
    s->since = began;
    s->nr = 0;
    add_version (s, NULL, 0, SECTOR);
  }
  return true;
}

/* ---- crashes ------------------------------------------------------------- */

void
model_crash (struct model *m)
{
  const uint64_t now = ++m->now;

  for (uint64_t i = 0; i < m->nr_sectors; i++) {
    struct sector *s = &m->sector[i];

    prune (s, UINT64_MAX);
    s->in_flight = false;
    for (unsigned j = 0; j < s->nr; j++)
      if (s->v[j].w && !s->v[j].w->durable)
        s->in_flight = true;
    s->since = now;
  }
  /* What is left may be there or not, but that is decided now: no version
   * overwrites another.
   */
  m->base.start = m->base.end = now;
  for (size_t j = 0; j < m->nr_writes; j++) {
    m->write[j]->start = m->write[j]->end = now;
    m->write[j]->good = m->write[j]->durable = true;
  }
  m->nr_settled = m->nr_writes;
  m->crashed = now;
  m->now += 2;
}

bool
model_was_in_flight (const struct model *m, uint64_t off, uint64_t len)
{
  for (uint64_t i = off / SECTOR; i * SECTOR < off + len; i++)
    if (m->sector[i].in_flight)
      return true;
  return false;
}

void
model_lose (struct model *m, uint64_t off, uint64_t len)
{
  struct model_write *w = model_write (m, off, len, MODEL_ANYTHING);

  w->start = w->end = m->crashed + 1;
  w->good = w->durable = true;
}
