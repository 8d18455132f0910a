#!/usr/bin/python3
# gpuraid: how one more parity member enters the record of membership, and is
# taken back, tried exhaustively.
#
# Sessions open some of the members, write, add parity, fill the new member,
# make it active, replace it, take it back, lose members, and crash, at every
# step.  After every crash every set of members is tried.  Beside what
# ../membership.py checks:
#
#   - while no member but NEW was lost, every set opens that is a quorum of
#     the last record in force and of all that came after it; and k
#     members of each of them can read what was written
#   - no set opens, before NEW was active, that was too few before
#   - no record has a member in a slot that it does not have, or the slots of
#     one geometry and the layout of another
#   - each record says whether NEW was ever active, and NEW is not taken back
#     once it was
#
#   tests/model/reshape/parity.py [--all] [--traces]
#       a slice, and every weakening
#   tests/model/reshape/parity.py --run K M NEW SESSIONS EVENTS
#       [--without RULE,...] [--confirm] [--bitmap] [--replace]
#   tests/model/reshape/parity.py --dump       for test-membership-model
#
# NEW is how many members slot k + m can have.  membership_parity.py has
# the rules.  --confirm has M18 too,
# --bitmap the dirty bits (parity_bitmap.py), --replace a member that replaces
# an old one.
#
# SPDX-License-Identifier: BSD-3-Clause

import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(1, str(Path(__file__).resolve().parent.parent))

from membership import Command    # noqa: E402
from membership_rules import RULES as BASE_RULES    # noqa: E402
from membership_parity import RULES, Parity    # noqa: E402
from parity_bitmap import RULES as BITMAP_RULES, Bitmap    # noqa: E402

# (k, m, members for slot k + m, sessions, events in each, options)
SLICE = [
    (1, 1, 1, 1, 4, ("bitmap",)),
    (1, 1, 1, 1, 4, ("bitmap", "replace")),
    (1, 1, 1, 2, 2, ("bitmap",)),
    (1, 1, 2, 1, 4, ("confirm",)),
    (1, 2, 1, 1, 2, ()),
    (2, 1, 1, 1, 3, ("confirm",)),
    (2, 1, 1, 2, 1, ("bitmap",)),
    (2, 2, 1, 1, 1, ("confirm",)),
    (3, 2, 1, 1, 1, ()),
]

DUMPED = [
    ((1, 1, 1, 1, 4, ()), 10**9),
    ((1, 1, 1, 2, 2, ()), 3000),
    ((1, 2, 1, 1, 3, ()), 3000),
    ((2, 1, 1, 1, 3, ("confirm",)), 10**9),
    ((2, 2, 1, 1, 2, ("confirm",)), 6000),
]

# Each of these must be detected.
WEAKER = [
    ("counts-at-once", (2, 1, 1, 1, 1, ())),
    ("found-new", (2, 2, 1, 1, 2, ("confirm",))),
    ("degraded", (2, 1, 1, 1, 2, ())),
    ("active-at-once", (1, 1, 1, 1, 1, ())),
    ("not-listed", (1, 1, 1, 1, 1, ())),
    ("drop-m", (2, 1, 1, 1, 2, ())),
    ("drop-lists", (2, 1, 1, 1, 2, ())),
    ("drop-fixed", (2, 1, 1, 1, 2, ())),
    ("no-bit", (1, 1, 1, 1, 3, ("confirm",))),
    ("bit-forgotten", (1, 1, 1, 2, 1, ())),
    ("bit-cleared", (2, 1, 1, 1, 3, ())),
    ("bit-kept", (1, 1, 1, 1, 2, ())),
    ("cancel-late", (1, 1, 1, 1, 3, ())),
    ("cancel-lost", (1, 1, 1, 1, 4, ())),
    ("cancel-lists", (1, 1, 1, 1, 2, ())),
    ("any-slot", (1, 1, 1, 2, 2, ())),
    ("own-m", (2, 1, 1, 2, 2, ())),
    ("mark-first", (1, 1, 1, 2, 2, ("bitmap",))),
    ("mark-absent", (1, 1, 1, 1, 5, ("bitmap",))),
    ("covered-any", (1, 1, 1, 1, 4, ("bitmap",))),
]

# With --all: three minutes more.
LONGER = [
    (1, 1, 1, 1, 6, ("bitmap",)),
    (1, 1, 1, 2, 3, ("bitmap",)),
    (1, 1, 1, 2, 2, ("bitmap", "replace")),
    (1, 1, 1, 3, 1, ("bitmap",)),
    (1, 1, 2, 1, 5, ("bitmap",)),
    (2, 1, 1, 1, 4, ("confirm", "bitmap", "replace")),
    (2, 1, 1, 2, 2, ("bitmap",)),
    (2, 2, 1, 1, 2, ("bitmap",)),
    (3, 2, 1, 1, 2, ("confirm",)),
]
WEAKER_LONGER = [
    ("mark-first,whole-first", (1, 1, 1, 2, 3, ("bitmap",))),
]


def new_model(size, without=()):
    k, m, extra, sessions, events, options = size
    kind = Bitmap if "bitmap" in options else Parity
    return kind(k, m, extra, without=without, confirm="confirm" in options,
                replace="replace" in options)


def describe(size):
    k, m, extra, sessions, events, options = size
    return "%d+%d to %d+%d, %d for the slot, %d sessions, %d events%s" % (
        k, m, k, m + 1, extra, sessions, events,
        "".join(", " + o for o in options))


if __name__ == "__main__":
    sys.exit(Command(new_model, describe, BASE_RULES | RULES | BITMAP_RULES,
                     ("confirm", "bitmap", "replace"), "NEW").main(
                         SLICE, WEAKER, DUMPED, LONGER, WEAKER_LONGER))
