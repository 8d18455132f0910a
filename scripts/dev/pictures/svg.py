# svg.py: an SVG picture, element by element.
#
# Coordinates are pixels from the top left.  Text stays text, in the reader's
# own sans-serif font, so leave room around it.  The background is white, so
# that a picture is readable on a dark page too.
#
# SPDX-License-Identifier: BSD-3-Clause

from xml.sax.saxutils import escape

INK = '#1f2328'
GREY = '#59636e'
LINE = '#8c959f'
PALE = '#f6f8fa'
DATA = '#cfe3fb'
PARITY = '#ffd8a8'
SECOND = '#ffc078'
OK = '#c3e6cb'
SUMS = '#e2d5f5'


def number(x):
    return f'{x:.1f}'.rstrip('0').rstrip('.')


class Picture:
    def __init__(self, width, height, title):
        self.width, self.height = width, height
        self.title = title
        self.parts = []
        self.rect(0.5, 0.5, width - 1, height - 1, '#ffffff', '#d1d9e0', 6)

    def add(self, name, text=None, **attributes):
        words = ' '.join(
            f'{key.replace("_", "-")}="'
            f'{escape(v if isinstance(v, str) else number(v))}"'
            for key, v in attributes.items())
        end = '/>' if text is None else f'>{escape(text)}</{name}>'
        self.parts.append(f'<{name} {words}{end}')

    def rect(self, x, y, width, height, fill, line=LINE, radius=0):
        self.add('rect', x=x, y=y, width=width, height=height, rx=radius,
                 fill=fill, stroke=line)

    def text(self, x, y, text, size=13, anchor='start', fill=INK,
             weight='normal'):
        self.add('text', text, x=x, y=y, font_size=size, text_anchor=anchor,
                 fill=fill, font_weight=weight)

    def lines(self, x, y, texts, size=12, anchor='start', fill=GREY, step=16):
        for i, t in enumerate(texts):
            self.text(x, y + i * step, t, size, anchor, fill)

    def line(self, x1, y1, x2, y2, colour=LINE, width=1, dash='none'):
        self.add('line', x1=x1, y1=y1, x2=x2, y2=y2, stroke=colour,
                 stroke_width=width, stroke_dasharray=dash)

    def arrow(self, *points, colour=GREY, dash='none'):
        """Through the points, with a head at the last; steps are straight."""
        where = ' '.join(f'{number(x)},{number(y)}' for x, y in points)
        self.add('polyline', points=where, fill='none', stroke=colour,
                 stroke_width=1.5, stroke_dasharray=dash)
        (x1, y1), (x2, y2) = points[-2:]
        length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5
        u, v = (x2 - x1) / length * 8, (y2 - y1) / length * 8
        head = [(x2, y2), (x2 - u - v / 2, y2 - v + u / 2),
                (x2 - u + v / 2, y2 - v - u / 2)]
        self.add('polygon', fill=colour,
                 points=' '.join(f'{number(x)},{number(y)}' for x, y in head))

    def polyline(self, points, colour, width=2):
        self.add('polyline', fill='none', stroke=colour, stroke_width=width,
                 points=' '.join(f'{number(x)},{number(y)}'
                                 for x, y in points))

    def circle(self, x, y, radius, fill):
        self.add('circle', cx=x, cy=y, r=radius, fill=fill)

    def svg(self):
        return '\n'.join([
            '<svg xmlns="http://www.w3.org/2000/svg" '
            f'width="{self.width}" height="{self.height}" '
            f'viewBox="0 0 {self.width} {self.height}" role="img" '
            'font-family="DejaVu Sans, Verdana, sans-serif">',
            f'<title>{escape(self.title)}</title>',
            '<!-- made by scripts/dev/make-pictures -->',
            *self.parts, '</svg>', ''])
