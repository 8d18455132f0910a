#!/usr/bin/env bash
# test-run-tests: a failing test is reported, counted, and fails the run
#
# SPDX-License-Identifier: BSD-3-Clause
# run-tests: no-sanitizer

set -u
cd "$(dirname "$0")/../.." || exit 1

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export B=$tmp/build
unset OUT

make_test ()
{
  printf '#!/bin/sh\n%s\n' "$2" >"$tmp/test-$1"
  chmod +x "$tmp/test-$1"
}

die ()
{
  echo "$*"
  cat "$tmp/out"
  exit 1
}

# run EXPECTED-STATUS TEST...: with $flags
flags=
run ()
{
  local want=$1 status=0 t
  local tests=()

  shift
  for t; do
    tests+=("$tmp/test-$t")
  done
  scripts/run-tests $flags "${tests[@]}" >"$tmp/out" 2>&1 || status=$?
  [ $status -eq "$want" ] || die "exit status $status, not $want: $*"
}

has ()
{
  grep -qE -e "$1" "$tmp/out" || die "no line like: $1"
}

# ends_with COUNTS
ends_with ()
{
  [ "$(tail -n 1 "$tmp/out")" = "$1" ] || die "the last line is not: $1"
}

# runs N TEST: so often it ran.
runs ()
{
  [ "$(wc -l <"$tmp/ran-$2")" -eq "$1" ] ||
    die "$2 ran $(wc -l <"$tmp/ran-$2") times, not $1"
  rm "$tmp/ran-$2"
}

# make_late NAME COMMAND: late the first time, then the command.
make_late ()
{
  make_test "$1" 'echo >>"'"$tmp/ran-$1"'"
[ "$(wc -l <"'"$tmp/ran-$1"'")" -gt 1 ] || { echo waited; exit 75; }
'"$2"
}

make_test good 'exit 0'
make_test bad 'echo a clue; exit 3'
make_test crash 'kill -SEGV $$'
make_test slow '# run-tests: timeout=1
sleep 60'
make_test skip 'echo no kernel module nbd; exit 77'
make_test lazy 'echo not in the mood; exit 77'
make_test alone '# run-tests: alone
exit 0'
make_test tmp 'touch "$TMPDIR/here"; echo "$TMPDIR" >"'"$tmp"'/where"'
make_test where 'cat /proc/self/personality; exit 3'
make_test leave 'sleep 61.25 & exit 0'

run 0 good alone skip
has '^ok test-good \([0-9.]+ s; user [0-9.]+, system [0-9.]+\)$'
has '^skip test-skip: no kernel module nbd$'
ends_with '2 passed, 0 failed, 1 skipped'

run 1 good bad
has '^FAIL test-bad \(exit status 3'
has 'a clue'
ends_with '1 passed, 1 failed, 0 skipped'

run 1 crash
has '^FAIL test-crash \(killed by SIGSEGV'
run 1 slow
has '^FAIL test-slow \(not finished after 1 s'
run 1 lazy
has '^FAIL test-lazy \(skipped for no good reason: not in the mood'
run 1 absent
has '^FAIL test-absent \(cannot be run'
run 1
has 'no tests'

# What it waited for is in its processor time.
make_test busy '/usr/bin/python3 -c "import time
while time.process_time() < 1: pass"
exit 0'
run 0 busy
sed -n 's/^ok test-busy .* user \([0-9.]*\), system \([0-9.]*\))$/\1 \2/p' \
  "$tmp/out" | awk '{ exit !($1 + $2 >= 0.9 && $1 + $2 <= 1.9) }' ||
  die "not the second of processor time that its child used"

# ---- late

make_late late 'exit 0'
run 0 good late
runs 2 late
has '^late test-late \([0-9.]+ s\): again at the end$'
has '^ok test-late \(late after [0-9.]+ s, alone [0-9.]+ s; user .*\)$'
has '^late test-late \([0-9.]+ s, alone [0-9.]+ s\)$'
grep -qx waited "$B/test-logs/test-late.late.log" || die "no log of the first time"
ends_with '2 passed, 0 failed, 0 skipped'

# By itself: the others have ended by then.
make_late last "[ -e $tmp/slow-ended ] || exit 1"
make_test two-seconds "sleep 2; touch $tmp/slow-ended"
run 0 last two-seconds
runs 2 last

