"""gpuraid: the scenarios of the fault lab that work on members.

Each is a function whose doc string says what is done and what is
promised; it raises Failure if the promise is not kept.  Those that
stop and kill the server are in restarts.py.

SPDX-License-Identifier: BSD-3-Clause
"""

import errno
import os
import random
import time

import nbd

from .array import Failure


def read_others(lab, slots):
    """Fail as many others as possible, so that these are sources."""
    others = lab.sample(lab.array.m, without=slots)
    for s in others:
        lab.array.fail(s)
    lab.run()
    lab.verify()
    for s in others:
        lab.array.replace(s)
    lab.wait_healthy()


def garbage(lab, path, off, length):
    rng = random.Random(lab.rng.random())
    with open(path, 'r+b') as f:
        f.seek(off)
        while length > 0:
            n = min(length, 1 << 20)
            f.write(rng.randbytes(n))
            length -= n


def kill_members(lab):
    """Members are failed by hand, one by one, up to m, under load.  Every
    byte stays right; one more is refused.  All are replaced; then others
    are failed, so that rebuilt data is read."""
    a = lab.begin()
    out = lab.sample(a.m)
    for s in out:
        a.fail(s)
        lab.run()
        lab.verify()
    if a.states() != ['failed' if s in out else 'active'
                      for s in range(a.n)]:
        raise Failure('states: %s' % a.states())
    lab.refused('one more', a.fail, lab.sample(1, without=out)[0])
    lab.run()
    for s in out:
        a.replace(s)
    lab.run()
    lab.wait_healthy()
    lab.verify()
    read_others(lab, out)
    lab.finish()


def fail_rebuild_fail(lab):
    """A member fails, and while it is rebuilt another one, and then the
    target itself.  Every byte stays right; both slots are rebuilt."""
    a = lab.begin()
    first, second = lab.sample(2)
    a.fail(first)
    lab.run()
    target = lab.slow_target()
    a.replace(first, target.path)
    lab.until_rebuilding(0.2)
    a.fail(second)
    lab.run()
    lab.verify()
    lab.until_rebuilding(0.5)
    a.fail(target.path)
    target.fast()
    lab.run()
    lab.verify()
    a.replace(first)
    a.replace(second)
    lab.run()
    lab.wait_healthy()
    lab.verify()
    read_others(lab, (first, second))
    lab.finish()


def replace_active(lab):
    """A member in use is replaced: it stays in use until the copy is done,
    so that the array is never degraded."""
    a = lab.begin()
    slot = lab.sample(1)[0]
    target = lab.slow_target()
    a.replace(slot, target.path)
    st = a.status()
    if st['members'][slot]['state'] != 'active' or st['state'] != 'healthy':
        raise Failure('the replaced member is %s, the array %s' % (
            st['members'][slot]['state'], st['state']))
    lab.until_rebuilding(0.5)
    lab.verify()
    target.fast()
    if not a.wait():
        raise Failure('not healthy after the replacement')
    here = a.status()['members'][slot]
    if here['path'] != target.path or here['state'] != 'active':
        raise Failure('slot %d is %s, %s' % (slot, here['path'],
                                             here['state']))
    lab.verify()
    read_others(lab, (slot,))
    lab.finish()


def delete_member(lab):
    """A member's file is deleted under load.  The server, which has it open,
    notices within seconds and takes the member out; it is out after a
    restart too.  Every byte stays right; the slot is rebuilt onto a new
    file."""
    a = lab.prepare()
    a.flags = ['-D', 'gpuraid.watch=100']
    lab.launch()
    gone, known = lab.sample(2)
    lab.say('delete the file of %d' % gone)
    os.unlink(a.member[gone])
    lab.run()
    lab.verify()
    a.until_state(gone, 'failed', 'the deleted member is taken out')
    error = a.status()['members'][gone]['last_error']
    if error is None or error['operation'] != 'check':
        raise Failure('the error of the deleted member is %s' % error)
    lab.verify()
    lab.halt()
    a.flags = ['-D', 'gpuraid.watch=0']
    lab.start()
    if a.states()[gone] != 'failed':
        raise Failure('the deleted member is %s' % a.states()[gone])
    lab.run()
    a.replace(gone)
    lab.wait_healthy()
    # A member answers to its old path even when the file is gone, and is not
    # taken out by the server before: see watch=0.
    path = a.member[known]
    lab.say('delete the file of %d' % known)
    os.unlink(path)
    a.fail(path)
    lab.run()
    a.gpuraid('replace', a.control, path, a.new_path())
    a.member[known] = os.path.join(a.folder, 'new-%02d.img' % a.nr_new)
    lab.wait_healthy()
    lab.verify()
    read_others(lab, (gone, known))
    lab.finish()


