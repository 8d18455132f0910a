#!/usr/bin/python3
# test-manual: the manual pages say what the programs say of themselves:
# commands, options, keys, defaults, variables of the environment; they can be
# printed, and name only pages, files and commands that exist.  The page of the
# control protocol has the keys of the status.
#
# SPDX-License-Identifier: BSD-3-Clause
# run-tests: no-sanitizer

import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
OUT = Path(os.environ.get('OUT') or TOP).resolve()
GPURAID = OUT / 'gpuraid'
PLUGIN = OUT / 'nbdkit-gpuraid-plugin.so'

# The package that has a page which is not ours.
ELSEWHERE = {
    'glob(7)': 'manpages',
    'libblkid(3)': 'libblkid-dev',
    'nbd-client(8)': 'nbd-client',
    'nbd_connect_uri(3)': 'libnbd-dev',
    'nbdfuse(1)': 'libnbd-bin',
    'nbdinfo(1)': 'libnbd-bin',
    'nbdkit(1)': 'nbdkit',
    'nbdkit-plugin(3)': 'nbdkit-plugin-dev',
    'nbdkit-service(1)': 'nbdkit',
    'resize2fs(8)': 'e2fsprogs',
    'systemd(1)': 'systemd',
    'systemd.unit(5)': 'systemd',
    'udev(7)': 'udev',
    'xfs_growfs(8)': 'xfsprogs',
}

# As man does it, without its pager: no overstrike, no hyphenation.  On a small
# installation of Ubuntu man itself only says that there are no pages.
GROFF = ('groff', '-K', 'utf8', '-t', '-man', '-Tutf8', '-P-cbou', '-rLL=78n',
         '-rHY=0')


def run(*args):
    return subprocess.run([str(a) for a in args], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, encoding='utf-8',
                          timeout=60, cwd=TOP)


def output(*args):
    r = run(*args)
    assert r.returncode == 0, f'{args}: {r.stderr}'
    return r.stdout


def pages():
    """NAME.SECTION -> its pod"""
    return {page: output('scripts/dev/manual', '--pod', page)
            for page in output('scripts/dev/manual', '--list').split()}


def plain(pod):
    """A line of pod as text."""
    pod = re.sub(r'[BCFIL]<([^<>]*)>', r'\1', pod)
    return pod.replace('E<lt>', '<').replace('E<gt>', '>')


def section(pod, heading):
    """What is below a heading, up to the next of its level or above."""
    m = re.search(rf'^=head([12]) {re.escape(heading)}\n(.*?)'
                  r'(?=^=head1|\Z)', pod, re.M | re.S)
    assert m, f'no heading {heading}'
    text = m[2]
    if m[1] == '2':
        text = re.split(r'^=head2', text, flags=re.M)[0]
    return text


