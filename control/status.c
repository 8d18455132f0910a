/* gpuraid: the array's status as JSON.
 *
 * Gives every field of docs/control-protocol.md, including those that this
 * version does not count, so that programs need not check the version.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "array/plan/code.h"
#include "common/bits.h"
#include "common/cleanup.h"
#include "common/threads/clock.h"
#include "control/reply.h"

static const char *
state_name (enum array_state state)
{
  switch (state) {
  case ARRAY_HEALTHY: return "healthy";
  case ARRAY_DEGRADED: return "degraded";
  case ARRAY_FAILED: return "failed";
  }
  return NULL;
}

static const char *
entry_name (enum entry_state state)
{
  switch (state) {
  case ENTRY_ACTIVE: return "active";
  case ENTRY_FAILED: return "failed";
  case ENTRY_MISSING: return "missing";
  case ENTRY_REBUILDING: return "rebuilding";
  case ENTRY_SPARE: return "spare";
  }
  return NULL;
}

void
json_add (struct json_object *o, const char *key, struct json_object *value)
{
  if (o == NULL || json_object_object_add (o, key, value) != 0)
    json_object_put (value);
}

static void
add_u64 (struct json_object *o, const char *key, uint64_t n)
{
  json_add (o, key, json_object_new_uint64 (n));
}

static void
add_text (struct json_object *o, const char *key, const char *s)
{
  json_add (o, key, s ? json_text (s) : NULL);
}

/* Rounded at the end, so that two statuses seldom differ by a second. */
static void
add_time (struct json_object *o, const char *key, uint64_t ago_ns)
{
  const uint64_t now = clock_ns (CLOCK_REALTIME);

  add_u64 (o, key, (now - MIN (now, ago_ns)) / 1000000000);
}

static struct json_object *
progress_to_json (const struct array_progress *p)
{
  struct json_object *o;

  if (!p->running)
    return NULL;
  o = json_object_new_object ();
  add_u64 (o, "done", p->done);
  add_u64 (o, "total", p->total);
  add_u64 (o, "bytes_per_second", p->bytes_per_second);
  add_u64 (o, "eta_seconds", p->eta_seconds);
  return o;
}

static struct json_object *
pass_to_json (const struct array_progress *p)
{
  struct json_object *o = progress_to_json (p);

  if (o)
    json_add (o, "paused", json_object_new_boolean (p->paused));
  return o;
}

static struct json_object *
reshape_to_json (const struct array_reshape *r)
{
  static const char *const states[] = {
    [RESHAPE_MOVING] = "moving", [RESHAPE_PAUSED] = "paused",
    [RESHAPE_WAITING] = "waiting", [RESHAPE_STOPPED] = "stopped",
    [RESHAPE_FINISHING] = "finishing",
  };
  struct json_object *o;

  if (r->state == RESHAPE_NONE)
    return NULL;
  o = json_object_new_object ();
  add_text (o, "kind", r->widens ? "widen" : "parity");
  add_u64 (o, "k", r->k);
  add_u64 (o, "m", r->m);
  add_u64 (o, "done", r->done);
  add_u64 (o, "total", r->total);
  add_u64 (o, "bytes_per_second", r->bytes_per_second);
  add_u64 (o, "eta_seconds", r->eta_seconds);
  add_text (o, "state", states[r->state]);
  add_text (o, "why", r->why);
  return o;
}

static void
add_count (struct json_object *o, bool repair,
           const struct array_scrub_count *c)
{
  json_add (o, "repair", json_object_new_boolean (repair));
  add_u64 (o, "found", c->found);
  add_u64 (o, "repaired", c->repaired);
  add_u64 (o, "unlocated_rows", c->unlocated_rows);
  add_u64 (o, "lost_rows", c->lost_rows);
  add_u64 (o, "skipped_rows", c->skipped_rows);
}

static struct json_object *
scrub_to_json (const struct array_status *st)
{
  struct json_object *o = progress_to_json (&st->scrub);

  if (o == NULL)
    return NULL;
  json_add (o, "paused", json_object_new_boolean (st->scrub_paused));
  json_add (o, "interrupted",
            json_object_new_boolean (st->scrub_interrupted));
  add_count (o, st->scrub_repair, &st->scrub_count);
  return o;
}

static struct json_object *
last_scrub_to_json (const struct array_status *st)
{
  struct json_object *o;

  if (!st->has_last_scrub)
    return NULL;
  o = json_object_new_object ();
  add_time (o, "ended", st->last_scrub_ago_ns);
  json_add (o, "complete", json_object_new_boolean (st->last_scrub_complete));
  add_count (o, st->last_scrub_repair, &st->last_scrub);
  return o;
}

static struct json_object *
failed_change_to_json (const struct array_status *st)
{
  struct json_object *o;

  if (st->failed_change[0] == '\0')
    return NULL;
  o = json_object_new_object ();
  add_text (o, "message", st->failed_change);
  add_time (o, "time", st->failed_change_ago_ns);
  return o;
}

