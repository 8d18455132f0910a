/* gpuraid: the control socket's operations on a real array.
 *
 * Decides what a new member must satisfy before the array gets it, and in which
 * order to check, so that a refused command has changed nothing.  The array
 * decides the rest.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "array/create/allocate.h"
#include "array/create/in-use.h"
#include "array/create/known.h"
#include "array/stores/look.h"
#include "common/bits.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "control/control.h"

static void
ops_status (void *opaque, struct array_status *st)
{
  const struct control_array *ca = opaque;

  array_get_status (ca->array, st);
}

static int
ops_wait (void *opaque, bool *healthy, char failed[ARRAY_WHY_LEN],
          bool (*cancelled) (void *), void *wait_opaque)
{
  const struct control_array *ca = opaque;

  return array_wait (ca->array, healthy, failed, cancelled, wait_opaque);
}

static bool
is_number (const char *s)
{
  return s[0] && s[strspn (s, "0123456789")] == '\0';
}

/* May which name an entry?  The array decides whether a slot has a member. */
static bool
is_entry (const struct array_status *st, const char *which)
{
  uuid_bytes uuid;
  const bool is_uuid = uuid_parse (which, &uuid) == 0;

  if (is_number (which))
    return strtoul (which, NULL, 10) < st->g.k + st->g.m;
  for (unsigned i = 0; i < st->nr_entries; i++) {
    const struct array_entry *e = &st->entry[i];

    if (is_uuid ? memcmp (&e->uuid, &uuid, sizeof uuid) == 0 :
        e->path && strcmp (e->path, which) == 0)
      return true;
  }
  return false;
}

/* Does the array hold this path?  array_shares_store cannot be asked if our
 * own lock keeps us from opening it again.  A failed member is released, and
 * may be used again.
 */
static bool
is_held (const struct array_status *st, const char *path)
{
  for (unsigned i = 0; i < st->nr_entries; i++) {
    const struct array_entry *e = &st->entry[i];

    if (e->path && e->state != ENTRY_FAILED && e->state != ENTRY_MISSING &&
        look_same_store (e->path, path))
      return true;
  }
  return false;
}

/* Are the names in a command right?  which is NULL or a member that must be
 * known, path NULL or a new one.
 */
static int
check_names (struct array *a, const char *which, const char *path,
             char why[ARRAY_WHY_LEN])
{
  struct array_status st;
  bool known, held;

  array_get_status (a, &st);
  known = which == NULL || is_entry (&st, which);
  held = path && is_held (&st, path);
  array_status_free (&st);
  if (!known)
    snprintf (why, ARRAY_WHY_LEN, "%s: the array has no such member (gpuraid "
              "status lists them)", which);
  else if (held)
    snprintf (why, ARRAY_WHY_LEN, "%s: the array uses it already: name another",
              path);
  return known && !held ? 0 : EINVAL;
}

/* 0, or EROFS and why. */
static int
check_writable (const struct array *a, char why[ARRAY_WHY_LEN])
{
  const char *because = array_readonly_why (a);

  if (because == NULL)
    return 0;
  snprintf (why, ARRAY_WHY_LEN, "the array is read-only: %s", because);
  return EROFS;
}

static int
make_writable (struct array *a, int (*make) (struct array *a),
               char why[ARRAY_WHY_LEN])
{
  int err = make (a);

  if (err) {
    errno = err;
    snprintf (why, ARRAY_WHY_LEN, "the array cannot be made writable: %m");
  }
  return err;
}

static int
ops_fail (void *opaque, const char *which, bool *already,
          char why[ARRAY_WHY_LEN])
{
  const struct control_array *ca = opaque;
  int err = check_writable (ca->array, why);

  if (err == 0)
    err = check_names (ca->array, which, NULL, why);
  if (err == 0)
    err = make_writable (ca->array, array_serve_writer, why);
  return err ? err : array_fail (ca->array, which, already, why);
}

