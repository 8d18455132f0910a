#!/usr/bin/python3
# gpuraid: a remote member and its server as a small model, tried
# exhaustively.
#
# The server has a volatile cache.  It may restart at any step and lose any
# part of what was not flushed, or be replaced by another export.  The member
# has two connections, a log of what was not flushed (R9), and writes and
# flushes of the array to carry out.  The array may be killed, and opened again.
#
#   tests/model/remote.py             all of it, and each rule left out
#   tests/model/remote.py --without RULE [--single]
#
# At every step it checks:
#
#   - what an acknowledged flush covers is on stable storage, in that or a
#     later version
#   - so is what was read when the array was opened: it decides by that
#   - another export is never written to
#
# The rules, see docs/remote.md:
#
#   reissue     the log is issued again after a reconnect
#   first       ... before anything else, a flush too
#   order       ... in order, each write after the one before is acknowledged
#   mark        a flush removes from the log only what was acknowledged before
#               the flush was sent
#   identity    after a reconnect the export is compared before any write
#   all-lost    when one connection is lost, the others are closed too
#   one-conn    only a server that says multi-conn gets several connections
#   open-flush  an opening flushes before it reads
#
# What the model leaves out: zeroes and trims, which are in the log like
# writes; the bound of the log; a server that carries out requests of a
# connection after the member has lost it (docs/remote.md says so), or after
# the array was killed; and a server that flushes for a new connection only
# what that one wrote.  The array never has two writes of one block in flight.
#
# SPDX-License-Identifier: BSD-3-Clause

import argparse
import itertools
import sys
from collections import deque, namedtuple

RULES = ['reissue', 'first', 'order', 'mark', 'identity', 'all-lost',
         'one-conn', 'open-flush']
BLOCKS = 2

# How often each may happen.  With a kill less of the rest is enough.
Limits = namedtuple('Limits', 'writes flushes restarts kills')
USUAL = Limits(3, 2, 2, 0)
KILLED = Limits(2, 1, 1, 1)

# srv: 0 ours, 1 another export.  cache: (conn, block, version), oldest first.
# conns: per connection 'up', 'dead' (not noticed yet) or '-'.
# log: (block, version, time of the acknowledgement), oldest first.
# todo: replays still to be sent.  reqs: (kind, conn, block, version or mark,
# executed); kind w, r (a replay), f, or o (a flush of an opening).  pend: writes
# to send.  flush: None, or (versions that it covers, sent).  phase: down, up,
# out; of an opening: closed, opened (connected), flushing, read.
State = namedtuple('State', 'srv stable cache restarts conns phase log todo '
                   'reqs pend flush time next acked covered flushes kills')
OPENING = ('closed', 'opened', 'flushing', 'read')


class Broken(Exception):
    pass


def start():
    zero = (0,) * BLOCKS
    return State(0, zero, (), 0, ('-', '-'), 'down', (), (), (), (), None, 0,
                 zero, zero, zero, 0, 0)


def put(t, i, v):
    return t[:i] + (v,) + t[i + 1:]


