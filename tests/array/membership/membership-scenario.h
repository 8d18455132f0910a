/* gpuraid: tests: steps of a scenario of membership: an array is created,
 * some of its members open, a record gets to some of them, it crashes.
 *
 * Members are named by bit masks: bit i is disk i, and device i.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TEST_MEMBERSHIP_SCENARIO_H
#define GPURAID_TEST_MEMBERSHIP_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/array/membership/membership-members.h"

extern struct disk disk[MEMBERS_MAX];
extern struct superblock identity;      /* before it has members */

/* What was found and decided when members last opened, or tried to. */
extern struct found found[MEMBERS_MAX];
extern struct membership_decision decision;

/* The session under way, or that crashed; why it refused a change. */
extern struct membership ms;
extern char why[MEMBERSHIP_TEXT_LEN];

extern const struct device_set no_device;
extern struct device_set set_of (unsigned mask);
#define ALL (~0u)
/* The first n members. */
extern unsigned first_members (unsigned n);

/* A new array of k + m members, the other disks blank. */
extern void create (unsigned k, unsigned m);

/* Examine these: the number found, and decision. */
extern size_t decide (unsigned mask, enum degraded_policy policy);
extern bool opens (unsigned mask);

/* Open these, which must succeed, and begin the session's first record. */
extern void start (unsigned mask, enum degraded_policy policy);
/* Of those that take part in the phase, these get it. */
extern void give (unsigned mask);
/* All get all of it, until the record is in force. */
extern void finish (void);
/* These accept the record, all having taken the proposal, and it crashes. */
extern void accept_and_crash (unsigned mask);
/* A session of these members that crashes, its record accepted by some. */
extern void crash (unsigned mask, unsigned accepted);

/* Disk i, a new member, becomes a target for a slot, or a spare. */
extern void add_target (unsigned i, uint8_t to);
/* The same, and begin to make it active. */
extern void begin_add (unsigned i, uint8_t to);
/* Begin to take these out, as failed. */
extern void begin_remove (unsigned mask);

#endif
