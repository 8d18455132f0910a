#!/bin/bash
# test-log-first.sh: what a command answers is in the log before, although
# another thread writes that: its messages, and the reasons of a state.
#
# run-tests: no-sanitizer
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh

# Each message is late by 200 ms.
san_preload+=" $B/tests/slow-log.so"

has_line () { grep -q "$1" "$raid_log"; }

make_members 4 8M
create_array k=2 m=2 >/dev/null
start_raid

# By command: the reply comes after the line.
fail_member 1
has_line "${members[1]}: taken out by command" ||
  fail "gpuraid fail was answered before its line was in the log"

# By itself: where the state is seen the line is there.
rm "${members[2]}"
has_failed () { [ "$(status_field members.2.state)" = failed ]; }
wait_for has_failed || fail "the member that was deleted has not failed"
has_line "${members[2]}: .*taken out" ||
  fail "status was answered before the log had the line"
stop_raid
