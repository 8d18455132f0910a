#!/bin/bash
# test-cli-start.sh: gpuraid start serves what a file describes, in the
# background or not, once, also after a kill; and stop ends it.
#
# run-tests: no-sanitizer
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need nbdkit nbdinfo

export GPURAID_RUNDIR=$shm/run GPURAID_CONFIG_DIR=$tmp/conf
mkdir "$GPURAID_CONFIG_DIR"
# As if there was a syslog, on any machine; see below for one without.
export LD_PRELOAD=$B/tests/syslog-file.so SYSLOG_FILE=$tmp/syslog
make_members 3 8M
create_array k=2 m=1 label=tank >/dev/null
echo "member=$shm/member-*.img" >"$GPURAID_CONFIG_DIR/tank.conf"
sock=$GPURAID_RUNDIR/tank.sock
control=$GPURAID_RUNDIR/tank.control
on_exit stop_all

stop_all () { "$gpuraid" stop --force tank; "$gpuraid" stop --force folder; }

# run STATUS COMMAND...
run ()
{
  local want=$1 rc=0
  shift
  timeout 60 "$gpuraid" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null || rc=$?
  [ $rc = "$want" ] ||
    fail "gpuraid $*: status $rc: $(cat "$tmp/out" "$tmp/err")"
}

said () { grep -qF -- "$1" "$tmp/err" || fail "no $1: $(cat "$tmp/err")"; }
one_line () { [ "$(wc -l <"$tmp/err")" = 1 ] || fail "$(cat "$tmp/err")"; }

# ---- in the background

run 0 start tank
grep -qxF "tank: nbd+unix:///?socket=$sock" "$tmp/out" ||
  fail "start: $(cat "$tmp/out")"
[ ! -s "$tmp/err" ] || fail "start: $(cat "$tmp/err")"
[ "$(stat -c %a "$GPURAID_RUNDIR")" = "$([ "$(id -u)" = 0 ] && echo 755 || echo 700)" ] ||
  fail "the folder's mode is not right"
[ "$(nbdinfo --size "nbd+unix:///?socket=$sock")" -gt 0 ] || fail "not served"
[ "$("$gpuraid" status --json tank | field label)" = tank ] || fail "status"

run 1 start tank
one_line
said "tank: is running already"
run 1 start -f tank
one_line
said "tank: is running already"
run 0 stop tank
[ -z "$(ls "$GPURAID_RUNDIR")" ] || fail "left: $(ls "$GPURAID_RUNDIR")"

# ---- in the foreground: the server is this process; then kill it

"$gpuraid" start -f tank 2>"$tmp/log" &
pid=$!
wait_for "$gpuraid" status tank || fail "start -f: $(cat "$tmp/log")"
kill -0 $pid || fail "not in the foreground"
kill -9 $pid
wait $pid || :
[ -S "$sock" ] && [ -S "$control" ] || fail "no sockets are left"
run 0 start tank
run 0 stop tank
"$gpuraid" start -f tank 2>"$tmp/log" &
pid=$!
wait_for "$gpuraid" status tank || fail "start -f: $(cat "$tmp/log")"
run 0 stop tank
wait $pid || fail "the server's status is $?"

# ---- a stop that is refused: the server goes on, without an error in its log

"$gpuraid" start -f tank 2>"$tmp/log" &
pid=$!
wait_for "$gpuraid" status tank || fail "start -f: $(cat "$tmp/log")"
run 0 fail tank 2
rm "${members[1]}"
wait_for eval '[ "$("$gpuraid" status --json tank | field members.1.deleted)" = true ]' ||
  fail "the deleted file is not noticed"
run 1 stop tank
said "its file was deleted"
nbdinfo "nbd+unix:///?socket=$sock" >"$tmp/out" || fail "it does not go on"
! grep error: "$tmp/log" || fail "the server has logged an error"
run 0 stop --force tank
wait $pid || fail "the server's status is $?"
rm -f "${members[@]}"
truncate -s 8M "${members[@]}"
create_array k=2 m=1 label=tank >/dev/null

# ---- what was begun goes on without a client, unless the file says something else

# resumes YES|NO: is resume=yes given to the server?
resumes ()
{
  "$gpuraid" start -f tank 2>"$tmp/log" &
  pid=$!
  wait_for "$gpuraid" status tank || fail "start -f: $(cat "$tmp/log")"
  case $1-$(tr '\0' '\n' <"/proc/$pid/cmdline" | grep -cx resume=yes) in
    yes-1 | no-0) ;;
    *) fail "resume=yes is not as it should be: $1" ;;
  esac
  run 0 stop tank
  wait $pid || fail "the server's status is $?"
}
resumes yes
echo resume=no >>"$GPURAID_CONFIG_DIR/tank.conf"
resumes no
sed -i '$d' "$GPURAID_CONFIG_DIR/tank.conf"

# ---- a new member that the file does not name: the next start would lack it

