"""gpuraid: the scenarios of the fault lab that stop and kill the server.

As in scenarios.py, each doc string says what is promised.

SPDX-License-Identifier: BSD-3-Clause
"""

import hashlib
import os
import shutil

from .array import Failure, MiB
from .scenarios import read_others


def fingerprint(paths):
    """What no refused start may change."""
    h = hashlib.blake2b()
    for p in paths:
        with open(p, 'rb') as f:
            while True:
                data = f.read(1 << 20)
                if not data:
                    break
                h.update(data)
    return h.hexdigest()


def server_kill(lab):
    """kill -9 under load, all members active, three times.  Flushed data
    is there; other data is old, new or torn by sector, and then
    stays.  Parity is right again: others are failed and all is read."""
    a = lab.begin()
    for _ in range(3):
        lab.crash()
        a.start()
        lab.go_on(pin=True)
        lab.run()
    lab.wait_healthy()
    lab.verify()
    read_others(lab, ())
    lab.finish()


def server_kill_degraded(lab):
    """kill -9 with a member failed.  An unclean start is refused unless
    forced; then the rows in flight may have lost the absent slot's blocks
    and no others: not when one more member fails, either."""
    a = lab.begin()
    slot, other = lab.sample(2)
    a.fail(slot)
    lab.run()
    blocks = lab.crash()
    lab.start_unclean(blocks, {slot})
    if a.states()[slot] != 'failed':
        raise Failure('the failed member is %s' % a.states()[slot])
    lab.wait_resync()
    a.fail(other)
    lab.verify()
    lab.run()
    a.replace(slot)
    a.replace(other)
    lab.wait_healthy()
    lab.verify()
    read_others(lab, (slot, other))
    lab.finish()


def server_kill_missing(lab):
    """kill -9 with all members active, then a start without one of them:
    the same promise."""
    a = lab.begin()
    slot = lab.sample(1)[0]
    blocks = lab.crash()
    there = [p for s, p in enumerate(a.member) if s != slot]
    lab.say('without %d' % slot)
    lab.start_unclean(blocks, {slot}, there)
    lab.run()
    lab.wait_resync()
    lab.halt()
    lab.say('with %d again' % slot)
    lab.start()
    lab.wait_healthy()
    lab.verify()
    read_others(lab, (slot,))
    lab.finish()


def server_kill_rebuilding(lab):
    """kill -9 in the middle of a rebuild: after the restart it continues,
    under force too."""
    # More than one window of the rebuild.
    a = lab.begin(k=1, m=2, size=40 * MiB, chunk=65536)
    slot = lab.sample(1)[0]
    a.fail(slot)
    target = lab.slow_target()
    a.replace(slot, target.path)
    lab.until_rebuilding(0.4)
    over = a.states()[slot] == 'active'
    blocks = lab.crash()
    target.fast()
    lab.start_unclean(blocks, set() if over else {slot})
    lab.run()
    lab.wait_healthy()
    lab.verify()
    read_others(lab, (slot,))
    lab.finish()


def restart_rebuilding(lab):
    """A stop, or with a journal kill -9, in the middle of a rebuild, and a
    start with resume=yes: the rebuild goes on and ends while no client is
    connected."""
    a = lab.begin(k=1, m=2, size=40 * MiB, chunk=65536)
    slot = lab.sample(1)[0]
    a.fail(slot)
    target = lab.slow_target()
    a.replace(slot, target.path)
    over = not lab.until_rebuilding(0.4)
    killed = a.trust[0] == 'journal'
    if killed:
        lab.crash()
    else:
        lab.halt()
    target.fast()
    a.start(resume='yes')
    st = a.until(lambda st: st['state'] == 'healthy' and not st['rebuild'],
                 'it is rebuilt without a client')
    if st['connections']:
        raise Failure('a client was connected')
    if not over and not st['counters']['rebuilt_bytes']:
        raise Failure('nothing was rebuilt: %s' % st['counters'])
    lab.go_on(pin=killed)
    lab.run()
    lab.wait_healthy()
    lab.verify()
    read_others(lab, (slot,))
    lab.finish()


def restart_missing(lab):
    """A clean start with as many members missing as the quorum allows;
    writes go on.  When they come back they are stale, and brought up to
    date.  With fewer than k there is no start, forced or not."""
    a = lab.begin()
    away = lab.sample(a.quorum_missing(a.n))
    lab.halt()
    before = fingerprint(a.member)
    lab.say('without %s' % away)
    few = [p for s, p in enumerate(a.member) if s not in away][:a.k - 1]
    lab.refused('k - 1 members', a.start, few)
    lab.refused('k - 1 members, forced', a.start, few, degraded='force')
    there = [p for s, p in enumerate(a.member) if s not in away]
    lab.refused('degraded=refuse', a.start, there, degraded='refuse')
    if fingerprint(a.member) != before:
        raise Failure('a refused start wrote to a member')
    lab.start(there)
    if a.states() != ['missing' if s in away else 'active'
                      for s in range(a.n)]:
        raise Failure('states: %s' % a.states())
    lab.run()
    lab.halt()
    lab.say('with all again')
    lab.start()
    lab.run()
    lab.wait_healthy()
    lab.verify()
    read_others(lab, away)
    lab.finish()


