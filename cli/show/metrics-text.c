/* gpuraid: metrics in the text format of Prometheus.
 *
 * One table: each family has its name, what it means, and where in the status
 * its values are.  Units are bytes and seconds, as Prometheus wants.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "array/array.h"
#include "cli/server/remote.h"
#include "cli/show/metrics.h"
#include "common/bits.h"

struct family {
  const char *name;             /* without gpuraid_ */
  enum { COUNTER, GAUGE } type;
  const char *help;
  /* Write the samples of one array; NULL: write_key. */
  void (*write) (FILE *fp, const struct family *f,
                 const struct metrics_source *s);
  const char *object, *key;     /* where in the status; object may be NULL */
  bool ns;                      /* the value is in nanoseconds */
};

/* ---- one sample ------------------------------------------------------- */

static void
write_label (FILE *fp, const char *name, const char *value)
{
  fprintf (fp, "%s=\"", name);
  for (const char *p = value ? value : ""; *p; p++)
    switch (*p) {
    case '\\': fputs ("\\\\", fp); break;
    case '"': fputs ("\\\"", fp); break;
    case '\n': fputs ("\\n", fp); break;
    default: fputc (*p, fp);
    }
  fputc ('"', fp);
}

static void
begin (FILE *fp, const struct family *f, const struct metrics_source *s)
{
  fprintf (fp, "gpuraid_%s{", f->name);
  write_label (fp, "array", s->array);
}

static void
label (FILE *fp, const char *name, const char *value)
{
  fputc (',', fp);
  write_label (fp, name, value);
}

static void
label_number (FILE *fp, const char *name, uint64_t value)
{
  fprintf (fp, ",%s=\"%" PRIu64 "\"", name, value);
}

static void
end (FILE *fp, uint64_t value)
{
  fprintf (fp, "} %" PRIu64 "\n", value);
}

/* A number, or true or false; -1: neither is there. */
static int
get_value (struct json_object *o, const char *key, uint64_t *value)
{
  struct json_object *v;

  if (!json_object_is_type (o, json_type_object) ||
      !json_object_object_get_ex (o, key, &v))
    return -1;
  if (json_object_is_type (v, json_type_boolean))
    *value = json_object_get_boolean (v);
  else if (json_object_is_type (v, json_type_int))
    *value = json_object_get_uint64 (v);
  else
    return -1;
  return 0;
}

static void
end_value (FILE *fp, const struct family *f, uint64_t value)
{
  if (f->ns)
    fprintf (fp, "} %" PRIu64 ".%09" PRIu64 "\n",
             value / UINT64_C (1000000000), value % UINT64_C (1000000000));
  else
    end (fp, value);
}

/* ---- the array ---------------------------------------------------------- */

static void
write_key (FILE *fp, const struct family *f, const struct metrics_source *s)
{
  struct json_object *o =
    f->object ? get_object (s->status, f->object) : s->status;
  uint64_t value;

  if (get_value (o, f->key, &value) == -1)
    return;
  begin (fp, f, s);
  end_value (fp, f, value);
}

/* rebuild, resync, reshape and scrub are null when they do not run; then all is
 * 0.
 */
static void
write_work (FILE *fp, const struct family *f, const struct metrics_source *s)
{
  struct json_object *o = get_object (s->status, f->object);

  if (!json_object_object_get_ex (s->status, f->object, NULL))
    return;
  begin (fp, f, s);
  end (fp, f->key ? get_u64 (o, f->key) : o != NULL);
}

static void
write_paused (FILE *fp, const struct family *f, const struct metrics_source *s)
{
  struct json_object *o = get_object (s->status, f->object);

  begin (fp, f, s);
  end (fp, get_bool (o, "paused") || get_bool (o, "interrupted"));
}

