/* gpuraid: the counters of a running array, for a person.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <inttypes.h>

#include "cli/cli.h"
#include "cli/server/remote.h"
#include "cli/show/render.h"
#include "cli/show/text.h"
#include "common/bits.h"

static void
render_kind (FILE *fp, struct json_object *counters, const char *what,
             const char *ops, const char *bytes)
{
  char size[CLI_SIZE_LEN];

  fprintf (fp, "  %-16s%14" PRIu64, what, get_u64 (counters, ops));
  if (bytes)
    fprintf (fp, "  %12s", cli_size (get_u64 (counters, bytes), size));
  fputc ('\n', fp);
}

static void
render_engines (FILE *fp, struct json_object *status)
{
  struct json_object *list = get_object (status, "engines"), *e;
  char size[CLI_SIZE_LEN];

  if (list_at (list, 0) == NULL)
    return;
  fprintf (fp, "\n  coded by                  jobs         bytes\n");
  for (size_t i = 0; (e = list_at (list, i)) != NULL; i++) {
    fputs ("  ", fp);
    text_column (fp, get_text (e, "name"), 20);
    fprintf (fp, "%10" PRIu64 "  %12s\n",
             get_u64 (e, "jobs"), cli_size (get_u64 (e, "bytes"), size));
  }
}

/* Where a write-out was, in the mean. */
static void
render_stages (FILE *fp, struct json_object *status, uint64_t nr)
{
  static const struct {
    const char *text;
    const char *key[3];
  } group[] = {
    { "waited", { "asked_ns", "begun_ns", "gathered_ns" } },
    { "read", { "read_ns" } },
    { "coded", { "coded_ns" } },
    { "logged", { "records_ns", "flushed_ns" } },
    { "written", { "placed_ns" } },
  };
  struct json_object *stages = get_object (status, "stages");

  if (stages == NULL || nr == 0)
    return;
  fprintf (fp, "  of these, in the mean:");
  for (size_t i = 0; i < ARRAY_LEN (group); i++) {
    double ns = 0;

    for (size_t j = 0; j < 3 && group[i].key[j]; j++)
      ns += get_u64 (stages, group[i].key[j]);
    fprintf (fp, "%s %s %.1f ms", i ? "," : "", group[i].text, ns / nr / 1e6);
  }
  fputc ('\n', fp);
}

void
render_counters (FILE *fp, struct json_object *status)
{
  struct json_object *c = get_object (status, "counters");
  struct json_object *cache = get_object (status, "cache");
  char a[CLI_SIZE_LEN], b[CLI_SIZE_LEN], d[CLI_SIZE_LEN];

  fprintf (fp, "\n  since start         operations         bytes\n");
  render_kind (fp, c, "read", "read_ops", "read_bytes");
  render_kind (fp, c, "write", "write_ops", "write_bytes");
  render_kind (fp, c, "zero, trim", "zero_ops", "zero_bytes");
  render_kind (fp, c, "flush", "flush_ops", NULL);
  render_kind (fp, c, "member reads", "member_read_ops", "member_read_bytes");
  render_kind (fp, c, "member writes", "member_write_ops",
               "member_write_bytes");
  render_kind (fp, c, "member flushes", "member_flush_ops", NULL);
  render_engines (fp, status);
  fprintf (fp, "\n  decoded %s for readers, rebuilt %s, repaired %" PRIu64
           " blocks\n",
           cli_size (get_u64 (c, "decoded_bytes"), a),
           cli_size (get_u64 (c, "rebuilt_bytes"), b),
           get_u64 (c, "repaired_blocks"));
  if (get_u64 (c, "hedged_reads") || get_u64 (c, "avoided_reads"))
    fprintf (fp, "  slow members: hedged %" PRIu64 " reads, %" PRIu64
             " decoded first, %s read for that; avoided %" PRIu64 " reads\n",
             get_u64 (c, "hedged_reads"), get_u64 (c, "hedges_won"),
             cli_size (get_u64 (c, "hedge_bytes"), a),
             get_u64 (c, "avoided_reads"));
  fprintf (fp, "  checksums: %" PRIu64 " blocks were wrong, %" PRIu64
           " of them repaired; %" PRIu64 " pages damaged\n",
           get_u64 (c, "corrupt_found"), get_u64 (c, "corrupt_repaired"),
           get_u64 (c, "corrupt_table_pages"));
  fprintf (fp, "  written out %" PRIu64 " times without reading first, %"
           PRIu64 " times with\n",
           get_u64 (c, "full_stripe_writes"), get_u64 (c, "partial_writes"));
  render_stages (fp, status, get_u64 (c, "full_stripe_writes") +
                 get_u64 (c, "partial_writes"));
  fprintf (fp, "  cache: %s used of %s, %s not written out yet\n",
           cli_size (get_u64 (cache, "used"), a),
           cli_size (get_u64 (cache, "size"), b),
           cli_size (get_u64 (cache, "dirty"), d));
}
