#!/usr/bin/python3
# gpuraid: which thread runs the engine, as a small model, tried exhaustively.
#
# Threads post news, and one of them, or the engine thread, takes the array lock,
# decides, and carries out what was decided: array/engine/engine.c and thread.c.
# Every order of their single steps is tried, with steps as small as one load,
# store or exchange that other threads can see.
#
#   tests/model/engine_thread.py            all of it, and each rule left out
#
# When no thread can go on, nothing that was posted is undecided, and nothing
# that was decided is not carried out.  The same holds while the engine thread
# carries out and all others are done: what it carries out may block.
#
# What the model leaves out: what news is about, and that the engine thread looks
# for news for a while before it sleeps.
#
# SPDX-License-Identifier: BSD-3-Clause

import argparse
import sys
from collections import namedtuple

RULES = {
    'looks-when-leaving': 'the engine thread that no longer decides looks for '
                          'news then',
    'leaves-to-carry': 'it lets others decide while it carries out',
    'carries-before-rest': 'it does not sleep while something is left to be '
                           'carried out',
    'looks-after-unlock': 'a thread that has unlocked looks for news',
    'looks-after-carrying': 'and once more when it has carried out',
    'posts-first': 'a thread posts, and then looks at the state',
}

ASLEEP, CARRIES, DECIDES = 'asleep', 'carries', 'decides'
CLIENT, LOOP = 'client', 'loop'

# news: how many are posted, and not taken.  lock: the thread that has it, or
# None.  decided: what the engine thread has left for others.  pc: of each
# thread, where it is; left: how often it will post again.  held: what it has
# decided, or taken over, and will carry out.  ends: how often that may be over
# before it is submitted, which is news that its thread posts and does not look
# at then.
State = namedtuple('State', 'news lock state decided pc left held ends')


def put(t, i, v):
    return t[:i] + (v,) + t[i + 1:]


