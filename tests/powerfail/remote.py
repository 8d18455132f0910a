"""gpuraid: what happens to the servers of remote members in the rig.

While the array's server lives a member's server may be killed and started
again, with or without what was not flushed, or be stopped: several at a time,
also more than m for a short time.  Then

  - no request fails, and all are answered after the servers are back, or
    after timeout= if at most m are away
  - every byte that was acknowledged is there, flushed or not (R9)
  - no member is taken out that was away for less than timeout=
  - a scrub finds that all of each row fits together, and nothing was decoded
    in place of a block with another checksum

A member that was away for longer is lost, as in rig.py.

SPDX-License-Identifier: BSD-3-Clause
"""

import random
import time

from lab.array import MiB, Failure, until

MODES = 'drop', 'drop', 'some', 'some', 'keep'


def seed_of(seed):
    """Not the rig's own, so that its other choices are those without."""
    return random.Random('remote %d' % seed)


def draw_away(r, n, nr_spares):
    """Which disks are remote: all, or at least one member."""
    if r.random() < 0.4:
        return range(n + nr_spares)
    away = r.sample(range(n), r.randint(1, n))
    return away + [n + i for i in range(nr_spares) if r.random() < 0.5]


class Remote:
    def __init__(self, rig):
        self.rig, self.rng = rig, seed_of(rig.seed + (1 << 40))
        self.array, self.store = rig.array, rig.store
        r, a = self.rng, rig.array
        self.timeout = r.choice((4, 6))
        a.keys.append('timeout=%ds' % self.timeout)
        self.words = 'remote: %s; timeout %d s' % (' '.join(sorted(
            p.split('?')[0][-2:] for p in self.store.away)), self.timeout)
        self.cache = None       # or its bytes
        if r.random() < 0.6:
            # So that what is read comes from the members.
            cells = 12 * (a.k + 2 * rig.parity.most) * min(a.chunk, 65536)
            self.cache = cells + MiB
            self.words += ', small cache'

    # -- servers --------------------------------------------------------

    def slots(self, new=False):
        """Remote, and not lost.  new: that of a member that is added, too."""
        slots = self.rig.slots() + (
            self.rig.parity.slots_not_lost() if new else [])
        return [s for s in slots if self.array.member[s] in self.store.away]

    def servers(self, slots):
        return [self.store.away[self.array.member[s]] for s in slots]

    def draw(self, most=None):
        """Some of them, often all."""
        r, slots = self.rng, self.slots(most is None)
        nr = min(len(slots), most if most is not None else len(slots))
        if nr <= 0:
            return []
        return sorted(r.sample(slots, nr if r.random() < 0.3
                               else r.randint(1, nr)))

    def draw_dead(self, paths):
        """The power fails: of those whose server is gone, too."""
        return [p for p in paths
                if p in self.store.away and self.rng.random() < 0.7]

    def restart(self, slots, down):
        """Several at a time, which are away for down seconds."""
        r = self.rng
        modes = {self.array.member[s]: r.choice(MODES) for s in slots}
        self.rig.count['restarts'] += len(slots)
        self.store.off(modes, r.randrange(1 << 60), modes)
        time.sleep(down)
        self.store.on(modes)

    def down(self):
        r = self.rng
        return r.choice((0, 0, 0.1, 0.5)) * r.random()

    # -- while the array's server lives -----------------------------------

    def events(self):
        for _ in range(self.rng.randint(3, 6)):
            self.event()

    def event(self):
        how = self.rng.choices((self.restarts, self.short_hang, self.out,
                                self.too_many), (65, 20, 10, 5))[0]
        how()
        self.rig.run_load()

    def restarts(self):
        """Some, again and again, so that some replays are interrupted."""
        if self.rng.random() < 0.5:
            self.unflushed()
        began = time.monotonic()
        for _ in range(self.rng.choice((1, 1, 2, 4))):
            slots = self.draw()
            if not slots:
                return
            self.rig.say('the servers of %s restart' % slots)
            self.restart(slots, self.down())
            # Connecting is tried again after 0.1 s.
            time.sleep(0.3 * self.rng.random())
        self.settle(began)

    def unflushed(self):
        """Much that is not flushed, and written over."""
        load = self.rig.load
        mix, fua = load.mix, load.fua
        load.mix, load.fua = dict(mix, flush=0), 0
        load.focus(self.rng)
        load.run_for(0.2 + 1.2 * self.rng.random())
        load.mix, load.fua = mix, fua

    def short_hang(self):
        slots = self.draw()
        self.rig.say('the servers of %s hang' % slots)
        began = time.monotonic()
        self.hang(slots, lambda: time.sleep(
            0.4 * self.timeout * self.rng.random()))
        self.settle(began)

    def hang(self, slots, meanwhile):
        self.rig.count['hangs'] += len(slots)
        servers = self.servers(slots)
        for s in servers:
            s.hang()
        try:
            meanwhile()
        finally:
            for s in servers:
                s.go_on()

    def out(self):
        """As many as may be lost, or fewer, for longer than timeout=."""
        rig = self.rig
        if not rig.journal:
            rig.wait_resync()
        rig.parity.look()
        slots = self.draw(min(self.array.m - len(rig.counted_lost()),
                              rig.parity.room()))
        if not slots:
            return
        rig.load.focus_on_all()
        if self.rng.random() < 0.5:
            rig.say('the servers of %s hang for long' % slots)
            self.hang(slots, lambda: self.wait_out(slots))
        else:
            rig.say('the servers of %s are gone for long' % slots)
            rig.count['restarts'] += len(slots)
            rig.power_off(slots)
            self.wait_out(slots)
            rig.power_on(slots)
        self.come_back()

    def wait_out(self, slots):
        """Without them requests are answered."""
        rig = self.rig
        self.array.until(
            lambda st: not any(st['members'][s]['state'] == 'active'
                               for s in slots), '%s are out' % slots)
        rig.lost.update(slots)
        rig.load.pause()
        rig.load.read_all()
        rig.count['reads'] += 1
        rig.load.resume()

    def too_many(self):
        """More than may be lost, for longer than timeout=: requests wait, and
        none fails."""
        rig = self.rig
        if not rig.journal:
            rig.wait_resync()
        slots = self.slots()
        if len(slots) <= self.array.m + 1 - len(rig.lost):
            return
        rig.load.focus_on_all()
        rig.say('the servers of %s hang for long: too many' % slots)
        self.hang(slots, lambda: time.sleep(self.timeout + 1))
        self.settle(None)
        self.come_back()

    def come_back(self):
        """Without a journal it must be healthy before the next kill."""
        rig, a = self.rig, self.array
        if rig.journal and self.rng.random() < 0.3:
            return
        # (Not those without which the server was started.)
        here = [s for s, state in enumerate(a.states()) if state == 'failed'
                and s not in rig.dark and s not in rig.gone]
        if self.rng.random() < 0.5:
            rig.say('%s are added again' % here)
            until('%s are taken again' % here,
                  lambda: all([self.is_back(s) for s in here]), a.states)
            a.wait()
            rig.lost.difference_update(s for s in here if s in self.active())
        rig.heal()

    def is_back(self, slot):
        if self.array.states()[slot] in ('active', 'rebuilding'):
            return True
        self.array.gpuraid('readd', self.array.control, slot, good=(0, 1))
        return False

    def active(self):
        return {s for s, state in enumerate(self.array.states())
                if state == 'active'}

    def settle(self, began):
        """All servers are back.  began: when the first one was away, or None:
        for so long that some may be out."""
        rig = self.rig
        rig.load.pause()
        rig.load.flush()
        rig.load.read_all()
        rig.count['reads'] += 1
        found = self.array.status()['counters']['corrupt_found']
        if found:
            raise Failure('%d blocks had another checksum' % found)
        rig.parity.look()
        out = set(range(self.array.n)) - self.active() - rig.lost
        # (A machine with other work may take so long.)
        if out and began and time.monotonic() < began + self.timeout:
            raise Failure('%s were taken out before timeout=' % sorted(out))
        if out:
            rig.say('%s are out' % sorted(out))
            rig.lost.update(out)
            if not rig.journal:
                rig.load.resume()
                rig.heal()
                return
        if not rig.lost and rig.parity.slot is None and \
           self.rng.random() < 0.4:
            self.scrub()
        rig.load.resume()

    def scrub(self):
        a = self.array
        self.rig.wait_resync()
        a.gpuraid('scrub', a.control)
        last = a.until(lambda st: not st['scrub'],
                       'the scrub ends')['last_scrub']
        if not last['complete'] or any(last[key] for key in (
                'found', 'unlocated_rows', 'lost_rows')):
            raise Failure('a scrub found: %s' % last)

    # -- beside a kill of the array's server -------------------------------

    def before_kill(self):
        """The kill comes while a member is not up again."""
        how = self.rng.choices(('restart', 'flush', None), (4, 3, 4))[0]
        slots = self.draw()
        if not how or not slots:
            return
        if how == 'flush':
            self.unflushed()
            self.rig.load.pause()
            # After a second the members have all.
            time.sleep(self.rng.choice((0, 1.3)))
        self.rig.say('the servers of %s restart' % slots)
        self.restart(slots, self.down())
        if how == 'flush':
            self.rig.say('flush')
            self.rig.load.flush()
        else:
            time.sleep(0.2 * self.rng.random())

    def started(self):
        """The array's server is there, and has written nothing."""
        slots = self.draw()
        if slots and self.rng.random() < 0.3:
            self.rig.say('the servers of %s restart' % slots)
            self.restart(slots, self.down())
