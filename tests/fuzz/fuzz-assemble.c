/* gpuraid fuzzer: arrays are opened, whatever is on their members.
 *
 * An input is steps (mutate.h).  They change a sound superblock and write
 * it to some copies of some members of a small array; then they change bytes of
 * the copies and of the bitmap, with the crc made right or not, and make
 * blocks unreadable.  What opens must be sound, and so must all
 * superblocks of the first changes that the array would make, while members
 * fail.  If none fails, the array opens again.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <errno.h>

#include "array/open/assemble.h"
#include "array/plan/code.h"
#include "common/bytes/crc32c.h"
#include "common/bytes/le.h"
#include "raidmap/limits.h"
#include "raidmap/seal.h"
#include "tests/fuzz/mutate.h"

#define MAX_MEMBERS 7u
#define MEMBER_LEN (2u << 20)
#define MAX_PAGES 4u
#define MAX_STEPS 200u

enum {
  DEVICE, NEXT, BALLOT, SETS, SEEN, LOST, LAYOUT, WRITE, ADOPT, BYTES, PAGE,
  UNREADABLE, ABSENT, SHAPE, NR_KINDS
};

/* All else reads as zeroes. */
struct disk {
  struct member member;
  uint8_t sb[SB_NR_COPIES][SB_LEN];
  uint8_t page[2 * MAX_PAGES][BITMAP_PAGE_LEN];
  unsigned bad;                 /* bits: copies, then pages */
  bool absent;
  bool failed;                  /* of the running array */
};

static struct disk disk[MAX_MEMBERS];
static unsigned nr_disks, nr_pages;
static uint64_t bitmap_off;     /* where the pages are */
static struct superblock cur;   /* written by WRITE */

/* ---- a member ----------------------------------------------------------- */

static uint64_t
fake_size (struct member *m)
{
  return MEMBER_LEN;
}

/* The block at off, with its number; NULL: zeroes. */
static uint8_t *
block_at (struct disk *d, uint64_t off, unsigned *nr)
{
  uint64_t page;

  for (*nr = 0; *nr < SB_NR_COPIES; ++*nr)
    if (off == layout_sb_off (MEMBER_LEN, *nr))
      return d->sb[*nr];
  page = (off - bitmap_off) / BITMAP_PAGE_LEN;
  *nr += page;
  return off >= bitmap_off && page < 2 * nr_pages ? d->page[page] : NULL;
}

static int
read_block (struct disk *d, uint8_t *buf, uint64_t off)
{
  const uint8_t *p;
  unsigned nr;

  p = block_at (d, off, &nr);
  if (p && d->bad >> nr & 1)
    return EIO;
  if (p)
    memcpy (buf, p, BLOCK_LEN);
  else
    memset (buf, 0, BLOCK_LEN);
  return 0;
}

static int
fake_pread (struct member *m, void *buf, size_t len, uint64_t off)
{
  int err = 0;

  assert (len % BLOCK_LEN == 0 && off % BLOCK_LEN == 0);
  assert (len <= MEMBER_LEN && off <= MEMBER_LEN - len);
  for (size_t i = 0; i < len && err == 0; i += BLOCK_LEN)
    err = read_block ((struct disk *) m, (uint8_t *) buf + i, off + i);
  return err;
}

static int
fake_fd (struct member *m)
{
  return -1;
}

static int
fake_flush (struct member *m)
{
  return 0;
}

static void
fake_close (struct member *m)
{
}

static const struct member_ops fake_ops = {
  .size = fake_size, .pread = fake_pread, .fd = fake_fd,
  .flush = fake_flush, .close = fake_close,
};

/* ---- making an array ---------------------------------------------------- */

static void
write_copy (unsigned i, enum sb_copy copy)
{
  struct superblock sb = cur;

  sb.copy = copy;
  sb.member_uuid = cur.device[i].uuid;
  superblock_encode (&sb, disk[i].sb[copy]);
}