def truncate_member(lab):
    """A member's file is truncated under load.  Every byte stays right,
    though writes above its new end make the file longer again; the whole
    member is failed once it was read or flushed, nothing is written to
    it after that, and it is replaced.  The same with only reads.
    Not promised: a file that another program makes as long again before
    it was read or flushed, and one that is truncated in the microseconds
    in which a superblock is written to its very end."""
    a = lab.begin()
    slots = lab.sample(2)
    mix = lab.load.mix
    for slot, now in zip(slots, (mix, dict(read=1))):
        lab.load.pause()
        lab.load.mix = now
        lab.load.resume()
        path = a.member[slot]
        info = a.examine(path)
        size = info['data_off'] + lab.rng.randrange(info['data_len'])
        lab.say('truncate the file of %d to %d' % (slot, size))
        os.truncate(path, size)
        lab.run()
        lab.verify()
        a.until_state(slot, 'failed', 'the member that was cut is out')
        # Nothing that was under way to it is left.
        lab.load.pause()
        with open(path, 'rb') as f:
            before = f.read()
        lab.load.mix = mix
        lab.load.resume()
        lab.run()
        with open(path, 'rb') as f:
            if f.read() != before:
                raise Failure('the member that was cut was written to')
        a.replace(slot)
        lab.wait_healthy()
        lab.verify()
    read_others(lab, slots)
    lab.finish()


def overwrite_member(lab):
    """A failed member's file is overwritten with garbage under load: its
    bytes are never used, and it can be replaced by itself with --force.
    Then one in use is overwritten: without checksums this is not detected, and
    reads from it are wrong.  But if nothing is written until it is
    failed, every byte is right again from then on."""
    a = lab.begin()
    slot, other = lab.sample(2)
    a.fail(slot)
    lab.say('overwrite the file of %d, failed' % slot)
    garbage(lab, a.member[slot], 0, a.member_size)
    lab.run()
    lab.verify()
    a.replace(slot, a.member[slot], force=True)
    lab.run()
    lab.wait_healthy()
    lab.verify()
    lab.load.pause()
    lab.load.flush()
    info = a.examine(a.member[other])
    lab.say('overwrite the data of %d, in use' % other)
    garbage(lab, a.member[other], info['data_off'], info['data_len'])
    a.fail(other)
    lab.load.read_all()
    lab.load.resume()
    lab.run()
    a.replace(other)
    lab.wait_healthy()
    lab.verify()
    read_others(lab, (slot, other))
    lab.finish()


def member_errors(lab):
    """One in twenty requests to a member fails, then all of them.  No
    client sees an error; every byte stays right; the member is out at
    the end, and its errors are counted."""
    a = lab.prepare()
    slot = lab.sample(1)[0]
    bad = lab.fuse_member('bad', rate='5%')
    worse = lab.fuse_member('worse')
    a.member[slot] = bad.path
    lab.launch()
    lab.say('1 in 20 requests to %d fails' % slot)
    bad.arm()
    lab.run(2)
    a.until(lambda st: st['members'][slot]['errors'], 'errors are counted')
    bad.disarm()
    lab.verify()
    entry = a.status()['members'][slot]
    lab.say('member %d: %s, %d errors' % (slot, entry['state'],
                                          entry['errors']))
    a.replace(slot, worse.path)
    lab.wait_healthy()
    lab.say('all requests to %d fail' % slot)
    worse.arm()
    a.until_state(slot, 'failed', 'a member that fails every request is out')
    lab.run()
    lab.verify()
    a.replace(slot)
    lab.wait_healthy()
    read_others(lab, (slot,))
    lab.finish()


