/* gpuraid: the plugin that nbdkit loads.
 *
 * Connections, and what is advertised to them.  ready.c makes the array,
 * requests.c serves data.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdio.h>
#include <string.h>

#include "gpu/choice/kernels.h"
#include "nbdkit-plugin/plugin.h"
#include "raidmap/uuid.h"

#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL

/* The longest request that nbdkit takes. */
#define MAX_REQUEST_LEN (64u << 20)

/* A client that stays when the server is killed, and connects again, does not
 * know that writes were lost that it has not flushed.  On a connection to this
 * export a write is flushed before it is answered.
 */
#define WRITETHROUGH "writethrough"

/* To the kernel ENOSPC from a device is an I/O error: a file system loses what
 * it could not write.  On a connection to this export, and to the one above, a
 * flush waits until there is space.
 */
#define WAIT "wait"

static const struct client reader, writer = { .may_write = true },
  waiting_writer = { .may_write = true, .waits = true },
  writethrough_writer = { .may_write = true, .writethrough = true,
                          .waits = true };

static int
plugin_preconnect (int readonly)
{
  stop_client_came ();
  return descriptors_suffice () ? 0 : -1;
}

static void *
opened (const struct client *c)
{
  clients_opened ();
  stop_client_came ();
  return (void *) c;
}

static void *
plugin_open (int readonly)
{
  const char *name = nbdkit_export_name ();
  int err;

  if (name == NULL)
    return NULL;
  if (readonly || array_is_readonly (plugin_array))
    return opened (&reader);
  err = array_serve_writer (plugin_array);
  if (err) {
    log_to_client ("the array can't be opened for writing: %s",
                   strerror (err));
    nbdkit_set_error (err);
    return NULL;
  }
  return opened (strcmp (name, WRITETHROUGH) == 0 ? &writethrough_writer
                 : strcmp (name, WAIT) == 0 ? &waiting_writer : &writer);
}

static void
plugin_close (void *handle)
{
  clients_closed ();
}

static int
plugin_list_exports (int readonly, int is_tls, struct nbdkit_exports *exports)
{
  if (nbdkit_add_export (exports, "", NULL) == -1 ||
      nbdkit_add_export (exports, WAIT, "the same; without space a flush "
                         "waits") == -1)
    return -1;
  return nbdkit_add_export (exports, WRITETHROUGH, "the same; writes are "
                            "flushed when answered, and wait for space");
}

/* A client that connects again can see that it is the same array, although it
 * may have grown: attach/server/server.c.
 */
static const char *
plugin_export_description (void *handle)
{
  char uuid[UUID_TEXT_LEN];

  return nbdkit_printf_intern ("gpuraid array %s",
                               uuid_text (array_uuid (plugin_array), uuid));
}

static int64_t
plugin_get_size (void *handle)
{
  return array_size (plugin_array);
}

static int
plugin_can_write (void *handle)
{
  const struct client *c = handle;

  return c->may_write;
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
          "gpuraid_members=file disk nbd\n"
          "gpuraid_codes=rs crs\n"
          "gpuraid_coders=auto simd isal gf-complete cuda\n"
          "gpuraid_cuda_kernels=%s\n"
          "gpuraid_checksums=none crc32c\n"
          "gpuraid_consistencies=none journal\n",
          GPURAID_VERSION, SB_VERSION, MAX_SLOTS, CHUNK_MIN_LEN,
          CHUNK_MAX_LEN, kernels_built_in () ? "built-in" : "source");
}

#define CONFIG_HELP                                                     \
  "[member=]MEMBER     (required) A file or disk; repeat it.\n"         \
  "config=NAME|FILE               Read keys from /etc/gpuraid.d/NAME.conf,\n" \
  "                               or a file (with a slash in its name).\n" \
  "dir=DIR                        Use DIR/member-*.img instead.\n"      \
  "k=K m=M                        Data and parity members.\n"           \
  "chunk=SIZE                     Chunk size (default: 64K).\n"         \
  "size=SIZE                      Exported size, to create an array.\n" \
  "code=rs|crs                    Erasure code (default: rs).\n"        \
  "w=4|8                          Bits of a symbol of crs.\n"           \
  "consistency=none|journal       Fixed when the array is created\n"    \
  "                               (default: journal).\n"                \
  "journal-size=SIZE              Of each member; fixed likewise.\n"    \
  "checksum=none|crc32c           Fixed likewise (default: crc32c).\n"  \
  "allocate=no|yes                Creating: give files all their space\n" \
  "                               (default: no).\n"                     \
  "label=NAME                     A name for it; fixed likewise.\n"     \
  "multihost=no|yes               Do other hosts reach the members too?\n" \
  "                               It stays as it is if not given.\n"   \
  "uuid=UUID                      Open this array; leave members of\n"  \
  "                               others alone.\n"                      \
  "create=no|missing|again        Create the array if there is none, also\n" \
  "                               where this host knows of one (default:\n" \
  "                               no).\n"                               \
  "coder=auto|simd|isal|gf-complete|cuda\n"                             \
  "                               What computes parity (default: auto).\n" \
  "gpus=all|N[,N...]              CUDA devices (default: all).\n"       \
  "kernel-cache=none|DIR          Where compiled kernels are kept.\n"   \
  "cache=SIZE                     Memory for stripes (default: 256M).\n" \
  "cache-mode=writeback|writethrough\n"                                 \
  "                               When a write is answered\n"           \
  "                               (default: writeback).\n"              \
  "no-space=error|wait            What a flush does while a member has no\n" \
  "                               space (default: error).\n"            \
  "rebuild-rate=BYTES             What rebuild and scrub may do a second,\n" \
  "                               of each member (default: max).\n"     \
  "hedge=auto|no|DELAY            Decode what a slow member owes after the\n" \
  "                               95th percentile of the others, not at\n" \
  "                               all, or after DELAY (default: auto).\n" \
  "timeout=TIME                   How long a member may take to answer\n" \
  "                               (default: 30s).\n"                    \
  "spare-delay=TIME               How long a spare waits for a member that\n" \
  "                               was not there (default: 5m).\n"       \
  "degraded=allow|refuse|force    What if members are missing\n"        \
  "                               (default: allow).\n"                  \
  "control=PATH                   Socket for the command gpuraid.\n"    \
  "stop-timeout=no|TIME           How long a stop waits for clients, before\n" \
  "                               it disconnects them (default: 20s).\n" \
  "socket-group=GROUP             It may connect to -U and control=.\n"  \
  "socket-mode=MODE               The mode of both: 0600 to 0666.\n"     \
  "log=FILE|stderr|syslog         Messages of the running server go there.\n" \
  "hook=PROGRAM                   Run it when something happens.\n"       \
  "resume=no|yes                  Go on with a rebuild or a recovery\n"  \
  "                               before a client comes (default: no)."

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
  .preconnect = plugin_preconnect,
  .list_exports = plugin_list_exports,
  .export_description = plugin_export_description,
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
