# terminal.py: what a terminal shows of the bytes that a program writes to it.
#
# Knows the codes that gpuraid watch uses, and no others.  A program that
# writes more than the screen holds is reported, not wrapped or scrolled.
#
# SPDX-License-Identifier: BSD-3-Clause

import re

CODE = re.compile(r'\x1b\[([?0-9;]*)([A-Za-z])')


class Terminal:
    """text: all that was written since it had this size."""

    def __init__(self, columns, rows, text=''):
        self.columns, self.rows = columns, rows
        self.cells = [[' '] * columns for _ in range(rows)]
        self.row = self.column = 0
        self.wrong = None
        self.feed(text)

    def feed(self, text):
        at = 0
        while at < len(text):
            c = text[at]
            code = CODE.match(text, at)
            if code:
                self.control(*code.groups())
                at = code.end()
                continue
            if c == '\r':
                self.column = 0
            elif c == '\n':
                self.row += 1
            elif c.isprintable():
                self.put(c)
            else:
                self.complain('a control code: %r' % text[at:at + 8])
            at += 1

    def put(self, c):
        if self.row >= self.rows:
            self.complain('more than %d lines' % self.rows)
        elif self.column >= self.columns:
            self.complain('line %d: more than %d columns'
                          % (self.row, self.columns))
        else:
            self.cells[self.row][self.column] = c
        self.column += 1

    def control(self, number, letter):
        if letter == 'H' and number == '':
            self.row = self.column = 0
        elif letter == 'K' and number == '':
            self.blank(self.row, self.column)
        elif letter == 'J' and number in ('', '2'):
            self.blank(self.row, self.column)
            for row in range(0 if number else self.row + 1, self.rows):
                self.blank(row, 0)
        elif letter not in 'hlm':
            self.complain('a code that is not known: %s%s' % (number, letter))

    def blank(self, row, column):
        if row < self.rows:
            for i in range(column, self.columns):
                self.cells[row][i] = ' '

    def complain(self, what):
        self.wrong = self.wrong or what

    def show(self):
        """Its lines, without spaces at the end of each."""
        return '\n'.join(''.join(row).rstrip() for row in self.cells)
