"""gpuraid: start a server soon after another was killed.

The kernel may still have the last server's I/O, and with it the locks of the
members.

SPDX-License-Identifier: BSD-3-Clause
"""

from .array import Failure, Refused, until

IN_USE = 'in use'               # of the refusal


def start_again(array, members=None):
    """As array.start ()."""
    def is_up():
        try:
            array.start(members)
        except Refused as e:
            if IN_USE not in str(e):
                raise
            return False
        return True
    until('the members are not in use, after a kill', is_up)


def kill_early(array):
    """A server that was launched, and may have been refused for that."""
    try:
        array.kill()
    except Failure as e:
        if IN_USE not in str(e):
            raise