static struct json_object *
error_to_json (const struct array_error *e)
{
  struct json_object *o;

  if (e->error == 0)
    return NULL;
  o = json_object_new_object ();
  add_u64 (o, "errno", e->error);
  add_text (o, "message", strerror (e->error));
  add_text (o, "operation", e->operation);
  json_add (o, "offset", e->has_off ? json_object_new_uint64 (e->off) : NULL);
  add_time (o, "time", e->ago_ns);
  return o;
}

static struct json_object *
entry_to_json (const struct array_entry *e)
{
  static const uuid_bytes none;
  struct json_object *o = json_object_new_object ();
  char uuid[UUID_TEXT_LEN];

  json_add (o, "slot", e->slot == SLOT_NONE ? NULL :
            json_object_new_uint64 (e->slot));
  add_text (o, "path", e->path);
  add_text (o, "uuid", memcmp (&e->uuid, &none, sizeof none) == 0 ? NULL :
            uuid_text (&e->uuid, uuid));
  add_text (o, "state", entry_name (e->state));
  add_u64 (o, "errors", e->errors);
  add_u64 (o, "bad_sums", e->bad_sums);
  add_u64 (o, "scrub_found", e->scrub_found);
  add_u64 (o, "scrub_repaired", e->scrub_repaired);
  json_add (o, "no_space", json_object_new_boolean (e->no_space));
  add_u64 (o, "no_space_seconds", e->no_space_ns / 1000000000);
  json_add (o, "no_answer", json_object_new_boolean (e->no_answer));
  add_u64 (o, "no_answer_seconds", e->no_answer_ns / 1000000000);
  json_add (o, "slow", json_object_new_boolean (e->slow));
  json_add (o, "no_connection", json_object_new_boolean (e->no_connection));
  json_add (o, "deleted", json_object_new_boolean (e->deleted));
  json_add (o, "last_error", error_to_json (&e->last_error));
  add_u64 (o, "read_ops", e->reads.ops);
  add_u64 (o, "read_bytes", e->reads.bytes);
  add_u64 (o, "read_ns", e->reads.ns);
  add_u64 (o, "write_ops", e->writes.ops);
  add_u64 (o, "write_bytes", e->writes.bytes);
  add_u64 (o, "write_ns", e->writes.ns);
  add_u64 (o, "flush_ops", e->flushes.ops);
  add_u64 (o, "flush_ns", e->flushes.ns);
  add_u64 (o, "read_median_ns", e->read_median_ns);
  add_u64 (o, "read_p95_ns", e->read_p95_ns);
  return o;
}

static struct json_object *
engine_to_json (const struct coder_share *e)
{
  struct json_object *o = json_object_new_object ();

  add_text (o, "name", e->name);
  add_u64 (o, "jobs", e->nr_jobs);
  add_u64 (o, "bytes", e->bytes);
  add_text (o, "failed", e->failed[0] ? e->failed : NULL);
  return o;
}

/* Sum by name: two engines may have the same name.  A coder without shares has
 * done all itself.
 */
static struct json_object *
bytes_by_engine (const struct array_status *st)
{
  struct json_object *o = json_object_new_object ();

  for (unsigned i = 0; i < st->nr_engines; i++) {
    const char *name = st->engine[i].name;
    uint64_t bytes = 0;

    for (unsigned j = 0; j < st->nr_engines; j++)
      if (strcmp (st->engine[j].name, name) == 0)
        bytes += st->engine[j].bytes;
    add_u64 (o, name, bytes);
  }
  if (st->nr_engines == 0)
    add_u64 (o, st->coder ? st->coder : "none", st->counters.coder_bytes);
  return o;
}

static struct json_object *
counters_to_json (const struct array_status *st)
{
  const struct array_counters *c = &st->counters;
  struct json_object *o = json_object_new_object ();

#define ADD(key, ...) add_u64 (o, #key, c->key);
  ARRAY_COUNTERS (ADD, ADD)
#undef ADD
  json_add (o, "coder_bytes", bytes_by_engine (st));
  return o;
}

static struct json_object *
stages_to_json (const struct array_stages *s)
{
  struct json_object *o = json_object_new_object ();

#define ADD(key) add_u64 (o, #key "_ns", s->key);
  ARRAY_STAGES (ADD)
#undef ADD
  return o;
}

static struct json_object *
lock_to_json (const struct array_lock_use *u)
{
  struct json_object *o = json_object_new_object ();

  add_u64 (o, "taken", u->taken);
  add_u64 (o, "held_ns", u->held_ns);
  return o;
}

static struct json_object *
reasons_to_json (unsigned reasons)
{
  static const char *const text[] = { ARRAY_WHY_TEXTS };
  struct json_object *list = json_object_new_array ();

  for (unsigned i = 0; list && i < ARRAY_LEN (text); i++)
    if (reasons & BIT (i))
      json_object_array_add (list, json_text (text[i]));
  return list;
}

static struct json_object *
names_to_json (const struct control_clients *c)
{
  struct json_object *list = json_object_new_array ();

  for (unsigned i = 0; list && i < c->nr_named; i++)
    json_object_array_add (list, json_text (c->name[i]));
  return list;
}

