#!/bin/bash
# test-other-name: a member of a running array is not taken under another name,
# whatever is forced: an export of its file, the file behind an export, or a
# loop device of it.
#
# run-tests: no-sanitizer
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
source tests/nbd-servers.sh

# export_file NAME FILE: sets export
export_file ()
{
  serve_on "$1" file "$2"
  export=$(uri_of "$1")
}

# refused WORDS COMMAND...
refused ()
{
  local rc=0 words=$1
  shift
  timeout 60 "$@" >"$tmp/out" 2>&1 || rc=$?
  [ $rc = 1 ] || fail "$*: status $rc: $(cat "$tmp/out")"
  grep -q "$words" "$tmp/out" || fail "$*: $(cat "$tmp/out")"
}

# One array has an export as its second member; the other is all files.
make_members 3 32M
files=("${members[@]}")
export_file behind "${files[1]}"
members=("${files[0]}" "$export" "${files[2]}")
create_array k=2 m=1 size=16M >/dev/null
start_raid
truncate -s 32M "$shm/x" "$shm/y"
"$gpuraid" create k=1 m=1 size=16M "$shm/x" "$shm/y" >/dev/null
serve_on other "$plugin" "$shm/x" "$shm/y"

export_file again "${files[0]}"
own=("$export" "${files[1]}")
export_file x "$shm/x"
other=("$export")
if (need_loop); then
  for file in "${files[2]}" "$shm/y"; do
    loop=$(losetup -f --show "$file") || fail "losetup"
    on_exit losetup -d "$loop"
    case $file in
      "$shm/y") other+=("$loop") ;;
      *) own+=("$loop") ;;
    esac
  done
fi

for name in "${own[@]}"; do
  refused "the array uses it already\|in use: name another" \
    "$gpuraid" replace --force "$control" 1 "$name"
  refused "the array uses it already\|in use: name another" \
    "$gpuraid" spare --force "$control" "$name"
done
for name in "${other[@]}"; do
  refused "which runs on this host\|in use: name another" \
    "$gpuraid" replace --force "$control" 1 "$name"
  refused "which runs on this host\|in use by another process" \
    "$gpuraid" create --force k=1 m=1 size=4M "$name" "$shm/new"
  [ ! -e "$shm/new" ] || fail "$shm/new was made"
done
expect_state healthy
stop_raid

# It does not run any more.
signal_server other TERM
timeout 60 tail -s 0.02 --pid="$(cat "$shm/other.pid")" -f /dev/null ||
  fail "the other array does not stop"
"$gpuraid" create --force k=1 m=1 size=4M "${other[0]}" "$shm/new" >/dev/null ||
  fail "create after the stop"
