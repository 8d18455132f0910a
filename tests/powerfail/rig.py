"""gpuraid: power failures of a real array under load.

One run is one array and a number of kills.  A kill ends the server, with
SIGKILL, at a random moment: under load, while it starts, while it recovers,
or in a rebuild; and in many cases the power of some or all members fails in
that moment.  In the others what was not flushed stays in the caches of the
members, until a later failure of the power: after the next kill, or after a
server that only reads, which ends or is killed.  Then the server is started again, and everything is read
and compared with what was acknowledged and flushed.

What must hold depends on consistency=:

  none      the server is killed only while every slot is active, and started
            with all members.  Sectors that were not flushed are old or new.
            Members are lost between kills, and rebuilt before the next one.
  journal   members are lost before, at or after the kill, up to m in all until
            the array is healthy again.  Blocks that were not flushed are old
            or new.

When the array is healthy it is read with other members missing, to see that
parity is right.

SPDX-License-Identifier: BSD-3-Clause
"""

import errno
import os
import random
import shutil
import signal
import tempfile
import time

import nbd

from lab import evidence
from lab.array import Array, Failure, MiB, Refused, until

from .load import Load
from .parity import NO_ADDITIONS, Parity, most_m
from .reader import Reader
from .remote import Remote, draw_away, seed_of
from .store import Store

GEOMETRIES = {(1, 1): 3, (2, 1): 3, (2, 2): 3, (4, 2): 4, (3, 3): 3,
              (10, 4): 1}
RING = 4 * MiB                  # the default for arrays of this size
CLOSED = 5.5                    # seconds after which an idle region is closed
SLOW_USEC = 3000
RECOVERY = 0.3                  # seconds from a connection to its end
MODES = 'drop', 'some', 'some', 'some', 'keep'
IN_USE = 'in use'               # of the refusal while the last server ends


