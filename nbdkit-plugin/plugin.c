/* gpuraid: the plugin that nbdkit loads.
 *
 * Connections, and what is advertised to them.  ready.c makes the array,
 * requests.c serves data.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdio.h>
#include <string.h>

#include "common/version.h"
#include "gpu/kernels.h"
#include "nbdkit-plugin/plugin.h"

#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL

/* The longest request that nbdkit takes. */
#define MAX_REQUEST_LEN (64u << 20)

/* A handle only says whether its connection may write. */
static char may_write, may_read;

static void *
plugin_open (int readonly)
{
  int err;

  if (readonly || array_is_readonly (plugin_array)) {
    log_client_opened ();
    return &may_read;
  }
  err = array_make_writable (plugin_array);
  if (err) {
    log_to_client ("the array can't be opened for writing: %s",
                   strerror (err));
    nbdkit_set_error (err);
    return NULL;
  }
  log_client_opened ();
  return &may_write;
}

static void
plugin_close (void *handle)
{
  log_client_closed ();
}

static int64_t
plugin_get_size (void *handle)
{
  return array_size (plugin_array);
}

static int
plugin_can_write (void *handle)
{
  return handle == &may_write;
}

static int
yes (void *handle)
{
  return 1;
}

static int
no (void *handle)
{
  return 0;
}

static int
plugin_can_fua (void *handle)
{
  return NBDKIT_FUA_NATIVE;
}

/* Reading ahead fills the page cache if the members use it; with direct I/O the
 * data would be lost at once.  NATIVE without a .cache succeeds and does
 * nothing.
 */
static int
plugin_can_cache (void *handle)
{
  return plugin_direct ? NBDKIT_CACHE_NATIVE : NBDKIT_CACHE_EMULATE;
}

/* Any request is served exactly; whole blocks need no read first. */
static int
plugin_block_size (void *handle, uint32_t *minimum, uint32_t *preferred,
                   uint32_t *maximum)
{
  *minimum = 1;
  *preferred = BLOCK_LEN;
  *maximum = MAX_REQUEST_LEN;
  return 0;
}

static void
plugin_dump_plugin (void)
{
  printf ("gpuraid_version=%s\n"
          "gpuraid_format_version=%u\n"
          "gpuraid_max_members=%u\n"
          "gpuraid_min_chunk=%u\n"
          "gpuraid_max_chunk=%u\n"
          "gpuraid_members=file disk\n"
          "gpuraid_codes=rs crs\n"
          "gpuraid_coders=auto isal gf-complete cuda\n"
          "gpuraid_cuda_kernels=%s\n"
          "gpuraid_checksums=none crc32c\n"
          "gpuraid_consistencies=none journal\n",
          GPURAID_VERSION, SB_VERSION, MAX_SLOTS, CHUNK_MIN_LEN,
          CHUNK_MAX_LEN, kernels_built_in () ? "built-in" : "source");
}

#define CONFIG_HELP                                                     \
  "[member=]MEMBER     (required) A file or disk; repeat it.\n"         \
  "dir=DIR                        Use DIR/member-*.img instead.\n"      \
  "k=K m=M                        Data and parity members.\n"           \
  "chunk=SIZE                     Chunk size (default: 64K).\n"         \
  "size=SIZE                      Exported size, to create an array.\n" \
  "code=rs|crs                    Erasure code (default: rs).\n"        \
  "w=4|8                          Bits of a symbol of crs.\n"           \
  "consistency=none|journal       Fixed when the array is created.\n"   \
  "journal-size=SIZE              Of each member; fixed likewise.\n"    \
  "checksum=none|crc32c           Fixed when the array is created.\n"   \
  "create=no|missing              Create the array if there is none.\n" \
  "coder=auto|isal|gf-complete|cuda\n"                                  \
  "                               What computes parity (default: auto).\n" \
  "gpus=all|N[,N...]              CUDA devices (default: all).\n"        \
  "kernel-cache=none|DIR          Where compiled kernels are kept.\n"    \
  "cache=SIZE                     Memory for stripes (default: 256M).\n" \
  "cache-mode=writeback|writethrough\n"                                 \
  "                               Default: writeback.\n"                \
  "rebuild-rate=BYTES             What rebuild and scrub may do a second,\n"   \
  "                               of each member (default: no limit).\n" \
  "timeout=TIME                   How long a member may take to answer\n" \
  "                               (default: 30s).\n"                    \
  "degraded=allow|refuse|force    What if members are missing.\n"       \
  "control=PATH                   Socket for the command gpuraid."

static struct nbdkit_plugin plugin = {
  .name = "gpuraid",
  .longname = "nbdkit gpuraid plugin",
  .version = GPURAID_VERSION,
  .description = "software RAID with any number of data and parity members",
  .load = plugin_load,
  .unload = plugin_unload,
  .config = plugin_config,
  .config_complete = plugin_config_complete,
  .config_help = CONFIG_HELP,
  .magic_config_key = "member",
  .dump_plugin = plugin_dump_plugin,
  .get_ready = plugin_get_ready,
  .after_fork = plugin_after_fork,
  .cleanup = plugin_cleanup,
  .open = plugin_open,
  .close = plugin_close,
  .get_size = plugin_get_size,
  .block_size = plugin_block_size,
  .can_write = plugin_can_write,
  .can_flush = yes,
  .is_rotational = no,
  .can_trim = yes,
  .can_zero = yes,
  .can_fast_zero = yes,
  .can_extents = yes,
  .can_fua = plugin_can_fua,
  .can_multi_conn = yes,
  .can_cache = plugin_can_cache,
  .pread = plugin_pread,
  .pwrite = plugin_pwrite,
  .flush = plugin_flush,
  .trim = plugin_trim,
  .zero = plugin_zero,
  .extents = plugin_extents,
};

extern struct nbdkit_plugin *plugin_init (void);
NBDKIT_REGISTER_PLUGIN (plugin)
