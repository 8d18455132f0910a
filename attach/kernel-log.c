/* gpuraid: what the kernel says about the device of an owner.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "attach/kernel-log.h"
#include "attach/internal.h"

int
kernel_log_open (void)
{
  const int fd = open ("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

  if (fd >= 0)
    lseek (fd, 0, SEEK_END);
  return fd;
}

/* "I/O error, dev nbd0, sector 8 op 0x1:(WRITE) flags 0x800 ..."; "block nbd0:
 * reconnected socket".
 */
static void
see (struct owner *o, const char *record)
{
  const char *name = o->state.device.name;
  char part[BLOCK_NAME_LEN + 32], what[BLOCK_NAME_LEN + 32];

  snprintf (part, sizeof part, " dev %s,", name);
  if (strstr (record, "error") && strstr (record, part) &&
      strstr (record, " op 0x1:")) {
    snprintf (what, sizeof what, "a write to /dev/%s failed", name);
    state_note_lost (&o->state, what);
  }
  snprintf (part, sizeof part, " %s: reconnected socket", name);
  o->took |= strstr (record, part) != NULL;
}

/* EPIPE: some were overwritten before they were read. */
void
kernel_log_read (struct owner *o)
{
  char record[8192];
  ssize_t n;

  if (o->kernel_log == -1 || o->state.device.name[0] == '\0')
    return;
  while ((n = read (o->kernel_log, record, sizeof record - 1)) > 0 ||
         (n == -1 && errno == EPIPE)) {
    record[n > 0 ? n : 0] = '\0';
    see (o, record);
  }
}