/* Open the new member.  flags are 0 or MEMBER_CREATE.  NULL: why is set;
 * but without MEMBER_CREATE, where there is no such file, it is empty.
 */
static struct member *
open_target (const struct control_array *ca, const char *path, unsigned flags,
             char why[ARRAY_WHY_LEN])
{
  struct member *m =
    ca->open (path, flags, flags ? array_member_size (ca->array) : 0);
  const int err = errno;
  const char *other = member_is_uri (path) ? NULL : member_other_type (path);

  why[0] = '\0';
  errno = err;
  if (m || (errno == ENOENT && !flags && other == NULL))
    return m;
  if (errno == EBUSY || errno == EWOULDBLOCK)
    snprintf (why, ARRAY_WHY_LEN, "%s: in use: name another, or end what uses "
              "it", path);
  else if (errno == ENODEV)
    snprintf (why, ARRAY_WHY_LEN, "%s: no such device", path);
  else if (errno == ENOTCONN)
    snprintf (why, ARRAY_WHY_LEN, "%s: can't connect: start its server, or "
              "correct the URI (the messages of the array's server say more)",
              path);
  else if (other)
    snprintf (why, ARRAY_WHY_LEN, "%s: is %s, not a file or disk: name another",
              path, other);
  else if (member_is_uri (path))
    snprintf (why, ARRAY_WHY_LEN, "%s: the export can't be a member: the "
              "messages of the array's server say why", path);
  else if (errno == EINVAL && flags)
    snprintf (why, ARRAY_WHY_LEN, "%s: can't be made: make its folder first, "
              "or name another (the server's messages say more)", path);
  else if (errno == EINVAL)
    snprintf (why, ARRAY_WHY_LEN,
              "%s: too small for a member, or can't be opened (the server's "
              "messages say more): name another", path);
  else
    snprintf (why, ARRAY_WHY_LEN, "%s: cannot be a member: %m: name another "
              "(the server's messages say more)", path);
  return NULL;
}

/* May a member that was there before join?  0, or EINVAL and why. */
/* Has the array this member under another name? */
static bool
is_own (struct array *a, struct member *m, bool *of_array,
        char why[ARRAY_WHY_LEN])
{
  uuid_bytes array, member;
  struct array_status st;
  bool own = false;

  *of_array = false;
  if (!in_use_identify (m, &array, &member))
    return false;
  array_get_status (a, &st);
  *of_array = memcmp (&array, &st.uuid, sizeof array) == 0;
  for (unsigned i = 0; *of_array && i < st.nr_entries && !own; i++) {
    const struct array_entry *e = &st.entry[i];

    own = e->state != ENTRY_FAILED && e->state != ENTRY_MISSING &&
      memcmp (&member, &e->uuid, sizeof member) == 0;
    if (own)
      snprintf (why, ARRAY_WHY_LEN, "%s: the array uses it already, as %s: "
                "name another", m->path, e->path ? e->path : "a member");
  }
  array_status_free (&st);
  return own;
}

static int
check_target (const struct control_array *ca, struct member *m,
              unsigned flags, char why[ARRAY_WHY_LEN])
{
  uint64_t need = array_member_size (ca->array);
  uint64_t size = m->ops->size (m);
  char found[ARRAY_WHY_LEN] = "";
  bool of_array;

  if (size < need) {
    snprintf (why, ARRAY_WHY_LEN,
              "%s: too small: it has %" PRIu64 " bytes, the array's members "
              "have %" PRIu64 ": name a larger one", m->path, size, need);
    return EINVAL;
  }
  if (array_shares_store (ca->array, m)) {
    snprintf (why, ARRAY_WHY_LEN, "%s: the array uses it already: name another",
              m->path);
    return EINVAL;
  }
  if (is_own (ca->array, m, &of_array, why) ||
      (!of_array && in_use_elsewhere (&m, 1, why, ARRAY_WHY_LEN)))
    return EINVAL;
  if (!(flags & CONTROL_FORCE) && ca->blank (m, found) != 1) {
    snprintf (why, ARRAY_WHY_LEN, "%s %s (--force takes it, and what is on it "
              "is lost)", m->path, found);
    return EINVAL;
  }
  return 0;
}

