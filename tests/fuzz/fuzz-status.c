/* gpuraid fuzzer: what the command prints of a status.
 *
 * A server of another version, or something else that listens there, may
 * answer any JSON.  No control code may reach the terminal.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/server/remote.h"
#include "cli/show/metrics.h"
#include "cli/show/render.h"
#include "cli/show/watch-frame.h"
#include "tests/fuzz/mutate.h"

/* As cli/main.c has it, where main is too. */
char *
cli_size (uint64_t bytes, char buf[CLI_SIZE_LEN])
{
  snprintf (buf, CLI_SIZE_LEN, "%" PRIu64 " bytes", bytes);
  return buf;
}

static void
render (FILE *fp, struct json_object *status)
{
  struct json_object *progress = get_object (status, "rebuild");

  render_array (fp, status);
  render_members (fp, status);
  render_counters (fp, status);
  render_line (fp, status);
  render_failed_names (fp, status);
  render_short (fp, "name", status);
  if (progress)
    render_progress (fp, progress);
}

/* Lines that fit, whatever the status is. */
static void
frame (struct json_object *status, unsigned columns, unsigned rows)
{
  const struct watch_screen screen = { columns, rows, false };
  const struct watch_sample now = { status, 2 }, last = { status, 1 };
  char *text = NULL;
  size_t len = 0;
  unsigned row = 1, column = 0;
  FILE *fp = open_memstream (&text, &len);

  watch_frame (fp, &now, &last, &screen);
  fclose (fp);
  for (size_t i = 0; i < len; i++) {
    assert (!iscntrl ((unsigned char) text[i]) || text[i] == '\n');
    if (text[i] == '\n') {
      row++;
      column = 0;
    }
    else if (((unsigned char) text[i] & 0xc0) != 0x80)
      column++;
    assert (row <= rows && column <= columns);
  }
  free (text);
}

static void
metrics (struct json_object *status)
{
  const struct metrics_source source = { (char *) "name", status };
  char *text = NULL;
  size_t len = 0;
  FILE *fp = open_memstream (&text, &len);

  metrics_write (fp, &source, 1);
  fclose (fp);
  assert (len > 0 && text[len-1] == '\n');
  free (text);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  struct json_tokener *tok = json_tokener_new ();
  struct json_object *status;
  char *text = NULL;
  size_t len = 0;
  FILE *fp;

  status = json_tokener_parse_ex (tok, (const char *) data, size);
  json_tokener_free (tok);
  /* Only objects come so far: remote_status. */
  if (json_object_is_type (status, json_type_object)) {
    fp = open_memstream (&text, &len);
    render (fp, status);
    fclose (fp);
    for (size_t i = 0; i < len; i++)
      assert (!iscntrl ((unsigned char) text[i]) || text[i] == '\n');
    free (text);
    frame (status, 60, 15);
    frame (status, 1 + size % 200, 1 + size % 50);
    metrics (status);
  }
  json_object_put (status);
  return 0;
}

/* ---- inputs ------------------------------------------------------------- */

static const char seed_text[] =
  "{\"state\":\"degraded\",\"writable\":true,\"k\":2,\"m\":1,\"chunk\":65536,"
  "\"size\":1048576,\"code\":\"rs\",\"uuid\":\"f0f1\",\"epoch\":3,"
  "\"coder\":\"isal\",\"loop\":\"sim\",\"engines\":[{\"name\":\"isal\","
  "\"jobs\":2,\"bytes\":4096,\"failed\":\"gone\"}],\"members\":[{\"slot\":0,"
  "\"path\":\"/a\",\"state\":\"active\",\"errors\":0,\"no_space\":true,"
  "\"slow\":false},{\"slot\":null,\"path\":null,\"state\":\"spare\"}],"
  "\"rebuild\":{\"done\":1,\"total\":4,\"bytes_per_second\":1,"
  "\"eta_seconds\":3},\"lost_rows\":2,\"cache\":{\"size\":1,\"used\":1,"
  "\"dirty\":1},\"counters\":{\"read_ops\":7,\"read_bytes\":0}}";

static const char *const words[] = {
  "\"members\":{\"a\":1},", "\"members\":[null],",
  "\"engines\":{\"a\":1},", "\"engines\":[7],", "\"counters\":[],",
  "\"rebuild\":[],",
  "\"state\"", "\"members\"", "\"slot\"", "\"path\"", "\"engines\"", "\"name\"",
  "\"failed\"", "\"rebuild\"", "\"resync\"", "\"scrub\"", "\"done\"",
  "\"total\"", "\"eta_seconds\"", "\"counters\"", "\"slow\"", "\"no_space\"",
  "\"lost_rows\"", "\"active\"", "null", "true", "[]", "{}", "[", "]", "{", "}",
  ":", ",", "\"\\u001b\"", "\"\\n\"", "\"\"", "\\u007f", "-1", "1e300", "64",
  "18446744073709551615", "9223372036854775807",
};

size_t
fuzzing_seed (struct rng *r, uint8_t *data, size_t max)
{
  memcpy (data, seed_text, strlen (seed_text));
  return strlen (seed_text);
}

size_t
LLVMFuzzerCustomMutator (uint8_t *data, size_t size, size_t max, unsigned seed)
{
  struct rng r = { seed };

  if (size == 0 && max >= sizeof seed_text)
    return fuzzing_seed (&r, data, max);
  return mutate_text (&r, data, size, max, words, ARRAY_LEN (words));
}