def items(text):
    """[(item, what is below it)], of the outermost list only."""
    parts = re.split(r'^=item (.*)\n', text, flags=re.M)
    return list(zip(parts[1::2], parts[2::2]))


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pages = pages()
        cls.names = {f'{p[:-2]}({p[-1]})' for p in cls.pages}

    def test_all_are_there(self):
        self.assertGreaterEqual(self.names, {
            'gpuraid(1)', 'nbdkit-gpuraid-plugin(1)', 'gpuraid.conf(5)',
            'gpuraid-format(5)'})

    def test_they_can_be_printed(self):
        for tool in 'podchecker', 'groff', 'lexgrog':
            self.assertTrue(shutil.which(tool),
                            f'no {tool}: run scripts/deps')
        for page, pod in self.pages.items():
            with self.subTest(page), tempfile.TemporaryDirectory() as tmp:
                source = Path(tmp) / 'pod'
                source.write_text(pod)
                r = run('podchecker', '-warnings', source)
                self.assertEqual(r.returncode, 0, r.stderr)
                self.assertNotIn('WARNING', r.stderr)
                made = Path(tmp) / page
                made.write_text(output('scripts/dev/manual', page, '1.0'))
                r = run(*GROFF, '-wmac', made)
                self.assertEqual((r.returncode, r.stderr), (0, ''))
                name = run('lexgrog', made).stdout
                self.assertIn(f'"{page[:-2]} - ', name)

    def test_markdown_is_whole(self):
        """Each word of a page in Markdown is in the page made from it."""
        for line in output('scripts/dev/manual', '--sources').splitlines():
            page, source = line.split()
            if not source.endswith('.md'):
                continue
            with tempfile.TemporaryDirectory() as tmp:
                made = Path(tmp) / page
                made.write_text(output('scripts/dev/manual', page, '1.0'))
                text = set(re.findall(r'\w+', output(*GROFF, made).lower()))
            for n, s in enumerate((TOP / source).read_text().splitlines()):
                if re.match('```|<!--', s):
                    continue
                s = re.sub(r'\]\([^)]*\)', ']', s)
                s = re.sub(r'\[[^]]*[.]md\]', '', s)
                for word in re.findall(r'\w+', s.lower()):
                    # One that is longer than its column is broken.
                    if len(word) < 20:
                        self.assertIn(word, text, f'{source}:{n + 1}')

    def test_they_name_what_exists(self):
        commands = set(re.findall(r'^  gpuraid ([a-z][a-z-]*) ',
                                  output(GPURAID, '--help'), re.M))
        self.assertIn('create', commands)
        for page, pod in self.pages.items():
            with self.subTest(page):
                for ref in re.findall(r'L<([^/|<>]+)>', pod):
                    if ref in self.names or '://' in ref:
                        continue
                    self.assertIn(ref, ELSEWHERE)
                    self.is_in(ref, ELSEWHERE[ref])
                for file in re.findall(r'F<((?:docs|scripts)/[^<>]*)>', pod):
                    self.assertTrue((TOP / file).exists(), file)
                for c in re.findall(r'(?:C<|^ +(?:sudo )?)gpuraid ([a-z][a-z-]*)\b',
                                    pod, re.M):
                    self.assertIn(c, commands)

    def is_in(self, page, package):
        r = run('dpkg', '-L', package)
        name, number = page[:-1].split('(')
        if r.returncode == 0:
            self.assertRegex(r.stdout, rf'(?m)/man{number}/{name}\.{number}')

    def test_environment(self):
        """Each variable that a user may set, and no other."""
        headers = ''.join(f.read_text() for f in TOP.glob('attach/**/*.h'))
        ours = set()
        for f in TOP.glob('*/**/*.c'):
            if f.relative_to(TOP).parts[0].startswith(
                    ('tests', 'bench', 'build')):
                continue
            names = dict(re.findall(
                r'#define (\w+) "(\w+)"', f.read_text() + headers))
            for arg in re.findall(r'\bgetenv \(([^()]*)\)', f.read_text()):
                ours.add(names.get(arg, arg.strip('"')))
        # Marks for our own children, and planted mistakes, which are for tests.
        ours -= {'COMPILER_CHILD_ENV', 'PLANT', 'GPURAID_READY'}
        self.assertIn('XDG_RUNTIME_DIR', ours)
        said = set()
        for pod in self.pages.values():
            if re.search('^=head1 ENVIRONMENT', pod, re.M):
                for item, _ in items(section(pod, 'ENVIRONMENT')):
                    said |= set(re.findall(r'\w+', plain(item)))
        self.assertEqual(said, ours)


MARKDOWN = """<!-- made by
a script -->
# What is *it*?

About `a < b`, **that**, *this*, 2 * 3 * 4, [it](#two-words), [a
page](page.md#x), [docs/page.md](docs/page.md), [other.md](other.md), <https://a.example/>. and \\*.

## Two words

```sh
$ # no heading

| no table |
```

    indented

    too
| a | b |
|---|---|
| `x` | y \\| z |

- one
  and more

  a paragraph
  - inner
- two
1. first

> quoted

![A picture](p.svg)

=not a command
"""