/* Files that became members are known from now on. */
static void
note_members (struct array *a)
{
  const char *name[SB_MAX_DEVICES];
  struct array_status st;

  array_get_status (a, &st);
  for (unsigned i = 0; i < st.nr_entries; i++)
    name[i] = st.entry[i].state == ENTRY_FAILED ? NULL : st.entry[i].path;
  known_write (&st.uuid, (char *const *) name, st.nr_entries);
  array_status_free (&st);
}

/* What a new member will have allocated: a rebuild writes about as much as the
 * fullest file has.  l: to be filled.
 */
static void
find_room (struct array *a, struct member_layout *l, struct allocation *r)
{
  struct array_status st;
  struct stat file;

  array_get_layout (a, l);
  *r = (struct allocation) { .l = l };
  array_get_status (a, &st);
  for (unsigned i = 0; i < st.nr_entries; i++)
    if (st.entry[i].state == ENTRY_ACTIVE && st.entry[i].path &&
        stat (st.entry[i].path, &file) == 0 && S_ISREG (file.st_mode))
      r->data = MAX (r->data, file.st_blocks * UINT64_C (512));
  array_status_free (&st);
}

/* m: NULL if it is to be made.  0, or ENOSPC and why. */
static int
check_room (const struct control_array *ca, const struct allocation *r,
            const char *path, struct member *m, char why[ARRAY_WHY_LEN])
{
  const struct alloc_member rm = {
    .path = path, .m = m,
    .size = m ? m->ops->size (m) : array_member_size (ca->array),
  };
  struct alloc_short s;

  if (alloc_ask (r, &rm, 1, &s))
    return 0;
  snprintf (why, ARRAY_WHY_LEN, "No space: the new member needs %" PRIu64
            " bytes more, but its file system has %" PRIu64 " free: make room, "
            "name another than %s, or, if that is wrong, give --any-room",
            s.need, s.has, path);
  return ENOSPC;
}

/* What becomes of a new member. */
struct purpose {
  const char *which;            /* it replaces this one; or NULL: */
  bool parity;                  /* it is one more, for parity; or a spare */
};

static int
give (struct array *a, const struct purpose *p, struct member *m,
      char why[ARRAY_WHY_LEN])
{
  return p->which ? array_replace (a, p->which, m, why) :
    p->parity ? array_add_parity (a, m, why) : array_spare (a, m, why);
}

/* It is in the array's hands; or it was refused, and is as before. */
static int
join (const struct control_array *ca, const struct purpose *p,
      struct member *m, const struct allocation *r, char why[ARRAY_WHY_LEN])
{
  struct alloc_taken t;
  int err = alloc_take (r, m, &t);

  if (err) {
    snprintf (why, ARRAY_WHY_LEN, "can't allocate what a new member needs: %s: "
              "make room, or name another than %s", strerror (err), m->path);
    member_close (m);
  }
  else
    err = give (ca->array, p, m, why);
  /* After another error the record may have it. */
  if (err == EINVAL || err == ENOSPC || err == EBUSY)
    alloc_give_back (&t);
  else
    alloc_keep (&t);
  return err;
}

/* A member that answers at all does so within that time. */
unsigned control_closing_ms = 10000;
#define PAUSE_MS 100u

/* If a member at this path was taken out, has all I/O to it ended?  False: why.
 */
static bool
is_closed (struct array *a, const char *path, char why[ARRAY_WHY_LEN])
{
  const struct timespec pause = { .tv_nsec = PAUSE_MS * 1000000 };

  for (unsigned ms = 0; ms < control_closing_ms && array_is_closing (a, path);
       ms += PAUSE_MS)
    nanosleep (&pause, NULL);
  if (!array_is_closing (a, path))
    return true;
  snprintf (why, ARRAY_WHY_LEN, "%s: I/O to it has not ended yet: try again "
            "later", path);
  return false;
}

