#!/usr/bin/python3
# test-readme.py: what README.md shows is what happens.
# run-tests: no-sanitizer
#
#   tests/docs/test-readme.py
#   tests/docs/test-readme.py --update         write what happens into README.md
#   tests/docs/test-readme.py --real [--mount PATH] [README]
#                                              on a machine for this: in /mnt,
#                                              /var/lib/gpuraid and so on
#
# Blocks of README.md that begin with "```console run" are typed word by word
# into one shell: lines with "# " are commands, and after each comes its output.
# "tty" after that: the command gets a terminal, and its first picture counts.
# Other blocks ("```sh") have commands alone, of which only the names are
# checked.  What differs from run to run is replaced before it is compared.
#
# Without --real, these stand in: folders of the test for those of the system
# (GPURAID_CONFIG_DIR and so on); a file for syslog; for sleep, waiting for what
# it waits for; and where this machine can't mount (no root, /dev/fuse or loop
# device), a folder whose files are copied to and from an image on the array.
#
# A difference is printed with what the kernel, the servers and mount say, and
# with the name spaces that have the mount: a file that is empty where it was
# written may be the fault of another program on this machine.
#
# SPDX-License-Identifier: BSD-3-Clause

import argparse
import difflib
import fcntl
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time

TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), '../..'))
OUT = os.path.realpath(os.environ.get('OUT') or TOP)
MOUNT = '/usr/local/lib/gpuraid/mount'
PATIENCE = 120
OWN_MOUNTS = os.path.join(TOP, 'tests', 'own-mounts.sh')
MARK = '@@ended@@'

# What differs from run to run, or from machine to machine.
VARIES = (
    (r'[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}', 'UUID'),
    (r'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d', 'TIME'),
    (r'/dev/(nbd|loop)\d+', '/dev/DEVICE'),
    (r'(?m)^(   coder: ).*', r'\1CODER'),
    (r'(?m)^(   epoch: ).*', r'\1EPOCH'),
    (r"by (nbdfuse|the kernel's driver)", 'by WAY'),
    # How often a member that is gone was asked before it was taken out.
    (r'(?m)^( +\d+ +failed\b.*? )\d+( +/)', r'\1N\2'),
    (r'(?m)^(clients  |cache    ).*', r'\1NUMBERS'),
    (r'[1-9]\d* blocks were wrong, [1-9]\d* of them', 'N blocks were wrong, N'),
)

# Instead of mount and umount: an image is on the array when nothing is
# "mounted".
STAND_IN = r'''#!/bin/bash
set -e
PATH=$PATH:/usr/sbin:/sbin
state=$(dirname "$0")
format=
[ "$1" != --format ] || { format=yes; shift; }
if [ "$1" = -u ]; then
  size=$(nbdinfo --size "$(cat "$state/uri")")
  rm -f "$state/image"
  truncate -s "$size" "$state/image"
  mke2fs -q -F -t ext4 -d "$2" "$state/image"
  nbdcopy "$state/image" "$(cat "$state/uri")"
  rm -rf "$2"
  exit
fi
uri="nbd+unix:///?socket=$1"
echo "$uri" >"$state/uri"
mkdir -p "$2"
if [ -z "$format" ]; then
  nbdcopy "$uri" "$state/image"
  debugfs -R "rdump / $2" "$state/image" 2>/dev/null
  rm -rf "$2/lost+found"
fi
echo "$2: ext4 on /dev/nbd0, which is $uri"
'''


def die(text, status=1):
    print(f'{sys.argv[0]}: {text}', file=sys.stderr)
    sys.exit(status)


def late(text):
    """Only time has run out: see scripts/run-tests."""
    die(text, 75)


class Block:
    """Lines of the README from first to last, without the fences."""

    def __init__(self, kind, first, lines):
        self.kind, self.first, self.lines = kind, first, lines

    def commands(self):
        """Pairs of a command and its output, each a list of lines."""
        pairs = []
        for line in self.lines:
            if line.startswith('# '):
                pairs.append(([line], []))
            elif not pairs:
                die(f'README.md:{self.first}: begins with no command')
            elif pairs[-1][0][-1].endswith('\\'):
                pairs[-1][0].append(line)
            else:
                pairs[-1][1].append(line)
        return pairs


def read_blocks(text):
    blocks, block = [], None
    for i, line in enumerate(text.split('\n')):
        if not line.startswith('```'):
            if block:
                block.lines.append(line)
        elif block:
            blocks.append(block)
            block = None
        else:
            block = Block(line[3:], i + 1, [])
    return blocks


def normal(text):
    for pattern, word in VARIES:
        text = re.sub(pattern, word, text)
    # As in a container.
    text = re.sub(r'(?m)^\w+: there is no syslog: .*\n?', '', text)
    return '\n'.join(line.rstrip() for line in text.rstrip('\n').split('\n'))


