#!/usr/bin/python3
# gpuraid: the distributed redo journal as a small model, tried
# exhaustively.
#
# Transactions write, trim and write directly, of which some is withdrawn
# where there is no space; members fail, one is rebuilt, and at every step,
# in recovery too, there may be a crash that leaves any part of what was not
# flushed.  After every crash every set of
# members opens that has enough of them.
#
#   tests/model/journal/journal.py [--all]            a slice, and the weakenings
#   tests/model/journal/journal.py --run K M ROWS TRANSACTIONS
#       [--crashes N] [--joins N] [--ring N] [--kinds wdtx] [--narrow]
#       [--rot N] [--no-sums] [--without RULE,...] [--limit STATES] [--image]
#
# --joins members are rebuilt, --rot blocks rot, --ring records fit in a
# ring.  --kinds: w is a write, d a direct one, t a trim, x a trim of one
# role and a write to the others.  --narrow: a transaction changes one role
# of one row.
#
# For every crash and every set of members that opens it checks:
#
#   - every row is as it was acknowledged last, or as a later transaction
#     that was not acknowledged left it, whole
#   - all blocks that count are of one code word, so that parity agrees
#   - nothing is lost, and there is no hole in seq
#   - an opening that was cut short answers as before if no member is lost
#
# and when a recovery is complete:
#
#   - from then on every row is as the recovery said
#   - every block in place fits its entry, and generations are in order
#   - what a member that is out of the record lacks, a missed bit tells
#
# journal_rules.py has the rules and the transactions, journal_sessions.py
# all other steps and the checks, journal_recovery.py what an opening does,
# journal_disk.py what a crash leaves.
#
# What the model leaves out: a change of the membership is one step, since
# membership.py tries it; so is a flush with the writes that R7 and R9 want
# repeated.  There are no two members of one slot, no return by the bitmap
# (that every difference has its missed bit is checked), no records of
# several blocks, no bitmap pages, no cap on direct bytes (R12), no
# consistency=none, and never more than m members lost or rotted together.
# A transaction takes one place in every ring, used or not.  "session" and
# "seq" are each enough without the other; only both together are found.
#
# These were run to their end, and nothing broke:
#
#   --run 1 1 2 2 --kinds wd                       539725 states
#   --run 1 1 1 3 --kinds wd --ring 3               37104
#   --run 1 1 2 2 --kinds wd --narrow --joins 1    351957
#   --run 1 1 1 2 --crashes 2 --rot 1              583043
#   --run 2 1 2 1 --crashes 2                      180014
#   --run 2 1 1 2 --crashes 2 --kinds wd           730650
#   --run 2 1 1 3 --kinds w --narrow               149592
#   --run 2 1 1 2 --joins 1 --narrow --kinds wd    341126
#   --run 1 2 1 2                                  260704
#   --run 1 2 1 1 --crashes 2 --rot 1              539263
#   --run 2 2 1 1                                   89172
#   --run 2 2 1 1 --crashes 2 --narrow             122951
#
# A record says which transaction changed its table page before: by that a
# page whose newer place rotted is told from one that was torn.  Without it
# ("page-seq") a page of two places, one of them bad, is trusted where any
# record of it is live, which is enough where nothing rots (--run 1 1 2 2
# --narrow --crashes 2 --without page-seq: 259643 states) and else reads
# zeroes in the place of what was acknowledged.
#
# SPDX-License-Identifier: BSD-3-Clause

import argparse
import sys
from collections import deque

sys.dont_write_bytecode = True

from journal_disk import Broken    # noqa: E402
from journal_rules import RULES    # noqa: E402
from journal_sessions import Model    # noqa: E402


# ---- exploring ------------------------------------------------------------

def unroll(known, run):
    out = []
    while known[run]:
        label, run = known[run]
        out.append(label)
    return out[::-1]


def explore(model, limit):
    """(states, images, None) or (states, images, (what broke, how)).  An
    image is what a crash left."""
    first = model.start()
    known = {first: None}
    images = set()
    todo = deque([first])
    while todo and len(known) < limit:
        run = todo.popleft()
        label = "next"
        try:
            for label, r2 in model.steps(run):
                if r2 not in known:
                    known[r2] = label, run
                    todo.append(r2)
            if not run.left[1]:
                continue
            label = "crash"
            for image in model.crash(run):
                if image in images:
                    continue
                images.add(image)
                for found, r2 in model.opens(image):
                    if r2 not in known:
                        known[r2] = "crash, " + found, run
                        todo.append(r2)
        except Broken as e:
            return len(known), len(images), \
                (e.args[0], unroll(known, run) + [label], e.args[1:])
    return len(known), len(images), None


# ---- the command ------------------------------------------------------------

# (k, m, rows, transactions, options)
SLICE = [
    (1, 1, 1, 2, {"crashes": 2}),
    (1, 1, 1, 2, {"kinds": "wd", "joins": 1}),
    (1, 1, 1, 1, {"kinds": "wd", "joins": 1, "crashes": 2}),
    (1, 1, 2, 1, {"crashes": 2}),
    (1, 1, 1, 3, {"kinds": "dt"}),
    (2, 1, 1, 1, {"crashes": 2, "kinds": "wdtx"}),
    (1, 2, 1, 1, {"crashes": 2}),
    (1, 1, 1, 2, {"crashes": 2, "sums": False}),
    (1, 1, 1, 1, {"crashes": 2, "rot": 1}),
    (2, 1, 1, 1, {"rot": 1}),
]

