# house.py: array/ as a house: its rooms from above, what each decides, what
# calls the house and what it stands on.  From the table in docs/architecture.md.
#
# SPDX-License-Identifier: BSD-3-Clause

import re

from pictures import svg

HEIGHT = 25
ABOVE = ('nbdkit-plugin/', 'control/', 'cli/')
BELOW = ('member/', 'gf/', 'raidmap/', 'common/')

# The last room of each storey, and its colour.
STOREYS = (
    ('watch', svg.DATA),                # clients' requests
    ('change', svg.OK),                 # work on lines, and on members
    ('seats', svg.SUMS),                # what is on which member
    ('engine', svg.PARITY),             # memory, the lock
    ('plan', svg.PALE),                 # before it runs, and pure
)


def rooms(text):
    """[(name, what it decides)] of the table whose first column is "room"."""
    part = text.split('\n| room |')[1].split('\n\n')[0]
    found = re.findall(r'^\| `([\w/]+)/`[^|]*\| ([^|]*) \|', part, re.M)
    assert found[0][0] == 'array' and found[-1][0] == 'plan'
    return found


def outside(p, y, names, x, width):
    for i, name in enumerate(names):
        left = x + i * (width + 12) / len(names)
        p.rect(left, y, (width + 12) / len(names) - 12, 28, svg.PALE)
        p.text(left + (width + 12) / len(names) / 2 - 6, y + 19, name, 12,
               'middle')


def draw(text):
    found = rooms(text)
    x, y, width = 56, 112, 800
    end = y + len(found) * HEIGHT
    p = svg.Picture(880, end + 76, 'The rooms of array/, each of which calls '
                    'and includes only those below it')
    outside(p, 20, ABOVE, x, width)
    p.arrow((x + width / 2, 48), (x + width / 2, 64))
    p.text(x + width / 2 + 14, 60, 'array.h', 12, fill=svg.GREY)
    for edge in ((x - 16, y, x + width / 2, 66),
                 (x + width / 2, 66, x + width + 8, y)):
        p.line(*edge, colour=svg.INK)
    storeys = list(STOREYS)
    for i, (name, decides) in enumerate(found):
        top = y + i * HEIGHT
        p.rect(x, top, width, HEIGHT, storeys[0][1])
        p.text(x + 8, top + 17, name + '/', 12, weight='bold')
        p.text(x + 104, top + 17, decides.replace('`', ''), 12)
        if name == storeys[0][0]:
            storeys.pop(0)
    p.arrow((x - 16, y + 6), (x - 16, end - 6))
    p.arrow((x + width / 2, end), (x + width / 2, end + 18))
    outside(p, end + 20, BELOW, x, width)
    return p.svg()