make_late late-twice 'exit 75'
make_late late-bad 'echo a clue; exit 3'
make_late late-skip 'echo no kernel module nbd; exit 77'
run 1 late-twice late-bad late-skip
has '^FAIL test-late-twice \(late before, now: exit status 75, late after'
has '^FAIL test-late-bad \(late before, now: exit status 3, late after'
has 'a clue'
has '^FAIL test-late-skip \(late before, now: no kernel module nbd, late'
ends_with '0 passed, 3 failed, 0 skipped'
for t in twice bad skip; do
  runs 2 late-$t
done

make_late a 'exit 0'
make_late b 'exit 0'
make_late c 'exit 0'
make_late d 'exit 0'
run 0 a b c
rm "$tmp/ran-"[abc]
run 1 a b c d good
has '^FAIL test-b \(late, and so were 3 others'
ends_with '1 passed, 4 failed, 0 skipped'
for t in a b c d; do
  runs 1 $t
done

# What is never run a second time.
for words in 'ERROR: AddressSanitizer: heap-use-after-free' \
             'WARNING: ThreadSanitizer: data race' \
             'x.c:1:2: runtime error: signed integer overflow'; do
  make_test found "echo >>$tmp/ran-found; echo '==1==$words'; exit 75"
  run 1 found
  has '^FAIL test-found \(exit status 75, and a report of a sanitizer'
  runs 1 found
done
for how in 'exit 1' 'exit 74' 'kill -SEGV $$' 'sleep 60'; do
  make_test wrong "# run-tests: timeout=5
echo >>$tmp/ran-wrong; $how"
  run 1 wrong
  runs 1 wrong
done
# A program of cmocka has that status when 75 of its cases fail.
printf 'int main (void) { return 75; }\n' >"$tmp/unit.c"
cc -o "$tmp/test-unit" "$tmp/unit.c"
run 1 unit
has '^FAIL test-unit \(exit status 75'

# For more than what ran here.
flags="--tally $tmp/tally"
run 1 late bad skip
runs 2 late
sort "$tmp/tally" >"$tmp/out"
has '^FAIL [0-9.]+ [0-9.]+ [0-9.]+ - test-bad$'
has '^ok [0-9.]+ [0-9.]+ [0-9.]+ [0-9.]+ test-late$'
has '^skip [0-9.]+ [0-9.]+ [0-9.]+ - test-skip$'
flags=

# ---- tests of several builds

make_test build 'echo "with $B, $OUT, $SAN."; exit 3'
for words in '- - -' "$tmp/other thread x:"; do
  echo "$tmp/test-build $words"
done >"$tmp/list"
flags="--list $tmp/list"
SAN= run 1 good
has '^  \| with '"$B"', , \.$'
has '^  \| with ('"$tmp"'/other), \1, thread\.$'
has '^FAIL x: test-build '
ends_with '1 passed, 2 failed, 0 skipped'
grep -q with "$tmp/other/test-logs/x:.test-build.log" || die "no log of it there"
flags=

# ---- the longest first

export TEST_JOBS=1
make_test quick 'exit 0'
make_test slower 'exit 0'
make_test marked '# run-tests: long
exit 0'
# first TEST: of all it began first.
first ()
{
  [ "$(sed -n 's/^ok test-\([^ ]*\) .*/\1/p' "$tmp/out" | head -n 1)" = "$1" ] ||
    die "$1 was not the first"
}
rm "$B/test-times"
run 0 quick slower marked
first marked
[ "$(sed 's/^[0-9.]* //' "$B/test-times" | xargs)" = \
  'test-marked test-quick test-slower' ] || die "$(cat "$B/test-times")"
echo '100.0 test-slower' >"$B/test-times"
run 0 quick marked slower
first slower
unset TEST_JOBS

# ---- more at a time while the processors have nothing to do

# at_once IDLE: how many of these tests ran at once, if this of 10 ticks is idle
at_once ()
{
  local i pid

  rm -f "$tmp"/here.* "$tmp/most"
  echo 0 >"$tmp/most"
  (i=0; while :; do
     i=$((i + 1))
     echo "cpu 0 0 $((i * (10 - $1))) $((i * $1)) 0 0 0 0 0 0" >"$tmp/stat.new"
     mv "$tmp/stat.new" "$tmp/stat"
     sleep 0.05
   done) &
  pid=$!
  until [ -s "$tmp/stat" ]; do sleep 0.05; done
  TEST_STAT=$tmp/stat taskset -c "$(taskset -pc $$ | sed 's/.*[ :]//; s/[,-].*//')" \
    scripts/run-tests "${many[@]}" >"$tmp/out" 2>&1 || die "$(tail -n 3 "$tmp/out")"
  kill $pid
  wait $pid 2>/dev/null
  sort -n "$tmp/most" | tail -n 1
}