class Model:
    def __init__(self, without=(), multi=True, limits=USUAL):
        self.limits = limits
        self.rules = set(RULES) - set(without)
        self.multi = multi

    def has(self, rule):
        return rule in self.rules

    def conns(self):
        return 2 if self.multi or not self.has('one-conn') else 1

    # ---- the array

    def array(self, s):
        if s.kills < self.limits.kills:
            yield 'kill', s._replace(
                kills=s.kills + 1, conns=('-', '-'), phase='closed', log=(),
                todo=(), reqs=(), pend=(), flush=None)
        if s.phase in OPENING:
            yield from self.open(s)
            return
        for b in range(BLOCKS):
            if sum(s.next) < self.limits.writes and s.next[b] == s.acked[b]:
                v = s.next[b] + 1
                yield (f'write {b}.{v}', s._replace(
                    next=put(s.next, b, v), pend=s.pend + ((b, v),)))
        if (s.flush is None and s.flushes < self.limits.flushes
                and s.acked > s.covered):
            yield 'flush', s._replace(flush=(s.acked, False),
                                      flushes=s.flushes + 1)

    def open(self, s):
        if s.phase == 'closed':
            if s.srv:
                yield 'open, another export', s._replace(phase='out')
            else:
                yield 'open', s._replace(
                    conns=('up', '-'),
                    phase='opened' if self.has('open-flush') else 'read')
        elif s.phase == 'opened':
            yield 'send flush', s._replace(
                phase='flushing', reqs=(('o', 0, None, s.time, False),))
        elif s.phase == 'read' and s.conns[0] == 'up':
            seen = list(s.stable)
            for _, b, v in s.cache:
                seen[b] = v
            seen = tuple(seen)
            # The connections are made as after a loss.
            yield f'read {seen}', s._replace(
                phase='down', conns=('-', '-'), next=seen, acked=seen,
                covered=tuple(map(max, s.covered, seen)))

    # ---- the server

    def check(self, s):
        for b in range(BLOCKS):
            if s.stable[b] < s.covered[b]:
                raise Broken(f'block {b}: version {s.covered[b]} was flushed, '
                             f'{s.stable[b]} is there')
        return s

    def server(self, s):
        for i, r in enumerate(s.reqs):
            kind, conn, b, v, executed = r
            if executed or s.conns[conn] != 'up':
                continue
            s2 = s._replace(reqs=put(s.reqs, i, (kind, conn, b, v, True)))
            if kind not in 'fo' and s.srv:
                raise Broken('another export was written to')
            if kind not in 'fo':
                s2 = s2._replace(cache=s.cache + ((conn, b, v),))
            elif s.srv == 0:
                stable, rest = list(s.stable), []
                for c in s.cache:
                    if self.multi or c[0] == conn:
                        stable[c[1]] = c[2]
                    else:
                        rest.append(c)
                s2 = s2._replace(stable=tuple(stable), cache=tuple(rest))
            yield f'the server does {r}', s2

    def restart(self, s):
        if s.restarts == self.limits.restarts:
            return
        gone = tuple('dead' if c == 'up' else c for c in s.conns)
        s = s._replace(restarts=s.restarts + 1, conns=gone, cache=())
        choices = [{s.stable[b]} for b in range(BLOCKS)]
        for _, b, v in self.old_cache:
            choices[b].add(v)
        for stable in itertools.product(*choices):
            for srv in (0, 1):
                yield (f'restart {srv}, {stable}', s._replace(
                    srv=srv, stable=stable))

    # ---- the member

    def lose(self, s, conn):
        if s.phase in OPENING:
            return s._replace(conns=('-', '-'), phase='closed', reqs=())
        lost = set(range(2)) if self.has('all-lost') else {conn}
        reqs, pend, flush = [], [], s.flush
        todo = s.todo
        for r in s.reqs:
            if r[1] not in lost:
                reqs.append(r)
            elif r[0] == 'w':
                pend.append((r[2], r[3]))
            elif r[0] == 'r':
                todo = ((r[2], r[3]),) + todo
            elif flush:
                flush = (flush[0], False)
        conns = tuple('-' if c in lost else x for c, x in enumerate(s.conns))
        return s._replace(conns=conns, reqs=tuple(reqs), todo=todo,
                          pend=tuple(pend) + s.pend, flush=flush,
                          phase='down' if self.has('all-lost') or
                          '-' in conns else s.phase)

    def begin(self, s):
        todo = tuple((b, v) for b, v, _ in s.log)
        if not self.has('reissue'):
            todo = ()
        return s._replace(phase='up', todo=todo)

    def connection(self, s):
        for c in range(2):
            if s.conns[c] == 'dead':
                yield f'connection {c} lost', self.lose(s, c)
        if s.phase == 'down':
            conns = tuple('up' if c < self.conns() and x == '-' else x
                          for c, x in enumerate(s.conns))
            s2 = s._replace(conns=conns, phase='check')
            if not self.has('identity'):
                yield 'connect', self.begin(s2)
            elif not s.srv:
                yield 'connect', self.begin(s2)
            else:
                yield 'connect, another export', s._replace(phase='out')

    def send(self, s):
        if s.phase != 'up':
            return
        busy = any(r[0] == 'r' for r in s.reqs)
        for i, (b, v) in enumerate(s.todo):
            if self.has('order') and (i or busy):
                break
            yield (f'again {b}.{v}', s._replace(
                todo=s.todo[:i] + s.todo[i + 1:],
                reqs=s.reqs + (('r', 0, b, v, False),)))
        if self.has('first') and (busy or s.todo):
            return
        for c in range(self.conns()):
            if s.conns[c] == '-':
                continue
            for i, (b, v) in enumerate(s.pend):
                yield (f'send {b}.{v} on {c}', s._replace(
                    pend=s.pend[:i] + s.pend[i + 1:],
                    reqs=s.reqs + (('w', c, b, v, False),)))
            if s.flush and not s.flush[1]:
                yield (f'send flush on {c}', s._replace(
                    flush=(s.flush[0], True), time=s.time + 1,
                    reqs=s.reqs + (('f', c, None, s.time, False),)))

    def replies(self, s):
        for i, (kind, conn, b, v, executed) in enumerate(s.reqs):
            if not executed:
                continue
            s2 = s._replace(reqs=s.reqs[:i] + s.reqs[i + 1:])
            if kind == 'w':
                s2 = s2._replace(log=s.log + ((b, v, s.time),),
                                 acked=put(s.acked, b, v))
            elif kind == 'o':
                s2 = s2._replace(phase='read')
            elif kind == 'f':
                keep = tuple(e for e in s.log if e[2] > v)
                if not self.has('mark'):
                    keep = ()
                s2 = s2._replace(log=keep, flush=None,
                                 covered=tuple(map(max, s.covered,
                                                   s.flush[0])))
            yield f'reply to {kind} {b}.{v}', s2

    def steps(self, s):
        if s.phase == 'out':
            return
        self.old_cache = s.cache
        for part in (self.array, self.server, self.restart, self.connection,
                     self.send, self.replies):
            for label, s2 in part(s):
                yield label, self.check(s2)