static void
write_reshape (FILE *fp, const struct family *f,
               const struct metrics_source *s)
{
  static const char *const kinds[] = { "parity", "widen" };
  static const char *const states[] = {
    "moving", "paused", "waiting", "stopped", "finishing",
  };
  struct json_object *o = get_object (s->status, "reshape");
  const char *kind = get_text (o, "kind"), *state = get_text (o, "state");

  if (!json_object_object_get_ex (s->status, "reshape", NULL))
    return;
  for (size_t i = 0; i < ARRAY_LEN (kinds) * ARRAY_LEN (states); i++) {
    const char *k = kinds[i / ARRAY_LEN (states)];
    const char *st = states[i % ARRAY_LEN (states)];

    begin (fp, f, s);
    label (fp, "kind", k);
    label (fp, "state", st);
    end (fp, kind && state && strcmp (kind, k) == 0 &&
         strcmp (state, st) == 0);
  }
}

static void
write_up (FILE *fp, const struct family *f, const struct metrics_source *s)
{
  begin (fp, f, s);
  end (fp, s->status != NULL);
}

static void
write_info (FILE *fp, const struct family *f, const struct metrics_source *s)
{
  static const char *const keys[] = {
    "uuid", "label", "code", "coder", "loop",
  };

  begin (fp, f, s);
  for (size_t i = 0; i < ARRAY_LEN (keys); i++)
    label (fp, keys[i], get_text (s->status, keys[i]));
  label_number (fp, "data_members", get_u64 (s->status, "k"));
  label_number (fp, "parity_members", get_u64 (s->status, "m"));
  end (fp, 1);
}

static void
write_state (FILE *fp, const struct family *f, const struct metrics_source *s)
{
  static const char *const states[] = { "healthy", "degraded", "failed" };
  const char *state = get_text (s->status, "state");

  for (size_t i = 0; state && i < ARRAY_LEN (states); i++) {
    begin (fp, f, s);
    label (fp, "state", states[i]);
    end (fp, strcmp (state, states[i]) == 0);
  }
}

static bool
lists (struct json_object *list, const char *text)
{
  for (size_t i = 0; i < list_len (list); i++) {
    struct json_object *o = list_at (list, i);

    if (json_object_is_type (o, json_type_string) &&
        strcmp (json_object_get_string (o), text) == 0)
      return true;
  }
  return false;
}

static void
write_reasons (FILE *fp, const struct family *f,
               const struct metrics_source *s)
{
  static const char *const reasons[] = { ARRAY_WHY_TEXTS };
  struct json_object *list = get_object (s->status, "reasons");

  for (size_t i = 0; i < ARRAY_LEN (reasons); i++) {
    begin (fp, f, s);
    label (fp, "reason", reasons[i]);
    end (fp, lists (list, reasons[i]));
  }
}

static void
write_read_only (FILE *fp, const struct family *f,
                 const struct metrics_source *s)
{
  begin (fp, f, s);
  end (fp, get_text (s->status, "read_only") != NULL);
}

/* No sample if none has failed. */
static void
write_failed_change (FILE *fp, const struct family *f,
                     const struct metrics_source *s)
{
  struct json_object *o = get_object (s->status, "failed_change");

  if (o == NULL)
    return;
  begin (fp, f, s);
  label (fp, "message", get_text (o, "message"));
  end (fp, get_u64 (o, "time"));
}

/* 0, with empty labels, if it is not attached. */
static void
write_attached (FILE *fp, const struct family *f,
                const struct metrics_source *s)
{
  struct json_object *o = get_object (s->status, "attached");
  struct json_object *list = get_object (o, "mounted");

  begin (fp, f, s);
  label (fp, "device", get_text (o, "device"));
  label (fp, "way", get_text (o, "way"));
  label (fp, "mountpoint", json_object_get_string (list_at (list, 0)));
  end (fp, o != NULL);
}

/* ---- its members and engines -------------------------------------------- */

static bool
same_text (const char *a, const char *b)
{
  return a && b ? strcmp (a, b) == 0 : a == b;
}

/* Of an entry without a path: a spare that is missing has only that. */
static const char *
name_of (struct json_object *m)
{
  return get_text (m, "path") ? get_text (m, "path") : get_text (m, "uuid");
}

/* Has an earlier entry the same slot and path, so that both would be one
 * series?
 */
