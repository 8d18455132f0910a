/* gpuraid: gpuraid examine: print superblocks, and what they make together.
 *
 * Takes no lock and changes nothing.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "array/plan/code.h"
#include "array/stores/copies.h"
#include "cli/cli.h"
#include "cli/offline/examine.h"
#include "cli/offline/short-ring.h"
#include "cli/offline/udev.h"
#include "cli/show/render.h"
#include "cli/show/text.h"
#include "common/bits.h"
#include "common/cleanup.h"
#include "common/json-text.h"
#include "common/log.h"
#include "control/reply.h"
#include "raidmap/journal.h"
#include "raidmap/uuid.h"

/* What is printed of each member. */
enum form {
  FORM_TEXT,
  FORM_BRIEF,
  FORM_JSON,
  FORM_UDEV,                    /* and no message about what is no member */
};

static const char *const copy_name[SB_NR_COPIES] = { "A1", "A2", "B1", "B2" };

static const char *const state_name[] = {
  [DEVICE_NONE] = "unlisted",
  [DEVICE_ACTIVE] = "active",
  [DEVICE_FAILED] = "failed",
  [DEVICE_MISSING] = "missing",
  [DEVICE_REBUILDING] = "rebuilding",
  [DEVICE_SPARE] = "spare",
};

struct examined {
  struct found f;
  const char *why[SB_NR_COPIES];
  const struct superblock *sb;  /* what the member last accepted, or, if that is
                                 * lost, was proposed */
  struct device own;            /* its entry; state DEVICE_NONE: unlisted */
  bool has_moved;               /* it is widened, and the member's journal says
                                 * how far: */
  uint64_t moved;               /* bytes of a member */
};

static void
read_moved (struct member *m, struct examined *e)
{
  uint8_t buf[BLOCK_LEN] __attribute__ ((aligned (BLOCK_LEN)));
  const struct ring_id id = ring_id_of (e->sb, e->own.slot);
  struct ring_header h;

  for (unsigned which = 0; which < 2; which++)
    if (m->ops->pread (m, buf, sizeof buf,
                       e->sb->l.ring_off + which * BLOCK_LEN) == 0 &&
        ring_header_decode (buf, &id, which, &h)) {
      e->has_moved = true;
      e->moved = MAX (e->moved, MIN (h.frontier * BLOCK_LEN,
                                     e->sb->l.data_len));
    }
}

/* 0, or -1 reported. */
static int
examine (struct member *m, enum form form, struct examined *e)
{
  bool blank = true;
  int err, dev;

  err = copies_read (m, &e->f, e->why);
  if (err) {
    log_error ("read: %s: %s", m->path, strerror (err));
    return -1;
  }
  e->sb = found_accepted (&e->f);
  if (e->sb == NULL)
    e->sb = found_newest (&e->f);
  if (e->sb == NULL) {
    for (enum sb_copy copy = 0; copy < SB_NR_COPIES; copy++)
      if (e->f.result[copy] != SB_BLANK && blank) {
        log_error ("%s: no sound gpuraid superblock (%s: %s): open the array "
                   "without it, and replace it", m->path, copy_name[copy],
                   e->why[copy]);
        blank = false;
      }
    if (blank && form != FORM_UDEV)
      log_error ("%s: no gpuraid superblock: it is no member (gpuraid scan "
                 "finds members)", m->path);
    return -1;
  }
  dev = membership_find (e->sb->device, &e->sb->member_uuid);
  e->own = dev == -1 ? (struct device) { .slot = SLOT_NONE }
    : e->sb->device[dev];
  if (e->sb->g.widening && e->own.slot != SLOT_NONE)
    read_moved (m, e);
  return 0;
}

static const char *
consistency_name (const struct superblock *sb)
{
  return sb->consistency == CONSISTENCY_NONE ? "none" : "journal";
}

static const char *
checksum_name (const struct superblock *sb)
{
  return sb->checksum == CHECKSUM_NONE ? "none" : "crc32c";
}