class Rig:
    """Slots: lost since the array was last healthy; gone, of which the member
    is lost for ever; dark, without power.  forced: lost for ever is allowed,
    and so m of them, until the array is healthy."""

    def __init__(self, seed, consistency, checksum, parent='/dev/shm',
                 verbose=False, geometry=None, remote=False, reshape=False,
                 moved=lambda: None):
        self.seed, self.verbose = seed, verbose
        self.moved = moved      # is called when there is something new
        self.remote = None      # or Remote: some members are
        self.rng = random.Random(seed)
        self.journal = consistency == 'journal'
        self.keys = dict(consistency=consistency, checksum=checksum)
        self.began = time.monotonic()
        self.said = []
        self.count = dict(kills=0, starts=0, reads=0, restarts=0, hangs=0,
                          revived=0, slowest=0, **NO_ADDITIONS)
        self.lost, self.dark, self.gone = set(), set(), set()
        self.forced = False
        self.start_s, self.connect_s = 0.1, 0.05
        self.array = self.load = None
        self.folder = tempfile.mkdtemp(prefix='gpuraid-power.', dir=parent)
        self.prepare(geometry, remote, reshape)
        self.reader = Reader(self)

    def prepare(self, geometry, remote, reshape):
        r = self.rng
        k, m = r.choices(list(GEOMETRIES), GEOMETRIES.values())[0]
        if geometry:
            k, m = geometry
        chunk = r.choice((4096, 16384, 65536))
        size = r.randrange(MiB, r.choice((4, 4, 10)) * MiB, 4096)
        ring = r.choice((RING, MiB, MiB // 4))
        usec = r.choice((0, 0, 200, 1000))
        code = r.choice(('rs', 'crs'))
        # All of it is zeroed when a server starts, twice a second here.  The
        # whole array fits in.
        cache = 64 * MiB
        keys = ['cache-mode=' + r.choice(('writeback', 'writeback',
                                          'writethrough'))]
        stripes = -(-size // (k * chunk))
        length = stripes * chunk + 4 * MiB
        if self.journal:
            self.keys['journal-size'] = ring
            length += ring
        most = most_m(m) if reshape else m
        away = draw_away(seed_of(self.seed), k + m, most) if remote else ()
        self.store = Store(self.folder, k + m + most, length, away)
        self.array = Array(self.folder, k, m, chunk, size, say=self.say,
                           code=code, keys=keys)
        self.array.member = self.store.path[:k + m]
        self.array.file_of = {p: self.store.file(p) for p in self.store.path}
        self.spare = self.store.path[k + m:]
        self.usec = usec
        self.parity = Parity(self, most)
        if remote:
            self.remote = Remote(self)
            cache = self.remote.cache or cache
        self.array.keys.append('cache=%d' % cache)
        self.say('%d+%d, chunk %d, %d bytes, %s, %s, ring %d, delay %d us' % (
            k, m, chunk, size, code, ' '.join(keys),
            ring if self.journal else 0, usec))
        if remote:
            self.say(self.remote.words)

    def say(self, text):
        if self.load:
            self.load.history.event(text)
        self.moved()
        line = '%7.2f s  %s' % (time.monotonic() - self.began, text)
        self.said.append(line)
        if self.verbose:
            print('    ' + line, flush=True)

    def keep(self):
        """After a failure: see evidence.keep."""
        if self.load:
            self.load.abandon()
        return evidence.keep(
            'powerfail-%d' % self.seed, self.folder, self.array, self.said,
            self.load and self.load.about_wrong(),
            self.load and self.load.history)

    def close(self):
        if self.load:
            self.load.abandon()
            self.count['slowest'] = self.load.slowest
        self.count['revived'] = sum(
            s.revived for s in self.store.away.values())
        if self.array.server:
            self.array.server.kill()
            self.array.server.wait()
        self.store.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    # -- one run --------------------------------------------------------

    def run(self, kills):
        self.store.start()
        self.store.check()
        self.array.create(**self.keys)
        self.store.delay(self.usec)
        self.load = Load(self.array, self.seed, self.journal,
                         depth=self.rng.choice((4, 16, 32)),
                         nr_conns=self.rng.choice((1, 2, 4)))
        self.start_server()
        self.load.start()
        while self.count['kills'] < kills:
            self.round()
        self.heal()
        self.parity.finish()
        self.reader.check_parity()
        self.load.stop()
        self.array.stop()

    def round(self):
        """From load to load, with at least one kill."""
        r = self.rng
        self.run_load()
        self.parity.turn()
        if self.remote:
            self.remote.events()
        if r.random() < 0.3:
            self.lose_some()
            if not self.journal:
                self.heal()
            self.run_load()
        self.kill_under_load()
        self.start_again()
        if r.random() < 0.4:
            self.run_load()
            if self.journal and r.random() < 0.4:
                self.kill_in_heal()
            self.heal()
            if r.random() < 0.5:
                self.reader.check_parity()

    def run_load(self):
        """Sometimes with most of the array idle, and sometimes so long that
        idle regions are closed."""
        r = self.rng
        self.load.focus(r)
        if r.random() < 0.03:
            self.load.run_for(CLOSED)
            self.load.focus(r)
        self.load.run_for(r.choice((0.02, 0.1, 0.3)) * r.random())

    # -- members are lost -----------------------------------------------

    def room(self):
        """How many more members may be lost."""
        most = self.array.m if self.forced else \
            self.array.quorum_missing(self.array.n)
        return max(0, min(most - len(self.counted_lost()),
                          self.parity.room()))

    def slots(self):
        return [s for s in range(self.array.n) if s not in self.lost]

    def counted_lost(self):
        return {s for s in self.lost if s < self.array.n}

    def all_slots(self):
        """That of a member that is being added, too."""
        return range(len(self.array.member))

    def draw_lost(self):
        """Some that may be lost now; sometimes for ever, which also lets m
        of them be lost where the rules for members that come back do not."""
        if not self.counted_lost() and self.rng.random() < 0.3:
            self.forced = True
        slots = []
        if self.room():
            slots = self.rng.sample(self.slots(),
                                    self.rng.randint(1, self.room()))
        self.lost.update(slots)
        if self.forced:
            self.gone.update(slots)
        return slots + self.parity.draw_lost()

    def lose_some(self):
        """While the server runs."""
        if not self.journal:
            self.wait_resync()
        self.lose(self.draw_lost())

    def lose(self, slots):
        if not slots:
            return
        if self.forced or self.rng.random() < 0.5 or \
           self.parity.is_unsure(slots):
            self.say('the power of %s fails' % slots)
            self.power_off(slots)
        else:
            for s in slots:
                self.array.fail(s)

    def power_off(self, slots):
        """In one moment; each loses its own part of what was not flushed."""
        r = self.rng
        modes = {self.array.member[s]: r.choice(MODES) for s in slots}
        seed = r.randrange(1 << 60)
        die = self.remote.draw_dead(modes) if self.remote else ()
        self.store.off(modes, seed, die)
        self.dark.update(slots)

    # -- kills ----------------------------------------------------------

    def kill_under_load(self):
        if self.remote:
            self.remote.before_kill()
        self.load.expect_crash = True
        self.kill()
        self.load.pause()
        self.load.expect_crash = False
        self.load.disconnect()
        blocks = self.load.model.crash()
        self.say('%d sectors were not flushed' % len(blocks))

    def kill(self):
        r = self.rng
        how = r.choices(('server', 'power', 'dark'), (30, 55, 15))[0]
        there = [s for s in self.all_slots() if s not in self.dark]
        if how == 'power' and r.random() < 0.4:
            there = sorted(r.sample(there, r.randint(1, len(there))))
        self.count['kills'] += 1
        self.parity.note_kill()
        self.say('kill %d: %s%s' % (self.count['kills'], how, '' if
                                    how == 'server' else ' %s' % there))
        if how == 'dark':
            self.go_dark(there)
        elif how == 'power':
            self.freeze()
            self.power_off(there)
        self.end_server(how == 'dark')
        if how != 'server':
            self.store.keep_copies(os.path.join(self.folder, 'after-kill'))

    def go_dark(self, there):
        """All members are off while the server still runs, for a moment."""
        if self.load:
            self.load.may_fail = {errno.EIO}
        self.freeze()
        self.power_off(there)
        self.array.server.send_signal(signal.SIGCONT)
        time.sleep(0.03 * self.rng.random())

    def freeze(self):
        """The server does nothing more, and members do not fail before."""
        pid = self.array.server.pid
        os.kill(pid, signal.SIGSTOP)
        until('threads stop at SIGSTOP', lambda: not running(pid),
              lambda: running(pid))

    def end_server(self, dark):
        """SIGKILL.  One that was starting may have ended by itself, if it
        could read no member, or the server before it still held one."""
        server = self.array.server
        rc = server.poll()
        if rc is None:
            self.array.kill()
            return
        self.array.server = None
        with open(self.array.log, errors='replace') as log:
            log.seek(self.array.log_at)
            words = log.read().strip()
        if rc < 0 or IN_USE not in words and not dark:
            raise Failure('the server had ended with status %d: %s' % (
                rc, words))

    # -- starts ---------------------------------------------------------

    def start_again(self):
        """After a kill, with further kills while it starts and recovers."""
        r = self.rng
        if r.random() < 0.25:
            self.reader.look_only()
        while r.random() < 0.4:
            self.lose_at_start()
            if r.random() < 0.3:
                self.kill_at_start()
            else:
                self.kill_in_recovery()
        self.lose_at_start()
        self.start_server()
        self.catch_up()
        if not self.lost and r.random() < 0.2:
            self.reader.check_parity()
        else:
            self.load.resume()

    def lose_at_start(self):
        if self.journal and self.rng.random() < 0.4:
            self.say('without %s from now on' % self.draw_lost())
        elif not self.journal:
            self.parity.draw_lost()

    def paths(self, back):
        """The members to start with: all that are not lost, and some, or all,
        of those that are back.  Some of the others have no power."""
        present = self.parity.left_out()
        for s in self.all_slots():
            path = self.array.member[s]
            away = s in self.gone or (s in self.lost and not back
                                      and self.rng.random() < 0.6)
            if not away:
                present.append(path)
                self.power_on([s])
            elif self.rng.random() < 0.5:
                present.append(path)
                self.power_off([s])
        self.rng.shuffle(present)
        return present

    def power_on(self, slots):
        self.store.on([self.array.member[s] for s in slots])
        self.dark.difference_update(slots)

    def start_keys(self):
        force = dict(degraded='force') if self.forced else {}
        return dict(force, **self.parity.start_keys())

    def retry(self, start):
        """While the last server's I/O ends it still holds its members, or
        its last beat comes late."""
        def is_up():
            try:
                start()
            except Refused as e:
                if IN_USE not in str(e):
                    raise
                return False
            return True
        until('the members are not in use', is_up)

    def start_server(self, back=False):
        present = self.paths(back)
        self.count['starts'] += 1
        began = time.monotonic()
        keys = self.start_keys()
        self.retry(lambda: self.array.start(present, **keys))
        self.start_s += 0.2 * (time.monotonic() - began - self.start_s)
        if self.remote:
            self.remote.started()
        self.say('started with %s' % ' '.join(
            os.path.basename(p) for p in sorted(present)))
        self.parity.look()

    def go_on(self):
        self.catch_up()
        self.load.resume()

    def catch_up(self):
        """What is read after a write was flushed stays.  (Writes wait until
        a recovery is carried out; flushes alone, and reads, do not.)"""
        began = time.monotonic()
        self.load.may_fail = set()
        self.load.connect()
        self.connect_s += 0.2 * (time.monotonic() - began - self.connect_s)
        self.load.write_one()
        self.load.flush()
        self.load.read_all(pin=True)
        self.count['reads'] += 1

    def kill_at_start(self):
        self.array.launch(self.paths(False), **self.start_keys())
        time.sleep(1.2 * self.start_s * self.rng.random())
        self.kill()

    def kill_in_recovery(self):
        """Once a connection that may write is there.  With slow disks more
        moments are different ones."""
        slow = self.rng.random() < 0.6
        self.start_server()
        self.store.delay(SLOW_USEC if slow else self.usec)
        end = time.monotonic() + self.rng.random() * (
            self.connect_s + (RECOVERY if self.rng.random() < 0.6 else 0))
        h = nbd.NBD()
        h.aio_connect_unix(self.array.sock)
        while time.monotonic() < end:
            h.poll(1)
        self.kill()
        self.store.delay(self.usec)

    # -- healthy again --------------------------------------------------

    def stop_cleanly(self):
        """After that all is durable, also what was never flushed."""
        self.load.pause()
        self.load.disconnect()
        self.array.stop()
        if self.rng.random() < 0.5:
            self.say('stopped, and the power of all fails')
            self.power_off(self.all_slots())

    def wait_resync(self):
        self.array.until_resynced()

    def all_back(self):
        """Members that were away come back at the next start."""
        self.stop_cleanly()
        self.start_server(back=True)
        self.go_on()

    def replace_inactive(self):
        """Those that do not come back by themselves: on other disks."""
        self.parity.look()
        for s, state in enumerate(self.array.states()):
            if state != 'active':
                self.replace(s)

    def replace(self, slot):
        new = self.spare.pop(0)
        old = self.array.replace(slot, new, self.parity.is_used(new))
        self.store.renew(old)
        self.spare.append(old)
        self.dark.discard(slot)
        self.gone.discard(slot)

    def kill_in_heal(self):
        if not self.counted_lost():
            return
        self.all_back()
        self.parity.hurry()
        if self.rng.random() < 0.6 and not self.array.wait():
            self.replace_inactive()
        time.sleep(0.1 * self.rng.random())
        self.kill_under_load()
        self.start_again()

    def heal(self):
        if not self.lost or self.parity.is_lost_alone():
            return
        self.all_back()
        self.parity.hurry()
        if not self.array.wait():
            self.replace_inactive()
            self.array.wait_healthy()
        self.say('healthy')
        self.parity.look()
        self.lost -= set(range(self.array.n))
        self.gone &= self.lost
        self.forced = False
        self.parity.healed()


def running(pid):
    """Its threads that are not stopped.  Those that wait in the kernel will
    stop there."""
    found = []
    for task in os.listdir('/proc/%d/task' % pid):
        try:
            with open('/proc/%d/task/%s/stat' % (pid, task)) as f:
                name, rest = f.read().rsplit(')', 1)
        except OSError:
            continue            # it has ended
        if rest.split()[0] not in 'TtDZX':
            found.append('%s) %s' % (name, rest.split()[0]))
    return found
