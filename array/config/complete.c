/* gpuraid: after the last key: whether they fit together, and what follows.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>
#include <string.h>

#include "array/config/config.h"
#include "array/config/file.h"
#include "array/config/names.h"
#include "common/bits.h"
#include "common/log.h"

/* The names of the members. */
static int
complete_members (struct config *c, int (*choose) (struct config *c))
{
  if (c->dir && (c->nr_members || c->nr_globs)) {
    log_error ("dir= goes with no other members (%s): leave one of them out",
               c->nr_members ? c->member[0] : c->glob[0]);
    return -1;
  }
  if (c->dir && config_expand_dir (c) == -1)
    return -1;
  if ((c->has_uuid || c->nr_globs) && choose (c) == -1)
    return -1;
  if (c->nr_members == 0) {
    log_error ("no member is given: name the files or disks of the array, or "
               "their folder with dir=");
    return -1;
  }
  return 0;
}

int
config_complete (struct config *c, int (*choose) (struct config *c))
{
  if (c->file && config_read_file (c) == -1)
    return -1;
  if (!c->k != !c->m) {
    log_error ("%s= is given but not %s=: give both or none", c->k ? "k" : "m",
               c->k ? "m" : "k");
    return -1;
  }
  if (c->k + c->m > MAX_SLOTS) {
    log_error ("k=%u m=%u: k + m must be at most %u", c->k, c->m, MAX_SLOTS);
    return -1;
  }
  if (c->w && c->code == CODE_RS) {
    log_error ("w=%u: goes with code=crs only: give that too, or leave w= out",
               c->w);
    return -1;
  }
  if (c->w == 4 && c->k + c->m > 16) {
    log_error ("k=%u m=%u w=4: k + m must be at most 16, or w=8", c->k, c->m);
    return -1;
  }
  if (c->has_uuid &&
      (c->create == CREATE_MISSING || c->create == CREATE_AGAIN)) {
    log_error ("create=%s: does not go with uuid=, which names an array that "
               "exists: leave one of them out",
               c->create == CREATE_AGAIN ? "again" : "missing");
    return -1;
  }
  if (c->has_uuid)
    c->create = CREATE_NO;
  if (complete_members (c, choose) == -1)
    return -1;
  if (c->create == CREATE_DEFAULT)
    c->create = c->dir ? CREATE_MISSING : CREATE_NO;
  if (c->coder == NULL) {
    c->coder = strdup ("auto");
    if (c->coder == NULL) {
      log_error ("strdup: %m");
      return -1;
    }
  }
  if (c->gpus != ~UINT64_C (0) && strcmp (c->coder, "auto") != 0 &&
      strcmp (c->coder, "cuda") != 0) {
    log_error ("gpus= goes with coder=auto or coder=cuda, not coder=%s: leave "
               "one of them out",
               c->coder);
    return -1;
  }
  return 0;
}