static const char *
copy_text (const struct examined *e, enum sb_copy copy)
{
  switch (e->f.result[copy]) {
  case SB_OK: return "good";
  case SB_BLANK: return "blank";
  case SB_TOO_NEW: return "too new";
  default: return "damaged";
  }
}

/* ---- for a person ---------------------------------------------------- */

static void
show_devices (const struct superblock *sb)
{
  char uuid[UUID_TEXT_LEN];

  for (unsigned i = 0; i < SB_MAX_DEVICES; i++) {
    const struct device *d = &sb->device[i];

    if (d->state == DEVICE_NONE)
      continue;
    printf ("    ");
    if (d->slot == SLOT_NONE)
      printf ("%7s", "");
    else
      printf ("slot %-2u", d->slot);
    printf ("  %s  %s", uuid_text (&d->uuid, uuid), state_name[d->state]);
    if (d->state == DEVICE_REBUILDING)
      printf (", %" PRIu64 " of %" PRIu64 " bytes", d->cursor,
              sb->l.data_len);
    printf ("\n");
  }
}

static void
show_widening (const struct examined *e)
{
  const struct geometry *g = &e->sb->g;

  printf ("  widened     from %u+%u", g->k - 1, g->m);
  if (e->has_moved)
    printf (", %" PRIu64 " of %" PRIu64 " bytes of a member have moved",
            e->moved, e->sb->l.data_len);
  printf ("\n");
}

static void
show (const struct member *m, const struct examined *e)
{
  const struct superblock *sb = e->sb;
  char uuid[UUID_TEXT_LEN], size[CLI_SIZE_LEN];

  text_clean (stdout, m->path);
  printf (":\n");
  printf ("  array       %s\n", uuid_text (&sb->array_uuid, uuid));
  if (sb->label[0])
    printf ("  label       %s\n", sb->label);
  printf ("  geometry    %u+%u, chunk %s, code %s", sb->g.k, sb->g.m,
          cli_size (sb->g.chunk, size), code_name (sb->code));
  if (sb->code != CODE_RS)
    printf (" w %u", sb->w);
  printf (", consistency %s, checksum %s\n", consistency_name (sb),
          checksum_name (sb));
  if (sb->g.widening)
    show_widening (e);
  if (sb->incompat & SB_INCOMPAT_MULTIHOST)
    printf ("  hosts       several reach the members (multihost=yes)\n");
  printf ("  size        %s (%" PRIu64 " bytes)\n",
          cli_size (sb->g.size, size), sb->g.size);
  printf ("  member      %s, ", uuid_text (&sb->member_uuid, uuid));
  if (e->own.slot != SLOT_NONE)
    printf ("slot %u, ", e->own.slot);
  printf ("%s\n", state_name[e->own.state]);
  for (unsigned i = 0; i <= sb->l.nr_grown; i++) {
    struct layout_part p;

    layout_part (&sb->l, i, &p);
    printf ("  %s at %" PRIu64 ", %" PRIu64 " bytes\n",
            i == 0 ? "data       " : "grown by   ", p.data_off, p.len);
  }
  show_short_ring (&sb->l);
  printf ("  epoch       %" PRIu64 "\n", sb->record.self.ballot.epoch);
  printf ("  shut down   %s\n", sb->clean ? "cleanly" : "not, or running");
  if (sb->host[0]) {
    printf ("  written by  ");
    text_clean (stdout, sb->host);
    printf ("\n");
  }
  printf ("  copies     ");
  for (enum sb_copy copy = 0; copy < SB_NR_COPIES; copy++)
    printf (" %s %s%s%s%s", copy_name[copy], copy_text (e, copy),
            e->f.result[copy] == SB_CORRUPT ? " (" : "",
            e->f.result[copy] == SB_CORRUPT ? e->why[copy] : "",
            e->f.result[copy] == SB_CORRUPT ? ")" : "");
  printf ("\n  members\n");
  show_devices (sb);
}

