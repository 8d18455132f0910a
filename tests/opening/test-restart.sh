#!/bin/bash
# test-restart.sh: the same command line starts the server again, whatever an
# earlier one left behind; and one that does not start leaves no socket.
#
# run-tests: no-sanitizer
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need nbdkit nbdinfo

cd "$shm"
make_members 3 20M
create_array k=2 m=1
arg=(-U raid.sock -P pid "$plugin" control=ctl "${members[@]}")

stop_all ()
{
  if [ -s pid ]; then
    kill_ours "$(cat pid)"
  fi
}
on_exit stop_all

# start: as a daemon; it serves when nbdkit returns.
start ()
{
  rm -f pid
  timeout 60 nbdkit "${arg[@]}" 2>"$tmp/err" ||
    fail "$1: not started: $(cat "$tmp/err")"
  wait_for test -s pid || fail "$1: no pid file"
  check_up "$1"
}

check_up ()
{
  nbdinfo --size 'nbd+unix:///?socket=raid.sock' >/dev/null ||
    fail "$1: no answer on raid.sock"
  "$gpuraid" status ./ctl >/dev/null || fail "$1: no status"
}

# stop SIGNAL
stop ()
{
  local p
  p=$(cat pid)
  kill "$1" "$p"
  wait_for test ! -d "/proc/$p" || fail "kill $1: the server stays"
}

# refused WHY ARG...: in the foreground, and not started
refused ()
{
  local why=$1 rc=0
  shift
  timeout 60 nbdkit -f "$@" 2>"$tmp/err" || rc=$?
  [ $rc != 0 ] && [ $rc -lt 124 ] || fail "$*: status $rc"
  grep -q -- "$why" "$tmp/err" || fail "$*: $(cat "$tmp/err")"
}

no_sockets ()
{
  [ ! -e raid.sock ] || fail "$1: raid.sock is left"
  [ ! -e ctl ] || fail "$1: ctl is left"
}

start 'the first time'
stop -KILL
[ -S raid.sock ] && [ -S ctl ] || fail "a killed server leaves no socket"
start 'after kill -9'
stop -TERM
[ ! -e ctl ] || fail "the control socket is left at the end"
start 'after SIGTERM'

# A server that runs keeps its sockets, whatever another one is given.
refused 'in use' "${arg[@]}"
check_up 'after a second start'
truncate -s 20M x y
"$gpuraid" create k=1 m=1 x y >/dev/null
refused '-U .*raid.sock: another server uses that socket' \
  --unix=raid.sock "$plugin" x y
refused 'control=.*ctl: another server uses that socket' \
  -U other.sock "$plugin" control=ctl x y
[ ! -e other.sock ] || fail "other.sock is left"
check_up 'after another array'
stop -TERM

# No socket, and not removed.
rm -f raid.sock ctl
echo text >raid.sock
refused 'no socket is there' "${arg[@]}"
[ "$(cat raid.sock)" = text ] || fail "a file is lost"
[ ! -e ctl ] || fail "the control socket is left"
rm raid.sock

# nbdkit gives up after both were made: no pid file, no memory.
refused 'nowhere/pid' -U raid.sock -P nowhere/pid "$plugin" control=ctl \
  "${members[@]}"
no_sockets 'no pid file'
rc=0
(ulimit -v 2000000
 timeout 60 nbdkit -f -U raid.sock "$plugin" control=ctl cache=3G \
   "${members[@]}" 2>"$tmp/err") || rc=$?
[ $rc != 0 ] && [ $rc -lt 124 ] || fail "no memory: status $rc"
no_sockets 'no memory'
start 'at the end'
stop -TERM
