#!/usr/bin/python3
# gpuraid: two servers that reach the same members, as a small model, tried
# exhaustively.
#
# Each server may start, wait, stand by for a client, put its first record in
# force, write, stand still, be cut off from the answers of a remote member,
# lose that, stop and crash, at any time and as often as it likes.  A tick is a
# second.  What is written arrives within one.
#
#   tests/model/two_hosts.py              all of it, and each rule left out
#   tests/model/two_hosts.py --members d|r|rd [--without RULE,...]
#
# Members are d, a disk that both hosts reach (multihost=yes), or r, an NBD
# export.  At every step it checks that not both servers can write data.
#
# With an export only, fresh, records and again may be left out: the look before
# each superblock finds the same.  That members are flushed before they are
# believed changes nothing here; see process_death.py.
#
# What the model leaves out: which members are enough (membership.py; here an
# opener has them all); beats that a change of the record holds up
# (docs/remote.md says so); and what a host that stands still has handed to its
# kernel, which may go out when it goes on.
#
# SPDX-License-Identifier: BSD-3-Clause

import argparse
import sys
from collections import deque, namedtuple

BEAT = 3        # INTERVAL_NS of array/watch/watch.c
LOOK = 3        # nbd_look_ns of member/nbd/look.c
LEASE = 6       # nbd_look_is_old
WAIT = 10       # WAIT_S of array/open/live.c
DELAY = 1       # of a write in flight, also when its server has crashed
STILL = 5       # a beat that is later than this may not be seen

RULES = {
    'beat': 'the beat is on every active member',
    'kept': 'the beat goes on when the remote member is lost',
    'stop': 'the beat goes on in a stop, while what is left is written out',
    'last': 'a stop clears the beat when nothing is to be written any more',
    'clean': 'only a stop clears it',
    'wait': 'an opener that finds one waits for longer than the beat and the '
            'lease together',
    'every': 'it looks at every member, not at remote ones only',
    'fresh': "it reads the member, not its host's cache",
    'records': 'it refuses where a record has changed, too',
    'again': 'it looks again just before its first record',
    'look': 'a remote superblock is looked at before it is written',
    'lease': 'nothing else is written if the last good look is old',
    'away': 'a disk is written only after a look, if the last beat is old',
}

# Without these it may break, and docs/promises.md says so.
GIVEN = {
    'apart': 'two servers do not make their first records, nor one its first '
             'record and the other go on too late, within a second',
    'clock': 'the clock of a server that stands still goes on',
}

# mode: closed; wait, for n ticks; ready (no client yet); open (round n of its
# first record is on its way); run; stop (writes out); ending (the beat is being
# cleared); gone (crashed in this second).  still: it stands still, 1 since this
# second, 2 for longer.  cut: off from answers.  since: ticks since its last
# beat.  late: that one came too late to be seen, and is on its way.  age: of
# the last good look.  news: by member what of the other one has arrived since it
# was read or written, 1 a beat, 2 a record, 3 both.
Server = namedtuple('Server', 'mode n still cut since late uses age news')
# beats: by member 0, 1 (the first one) or 2 (any other).  flight: what is
# written to superblocks (server, member, what, age).
State = namedtuple('State', 'servers beats flight')


class Broken(Exception):
    pass


def put(t, i, v):
    return t[:i] + (v,) + t[i + 1:]


