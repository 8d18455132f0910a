#!/usr/bin/python3
# gpuraid: the membership protocol as a small model, tried exhaustively.
#
# Sessions open some of the members, put records in force, write, change
# the set of members, lose members, and crash, at every step, in every
# order.  After every crash every set of members is tried: does it open?
#
#   tests/model/membership.py                 a slice, and every weakening
#   tests/model/membership.py --run K M EXTRA SESSIONS EVENTS
#       [--without RULE,...] [--force] [--copies] [--rot] [--images]
#   tests/model/membership.py --dump          for test-membership-model
#
# For every state and every set of members that opens it checks:
#
#   - every member that counts as current holds every acknowledged write
#   - the record that wins is the last one that was in force, or has seen it
#   - without force no record ever looks like another branch
#   - all members together always open
#   - with force, two sides that both continued never open together
#   - of two current members of a slot the one stays that was read before
#
# membership_rules.py has the rules and the checks, membership_sessions.py the
# steps.
#
# SPDX-License-Identifier: BSD-3-Clause

import argparse
import sys
import time
from collections import deque

sys.dont_write_bytecode = True

from membership_rules import Broken, RULES, bits    # noqa: E402
from membership_sessions import Model    # noqa: E402


# ---- exploring ------------------------------------------------------------

def freeze(run):
    return run and tuple(run[x] for x in (
        "phase", "cur", "base", "target", "ready", "epoch", "seen", "next",
        "got", "doomed", "opened", "goes", "past")) + (run.get("by"),)


def crashes(model, state, run, events, path, seen):
    """Every state that a session can leave, with its steps."""
    stack = [(state, run, events, path)]
    while stack:
        state, run, events, path = stack.pop()
        for label, s2, r2, e2 in model.steps(state, run, events):
            if r2 is None:
                if s2 not in seen:
                    seen.add(s2)
                    yield model.canonical(*s2), (label, path)
                continue
            key = (s2, freeze(r2), e2)
            if key not in seen:
                seen.add(key)
                stack.append((s2, r2, e2, (label, path)))


def unroll(path):
    out = []
    while path:
        out.append(path[0])
        path = path[1]
    return out[::-1]


def explore(model, sessions, events, limit, states=None):
    """(states, None) or (states, (what broke, how)).  Every state is put
    into states."""
    first = model.start()
    known = {first}
    todo = deque([(first, 0, None)])
    while todo and len(known) < limit:
        state, depth, path = todo.popleft()
        seen = set()
        for found in range(1, model.all + 1):
            for force in ((False, True) if model.force else (False,)):
                run = model.open(state, found, force)
                if run is None:
                    continue
                label = "%s %s" % ("force" if force else "open",
                                   list(bits(found)))
                for s2, p2 in crashes(model, state, run, events,
                                      (label, path), seen):
                    if s2 in known:
                        continue
                    known.add(s2)
                    if states is not None:
                        states.append(s2)
                    try:
                        model.check(*s2)
                    except Broken as e:
                        return len(known), (str(e), unroll(p2), s2)
                    if depth + 1 < sessions:
                        todo.append((s2, depth + 1, p2))
    return len(known), None


# ---- the command ------------------------------------------------------------

# (k, m, members that replace, sessions, events in each, options)
SLICE = [
    (1, 1, 0, 3, 1, ()),
    (1, 1, 1, 1, 4, ()),
    (1, 1, 1, 2, 2, ()),
    (1, 2, 0, 2, 1, ()),
    (2, 1, 0, 2, 1, ()),
    (2, 1, 1, 1, 3, ()),
    (2, 2, 0, 2, 0, ()),
    (3, 1, 0, 2, 0, ()),
    (3, 2, 0, 2, 0, ()),
    (1, 1, 0, 3, 0, ("copies",)),
    (1, 1, 0, 3, 0, ("rot",)),
    (2, 1, 0, 2, 0, ("rot",)),
    (1, 1, 1, 1, 4, ("rot",)),
    (2, 1, 0, 3, 0, ("images",)),
    (2, 2, 0, 2, 0, ("images",)),
    (1, 2, 0, 2, 1, ("force",)),
    (1, 1, 0, 3, 1, ("force",)),
    (2, 1, 0, 2, 1, ("force",)),
    (2, 1, 1, 2, 1, ("force",)),
]

