"""gpuraid: the scenarios of the fault lab about what is around an array:
spares, stores that hang or are full, the hook, the unit that starts it.

As in scenarios.py, each doc string says what is promised.

SPDX-License-Identifier: BSD-3-Clause
"""

import errno
import os
import signal
import time

from . import unit
from .array import SLOW, Failure, Late, MiB, Skipped, until, written
from .scenarios import read_others

HOOK_S = 60             # after which the server kills the hook


def spare_unattended(lab):
    """Spares take the places of lost members, and no command is given: one
    member is pulled out under load; the file of another is deleted when no
    client is connected, and only the log is looked at.  Without a
    spare the array stays degraded; the next spare is used at once.  Every
    byte stays right."""
    a = lab.prepare()
    pulled, deleted, third = lab.sample(3)
    bad = lab.fuse_member('pulled')
    a.member[pulled] = bad.path
    lab.launch()
    spares = [a.new_path() for _ in range(3)]
    a.gpuraid('spare', a.control, spares[0])
    lab.say('pull %d out' % pulled)
    bad.pull()
    # Only the log is looked at: the server is not asked anything.
    a.logged(spares[0] + ': rebuilt')
    a.member[pulled] = spares[0]
    lab.verify()
    a.gpuraid('spare', a.control, spares[1])
    lab.load.pause()
    lab.load.disconnect()
    lab.say('delete the file of %d, with no client' % deleted)
    os.unlink(a.member[deleted])
    a.logged(spares[1] + ': rebuilt')
    a.member[deleted] = spares[1]
    lab.go_on()
    lab.wait_healthy()
    a.fail(third)
    lab.run()
    if a.states()[third] != 'failed':
        raise Failure('with no spare, %d is %s' % (third, a.states()[third]))
    a.gpuraid('spare', a.control, spares[2])
    a.member[third] = spares[2]
    lab.wait_healthy()
    paths = [e['path'] for e in a.status()['members']]
    if paths != a.member:
        raise Failure('the members are %s' % paths)
    lab.verify()
    read_others(lab, (pulled, deleted, third))
    lab.finish()


def hung_member(lab):
    """A member answers nothing any more.  After timeout= it is out, and no
    client sees an error or waits much longer.  Later it wakes up, and what
    it still writes then does no harm: it is added again, brought up to date,
    and read."""
    a = lab.prepare()
    limit = 5 * SLOW
    a.keys.append('timeout=%ds' % limit)
    slot = lab.sample(1)[0]
    hung = lab.fuse_member('hung')
    a.member[slot] = hung.path
    lab.launch()
    lab.load.slowest = 0
    lab.say('member %d hangs' % slot)
    hung.hang()
    st = a.until_state(slot, 'failed', 'a member that hangs is out')
    error = st['members'][slot]['last_error']
    lab.verify()
    lab.answers('without the member that hangs')
    lab.say('it is out: %s; the slowest request took %.2f s' % (
        error and error['message'], lab.load.slowest))
    others = [s for s, state in enumerate(a.states())
              if state != 'active' and s != slot]
    if others:
        raise Late('%s are out, too: here all takes longer than timeout='
                   % others)
    hung.go_on()
    lab.run()
    lab.readd([slot])
    lab.wait_healthy()
    lab.verify()
    read_others(lab, (slot,))
    lab.finish()


def hung_members(lab):
    """More members than may be lost answer nothing.  None is taken out: the
    array is stalled, and says on how many.  Clients wait and see no error.
    When one of them answers again the others are out after timeout=, and
    clients go on.  What was out is added again."""
    a = lab.prepare()
    a.keys.append('timeout=%ds' % (5 * SLOW))
    slots = lab.sample(a.m + 1)
    hung = [lab.fuse_member('hung-%d' % s) for s in slots]
    for s, h in zip(slots, hung):
        a.member[s] = h.path
    lab.launch()
    lab.say('members %s hang' % slots)
    for h in hung:
        h.hang()
    st = a.until(lambda st: 'stalled' in st['reasons'] and
                 {e['slot'] for e in st['members'] if e['no_answer']} ==
                 set(slots), 'it is stalled on all that hang')
    if st['state'] != 'degraded' or set(a.states()) != {'active'}:
        raise Failure('stalled, and %s: %s' % (st['state'], a.states()))
    said = a.gpuraid('status', a.control, good=(1,))
    if '%d do not answer' % len(slots) not in said:
        raise Failure('stalled, and status says: ' + said)
    a.logged('it is waited for, as too few members would remain without it',
             len(slots))
    lab.say('%d answers again' % slots[0])
    hung[0].go_on()
    a.until(lambda st: {e['slot'] for e in st['members']
                        if e['state'] == 'failed'} == set(slots[1:]),
            'the others are out')
    lab.answers('the others are out')
    lab.verify()
    lab.say('they are out; the slowest request took %.2f s'
            % lab.load.slowest)
    for h in hung[1:]:
        h.go_on()
    lab.readd(slots[1:])
    lab.wait_healthy()
    lab.verify()
    read_others(lab, slots[1:])
    lab.finish()


