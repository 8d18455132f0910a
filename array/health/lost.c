/* gpuraid: rows of which too few blocks can be read.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array/engine/place.h"
#include "array/health/lost.h"
#include "array/open/assembly.h"
#include "array/seats/unlocked.h"

/* The most lines to remember; others are found lost again. */
#define MAX_LINES 4096u

/* Rows that get a message: a member that is gone has millions. */
#define MAX_SAID 64u

struct lost_line {
  struct list link;
  uint64_t no;
  uint16_t blocks;              /* rows of the line */
};

/* ---- blocks ---------------------------------------------------------- */

/* The run with a line's blocks: a line never straddles two. */
static uint64_t
run_of (const struct array *a, uint64_t no, unsigned *shift)
{
  const uint64_t block = line_row (a, no);

  *shift = block % SB_LOST_BLOCKS;
  return block - *shift;
}

static struct lost_blocks *
find (struct array *a, unsigned slot, uint64_t first)
{
  for (unsigned i = 0; i < SB_MAX_LOST; i++) {
    struct lost_blocks *l = &a->sb.lost[i];

    if (l->mask && l->slot == slot && l->first == first)
      return l;
  }
  return NULL;
}

static void
count_blocks (struct array *a)
{
  a->lost->nr_blocks = 0;
  for (unsigned i = 0; i < SB_MAX_LOST; i++)
    a->lost->nr_blocks += nr_bits (a->sb.lost[i].mask);
}

static bool
add_run (struct array *a, unsigned slot, uint64_t first, uint16_t mask)
{
  struct lost_blocks *l = find (a, slot, first);

  for (unsigned i = 0; l == NULL && i < sb_max_lost (&a->sb); i++)
    if (a->sb.lost[i].mask == 0) {
      l = &a->sb.lost[i];
      *l = (struct lost_blocks) { .first = first, .slot = slot };
    }
  if (l == NULL || first >= SB_LOST_LIMIT)
    return false;
  l->mask |= mask;
  return true;
}

int
lost_init (struct array *a, const struct assembly *as)
{
  a->lost = calloc (1, sizeof *a->lost);
  if (a->lost == NULL)
    return -1;
  list_init (&a->lost->lines);
  memset (a->sb.lost, 0, sizeof a->sb.lost);
  for (unsigned i = 0; i < as->nr_members; i++) {
    const struct superblock *sb = found_accepted (&as->found[i]);

    if (as->member[i].role != MEMBER_CURRENT || sb == NULL)
      continue;
    for (unsigned j = 0; j < SB_MAX_LOST; j++) {
      const struct lost_blocks *l = &sb->lost[j];

      if (l->mask && l->slot < a->n && !add_run (a, l->slot, l->first, l->mask))
        log_notice ("slot %u: block %" PRIu64 ": too many blocks are lost to "
                    "remember this one", l->slot, l->first);
    }
  }
  count_blocks (a);
  if (a->lost->nr_blocks > 0)
    log_notice ("%u blocks were lost earlier; what needs them can't be read "
                "until it is written", a->lost->nr_blocks);
  return 0;
}

void
lost_reshaped (struct array *a)
{
  count_blocks (a);
}

void
lost_free (struct array *a)
{
  struct list *l;

  if (a->lost == NULL)
    return;
  while ((l = list_pop (&a->lost->lines)) != NULL)
    free (list_item (l, struct lost_line, link));
  free (a->lost);
}

uint16_t
lost_find_blocks (const struct array *a, uint64_t no, unsigned role)
{
  unsigned shift;
  const uint64_t first = run_of (a, no, &shift);
  const struct lost_blocks *l =
    find ((struct array *) a, line_slot (a, no, role),
          first);

  return l ? l->mask >> shift & block_mask (0, a->cell_blocks) : 0;
}

uint64_t
lost_find_roles (const struct array *a, uint64_t no, uint16_t blocks)
{
  uint64_t roles = 0;

  for (unsigned r = 0; r < a->n; r++)
    if (lost_find_blocks (a, no, r) & blocks)
      roles |= BIT (r);
  return roles;
}

uint64_t
lost_next_line (const struct array *a, uint64_t no, uint64_t end)
{
  if (a->lost->nr_blocks == 0)
    return end;
  for (unsigned i = 0; i < SB_MAX_LOST; i++)
    FOR_EACH_BIT (b, a->sb.lost[i].mask) {
      const uint64_t pos = (a->sb.lost[i].first + b) * BLOCK_LEN;
      const uint64_t line = pos / a->g.chunk * a->nr_bands +
        pos % a->g.chunk / a->cell_len;

      if (line >= no)
        end = MIN (end, line);
    }
  return end;
}

