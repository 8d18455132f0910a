/* gpuraid: say in one line why an array does not open, or which members are
 * missing.  open.c decides.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "array/membership/rules.h"
#include "common/bits.h"
#include "common/plant.h"
#include "raidmap/uuid.h"

#define TEXT(b) { .buf = (b), .len = 0 }
#define MAX_NAMES 8u            /* of a kind in one line */

/* "a, b and 3 more": the names of the members that are in one of these states,
 * and behind if that is asked for.
 */
static unsigned
add_names_of (struct text *t, const struct found *found, size_t nr,
              unsigned states, bool only_behind)
{
  unsigned n = 0;

  for (size_t i = 0; i < nr; i++) {
    if (!(states >> found[i].state & 1) || (only_behind && !found[i].behind))
      continue;
    if (n < MAX_NAMES)
      text_add (t, "%s%s", n ? ", " : "", found[i].name);
    n++;
  }
  if (n > MAX_NAMES)
    text_add (t, " and %u more", n - MAX_NAMES);
  return n;
}

static unsigned
add_names (struct text *t, const struct found *found, size_t nr,
           unsigned states)
{
  return add_names_of (t, found, nr, states, false);
}

static unsigned
count_state (const struct found *found, size_t nr, enum found_state state)
{
  unsigned n = 0;

  for (size_t i = 0; i < nr; i++)
    n += found[i].state == state;
  return n;
}

/* "slot 3", "slots 3, 5": those for which no member was found. */
static bool
add_missing (struct text *t, const struct found *found, size_t nr,
             const struct membership_decision *d)
{
  unsigned nr_slots = d->sb.g.k + d->sb.g.m, n = 0;
  uint64_t missing = LOW_BITS (nr_slots);

  for (size_t i = 0; i < nr; i++)
    if (found[i].dev != -1 && d->sb.device[found[i].dev].slot < nr_slots &&
        found[i].state != FOUND_UNLISTED)
      missing &= ~BIT (d->sb.device[found[i].dev].slot);
  FOR_EACH_BIT (s, missing)
    text_add (t, n++ ? ", %u" : nr_bits (missing) == 1 ? "slot %u" :
              "slots %u", s);
  return missing != 0;
}

bool
refuse_unsound (const struct found *f, struct membership_decision *d)
{
  struct text t = TEXT (d->why);
  const struct superblock *first = found_newest (f);
  bool corrupt = false;

  for (unsigned c = 0; c < SB_NR_COPIES; c++) {
    if (f->result[c] == SB_TOO_NEW) {
      text_add (&t, "%s: made by a newer version of gpuraid", f->name);
      return true;
    }
    corrupt |= f->result[c] == SB_CORRUPT;
  }
  if (first == NULL) {
    text_add (&t, corrupt ? "%s: all copies of its superblock are damaged" :
              "%s: not a member of an array: no superblock", f->name);
    return true;
  }
  for (unsigned c = 0; c < SB_NR_COPIES; c++)
    if (f->result[c] == SB_OK &&
        (!uuid_equal (&f->sb[c].array_uuid, &first->array_uuid) ||
         !uuid_equal (&f->sb[c].member_uuid, &first->member_uuid) ||
         rules_differs (&f->sb[c], first) != NULL)) {
      text_add (&t, "%s: its superblock copies are of different members",
                f->name);
      return true;
    }
  return false;
}

/* The member whose array has the most of those found. */
static size_t
most_common (const struct found *found, size_t nr)
{
  size_t best = 0, best_count = 0;

  for (size_t i = 0; i < nr; i++) {
    size_t count = 0;

    for (size_t j = 0; j < nr; j++)
      count += uuid_equal (&found_newest (&found[i])->array_uuid,
                           &found_newest (&found[j])->array_uuid);
    if (count > best_count) {
      best = i;
      best_count = count;
    }
  }
  return best;
}

bool
refuse_unlike (const struct found *found, size_t nr,
               struct membership_decision *d)
{
  struct text t = TEXT (d->why);
  size_t ref = most_common (found, nr);
  const struct superblock *a = found_newest (&found[ref]), *b;
  const char *what;

