#!/bin/bash
# test-utf8.sh: a path, a host name and a label that are no UTF-8: what a program
# reads of any command, of the control socket and of a hook can be read, and what
# a command says shows which file it means.
#
# SPDX-License-Identifier: BSD-3-Clause
# run-tests: no-thread

[ -n "$OWN_MOUNTS" ] || exec tests/own-mounts.sh "$0" "$@"
source tests/functions.sh
need nbdkit qemu-io script mkfs.ext4

[ "$(id -u)" = 0 ] && unshare --uts true 2>/dev/null ||
  skip "not root, or no name spaces: no host name of one's own"
if [ -z "$GPURAID_TEST_UTS" ]; then
  rm -rf "$tmp" "$shm"
  GPURAID_TEST_UTS=1 exec unshare --uts "$0"
fi
printf 'h\xff\xc3(\xed\xa0\x80' >/proc/sys/kernel/hostname

# Its bytes, as text and messages have them; and what JSON has in their place.
bytes=$'p\xff\xc3(\xed\xa0\x80 "\\'
clean=$'p\xef\xbf\xbd\xef\xbf\xbd(\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd "\\'
json_clean=${clean//\\/\\\\}
json_clean=${json_clean//\"/\\\"}
label=$'l\xef\xbf\xbd\xef\xbf\xbd('

bad=$shm/$bytes
mkdir "$bad" "$bad/run"
make_members 4 16M "$bad"
spare=${members[3]}
unset 'members[3]'

export GPURAID_RUNDIR=$bad/run GPURAID_CONFIG_DIR=$tmp/conf
mkdir "$GPURAID_CONFIG_DIR"
# As if there was a syslog, on any machine.
syslog=$B/tests/syslog-file.so
export SYSLOG_FILE=$tmp/syslog
sock=$GPURAID_RUNDIR/tank.sock
control=$GPURAID_RUNDIR/tank.control
uri="nbd+unix:///?socket=$(/usr/bin/python3 -c '
import os, sys, urllib.parse
print (urllib.parse.quote (os.fsencode (sys.argv[1])))' "$sock")"
cat >"$tmp/hook" <<END
#!/bin/sh
cat >>'$tmp/events'
END
chmod +x "$tmp/hook"

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

# run STATUS ARG...: one command; what it prints is in $tmp/out and $tmp/err, both
# in $tmp/both.  No text has a control code, or more lines for it.
run ()
{
  local want=$1 rc=0
  shift
  what=$*
  timeout 60 "$gpuraid" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null || rc=$?
  cat "$tmp/out" "$tmp/err" >"$tmp/both"
  [ $rc = "$want" ] || fail "$what: status $rc: $(cat -v "$tmp/both")"
  ! LC_ALL=C grep -q $'[\x01-\x08\x0b-\x1f\x7f]' "$tmp/both" ||
    fail "$what: a control code: $(cat -v "$tmp/both")"
}

has ()
{
  LC_ALL=C grep -aqF -- "$1" "$tmp/both" ||
    fail "$what: no $(cat -v <<<"$1"): $(cat -v "$tmp/both")"
}

# names STATUS ARG...: it says the bytes of the file.
# says STATUS ARG...: it says of it what JSON has, in UTF-8.
# plain STATUS ARG...: it need not name it; in UTF-8.
# json STATUS ARG...: that is JSON.
names () { run "$@"; has "$bytes"; }
says () { run "$@"; utf8; has "$clean"; }
plain () { run "$@"; utf8; }
json () { run "$@"; utf8; is_json; has "$json_clean"; }

utf8 ()
{
  iconv -f utf-8 -t utf-8 "$tmp/out" >/dev/null 2>&1 ||
    fail "$what: no UTF-8: $(cat -v "$tmp/out")"
}

is_json ()
{
  echo "${what%% *}" >>"$tmp/with-json"
  /usr/bin/python3 -c '
import json, sys
json.loads (open (sys.argv[1], "rb").read ().decode ("utf-8"))' "$tmp/out" ||
    fail "$what: no JSON: $(cat -v "$tmp/out")"
}

# ---- a line for each command ---------------------------------------------

# With what a wrong name gives, since a message is where most names are.
other=$bad/other
truncate -s 16M "$other"

try_create ()
{
  plain 0 create --dry-run k=2 m=1 label=plain "${members[@]}"
  plain 0 create k=2 m=1 label=plain "${members[@]}"
  names 1 create k=2 m=1 "${members[@]}"
  names 2 create k=2 m=1 label="$bytes" "$other"
  for m in "${members[@]}"; do
    relabel "$m"
  done
}

try_examine ()
{
  names 0 examine "${members[0]}"
  has $'label       l\xff\xc3(\xf5'
  has $'written by  h\xff\xc3(\xed\xa0\x80'
  names 0 examine "${members[@]}"
  names 0 examine --brief "${members[@]}"
  [ "$(wc -l <"$tmp/out")" = 3 ] || fail "$what: $(cat -v "$tmp/out")"
  has $'  l\xff\xc3(\xf5  2+1'
  json 0 examine --json "${members[@]}"
  has "\"$label"
  has $'"h\xef\xbf\xbd\xef\xbf\xbd('
  plain 0 examine --udev "${members[0]}"
  has 'ID_FS_LABEL_ENC=l\xff\xc3\x28\xf5'
  names 1 examine "$other"
}

try_scan ()
{
  names 0 scan "$bad"
  has $'l\xff\xc3(\xf5  '
  json 0 scan --json "$bad"
  has "\"$label"
  names 1 scan "$bad/nothing"
}

try_start ()
{
  printf 'member=%s\n' "${members[@]}" >"$GPURAID_CONFIG_DIR/tank.conf"
  printf 'hook=%s\n' "$tmp/hook" >>"$GPURAID_CONFIG_DIR/tank.conf"
  names 2 start "$bytes"
  if [ -n "$SAN" ]; then
    start_raid hook="$tmp/hook"
  else
    on_exit "$gpuraid" stop --force tank
    LD_PRELOAD=$syslog plain 0 start tank
    [ "$(cat "$tmp/out")" = "tank: $uri" ] ||
      fail "what start prints is no URI: $(cat -v "$tmp/out")"
  fi
  qemu-io -f raw -c 'write -P 7 0 4M' "$uri" >/dev/null || fail "qemu-io"
}

try_status ()
{
  says 0 status tank
  has "label: $label"
  says 0 status "$control"
  json 0 status --json tank
  has "\"$label"
  json 0 status --json
  plain 0 status
  plain 0 status --quiet tank
  names 3 status "$bad/nothing"
}

try_metrics ()
{
  local array

  plain 0 metrics tank
  has "label=\"$label"
  has "path=\"$shm/$json_clean/member-00.img\""
  plain 0 metrics --output "$bad/metrics" tank
  cat "$bad/metrics" >"$tmp/out"
  utf8
  plain 0 metrics
  has "path=\"$shm/$json_clean/member-00.img\""
  # One that does not answer has only the path of its socket for a name.
  run 1 metrics "$bad/nothing"
  utf8
  array=$(grep -a '^gpuraid_array_up{' "$tmp/out") || fail "$what: $(cat "$tmp/out")"
  [ "$array" = "gpuraid_array_up{array=\"$shm/$json_clean/nothing\"} 0" ] ||
    fail "$what: $array"
}

# On a terminal, and in a pipe, where it prints a line without names.
try_watch ()
{
  local pid

  "$gpuraid" watch tank >"$tmp/out" &
  pid=$!
  wait_for grep -q healthy "$tmp/out" || fail "watch says nothing"
  kill $pid
  wait $pid || :
  what=watch
  utf8
  rm "$tmp/out"
  mkfifo "$tmp/keys"
  TERM=xterm script -qefc "stty rows 30 cols 200; exec $gpuraid watch tank" \
    "$tmp/out" <"$tmp/keys" >/dev/null &
  pid=$!
  exec 8>"$tmp/keys"
  wait_for grep -qaF "$clean/member-02" "$tmp/out" ||
    fail "watch: $(cat -v "$tmp/out")"
  printf q >&8
  exec 8>&-
  wait $pid || fail "watch: status $?"
  utf8
  names 1 watch "$bad/nothing"
}

try_rate ()
{
  plain 0 rate tank 1G
  plain 0 rate "$control"
  names 2 rate tank "$bytes"
  names 1 rate "$bad/nothing"
}

try_rebuild ()
{
  plain 0 rebuild "$control"
  names 1 rebuild "$bad/nothing"
}

try_grow ()
{
  run 1 grow "$control"
  utf8
  names 1 grow "$bad/nothing"
}

try_scrub ()
{
  plain 0 scrub "$control"
  plain 0 wait "$control"
  names 1 scrub "$bad/nothing"
}

try_fail ()
{
  plain 0 fail tank "${members[1]}"
  names 0 fail tank "${members[1]}"
  says 1 fail tank "$bad/nothing"
}

try_readd ()
{
  plain 0 readd tank "${members[1]}"
  says 1 readd tank "$bad/nothing"
}

try_wait ()
{
  plain 0 wait tank
  plain 0 wait tank "members.1.path=${members[1]}"
  says 3 wait tank --timeout 0 members.1.path=nothing
  says 1 wait tank "$bytes=1"
}

# The file with these bytes is taken, and the user told to name it.
try_replace ()
{
  names 0 replace tank "${members[1]}" "$spare"
  plain 0 wait tank
  [ "$(timeout 60 "$gpuraid" examine --json "$spare" | field 0.slot)" = 1 ] ||
    fail "replace: $(cat -v "$tmp/both")"
  says 1 replace tank "$bad/nothing" "$bad/new"
  says 1 replace tank 0 "$bad/nothing/new"
  members[1]=$spare
}

try_spare ()
{
  names 0 spare tank "$other"
  says 1 spare tank "${members[0]}"
  run 0 fail tank "$other"
}

# The member is there from then on.
try_more ()
{
  names 0 "$1" tank "$bad/$1"
  plain 0 wait tank
  members+=("$bad/$1")
  says 1 "$1" tank "$bad/$1"
  run 1 "$1" tank "$bad/nothing/new"
  utf8
  plain 1 "$1" tank cancel
  names 1 "$1" "$bad/nothing" pause
}

try_add-parity ()
{
  try_more add-parity
}

try_widen ()
{
  try_more widen
}

# What uses the device, too.
try_attach ()
{
  names 1 attach "$bad/nothing"
  names 2 attach --name "$bytes" "$sock"
  can_attach || return 0
  on_exit "$gpuraid" detach --wait 5 tank
  on_exit umount "$bad/mnt"
  mkdir "$bad/mnt"
  plain 0 attach --with fuse "$sock"
  device=$(cat "$tmp/out")
  mkfs.ext4 -q "$device" && mount "$device" "$bad/mnt" || fail "mount"
}

can_attach ()
{
  command -v nbdfuse >/dev/null && [ -w /dev/fuse ] && losetup -f >/dev/null 2>&1
}

try_detach ()
{
  names 1 detach "$bytes"
  can_attach || return 0
  names 1 detach tank
  umount "$bad/mnt"
  plain 0 detach --wait 10 tank
}

try_stop ()
{
  names 2 stop "$bytes"
  plain 0 stop tank
  [ -z "$raid_pid" ] || wait "$raid_pid" || fail "the server's status is $?"
  raid_pid=
}

try_check ()
{
  local off

  names 0 check "${members[@]}" "$bad/nothing"
  off=$("$gpuraid" examine --json "${members[1]}" | field 0.data_off)
  dd if=/dev/zero of="${members[1]}" bs=4K seek=$((off / 4096)) count=2 \
    conv=notrunc status=none
  names 1 check "${members[@]}"
  names 1 check --repair "${members[@]}"
  plain 0 check "${members[@]}"
}

try_bench ()
{
  plain 0 bench --engine simd --memory 4M --samples 1 --seconds 0 --json
  is_json
  names 2 bench --engine "$bytes"
}

# ---- all of them, and no other -------------------------------------------

table=(create examine scan start status metrics watch rate rebuild grow scrub fail
       readd wait replace spare add-parity widen attach detach stop check bench)

plain 0 --help
sed -n 's/^  gpuraid \([a-z-]*\) .*/\1/p' "$tmp/out" >"$tmp/commands"
printf '%s\n' "${table[@]}" | sort | diff <(sort "$tmp/commands") - ||
  fail "a command of gpuraid has no line here, or the other way round"
names 2 "$bytes"

for c in "${table[@]}"; do
  "try_$c"
done

while read -r c; do
  plain 0 "$c" --help
  ! grep -q -e --json "$tmp/out" || echo "$c"
done <"$tmp/commands" | sort >"$tmp/have-json"
sort -u "$tmp/with-json" | diff "$tmp/have-json" - ||
  fail "a command has --json, and its line does not try that"

# ---- the control socket, the log, the hook -------------------------------

# Each answer, also that which names what was asked for.
start_raid hook="$tmp/hook"
/usr/bin/python3 -c '
import json, socket, sys
s = socket.socket (socket.AF_UNIX)
s.connect (sys.argv[1])
f = s.makefile ("rwb")
for line in [b"{\"command\": \"status\"}", b"{\"command\": \"\xff\"}",
             b"{\"command\": \"fail\", \"member\": \"/\xff\xc3(\"}",
             b"{\"command\": \"readd\", \"member\": \"/\xff\xc3(\"}",
             b"{\"command\": \"replace\", \"member\": \"/\xff\", \"new\": \"/\xff\"}",
             b"{\"command\": \"replace\", \"member\": \"0\", \"new\": \"/\xff/\xff\"}",
             b"{\"command\": \"spare\", \"new\": \"/\xff\"}",
             b"{\"command\": \"scrub\", \"action\": \"\xff\"}",
             b"{\"command\": \"rebuild\", \"action\": \"\xff\"}",
             b"{\"command\": \"rate\", \"limit\": \"\xff\"}",
             b"{\"command\": \"grow\", \"\xff\": 1}",
             b"{\"command\": \"stop\", \"force\": \"\xff\"}",
             b"{\"command\": \"wait\", \"until\": [\"\xff=\xff\"]}",
             b"{\"command\": \"wait\", \"timeout\": 0, \"until\":"
             b" [\"members.0.path=\xff\"]}",
             b"{\"\xff\": 1}", b"\xff"]:
    f.write (line + b"\n")
    f.flush ()
    answer = f.readline ()
    assert isinstance (json.loads (answer.decode ("utf-8")), dict), line
' "$control" || fail "an answer on the socket"
fail_member 1
log_has "$bytes"
wait_for grep -qF '"event":"rebuilt"' "$tmp/events" || fail "no event"
stop_raid
while read -r line; do
  printf '%s' "$line" >"$tmp/out"
  what="hook $line"
  /usr/bin/python3 -c '
import json, sys
json.loads (open (sys.argv[1], "rb").read ().decode ("utf-8"))' "$tmp/out" ||
    fail "the hook: $(cat -v "$tmp/out")"
  grep -qF -- "$json_clean" "$tmp/out" || fail "the hook: $(cat -v "$tmp/out")"
done < <(grep -F member-failed "$tmp/events")