def late_disk(lab):
    """A start without as many members as the quorum allows, which appear
    later, under load: what udev starts for each gives it back, and it is
    brought up to date.  One that was taken out by command stays out, also if
    it is away at the next start."""
    a = lab.begin()
    # By the folder of the control socket its array is found.
    a.env = dict(os.environ, GPURAID_RUNDIR=a.folder)
    lab.halt()
    a.control = os.path.join(a.folder, 'lab.control')
    late = lab.sample(a.quorum_missing(a.n))
    lab.say('without %s' % late)
    for s in late:
        os.rename(a.member[s], a.member[s] + '.away')
    lab.start()
    for s in late:
        lab.run()
        if a.states()[s] != 'missing':
            raise Failure('%d is %s, not missing' % (s, a.states()[s]))
        os.rename(a.member[s] + '.away', a.member[s])
        lab.say(a.gpuraid('readd', '--uuid', a.member[s]).strip())
    lab.run()
    lab.wait_healthy()
    lab.verify()
    out = lab.sample(1)[0]
    a.fail(out)
    lab.run()
    lab.halt()
    os.rename(a.member[out], a.member[out] + '.away')
    lab.start()
    lab.run()
    os.rename(a.member[out] + '.away', a.member[out])
    why = lab.refused('taken out', a.gpuraid, 'readd', '--uuid', a.member[out])
    if 'was taken out' not in why or a.states()[out] != 'failed':
        raise Failure('one that was taken out: ' + why)
    a.gpuraid('readd', a.control, a.member[out])
    lab.wait_healthy()
    lab.verify()
    read_others(lab, late)
    lab.finish()


def quorum(lab):
    """2+2: a start with two missing is refused unless forced, because the two
    could have continued alone.  A forced start works; the other two are stale
    when they come back, and brought up to date."""
    a = lab.begin(k=2, m=2)
    away = lab.sample(2)
    lab.halt()
    there = [p for s, p in enumerate(a.member) if s not in away]
    gone = [p for s, p in enumerate(a.member) if s in away]
    text = lab.refused('two of four', a.start, there)
    if 'force' not in text:
        raise Failure('the refusal does not name force: ' + text)
    lab.start(there, degraded='force')
    lab.run()
    lab.halt()
    lab.refused('the two that were away', a.start, gone)
    lab.say('with all again')
    lab.start()
    lab.run()
    lab.wait_healthy()
    lab.verify()
    read_others(lab, away)
    lab.finish()


def stale_member(lab):
    """An old copy of a member takes its place: it is detected, counts as
    missing, and is brought up to date.  Beside the member itself it is left
    out; one that is equal is refused, and nothing is written."""
    a = lab.begin()
    slot = lab.sample(1)[0]
    lab.halt()
    old = os.path.join(a.folder, 'old-copy.img')
    shutil.copyfile(a.member[slot], old)
    lab.say('a copy of %d was made' % slot)
    lab.start()
    lab.run()
    lab.halt()
    before = fingerprint([old])
    lab.start(a.member + [old])
    if 'old-copy.img: left out: an older copy of' not in a.words:
        raise Failure('the old copy beside the member: ' + a.words)
    lab.run()
    lab.halt()
    if fingerprint([old]) != before:
        raise Failure('the old copy was written')
    before = fingerprint(a.member + [old])
    new = os.path.join(a.folder, 'new-copy.img')
    shutil.copyfile(a.member[slot], new)
    lab.refused('a new copy beside the member', a.start, a.member + [new])
    lab.refused('a member twice', a.start, a.member + [a.member[slot]])
    if fingerprint(a.member + [old]) != before:
        raise Failure('a refused start wrote to a member')
    os.rename(old, a.member[slot])
    lab.say('the old copy takes the place of %d' % slot)
    lab.start()
    if not a.words:
        raise Failure('not a word about the stale member')
    lab.say('the server: ' + a.words.splitlines()[-1])
    lab.run()
    lab.wait_healthy()
    lab.verify()
    read_others(lab, (slot,))
    lab.finish()


ALL = (server_kill, server_kill_degraded, server_kill_missing,
       server_kill_rebuilding, restart_rebuilding, restart_missing,
       late_disk, quorum, stale_member)