def member_pulled(lab):
    """A member's store fails permanently under load, like a disk
    that is pulled out; then a second one.  No client sees an error."""
    a = lab.prepare()
    slots = lab.sample(2)
    pulled = [lab.fuse_member('pulled-%d' % s) for s in slots]
    for s, p in zip(slots, pulled):
        a.member[s] = p.path
    lab.launch()
    for s, p in zip(slots, pulled):
        lab.say('pull %d out' % s)
        p.pull()
        lab.run()
        lab.verify()
        a.until_state(s, 'failed', 'a member that was pulled out is out')
    for s in slots:
        a.replace(s)
    lab.wait_healthy()
    lab.verify()
    read_others(lab, slots)
    lab.finish()


def member_delays(lab):
    """One member is slow all the time, and another hangs for a while.  No
    client sees an error, every byte is right, nothing hangs forever."""
    a = lab.prepare()
    slow, hung = lab.sample(2)
    a.member[slow] = lab.fuse_member('slow', rdelay=10, wdelay=10).path
    hanging = lab.fuse_member('hanging')
    a.member[hung] = hanging.path
    lab.launch()
    lab.run()
    lab.load.slowest = 0
    lab.say('member %d hangs' % hung)
    hanging.hang()
    before = dict(lab.load.nr)
    end = time.monotonic() + max(1, 2 * lab.seconds)
    while time.monotonic() < end:
        lab.load.raise_wrong()
        time.sleep(0.05)
    meanwhile = {n: lab.load.nr[n] - before[n] for n in ('read', 'write')}
    hanging.go_on()
    lab.run()
    lab.verify()
    lab.say('meanwhile %(read)d reads and %(write)d writes were answered; '
            % meanwhile + 'the slowest request took %.2f s; members are %s'
            % (lab.load.slowest, sorted(set(a.states()))))
    for s, state in enumerate(a.states()):
        if state == 'failed':
            a.replace(s)
    lab.wait_healthy()
    lab.finish()


def too_many_lost(lab):
    """m members are failed and then one more fails every request.  Reads
    give right data or EIO, writes and flushes EIO; nothing is wrongly
    acknowledged.  When the last one works again, all flushed data
    is there after a restart."""
    a = lab.prepare()
    last = lab.sample(1)[0]
    bad = lab.fuse_member('bad')
    a.member[last] = bad.path
    lab.launch()
    out = lab.sample(a.m, without=(last,))
    for s in out:
        a.fail(s)
    lab.run()
    lab.load.may_fail = {errno.EIO}
    lab.say('all requests to %d fail' % last)
    bad.arm()
    a.until(lambda st: st['state'] == 'failed',
            'the array with %d members lost is failed' % (a.m + 1))
    lab.run()
    lab.load.pause()
    lost = lab.load.read_what_can_be_read()
    lab.say('%d of %d blocks cannot be read, the others are right' % (
        lost, lab.load.model.nr))
    try:
        lab.load.conns[0].pwrite(bytes(4096), 0)
        raise Failure('a write was acknowledged')
    except nbd.Error as e:
        if e.errnum != errno.EIO:
            raise Failure('a write: %s instead of EIO' % e)
    lab.load.disconnect()
    a.stop()
    bad.disarm()
    lab.say('member %d works again' % last)
    lab.load.may_fail = set()
    # The write above may have reached the disk before it failed.
    lab.load.model.begin(0, 1, 0)
    lab.load.model.end(0, 1, 0, ok=False, durable=False)
    blocks = lab.load.model.crash()
    lab.start_unclean(blocks, set(out))
    lab.run()
    for s in out:
        a.replace(s)
    lab.wait_healthy()
    lab.verify()
    lab.finish()


ALL = (kill_members, fail_rebuild_fail, replace_active, delete_member,
       truncate_member, overwrite_member, member_errors, member_pulled,
       member_delays, too_many_lost)