class Session:
    """A shell, and what stands in for the machine around it."""

    def __init__(self, real, mount):
        self.env = dict(os.environ)
        self.told = False
        self.tmp = tempfile.mkdtemp(prefix='readme.')
        self.names = {MOUNT: mount} if mount else {}
        if not real:
            self.stand_in()
        self.shell = subprocess.Popen(
            ['bash', '--norc'], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, env=self.env, cwd=self.tmp)
        if not real:
            self.run('sleep () { for i in {1..150}; do gpuraid status tank | '
                     'grep -q "no more" && break; command sleep 0.2; done; }')

    def stand_in(self):
        folders = {'/etc/gpuraid.d': 'conf', '/run/gpuraid': 'run',
                   '/var/lib/gpuraid': 'lib', '/mnt': 'mnt', 'bin': 'bin'}
        for name, folder in folders.items():
            folders[name] = os.path.join(self.tmp, folder)
            os.mkdir(folders[name])
        bin_folder = folders.pop('bin')
        self.names.update(folders)
        os.rmdir(folders['/var/lib/gpuraid'])
        os.symlink(os.path.join(OUT, 'gpuraid'),
                   os.path.join(bin_folder, 'gpuraid'))
        self.env.update({
            'PATH': f'{bin_folder}:{self.env["PATH"]}:/usr/sbin:/sbin',
            'GPURAID_CONFIG_DIR': folders['/etc/gpuraid.d'],
            'GPURAID_RUNDIR': folders['/run/gpuraid'],
            'GPURAID_STATE_DIR': os.path.join(self.tmp, 'state'),
            'GPURAID_RUN': folders['/run/gpuraid'],
            'LD_PRELOAD': os.path.join(TOP, 'build/tests/syslog-file.so'),
            'SYSLOG_FILE': os.path.join(self.tmp, 'syslog')})
        self.names[MOUNT] = os.path.join(TOP, 'scripts', 'mount')
        if not can_mount(folders['/mnt']):
            self.names[MOUNT] = os.path.join(bin_folder, 'mount-stand-in')
            with open(self.names[MOUNT], 'w') as f:
                f.write(STAND_IN)
            os.chmod(self.names[MOUNT], 0o755)

    def there(self, text):
        for name, path in self.names.items():
            text = re.sub(r'(?<![\w.-])(?<!\w/)' + re.escape(name) + r'(?![\w-])',
                          path, text)
        return text

    def back(self, text):
        for name, path in self.names.items():
            text = text.replace(path, name)
        return text

    def run(self, command):
        """Its output and status."""
        self.shell.stdin.write(
            f'{command}\nprintf "\\n{MARK}%d\\n" $?\n'.encode())
        self.shell.stdin.flush()
        pipe = self.shell.stdout.fileno()
        text, end = '', time.monotonic() + PATIENCE
        while True:
            m = re.search(f'\n{MARK}(\\d+)\n', text)
            if m:
                return text[:m.start()], int(m.group(1))
            if time.monotonic() > end:
                late(f'{command}: not finished after {PATIENCE} s: {text}')
            if select.select([pipe], [], [], 1)[0]:
                data = os.read(pipe, 65536)
                if not data:
                    die(f'{command}: the shell ended: {text}')
                text += data.decode(errors='replace')

    def watch(self, command):
        """The first picture of a program that fills the terminal."""
        pid, fd = pty.fork()
        if pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ,
                        struct.pack('HHHH', 24, 200, 0, 0))
            os.execvpe('sh', ['sh', '-c', 'exec ' + command],
                       dict(self.env, TERM='xterm', NO_COLOR='1'))
        text, end = '', time.monotonic() + PATIENCE
        while '\x1b[J' not in text:
            if time.monotonic() > end:
                late(f'{command}: shows nothing')
            if select.select([fd], [], [], 1)[0]:
                try:
                    text += os.read(fd, 65536).decode()
                except OSError:
                    die(f'{command}: ended: {text}')
        os.write(fd, b'q')
        try:
            while os.read(fd, 65536):
                pass
        except OSError:
            pass
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        picture = text.split('\x1b[H')[1].split('\x1b[J')[0]
        return re.sub('\x1b\\[[0-9;?]*[a-zA-Z]|\r', '', picture), status

    def type(self, lines, tty):
        """What the user sees."""
        command = self.there('\n'.join(lines)[2:])
        text, status = self.watch(command) if tty else self.run(command)
        # The exit status of these says the state.
        if status != 0 and not command.startswith('gpuraid status'):
            die(f'{command}: exit status {status}: {text}')
        return self.back(text).rstrip('\n')

    def tell(self):
        """What says whose fault a difference is, once."""
        if self.told:
            return
        self.told = True
        script = '''exec 2>&1
echo "--- gpuraid status"; timeout 30 gpuraid status tank
echo "--- the last words of the kernel"; dmesg | tail -n 30
echo "--- and of servers"
tail -n 30 "${SYSLOG_FILE:-/var/log/syslog}" 2>/dev/null ||
  timeout 30 journalctl -q --no-pager -t nbdkit -n 30
echo "--- mount"; tail -n +1 "$0"/mount/*/[!l]* "$0"/mount/*/log 2>/dev/null
losetup -l
echo "--- which name spaces have it"
for f in /proc/[0-9]*/mountinfo; do
  grep -sF "$0" "$f" | sed "s,^,$f $(readlink "${f%/*}/ns/mnt") ,"
done | sort -u -k 2'''
        print(subprocess.run(
            ['bash', '-c', script, self.tmp], env=self.env, text=True,
            errors='replace', stdout=subprocess.PIPE).stdout, file=sys.stderr)

    def end(self):
        if self.shell.poll() is None:
            mount = self.names.get(MOUNT, MOUNT)
            folder = self.names.get('/mnt', '/mnt')
            for command in (f'{{ {mount} -u {folder} || umount {folder}; }}',
                            'gpuraid stop --force tank'):
                subprocess.run(command + ' >/dev/null 2>&1', shell=True,
                               env=self.env, timeout=PATIENCE)
            self.shell.kill()
            self.shell.wait()
        shutil.rmtree(self.tmp, ignore_errors=True)