class Model:
    def __init__(self, kinds, without=()):
        self.kinds = kinds
        self.off = set(without)
        self.all = range(len(kinds))
        self.closed = Server('closed', 0, 0, 0, 0, 0, 0, 0,
                             (0,) * len(kinds))
        self.wait = BEAT if 'wait' in self.off else WAIT

    def start(self):
        return State((self.closed,) * 2, (0,) * len(self.kinds), ())

    def uses(self, server, kinds='dr'):
        return [i for i in self.all
                if server.uses >> i & 1 and self.kinds[i] in kinds]

    # ---- host writes

    def may_write(self, server):
        """Can data of it reach a member?"""
        if server.mode == 'gone':
            return True
        if server.mode not in ('run', 'stop') or server.still == 2:
            return False
        return bool(self.uses(server, 'd')) and not self.is_away(server) or \
            bool(self.uses(server, 'r')) and (
                server.age <= LEASE or 'lease' in self.off)

    def is_away(self, server):
        """Its disks must be looked at."""
        return server.since > LEASE and 'away' not in self.off

    def check(self, state):
        if all(self.may_write(x) for x in state.servers):
            raise Broken('both write')
        return state

    # ---- superblocks

    def send(self, state, host, member, what):
        return state._replace(flight=tuple(sorted(
            state.flight + ((host, member, what, 0),))))

    def is_late(self, server):
        return server.late or server.since > BEAT + STILL

    def is_back(self, server):
        """Did it go on just now, too late?"""
        return server.late or self.is_late(server) and \
            not server.still and not server.cut

    def busy(self, state, host, member=None):
        return any(f[0] == host and member in (None, f[1])
                   for f in state.flight)

    def arrive(self, state):
        for i, (host, member, what, age) in enumerate(state.flight):
            old = state.beats[member]
            beat = {'record': 1, 'beat': 2, 'clear': 0}[what]
            news = 2 * (what == 'record') | (beat != old or what == 'beat')
            a, b = state.servers[host], state.servers[1 - host]
            a = a._replace(news=put(a.news, member, 0))
            if b.mode not in ('closed', 'gone', 'ending'):
                b = b._replace(news=put(b.news, member,
                                        b.news[member] | news))
            yield host, 'has its %s on %d' % (what, member), State(
                (a, b) if host == 0 else (b, a),
                put(state.beats, member, beat),
                state.flight[:i] + state.flight[i + 1:])

    def write(self, state, host, what, members):
        """A superblock of each of these, if no other server's is found."""
        for i in members:
            server = state.servers[host]
            if self.kinds[i] == 'r' and 'look' not in self.off:
                if server.news[i]:
                    state = self.drop(state, host, i)
                    continue
                state = self.set(state, host, age=0)
            state = self.send(state, host, i, what)
        server = state.servers[host]
        return self.set(state, host, since=0, late=self.is_late(server))

    def drop(self, state, host, member):
        """The member is not used any more."""
        uses = state.servers[host].uses & ~(1 << member)
        if not uses:
            return self.set(state, host, **self.closed._asdict())
        return self.set(state, host, uses=uses, age=0)

    def set(self, state, host, **what):
        return state._replace(servers=put(
            state.servers, host, state.servers[host]._replace(**what)))

    # ---- an opening

    def is_apart(self, state, host):
        """Does the other one not begin, or go on, at this moment?"""
        return 'apart' in self.off or (
            state.servers[1 - host].mode != 'open' and
            not self.is_back(state.servers[1 - host]))

    def looked_at(self, server):
        return self.uses(server, 'r' if 'every' in self.off else 'dr')

    def changed(self, server):
        mask = 1 if 'records' in self.off else 3
        return 'fresh' not in self.off and any(
            server.news[i] & mask for i in self.looked_at(server))

    def opening(self, state, host):
        server = state.servers[host]
        if server.mode == 'closed':
            s = self.closed._replace(uses=(1 << len(self.kinds)) - 1)
            beat = any(state.beats[i] for i in self.looked_at(s))
            s = s._replace(mode='wait' if beat else 'ready')
            yield 'starts' + (', waits' if beat else ''), self.set(
                state, host, **s._asdict())
        elif server.mode == 'wait' and server.n == self.wait:
            if self.changed(server):
                yield 'refuses', self.set(state, host, **self.closed._asdict())
            else:
                yield 'has waited', self.set(state, host, mode='ready', n=0)
        elif server.mode == 'ready':
            yield from self.first_client(state, host)
        elif server.mode == 'open':
            yield from self.first_record(state, host)

    def first_client(self, state, host):
        server = state.servers[host]
        if not self.is_apart(state, host):
            return
        if 'again' not in self.off and self.changed(server):
            yield 'refuses its client', self.set(state, host,
                                                 **self.closed._asdict())
        else:
            yield 'has a client', self.set(state, host, mode='open')

    def first_record(self, state, host):
        server = state.servers[host]
        if self.busy(state, host):
            return
        if server.n == 2:
            yield 'runs', self.set(state, host, mode='run', n=0)
            return
        s = self.write(state, host, 'record', self.uses(server))
        if s.servers[host].mode == 'open':
            s = self.set(s, host, n=server.n + 1)
        yield 'proposes' if server.n == 0 else 'lets accept', s

    # ---- in use

    def beats(self, server):
        """On which members."""
        if server.mode == 'stop' and 'stop' in self.off:
            return []
        remote = self.uses(server, 'r')
        if 'beat' in self.off:
            return remote
        if 'r' in self.kinds and not remote and 'kept' in self.off:
            return []
        return self.uses(server)

    def must(self, state, host):
        """The timers that have gone off: no tick before these."""
        server = state.servers[host]
        if server.still:
            return
        if server.mode == 'open':
            yield from self.first_record(state, host)
        if server.mode not in ('run', 'stop'):
            return
        if self.uses(server, 'r') and server.age > LEASE:
            yield 'a look is overdue', self.drop(state, host,
                                                 self.uses(server, 'r')[0])
        if server.cut:
            return
        if self.is_away(server) and any(server.news[i]
                                        for i in self.uses(server, 'd')):
            yield 'sees the other one on a disk', self.set(
                state, host, **self.closed._asdict())
        elif server.since >= BEAT:
            yield 'beats', self.write(state, host, 'beat', [
                i for i in self.beats(server)
                if not self.busy(state, host, i)])
        elif server.age >= LOOK:
            for i in self.uses(server, 'r'):
                if 'look' not in self.off and server.news[i]:
                    yield 'sees the other one', self.drop(state, host, i)
                else:
                    yield 'looks', self.set(state, host, age=0)

    def running(self, state, host):
        server = state.servers[host]
        if server.mode not in ('run', 'stop'):
            return
        yield from self.must(state, host)
        remote = self.uses(server, 'r')
        if remote and self.uses(server, 'd'):
            yield 'loses its remote member', self.drop(state, host, remote[0])
        if self.kinds == 'r' and not server.cut:
            yield 'is cut off', self.set(state, host, cut=1)
        if server.cut:
            if self.is_apart(state, host):
                yield 'is connected again', self.set(state, host, cut=0)
            return
        if self.uses(server, 'd') and self.is_away(server):
            return
        idle = not self.busy(state, host)
        if server.mode == 'run':
            s = self.set(state, host, mode='stop')
            if 'last' not in self.off:
                yield 'stops', s
            elif idle:
                yield 'stops, clears the beat', self.write(
                    s, host, 'clear', self.uses(server))
            if 'clean' in self.off and idle:
                yield 'clears the beat', self.write(state, host, 'clear',
                                                    self.uses(server))
        elif idle:
            s = self.write(state, host, 'clear', self.uses(server))
            if s.servers[host].mode != 'closed':
                s = self.set(s, host, mode='ending', age=0)
            yield 'has written out', s

    # ---- what happens to it

    def fate(self, state, host):
        server = state.servers[host]
        if server.mode in ('run', 'stop'):
            gone = self.closed._replace(mode='gone', uses=server.uses,
                                        late=self.is_late(server))
            yield 'crashes', self.set(state, host, **(
                gone if self.may_write(server) else self.closed)._asdict())
        elif server.mode in ('wait', 'ready', 'open', 'ending'):
            yield 'ends', self.set(state, host, **self.closed._replace(
                late=server.late)._asdict())
        if server.mode in ('run', 'stop', 'open') and not server.still:
            yield 'stands still', self.set(state, host, still=1)

    def steps(self, state):
        yield from self.arrive(state)
        for host in (0, 1):
            server = state.servers[host]
            if server.still:
                if self.is_apart(state, host):
                    yield host, 'goes on', self.set(state, host, still=0)
                continue
            if server.mode == 'ending' and not self.busy(state, host):
                yield host, 'is stopped', self.set(
                    state, host, **self.closed._asdict())
            if server.mode == 'closed' and self.busy(state, host):
                continue
            for part in self.opening, self.running, self.fate:
                for label, s in part(state, host):
                    yield host, label, s
        if self.may_tick(state):
            yield None, 'tick', self.tick(state)

    def may_tick(self, state):
        if any(f[3] >= DELAY for f in state.flight):
            return False
        for host in (0, 1):
            if any(True for _ in self.must(state, host)):
                return False
        return True

    def tick(self, state):
        return state._replace(
            servers=tuple(self.later(x, self.busy(state, host))
                          for host, x in enumerate(state.servers)),
            flight=tuple((w, m, what, age + 1)
                         for w, m, what, age in state.flight))

    def later(self, x, busy):
        if x.mode == 'gone':
            return self.closed._replace(late=x.late and busy)
        if x.mode == 'wait':
            return x._replace(n=min(x.n + 1, self.wait))
        if x.mode not in ('run', 'stop', 'open'):
            return x._replace(late=x.late and busy)
        if x.still:
            x = x._replace(still=2)
            if 'clock' in self.off:
                return x
        elif not busy:
            x = x._replace(late=False)
        return x._replace(
            since=min(x.since + 1, BEAT + STILL + 1),
            age=min(x.age + 1, LEASE + 1) if self.uses(x, 'r') else 0)


