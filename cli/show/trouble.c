/* gpuraid: what is wrong with a running array, for a person.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <inttypes.h>
#include <string.h>

#include "cli/server/remote.h"
#include "cli/show/text.h"
#include "cli/show/trouble.h"
#include "common/bits.h"

const char *
trouble_reason (struct json_object *status, size_t i)
{
  struct json_object *list = get_object (status, "reasons"), *o;

  if (i >= list_len (list))
    return NULL;
  o = list_at (list, i);
  return json_object_is_type (o, json_type_string) ?
    json_object_get_string (o) : "";
}

void
trouble_advice (FILE *fp, struct json_object *status)
{
  static const struct { const char *reason, *means, *then; } advice[] = {
    { "blocks lost", "some blocks give EIO until they are written",
      "gpuraid readd what is out but good; else write them, from a backup" },
    { "stalled", "clients wait; nothing is lost, and all goes on with the "
      "answers",
      "look at disk, cable and server; if it can be spared, it is taken out" },
    { "no space", "what was written waits, and is not durable",
      "make room where the member is, or trim: it goes on by itself" },
    { "wrong blocks", "a scrub found them; a member that fails now may cost "
      "blocks", "gpuraid scrub, with --repair" },
    { "resync pending", "parity may be wrong; a member that fails now may cost "
      "blocks", "connect a client that may write" },
    { "resync running", "parity may be wrong; a member that fails now may cost "
      "blocks", "wait: gpuraid wait" },
  };
  const char *s, *state = get_text (status, "state");

  if (state && strcmp (state, "failed") == 0)
    return;                     /* it is not written to: members come first */
  for (size_t j = 0; j < ARRAY_LEN (advice); j++)
    for (size_t i = 0; (s = trouble_reason (status, i)) != NULL; i++)
      if (strcmp (s, advice[j].reason) == 0) {
        fprintf (fp, "\n   means: %s\n      do: %s", advice[j].means,
                 advice[j].then);
        return;
      }
}

static void
render_last_error (FILE *fp, struct json_object *m)
{
  struct json_object *e = get_object (m, "last_error"), *off;

  if (e == NULL)
    return;
  fprintf (fp, "   error: ");
  text_time (fp, e);
  text_clean (fp, get_text (m, "path"));
  fprintf (fp, ": ");
  text_clean (fp, get_text (e, "operation"));
  if (json_object_object_get_ex (e, "offset", &off) && off)
    fprintf (fp, " at %" PRIu64, get_u64 (e, "offset"));
  fprintf (fp, ": ");
  text_clean (fp, get_text (e, "message"));
  fputc ('\n', fp);
}

/* How long it has been so, where that is known. */
static void
render_for (FILE *fp, struct json_object *m, const char *key)
{
  char seconds[32];
  struct json_object *o;

  snprintf (seconds, sizeof seconds, "%s_seconds", key);
  if (json_object_object_get_ex (m, seconds, &o))
    fprintf (fp, ", for %" PRIu64 " s", get_u64 (m, seconds));
}

void
trouble_members (FILE *fp, struct json_object *status)
{
  static const struct { const char *key, *what, *then; } trouble[] = {
    { "deleted", "its file was deleted",
      "it is lost when the server stops: replace it before" },
    { "no_space", "no space", "writes are held until there is some" },
    { "no_connection", "no connection to its server",
      "it is tried again, and writes wait" },
    { "no_answer", "no answer", "what was given to it waits" },
    { "slow", "slow", "reads avoid it where they can" },
  };
  const uint64_t lost = get_u64 (status, "lost_rows");

  for (size_t i = 0; i < nr_members (status); i++) {
    struct json_object *m = member_at (status, i);
    const uint64_t bad = get_u64 (m, "bad_sums");

    render_last_error (fp, m);
    if (bad) {
      fprintf (fp, " trouble: slot %" PRIu64 ": %" PRIu64 " %s had another "
               "checksum: ", get_u64 (m, "slot"), bad,
               bad == 1 ? "block or page" : "blocks or pages");
      text_clean (fp, get_text (m, "path"));
      fputc ('\n', fp);
    }
    for (size_t j = 0; j < ARRAY_LEN (trouble); j++)
      if (get_bool (m, trouble[j].key)) {
        fprintf (fp, " trouble: slot %" PRIu64 ": %s: ", get_u64 (m, "slot"),
                 trouble[j].what);
        text_clean (fp, get_text (m, "path"));
        render_for (fp, m, trouble[j].key);
        fprintf (fp, "\n          %s%s\n", trouble[j].then,
                 strcmp (trouble[j].key, "no_space") == 0 &&
                 get_bool (status, "recovering") ?
                 ", and trims;\n          the recovery of the journal waits" :
                 "");
        break;
      }
  }
  if (lost)
    fprintf (fp, lost == 1 ? " trouble: %" PRIu64 " row is lost: too little of "
             "it can be read\n" : " trouble: %" PRIu64 " rows are lost: too "
             "little of them can be read\n", lost);
}
