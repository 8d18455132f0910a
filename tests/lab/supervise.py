"""gpuraid: a run in a process of its own, which may hang with its array.

SPDX-License-Identifier: BSD-3-Clause
"""

import json
import os
import signal
import time


def supervise(seconds, run):
    """run (report) in a child, in a session of its own.  It returns the exit
    status; report (key=value) may be called before.  What was reported, with
    "wrong" if the child did not end in time or without a status."""
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        os.close(r)
        out = os.fdopen(w, 'w')

        def report(**news):
            out.write(json.dumps(news) + '\n')
            out.flush()
        try:
            status = run(report)
        except SystemExit:
            status = 1
        os._exit(status)
    os.close(w)
    try:
        status = wait(pid, seconds)
    except (KeyboardInterrupt, SystemExit):
        os.kill(pid, signal.SIGTERM)
        if wait(pid, 30) is None:
            end(pid)
        raise
    if status is None:
        end(pid)
    said = {}
    with os.fdopen(r) as f:
        for line in f:
            said.update(json.loads(line))
    if status is None:
        said['wrong'] = 'not over after %d s' % seconds
    elif status and not said.get('wrong'):
        said['wrong'] = 'ended with status %d' % status
    return said


def wait(pid, seconds):
    """Its status, or None: it is still there."""
    deadline = time.monotonic() + seconds
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status
        if time.monotonic() > deadline:
            return None
        time.sleep(0.02)


def end(pid):
    """With all that it started."""
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