static bool
is_repeated (struct json_object *members, size_t i)
{
  struct json_object *m = list_at (members, i);

  for (size_t j = 0; j < i; j++) {
    struct json_object *o = list_at (members, j);

    if (same_text (name_of (o), name_of (m)) &&
        get_u64 (o, "slot") == get_u64 (m, "slot"))
      return true;
  }
  return false;
}

static void
begin_member (FILE *fp, const struct family *f,
              const struct metrics_source *s, struct json_object *m)
{
  uint64_t slot;

  begin (fp, f, s);
  if (get_value (m, "slot", &slot) == 0)
    label_number (fp, "slot", slot);
  else
    label (fp, "slot", "");
  label (fp, "path", name_of (m));
}

static void
write_member_state (FILE *fp, const struct family *f,
                    const struct metrics_source *s, struct json_object *m)
{
  static const char *const states[] = {
    "active", "failed", "missing", "rebuilding", "spare",
  };
  const char *state = get_text (m, "state");

  for (size_t i = 0; state && i < ARRAY_LEN (states); i++) {
    begin_member (fp, f, s, m);
    label (fp, "state", states[i]);
    end (fp, strcmp (state, states[i]) == 0);
  }
}

/* Members without an error have no sample. */
static void
write_last_error (FILE *fp, const struct family *f,
                  const struct metrics_source *s, struct json_object *m)
{
  struct json_object *e = get_object (m, "last_error");

  if (e == NULL)
    return;
  begin_member (fp, f, s, m);
  label (fp, "operation", get_text (e, "operation"));
  label (fp, "message", get_text (e, "message"));
  end (fp, get_u64 (e, "time"));
}

static void
write_member (FILE *fp, const struct family *f,
              const struct metrics_source *s, struct json_object *m)
{
  uint64_t value;

  if (strcmp (f->key, "state") == 0)
    write_member_state (fp, f, s, m);
  else if (strcmp (f->key, "last_error") == 0)
    write_last_error (fp, f, s, m);
  else if (strcmp (f->key, "up") == 0 ||
           get_value (m, f->key, &value) == 0) {
    if (strcmp (f->key, "up") == 0)
      value = same_text (get_text (m, "state"), "active");
    begin_member (fp, f, s, m);
    end_value (fp, f, value);
  }
}

static void
write_members (FILE *fp, const struct family *f,
               const struct metrics_source *s)
{
  struct json_object *members = get_object (s->status, "members");

  for (size_t i = 0; i < list_len (members); i++)
    if (!is_repeated (members, i))
      write_member (fp, f, s, list_at (members, i));
}

/* Two engines may have the same name: they also have numbers. */
static void
write_engines (FILE *fp, const struct family *f,
               const struct metrics_source *s)
{
  struct json_object *engines = get_object (s->status, "engines");

  for (size_t i = 0; i < list_len (engines); i++) {
    struct json_object *e = list_at (engines, i);
    uint64_t value = get_text (e, "failed") != NULL;

    if (f->key && get_value (e, f->key, &value) == -1)
      continue;
    begin (fp, f, s);
    label_number (fp, "engine", i);
    label (fp, "name", get_text (e, "name"));
    end (fp, value);
  }
}

