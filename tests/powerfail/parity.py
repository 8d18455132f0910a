"""gpuraid: parity is added to the array of the power-fail rig.

While the array is healthy a spare disk is added with gpuraid add-parity, often
so slowly that kills come in every phase: in the command, while the new member
is filled or paused, when it is taken back, and right after it became active.
It is lost in each of them, alone or with others, comes back, or is replaced.

array.n and array.m are those of the members that count.  The new member
stands in array.member after them, from the command on until it counts too, or is
not there.  A command that was cut off by a kill may have changed something
or not: the next server says which.  What must hold:

  - a command that succeeded has changed the array, also after a kill
  - until the new member is active as many members may be lost as before, and
    it too; from then on one more
  - what is taken back does not matter any more, and can be added again

SPDX-License-Identifier: BSD-3-Clause
"""

import random
import subprocess
import time

from lab.array import SLOW, STILL, Failure, Late, Refused

NO_ADDITIONS = dict(additions=0, filled=0, taken_back=0, not_there=0,
                    kills_within=0)
IN_COMMAND = 0.15               # seconds, about
SLOW_USEC = 1000
WAYS = 'peace', 'peace', 'kill', 'kill', 'loss'
# What a lost member explains; in the last case one that comes and goes.
WHILE_LOST = ('a slot has no active member', 'a member has failed meanwhile',
              'a member is being replaced', 'another member is being rebuilt',
              'a member is being rebuilt', "can't be", 'the array has failed',
              'Input/output error', 'is gone', 'no answer', 'failed')


def most_m(m):
    """With all that is added."""
    return min(m + 2, max(4, m + 1))


