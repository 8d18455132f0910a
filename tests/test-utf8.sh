#!/bin/bash
# test-utf8.sh: a path, a host name and a label that are no UTF-8: what a program
# reads of any command, of the control socket and of a hook can be read.
#
# SPDX-License-Identifier: BSD-3-Clause
# run-tests: no-thread

source tests/functions.sh
need nbdkit

[ "$(id -u)" = 0 ] && unshare --uts true 2>/dev/null ||
  skip "not root, or no name spaces: no host name of one's own"
if [ -z "$GPURAID_TEST_UTS" ]; then
  rm -rf "$tmp" "$shm"
  GPURAID_TEST_UTS=1 exec unshare --uts "$0"
fi
printf 'h\xff\xc3(\xed\xa0\x80' >/proc/sys/kernel/hostname

bad=$shm/$'p\xff\xc3(\xed\xa0\x80 "\\'
mkdir "$bad"
make_members 4 16M "$bad"
spare=${members[3]}
unset 'members[3]'
create_array k=2 m=1 label=plain >"$tmp/out"

# relabel FILE: as something else may have written it, in each copy.
relabel ()
{
  /usr/bin/python3 -c '
import sys
def crc32c (data):
    c = 0xffffffff
    for byte in data:
        c ^= byte
        for bit in range (8):
            c = c >> 1 ^ (0x82f63b78 if c & 1 else 0)
    return c ^ 0xffffffff
with open (sys.argv[1], "r+b") as f:
    data = f.read ()
    nr = 0
    for off in range (0, len (data), 4096):
        b = bytearray (data[off:off + 4096])
        if b[72:78] != b"plain\0" or b[:8] != data[:8]:
            continue
        b[72:78] = b"l\xff\xc3(\xf5\0"
        b[8:12] = bytes (4)
        b[8:12] = crc32c (b).to_bytes (4, "little")
        f.seek (off)
        f.write (b)
        nr += 1
assert nr >= 2, nr
' "$1"
}
for m in "${members[@]}"; do
  relabel "$m"
done

# reads WORD FILE: is it JSON in UTF-8, and the word in it?
reads ()
{
  /usr/bin/python3 -c '
import json, sys
json.loads (open (sys.argv[2], "rb").read ().decode ("utf-8"))' "$@" ||
    fail "$3: $(cat -v "$2")"
  grep -qF -- "$1" "$2" || fail "$3: no $1: $(cat -v "$2")"
}

# json STATUS WORD...
json ()
{
  local want=$1 rc=0
  shift
  timeout 60 "$gpuraid" "$@" >"$tmp/out" 2>"$tmp/err" || rc=$?
  [ $rc = "$want" ] || fail "$*: status $rc: $(cat "$tmp/err")"
  reads $'p\xef\xbf\xbd\xef\xbf\xbd(' "$tmp/out" "$*"
}

cat >"$tmp/hook" <<END
#!/bin/sh
cat >>'$tmp/events'
END
chmod +x "$tmp/hook"
export GPURAID_RUNDIR=$shm/run
mkdir "$GPURAID_RUNDIR"
control=$GPURAID_RUNDIR/tank.control
start_raid hook="$tmp/hook"

timeout 60 "$gpuraid" --help >"$tmp/help"
with_json=
for c in $(sed -n 's/^  gpuraid \([a-z]*\) .*/\1/p' "$tmp/help"); do
  ! sed -n "/^  gpuraid $c /{N;p}" "$tmp/help" | grep -q -e --json ||
    with_json+=" $c"
done
for c in $with_json; do
  case $c in
    examine)
      json 0 examine --json "${members[@]}"
      for part in $'"h\xef\xbf\xbd\xef\xbf\xbd(' $'"l\xef\xbf\xbd\xef\xbf\xbd('; do
        grep -qF "$part" "$tmp/out" || fail "examine: no $part: $(cat "$tmp/out")"
      done ;;
    scan) json 0 scan --json "$bad" ;;
    status) json 0 status --json tank
            json 0 status --json ;;
    *) fail "$c has --json and no line here" ;;
  esac
done

"$gpuraid" metrics tank >"$tmp/out" || fail "metrics"
iconv -f utf-8 -t utf-8 "$tmp/out" >/dev/null || fail "metrics: no UTF-8"

# The file that is named is that with these bytes.
"$gpuraid" fail tank "${members[1]}" || fail "fail"
"$gpuraid" readd tank "${members[1]}" >"$tmp/out" || fail "readd"
"$gpuraid" wait tank || fail "wait"
"$gpuraid" replace tank "${members[1]}" "$spare" 2>"$tmp/err" ||
  fail "replace: $(cat "$tmp/err")"
"$gpuraid" wait tank || fail "wait"

# Each answer on the socket, also that which names what was asked for.
/usr/bin/python3 -c '
import json, socket, sys
s = socket.socket (socket.AF_UNIX)
s.connect (sys.argv[1])
f = s.makefile ("rwb")
for line in [b"{\"command\": \"status\"}", b"{\"command\": \"\xff\"}",
             b"{\"command\": \"fail\", \"member\": \"/\xff\xc3(\"}",
             b"{\"command\": \"replace\", \"member\": \"/\xff\", \"new\": \"/\xff\"}",
             b"{\"command\": \"spare\", \"new\": \"/\xff\"}",
             b"{\"command\": \"scrub\", \"action\": \"\xff\"}",
             b"{\"command\": \"wait\", \"until\": [\"\xff=\xff\"]}",
             b"{\"\xff\": 1}", b"\xff"]:
    f.write (line + b"\n")
    f.flush ()
    answer = f.readline ()
    assert isinstance (json.loads (answer.decode ("utf-8")), dict), line
' "$control" || fail "an answer on the socket"

wait_for grep -qF '"event":"rebuilt"' "$tmp/events" || fail "no event"
stop_raid
while read -r line; do
  printf '%s' "$line" >"$tmp/event"
  reads $'p\xef\xbf\xbd\xef\xbf\xbd(' "$tmp/event" "the hook"
done < <(grep -F member-failed "$tmp/events")