run 0 start tank
run 0 spare tank "$shm/other.img"
one_line
said "tank.conf does not name $shm/other.img: add member=$shm/other.img"
run 0 fail tank "$shm/other.img"
run 0 replace tank 1 "$shm/new.img"
one_line
said "tank.conf does not name $shm/new.img"
run 0 wait tank
run 0 replace "$control" 1 "$shm/new-2.img"     # by its socket: no file
[ ! -s "$tmp/err" ] || fail "replace: $(cat "$tmp/err")"
run 0 wait tank
rm "${members[1]}"
run 0 replace tank 1 "${members[1]}"            # the pattern finds it
[ ! -s "$tmp/err" ] || fail "replace: $(cat "$tmp/err")"
run 0 wait tank
run 0 fail tank 1
mv "${members[1]}" "$shm/moved.img"
run 0 readd tank "$shm/moved.img"               # a member that is elsewhere now
one_line
said "tank.conf does not name $shm/moved.img: add member=$shm/moved.img"
run 0 wait tank
run 0 fail tank 1
mv "$shm/moved.img" "${members[1]}"
for member in "${members[1]}" 1; do
  run 0 readd tank "$member"
  [ ! -s "$tmp/err" ] || fail "readd: $(cat "$tmp/err")"
  run 0 wait tank
  run 0 fail tank 1
done
run 0 readd tank 1
run 0 wait tank
ln -s "$shm/link-target.img" "$shm/link.img"
echo "member=$shm/link.img" >>"$GPURAID_CONFIG_DIR/tank.conf"
run 0 spare tank "$shm/link-target.img"         # another name of it is there
[ ! -s "$tmp/err" ] || fail "spare: $(cat "$tmp/err")"
run 0 fail tank "$shm/link-target.img"
sed -i '$d' "$GPURAID_CONFIG_DIR/tank.conf"
run 0 stop tank

# Where the file has dir= a line member= would be an error.
mkdir "$shm/folder"
printf 'dir=%s\nk=1\nm=1\nsize=4M\n' "$shm/folder" \
  >"$GPURAID_CONFIG_DIR/folder.conf"
run 0 start folder
run 0 replace folder 0 "$shm/folder/other.img"
one_line
said "the members are the files member-*.img in $shm/folder; give it such a name"
run 0 wait folder
run 0 replace folder 0 "$shm/folder/member-2.img"
[ ! -s "$tmp/err" ] || fail "replace: $(cat "$tmp/err")"
run 0 stop folder
rm -r "$GPURAID_CONFIG_DIR/folder.conf" "$shm/folder"

# ---- a member is missing: a notice, and it is served

mv "${members[1]}" "$tmp/away"
run 0 start tank
said "missing"
run 0 stop tank

# ---- without a syslog: messages are in a file, which does not grow for ever

log=$GPURAID_RUNDIR/tank.log
unset SYSLOG_FILE
mv "$tmp/away" "${members[1]}"
run 0 start tank
grep -qxF "tank: there is no syslog: messages go to $log" "$tmp/out" ||
  fail "start: $(cat "$tmp/out")"
[ ! -s "$tmp/err" ] || fail "start: $(cat "$tmp/err")"
run 0 fail tank 1
[ "$(stat -c %a "$log")" = 640 ] || fail "others can read the log"
grep -qE "^[0-9]{4}-[0-9-]* [0-9:]{8} nbdkit: gpuraid: .*taken out by command" \
  "$log" || fail "the log: $(cat "$log")"
# nbdkit's own: a client that is none.
/usr/bin/python3 -c 'import socket, sys
s = socket.socket (socket.AF_UNIX)
s.connect (sys.argv[1])
s.send (b"x" * 1000)' "$sock"
wait_for grep -q "^nbdkit: .*error: " "$log" ||
  fail "nbdkit said nothing: $(cat "$log")"
run 1 start tank
one_line
head -c 1048576 /dev/zero >>"$log"
wait_for test -e "$log.1" || fail "the log is still that long"
run 0 readd tank 1
run 0 wait tank
grep -q "member-01.img: rebuilt" "$log" || fail "the log ends"
[ "$(stat -c %s "$log")" -lt 100000 ] || fail "the new log has the old content"
run 0 stop tank
[ "$(ls "$GPURAID_RUNDIR" | tr '\n' ' ')" = "tank.log tank.log.1 " ] ||
  fail "left: $(ls "$GPURAID_RUNDIR")"
run 0 status
[ ! -s "$tmp/out" ] || fail "a log counts as an array: $(cat "$tmp/out")"
rm "$log" "$log.1"
mkdir "$log"
run 1 start tank
one_line
said "log=$log: Is a directory"
rmdir "$log"
run 1 start -f nosuch           # in the foreground there is no such file
said "nosuch.conf: No such file"
[ -z "$(ls "$GPURAID_RUNDIR")" ] || fail "left: $(ls "$GPURAID_RUNDIR")"

# ---- log=stderr in the background, where there is none

