#!/usr/bin/env bash
# test-check: scripts/check in a small tree: what it prints, counts and leaves
#
# SPDX-License-Identifier: BSD-3-Clause
# run-tests: no-sanitizer

set -u
cd "$(dirname "$0")/../.." || exit 1

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
unset MAKEFLAGS B OUT SAN TEST_JOBS GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
export NVCC=$tmp/no-nvcc

die ()
{
  echo "$*"
  cat "$tmp/out"
  exit 1
}

# put NAME COMMAND
put ()
{
  mkdir -p "$(dirname "$tmp/tree/$1")"
  printf '#!/bin/sh\n%s\n' "$2" >"$tmp/tree/$1"
  chmod +x "$tmp/tree/$1"
}

# late NAME: a test that is late in each round.
late ()
{
  put "tests/$1" 'f=${B:-build}/'"$1"'.ran
[ -e $f ] || { touch $f; exit 75; }'
}

our_git ()
{
  git -C "$tmp/tree" -c user.name=x -c user.email=x@example.com "$@" \
    >/dev/null || die "git $*"
}

# check EXPECTED-STATUS COUNTS [ARGUMENT...]
check ()
{
  local want=$1 counts=$2 status=0

  shift 2
  rm -f "$tmp/tree"/build*/*.ran
  "$tmp/tree/scripts/check" "$@" >"$tmp/out" 2>&1 || status=$?
  [ $status -eq "$want" ] || die "exit status $status, not $want: $*"
  [ "$(tail -n 1 "$tmp/out")" = "$counts" ] || die "the last line is not: $counts"
}

has ()
{
  grep -qE -e "$1" "$tmp/out" || die "no line like: $1"
}

# result LINE...
result ()
{
  local line

  for line; do
    grep -qxE "$line" "$tmp/tree/build/check/result" ||
      die "not in the result: $line: $(cat "$tmp/tree/build/check/result")"
  done
}

mkdir -p "$tmp/tree"/{scripts/dev,tests}
cp scripts/check scripts/run-tests "$tmp/tree/scripts"
for s in deps dev/check-layers dev/check-style dev/check-package quickstart; do
  put scripts/$s 'exit 0'
done
put scripts/dev/check-cuda 'echo no GPU; exit 77'
put tests/unit 'exit 0'
put tests/test-script.sh 'exit 0'
put tests/test-script.py '# run-tests: check=plain,thread'
echo '/* no threads?' >"$tmp/tree/tests/test-unit.c"
echo '/build*' >"$tmp/tree/.gitignore"
cat >"$tmp/tree/Makefile" <<'END'
B := build$(if $(SAN),-$(SAN))
all objects circles: $(B)/tests/test-unit
$(B)/tests/test-unit: tests/unit
	mkdir -p $(@D)
	cp $< $@
build/tests/volatile-plugin.so:
	touch $@
END
our_git init -q
our_git add .
our_git commit -m all
commit=$(git -C "$tmp/tree" rev-parse HEAD)
export XDG_CACHE_HOME=$tmp/cache

# ---- all is well: few lines

check 0 '15 passed, 0 failed, 1 skipped'
has '^ok build \([0-9.]+ s; user [0-9.]+, system [0-9.]+\)$'
has '^tests: 5 ok, 0 failed, 1 skipped, 0 late \([0-9]+ s\)$'
[ "$(grep -c . "$tmp/out")" -le 40 ] || die "more than 40 lines"
result "commit: $commit" 'tree: clean' 'date: 2.*T.*Z' 'steps: all' 'passed: 15' \
  'failed: 0' 'late: 0' 'skipped: 1' 'seconds: [0-9]+'
for line in '^ok address,undefined: test-script.sh \(' '^ok thread: test-script.py \(' \
            '^ok address,undefined: test-unit \(' '^ok thread: test-unit \(' \
            '^skip cuda: check-cuda: no GPU$'; do
  grep -q -E -e "$line" "$tmp/tree/build/check/log" || die "not in the log: $line"
done

# Some steps are not a check of the commit.
check 0 '3 passed, 0 failed, 0 skipped' gcc
result 'steps: all'
grep -qx 'steps: gcc' "$tmp/tree/build/check/steps/result" || die "no result of gcc"

# ---- each test in each round that it can run in

check 0 '19 passed, 0 failed, 1 skipped' --all
result 'steps: all, all rounds'

# ---- what passed with the same files is left out, and what nothing changed

mkdir "$tmp/tree/model"
put tests/model/test-model.sh '# run-tests: fixed no-sanitizer inputs=model
[ ! -e model/bad ]'
put tests/test-other.sh '# run-tests: no-sanitizer inputs=model,*.x'
our_git add .
our_git commit -m more
check 0 '17 passed, 0 failed, 1 skipped'
check 0 '16 passed, 0 failed, 1 skipped'
has '^1 tests were left out'
result 'left out: 1'
# Noted in the tree it is left out on another machine too, but not with --all.
check 0 '1 passed, 0 failed, 0 skipped' --note
grep -qE '^[0-9a-f]{64} tests/model/test-model.sh$' "$tmp/tree/tests/passed" ||
  die "not noted: $(cat "$tmp/tree/tests/passed")"
XDG_CACHE_HOME=$tmp/third check 0 '16 passed, 0 failed, 1 skipped'
result 'left out: 1'
XDG_CACHE_HOME=$tmp/third check 0 '21 passed, 0 failed, 1 skipped' --all
touch "$tmp/tree/model/bad"
check 1 '0 passed, 1 failed, 0 skipped' --note
! grep test-model "$tmp/tree/tests/passed" || die "noted, and it failed"
rm "$tmp/tree/tests/passed"
check 1 '16 passed, 1 failed, 1 skipped'
check 1 '16 passed, 1 failed, 1 skipped'
rm "$tmp/tree/model/bad"
check 0 '21 passed, 0 failed, 1 skipped' --all
# Scripts without inputs always run.
check 0 '13 passed, 0 failed, 1 skipped' --since HEAD
touch "$tmp/tree/a.x" "$tmp/tree/a.xy"
check 0 '14 passed, 0 failed, 1 skipped' --since HEAD
rm "$tmp/tree"/a.x*
mkdir "$tmp/tree/array"
touch "$tmp/tree/array/a.c"
check 0 '15 passed, 0 failed, 1 skipped' --since HEAD
check 1 'check: --since nowhere: no such commit' --since nowhere
mkdir "$tmp/tree/bench"
mv "$tmp/tree/array/a.c" "$tmp/tree/bench"
check 0 '15 passed, 0 failed, 1 skipped' --since HEAD
rm -r "$tmp/tree/array" "$tmp/tree/bench" "$tmp/tree/tests/model" \
  "$tmp/tree/tests/test-other.sh"
our_git commit -a -m less
commit=$(git -C "$tmp/tree" rev-parse HEAD)

# ---- failures can be seen, also at the end

put tests/test-bad.sh 'echo a clue; exit 1'
check 1 '19 passed, 3 failed, 1 skipped' --all
has '^FAIL test-bad.sh \(exit status 1'
has '^  \| a clue$'
has '^FAIL thread: test-bad.sh$'
result "commit: $commit" 'tree: dirty' 'failed: 3'
rm "$tmp/tree/tests/test-bad.sh"

# ---- a test does not wait for the end of another round

put tests/test-first.sh '# run-tests: no-sanitizer
for i in $(seq 600); do [ ! -e build/other.ran ] || exit 0; sleep .1; done; exit 1'
put tests/test-other.sh '# run-tests: address-only
touch build/other.ran'
check 0 '17 passed, 0 failed, 1 skipped'
rm "$tmp/tree/tests/"test-{first,other}.sh

# ---- three late ones in all rounds, and more

late test-late.sh
check 0 '22 passed, 0 failed, 1 skipped' --all
has '^late thread: test-late.sh \([0-9.]+ s, alone [0-9.]+ s\)$'
result 'late: 3' 'failed: 0'
late test-late2.sh
check 1 '19 passed, 6 failed, 1 skipped' --all
has '^FAIL thread: test-late.sh \(late, and so were 5 others'
result 'late: 6' 'failed: 6'
rm "$tmp/tree/tests/test-late"*

# ---- each test many times, where late ones are only counted

late test-late.sh
late test-late2.sh
check 0 '25 passed, 0 failed, 1 skipped' --all --soak --repeat 3 --load 1
has '^tests: 15 ok, 0 failed, 1 skipped, 6 late'
has '^late thread: test-late.sh \([0-9.]+ s\)$'
grep -qx 'load: 1' "$tmp/tree/build/check/soak/result" || die "no result of it"
grep -q '^ok test-script.sh: 0 of 3 failed' "$tmp/tree/build/check/soak/log" ||
  die "no line of it"
rm "$tmp/tree/tests/test-late"*

# ---- no test at all, and none of a round

mkdir "$tmp/away"
mv "$tmp/tree/tests/"test-* "$tmp/away"
check 1 '8 passed, 1 failed, 1 skipped'
has '^FAIL no tests$'
mv "$tmp/away/"* "$tmp/tree/tests"
rm "$tmp/tree/build/tests/volatile-plugin.so"
sed -i 's/touch [$]@/false/' "$tmp/tree/Makefile"
check 1 '4 passed, 1 failed, 0 skipped' gcc address
has '^FAIL build/tests/volatile-plugin.so$'
sed -i 's/false$/touch $@/' "$tmp/tree/Makefile"

# ---- a build that fails, a tree without git

echo 'all: no-such-file' >>"$tmp/tree/Makefile"
rm -rf "$tmp/tree/.git"
check 1 '5 passed, 4 failed, 0 skipped'
has '^FAIL build SAN=thread, the end'
has 'no-such-file'
result 'commit: unknown' 'tree: unknown'