/* Check everything that can be refused before the array is written to or a file
 * is made.
 */
static int
add_member (const struct control_array *ca, const struct purpose *p,
            const char *path, unsigned flags, char why[ARRAY_WHY_LEN])
{
  struct member_layout l;
  struct allocation room;
  struct member *m;
  bool made = false;
  int err;

  err = check_writable (ca->array, why);
  if (err)
    return err;
  if (path[0] != '/' && !member_is_uri (path)) {
    snprintf (why, ARRAY_WHY_LEN,
              "%s: not an absolute path, nor a URI of a member", path);
    return EINVAL;
  }
  err = check_names (ca->array, p->which, path, why);
  if (err == 0 && p->parity)
    err = array_may_add_parity (ca->array, why);
  if (err)
    return err;
  if (!is_closed (ca->array, path, why))
    return EINVAL;

  m = open_target (ca, path, 0, why);
  if (m == NULL && why[0])
    return EINVAL;
  if (m)
    err = check_target (ca, m, flags, why);
  find_room (ca->array, &l, &room);
  if (err == 0 && !(flags & CONTROL_ANY_ROOM))
    err = check_room (ca, &room, path, m, why);
  if (err == 0)
    err = make_writable (ca->array, array_make_writable, why);
  if (err == 0 && m == NULL) {
    m = open_target (ca, path, MEMBER_CREATE, why);
    made = m != NULL;
    err = made ? 0 : EINVAL;
  }
  if (err == 0) {
    err = join (ca, p, m, &room, why);
    m = NULL;                   /* owned by the array, also after a failure */
  }
  if (err == 0)
    note_members (ca->array);
  else {
    member_close (m);
    if (made && unlink (path) == -1)
      log_error ("unlink: %s: %m", path);
  }
  return err;
}

static int
ops_replace (void *opaque, const char *which, const char *path,
             unsigned flags, char why[ARRAY_WHY_LEN])
{
  const struct purpose p = { .which = which };

  return add_member (opaque, &p, path, flags, why);
}

static int
ops_spare (void *opaque, const char *path, unsigned flags,
           char why[ARRAY_WHY_LEN])
{
  const struct purpose p = { .which = NULL };

  return add_member (opaque, &p, path, flags, why);
}

static int
ops_add_parity (void *opaque, const char *path, unsigned flags,
                char why[ARRAY_WHY_LEN])
{
  const struct purpose p = { .parity = true };

  return add_member (opaque, &p, path, flags, why);
}

static int
ops_parity_control (void *opaque, enum array_parity_command command,
                    char why[ARRAY_WHY_LEN])
{
  const struct control_array *ca = opaque;
  const int err = check_writable (ca->array, why);

  return err ? err : array_parity_control (ca->array, command, why);
}

/* The path of a member to be taken again: the caller frees it.  NULL: why. */
static char *
find_absent (struct array *a, const char *which, char why[ARRAY_WHY_LEN])
{
  struct array_status st;
  char *path = NULL;

  array_get_status (a, &st);
  if (!is_number (which))
    path = strdup (which);
  else if (is_entry (&st, which)) {
    const struct array_entry *e = &st.entry[strtoul (which, NULL, 10)];

    if (e->state == ENTRY_ACTIVE || e->state == ENTRY_REBUILDING)
      snprintf (why, ARRAY_WHY_LEN, "slot %s: %s already: there is nothing to "
                "do", which,
                e->state == ENTRY_ACTIVE ? "active" : "being rebuilt");
    else if (e->path == NULL)
      snprintf (why, ARRAY_WHY_LEN, "slot %s: it is not known where its member "
                "is: name it by its path", which);
    else
      path = strdup (e->path);
  }
  else
    snprintf (why, ARRAY_WHY_LEN, "%s: the array has no such slot (gpuraid "
              "status lists them)", which);
  if (path && is_held (&st, path)) {
    snprintf (why, ARRAY_WHY_LEN, "%s: the array uses it already: there is "
              "nothing to do", path);
    free (path);
    path = NULL;
  }
  array_status_free (&st);
  return path;
}