static struct json_object *
left_out_to_json (const struct array_status *st)
{
  struct json_object *list = json_object_new_array ();

  for (unsigned i = 0; list && i < st->nr_left_out; i++) {
    struct json_object *o = json_object_new_object ();

    add_text (o, "path", st->left_out[i].path);
    add_text (o, "why", st->left_out[i].why);
    json_object_array_add (list, o);
  }
  return list;
}

struct json_object *
status_to_json (const struct array_status *st, const struct control_clients *c)
{
  struct json_object *o = json_object_new_object ();
  struct json_object *members = json_object_new_array ();
  struct json_object *engines = json_object_new_array ();
  struct json_object *cache = json_object_new_object ();
  char uuid[UUID_TEXT_LEN];

  add_text (o, "state", state_name (st->state));
  json_add (o, "writable", json_object_new_boolean (st->writable));
  json_add (o, "waits_for_writer",
            json_object_new_boolean (st->waits_for_writer));
  json_add (o, "recovering", json_object_new_boolean (st->recovering));
  add_text (o, "read_only", st->readonly_why);
  add_u64 (o, "k", st->g.k);
  add_u64 (o, "m", st->g.m);
  add_u64 (o, "chunk", st->g.chunk);
  add_u64 (o, "size", st->g.size);
  add_text (o, "code", code_name (st->code));
  add_u64 (o, "w", st->w);
  add_text (o, "uuid", uuid_text (&st->uuid, uuid));
  add_text (o, "label", st->label[0] ? st->label : NULL);
  json_add (o, "multihost", json_object_new_boolean (st->multihost));
  add_u64 (o, "epoch", st->epoch);
  add_text (o, "coder", st->coder);
  for (unsigned i = 0; engines && i < st->nr_engines; i++)
    json_object_array_add (engines, engine_to_json (&st->engine[i]));
  json_add (o, "engines", engines);
  add_text (o, "loop", st->loop);
  for (unsigned i = 0; members && i < MIN (st->nr_entries, SB_MAX_DEVICES);
       i++)
    json_object_array_add (members, entry_to_json (&st->entry[i]));
  json_add (o, "members", members);
  json_add (o, "left_out", left_out_to_json (st));
  json_add (o, "rebuild", pass_to_json (&st->rebuild));
  json_add (o, "resync", pass_to_json (&st->resync));
  json_add (o, "grow", progress_to_json (&st->grow));
  json_add (o, "reshape", reshape_to_json (&st->reshape));
  add_u64 (o, "growable", st->growable);
  add_u64 (o, "rate_limit", st->rate_limit);
  json_add (o, "scrub", scrub_to_json (st));
  json_add (o, "last_scrub", last_scrub_to_json (st));
  json_add (o, "failed_change", failed_change_to_json (st));
  add_u64 (o, "lost_rows", st->lost_rows);
  add_u64 (cache, "size", st->cache_len);
  add_u64 (cache, "used", st->cache_used);
  add_u64 (cache, "dirty", st->cache_dirty);
  json_add (o, "cache", cache);
  json_add (o, "counters", counters_to_json (st));
  json_add (o, "stages", stages_to_json (&st->stages));
  json_add (o, "lock", lock_to_json (&st->lock));
  json_add (o, "reasons", reasons_to_json (st->reasons));
  add_u64 (o, "connections", c->connections);
  json_add (o, "clients", names_to_json (c));
  json_add (o, "stop_timeout_ms", c->stop_timeout_ns == UINT64_MAX ? NULL :
            json_object_new_uint64 (c->stop_timeout_ns / 1000000));
  return o;
}

const char *
event_name (enum array_event_kind kind)
{
  switch (kind) {
  case ARRAY_EVENT_MEMBER_FAILED: return "member-failed";
  case ARRAY_EVENT_DEGRADED: return "degraded";
  case ARRAY_EVENT_FAILED: return "array-failed";
  case ARRAY_EVENT_SPARE_USED: return "spare-used";
  case ARRAY_EVENT_REBUILT: return "rebuilt";
  case ARRAY_EVENT_CORRUPTION: return "corruption";
  case ARRAY_EVENT_NO_SPACE: return "no-space";
  case ARRAY_EVENT_STALLED: return "stalled";
  case ARRAY_EVENT_CHANGE_FAILED: return "change-failed";
  }
  return NULL;
}

struct json_object *
event_to_json (const struct array_event *e, const char *label)
{
  struct json_object *o = json_object_new_object ();

  add_text (o, "event", event_name (e->kind));
  add_text (o, "array", label);
  add_u64 (o, "time", time (NULL));
  add_text (o, "state", state_name (e->state));
  json_add (o, "reasons", reasons_to_json (e->reasons));
  json_add (o, "member", e->member.path || e->member.slot != SLOT_NONE ?
            entry_to_json (&e->member) : NULL);
  json_add (o, "number", e->kind == ARRAY_EVENT_CORRUPTION ?
            json_object_new_uint64 (e->number) : NULL);
  add_text (o, "message", e->message[0] ? e->message : NULL);
  return o;
}