static void
write_stages (FILE *fp, const struct family *f, const struct metrics_source *s)
{
  struct json_object *stages = get_object (s->status, "stages");
  uint64_t value;

#define STAGE(key)                                      \
  if (get_value (stages, #key "_ns", &value) == 0) {    \
    begin (fp, f, s);                                   \
    label (fp, "stage", #key);                          \
    end_value (fp, f, value);                           \
  }
  ARRAY_STAGES (STAGE)
#undef STAGE
}

/* ---- all of them --------------------------------------------------------- */

#define WORK(what) \
  { what "_running", GAUGE, "Whether a " what " is under way.", \
    write_work, what }, \
  { what "_done_bytes", GAUGE, "Bytes of a member done by the " what \
    " that is under way.", write_work, what, "done" }, \
  { what "_total_bytes", GAUGE, "Bytes of a member that the " what \
    " has to do.", write_work, what, "total" }, \
  { what "_bytes_per_second", GAUGE, "Speed of the " what \
    ", in bytes of a member.", write_work, what, "bytes_per_second" }, \
  { what "_remaining_seconds", GAUGE, "Time left for the " what \
    "; 0 also if unknown.", write_work, what, "eta_seconds" }

static const struct family families[] = {
  { "array_up", GAUGE, "Whether the server of the array answers.", write_up },
  { "array_info", GAUGE, "What the array is, in labels.", write_info },
  { "array_state", GAUGE, "1 for the state that the array has.",
    write_state },
  { "array_reason", GAUGE, "1 for each reason why the array is not healthy.",
    write_reasons },
  { "array_read_only", GAUGE, "Whether the array can't be written.",
    write_read_only },
  { "array_size_bytes", GAUGE, "Size of the array.", NULL, NULL, "size" },
  { "array_data_members", GAUGE, "k: members that must be there.", NULL,
    NULL, "k" },
  { "array_parity_members", GAUGE, "m: members that may be lost.", NULL,
    NULL, "m" },
  { "array_epoch", GAUGE, "Number of the membership record.", NULL, NULL,
    "epoch" },
  { "array_connections", GAUGE, "NBD clients that are connected.", NULL,
    NULL, "connections" },
  { "array_attached", GAUGE, "The block device of this host that the array "
    "is attached as, and a place where it is mounted.", write_attached },
  { "array_lost_rows", GAUGE,
    "Rows found of which too little can be read.", NULL, NULL, "lost_rows" },
  { "failed_change_timestamp_seconds", GAUGE,
    "When the last change of a member failed, until one ends well.",
    write_failed_change },

  { "member_up", GAUGE, "Whether the member holds current data.",
    write_members, NULL, "up" },
  { "member_state", GAUGE, "1 for the state that the member has.",
    write_members, NULL, "state" },
  { "member_no_answer_seconds", GAUGE,
    "How long what waits for it has had no answer; 0: it answers.",
    write_members, NULL, "no_answer_seconds" },
  { "member_no_space", GAUGE,
    "Whether writes to the member wait for space.", write_members, NULL,
    "no_space" },
  { "member_slow", GAUGE, "Whether reads avoid the member.", write_members,
    NULL, "slow" },
  { "member_no_connection", GAUGE,
    "Whether there is no connection to the member's server.", write_members,
    NULL, "no_connection" },
  { "member_io_errors_total", COUNTER, "I/O errors of the member.",
    write_members, NULL, "errors" },
  { "member_last_error_timestamp_seconds", GAUGE,
    "When the last I/O error of the member was.", write_members, NULL,
    "last_error" },
  { "member_corrupt_blocks_total", COUNTER,
    "Blocks and table pages of the member read with another checksum.",
    write_members, NULL, "bad_sums" },
  { "member_read_operations_total", COUNTER, "Reads from the member.",
    write_members, NULL, "read_ops" },
  { "member_read_bytes_total", COUNTER, "Bytes read from the member.",
    write_members, NULL, "read_bytes" },
  { "member_read_seconds_total", COUNTER, "Time of all reads together.",
    write_members, NULL, "read_ns", true },
  { "member_read_median_seconds", GAUGE,
    "What half of its last reads for clients took at most.", write_members,
    NULL, "read_median_ns", true },
  { "member_read_p95_seconds", GAUGE,
    "What nineteen in twenty of its last reads for clients took at most.",
    write_members, NULL, "read_p95_ns", true },
  { "member_write_operations_total", COUNTER, "Writes to the member.",
    write_members, NULL, "write_ops" },
  { "member_write_bytes_total", COUNTER, "Bytes written to the member.",
    write_members, NULL, "write_bytes" },
  { "member_write_seconds_total", COUNTER, "Time of all writes together.",
    write_members, NULL, "write_ns", true },
  { "member_flush_operations_total", COUNTER, "Flushes of the member.",
    write_members, NULL, "flush_ops" },
  { "member_flush_seconds_total", COUNTER, "Time of all flushes together.",
    write_members, NULL, "flush_ns", true },

  WORK ("rebuild"),
  { "rebuild_paused", GAUGE, "Whether a rebuild is paused.", write_paused,
    "rebuild" },
  WORK ("resync"),
  { "resync_paused", GAUGE, "Whether a resync is paused.", write_paused,
    "resync" },
  WORK ("grow"),
  { "growable_bytes", GAUGE, "Bytes that gpuraid grow would add now.", NULL,
    NULL, "growable" },
  WORK ("reshape"),
  { "reshape_state", GAUGE,
    "1 for what is added, parity or data, and the state that this has.",
    write_reshape },
  WORK ("scrub"),
  { "scrub_paused", GAUGE, "Whether a scrub is paused or interrupted.",
    write_paused, "scrub" },
  { "rate_limit_bytes_per_second", GAUGE,
    "Limit for rebuild and scrub, in bytes of a member; 0 for none.", NULL,
    NULL, "rate_limit" },
  { "last_scrub_end_timestamp_seconds", GAUGE, "When the last scrub ended.",
    NULL, "last_scrub", "ended" },
  { "last_scrub_complete", GAUGE, "Whether the last scrub was not stopped.",
    NULL, "last_scrub", "complete" },
  { "last_scrub_found_blocks", GAUGE, "Wrong blocks the last scrub found.",
    NULL, "last_scrub", "found" },
  { "last_scrub_repaired_blocks", GAUGE, "Those of them it repaired.", NULL,
    "last_scrub", "repaired" },
  { "last_scrub_unlocated_rows", GAUGE,
    "Rows that do not fit, and no block is proven wrong.", NULL,
    "last_scrub", "unlocated_rows" },
  { "last_scrub_lost_rows", GAUGE, "Rows of which too little is right.",
    NULL, "last_scrub", "lost_rows" },

#define FAMILY(key, name, help)                                         \
  { name "_total", COUNTER, help, NULL, "counters", #key },
#define NO_FAMILY(key)
  ARRAY_COUNTERS (FAMILY, NO_FAMILY)
#undef FAMILY
#undef NO_FAMILY
  { "coder_engine_jobs_total", COUNTER, "Batches given to this engine.",
    write_engines, NULL, "jobs" },
  { "coder_engine_input_bytes_total", COUNTER,
    "Bytes of the inputs that this engine coded.", write_engines, NULL,
    "bytes" },
  { "coder_engine_failed", GAUGE, "Whether the engine is not used any more.",
    write_engines },

  { "stage_seconds_total", COUNTER,
    "Time of all write-outs together in this stage.", write_stages, NULL, NULL,
    true },
  { "lock_taken_total", COUNTER, "How often the array lock was taken.", NULL,
    "lock", "taken" },
  { "lock_held_seconds_total", COUNTER,
    "Time for which the array lock was held; measured for some of these.",
    NULL, "lock", "held_ns", true },

  { "cache_size_bytes", GAUGE, "Size of the cache.", NULL, "cache", "size" },
  { "cache_used_bytes", GAUGE, "Bytes of the cache in use.", NULL, "cache",
    "used" },
  { "cache_dirty_bytes", GAUGE, "Bytes not written to the members yet.", NULL,
    "cache", "dirty" },
};

static void
write_family (FILE *fp, const struct family *f,
              const struct metrics_source *source, unsigned nr)
{
  for (unsigned i = 0; i < nr; i++)
    if (source[i].status || f->write == write_up)
      (f->write ? f->write : write_key) (fp, f, &source[i]);
}

void
metrics_write (FILE *fp, const struct metrics_source *source, unsigned nr)
{
  for (size_t i = 0; i < ARRAY_LEN (families); i++) {
    const struct family *f = &families[i];
    char *text = NULL;
    size_t len = 0;
    FILE *samples = open_memstream (&text, &len);

    if (samples == NULL)
      abort ();                 /* a few KiB */
    write_family (samples, f, source, nr);
    if (fclose (samples) == EOF)
      abort ();
    if (len > 0)
      fprintf (fp, "# HELP gpuraid_%s %s\n# TYPE gpuraid_%s %s\n%s", f->name,
               f->help, f->name, f->type == COUNTER ? "counter" : "gauge",
               text);
    free (text);
  }
}