class Threads:
    def __init__(self, kinds, posts, without=()):
        self.kinds = kinds
        self.posts = posts
        self.without = set(without)
        self.engine = len(kinds)        # its number

    def start(self):
        n = len(self.kinds)
        return State(0, None, ASLEEP, 0, ('idle',) * n + ('sleeps',),
                     tuple(self.posts), (0,) * (n + 1), 1)

    def keeps(self, rule):
        return rule not in self.without

    def go(self, s, i, pc, **changes):
        return s._replace(pc=put(s.pc, i, pc), **changes)

    # ---- the end of each thread's way

    def last(self, i):
        """Where a thread goes on that has nothing more to look for."""
        return 'again' if i == self.engine else 'idle'

    # ---- the steps that all threads have

    def decide(self, s, i):
        """With the lock."""
        return self.go(s, i, 'is-driven', news=0,
                       held=put(s.held, i, s.held[i] + s.news))

    def common(self, s, i):
        pc = s.pc[i]
        if pc == 'decide':
            return self.decide(s, i)
        if pc == 'is-driven':
            if s.state == DECIDES:
                return self.go(s, i, 'unlock')
            return self.go(s, i, 'any-left')
        if pc == 'any-left':
            return self.go(s, i, 'decide' if s.news else 'unlock')
        if pc == 'unlock':
            to = 'look-1' if self.keeps('looks-after-unlock') else 'carry'
            return self.go(s, i, to, lock=None)
        if pc == 'look-1':
            return self.go(s, i, 'state-1' if s.news else 'carry')
        if pc == 'look-2':
            return self.go(s, i, 'state-2' if s.news else self.last(i))
        if pc in ('state-1', 'state-2'):
            nr = pc[-1]
            to = 'carry' if nr == '1' else self.last(i)
            return self.go(s, i, to if s.state == DECIDES else 'try-' + nr)
        if pc in ('try-1', 'try-2'):
            to = 'carry' if pc == 'try-1' else self.last(i)
            if s.lock is not None:
                return self.go(s, i, to)
            return self.go(s, i, 'decide', lock=i)
        assert pc == 'carry', pc
        to = 'look-2' if self.keeps('looks-after-carrying') else self.last(i)
        return self.go(s, i, to, held=put(s.held, i, 0))

    # ---- a thread that posts

    def poster(self, s, i):
        pc = s.pc[i]
        if pc == 'idle':
            if s.left[i] == 0:
                return None
            s = s._replace(left=put(s.left, i, s.left[i] - 1))
            if self.keeps('posts-first'):
                return self.go(s, i, 'look', news=s.news + 1)
            return self.go(s, i, 'post-help' if s.state == DECIDES else
                           'post-try')
        if pc in ('post-help', 'post-try'):
            return self.go(s, i, pc[5:], news=s.news + 1)
        if pc == 'look':
            return self.go(s, i, 'help' if s.state == DECIDES else 'try')
        if pc == 'try':
            if s.lock is None:
                return self.go(s, i, 'decide', lock=i)
            return self.go(s, i,
                           'want' if self.kinds[i] == CLIENT else 'idle')
        if pc == 'want':
            state = DECIDES if s.state == ASLEEP else s.state
            return self.go(s, i, 'idle', state=state)
        if pc == 'help':
            return self.go(s, i, 'take' if s.decided else 'idle')
        if pc == 'take':
            return self.go(s, i, 'carry', decided=0,
                           held=put(s.held, i, s.decided))
        return self.common(s, i)

    # ---- the engine thread

    def thread(self, s):
        i = self.engine
        pc = s.pc[i]
        if pc == 'sleeps':
            return None if s.state == ASLEEP else self.go(s, i, 'works')
        if pc == 'works':
            return self.go(s, i, 'locks' if s.news else 'looks')
        if pc == 'locks':
            if s.lock is not None:
                return None
            return self.go(s, i, 'decides', lock=i)
        if pc == 'decides':
            return self.go(s, i, 'unlocks', news=0,
                           held=put(s.held, i, s.news))
        if pc == 'unlocks':
            return self.go(s, i, 'puts', lock=None)
        if pc == 'puts':
            return self.go(s, i, 'works', decided=s.decided + s.held[i],
                           held=put(s.held, i, 0))
        if pc == 'looks':
            if s.decided and self.keeps('carries-before-rest'):
                if not self.keeps('leaves-to-carry'):
                    return self.go(s, i, 'takes')
                return self.go(s, i, 'left-carries', state=CARRIES)
            return self.go(s, i, 'left-asleep', state=ASLEEP)
        if pc.startswith('left'):
            if s.news and self.keeps('looks-when-leaving'):
                return self.go(s, i, 'back')
            return self.go(s, i,
                           'takes' if pc == 'left-carries' else 'sleeps')
        if pc in ('back', 'again'):
            return self.go(s, i, 'works', state=DECIDES)
        if pc == 'takes':
            return self.go(s, i, 'carry', decided=0,
                           held=put(s.held, i, s.decided))
        return self.common(s, i)

    # ---- all of it

    def steps(self, s):
        for i, pc in enumerate(s.pc):
            if pc == 'carry' and s.held[i] and s.ends:
                yield i, s._replace(news=s.news + 1, ends=s.ends - 1)
        for i in range(self.engine):
            after = self.poster(s, i)
            if after:
                yield i, after
        after = self.thread(s)
        if after:
            yield self.engine, after

    def is_broken(self, s, able):
        if able - {self.engine}:
            return False
        if able and (s.pc[self.engine] != 'carry' or s.ends == 0):
            return False        # it looks later at what it has posted
        return s.news > 0 or s.decided > 0

    def run(self):
        """The number of states, and a state that is broken or None."""
        todo, seen = [self.start()], {self.start()}
        while todo:
            s = todo.pop()
            able = set()
            for i, after in self.steps(s):
                able.add(i)
                if after not in seen:
                    seen.add(after)
                    todo.append(after)
            if self.is_broken(s, able):
                return len(seen), s
        return len(seen), None


CASES = [([CLIENT, CLIENT], [2, 2]), ([CLIENT, LOOP], [2, 2]),
         ([CLIENT, CLIENT, LOOP], [1, 1, 1])]


def main():
    argparse.ArgumentParser(description='See the top of this file.'
                            ).parse_args()
    for kinds, posts in CASES:
        states, broken = Threads(kinds, posts).run()
        print(f'{"+".join(kinds)}: {states} states')
        if broken:
            sys.exit(f'broken: {broken}')
    for rule, text in RULES.items():
        found = any(Threads(*case, without=[rule]).run()[1] for case in CASES)
        print(f'without "{text}": {"broken" if found else "NOTHING"}')
        if not found:
            sys.exit(1)


if __name__ == '__main__':
    main()