# Each of these must be detected.
ONE = (1, 1, 1, 1, {})
TWO = (1, 1, 1, 2, {})
THREE = (1, 1, 1, 3, {})
ROWS = (1, 1, 2, 2, {})
AGAIN = (1, 1, 1, 1, {"crashes": 2})
JOIN = (1, 1, 1, 1, {"kinds": "wd", "joins": 1})
ROT = (1, 1, 1, 1, {"crashes": 2, "rot": 1})
WITHDRAWN = (1, 1, 1, 2, {"kinds": "wd"})
REUSE = (2, 1, 1, 2, {"kinds": "w", "narrow": True, "crashes": 2})
WEAKER = [
    ("R1", ONE), ("R2", ONE), ("R3", ONE), ("R3-order", TWO), ("R4", THREE),
    ("R5", TWO), ("R5-cache", (2, 1, 1, 2, {})), ("R6", ONE), ("R7", ONE),
    ("R8", THREE), ("R9", ONE), ("R10", JOIN), ("R10-headers", JOIN),
    ("R10-copy", JOIN), ("R11", ONE), ("R12-free", TWO),
    ("R12-stable", THREE), ("R12-parity", TWO), ("R13", TWO), ("R14", ROWS),
    ("R5-withdraw", WITHDRAWN), ("R5-first", WITHDRAWN),
    ("withdraw-flush", (1, 1, 2, 1, {"kinds": "wd"})),
    ("zero-row", (2, 1, 1, 1, {"kinds": "d"})),
    ("R15", JOIN), ("turn", AGAIN), ("one-place", ROWS), ("newest", TWO),
    ("erasure", ONE), ("drop", ONE),
    ("tail", (2, 1, 1, 2, {"kinds": "w", "narrow": True})),
    ("zeroes", ONE), ("relog", AGAIN), ("relog-flush", AGAIN),
    ("place-flush", AGAIN), ("missed", ONE), ("missed-write", ONE),
    ("missed-leave", ONE),
    ("missed-late", (2, 1, 2, 2, {"kinds": "w", "narrow": True})),
    ("torn-return", (1, 1, 2, 1, {})),
    ("target-write", JOIN), ("target-cursor", JOIN), ("target-direct", JOIN),
    ("target-wait", (1, 1, 2, 2, {"kinds": "w", "narrow": True, "joins": 1})),
    ("page-anew", ROT), ("page-both", ROT),
    ("page-seq", (1, 1, 2, 2, {"kinds": "w", "narrow": True, "rot": 1})),
    ("session,seq", REUSE), ("same-session,seq", REUSE),
]
# These take long.
LONG = {"missed-late", "target-wait", "page-seq", "session,seq",
        "same-session,seq"}


def run(size, without=(), limit=10**9):
    k, m, rows, txs, options = size
    return explore(Model(k, m, rows, txs, without=without, **options), limit)


def describe(size):
    k, m, rows, txs, options = size
    out = "%d+%d, %d row%s, %d transaction%s" % (
        k, m, rows, "s" * (rows > 1), txs, "s" * (txs > 1))
    for name, value in options.items():
        out += ", %s" % name if value is True else ", %s %s" % (name, value)
    return out


def tell(broken):
    print("  %s, after:\n    %s" % (broken[0], "; ".join(broken[1])))


def run_slice(traces, long):
    failed = False
    for size in SLICE:
        states, images, broken = run(size)
        print("%s: %d states, %d images%s" % (
            describe(size), states, images, ", BROKEN" if broken else ""),
            flush=True)
        if broken:
            tell(broken)
            failed = True
    for rules, size in WEAKER:
        if rules in LONG and not long:
            continue
        states, images, broken = run(size, rules.split(","))
        print("without %s, %s: %s" % (
            rules, describe(size), "%s, detected in %d states" % (
                broken[0], states) if broken else "NOT DETECTED"),
            flush=True)
        if broken and traces:
            tell(broken)
        failed |= not broken
    return 1 if failed else 0


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--run", nargs=4, type=int,
                   metavar=("K", "M", "ROWS", "TRANSACTIONS"))
    p.add_argument("--crashes", type=int, default=1)
    p.add_argument("--joins", type=int, default=0)
    p.add_argument("--rot", type=int, default=0)
    p.add_argument("--ring", type=int, default=2)
    p.add_argument("--kinds", default="wdt")
    p.add_argument("--narrow", action="store_true")
    p.add_argument("--no-sums", action="store_true")
    p.add_argument("--all", action="store_true",
                   help="also the weakenings that take long to detect")
    p.add_argument("--traces", action="store_true",
                   help="how each weakening of the slice breaks")
    p.add_argument("--image", action="store_true",
                   help="what the crash left")
    p.add_argument("--without", default="",
                   help="leave rules out: " + ", ".join(sorted(RULES)))
    p.add_argument("--limit", type=int, default=10**9, metavar="STATES")
    args = p.parse_args()
    without = [x for x in args.without.split(",") if x]
    for rule in without:
        if rule not in RULES:
            p.error("no such rule: " + rule)
    if not args.run:
        return run_slice(args.traces, args.all)
    options = {"crashes": args.crashes, "joins": args.joins, "rot": args.rot,
               "ring": args.ring, "kinds": args.kinds,
               "narrow": args.narrow, "sums": not args.no_sums}
    states, images, broken = run(tuple(args.run) + (options,), without,
                                 args.limit)
    print("%d states, %d images%s" % (states, images,
                                      ", BROKEN" if broken else ""))
    if broken:
        tell(broken)
        for image in broken[2] if args.image else ():
            for i, member in enumerate(image.mem):
                print("    %d: %s" % (i, member))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
