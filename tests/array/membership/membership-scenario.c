/* gpuraid: tests: steps of a scenario of membership.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "tests/array/membership/membership-scenario.h"

struct disk disk[MEMBERS_MAX];
struct superblock identity;
struct found found[MEMBERS_MAX];
struct membership_decision decision;
struct membership ms;
char why[MEMBERSHIP_TEXT_LEN];

const struct device_set no_device;

static uint64_t session = 100;

struct device_set
set_of (unsigned mask)
{
  return (struct device_set) {{ mask, 0 }};
}

unsigned
first_members (unsigned n)
{
  return (1u << n) - 1;
}

void
create (unsigned k, unsigned m)
{
  memset (disk, 0, sizeof disk);
  members_superblock (&identity, k, m);
  members_create (disk, MEMBERS_MAX, k, m, 1);
}

size_t
decide (unsigned mask, enum degraded_policy policy)
{
  size_t nr = members_find (disk, mask, found);

  membership_open (found, nr, policy, &decision);
  assert_int_equal (decision.open, decision.why[0] == '\0');
  assert_null (strstr (decision.notice, "error"));
  return nr;
}

bool
opens (unsigned mask)
{
  decide (mask, DEGRADED_ALLOW);
  return decision.open;
}

void
start (unsigned mask, enum degraded_policy policy)
{
  size_t nr = decide (mask, policy);

  assert_true (decision.open);
  membership_start (&ms, &decision, found, nr, ++session);
  membership_begin_open (&ms, found, nr, policy != DEGRADED_FORCE);
}

void
give (unsigned mask)
{
  struct device_set takers;

  membership_takers (&ms, &takers);
  for (unsigned i = 0; i < MEMBERS_MAX; i++)
    if ((mask >> i & 1) && device_set_has (&takers, i)) {
      if (ms.phase != MEMBERSHIP_ACCEPT)
        members_write (&disk[i], &ms, i, &identity, false, 4);
      if (ms.phase != MEMBERSHIP_PROPOSE)
        members_write (&disk[i], &ms, i, &identity, true, 4);
    }
}

void
finish (void)
{
  assert_int_equal (ms.phase, MEMBERSHIP_PROPOSE);
  give (ALL);
  assert_int_equal (membership_proposed (&ms, &no_device), MEMBERSHIP_ACCEPT);
  give (ALL);
  if (membership_accepted (&ms, &no_device) == MEMBERSHIP_TELL) {
    give (ALL);
    membership_told (&ms, &no_device);
  }
  assert_int_equal (ms.phase, MEMBERSHIP_IDLE);
  assert_true (ms.in_force);
}

void
accept_and_crash (unsigned mask)
{
  give (ALL);
  membership_proposed (&ms, &no_device);
  give (mask);
}

void
crash (unsigned mask, unsigned accepted)
{
  start (mask, DEGRADED_ALLOW);
  accept_and_crash (accepted);
}

void
add_target (unsigned i, uint8_t to)
{
  uuid_bytes uuid = members_uuid (i);
  unsigned dev;

  assert_int_equal (membership_begin_target (&ms, &uuid, to, false, &dev, why),
                    0);
  assert_int_equal (dev, i);
  finish ();
}

void
begin_add (unsigned i, uint8_t to)
{
  struct device_set devs = set_of (1u << i);

  add_target (i, to);
  assert_int_equal (membership_begin_activate (&ms, &devs, why), 0);
}

void
begin_remove (unsigned mask)
{
  const struct device_set devs = set_of (mask);

  assert_int_equal (membership_begin_remove (&ms, &devs, DEVICE_FAILED, why),
                    0);
}