static void
write_pages (unsigned i)
{
  for (unsigned p = 0; p < 2 * nr_pages; p++) {
    struct bitmap_page page = { .page_no = p / 2, .counter = 1 + p % 2 };

    bitmap_page_encode (&page, &cur.array_uuid, cur.device[i].slot,
                        disk[i].page[p]);
  }
}

static void
begin_superblock (const uint8_t *head)
{
  uuid_bytes uuid[MAX_MEMBERS] = { 0 };
  uint64_t need;

  for (unsigned i = 0; i < MAX_MEMBERS; i++)
    uuid[i].b[0] = i + 1;
  memset (&cur, 0, sizeof cur);
  cur.version = SB_VERSION;
  cur.array_uuid.b[0] = 9;
  cur.g = (struct geometry) { .k = 1 + head[0] % 3, .m = 1 + head[1] % 2,
                              .chunk = BLOCK_LEN };
  cur.consistency = head[2] & 1;
  assert (layout_fit (&cur.g, MEMBER_LEN, cur.g.k * 15 * BLOCK_LEN,
                      cur.consistency ? journal_min_ring_len (&cur.g) : 0, 0,
                      &cur.l, &need) == 0);
  cur.w = 8;
  cur.matrix_crc = code_parity_crc (cur.code, cur.w, cur.g.k, cur.g.m);
  membership_create (&cur, uuid, 77);
  for (unsigned i = cur.g.k + cur.g.m; i < MAX_MEMBERS; i++) {
    cur.device[i].uuid = uuid[i];
    cur.device[i].slot = SLOT_NONE;
    cur.device[i].state = DEVICE_SPARE;
  }
  nr_pages = bitmap_nr_pages (&cur.l);
  bitmap_off = cur.l.bitmap_off;
  assert (nr_pages <= MAX_PAGES);
}

static void
begin_array (const uint8_t *head)
{
  /* Many pages for little data. */
  limits.region_min_len = BLOCK_LEN;
  limits.page_regions = 4;
  limits.cell_max_len = BLOCK_LEN;
  begin_superblock (head);
  nr_disks = cur.g.k + cur.g.m + head[3] % (MAX_MEMBERS + 1 - cur.g.k -
                                            cur.g.m);
  for (unsigned i = 0; i < nr_disks; i++) {
    static char path[MAX_MEMBERS][16];

    snprintf (path[i], sizeof path[i], "/%u", i);
    disk[i].member = (struct member) { .ops = &fake_ops, .path = path[i] };
    disk[i].bad = 0;
    disk[i].absent = disk[i].failed = false;
    for (enum sb_copy copy = 0; copy < SB_NR_COPIES; copy++)
      write_copy (i, copy);
    write_pages (i);
  }
}

/* ---- steps -------------------------------------------------------------- */

static void
set_device (const struct step *s)
{
  const unsigned i = s->which % MAX_MEMBERS;
  struct device *d = &cur.device[i];

  d->state = s->a % 6;
  d->slot = d->state == DEVICE_SPARE || d->state == DEVICE_NONE ? SLOT_NONE :
    s->b % (cur.g.k + cur.g.m);
  d->by_bitmap = d->state == DEVICE_REBUILDING && s->a & 64;
  d->cursor = d->state != DEVICE_REBUILDING ? 0 :
    s->a & 256 ? s->v : s->v % (cur.l.data_len + 1);
  d->replaced = d->state == DEVICE_ACTIVE && s->a & 128;
  if (d->state == DEVICE_ACTIVE)
    device_set_add (&cur.record.self.active, i);
  else
    device_set_remove (&cur.record.self.active, i);
}

static void
add_seen (const struct ballot *b)
{
  struct record *r = &cur.record;

  memmove (r->seen + 1, r->seen, (SB_MAX_SEEN - 1) * sizeof *r->seen);
  r->seen[0] = *b;
  r->nr_seen = MIN (r->nr_seen + 1, SB_MAX_SEEN);
}