POD = """=encoding utf8

=head1 NAME

x - what is I<it>?

=head1 DESCRIPTION

About C<a E<lt> b>, B<that>, I<this>, 2 * 3 * 4, L<it|/"Two words">, a page
(L<page(5)>), L<page(5)>, other.md, https://a.example/. and *.

=head2 Two words

    $ # no heading

    | no table |

    indented

    too

    a  b
    -  -----
    x  y | z

=over 4

=item *

one and more

a paragraph

=over 4

=item *

inner

=back

=item *

two

=back

=over 4

=item 1.

first

=back

=over 4

quoted

=back

I<A picture>

Z<>=not a command

=head1 SEE ALSO

L<page(5)>.

=head1 COPYRIGHT

The gpuraid authors.  BSD-3-Clause.
"""


class Markdown(unittest.TestCase):
    """scripts/dev/md-to-pod"""

    def convert(self, text):
        with tempfile.TemporaryDirectory() as tmp:
            file = Path(tmp) / 'x.md'
            file.write_text(text)
            return run('scripts/dev/md-to-pod', 'x', file, 'page.md=page(5)')

    def test_all_that_it_knows(self):
        self.maxDiff = None
        r = self.convert(MARKDOWN)
        self.assertEqual(r.stderr, '')
        self.assertEqual(r.stdout, POD)

    def test_what_it_does_not_know(self):
        for text, line in [('<p>html</p>', 3), ('# a second title', 3),
                           ('a\n\n* star', 5), ('a\n\n---', 5),
                           ('```\nno end', 3), ('[a](#nowhere)', 3),
                           ('| a | b |\n|---|---|\n| a |', 3),
                           ('- a\n\n  <p>', 3)]:
            with self.subTest(text):
                r = self.convert('# Title\n\n' + text)
                self.assertNotEqual(r.returncode, 0)
                self.assertRegex(r.stderr, rf'^md-to-pod: line {line}: ')
        r = self.convert('text')
        self.assertIn('has no title', r.stderr)


