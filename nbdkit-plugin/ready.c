/* gpuraid: from the keys to a running array, and back.
 *
 * nbdkit forks between .get_ready and .after_fork.  After that a daemon can't
 * report failure any more, and a thread or a ring made before is lost.  So
 * everything is decided in .get_ready, with plain reads, and threads are made
 * in .after_fork.  Nothing is written to an existing array before the first
 * connection or command that may write.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array/create/blank.h"
#include "array/create/create.h"
#include "array/create/known.h"
#include "array/open/assemble.h"
#include "array/open/choose.h"
#include "array/plan/code.h"
#include "array/stores/host-lock.h"
#include "common/bits.h"
#include "common/bytes/crc32c.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "control/control.h"
#include "control/hook.h"
#include "control/socket.h"
#include "gpu/coder-choose.h"
#include "gpu/compiler/child.h"
#include "member/loop.h"
#include "nbdkit-plugin/plugin.h"
#include "old-nbdkit/killed-client.h"
#include "raidmap/limits.h"

/* -D gpuraid.loop=1: io_uring; 2: plain threads; else choose. */
int gpuraid_debug_loop;
/* -D gpuraid.cuda_fail_after=N: after N launches a device fails; which, or
 * -1: each.
 */
int gpuraid_debug_cuda_fail_after;
int gpuraid_debug_cuda_fail_device = -1;
/* -D gpuraid.watch=MS: how often to look for members that are gone; 0: never.
 */
int gpuraid_debug_watch = 3000;

struct array *plugin_array;
static struct host_lock *host_lock;
bool plugin_direct;
bool plugin_waits;

static struct config config;
static struct coder_choice choice;
static struct control *control;
static struct control_array control_array;
static struct hook *hook;
static char array_label[SB_LABEL_LEN + 1];
static uuid_bytes wanted_uuid;
static bool use_uring;
static bool has_forked;         /* in a parent: the child has the sockets now */
static bool serving;            /* .after_fork succeeded */

/* A child that compiles is this server's own program with this plugin, asked to
 * describe the plugin; it compiles before it gets there.
 */
static void
set_compiler_child (void)
{
  static char path[PATH_MAX];
  static const char *const argv[] = {
    "/proc/self/exe", "--dump-plugin", path, NULL,
  };
  Dl_info info;

  if (dladdr (&config, &info) && realpath (info.dli_fname, path))
    compiler_use_child (argv);
}

void
plugin_load (void)
{
  log_to_nbdkit ();
  if (getenv (COMPILER_CHILD_ENV))
    compiler_child_main ();
  set_compiler_child ();
  config_init (&config);
  server_read_options ();
  if (server_is_readonly ())
    config.readonly_why = "nbdkit was started with -r";
}

int
plugin_config (const char *key, const char *value)
{
  int r = config_set (&config, key, value);

  if (r == 1) {
    log_error ("unknown key: %s (nbdkit gpuraid --help lists them)", key);
    return -1;
  }
  return r;
}

int
plugin_config_complete (void)
{
  if (config_complete (&config, config_choose_members) == -1)
    return -1;
  if (config.resume && !server_options_are_known ()) {
    log_error ("resume=yes: /proc/self/cmdline can't be read, so it is not "
               "known whether nbdkit was started with -r: leave resume= out");
    return -1;
  }
  return 0;
}

/* io_uring does direct I/O without a thread for each; buffered I/O it passes to
 * threads of the kernel, which is slower than ours.
 */
static int
choose_loop (struct member *const *members, unsigned nr)
{
  plugin_direct = false;
  for (unsigned i = 0; i < nr; i++)
    plugin_direct |= members[i]->direct;
  for (unsigned i = 0; i < nr; i++)
    plugin_direct &= members[i]->direct || members[i]->async;

  use_uring = gpuraid_debug_loop == 1 ||
    (gpuraid_debug_loop != 2 && plugin_direct);
  if (use_uring && !loop_uring_works ()) {
    if (gpuraid_debug_loop == 1) {
      log_error ("io_uring is forbidden or missing here: leave "
                 "-D gpuraid.loop=1 out");
      return -1;
    }
    log_notice ("io_uring is forbidden or missing here: using threads, which "
                "is slower");
    use_uring = false;
  }
  return 0;
}

static void
init_choice (void)
{
  choice = (struct coder_choice) {
    .name = config.coder,
    .nr_threads = -1,
    .gpus = config.gpus,
    .kernel_dir = config.no_kernel_cache ? NULL
      : config.kernel_cache ? config.kernel_cache : "",
    .fail_after = gpuraid_debug_cuda_fail_after,
    .fail_device = gpuraid_debug_cuda_fail_device,
  };
}

static struct coder *
make_coder (const struct superblock *sb)
{
  const struct geometry *g = &sb->g;
  CLEANUP_FREE uint8_t *coef = malloc (g->m * g->k);
  struct matrix *encode = NULL;
  struct coder *coder;

  if (coef) {
    code_parity (sb->code, sb->w, g->k, g->m, coef);
    encode = code_matrix (sb->code, sb->w, g->m, g->k, coef);
  }
  if (encode == NULL) {
    log_error ("out of memory");
    return NULL;
  }
  choice.encode = encode;
  choice.cell_len = MIN (g->chunk, limits.cell_max_len);
  coder = coder_choose (&choice);
  matrix_free (encode);
  return coder;
}