# Each of these must be detected.  The first ones are the rules that
# look simpler; two of them are safe only if the base is asked too.
WEAKER = [
    ("sessions", (2, 1, 0, 2, 1, ())),
    ("goback,no-base", (2, 2, 0, 3, 0, ())),
    ("swap,keep-base,no-base", (2, 1, 1, 1, 3, ())),
    ("quorum-k", (2, 2, 0, 2, 0, ())),
    ("quorum-half", (1, 2, 0, 2, 1, ())),
    ("together", (1, 1, 0, 2, 1, ())),
    ("no-base", (2, 2, 0, 3, 1, ())),
    ("base-moves", (1, 1, 0, 2, 1, ())),
    ("only-accepted", (1, 1, 0, 2, 1, ())),
    ("early", (1, 1, 0, 2, 1, ())),
    ("late-target", (1, 1, 1, 2, 2, ())),
    ("told-early", (1, 1, 1, 2, 4, ())),
    ("a-first", (1, 1, 0, 3, 0, ("copies",))),
    ("one-copy", (1, 1, 0, 2, 0, ("rot",))),
    ("any-current", (1, 1, 0, 2, 1, ("images",))),
    ("any-epoch", (2, 1, 0, 3, 1, ("images",))),
    ("no-branch", (1, 1, 0, 3, 1, ("force",))),
    ("past-seen", (2, 1, 0, 2, 1, ("force",))),
    ("past-listed", (2, 1, 0, 2, 1, ("force",))),
    ("by-parent", (1, 1, 1, 2, 2, ())),
    ("early-resync", (1, 1, 1, 2, 2, ())),
]


# Of the last one all states would take a minute.  In some of the first
# ones force goes back to a slot with two members.
DUMPED = [
    ((1, 1, 0, 2, 1, ()), 10**9),
    ((1, 1, 1, 2, 2, ()), 10**9),
    ((2, 1, 1, 1, 2, ()), 10**9),
    ((2, 2, 0, 2, 0, ()), 10**9),
    ((1, 2, 0, 2, 0, ("force",)), 10**9),
    ((2, 1, 0, 2, 1, ("force",)), 10**9),
    ((2, 1, 1, 2, 2, ("force",)), 11000),
]


def new_model(size, without=()):
    k, m, extra, sessions, events, options = size
    return Model(k, m, extra, without=without,
                 **{option: True for option in options})


def describe(size):
    k, m, extra, sessions, events, options = size
    return "%d+%d%s, %d sessions, %d events%s" % (
        k, m, "+%d" % extra if extra else "", sessions, events,
        "".join(", " + o for o in options))


def dump_states(model, size, limit):
    """States, and the decision of every set of members.

    state K M NR HIDES, the slot of each member, then for each member two
    records, each "-" or r and epoch session active shape (of the record, its
    base, its parent), goes and the seen, then for each set of members:
    found MASK OPENS EPOCH SESSION KNOWN CURRENT GOES WHY, and what force
    goes back to if fewer than k are current: EPOCH SESSION KNOWN CURRENT, or
    zeroes.  HIDES: with the second half of M4.  A shape is 0, or that of
    reshape/membership_parity.py.
    """
    def line(r):
        if r is None:
            return "-"
        names = [c + (model.shape(c),) for c in (r[:3], r[3], r[4])]
        return "r %d %d %d %d %d %d %d %d %d %d %d %d %d %d %s" % (
            sum(names, ()) +
            (r[6], len(r[5]), " ".join("%d %d" % b for b in r[5])))
    states = []
    explore(model, size[3], size[4], limit, states)
    for mem, writes, last in states:
        print("state %d %d %d %d" % (size[:2] + (model.nr, model.hides)))
        print(*model.slot)
        for i in range(model.nr):
            print(line(mem[i][0]), line(mem[i][1]))
        for found in range(1, model.all + 1):
            if not all(mem[i][0] or mem[i][1] for i in bits(found)):
                continue
            opens, w, known, base, current, goes, why = \
                model.decide(mem, found)
            past = model.go_past(mem, found, w) \
                if why == "data" else None
            print("found %d %d %d %d %d %d %d %s" % (
                found, opens, w[0], w[1], known, current, goes,
                why or "-"),
                *(past[0][:2] + (int(past[1]), past[3]) if past
                  else (0, 0, 0, 0)))