/* A record after the present one; or, by the step, not quite. */
static void
next_record (const struct step *s)
{
  struct record *r = &cur.record;
  struct sb_shape shape;

  sb_get_shape (&cur, &shape);
  add_seen (&r->self.ballot);
  if (s->a & 1)
    r->base = r->self;
  if (!(s->a & 2))
    r->parent = r->self;
  if (s->a & 4)
    r->whole = r->self.ballot.epoch;
  r->self.ballot.epoch = MIN (r->self.ballot.epoch + 1 + s->b % 3,
                              SB_MAX_EPOCH);
  r->self.ballot.session = s->v % 4 ? 77 : s->v;
  sb_set_shape (&cur, &shape);
  cur.clean = s->a >> 3 & 1;
}

static void
set_ballot (const struct step *s)
{
  struct record *r = &cur.record;
  struct ballot *b[] = {
    &r->self.ballot, &r->base.ballot, &r->parent.ballot, &r->seen[s->b % 4],
  };
  const unsigned n = s->a % ARRAY_LEN (b);

  if (s->a & 64)
    r->whole = s->v;
  else if (s->a & 128)
    b[n]->session = s->v;
  else
    b[n]->epoch = s->v;
}

/* As many as there is room for, or few. */
static void
fill_seen (const struct step *s)
{
  for (unsigned i = 0; i <= s->b % SB_MAX_SEEN; i++)
    add_seen (&(struct ballot) { s->a % 64 + i, s->v });
}

/* For longer members, or as it was. */
static void
set_layout (const struct step *s)
{
  struct geometry g = cur.g;
  struct member_layout l;
  uint64_t need;

  if (layout_fit (&g, s->a & 1 ? MEMBER_LEN : UINT64_MAX,
                  (1 + s->v % 4096) * g.k * BLOCK_LEN,
                  cur.l.ring_len, 0, &l, &need) == -1)
    return;
  cur.g = g;
  cur.l = l;
}

/* Parity or a data slot that was added, to this record or to those before. */
static void
set_shape (const struct step *s)
{
  struct record *r = &cur.record;
  struct ballot_set *set = s->a & 1 ? &r->base : &r->parent;
  struct sb_shape shape;

  sb_get_shape (&cur, &shape);
  shape.m = 1 + s->b % 3;
  shape.fixed = s->a & 2 ? BIT (shape.k + shape.m - 1) : 0;
  shape.first = s->a & 4;
  if (s->a & 32 && shape.k < 8) {
    shape.widening = !shape.widening;
    shape.k += shape.widening ? 1 : s->a & 64 ? -1 : 0;
    shape.size = shape.data_len * (shape.k - shape.widening);
  }
  shape.matrix_crc = code_parity_crc (cur.code, cur.w, shape.k, shape.m);
  set->m = s->v % 8;
  set->first = s->a & 8;
  if (s->b & 4) {
    set->m = shape.m;
    set->k = shape.k + (s->b >> 3 & 3) - 1;
    set->widening = s->b & 32;
  }
  sb_set_shape (&cur, &shape);
  cur.paused = s->a & 16 && cur.incompat & SB_INCOMPAT_RESHAPED;
}

static void
set_sets (const struct step *s)
{
  struct device_set *set = s->a & 1 ? &cur.record.base.active :
    &cur.record.parent.active;

  set->w[0] = s->v & LOW_BITS (MAX_MEMBERS);
}

static void
write_members (const struct step *s)
{
  for (unsigned i = 0; i < nr_disks; i++)
    for (enum sb_copy copy = 0; copy < SB_NR_COPIES; copy++)
      if (s->v & BIT (i) && s->b & BIT (copy))
        write_copy (i, copy);
}

static void
change_copy (struct disk *d, const struct step *s)
{
  const enum sb_copy copy = s->a % SB_NR_COPIES;
  uint8_t *buf = d->sb[copy], *p = buf + 12 + s->b % (SB_LEN - 20);

  if (s->a & 64)
    *p = s->v;
  else
    put_le64 (p, s->v);
  if (s->a & 128)
    return;
  put_le32 (buf + 8, 0);
  put_le32 (buf + 8, crc32c (buf, SB_LEN));
}