class Parity:
    """slot   of the new member, or None
    known  a server said that it is in the record, or the command did;
           may_go: it may be taken back, must_go: it was
    idle   it can't become active, as it is lost or paused, until it is
           looked at again
    dirty  spare disks that were members"""

    def __init__(self, rig, most):
        self.rig, self.most = rig, most
        self.array, self.count = rig.array, rig.count
        self.rng = random.Random('parity %d' % rig.seed)
        self.slot = None
        self.stands()
        self.fresh = False      # a member became active
        self.rate = 0
        self.dirty = set()

    def stands(self):
        """No change is under way."""
        self.slot, self.rate = None, 0
        self.known = self.may_go = self.must_go = False
        self.idle = self.paused = False
        self.old_m_fits = False     # in any case, until the next start

    # -- what the rig asks ------------------------------------------------

    def room(self):
        """How many may be lost, as the new member may have become active."""
        a, rig = self.array, self.rig
        if self.slot is None or self.idle or rig.forced:
            return a.n
        return a.quorum_missing(a.n + 1, m=a.m + 1) - len(rig.lost)

    def draw_lost(self):
        """Should the new member be lost as well?  Without a journal a member
        must not be missing after a crash, unless it surely does not count."""
        rig = self.rig
        if self.slot is None or self.slot in rig.lost or \
           self.rng.random() < 0.7 or self.room() <= 0 or \
           not rig.journal and not self.idle and not self.array.server:
            return []
        rig.say('the new member is lost, too')
        rig.lost.add(self.slot)
        if rig.forced or self.idle and self.rng.random() < 0.4:
            rig.gone.add(self.slot)
        return [self.slot]

    def slots_not_lost(self):
        return [] if self.slot is None or self.slot in self.rig.lost else [
            self.slot]

    def is_unsure(self, slots):
        """May a slot not be there at all?"""
        return self.slot in slots and not self.known

    def draw_away(self):
        """For a server that reads: the new member may be away.  (Without a
        journal it may count by now.)"""
        if self.slot is None or not self.rig.journal and not self.idle or \
           self.rng.random() < 0.6:
            return set()
        return {self.slot}

    def is_lost_alone(self):
        """And it may stay so: the array is healthy."""
        rig = self.rig
        self.look()
        return self.slot is not None and rig.lost == {self.slot} and \
            self.idle and self.rng.random() < 0.5

    def is_used(self, path):
        """A disk that is not blank: --force takes it."""
        if path not in self.dirty:
            return False
        self.dirty.remove(path)
        return True

    def left_out(self):
        """Members of before may be named at a start, and are left out."""
        return [p for p in self.dirty if self.rng.random() < 0.3]

    def start_keys(self):
        keys = {}
        if self.slot is not None and self.rate:
            keys['rebuild_rate'] = self.rate
        m = self.m_in_record()
        if m is not None and self.rng.random() < 0.3:
            keys.update(k=self.array.k, m=m)
        self.old_m_fits = False
        return keys

    def m_in_record(self):
        """For m=; None: it may be the old one or the new one."""
        if self.slot is None or self.must_go or self.old_m_fits:
            return self.array.m
        return self.array.m + 1 if self.known and not self.may_go else None

    def note_kill(self):
        if self.slot is not None:
            self.count['kills_within'] += 1

    def hurry(self):
        """Before it is waited for: all that is rebuilt, or all but that."""
        self.look()
        if self.slot is None:
            return
        if self.rng.random() < 0.5 and self.slot not in self.rig.lost:
            self.act('pause')
        self.set_rate(0)

    def healed(self):
        """All that count are active."""
        if self.slot in self.rig.lost and self.rng.random() < 0.6:
            self.mend(('peace',))

    # -- what the server says ---------------------------------------------

    def look(self):
        if self.slot is None:
            return
        st = self.array.status()
        if st['m'] == self.array.m:
            self.is_not_there()
        elif st['m'] != self.array.m + 1 or self.must_go:
            raise Failure('the array has m=%d, not %d' % (
                st['m'], self.array.m + (not self.must_go)))
        elif st['reshape'] is None:
            self.counts_now()
        else:
            self.is_filled(st)

    def is_not_there(self):
        if self.known and not self.may_go:
            raise Failure('the slot that was added is not there any more')
        self.rig.say('no parity is added')
        self.count['taken_back' if self.known else 'not_there'] += 1
        self.forget()

    def forget(self):
        """Its disk is a spare again, blank or not."""
        rig, path = self.rig, self.array.member.pop()
        for slots in rig.lost, rig.dark, rig.gone:
            slots.discard(self.slot)
        if self.rng.random() < 0.5:
            rig.store.renew(path)
        else:
            rig.store.on([path])
            self.dirty.add(path)
        rig.spare.append(path)
        self.stands()

    def counts_now(self):
        self.rig.say('the new member is active, or was')
        self.count['filled'] += 1
        self.array.n += 1
        self.array.m += 1
        self.stands()
        self.fresh = True

    def is_filled(self, st):
        self.check_state(st)
        reshape, here = st['reshape'], st['members'][self.slot]['state']
        self.known, self.may_go = True, False
        self.paused = reshape['state'] == 'paused'
        self.finishing = reshape['state'] == 'finishing'
        lost = here not in ('rebuilding', 'active')
        self.idle = self.paused or lost
        if not lost:
            self.rig.lost.discard(self.slot)
        elif self.slot not in self.rig.lost:
            # It failed as others did, or is not back.
            self.rig.say('the new member is %s' % here)
            self.rig.lost.add(self.slot)

    def check_state(self, st):
        """It is what it would be without the new member."""
        active = all(e['state'] == 'active'
                     for e in st['members'][:self.array.n])
        if active and not st['resync'] and st['state'] != 'healthy':
            raise Failure('%s with all but the new member: %s' % (
                st['state'], st['reasons']))

    # -- commands -----------------------------------------------------------

    def begin(self, *args):
        self.rig.say('add-parity %s' % ' '.join(args)[-40:])
        return self.array._begin('add-parity', *args[:-1], self.array.control,
                                 args[-1])

    def answer(self, process):
        """None, or why it was refused."""
        try:
            self.array._end(process, (0,), *process.communicate(
                timeout=STILL * SLOW))
        except Refused as e:
            return str(e)
        except subprocess.TimeoutExpired:
            raise Late('gpuraid add-parity: not back')
        finally:
            self.array._abandon(process)
        return None

    def act(self, what):
        """pause or resume: refused only if there is nothing any more."""
        why = self.answer(self.begin(what))
        self.look()
        if self.slot is not None and (
                why or not self.finishing
                and self.paused != (what == 'pause')):
            raise Failure('%s: %s' % (what, why or 'did nothing'))

    def set_rate(self, rate):
        self.rate = rate
        self.array.gpuraid('rate', self.array.control, rate)

    def draw_pace(self):
        """Often so that it takes some seconds."""
        seconds = self.rng.choice((0, 0.5, 3, 10, 20))
        length = self.array.size // self.array.k
        self.set_rate(int(length / seconds) if seconds else 0)
        if self.rng.random() < 0.3:
            self.rig.store.delay(SLOW_USEC)

    # -- a round --------------------------------------------------------------

    def turn(self):
        """The server runs, under load."""
        if self.most == self.array.m and self.slot is None:
            return
        self.look()
        if self.slot is not None:
            self.go_on()
        elif self.array.m < self.most and self.rng.random() < 0.7:
            self.rig.heal()
            self.add()
        if self.slot is None:
            self.rig.store.delay(self.rig.usec)
        self.first_look()

    def first_look(self):
        """At what has just become active."""
        if not self.fresh:
            return
        self.fresh = False
        if not self.rig.lost and self.rng.random() < 0.6:
            self.rig.reader.check_parity()

    def add(self):
        rig = self.rig
        rig.wait_resync()
        self.draw_pace()
        path = rig.spare.pop(0)
        force = ['--force'] if self.is_used(path) else []
        self.slot = self.array.n
        self.array.member.append(path)
        self.count['additions'] += 1
        self.command(WAYS, *force, path)
        while self.slot is not None and self.rng.random() < 0.6:
            rig.run_load()
            self.go_on()

    def take_back(self, ways):
        self.rig.wait_resync()
        self.may_go = True
        self.command(ways, 'cancel')

    def command(self, ways, *args):
        """In peace, or a kill or a loss comes within it."""
        rig, r = self.rig, self.rng
        how = r.choice(ways)
        lost, before = set(rig.lost), dict(self.count)
        process = self.begin(*args)
        if how != 'peace':
            time.sleep(IN_COMMAND * r.random())
        if how == 'kill':
            rig.kill_under_load()
            if self.answer(process) is None:
                self.has_done(args)
            elif args[-1] != 'cancel':
                # No other record was made since.
                self.old_m_fits = self.rate > 0
            rig.start_again()
            return
        if how == 'loss':
            rig.lose(rig.draw_lost())
        why = self.answer(process)
        if why is None:
            self.has_done(args)
        self.look()
        if why is not None:
            self.was_refused(args[-1], why, lost | rig.lost, before)
        if how == 'loss' and not rig.journal:
            rig.heal()

    def has_done(self, args):
        """Whatever happens now."""
        if args[-1] != 'cancel':
            self.known = True
        else:
            self.must_go = True

    def was_refused(self, what, why, lost, before):
        """Then nothing was changed, and a lost member is the reason."""
        self.rig.say('refused: %s' % why)
        if '\n' in why:
            raise Failure('add-parity: more than a line: %s' % why)
        if what == 'cancel':
            done = self.count['taken_back'] != before['taken_back']
            if 'no parity is being added' in why and \
               self.count['filled'] != before['filled']:
                return
        else:
            done = self.count['not_there'] == before['not_there']
        if done:
            raise Failure('add-parity: refused, and done: %s' % why)
        if not lost or not any(part in why for part in WHILE_LOST):
            raise Failure('add-parity %s: %s' % (what, why))

    def go_on(self):
        """One more is under way."""
        r, rig = self.rng, self.rig
        if self.slot in rig.lost and r.random() < 0.3:
            self.mend(WAYS)
            return
        how = r.choices(
            ('nothing', 'pause', 'cancel', 'loss', 'fail', 'end'),
            (3, 3, 2, 2, 1, 3))[0]
        if how == 'pause':
            self.act('resume' if self.paused else 'pause')
        elif how == 'cancel':
            self.take_back(WAYS)
        elif how == 'loss' and self.slot not in rig.lost:
            self.lose()
        elif how == 'fail' and self.slot not in rig.lost:
            self.fail()
        elif how == 'end':
            self.end()

    def lose(self):
        """The new member alone; it may have become active just now."""
        rig = self.rig
        if self.room() <= 0:
            return
        rig.lost.add(self.slot)
        rig.say('the power of the new member fails')
        rig.power_off([self.slot])
        self.settle_lost()

    def fail(self):
        rig = self.rig
        if self.room() <= 0:
            return
        rig.lost.add(self.slot)
        self.array.fail(self.slot)
        self.settle_lost()

    def settle_lost(self):
        """Without a journal it must be known before the next kill whether it
        counts."""
        slot = self.slot
        if self.rig.journal and self.rng.random() < 0.5:
            return
        self.array.until(
            lambda st: st['members'][slot]['state'] not in (
                'rebuilding', 'active'), 'the new member is out')
        self.look()
        self.rig.lost.add(slot)
        if self.slot is None and not self.rig.journal:
            self.rig.heal()

    def mend(self, ways):
        """It is lost, and on another disk from now on; or it goes."""
        rig, slot = self.rig, self.slot
        if self.rng.random() < 0.3:
            self.take_back(ways)
            return
        rig.replace(slot)
        rig.lost.discard(slot)
        self.look()

    def end(self):
        """Let it become active soon, or wait for that."""
        rig = self.rig
        if rig.counted_lost():
            return
        if self.slot in rig.lost:
            self.mend(WAYS)
        if self.slot is not None and self.paused:
            self.act('resume')
        if self.slot is None:
            return
        self.set_rate(0)
        if self.rng.random() < 0.4:
            time.sleep(0.3 * self.rng.random())
            return
        slot = self.slot
        self.array.until(lambda st: not st['reshape'] or st['members'][slot][
            'state'] != 'rebuilding', 'the new member is active')
        self.look()

    def finish(self):
        """After the last kill: the array is healthy."""
        if self.slot is None:
            return
        self.look()
        if self.slot is not None and self.rng.random() < 0.7:
            self.end_in_peace()

    def end_in_peace(self):
        rig = self.rig
        if self.slot in rig.lost:
            rig.replace(self.slot)
            rig.lost.discard(self.slot)
            self.look()
        if self.paused:
            self.act('resume')
        if self.slot is not None:
            self.set_rate(0)
            self.array.wait_healthy()
            self.look()
            if self.slot is not None:
                raise Failure('the new member is not active after wait')