def full_file_system(lab):
    """The file system of a member is full.  Writes wait, flushes get ENOSPC,
    the status says which member has no space, and none is taken out.  When
    there is space again all goes on; every byte is right."""
    if os.geteuid():
        raise Skipped('not root: no file system of its own')
    a = lab.prepare()
    slot = lab.sample(1)[0]
    folder = os.path.join(lab.dir, 'small')
    lab.mount_tmpfs(folder, a.member_size + 8 * MiB)
    a.member[slot] = os.path.join(folder, 'member.img')
    lab.launch()
    lab.load.pause()
    lab.load.clear()
    filler = os.path.join(folder, 'filler')
    with open(filler, 'wb', buffering=0) as f:
        try:
            while True:
                f.write(bytes(MiB))
        except OSError as e:
            if e.errno != errno.ENOSPC:
                raise
    lab.say('the file system of %d is full' % slot)
    lab.load.may_fail = {errno.ENOSPC}
    lab.load.resume()
    a.until(lambda st: st['members'][slot]['no_space'],
            'the status says that there is no space')
    lab.run()
    until('a flush gets ENOSPC', lambda: lab.load.nr['errors'])
    st = a.status()
    full = [e['slot'] for e in st['members'] if e['no_space']]
    states = [e['state'] for e in st['members']]
    if full != [slot] or set(states) != {'active'}:
        raise Failure('no space on %s, states %s' % (full, states))
    if st['state'] != 'degraded' or st['reasons'] != ['no space']:
        raise Failure('%s, %s' % (st['state'], st['reasons']))
    os.unlink(filler)
    lab.say('there is space again, after %d times ENOSPC'
            % lab.load.nr['errors'])
    a.until(lambda st: not any(e['no_space'] for e in st['members']),
            'the status says that there is space again')
    lab.load.pause()
    lab.load.may_fail = set()
    lab.load.flush()
    lab.load.resume()
    lab.run()
    lab.verify()
    read_others(lab, (slot,))
    lab.finish()


HOOK = '''#!/bin/sh
echo "$1" >>'%(dir)s/events'
trap '' TERM
if [ -e '%(dir)s/hang' ]; then
  echo $$ >'%(dir)s/hung'
  while [ -e '%(dir)s' ]; do sleep 1; done
fi
'''


class Hook:
    def __init__(self, lab):
        self.dir = lab.dir
        self.path = self.file('hook')
        with open(self.path, 'w') as f:
            f.write(HOOK % dict(dir=lab.dir))
        os.chmod(self.path, 0o755)

    def file(self, name):
        return os.path.join(self.dir, name)

    def hang(self):
        """From the next event on."""
        if os.path.exists(self.file('hung')):
            os.unlink(self.file('hung'))
        open(self.file('hang'), 'w').close()

    def pid(self):
        """Of the one that hangs, once there is one."""
        until('the hook is run', lambda: written(self.file('hung')))
        with open(self.file('hung')) as f:
            return int(f.read())

    def is_there(self, pid):
        """Another process may have its number by now."""
        try:
            with open('/proc/%d/cmdline' % pid) as f:
                return self.path in f.read()
        except OSError:
            return False

    def events(self):
        if not os.path.exists(self.file('events')):
            return []
        with open(self.file('events')) as f:
            return f.read().split()


def hook_hangs(lab):
    """The program of hook= never ends, and ignores SIGTERM.  Requests and
    commands go on.  It is killed after a minute (in a short run by this
    scenario), and the events after it come, in order.  With one that hangs
    the server stops within seconds, and leaves none behind."""
    a = lab.prepare()
    hook = Hook(lab)
    a.keys.append('hook=' + hook.path)
    hook.hang()
    lab.launch()
    out = lab.sample(2)
    began = time.monotonic()
    a.fail(out[0])
    pid = hook.pid()
    lab.say('the hook hangs')
    a.fail(out[1])
    lab.run()
    lab.verify()
    lab.answers('with a hook that hangs')
    for s in out:
        a.replace(s)
    lab.wait_healthy()
    events = hook.events()
    if time.monotonic() > began + HOOK_S:
        lab.say('that took so long that the hook may have been killed')
    elif events != ['member-failed']:
        raise Failure('events %s' % events)
    os.unlink(hook.file('hang'))
    if lab.seconds < 2 and hook.is_there(pid):
        os.kill(pid, signal.SIGKILL)
    until('the events after one that hung come',
          lambda: len(hook.events()) >= 5, hook.events)
    lab.say('events: ' + ' '.join(hook.events()))
    if hook.events()[:3] != ['member-failed', 'degraded', 'member-failed'] \
       or hook.events()[3:] != ['rebuilt'] * 2:
        raise Failure('events %s' % hook.events())
    hook.hang()
    began = time.monotonic()
    a.fail(out[0])
    pid = hook.pid()
    lab.halt()
    took = time.monotonic() - began
    lab.say('with a hook that hangs it stops in %.1f s' % took)
    if took >= HOOK_S:
        raise Late('with a hook that hangs the stop took %.1f s' % took)
    until('no hook is left behind', lambda: not hook.is_there(pid))
    os.unlink(hook.file('hang'))
    lab.start()
    a.replace(out[0])
    lab.wait_healthy()
    lab.verify()
    lab.finish()


def unit_restart(lab):
    """The server of a mounted file system, started by the lines of
    system/gpuraid@.service.in with cache-mode=writethrough, is killed with
    -9 while files are written, and started by the same lines.  The file
    system is not mounted again: the writers see a pause and no error, and
    every file has what it must have.  Where the kernel has no nbd driver
    nbdkit's retry filter is between array and file system."""
    rig = unit.Rig(lab)
    rig.begin()
    for _ in range(2):
        rig.write(lab.seconds)
        lab.say('kill -9 under a mounted file system')
        rig.kill()
        rig.start()
        rig.write(lab.seconds)
        rig.check()
    rig.end()


ALL = (spare_unattended, hung_member, hung_members, full_file_system,
       hook_hangs, unit_restart)