many=()
for i in {1..9}; do
  make_test many$i "touch $tmp/here.$i; ls $tmp/here.* | wc -l >>$tmp/most
sleep 1; rm $tmp/here.$i"
  many+=("$tmp/test-many$i")
done
nr=$(at_once 0)
[ "$nr" -le 2 ] || die "$nr ran at once, not 2 for the processor"
nr=$(at_once 9)
[ "$nr" -ge 3 ] && [ "$nr" -le 4 ] || die "$nr ran at once, not up to 4"

# ---- many times, beside a load

flags='--repeat 5'
make_test third 'echo >>'"$tmp/ran-third"'; echo a clue
[ "$(wc -l <'"$tmp/ran-third"')" -ne 3 ]'
make_late once-late 'exit 0'
make_test ever-late 'exit 75'
run 1 good third once-late ever-late skip
has '^ok test-good: 0 of 5 failed \(0 %\), 0 late; slowest [0-9.]+ s$'
has '^FAIL test-third: 1 of 5 failed \(20 %\), 0 late; .*/test-third.3.log:$'
has '^  \| a clue$'
has '^ok test-once-late: 0 of 5 failed \(0 %\), 1 late'
has '^late test-once-late: 1 of 5, slowest [0-9.]+ s$'
has '^FAIL test-ever-late: 0 of 5 failed \(0 %\), 5 late'
has '^skip test-skip: no kernel module nbd$'
ends_with '2 passed, 2 failed, 1 skipped'
runs 5 once-late
( cd "$B/test-logs" && echo test-third.[0-9]*.log test-once-late.[0-9]*.log \
    test-good.[0-9]*.log ) >"$tmp/out"
has '^test-third.3.log test-once-late.1.log test-good.\[0-9\]\*.log$'
run 0 third
runs 10 third
[ ! -e "$B/test-logs/test-third.3.log" ] || die "a log of an earlier run is there"

# The loops are children of run-tests, and end with it, also if it is killed.
flags=
make_test load "echo \$\$ >$tmp/loaded; exec sleep 60"
scripts/run-tests --load 3 "$tmp/test-load" >"$tmp/out" 2>&1 &
pid=$!
until [ -s "$tmp/loaded" ]; do
  sleep 0.05
done
loops=$(pgrep -P $pid -f -- '--load 3')
[ "$(wc -w <<<"$loops")" -eq 4 ] || die "these are not three loops and a writer: $loops"
kill -9 $pid "$(cat "$tmp/loaded")"
wait $pid 2>/dev/null
for i in {1..600}; do
  grep -qsz -- --load $(printf '/proc/%s/cmdline ' $loops) || break
  sleep 0.1
done
if [ "$i" -eq 600 ]; then
  kill -9 $loops
  die "these were left running: $loops"
fi

# ---- surroundings

make_test home '[ -d "$HOME" ] || exit 1
echo "$TMPDIR $HOME $XDG_CACHE_HOME $LC_ALL $TZ cache $CCACHE_DIR."; exit 3'
LC_ALL=C TZ=Asia/Tokyo CCACHE_DIR=/kept run 1 home
has '^  \| ([^ ]+) \1/[^ ]+ \1/[^ ]+ C.UTF-8 UTC cache /kept\.$'
( unset CCACHE_DIR XDG_CACHE_HOME
  HOME=$tmp run 1 home
  has " cache $tmp/.cache/ccache\.$"
  mkdir "$tmp/.ccache"
  HOME=$tmp run 1 home
  has " cache $tmp/.ccache\.$" ) || exit 1

# ccache stays before the system's compilers, and nothing else does.
make_test path 'echo "PATH $PATH"; exit 3'
PATH=/x/ccache:/y:$PATH run 1 path
has '^  \| PATH /x/ccache:/usr/sbin:/usr/bin:'
PATH=/y:/x/ccache:$PATH run 1 path
has '^  \| PATH /usr/sbin:/usr/bin:'

run 0 tmp
[ ! -e "$(cat "$tmp/where")" ] || die "TMPDIR is still there"

# What the sanitizers need where addresses are too random: 0x40000 is
# ADDR_NO_RANDOMIZE.
if setarch -R true 2>/dev/null; then
  SAN=thread run 1 where
  has '^  \| 0004'
fi
SAN= run 1 where
has "^  \| $(cat /proc/self/personality)"

run 0 leave
# It was told to end, which takes it a moment.
for i in {1..50}; do
  grep -qsxz 61.25 /proc/[0-9]*/cmdline || break
  sleep 0.1
done
if [ "$i" -eq 50 ]; then
  die "a process was left running"
fi
