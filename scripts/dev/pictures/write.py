# write.py: the way of a write through an array with journal and checksums.
#
# SPDX-License-Identifier: BSD-3-Clause

from pictures import svg

WIDTH, HEIGHT, GAP = 146, 96, 20


def box(p, i, y, title, texts, fill):
    x = 24 + i * (WIDTH + GAP)
    p.rect(x, y, WIDTH, HEIGHT, fill, svg.LINE, 6)
    p.text(x + WIDTH / 2, y + 22, title, 13, 'middle', weight='bold')
    p.lines(x + WIDTH / 2, y + 42, texts, 11, 'middle')
    return x


def draw():
    p = svg.Picture(880, 370, 'The way of a write: from the client to cells, '
                    'the coder, the journal, and in place')
    y = 92
    steps = (
        ('Client', ('an NBD request,', 'any length, anywhere'), svg.PALE),
        ('Cells', ('the payload is copied', 'once, into the cache;',
                   'blocks are now dirty'), svg.DATA),
        ('Coder', ('parity and checksums', 'from whole batches:', 'CPU or GPU'),
         svg.PARITY),
        ('Journal', ('records with the', 'blocks, to the ring of',
                     'each member'), svg.OK),
        ('In place', ('the same blocks, to', 'data and parity chunks'),
         svg.DATA))
    x = [box(p, i, y, *step) for i, step in enumerate(steps)]
    for left in x[:-1]:
        p.arrow((left + WIDTH, y + 48), (left + WIDTH + GAP, y + 48))

    # What the client hears, above.
    p.arrow((x[1] + 73, y), (x[1] + 73, 56), (x[0] + 110, 56), (x[0] + 110, y))
    p.text(x[0] + 110, 44, 'write answered', 12)
    p.arrow((x[3] + 110, y), (x[3] + 110, 26), (x[0] + 36, 26), (x[0] + 36, y))
    p.text(x[3] + 104, 44, 'flush or FUA answered:', 12, 'end')
    p.text(x[3] + 104, 60, 'all members are flushed', 12, 'end')

    # After a crash, and what is later.
    below = y + HEIGHT
    p.arrow((x[4] + 100, below), (x[4] + 100, below + 42),
            (x[3] + 100, below + 42), (x[3] + 100, below), dash='4 3')
    p.lines(x[3] + 110, below + 60, (
        'later: pages of the checksum', 'table are stored, a flush,',
        'then the records are freed'), 12)
    p.arrow((x[3] + 40, below), (x[3] + 40, below + 130),
            (x[4] + 126, below + 130), (x[4] + 126, below), colour='#b42318')
    p.text(x[3] + 50, below + 150, 'after a crash: complete records are',
           12, fill='#b42318')
    p.text(x[3] + 50, below + 166, 'written in place again', 12,
           fill='#b42318')
    p.arrow((x[2] + 73, below), (x[2] + 73, below + 22),
            (x[4] + 30, below + 22), (x[4] + 30, below))
    p.text(x[2] + 80, below + 36, 'first write of a row', 11)
    p.lines(24, below + 56, (
        'A row that was never written has nothing to lose. With checksums its',
        'blocks go in place at once, and the records have no blocks: a first',
        'write is written once, all others twice.', '',
        'A write of part of a stripe first reads what the new parity needs:',
        'the old blocks and parity, or the other data, whichever is less.'))
    return p.svg()
