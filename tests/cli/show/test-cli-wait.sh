#!/bin/bash
# test-cli-wait.sh: gpuraid wait sleeps in the server until the status has a
# value; what it says if that does not come, and what is refused.
#
# run-tests: no-sanitizer
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need nbdkit nbdcopy

# waits STATUS ARG...: what it says is in $out
out=$tmp/out
waits ()
{
  local want=$1 rc=0
  shift
  timeout 300 "$gpuraid" wait "$control" "$@" >"$out" 2>&1 || rc=$?
  [ $rc = "$want" ] || fail "wait $*: status $rc, not $want: $(cat "$out")"
}

# says LINE: nothing else
says ()
{
  [ "$(cat "$out")" = "$1" ] || fail "not '$1': $(cat "$out")"
}

# in_background ARG...: in $waiter.  It may be anywhere on its way when this
# returns.
in_background ()
{
  waits "$@" &
  waiter=$!
}

make_members 4 16M
create_array k=2 m=2 >/dev/null
start_raid
noise $((8 << 20)) >"$tmp/data"
nbdcopy --flush "$tmp/data" "$uri"

# ---- it is so, it becomes so, it does not

waits 0 state=healthy members.0.state=active 'members.0.errors<=0' rebuild=null
says ""
in_background 0 members.1.state=failed 'epoch>=2' state!=healthy
fail_member 1
wait $waiter || fail "it did not notice that the member is out"
waits 3 --timeout 0.3 members.1.state=active
says "gpuraid: after 0.3 s members.1.state is failed"
waits 3 --timeout 0 'reasons=[]' members.5.state=spare k=2
says "gpuraid: after 0 s reasons is [\"members lost\"], members.5.state is \
null, k is 2"

# A rebuild: while it is running, and to its end.
"$gpuraid" rate "$control" 64K >/dev/null
replace_member 1 "$shm/new.img"
waits 0 rebuild!=null members.1.state=rebuilding
waits 3 --timeout 0.1
says "gpuraid: not at rest after 0.1 s"
waits 1 rebuild.dome=7
in_background 0 members.1.state=active rebuild=null
"$gpuraid" rate "$control" max >/dev/null
wait $waiter || fail "it did not notice the end of the rebuild"
waits 0 --timeout 300

# ---- what is refused

waits 1 members.1.stat=failed
says "gpuraid: members.1.stat: the status has no such field (gpuraid status \
--json shows them)"
waits 1 'k>4'
says "gpuraid: k>4: not a condition, such as members.1.state=failed"
waits 2 state
waits 1 'k>=many'
says "gpuraid: k is a number: not many"
waits 2 --timeout soon state=healthy
says "gpuraid: --timeout soon: not a number of seconds"
waits 2 --until state=healthy

# ---- the server ends: one line, whether the request was there before or not

has_ended ()
{
  wait $waiter || fail "$1"
  [ "$(wc -l <"$out")" = 1 ] && grep -q "^gpuraid: .*server" "$out" ||
    fail "$1: $(cat "$out")"
}

in_background 1 state=failed
stop_raid
has_ended "the server has stopped"

start_raid
in_background 1 state=failed
kill_raid
has_ended "the server was killed"
