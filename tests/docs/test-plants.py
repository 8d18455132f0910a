#!/usr/bin/python3
# test-plants: each planted mistake (common/plant.h) stands in one table of
# docs/testing.md, with what finds it, and no page names one that is not there.
#
# run-tests: no-sanitizer
#
# SPDX-License-Identifier: BSD-3-Clause

import collections
import glob
import os
import re
import sys

os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), '../..'))
failed = False

def wrong(text):
    global failed
    print(text)
    failed = True

def sources():
    for path in glob.glob('**/*.[ch]', recursive=True):
        if not path.startswith(('build', 'tests/')) and \
           path != 'common/plant.h':
            with open(path) as f:
                yield path, f.read()

def rows(page):
    """The rows of all tables of a page: their cells by the titles."""
    titles = None
    with open(page) as f:
        for line in f:
            cells = [c.strip() for c in line.strip().strip('|').split('|')]
            if not line.startswith('|'):
                titles = None
            elif titles is None:
                titles = cells
            elif set(line) - set('|-: \n'):
                yield dict(zip(titles, cells))

planted = {}
for path, text in sources():
    for name in re.findall(r'PLANTED \(\s*"([^"]+)"', text):
        planted[name] = path

listed = collections.Counter()
for row in rows('docs/testing.md'):
    for name in re.findall('`([^`]+)`', row.get('switch', '')):
        listed[name] += 1
        found = [text for title, text in row.items()
                 if title not in ('rule', 'switch', 'mistake')]
        if not any(found):
            wrong('docs/testing.md: %s: nothing finds it' % name)

with open('docs/rules.md') as f:
    named = set(re.findall('`([a-z0-9]+(?:-[a-z0-9]+)+)`', f.read()))

for name in sorted(planted.keys() - listed.keys()):
    wrong('%s: %s: in no table of docs/testing.md' % (planted[name], name))
for page, names in ('testing', set(listed)), ('rules', named):
    for name in sorted(names - planted.keys()):
        wrong('docs/%s.md: %s: no such mistake is planted' % (page, name))
for name, nr in listed.items():
    if nr > 1:
        wrong('docs/testing.md: %s: in %d tables' % (name, nr))
if not planted or not listed or not named:
    wrong('nothing is planted')
sys.exit(failed)