/* One line. */
static void
show_brief (const struct member *m, const struct examined *e)
{
  const struct superblock *sb = e->sb;
  char uuid[UUID_TEXT_LEN], size[CLI_SIZE_LEN], slot[16] = "no slot";

  if (e->own.slot != SLOT_NONE)
    snprintf (slot, sizeof slot, "slot %u", e->own.slot);
  text_clean (stdout, m->path);
  printf ("  %s  %u+%u  %s  %s  %s  epoch %" PRIu64 "  %s%s\n",
          sb->label[0] ? sb->label : uuid_text (&sb->array_uuid, uuid),
          sb->g.k, sb->g.m, cli_size (sb->g.size, size), slot,
          state_name[e->own.state], sb->record.self.ballot.epoch,
          sb->clean ? "clean" : "not clean",
          sb->g.widening ? "  being widened" : "");
}

/* ---- for a program --------------------------------------------------- */

static void
add_string (struct json_object *o, const char *key, const char *value)
{
  json_object_object_add (o, key, json_text (value));
}

static void
add_number (struct json_object *o, const char *key, uint64_t value)
{
  json_object_object_add (o, key, json_object_new_uint64 (value));
}

static void
add_parts (struct json_object *o, const struct member_layout *l)
{
  struct json_object *parts = json_object_new_array ();

  for (unsigned i = 1; i <= l->nr_grown; i++) {
    struct json_object *part = json_object_new_object ();
    struct layout_part p;

    layout_part (l, i, &p);
    add_number (part, "start", p.start);
    add_number (part, "data_off", p.data_off);
    add_number (part, "data_len", p.len);
    add_number (part, "table_off", p.table_off);
    add_number (part, "bitmap_off", p.bitmap_off);
    json_object_array_add (parts, part);
  }
  json_object_object_add (o, "grown", parts);
}

static void
add_slot (struct json_object *o, uint8_t slot)
{
  json_object_object_add (o, "slot", slot == SLOT_NONE ? NULL :
                          json_object_new_int (slot));
}

static struct json_object *
devices_to_json (const struct superblock *sb)
{
  struct json_object *list = json_object_new_array ();
  char uuid[UUID_TEXT_LEN];

  for (unsigned i = 0; i < SB_MAX_DEVICES; i++) {
    const struct device *d = &sb->device[i];
    struct json_object *o;

    if (d->state == DEVICE_NONE)
      continue;
    o = json_object_new_object ();
    add_string (o, "uuid", uuid_text (&d->uuid, uuid));
    add_slot (o, d->slot);
    add_string (o, "state", state_name[d->state]);
    if (d->state == DEVICE_REBUILDING)
      add_number (o, "cursor", d->cursor);
    json_object_array_add (list, o);
  }
  return list;
}