  for (size_t i = 0; i < nr; i++) {
    b = found_newest (&found[i]);
    if (!uuid_equal (&a->array_uuid, &b->array_uuid)) {
      text_add (&t, "%s: a member of another array than %s: leave out those "
                "of one, or give uuid=", found[i].name, found[ref].name);
      return true;
    }
    what = rules_differs (a, b);
    if (what != NULL) {
      text_add (&t, "%s: not like %s of the same array: %s differs",
                found[i].name, found[ref].name, what);
      return true;
    }
    for (size_t j = 0; j < i; j++)
      if (!PLANTED ("member-twice") &&
          uuid_equal (&found_newest (&found[j])->member_uuid,
                      &b->member_uuid)) {
        text_add (&t, "%s and %s are the same member, or one is a copy of "
                  "the other: leave one out", found[j].name, found[i].name);
        return true;
      }
  }
  return false;
}

void
refuse_none (struct membership_decision *d)
{
  struct text t = TEXT (d->why);

  text_add (&t, "no member was found: name those of an array (gpuraid scan "
            "finds them), or make one with gpuraid create");
}

void
refuse_no_record (const struct found *found,
                  struct membership_decision *d)
{
  struct text t = TEXT (d->why);

  text_add (&t, d->max_epoch > UINT64_MAX / 2 ?
            "%s: no epoch is left" :
            "%s: creating this array was cut short: create it again",
            found[0].name);
}

/* Whether this record was accepted or named on a member. */
static bool
has_record (const struct found *f, const struct ballot *b)
{
  for (unsigned c = 0; c < SB_NR_COPIES; c++) {
    const struct record *r = &f->sb[c].record;

    if (f->result[c] == SB_OK &&
        ((copy_is_accepted (c) && ballot_equal (&r->self.ballot, b)) ||
         ballot_equal (&r->parent.ballot, b) ||
         ballot_equal (&r->base.ballot, b)))
      return true;
  }
  return false;
}

/* The members with this record, and the newest epoch that one of them has
 * accepted: gpuraid examine shows that too.
 */
static void
add_side (struct text *t, const struct found *found, size_t nr,
          const struct ballot *b)
{
  uint64_t epoch = b->epoch;
  unsigned n = 0;

  for (size_t i = 0; i < nr; i++)
    for (unsigned c = 0; c < SB_NR_COPIES; c++)
      if (copy_is_accepted (c) && found[i].result[c] == SB_OK &&
          has_record (&found[i], b))
        epoch = MAX (epoch, found[i].sb[c].record.self.ballot.epoch);
  text_add (t, "epoch %" PRIu64 " on ", epoch);
  for (size_t i = 0; i < nr; i++)
    if (has_record (&found[i], b) && n++ < MAX_NAMES)
      text_add (t, "%s%s", n > 1 ? ", " : "", found[i].name);
  if (n > MAX_NAMES)
    text_add (t, " and %u more", n - MAX_NAMES);
}

void
refuse_branch (const struct found *found, size_t nr,
               const struct ballot *winner, const struct ballot *other,
               struct membership_decision *d)
{
  struct text t = TEXT (d->why);

  text_add (&t, "the array was written in two ways, once without the other "
            "side: ");
  add_side (&t, found, nr, winner);
  text_add (&t, "; ");
  add_side (&t, found, nr, other);
  text_add (&t, ": leave out the members of the side to give up, and when "
            "it runs rebuild onto them: gpuraid replace --force");
}

/* Why these are out of date. */
static void
add_older (struct text *t, const struct found *found, size_t nr)
{
  unsigned n = 0;

  for (size_t i = 0; i < nr; i++) {
    if (!found[i].older)
      continue;
    if (n < MAX_NAMES)
      text_add (t, "%s%s", n ? ", " :
                t->len && t->buf[t->len - 1] != '\n' ? "; " : "",
                found[i].name);
    n++;
  }
  if (n > MAX_NAMES)
    text_add (t, " and %u more", n - MAX_NAMES);
  if (n > 0)
    text_add (t, ": an older copy of the member, such as a snapshot");
}

void
refuse_quorum (const struct found *found, size_t nr,
               enum degraded_policy policy, const struct quorum *q,
               struct membership_decision *d)
{
  static const struct {
    enum found_state state;
    const char *what;
  } useless[] = {
    { FOUND_STALE, "out of date" },
    { FOUND_FAILED, "taken out earlier, and out of date" },
    { FOUND_TARGET, "not rebuilt yet" },
  };
  struct text t = TEXT (d->why);

