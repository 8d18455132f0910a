"""gpuraid: one array whose members are damaged, round after round.

A round writes known content, damages at most m members (with those that
are lost), uses the array, has it scrubbed, and compares all there is: what
clients read, what the counters say, and in the end every block and page on
the members.  The kinds of rounds:

  stopped   the members are damaged between a stop and a start
  online    while the array is open and in use
  crash     after kill -9, with transactions in the journal
  beyond    more than m blocks of some rows: EIO for the bad data blocks of
            these rows, and no others

Pages of the table are never restored from an older copy: that is the one
fault that reads can't see.

SPDX-License-Identifier: BSD-3-Clause
"""

import errno
import os
import re
import subprocess

import nbd

from lab.array import SLOW, Failure

from . import disk, faults
from .used import BLOCK, PIECE, Used

MODES = {'stopped': 5, 'online': 5, 'crash': 3, 'beyond': 2}
CLEAN = '0 blocks were wrong, 0 of them were repaired'


class Campaign(Used):
    """count: what was done, for the table; hits: blocks and pages that were
    wrong, by kind."""

    def __init__(self, seed, parent='/dev/shm', verbose=False, geometry=None,
                 kinds=None, modes=None):
        super().__init__(seed, parent, verbose, geometry)
        self.kinds = kinds or list(faults.KINDS)
        self.modes = modes or list(MODES)
        self.planted, self.hits = {}, {}
        self.count.update(rounds=0, found=0, pages=0, eio=0, degraded=0)
        self.old = {}           # slot -> earlier contents of its data
        self.lost = []

    # -- a run ----------------------------------------------------------

    def run(self, rounds):
        self.create()
        self.start()
        self.fill()
        for _ in range(rounds):
            self.round(self.rng.choices(
                self.modes, [MODES[mode] for mode in self.modes])[0])
        self.disconnect()
        self.array.stop()

    def round(self, mode):
        a, r = self.array, self.rng
        self.count['rounds'] += 1
        self.count[mode] = self.count.get(mode, 0) + 1
        self.say('round %d: %s' % (self.count['rounds'], mode))
        self.rows = self.draw_rows()
        self.write_some()
        if mode == 'beyond':
            self.beyond()
        else:
            slots = r.sample(range(a.n), r.randint(1, a.m))
            if len(slots) > 1 and r.random() < 0.3:
                self.degraded(mode, slots)
            else:
                self.planter = self.new_planter(slots)
                getattr(self, mode)()
        self.finish()

    def draw_rows(self):
        """Where faults and writes meet."""
        r, nr = self.rng, self.layout.nr_blocks
        rows = []
        for _ in range(r.randint(1, 4)):
            first = r.randrange(nr)
            rows += range(first, min(nr, first + r.choice((1, 3, 20))))
        return rows

    # -- faults ---------------------------------------------------------

    def new_planter(self, slots):
        return faults.Planter(self.rng, self.layout, self.array.member,
                              slots, self.rows, self.old, 0 if self.lost
                              else self.array.quorum_missing(self.array.n))

    def plant(self):
        p = self.planter
        # A few kinds at a time: a lost page hides what else is wrong there.
        kinds = self.rng.sample(self.kinds,
                                self.rng.randint(1, min(5, len(self.kinds))))
        for _ in range(self.rng.choice((1, 3, 10, 40))):
            p.plant(self.rng.choice(kinds))
        self.say('planted in %s: %s' % (p.slots, '; '.join(p.said[-8:])))
        return self.note_hits()

    def note_hits(self):
        """What is wrong now: blocks that must be found, blocks that may be
        (zeroes may be written or not), and pages of the table."""
        p, lay, a = self.planter, self.layout, self.array
        must, may, rows = set(), set(), {}
        for (slot, b), before in p.before.items():
            if b not in rows:
                rows[b] = disk.truth(lay, a.code, a.w, self.model, b)
            want = rows[b][lay.role(slot, b)]
            with open(p.paths[slot], 'rb') as f:
                f.seek(lay.data_off + b * BLOCK)
                now = f.read(BLOCK)
            if now not in (want, before):
                (must if any(want) else may).add((slot, b))
        pages = set(p.pages)
        for kind in [p.blocks[key] for key in must] + [*p.pages.values()]:
            self.hits[kind] = self.hits.get(kind, 0) + 1
        for kind, nr in p.count.items():
            self.planted[kind] = self.planted.get(kind, 0) + nr
        p.blocks, p.before, p.pages, p.count = {}, {}, {}, {}
        return must, may, pages

    # -- rounds ---------------------------------------------------------

    def stopped(self):
        self.stop()
        self.keep_old()
        wrong = self.plant()
        if self.rng.random() < 0.3:
            self.check_repairs(*wrong)
            self.start()
            return
        self.start()
        if self.rng.random() < 0.5:
            self.scrub_finds(*wrong)
        else:
            self.use()

    def online(self):
        for _ in range(self.rng.randint(1, 3)):
            self.quiesce()
            wrong = self.plant()
            if self.rng.random() < 0.5:
                self.scrub_finds(*wrong[:2], None)
            self.use()
        if self.rng.random() < 0.25:
            self.say('kill')
            self.h.flush()
            self.kill()
            self.start()

    def crash(self):
        self.h.flush()
        self.kill()
        self.plant()
        self.start()
        self.use()

    def use(self):
        for _ in range(self.rng.randint(0, 3)):
            self.rng.choice((self.read_some, self.write_some,
                             self.read_all, self.h.flush))()
        self.read_all()

    def keep_old(self):
        for slot, path in enumerate(self.array.member):
            if os.path.exists(path):
                with open(path, 'rb') as f:
                    f.seek(self.layout.data_off)
                    data = f.read(self.layout.data_len)
                self.old[slot] = (self.old.get(slot, []) + [data])[-2:]

    # -- degraded -------------------------------------------------------

    def degraded(self, mode, slots):
        """Some of the slots are lost, the others damaged."""
        a, r = self.array, self.rng
        nr = r.randint(1, len(slots) - 1)
        self.lost, bad = slots[:nr], slots[nr:]
        self.count['degraded'] += 1
        away = mode != 'online' and nr <= a.quorum_missing(a.n) \
            and r.random() < 0.5
        self.say('%s are %s' % (self.lost, 'away' if away else 'failed'))
        self.planter = self.new_planter(bad)
        if away:
            self.stop()
            for s in self.lost:
                os.rename(a.member[s], a.member[s] + '.away')
            self.start()
        else:
            for s in self.lost:
                a.fail(s)
        self.write_some()
        if mode == 'stopped':
            self.stop()
            self.plant()
            self.start()
            self.use()
        else:
            getattr(self, mode)()
        self.come_back(away)

    def come_back(self, away):
        a = self.array
        if away and self.rng.random() < 0.6:
            self.stop()
            for s in self.lost:
                os.rename(a.member[s] + '.away', a.member[s])
            self.start()
        else:
            for s in self.lost:
                old = a.replace(s)
                for path in (old, old + '.away'):
                    if os.path.exists(path):
                        os.unlink(path)
                self.old.pop(s, None)
        self.lost = []
        if self.rng.random() < 0.5:
            self.write_some()
        if not a.wait():
            raise Failure('not healthy after a rebuild: %s' % a.states())
        self.say('healthy')
        self.read_all()

    # -- scrubs ---------------------------------------------------------

    def scrub(self, repair=True):
        """Its counts, and what it found in each slot."""
        a = self.array
        a.gpuraid('scrub', a.control, *(['--repair'] if repair else []))
        a.wait()
        s = a.status()
        last = s['last_scrub']
        if not last['complete']:
            raise Failure('the scrub did not end: %s' % last)
        return last, [e['scrub_found'] for e in s['members'][:a.n]], s

    def compare_found(self, found, must, may, pages):
        """found: by slot.  pages: damaged ones, or None where memory may have
        the right ones."""
        p = self.planter
        for slot, nr in enumerate(found):
            least = sum(1 for s, _ in must if s == slot)
            most = least + sum(1 for s, _ in may if s == slot)
            if pages is None:
                most += slot in p.slots and 1 << 60
            else:
                most += sum(disk.ENTRIES for s, _ in pages if s == slot)
            if p.outdated:
                least = 0       # a rebuild came first, and found some
            if not least <= nr <= most:
                raise Failure('slot %d: %d blocks were found, and %d are wrong'
                              % (slot, nr, least))

    def compare_pages(self, found, pages):
        least = 0 if self.planter.outdated else len(pages)
        if not least <= found <= len(pages):
            raise Failure('%d pages were found, %d are damaged: %s' % (
                found, len(pages), sorted(pages)))

    def scrub_finds(self, must, may, pages):
        """The first use of the array since faults were planted."""
        if not self.array.wait() and not self.lost:
            raise Failure('not healthy: %s' % self.array.states())
        last, found, s = self.scrub()
        self.say('scrub: %s, %s' % (found, last))
        self.compare_found(found, must, may, pages)
        if last['found'] != last['repaired'] or last['lost_rows'] or \
           last['unlocated_rows']:
            raise Failure('not all was repaired: %s' % last)
        if pages is not None:
            self.compare_pages(s['counters']['corrupt_table_pages'], pages)

    def check_repairs(self, must, may, pages):
        """The same with the array stopped."""
        said = self.check('--repair')
        self.say('check --repair: ' + said)
        found = [0] * self.array.n
        for slot, nr, repaired in re.findall(
                r'^slot (\d+): (\d+) wrong, (\d+) repaired', said, re.M):
            found[int(slot)] = int(nr)
            if nr != repaired:
                raise Failure('check --repair: ' + said)
        self.compare_found(found, must, may, pages)
        damaged = re.search(r'^(\d+) pages of the checksum table', said, re.M)
        damaged = int(damaged[1]) if damaged else 0
        self.compare_pages(damaged, pages)
        self.count['found'] += sum(found)
        self.count['pages'] += damaged
        self.expect_clean('after check --repair')

    def check(self, *options):
        """What it prints, whatever its status is."""
        p = subprocess.run([self.array.command, 'check', *options,
                            *self.array.member], text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           timeout=120 * SLOW)
        return p.stdout.strip() or p.stderr.strip()

    def expect_clean(self, when):
        said = self.check()
        if said != CLEAN:
            raise Failure('check %s: %s' % (when, said))

    # -- more than m ----------------------------------------------------

    def full_rows(self):
        """Rows of which every block was written for certain."""
        rows = []
        for b in range(self.layout.nr_blocks):
            at = [self.layout.address(i, b) for i in range(self.array.k)]
            if at[-1] < self.array.size and all(
                    any(self.model[x:x + 64]) for x in at):
                rows.append(b)
        return rows

    def beyond(self):
        a, r = self.array, self.rng
        stopped = r.random() < 0.6
        rows = self.full_rows()
        if not rows:
            return
        rows = r.sample(rows, min(len(rows), r.choice((1, 2, 5))))
        if stopped:
            self.stop()
            self.keep_old()
        else:
            self.quiesce()
        bad = set()             # addresses
        self.planter = p = self.new_planter(list(range(a.n)))
        for b in rows:
            for slot in r.sample(range(a.n), r.randint(a.m + 1, a.n)):
                p.spoil(slot, b)
                if self.layout.role(slot, b) < a.k:
                    bad.add(self.layout.address(self.layout.role(slot, b), b))
        hits, _, _ = self.note_hits()
        self.say('rows %s have too many bad blocks: %s' % (rows, sorted(hits)))
        if stopped:
            self.start()
        for _ in range(r.randint(1, 2)):
            self.read_beyond(bad, stopped)
            last, _, _ = self.scrub(r.random() < 0.5)
            if last['lost_rows'] != len(rows):
                raise Failure('%d rows are lost, and the scrub says %s' % (
                    len(rows), last))
        if r.random() < 0.5:
            self.stop()
            self.start()
            self.read_beyond(bad, True)
        self.make_whole(rows)

    def read_beyond(self, bad, must_fail):
        """must_fail: the cache can't have it."""
        size = self.array.size
        # Each takes a while, since the members are asked again.
        for at in self.rng.sample(sorted(bad), min(len(bad), 4)):
            off = at + self.rng.randrange(BLOCK)
            first = max(0, at - self.rng.randrange(0, 100000))
            self.expect_eio(*self.rng.choice((
                (at, BLOCK), (off, min(512, at + BLOCK - off)),
                (first, min(size, at + 2 * BLOCK) - first))), must_fail)
        at = 0
        for stop in sorted(bad) + [size]:
            while at < stop:
                n = min(PIECE, stop - at)
                self.read(at, n)
                at += n
            at = stop + BLOCK

    def expect_eio(self, off, length, must_fail):
        try:
            self.read(off, length)
        except nbd.Error as e:
            if e.errno not in ('EIO', errno.EIO):
                raise
            self.count['eio'] += 1
            return
        if must_fail:
            raise Failure('a read of %d at %d, of which too little is right, '
                          'got no EIO' % (length, off))

    def make_whole(self, rows):
        """By writing them."""
        stripe = self.array.k * self.array.chunk
        for s in sorted({b // self.layout.per_chunk for b in rows}):
            off = s * stripe
            n = min(stripe, self.array.size - off)
            if self.rng.random() < 0.8:
                self.write(off, n)
            else:
                self.h.zero(n, off)
                self.model[off:off + n] = bytes(n)
        self.h.flush()

    # -- the end of a round ---------------------------------------------

    def finish(self):
        """Everything heals, and then everything is right."""
        self.read_all()
        last, found, s = self.scrub()
        if last['found'] != last['repaired'] or last['lost_rows'] or \
           last['unlocated_rows']:
            raise Failure('scrub --repair: %s' % last)
        last, found, s = self.scrub()
        if last['found'] or last['lost_rows'] or last['unlocated_rows']:
            raise Failure('the second scrub: %s' % last)
        if s['state'] != 'healthy':
            raise Failure('the array is ' + s['state'])
        self.count['found'] += s['counters']['corrupt_found']
        self.count['pages'] += s['counters']['corrupt_table_pages']
        self.read_all()
        self.stop()
        self.expect_clean('of the stopped array')
        wrong = self.verify()
        if any('superblock' in line for line in wrong):
            # A copy that was damaged while the array was open is written at
            # the next start.
            self.start()
            self.stop()
            wrong = self.verify()
        if wrong:
            raise Failure('on the members: ' + '; '.join(wrong[:20]))
        self.start()

    def verify(self):
        a = self.array
        wrong = disk.verify(self.layout, a.code, a.w, self.model,
                            [disk.Image(self.layout, s, p)
                             for s, p in enumerate(a.member)])
        for slot, path in enumerate(a.member):
            bad = {c: v for c, v in a.examine(path)['copies'].items()
                   if v != 'good'}
            if bad:
                wrong.append('slot %d: superblocks %s' % (slot, bad))
        return wrong