def can_mount(folder):
    """Whether this machine lets us, not only whether it has the programs."""
    script = '''PATH=$PATH:/usr/sbin:/sbin
for m in fuse loop; do modprobe $m 2>/dev/null; done
[ -w /dev/fuse ] && [ -b "$(losetup -f)" ] && mount --bind "$0" "$0" &&
  umount "$0"'''
    return os.geteuid() == 0 and subprocess.run(
        ['sh', '-c', script, folder], stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL).returncode == 0


def check_names(block, env):
    """That the programs of a block that is not run exist."""
    usage = subprocess.run(['gpuraid', '--help'], env=env, text=True,
                           capture_output=True).stdout
    path = env['PATH'] + ':/usr/sbin:/sbin'
    for i, line in enumerate(block.lines):
        words = line.split()
        if words[:1] == ['sudo']:
            words = words[1:]
        if not words or words[0].startswith('#'):
            continue
        at = f'README.md:{block.first + 1 + i}'
        if words[0].startswith('scripts/'):
            if not os.access(os.path.join(TOP, words[0]), os.X_OK):
                die(f'{at}: no {words[0]}')
        elif not shutil.which(words[0], path=path):
            die(f'{at}: no program {words[0]}')
        if words[0] == 'gpuraid' and f' {words[1]} ' not in usage:
            die(f'{at}: gpuraid has no {words[1]}')


def run_block(block, session):
    """The block as it should be, in lines, and what differs."""
    lines, wrong = [], []
    for command, expected in block.commands():
        got = session.type(command, 'tty' in block.kind.split())
        lines += command + (got.split('\n') if got else [])
        want = normal('\n'.join(expected))
        got = normal(got)
        if want != got:
            if not wrong:       # while all is as it was then
                session.tell()
            wrong += command + list(difflib.unified_diff(
                want.split('\n'), got.split('\n'), 'README.md', 'now',
                lineterm=''))
    return lines, wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--update', action='store_true')
    parser.add_argument('--real', action='store_true')
    parser.add_argument('--mount')
    parser.add_argument('readme', nargs='?',
                        default=os.path.join(TOP, 'README.md'))
    args = parser.parse_args()
    if not args.real and 'OWN_MOUNTS' not in os.environ:
        os.execv(OWN_MOUNTS, [OWN_MOUNTS, os.path.abspath(__file__)] +
                 sys.argv[1:])

    with open(args.readme) as f:
        text = f.read()
    blocks = read_blocks(text)
    lines = text.split('\n')
    session = Session(args.real, args.mount)
    nr, wrong, moved = 0, [], 0
    try:
        for block in blocks:
            if block.kind.split()[:2] == ['console', 'run']:
                now, differs = run_block(block, session)
                if args.real:
                    print('\n'.join(now))
                nr += len(block.commands())
                wrong += differs
                first = block.first + moved
                lines[first:first + len(block.lines)] = now
                moved += len(now) - len(block.lines)
            elif block.kind != 'sh':
                die(f'README.md:{block.first}: a block must be '
                    '"```console run" or "```sh"')
            elif not args.real:
                check_names(block, session.env)
    except SystemExit:
        session.tell()
        raise
    finally:
        session.end()
    if nr < 10:
        die(f'only {nr} commands were run')
    if args.update:
        with open(args.readme, 'w') as f:
            f.write('\n'.join(lines))
    elif wrong:
        die('README.md shows something else; --update shows what happens:\n' +
            '\n'.join(wrong))
    print(f'{nr} commands')


main()