static void
change_page (unsigned i, const struct step *s)
{
  uint8_t *buf = disk[i].page[s->a % (2 * nr_pages)];
  const unsigned slot = cur.device[i].slot;

  put_le64 (buf + 12 + s->b % (s->a & 64 ? 200 : BITMAP_PAGE_LEN - 20), s->v);
  if (!(s->a & 128))
    seal (buf, BITMAP_PAGE_LEN, 8, &cur.array_uuid, slot);
}

static void
carry_out (const struct step *s)
{
  const unsigned i = s->which % nr_disks;

  switch (s->kind % NR_KINDS) {
  case DEVICE: set_device (s); break;
  case NEXT: next_record (s); break;
  case BALLOT: set_ballot (s); break;
  case SETS: set_sets (s); break;
  case SEEN: fill_seen (s); break;
  case LAYOUT: set_layout (s); break;
  case SHAPE: set_shape (s); break;
  case WRITE: write_members (s); break;
  case BYTES: change_copy (&disk[i], s); break;
  case PAGE: change_page (i, s); break;
  case UNREADABLE: disk[i].bad ^= BIT (s->a % (4 + 2 * nr_pages)); break;
  case ABSENT: disk[i].absent ^= true; break;
  case ADOPT:
    memcpy (disk[i].sb[s->a % SB_NR_COPIES],
            disk[s->b % nr_disks].sb[s->v % SB_NR_COPIES], SB_LEN);
    break;
  case LOST:
    cur.lost[s->which % SB_MAX_LOST] = (struct lost_blocks) {
      .first = round_down (s->b % 15, SB_LOST_BLOCKS), .mask = s->v,
      .slot = s->v ? s->a % (cur.g.k + cur.g.m) : 0,
    };
    break;
  }
}

/* ---- opening ------------------------------------------------------------ */

static int
open_array (const uint8_t *head, struct assembly *a)
{
  struct member *members[MAX_MEMBERS];
  struct config c;
  unsigned nr = 0;
  int r;

  config_init (&c);
  c.degraded = head[4] % 3;
  for (unsigned i = 0; i < nr_disks; i++)
    if (!disk[i].absent && !disk[i].failed)
      members[nr++] = &disk[i].member;
  fuzzing_nr_errors = 0;
  r = assemble (&c, members, nr, NULL, a);
  assert (fuzzing_nr_errors == (r == -1));
  config_free (&c);
  return r;
}

static void
check_assembly (const struct assembly *a)
{
  const unsigned n = a->sb.g.k + a->sb.g.m;
  uint64_t slots = 0;

  assert (layout_check_geometry (&a->sb.g) == NULL);
  assert (layout_check (&a->sb.g, &a->sb.l) == NULL);
  assert (layout_end (&a->sb.l) <= MEMBER_LEN);
  for (unsigned i = 0; i < a->nr_members; i++) {
    const struct assembled_member *am = &a->member[i];

    assert (am->dev <= SB_MAX_DEVICES);
    assert (am->role == MEMBER_UNLISTED || am->dev < SB_MAX_DEVICES);
    assert (am->cursor <= a->sb.l.data_len);
    for (unsigned j = 0; j < i && am->dev < SB_MAX_DEVICES; j++)
      assert (a->member[j].dev != am->dev);
    if (am->role != MEMBER_CURRENT)
      continue;
    assert (a->sb.device[am->dev].slot < n);
    slots |= BIT (a->sb.device[am->dev].slot);
  }
  assert (nr_bits (slots) >= a->sb.g.k);
}

/* ---- changes ------------------------------------------------------------ */

static struct disk *
disk_of (const struct assembly *a, unsigned dev)
{
  for (unsigned i = 0; i < a->nr_members; i++)
    if (a->member[i].dev == dev)
      return (struct disk *) a->member[i].member;
  return NULL;
}

/* Write what the phase wants to each taker, or fail it. */
static void
write_takers (struct assembly *a, struct rng *r, unsigned fail_in,
              struct device_set *failed)
{
  const enum membership_phase phase = a->membership.phase;
  struct device_set takers;