echo "log=stderr" >>"$GPURAID_CONFIG_DIR/tank.conf"
run 0 start tank
grep -qxF "tank: there is no syslog: messages go to $log" "$tmp/out" ||
  fail "start: $(cat "$tmp/out")"
run 0 fail tank 1
grep -q "taken out by command" "$log" || fail "the log: $(cat "$log")"
run 0 readd tank 1
run 0 wait tank
run 0 stop tank
rm "$log"
export SYSLOG_FILE=$tmp/syslog
: >"$SYSLOG_FILE"
run 0 start tank
run 0 fail tank 1
grep -q "taken out by command" "$SYSLOG_FILE" ||
  fail "syslog: $(cat "$SYSLOG_FILE")"
run 0 readd tank 1
run 0 wait tank
run 0 stop tank
unset SYSLOG_FILE
sed -i '$d' "$GPURAID_CONFIG_DIR/tank.conf"

# ---- log= in its file of keys; SIGHUP opens that file again

printf 'log=%s\n' "$tmp/own.log" >>"$GPURAID_CONFIG_DIR/tank.conf"
run 0 start tank
! grep -q "there is no syslog" "$tmp/out" || fail "start: $(cat "$tmp/out")"
run 0 fail tank 1
grep -q "taken out by command" "$tmp/own.log" || fail "the log: $(cat "$tmp/own.log")"
mv "$tmp/own.log" "$tmp/own.old"
kill -HUP $(pgrep -f -- "-U $sock ")
wait_for test -e "$tmp/own.log" || fail "SIGHUP: the log is not opened again"
run 0 readd tank 1
run 0 wait tank
grep -q "member-01.img: rebuilt" "$tmp/own.log" || fail "the log after SIGHUP"
run 0 stop tank
rm "$tmp/own.log" "$tmp/own.old"
sed -i '$d' "$GPURAID_CONFIG_DIR/tank.conf"

# ---- log=syslog, also in the foreground

export SYSLOG_FILE=$tmp/syslog
echo "log=syslog" >>"$GPURAID_CONFIG_DIR/tank.conf"
: >"$SYSLOG_FILE"
"$gpuraid" start -f tank 2>"$tmp/log" &
pid=$!
wait_for test -S "$control" || fail "start -f: $(cat "$tmp/log")"
run 0 fail tank 1
grep -q "taken out by command" "$SYSLOG_FILE" || fail "syslog: $(cat "$SYSLOG_FILE")"
! grep -q "taken out by command" "$tmp/log" || fail "stderr: $(cat "$tmp/log")"
run 0 readd tank 1
run 0 wait tank
run 0 stop tank
wait $pid || fail "the server's status is $?"
sed -i '$d' "$GPURAID_CONFIG_DIR/tank.conf"

create_array --force k=2 m=1 label=tank >/dev/null
mv "${members[1]}" "$tmp/away"

# ---- what is wrong is said here, and nothing is left

mv "${members[2]}" "$tmp/away-2"
for f in "" -f; do
  run 1 start $f tank
  one_line
  said "nbdkit: error:"
done
mv "$tmp/away" "${members[1]}"
mv "$tmp/away-2" "${members[2]}"
echo "chonk=1" >>"$GPURAID_CONFIG_DIR/tank.conf"
run 1 start tank
one_line
said "tank.conf:2: unknown key: chonk"
run 1 start nosuch
one_line
said "nosuch.conf: No such file"
said "gpuraid.conf(5) describes this file"
[ -z "$(ls "$GPURAID_RUNDIR")" ] || fail "left: $(ls "$GPURAID_RUNDIR")"
sed -i '$d' "$GPURAID_CONFIG_DIR/tank.conf"

# A server that ends after its start, which nbdkit does not report.
mkdir "$tmp/bin"
printf '#!/bin/sh\nexit 0\n' >"$tmp/bin/nbdkit"
chmod +x "$tmp/bin/nbdkit"
PATH=$tmp/bin:$PATH run 1 start tank
one_line
said "gpuraid start -f tank shows why"
rm "$tmp/bin/nbdkit"
PATH=$tmp/bin
for f in "" -f; do
  rc=0
  "$gpuraid" start $f tank 2>"$shm/err" || rc=$?
  [ $rc = 1 ] || exit 1
done
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
grep -q "nbdkit: No such file or directory (install it" "$shm/err" ||
  fail "$(cat "$shm/err")"

# ---- other files and servers are left alone

: >"$control"
run 1 start tank
one_line
said "$control: something that is no socket is there"
rm "$control"
nbdkit -U "$sock" -P "$tmp/other.pid" null
run 1 start tank
one_line
said "another server uses that socket: stop it first"
kill "$(cat "$tmp/other.pid")"

# ---- names

run 2 start
run 2 start a b
run 2 start -x tank
run 2 start ./tank
said "must be a NAME"
run 1 stop ./tank               # a control socket
said "connect: ./tank: No such file"
