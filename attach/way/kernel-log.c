/* gpuraid: what the kernel says about the device of an owner.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/way/kernel-log.h"
#include "attach/way/way.h"
#include "common/log.h"

/* "6,1234,...": the number of a record; 0: it is none. */
static uint64_t
find_number (const char *record)
{
  uint64_t number;

  return sscanf (record, "%*u,%" SCNu64, &number) == 1 ? number : 0;
}

/* Call it for each new record, whether it is there already or not.  EPIPE: some
 * were overwritten before they were read.  One that can't be read any more is
 * not polled either.
 */
static void
each_record (struct owner *o, void (*see) (struct owner *, const char *))
{
  char record[8192];
  ssize_t n;

  while ((n = read (o->kernel_log, record, sizeof record - 1)) > 0 ||
         (n == -1 && errno == EPIPE)) {
    record[n > 0 ? n : 0] = '\0';
    see (o, record);
  }
  if (n == 0 || errno != EAGAIN) {
    log_notice ("/dev/kmsg: %s", n == 0 ? "it ends" : strerror (errno));
    close (o->kernel_log);
    o->kernel_log = -1;
  }
}

static void
pass (struct owner *o, const char *record)
{
  const uint64_t number = find_number (record);

  if (number)
    o->log_from = number;
}

int
kernel_log_open (struct owner *o)
{
  char text[STATE_TEXT_LEN];

  o->kernel_log = open ("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (o->kernel_log == -1)
    return 0;
  state_read_text (&o->state, "log-from", text);
  if (text[0]) {
    o->log_from = strtoull (text, NULL, 10);
    return 0;
  }
  each_record (o, pass);
  snprintf (text, sizeof text, "%" PRIu64, o->log_from);
  return state_write (&o->state, "log-from", text);
}

/* "I/O error, dev nbd0, sector 8 op 0x1:(WRITE) flags 0x800 ..."; "block nbd0:
 * reconnected socket".
 */
static void
see (struct owner *o, const char *record)
{
  const char *name = o->state.device.name;
  char part[BLOCK_NAME_LEN + 32], what[BLOCK_NAME_LEN + 32];

  if (find_number (record) <= o->log_from)
    return;
  snprintf (part, sizeof part, " dev %s,", name);
  if (strstr (record, "error") && strstr (record, part) &&
      strstr (record, " op 0x1:")) {
    snprintf (what, sizeof what, "a write to /dev/%s failed", name);
    state_note_lost (&o->state, what);
  }
  snprintf (part, sizeof part, " %s: reconnected socket", name);
  o->took |= strstr (record, part) != NULL;
}

void
kernel_log_read (struct owner *o)
{
  if (o->kernel_log >= 0 && o->state.device.name[0])
    each_record (o, see);
}
