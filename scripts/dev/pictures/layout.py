# layout.py: where the data of an array is: members, areas, stripes, rows.
#
# SPDX-License-Identifier: BSD-3-Clause

from pictures import svg

K, M = 4, 2


def slot(role, stripe):
    """Layout 0, as docs/on-disk-format.md has it."""
    return (role + M - 1 - stripe) % (K + M)


def name(role):
    return f'D{role}' if role < K else 'PQ'[role - K]


def colour(role):
    return (svg.DATA if role < K else (svg.PARITY, svg.SECOND)[role - K])


def areas(p, x, y):
    p.text(x, y, 'A member: file or disk', weight='bold')
    for i, (label, height, fill) in enumerate((
            ('superblock, twice', 24, svg.PALE),
            ('journal ring', 44, svg.OK),
            ('checksum table', 36, svg.SUMS),
            ('dirty bitmap', 24, svg.PALE),
            ('data', 150, svg.DATA),
            ('superblock, twice', 24, svg.PALE))):
        top = y + 14 + sum((24, 44, 36, 24, 150, 24)[:i])
        p.rect(x, top, 150, height, fill)
        p.text(x + 75, top + height / 2 + 4, label, 12, 'middle')


def stripes(p, x, y):
    p.text(x, y, f'The data of {K} + {M} members, in stripes', weight='bold')
    for s in range(K + M):
        p.text(x + 60, y + 52 + s * 34 + 22, f'stripe {s}', 12, 'end',
               svg.GREY)
        for role in range(K + M):
            left, top = x + 68 + slot(role, s) * 44, y + 52 + s * 34
            p.rect(left, top, 44, 34, colour(role))
            p.text(left + 22, top + 22, name(role), 13, 'middle')
    for i in range(K + M):
        p.text(x + 90 + i * 44, y + 42, str(i), 12, 'middle', svg.GREY)
    p.text(x + 60, y + 42, 'slot', 12, 'end', svg.GREY)
    p.lines(x + 68, y + 280, (
        'A chunk of 64 KiB for each member; parity',
        'moves on by one slot in each stripe.'))


def rows(p, x, y):
    """One stripe, and the blocks in it."""
    p.text(x, y, 'One stripe, in rows', weight='bold')
    for role in range(K + M):
        left = x + slot(role, 1) * 36
        p.text(left + 18, y + 42, name(role), 12, 'middle', svg.GREY)
        for row in range(7):
            if row != 5:
                p.rect(left, y + 52 + row * 24, 36, 24, colour(role))
    p.lines(x + 108, y + 52 + 5 * 24 + 16, ('. . .',), 13, 'middle')
    p.rect(x - 4, y + 52 + 2 * 24 - 2, 36 * (K + M) + 8, 28, 'none', '#b42318',
           4)
    p.lines(x, y + 248, (
        'A row: blocks of 4096 bytes with the',
        f'same number. Any {K} of them give the',
        f'other {M}. A checksum of each block is',
        'in the table of its member.'))


def draw():
    p = svg.Picture(880, 360, f'An array of {K} data and {M} parity members: '
                    'the areas of a member, stripes with rotating parity, '
                    'and the rows of one stripe')
    areas(p, 24, 34)
    stripes(p, 206, 34)
    rows(p, 620, 34)
    # The data area is what the stripes show; stripe 1 what the rows show.
    p.line(174, 176, 212, 86, dash='3 3')
    p.line(174, 326, 212, 290, dash='3 3')
    p.line(538, 120, 620, 86, dash='3 3')
    p.line(538, 154, 620, 254, dash='3 3')
    return p.svg()