class Command:
    """What a model of sessions is run by.  new_model makes one of a size with
    some rules left out, describe names a size."""
    def __init__(self, new_model, describe, rules, options, extra="EXTRA"):
        self.new_model, self.describe = new_model, describe
        self.rules, self.options, self.extra = rules, options, extra

    def run(self, size, without=(), limit=10**9):
        return explore(self.new_model(size, without), size[3], size[4], limit)

    def tell(self, broken):
        print("  %s, after:\n    %s" % (broken[0], "; ".join(broken[1])))

    def run_slice(self, sizes, weaker, traces):
        failed = False
        for size in sizes:
            start = time.time()
            nr, broken = self.run(size)
            print("%s: %d states%s%s" % (
                self.describe(size), nr, ", %.1f s" % (time.time() - start)
                if traces else "", ", BROKEN" if broken else ""), flush=True)
            if broken:
                self.tell(broken)
                failed = True
        for rules, size in weaker:
            start = time.time()
            nr, broken = self.run(size, rules.split(","))
            print("without %s, %s: %s%s" %
                  (rules, self.describe(size),
                   broken[0] if broken else "NOT DETECTED",
                   ", %d states, %.1f s" % (nr, time.time() - start)
                   if traces else ""), flush=True)
            if broken and traces:
                self.tell(broken)
            failed |= not broken
        return 1 if failed else 0

    def parse(self, longer):
        p = argparse.ArgumentParser()
        p.add_argument("--run", nargs=5, type=int,
                       metavar=("K", "M", self.extra, "SESSIONS", "EVENTS"))
        p.add_argument("--without", default="",
                       help="leave rules out: " + ", ".join(sorted(self.rules)))
        p.add_argument("--limit", type=int, default=10**9, metavar="STATES")
        p.add_argument("--dump", action="store_true")
        if longer:
            p.add_argument("--all", action="store_true",
                           help="larger shapes too")
        p.add_argument("--traces", action="store_true",
                       help="say how each weakening breaks, and times")
        for option in self.options:
            p.add_argument("--" + option, action="store_true")
        args = p.parse_args()
        args.without = [x for x in args.without.split(",") if x]
        for rule in args.without:
            if rule not in self.rules:
                p.error("no such rule: " + rule)
        return args

    def main(self, sizes, weaker, dumped, longer=None, weaker_longer=None):
        args = self.parse(longer)
        if args.dump:
            for size, limit in dumped:
                dump_states(self.new_model(size), size, limit)
            return 0
        if not args.run:
            if longer and args.all:
                sizes, weaker = sizes + longer, weaker + weaker_longer
            return self.run_slice(sizes, weaker, args.traces)
        options = tuple(o for o in self.options if getattr(args, o))
        nr, broken = self.run(tuple(args.run) + (options,), args.without,
                              args.limit)
        print("%d states%s" % (nr, ", BROKEN" if broken else ""))
        if broken:
            self.tell(broken)
        return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(Command(new_model, describe, RULES,
                     ("force", "copies", "rot", "images")).main(
                         SLICE, WEAKER, DUMPED))