  text_add (&t, "too few members: ");
  if (!add_names (&t, found, nr, 1u << FOUND_CURRENT))
    text_add (&t, "none");
  text_add (&t, " found with current data (%u)", q->current);
  if (!q->data)
    text_add (&t, ", %u slots needed", d->sb.g.k);
  else if (policy == DEGRADED_REFUSE && d->degraded)
    text_add (&t, ", all %u slots needed with degraded=refuse",
              rules_counted_slots (&d->sb.record.self));
  else if (!q->ok)
    text_add (&t, ", %u needed", q->need);
  else
    text_add (&t, ", and of the %u members before the last change %u, %u "
              "current; %u needed, %u current",
              device_set_count (&d->sb.record.base.active), q->base_there,
              q->base_current, q->base_need, q->base_need_current);
  for (size_t i = 0; i < ARRAY_LEN (useless); i++)
    if (count_state (found, nr, useless[i].state) > 0) {
      text_add (&t, "; %s: ", useless[i].what);
      add_names (&t, found, nr, 1u << useless[i].state);
    }
  add_older (&t, found, nr);
  text_add (&t, "; missing: ");
  if (!add_missing (&t, found, nr, d))
    text_add (&t, "none");
  if (q->back)
    text_add (&t, "; add the missing members, or if they are lost use "
              "degraded=force: it goes back to epoch %" PRIu64, q->back);
  else
    text_add (&t, "; add the missing members%s", !q->data ? "" :
            policy == DEGRADED_REFUSE && q->ok && q->base_ok ?
            ", or use degraded=allow" :
            ", or use degraded=force if they are lost");
}

static void
add_kind (struct text *t, const struct found *found, size_t nr,
          enum found_state state, const char *what)
{
  if (count_state (found, nr, state) == 0)
    return;
  if (t->len && t->buf[t->len - 1] != '\n')
    text_add (t, "; ");
  add_names (t, found, nr, 1u << state);
  text_add (t, ": %s", what);
}

static void
add_behind (struct text *t, const struct found *found, size_t nr,
            const struct superblock *sb)
{
  unsigned n;

  if (sb->checksum == CHECKSUM_NONE) {
    text_add (t, "blocks written since then, and those in their rows, may be "
              "lost or wrong: check the file systems\n");
    return;
  }
  n = add_names_of (t, found, nr, 1u << FOUND_CURRENT, true);
  if (n == 0)
    text_add (t, "what was written since then is lost");
  else
    text_add (t, " %s behind: in regions that were written since then %s "
              "blocks are lost",
              n == 1 ? "is" : "are", n == 1 ? "its" : "their");
  text_add (t, ": check the file systems\n");
}

/* What force did, in lines of its own. */
static void
add_forced (struct text *t, const struct found *found, size_t nr,
            const struct quorum *q, const struct membership_decision *d)
{
  if (q->ok && q->base_ok)
    return;
  text_add (t, "degraded=force: ");
  if (d->past.epoch)
    text_add (t, "of epoch %" PRIu64 ", the newest, too few members are "
              "there: going back to ", d->past.epoch);
  text_add (t, "epoch %" PRIu64 ", with ", d->sb.record.self.ballot.epoch);
  add_names (t, found, nr, 1u << FOUND_CURRENT);
  text_add (t, "\n");
  if (d->past.epoch) {
    text_add (t, "degraded=force: ");
    add_behind (t, found, nr, &d->sb);
  }
  text_add (t, "degraded=force: once this array is open for writing, members "
            "that went on without these are refused: gpuraid replace --force "
            "takes them as new ones\n");
}

void
say_notice (const struct found *found, size_t nr,
            enum degraded_policy policy, const struct quorum *q,
            struct membership_decision *d)
{
  struct text t = TEXT (d->notice), missing = TEXT (d->why);
  size_t forced;

  if (policy == DEGRADED_FORCE)
    add_forced (&t, found, nr, q, d);
  forced = t.len;
  if (add_missing (&missing, found, nr, d))
    text_add (&t, "missing: %s", d->why);
  d->why[0] = '\0';
  add_kind (&t, found, nr, FOUND_STALE,
            policy == DEGRADED_FORCE ? "out of date, left alone" :
            "out of date, brought up to date once the array is open for "
            "writing");
  add_older (&t, found, nr);
  add_kind (&t, found, nr, FOUND_FAILED,
            "failed before, out until readd or replace");
  add_kind (&t, found, nr, FOUND_TARGET, "not rebuilt yet");
  add_kind (&t, found, nr, FOUND_UNLISTED, "replaced since, left alone");
  if (t.len > 0 && t.len == forced)
    d->notice[t.len - 1] = '\0';
}