def explore(model):
    """(states, None) or (states, (what broke, how))."""
    known = {start(): None}
    todo = deque(known)
    while todo:
        s = todo.popleft()
        try:
            for label, s2 in model.steps(s):
                if s2 not in known:
                    known[s2] = label, s
                    todo.append(s2)
        except Broken as e:
            how = []
            while known[s]:
                label, s = known[s]
                how.append(label)
            return len(known), (str(e), how[::-1])
    return len(known), None


def run(without, multi, limits=USUAL):
    states, broken = explore(Model(without, multi, limits))
    print(f"{'several' if multi else 'single'} "
          f"{'killed ' if limits.kills else ''}"
          f"{'without ' + ','.join(without) if without else 'all rules'}: "
          f"{states} states: {broken[0] if broken else 'holds'}", flush=True)
    return broken


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--without')
    p.add_argument('--single', action='store_true')
    args = p.parse_args()
    if args.without:
        without = args.without.split(',')
        broken = run(without, not args.single,
                     KILLED if 'open-flush' in without else USUAL)
        print('\n'.join(broken[1]) if broken else '')
        return 0
    bad = 0
    for multi in True, False:
        bad += run([], multi) is not None
        bad += run([], multi, KILLED) is not None
    for rule in RULES:
        bad += run([rule], rule != 'one-conn',
                   KILLED if rule == 'open-flush' else USUAL) is None
    if bad:
        print(f'{bad} of these are not as they should be')
    return 1 if bad else 0


sys.exit(main())
