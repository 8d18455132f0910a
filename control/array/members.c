/* gpuraid: the commands that give the array a member: replace, spare, readd and
 * add, which is add-parity and widen.
 *
 * What a new member must satisfy, and in which order that is checked, so that a
 * refused command has changed nothing.
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
#include "control/array/internal.h"

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

/* May a member that was there before join?  0, or EINVAL and why. */
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
  enum { TO_REPLACE, TO_SPARE, TO_PARITY, TO_DATA } kind;
  const char *which;            /* TO_REPLACE: this one */
};

static int
give (struct array *a, const struct purpose *p, struct member *m,
      char why[ARRAY_WHY_LEN])
{
  switch (p->kind) {
  case TO_REPLACE: return array_replace (a, p->which, m, why);
  case TO_SPARE: return array_spare (a, m, why);
  case TO_PARITY: return array_add_parity (a, m, why);
  case TO_DATA: return array_widen (a, m, why);
  }
  return EINVAL;
}

/* It is in the array's hands, as a spare at least; or it was refused, and is as
 * before.
 */
static int
join (const struct control_array *ca, const struct purpose *p,
      const char *path, struct member *m, const struct allocation *r,
      char why[ARRAY_WHY_LEN])
{
  struct alloc_taken t;
  int err = alloc_take (r, m, &t);

  if (err) {
    snprintf (why, ARRAY_WHY_LEN, "can't allocate what a new member needs: %s: "
              "make room, or name another than %s", strerror (err), path);
    member_close (m);
  }
  else
    err = give (ca->array, p, m, why);
  /* After another error the record may have it. */
  if ((err == EINVAL || err == ENOSPC || err == EBUSY) &&
      !array_has_spare (ca->array, path))
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
  if (err == 0 && p->kind >= TO_PARITY)
    err = array_may_add (ca->array, p->kind == TO_DATA, why);
  if (err)
    return err;
  if (!is_closed (ca->array, path, why))
    return EINVAL;

  array_close_idle (ca->array, path);
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
    err = join (ca, p, path, m, &room, why);
    m = NULL;                   /* owned by the array, also after a failure */
  }
  if (err == 0 || array_has_spare (ca->array, path))
    note_members (ca->array);
  else {
    member_close (m);
    if (made && unlink (path) == -1)
      log_error ("unlink: %s: %m", path);
  }
  return err;
}

int
control_replace (void *opaque, const char *which, const char *path,
                 unsigned flags, char why[ARRAY_WHY_LEN])
{
  const struct purpose p = { TO_REPLACE, which };

  return add_member (opaque, &p, path, flags, why);
}

int
control_spare (void *opaque, const char *path, unsigned flags,
               char why[ARRAY_WHY_LEN])
{
  const struct purpose p = { TO_SPARE };

  return add_member (opaque, &p, path, flags, why);
}

/* The name that the array has for a spare of this path: the caller frees it.
 * NULL: there is no such spare.
 */
static char *
find_spare (struct array *a, const char *path)
{
  struct array_status st;
  char *name = NULL;

  array_get_status (a, &st);
  for (unsigned i = 0; i < st.nr_entries && name == NULL; i++) {
    const struct array_entry *e = &st.entry[i];

    if (e->state == ENTRY_SPARE && e->path &&
        (strcmp (e->path, path) == 0 || look_same_store (e->path, path)))
      name = strdup (e->path);
  }
  array_status_free (&st);
  return name;
}

int
control_add (void *opaque, bool data, const char *path, unsigned flags,
             char why[ARRAY_WHY_LEN])
{
  const struct purpose p = { data ? TO_DATA : TO_PARITY };
  const struct control_array *ca = opaque;
  CLEANUP_FREE char *spare = data ? find_spare (ca->array, path) : NULL;
  int err;

  if (spare == NULL)
    return add_member (ca, &p, path, flags, why);
  err = check_writable (ca->array, why);
  return err ? err : array_widen_to (ca->array, spare, why);
}

/* The path of a member to be taken again: the caller frees it.  NULL: why. */
static char *
find_absent (struct array *a, const char *which, char why[ARRAY_WHY_LEN])
{
  struct array_status st;
  char *path = NULL;

  array_get_status (a, &st);
  if (!check_is_number (which))
    path = strdup (which);
  else if (check_is_entry (&st, which)) {
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
  if (path && check_is_held (&st, path)) {
    snprintf (why, ARRAY_WHY_LEN, "%s: the array uses it already: there is "
              "nothing to do", path);
    free (path);
    path = NULL;
  }
  array_status_free (&st);
  return path;
}

int
control_readd (void *opaque, const char *which, bool *full,
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