static int
ops_readd (void *opaque, const char *which, bool *full,
           char why[ARRAY_WHY_LEN])
{
  const struct control_array *ca = opaque;
  CLEANUP_FREE char *path = NULL;
  struct member *m = NULL;

  if (check_writable (ca->array, why))
    return EROFS;
  path = find_absent (ca->array, which, why);
  if (path == NULL)
    return EINVAL;
  if (!is_closed (ca->array, path, why))
    return EINVAL;
  if (!array_has_idle (ca->array, path)) {
    m = open_target (ca, path, 0, why);
    if (m == NULL) {
      if (why[0] == '\0')
        snprintf (why, ARRAY_WHY_LEN, "%s: not there: give the path where it "
                  "is now", path);
      return EINVAL;
    }
  }
  return array_readd (ca->array, path, m, full, why);
}

static int
ops_scrub_start (void *opaque, bool repair, char why[ARRAY_WHY_LEN])
{
  const struct control_array *ca = opaque;
  int err = repair ? check_writable (ca->array, why) : 0;

  if (repair && err == 0)
    err = make_writable (ca->array, array_make_writable, why);
  return err ? err : array_scrub_start (ca->array, repair, why);
}

static int
ops_scrub_control (void *opaque, enum array_scrub_command command,
                   char why[ARRAY_WHY_LEN])
{
  const struct control_array *ca = opaque;

  return array_scrub_control (ca->array, command, why);
}

static int
ops_rebuild_pause (void *opaque, bool pause, char why[ARRAY_WHY_LEN])
{
  const struct control_array *ca = opaque;

  return array_rebuild_pause (ca->array, pause, why);
}

static void
ops_rate (void *opaque, uint64_t limit)
{
  const struct control_array *ca = opaque;

  array_set_rate (ca->array, limit);
}

static int
ops_grow (void *opaque, struct array_growth *growth,
          bool (*cancelled) (void *), void *wait_opaque,
          char why[ARRAY_WHY_LEN])
{
  const struct control_array *ca = opaque;
  int err = check_writable (ca->array, why);

  return err ? err : array_grow (ca->array, growth, cancelled, wait_opaque,
                                 why);
}

static void
ops_clients (void *opaque, struct control_clients *c)
{
  const struct control_array *ca = opaque;

  ca->clients (c);
}

static int
ops_stop (void *opaque, bool force, char why[ARRAY_WHY_LEN])
{
  const struct control_array *ca = opaque;
  struct control_clients c = { 0 };

  ca->clients (&c);
  if (c.connections && !force) {
    snprintf (why, ARRAY_WHY_LEN, "%u NBD connection%s in use", c.connections,
              c.connections == 1 ? " is" : "s are");
    return EBUSY;
  }
  /* From then on nbdkit answers requests with an error, which the kernel's
   * driver passes on; what is not answered it sends again later.
   */
  if (force)
    ca->disconnect ();
  ca->shut_down ();
  return 0;
}

static void
ops_disconnect (void *opaque)
{
  const struct control_array *ca = opaque;

  ca->disconnect ();
}

const struct control_ops control_array_ops = {
  .status = ops_status,
  .status_free = array_status_free,
  .fail = ops_fail,
  .replace = ops_replace,
  .spare = ops_spare,
  .add_parity = ops_add_parity,
  .parity_control = ops_parity_control,
  .readd = ops_readd,
  .scrub_start = ops_scrub_start,
  .scrub_control = ops_scrub_control,
  .rebuild_pause = ops_rebuild_pause,
  .rate = ops_rate,
  .wait = ops_wait,
  .grow = ops_grow,
  .clients = ops_clients,
  .stop = ops_stop,
  .disconnect = ops_disconnect,
};