/* Take ownership of the members and make the array. */
static int
make_array (struct member **members, unsigned nr,
            const struct absent *absent)
{
  struct assembly a;
  struct coder *coder;

  if (choose_loop (members, nr) == -1 ||
      host_lock_members (members, nr, &host_lock) == -1) {
    for (unsigned i = 0; i < nr; i++)
      member_close (members[i]);
    return -1;
  }
  if (assemble (&config, members, nr, absent, &a) == -1)
    return -1;
  if (!host_lock_covers (host_lock, &a.sb.array_uuid)) {
    assembly_free (&a);
    return -1;
  }
  if (a.sb.consistency == CONSISTENCY_NONE && !config.readonly)
    log_notice ("consistency=none: a crash while a member is missing can lose "
                "data that was written long before");
  snprintf (array_label, sizeof array_label, "%s", a.sb.label);
  wanted_uuid = a.sb.array_uuid;
  coder = make_coder (&a.sb);
  if (coder == NULL)
    goto err;
  plugin_array = array_new (&config, &a, coder);
  if (plugin_array == NULL)
    goto err;
  return 0;

 err:
  coder_free (coder);
  assembly_free (&a);
  return -1;
}

static void
note_fork (void)
{
  has_forked = true;
}

/* If nbdkit gives up after .get_ready it exits, and calls no callback. */
static void
remove_sockets (void)
{
  if (has_forked || serving)
    return;
  control_stop (control);
  control = NULL;
  server_remove_socket ();
}

/* Let others connect; what they may ask control/control.c decides. */
static int
allow (const char *path)
{
  if (path == NULL || (!config.has_socket_group && config.socket_mode == 0))
    return 0;
  return socket_allow (path, config.has_socket_group, config.socket_gid,
                       config.socket_mode ? config.socket_mode : 0660);
}

/* Only once the members are locked: of several servers of an array that start
 * at the same time one gets here.
 */
static int
prepare_sockets (void)
{
  if (server_clear_socket () == -1)
    return -1;
  if (pthread_atfork (NULL, note_fork, NULL) != 0 ||
      atexit (remove_sockets) != 0) {
    log_error ("out of memory");
    return -1;
  }
  if (config.control) {
    control = control_bind (config.control);
    if (control == NULL || allow (config.control) == -1)
      return -1;
  }
  return 0;
}

/* 0, also where nothing is to be made; or -1 reported. */
static int
create_if_missing (void)
{
  int wanted;

  if (config.create == CREATE_NO)
    return 0;
  wanted = create_is_wanted (&config);
  if (wanted != 1)
    return wanted;
  if (config.create != CREATE_AGAIN &&
      known_refuse (config.member, config.nr_members))
    return -1;
  return coder_choice_check (&choice) == -1 ? -1 :
    create_array (&config, 0);
}

int
plugin_get_ready (void)
{
  struct member *members[CONFIG_MAX_MEMBERS];
  struct absent absent;
  unsigned nr;

  descriptors_raise ();
  killed_client_survive ();
  init_choice ();
  plugin_waits = config.wait_for_space;
  if (crc32c_check () == -1)
    return -1;
  if (log_choose (config.log) == -1 ||
      (config.hook && hook_check (config.hook) == -1))
    return -1;
  if (create_if_missing () == -1 ||
      open_members (&config, members, &nr, &absent) == -1 ||
      make_array (members, nr, &absent) == -1)
    return -1;
  known_write (&wanted_uuid, config.member, config.nr_members);
  return prepare_sockets ();
}

static void
find_clients (struct control_clients *c)
{
  c->connections = clients_count ();
  c->stop_timeout_ns = config.stop_timeout_ns;
  clients_name (config.control, c);
}

/* What they have asked for must end too: nbdkit waits for it. */
static void
disconnect (void)
{
  clients_disconnect (config.control);
  array_end_waits (plugin_array, true);
}

static int
start (void)
{
  struct loop *loop;

  loop = use_uring ? loop_uring_new () : NULL;
  if (loop == NULL)
    loop = loop_threads_new ();
  if (loop == NULL)
    return -1;
  if (config.hook) {
    hook = hook_start (config.hook, array_label, &wanted_uuid);
    if (hook == NULL)
      return -1;
    array_set_events (plugin_array, hook_event, hook);
  }
  array_set_watch (plugin_array,
                   MAX (gpuraid_debug_watch, 0) * UINT64_C (1000000));
  if (array_start (plugin_array, loop) == -1)
    return -1;
  if (control) {
    control_array = (struct control_array) {
      .array = plugin_array,
      .open = member_open,
      .blank = member_is_blank,
      .clients = find_clients,
      .shut_down = nbdkit_shutdown,
      .disconnect = disconnect,
    };
    if (control_start (control, &control_array_ops, &control_array) == -1)
      return -1;
  }
  if (stop_watch (plugin_array, config.stop_timeout_ns, config.control,
                  disconnect) == -1)
    return -1;
  return config.resume && !array_is_readonly (plugin_array) ?
    resume_start (plugin_array) : 0;
}

/* nbdkit exits at once if this fails. */
int
plugin_after_fork (void)
{
  if (log_start () == -1)
    return -1;
  if (allow (server_socket ()) == -1 || start () == -1) {
    log_stop ();
    return -1;
  }
  serving = true;
  return 0;
}

void
plugin_cleanup (void)
{
  struct control_last last;
  int err;

  stop_end ();
  resume_stop ();
  control_stop_last (control, &last);
  control = NULL;
  err = array_free (plugin_array);
  plugin_array = NULL;
  host_lock_free (host_lock);
  host_lock = NULL;
  if (err)
    log_error ("what was written last may not be on the members: %s",
               strerror (err));
  hook_stop (hook);
  hook = NULL;
  log_stop ();
  control_answer_last (&last, err == 0);
}

/* .cleanup is not called if .after_fork was not reached. */
void
plugin_unload (void)
{
  plugin_cleanup ();
  server_free ();
  config_free (&config);
}