bool
lost_add (struct array *a, uint64_t no, uint64_t roles, uint16_t blocks)
{
  struct lost_blocks before[SB_MAX_LOST];
  unsigned shift;
  const uint64_t first = run_of (a, no, &shift);

  memcpy (before, a->sb.lost, sizeof before);
  FOR_EACH_BIT (r, roles)
    if (!add_run (a, line_slot (a, no, r), first, blocks << shift)) {
      memcpy (a->sb.lost, before, sizeof before);
      return false;
    }
  unlocked_close_all (a);
  count_blocks (a);
  a->wanted_save = a->saves_begun + 1;
  return true;
}

void
lost_forget_blocks (struct array *a, uint64_t no, uint64_t roles,
                    uint16_t blocks)
{
  unsigned shift;
  const uint64_t first = run_of (a, no, &shift);

  FOR_EACH_BIT (r, roles) {
    struct lost_blocks *l = find (a, line_slot (a, no, r), first);

    if (l == NULL || (l->mask & blocks << shift) == 0)
      continue;
    l->mask &= ~(blocks << shift);
    if (l->mask == 0)
      *l = (struct lost_blocks) { 0 };
    a->wanted_save = a->saves_begun + 1;
  }
  count_blocks (a);
}

/* ---- rows ------------------------------------------------------------- */

static struct lost_line *
find_line (const struct array *a, uint64_t no)
{
  list_for_each (l, &a->lost->lines) {
    struct lost_line *line = list_item (l, struct lost_line, link);

    if (line->no == no)
      return line;
  }
  return NULL;
}

/* Also where that is in the array: to find out whose data it is, and what to
 * write over.
 */
static void
say_lost (const struct array *a, uint64_t no, unsigned b)
{
  const uint64_t pos = line_pos (a, no) + b * BLOCK_LEN;
  char more[80] = "";

  if (line_nr_data (a, no) > 1)
    snprintf (more, sizeof more, " and every %u bytes up to %" PRIu64,
              a->g.chunk,
              line_address (a, no, line_nr_data (a, no) - 1) + b * BLOCK_LEN);
  log_notice ("stripe %" PRIu64 ", block %" PRIu64 " of the members: too "
              "little of this row can be read; what needs it fails: of the "
              "array %u bytes at %" PRIu64 "%s",
              line_stripe (a, no), pos / BLOCK_LEN, BLOCK_LEN,
              line_address (a, no, 0) + b * BLOCK_LEN, more);
}

void
lost_rows_add (struct array *a, uint64_t no, uint16_t blocks)
{
  struct lost_line *line = find_line (a, no);

  if (blocks == 0)
    return;
  if (line == NULL) {
    if (a->lost->nr_lines == MAX_LINES ||
        (line = calloc (1, sizeof *line)) == NULL)
      return;
    line->no = no;
    list_append (&a->lost->lines, &line->link);
    a->lost->nr_lines++;
  }
  FOR_EACH_BIT (b, blocks & ~line->blocks)
    if (a->lost->nr_said++ < MAX_SAID)
      say_lost (a, no, b);
    else if (a->lost->nr_said == MAX_SAID + 1)
      log_notice ("more rows of which too little can be read are not listed "
                  "here; gpuraid status counts them");
  line->blocks |= blocks;
}

void
lost_forget_rows (struct array *a, uint64_t no, uint16_t blocks)
{
  struct lost_line *line = find_line (a, no);

  if (line == NULL)
    return;
  line->blocks &= ~blocks;
  if (line->blocks == 0) {
    list_remove (&line->link);
    a->lost->nr_lines--;
    engine_free (a, line);
    if (a->lost->nr_lines == 0)
      a->lost->nr_said = 0;
  }
}

bool
lost_find_rows (const struct array *a, uint64_t no, uint16_t blocks)
{
  const struct lost_line *line = find_line (a, no);

  return line && (blocks & ~line->blocks) == 0;
}

unsigned
lost_rows_count (const struct array *a)
{
  unsigned nr = 0;

  list_for_each (l, &a->lost->lines)
    nr += nr_bits (list_item (l, struct lost_line, link)->blocks);
  return nr;
}