def in_order(state):
    """(the state, or the same with the servers exchanged, whether it is)"""
    a, b = state.servers
    if a <= b:
        return state, 0
    return State((b, a), state.beats, tuple(sorted(
        (1 - f[0],) + f[1:] for f in state.flight))), 1


def trace(known, state):
    steps = []
    while known[state]:
        host, label, swapped, state = known[state]
        steps.append((host, label, swapped))
    out, names = [], 'AB'
    for host, label, swapped in reversed(steps):
        out.append(label if host is None else names[host] + ' ' + label)
        if swapped:
            names = names[::-1]
    return out


def explore(model):
    """(states, None) or (states, (what broke, how))."""
    known = {model.start(): None}
    todo = deque(known)
    while todo:
        s = todo.popleft()
        for host, label, s2 in model.steps(s):
            s2, swapped = in_order(s2)
            if s2 in known:
                continue
            known[s2] = host, label, swapped, s
            try:
                todo.append(model.check(s2))
            except Broken as e:
                return len(known), (str(e), trace(known, s2))
    return len(known), None


# Each of these must be detected, with these members.
WEAKER = [('apart', 'd'), ('apart', 'r'), ('away', 'd'), ('clock', 'r'),
          ('clock', 'd'),
          ('beat', 'd'), ('kept', 'rd'), ('stop', 'd'), ('stop', 'r'),
          ('last', 'd'), ('last', 'r'), ('clean', 'd'), ('clean', 'r'),
          ('wait', 'd'), ('wait', 'r'), ('every', 'rd'), ('fresh', 'd'),
          ('records', 'd'), ('again', 'd'), ('look', 'r'), ('lease', 'r')]


def run(kinds, without=()):
    nr, broken = explore(Model(kinds, without))
    print('%-2s %s: %d states: %s' % (
        kinds, 'without ' + ','.join(without) if without else 'all rules', nr,
        broken[0] if broken else 'holds'), flush=True)
    return broken


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--members', choices=('d', 'r', 'rd'))
    p.add_argument('--without', default='', help=', '.join(RULES | GIVEN))
    args = p.parse_args()
    without = [x for x in args.without.split(',') if x]
    if set(without) - set(RULES | GIVEN):
        p.error('no such rule: there are ' + ', '.join(RULES | GIVEN))
    if args.members:
        broken = run(args.members, without)
        print('\n'.join(broken[1]) if broken else '')
        return broken is not None
    bad = sum(run(kinds) is not None for kinds in ('d', 'r', 'rd'))
    for rule, kinds in WEAKER:
        bad += run(kinds, [rule]) is None
    if bad:
        print('%d of these are not as they should be' % bad)
    return bad != 0


if __name__ == '__main__':
    sys.exit(main())
