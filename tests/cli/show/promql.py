# promql.py: evaluate the small part of PromQL that the example's rules have.
#
# A vector is a list of (labels, value).  What it does not know it refuses.
#
# SPDX-License-Identifier: BSD-3-Clause

import operator
import re

TOKEN = re.compile(r'\s*(?:(?P<name>[a-z_][a-z0-9_]*)|(?P<number>[0-9]+)|'
                   r'"(?P<text>[^"\\]*)"|'
                   r'(?P<sign>=~|==|<=|>=|[-<>=*(){}\[\],]))')
COMPARE = {'==': operator.eq, '<': operator.lt, '>': operator.gt,
           '<=': operator.le, '>=': operator.ge}
ARITHMETIC = {'-': operator.sub, '*': operator.mul}


class Query:
    """samples: {name: vector}, of now; before: of the time of a range's
    begin; now: seconds since 1970."""

    def __init__(self, text, samples, before, now):
        self.samples, self.before, self.now = samples, before, now
        self.tokens = []
        text = text.rstrip()
        pos = 0
        while pos < len(text):
            m = TOKEN.match(text, pos)
            assert m, f'not known: {text[pos:]}'
            self.tokens.append((m.lastgroup, m.group(m.lastgroup)))
            pos = m.end()

    def run(self):
        result = self.alternatives()
        assert not self.tokens, f'not known: {self.tokens}'
        assert isinstance(result, list), 'no vector'
        return result

    # ---- tokens

    def next_is(self, *values):
        return bool(self.tokens) and self.tokens[0][1] in values

    def take(self, *values):
        assert not values or self.next_is(*values), \
            f'{values} expected: {self.tokens}'
        return self.tokens.pop(0)[1]

    def names(self):
        """(a, b)"""
        names = []
        self.take('(')
        while not self.next_is(')'):
            names.append(self.take())
            if not self.next_is(')'):
                self.take(',')
        self.take(')')
        return names

    # ---- operators, the weakest first

    def match_key(self):
        """What makes labels of both sides equal."""
        if not self.next_is('on'):
            return lambda labels: sorted(labels.items())
        self.take('on')
        names = self.names()
        return lambda labels: [labels.get(name, '') for name in names]

    def alternatives(self):
        left = self.sets()
        while self.next_is('or'):
            self.take('or')
            key = self.match_key()
            have = [key(labels) for labels, _ in left]
            left = left + [s for s in self.sets() if key(s[0]) not in have]
        return left

    def sets(self):
        left = self.comparison()
        while self.next_is('and', 'unless'):
            want = self.take() == 'and'
            key = self.match_key()
            have = [key(labels) for labels, _ in self.comparison()]
            left = [s for s in left if (key(s[0]) in have) == want]
        return left

    def comparison(self):
        left = self.terms()
        if not self.next_is(*COMPARE):
            return left
        holds = COMPARE[self.take()]
        assert isinstance(left, list), 'a scalar is compared'
        key = self.match_key()
        right = self.terms()
        result = []
        for labels, value in left:
            others = [right] if not isinstance(right, list) else \
                [v for other, v in right if key(other) == key(labels)]
            assert len(others) <= 1, f'many match {labels}'
            if others and holds(value, others[0]):
                result.append((labels, value))
        return result

    def terms(self):
        left = self.factors()
        while self.next_is('-'):
            self.take()
            left = calculate('-', left, self.factors())
        return left

    def factors(self):
        left = self.atom()
        while self.next_is('*'):
            self.take()
            left = calculate('*', left, self.atom())
        return left

    # ---- values

    def atom(self):
        kind, word = self.tokens.pop(0)
        if kind == 'number':
            return float(word)
        assert kind == 'name', f'not known: {word}'
        if word == 'time':
            assert self.names() == []
            return self.now
        if word == 'count':
            self.take('by')
            names = self.names()
            self.take('(')
            counts = {}
            for labels, _ in self.alternatives():
                group = tuple((n, labels.get(n, '')) for n in names)
                counts[group] = counts.get(group, 0) + 1
            self.take(')')
            return [(dict(group), n) for group, n in counts.items()]
        if word in ('increase', 'max_over_time'):
            self.take('(')
            before, now = self.selector(self.take())
            for sign in '[', '1', 'd', ']', ')':
                self.take(sign)
            return over_time(word, before, now)
        return self.selector(word)[1]

    def selector(self, name):
        matchers = []
        while self.next_is('{', ','):
            self.take()
            label, sign = self.take(), self.take('=', '=~')
            value = self.take()
            matchers.append((label, re.escape(value) if sign == '=' else value))
            if self.next_is('}'):
                self.take()
                break
        return [[(labels, value) for labels, value in samples.get(name, [])
                 if all(re.fullmatch(pattern, labels.get(label, ''))
                        for label, pattern in matchers)]
                for samples in (self.before, self.samples)]


def calculate(sign, left, right):
    f = ARITHMETIC[sign]
    assert not isinstance(left, list) or not isinstance(right, list), \
        'two vectors'
    if isinstance(right, list):
        return [(labels, f(left, value)) for labels, value in right]
    if isinstance(left, list):
        return [(labels, f(value, right)) for labels, value in left]
    return f(left, right)


def over_time(what, before, now):
    series = {}
    for labels, value in before + now:
        series.setdefault(tuple(sorted(labels.items())), []).append(value)
    if what == 'max_over_time':
        return [(dict(labels), max(v)) for labels, v in series.items()]
    # A counter that is less began anew.
    return [(dict(labels), v[1] - (v[0] if v[1] >= v[0] else 0))
            for labels, v in series.items() if len(v) == 2]