static struct json_object *
to_json (const struct member *m, const struct examined *e)
{
  const struct superblock *sb = e->sb;
  struct json_object *o = json_object_new_object ();
  struct json_object *copies = json_object_new_object ();
  char uuid[UUID_TEXT_LEN];

  add_string (o, "path", m->path);
  add_string (o, "uuid", uuid_text (&sb->array_uuid, uuid));
  json_object_object_add (o, "label", sb->label[0] ?
                          json_text (sb->label) : NULL);
  add_string (o, "member_uuid", uuid_text (&sb->member_uuid, uuid));
  add_slot (o, e->own.slot);
  add_string (o, "state", state_name[e->own.state]);
  add_number (o, "k", sb->g.k);
  add_number (o, "m", sb->g.m);
  add_number (o, "chunk", sb->g.chunk);
  add_number (o, "size", sb->g.size);
  json_object_object_add (o, "widening",
                          json_object_new_boolean (sb->g.widening));
  json_object_object_add (o, "moved", e->has_moved ?
                          json_object_new_uint64 (e->moved) : NULL);
  add_string (o, "code", code_name (sb->code));
  add_number (o, "w", sb->w);
  add_string (o, "consistency", consistency_name (sb));
  add_string (o, "checksum", checksum_name (sb));
  json_object_object_add (o, "multihost",
                          json_object_new_boolean (sb->incompat &
                                                   SB_INCOMPAT_MULTIHOST));
  add_number (o, "epoch", sb->record.self.ballot.epoch);
  add_number (o, "data_off", sb->l.data_off);
  add_number (o, "data_len", sb->l.data_len);
  add_number (o, "bitmap_off", sb->l.bitmap_off);
  add_number (o, "bitmap_len", sb->l.bitmap_len);
  add_number (o, "region_len", sb->l.region_len);
  add_parts (o, &sb->l);
  json_object_object_add (o, "clean", json_object_new_boolean (sb->clean));
  add_string (o, "host", sb->host);
  for (enum sb_copy copy = 0; copy < SB_NR_COPIES; copy++)
    add_string (copies, copy_name[copy], copy_text (e, copy));
  json_object_object_add (o, "copies", copies);
  json_object_object_add (o, "members", devices_to_json (sb));
  return o;
}

/* What was read is added to x, if it is not NULL. */
static int
examine_path (const char *path, enum form form, struct json_object *list,
              struct examined_array *x)
{
  CLEANUP_FREE struct examined *e = calloc (1, sizeof *e);
  struct member *m;
  int r = -1;

  if (e == NULL) {
    log_error ("calloc: %m");
    return -1;
  }
  m = member_open (path, MEMBER_NOLOCK, 0);
  if (m == NULL) {
    if (errno == ENOENT || errno == ENXIO || errno == EIO)
      log_error ("open: %s: %m", path);
    return -1;
  }
  if (examine (m, form, e) == 0) {
    if (form == FORM_JSON)
      json_object_array_add (list, to_json (m, e));
    else if (form == FORM_BRIEF)
      show_brief (m, e);
    else if (form == FORM_UDEV)
      udev_show (e->sb);
    else
      show (m, e);
    if (x != NULL) {
      x->found[x->nr] = e->f;
      x->found[x->nr++].name = path;
    }
    r = 0;
  }
  member_close (m);
  return r;
}

int
cmd_examine (int argc, char **argv)
{
  static const struct option options[] = {
    { "brief", no_argument, NULL, 'b' },
    { "json", no_argument, NULL, 'j' },
    { "udev", no_argument, NULL, 'u' },
    { NULL },
  };
  CLEANUP_FREE struct found *found = NULL;
  struct examined_array x = { .nr = 0 };
  struct json_object *list = NULL;
  enum form form = FORM_TEXT;
  int opt, r = EXIT_SUCCESS;

  opterr = 0;
  while ((opt = getopt_long (argc, argv, "", options, NULL)) != -1) {
    if (opt == '?' || form != FORM_TEXT)
      return CLI_USAGE;
    form = opt == 'j' ? FORM_JSON : opt == 'b' ? FORM_BRIEF : FORM_UDEV;
  }
  /* Properties are those of one device. */
  if (optind == argc || (form == FORM_UDEV && optind + 1 != argc))
    return CLI_USAGE;

  if (form == FORM_JSON)
    list = json_object_new_array ();
  if (form == FORM_TEXT && optind + 1 < argc) {
    x.found = found = calloc (argc - optind, sizeof *found);
    if (found == NULL) {
      log_error ("calloc: %m");
      return EXIT_FAILURE;
    }
  }
  for (; optind < argc; optind++)
    if (examine_path (argv[optind], form, list, found ? &x : NULL) == -1)
      r = EXIT_FAILURE;
  if (x.nr > 1 && examine_array (&x) == -1)
    r = EXIT_FAILURE;
  if (form == FORM_JSON) {
    cli_print_json (list);
    json_object_put (list);
  }
  return r;
}