class Command(unittest.TestCase):
    """gpuraid(1)"""

    @classmethod
    def setUpClass(cls):
        cls.pod = output('scripts/dev/manual', '--pod', 'gpuraid.1')
        cls.names = re.findall(r'^  gpuraid ([a-z][a-z-]*) ',
                               output(GPURAID, '--help'), re.M)

    def usage(self, command):
        """Its usage in one line, and all of its --help."""
        text = output(GPURAID, command, '--help')
        m = re.match(r'usage: (gpuraid .*\n(?: {10}.*\n)*)', text)
        return ' '.join(m[1].split()), text

    def test_commands(self):
        said = re.findall(r'^=head2 gpuraid ([a-z][a-z-]*)', self.pod, re.M)
        self.assertEqual(sorted(said), sorted(self.names))
        lines = re.findall(r'^ gpuraid ([a-z][a-z-]*)',
                           section(self.pod, 'SYNOPSIS'), re.M)
        self.assertEqual(lines, said)

    def test_usage(self):
        """The same in --help, the synopsis and the heading."""
        for name in self.names:
            usage = self.usage(name)[0]
            # Its keys have a list of their own.
            usage = re.sub(r'(?: \[[a-z-]+=[^]]*\])+', ' [KEY=VALUE ...]',
                           usage)
            with self.subTest(usage):
                self.assertIn(f'\n {usage}\n', section(self.pod, 'SYNOPSIS'))
                self.assertIn(f'\n=head2 {usage}\n', self.pod)

    def options_in_code(self, name):
        code = next((TOP / 'cli').rglob(f'{name}.c')).read_text()
        if re.search(r'remote_args \(argc, argv, \d, &', code):
            code += (TOP / 'cli/server/remote.c').read_text()
        found = {'--' + s for s in re.findall(
            r'\{ "([a-z-]+)", (?:no|required)_argument', code)}
        letters = re.findall(r'getopt_long \(argc, argv, "(\w*)"', code)
        return found | {'-' + c for s in letters for c in s}

    def test_options(self):
        for name in self.names:
            with self.subTest(name):
                heading = re.search(rf'^=head2 (gpuraid {name}.*)', self.pod,
                                    re.M)[1]
                said = [m for item, _ in items(section(self.pod, heading))
                        for m in re.findall(r'B<(-[a-z-]+)>', item)]
                helped = re.findall(r'(?:^  |[\[| ])(--?[a-z][a-z-]*)',
                                    self.usage(name)[1] if name == 'bench'
                                    else self.usage(name)[0], re.M)
                if name == 'bench':
                    helped = re.findall(r'^  (--?[a-z][a-z-]*)',
                                        self.usage(name)[1], re.M)
                else:
                    self.assertEqual(set(helped), self.options_in_code(name))
                self.assertEqual(sorted(said), sorted(helped))

    def test_keys_of_create(self):
        heading = re.search(r'^=head2 (gpuraid create .*)', self.pod, re.M)[1]
        said = set(re.findall(r'B<([a-z-]+)=', ' '.join(
            item for item, _ in items(section(self.pod, heading)))))
        helped = set(re.findall(r'([a-z-]+)=', self.usage('create')[0]))
        code = (TOP / 'array/config/keys.c').read_text()
        read = set(re.findall(r'\{ "([a-z-]+)", \w+, true \}', code))
        self.assertEqual(said, helped)
        self.assertEqual(said, read - {'member'})

    def fields(self, heading, begin, end):
        """Names in C<> in the text below --json."""
        text = dict(items(section(self.pod, heading)))['B<--json>']
        text = text[text.index(begin):text.index(end)]
        text = re.sub(r'\([^()]*\)', '', text)
        return re.findall(r'C<([a-z_]+)>', text)

    def test_json(self):
        """The fields of examine and scan, in order."""
        with tempfile.TemporaryDirectory(dir='/dev/shm') as tmp:
            members = [f'{tmp}/{i}' for i in range(2)]
            for m in members:
                with open(m, 'wb') as f:
                    f.truncate(8 << 20)
            output(GPURAID, 'create', 'k=1', 'm=1', *members)
            examined = json.loads(output(GPURAID, 'examine', '--json',
                                         members[0]))
            found = json.loads(output(GPURAID, 'scan', '--json', tmp))
        self.assertEqual(list(examined[0]), self.fields(
            'gpuraid examine [--brief|--json|--udev] MEMBER...', 'C<path>',
            'L<gpuraid-format'))
        self.assertEqual(list(found[0]), self.fields(
            'gpuraid scan [--json] [PATH...]', 'C<label>', 'for a file in'))


DEFAULT = re.compile(r'[Tt]he default is (?:C<([^<>]*)>|(\d+\w*))'
                     r'|C<([^<>]*)>,\s+the default')


