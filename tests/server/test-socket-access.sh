#!/bin/bash
# test-socket-access.sh: socket-group= and socket-mode= say which others connect
# to both sockets; without them only the owner reaches the control socket.
#
# run-tests: no-sanitizer
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need nbdkit nbdinfo setpriv qemu-io

# serve KEY...: nbdkit writes its number before the plugin has seen its socket, and
# answers commands after that.
serve ()
{
  start_raid "$@"
  status_json >/dev/null || fail "no answer"
}

# modes WANT: of both sockets, with the group if there is one in WANT
modes ()
{
  local form='%a'
  [[ $1 != *' '* ]] || form='%a %g'
  for path in "$sock" "$control"; do
    [ "$(stat -c "$form" "$path")" = "$1" ] ||
      fail "$path: $(stat -c "$form" "$path"), not $1"
  done
}

# as GROUP: that user reaches both, or neither (false)
as ()
{
  local user=(setpriv --reuid 65534 --regid "$1" --clear-groups)
  local nbd=0 status=0
  "${user[@]}" nbdinfo --size "$uri" >/dev/null 2>&1 || nbd=$?
  "${user[@]}" "$gpuraid" status "$control" >/dev/null 2>"$tmp/err" || status=$?
  [ $((nbd == 0)) = $((status == 0)) ] || fail "one of both: $nbd, $status"
  [ $nbd = 0 ]
}

make_members 3 8M
create_array k=2 m=1 >/dev/null
umask 022

serve
[ "$(stat -c %a "$control")" = 600 ] || fail "the control socket is not ours alone"
stop_raid

serve socket-mode=0606
modes 606
stop_raid
umask 077
serve socket-mode=0660
modes 660
stop_raid

for wrong in 0777 0700 0060 0400 9 "" 06600 0600x -1; do
  refuse_raid socket-mode="$wrong"
  grep -q 'socket-mode' "$raid_log" || fail "socket-mode=$wrong: $(cat "$raid_log")"
done
for wrong in no:such:group "" -1 99999999999; do
  refuse_raid socket-group="$wrong"
  grep -q 'socket-group' "$raid_log" ||
    fail "socket-group=$wrong: $(cat "$raid_log")"
done

if [ "$(id -u)" != 0 ]; then
  skip "not root: no sockets of another group"
fi

# Others may pass through, to the command too.
chmod 711 "$shm"
cp "$gpuraid" "$shm/gpuraid"
gpuraid=$shm/gpuraid
group=4711
serve socket-group=$group
modes "660 $group"
as $group || fail "the group does not reach them: $(cat "$tmp/err")"
! as 4712 || fail "another group does"
stop_raid
serve socket-group=$group socket-mode=0600
modes "600 $group"
! as $group || fail "the group reaches what is the owner's alone"
stop_raid
serve socket-group=$group socket-mode=0666
as 4712 || fail "not everyone: $(cat "$tmp/err")"
stop_raid
# The control socket only answers status to others: a command could have the
# server, which may be root's, write to any path.
serve socket-group=$group
user=(setpriv --reuid 65534 --regid $group --clear-groups)
# QEMU, with the options of docs/install.md; the disk of libvirt there is XML.
options=$(sed -n 's/^ *-blockdev \(driver=nbd,.*\) \\$/\1/p' docs/install.md |
  sed "s,/run/gpuraid/tank.sock,$sock,; s/,node-name=[a-z]*//")
"${user[@]}" qemu-io --image-opts "$options" -c "write -P 7 0 64k" -c flush \
  -c "read -P 7 0 64k" >"$tmp/out" 2>&1 || fail "qemu-io: $(cat "$tmp/out")"
! grep -i "error\|fail" "$tmp/out" || fail "qemu-io met an error"
sed -n "/^    <disk type='network'/,/^    <\/disk>/p" docs/install.md >"$tmp/disk.xml"
/usr/bin/python3 -c 'import sys, xml.etree.ElementTree as e
d = e.parse (sys.argv[1])
s = d.find ("source")
sys.exit (s.get ("name") != "writethrough" or
          s.find ("host").get ("socket") != "/run/gpuraid/tank.sock")' \
  "$tmp/disk.xml" || fail "docs/install.md: the disk of libvirt"
for command in "fail 0" "replace --force 0 $shm/x" "spare $shm/x" "readd 0" \
               grow scrub "rebuild pause" "rate 5" wait "stop --force"; do
  read -ra words <<<"$command"
  rc=0
  "${user[@]}" "$gpuraid" "${words[0]}" $([ "${words[0]}" = stop ] && echo --force) \
    "$control" "${words[@]:1}" >"$tmp/out" 2>"$tmp/err" || rc=$?
  [ $rc != 0 ] || fail "$command: it does it"
  [ "$command" = "stop --force" ] || grep -q "only status is for this user" "$tmp/err" ||
    fail "$command: $(cat "$tmp/err")"
done
is_ours "$raid_pid" || fail "it has ended"
expect_state healthy
stop_raid
# By name.
name=$(getent group | awk -F: '$3 { print $1; exit }')
serve socket-group="$name"
modes "660 $(getent group "$name" | cut -d: -f3)"
stop_raid
exit 0
