# sustain.py: what is left of a rate after some seconds of nothing else.
#
# A card may be fast for a moment and then reach its power limit.  So a case
# is coded without a break for as long as --sustained says, and what counts are
# the last two fifths of that: the mean rate, and the medians of clock and
# power.
#
# SPDX-License-Identifier: BSD-3-Clause

import time

COUNTED = 0.4


def last(durations, share):
    """How many at the end make up this share of their sum, at least one."""
    left, nr = share * sum(durations), 0
    for d in reversed(durations):
        nr += 1
        left -= d
        if left <= 0:
            break
    return nr


class Quiet:
    """In place of a meter where there is no NVML."""

    def __enter__(self):
        return self

    def __exit__(self, *why):
        pass

    def since(self, start):
        return None


def measure(entry, seconds):
    """Seconds for coding once, MHz and watts, the latter None where NVML is
    not there.  None: the row says why it is skipped."""
    with entry.bench.machine.meter() or Quiet() as meter:
        answer = entry.ask('sample', times=entry.times, **{'for': seconds})
        end = time.monotonic()
    if answer is None:
        return None
    found = answer['seconds'][-last(answer['seconds'], COUNTED):]
    clock, power = meter.since(end - COUNTED * seconds) or (None, None)
    return sum(found) / len(found), clock, power