class Plugin(unittest.TestCase):
    """nbdkit-gpuraid-plugin(1)"""

    @classmethod
    def setUpClass(cls):
        cls.pod = output('scripts/dev/manual', '--pod',
                         'nbdkit-gpuraid-plugin.1')
        text = output('nbdkit', PLUGIN, '--help')
        cls.help = text[text.index('[member=]'):]

    def helped(self):
        """key -> its default, or None"""
        keys = {}
        entries = re.split(r'^(?=\S)', self.help, flags=re.M)
        for text in entries:
            m = re.search(r'\(default: ([^)]*)\)', ' '.join(text.split()))
            for key in re.findall(r'([a-z-]+)=', text.split('  ')[0]):
                keys[key] = m[1] if m else None
        return keys

    def said(self):
        keys, waiting = {}, []
        for item, text in items(section(self.pod, 'PARAMETERS')):
            waiting += re.findall(r'^\[?B<([a-z-]+)=', item)
            if not text.strip():
                continue
            for key in waiting:
                keys.setdefault(key, None)
                m = DEFAULT.search(text)
                if m:
                    keys[key] = next(filter(None, m.groups()))
            waiting = []
        return keys

    def test_keys_and_defaults(self):
        self.assertGreater(len(self.said()), 20)
        self.assertEqual(self.said(), self.helped())

    def test_defaults_are_true(self):
        """Those that are kept on the members, of an array made without."""
        with tempfile.TemporaryDirectory(dir='/dev/shm') as tmp:
            members = [f'{tmp}/{i}' for i in range(3)]
            for m in members:
                with open(m, 'wb') as f:
                    f.truncate(8 << 20)
            output(GPURAID, 'create', 'k=2', 'm=1', *members)
            text = output(GPURAID, 'examine', members[0])
        said = self.said()
        for key in 'code', 'consistency', 'checksum':
            self.assertIn(f'{key} {said[key]}', text)
        self.assertIn(f'chunk {said["chunk"][:-1]} KiB', text)

    def test_values(self):
        """Values of --help: each is an item, or in the text of one."""
        for key, values in re.findall(r'^([a-z-]+)=([a-z0-9|-]+)', self.help,
                                      re.M):
            said = [(i, t) for i, t in items(section(self.pod, 'PARAMETERS'))
                    if re.match(rf'B<{key}=', i)]
            for v in values.split('|'):
                self.assertTrue(any(
                    re.search(rf'\b{v}\b', plain(i)) for i, _ in said),
                    f'{key}={v}')

    def test_dump_plugin(self):
        dump = output('nbdkit', PLUGIN, '--dump-plugin')
        self.assertEqual(
            sorted(set(re.findall(r'^(gpuraid_\w+)=', dump, re.M))),
            sorted(plain(i) for i, _ in items(
                section(self.pod, 'DUMP PLUGIN OUTPUT'))))

    def test_debug_flags(self):
        said = {m for i, _ in items(section(self.pod, 'DEBUG FLAGS'))
                for m in re.findall(r'gpuraid\.(\w+)', i)}
        code = ''.join(f.read_text()
                       for f in (TOP / 'nbdkit-plugin').glob('*.c'))
        self.assertEqual(said, set(re.findall(
            r'^int gpuraid_debug_(\w+)', code, re.M)))


class Protocol(unittest.TestCase):
    """docs/control-protocol.md"""

    def test_status(self):
        """Each key has a row, and there is no other."""
        with tempfile.TemporaryDirectory(dir='/dev/shm') as tmp:
            members = [f'{tmp}/{i}' for i in range(2)]
            for m in members:
                with open(m, 'wb') as f:
                    f.truncate(8 << 20)
            output(GPURAID, 'create', 'k=1', 'm=1', *members)
            s = json.loads(output(
                'nbdkit', '-U', '-', PLUGIN, *members, f'control={tmp}/c',
                '--run', f'{GPURAID} status --json {tmp}/c'))
        del s['attached']               # the command has added that
        page = (TOP / 'docs/control-protocol.md').read_text()
        for heading, keys in [('## Status', s), ('`counters`:', s['counters']),
                              ('`stages`:', s['stages']),
                              ('`lock`:', s['lock']),
                              ('An entry of `members`:', s['members'][0])]:
            table = next(part for part in re.split(
                rf'^{re.escape(heading)}', page, flags=re.M)[1]
                         .split('\n\n') if part.lstrip().startswith('|'))
            said = [key for cell in re.findall(r'^\| (`[^|]*) \|', table, re.M)
                    for key in re.findall(r'`(\w+)`', cell)]
            with self.subTest(heading):
                self.assertEqual(sorted(said), sorted(keys))


if __name__ == '__main__':
    unittest.main()