  *failed = (struct device_set) {{ 0, 0 }};
  membership_takers (&a->membership, &takers);
  for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++) {
    struct disk *d;

    if (!device_set_has (&takers, dev))
      continue;
    d = disk_of (a, dev);
    if (d == NULL || (fail_in && rng_below (r, fail_in) == 0)) {
      device_set_add (failed, dev);
      if (d)
        d->failed = true;
      continue;
    }
    for (enum sb_copy copy = 0; copy < SB_NR_COPIES; copy++) {
      const bool accept = copy == SB_A2 || copy == SB_B2;
      struct superblock sb = a->sb;

      if (phase != MEMBERSHIP_TELL && accept != (phase == MEMBERSHIP_ACCEPT))
        continue;
      membership_fill (&a->membership, dev, &sb);
      sb.copy = copy;
      superblock_encode (&sb, d->sb[copy]);
      assert (superblock_decode (d->sb[copy], copy, &sb, NULL) == SB_OK);
    }
  }
}

/* True: the record is in force. */
static bool
run_changes (struct assembly *a, const uint8_t *head)
{
  struct membership *ms = &a->membership;
  struct rng r = { head[5] };

  membership_begin_open (ms, a->found, a->nr_members, head[6] & 1);
  for (unsigned i = 0; ms->phase != MEMBERSHIP_IDLE &&
         ms->phase != MEMBERSHIP_STOPPED; i++) {
    const enum membership_phase phase = ms->phase;
    struct device_set failed;

    assert (i < 100);
    write_takers (a, &r, head[7] % 16, &failed);
    if (phase == MEMBERSHIP_PROPOSE)
      membership_proposed (ms, &failed);
    else if (phase == MEMBERSHIP_ACCEPT)
      membership_accepted (ms, &failed);
    else
      membership_told (ms, &failed);
  }
  return ms->phase == MEMBERSHIP_IDLE;
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  struct assembly a;
  struct step s;
  bool idle;

  if (size < STEPS_HEAD)
    return 0;
  begin_array (data);
  for (unsigned i = 0; i < MAX_STEPS && step_get (data, size, i, &s); i++)
    carry_out (&s);
  if (open_array (data, &a) == -1)
    return 0;
  check_assembly (&a);
  idle = run_changes (&a, data);
  assembly_free (&a);
  if (idle && data[7] % 16 == 0 && data[4] % 3 != DEGRADED_REFUSE) {
    assert (open_array (data, &a) == 0);
    check_assembly (&a);
    assembly_free (&a);
  }
  return 0;
}

/* ---- inputs ------------------------------------------------------------- */

/* Records one after the other, each in some copies of some members. */
size_t
fuzzing_seed (struct rng *r, uint8_t *data, size_t max)
{
  size_t size = STEPS_HEAD;
  struct step s;

  rng_fill (r, data, STEPS_HEAD);
  for (unsigned i = 0; i <= rng_below (r, 4); i++) {
    random_step (r, NR_KINDS, &s);
    s.kind = rng_below (r, 8) ? DEVICE : rng_below (r, 2) ? LAYOUT : SHAPE;
    size = step_put (data, size, &s);
    s = (struct step) { .kind = NEXT, .a = rng_below (r, 16), .v = 1 };
    size = step_put (data, size, &s);
    s = (struct step) { .kind = WRITE, .b = rng_next (r), .v = rng_next (r) };
    if (rng_below (r, 2))
      s.b = 15;
    size = step_put (data, size, &s);
  }
  return size;
}

size_t
LLVMFuzzerCustomMutator (uint8_t *data, size_t size, size_t max, unsigned seed)
{
  struct rng r = { seed };

  if (size < STEPS_HEAD)
    return max < 65536 ? LLVMFuzzerMutate (data, size, max) :
      fuzzing_seed (&r, data, max);
  return mutate_steps (&r, data, size, max, NR_KINDS);
}
