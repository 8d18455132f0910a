"""gpuraid: servers that only read, in the power-fail rig.

After a kill they read everything without some members, before another server
writes; and of a healthy array without any m, so that parity counts.

SPDX-License-Identifier: BSD-3-Clause
"""

from lab.array import Refused

from .load import Client


class Reader:
    def __init__(self, rig):
        self.rig, self.rng = rig, rig.rng
        self.array = rig.array

    def look_only(self):
        """Nothing is written, so what is away now need not be later."""
        rig = self.rig
        if rig.journal:
            away = self.rng.sample(rig.slots(), self.rng.randint(
                0, self.array.m - len(rig.counted_lost())))
            self.look(set(away) | rig.lost)
        elif self.rng.random() < 0.5:
            self.look(rig.lost)
        else:
            self.look_refused()

    def look(self, away):
        """Read everything without these, and change nothing."""
        a, rig = self.array, self.rig
        away = set(away) | rig.parity.draw_away()
        rig.say('read without %s' % sorted(away))
        there = [s for s in rig.all_slots() if s not in away]
        rig.power_on(there)
        keys = {} if away <= {a.n} else dict(degraded='force')
        rig.retry(lambda: a.start([a.member[s] for s in there],
                                  flags=['-r'], **keys))
        h = Client(a.uri)
        # What it found is durable.  With a journal the newest transaction may
        # still change, if another member is missing.
        rig.load.read_all(h=h, pin=not rig.journal and not away)
        rig.count['reads'] += 1
        h.shutdown()
        self.end_reader(there)

    def end_reader(self, there):
        """Neither end, nor the power that fails then, takes anything back."""
        rig = self.rig
        if self.rng.random() < 0.5:
            self.array.stop()
        else:
            rig.say('the reader is killed')
            self.array.kill()
        if self.rng.random() < 0.5:
            rig.say('the power of %s fails after it' % there)
            rig.power_off(there)

    def look_refused(self):
        """Without a journal, a member must not be missing after a crash,
        unless nothing was in flight."""
        a, rig = self.array, self.rig
        away = self.rng.randrange(a.n)
        there = [s for s in rig.all_slots() if s != away]
        rig.power_on(there)
        try:
            rig.retry(lambda: a.start([a.member[s] for s in there],
                                      flags=['-r']))
        except Refused as e:
            if 'force' not in str(e):
                raise
            rig.say('without %d: refused' % away)
            return
        a.stop()
        self.look([away])

    def check_parity(self):
        """Healthy: any m may be missing.  Without a journal the server has to
        end cleanly first, so that no parity is in doubt."""
        rig = self.rig
        rig.wait_resync()
        rig.parity.look()
        if rig.journal and self.rng.random() < (0.2 if rig.remote else 0.7):
            rig.kill_under_load()
        else:
            rig.stop_cleanly()
        for _ in range(2):
            self.look(rig.lost.union(self.rng.sample(range(self.array.n),
                                                     self.array.m)))
        rig.start_server()
        rig.go_on()
