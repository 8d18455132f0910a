#!/bin/bash
# test-other-name: a member of a running array is not taken under another name,
# whatever is forced: an export of its file, the file behind an export, or a
# loop device of it.
#
# run-tests: no-sanitizer
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh

# export_file NAME FILE: sets export
export_file ()
{
  nbdkit -U "$tmp/$1.sock" --pidfile "$tmp/$1.pid" file "$2" ||
    fail "nbdkit file"
  on_exit kill "$(cat "$tmp/$1.pid")"
  export="nbd+unix:///?socket=$tmp/$1.sock"
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
nbdkit -U "$tmp/other.sock" --pidfile "$tmp/other.pid" \
  "$plugin" "$shm/x" "$shm/y" || fail "the other array"
other_pid=$(cat "$tmp/other.pid")
on_exit kill "$other_pid"

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
  refused "the array uses it already" \
    "$gpuraid" replace --force "$control" 1 "$name"
  refused "the array uses it already" \
    "$gpuraid" spare --force "$control" "$name"
done
for name in "${other[@]}"; do
  refused "which runs on this host" \
    "$gpuraid" replace --force "$control" 1 "$name"
  refused "which runs on this host" \
    "$gpuraid" create --force k=1 m=1 size=4M "$name" "$shm/new"
  [ ! -e "$shm/new" ] || fail "$shm/new was made"
done
expect_state healthy
stop_raid

# It does not run any more.
kill "$other_pid"
for ((i = 0; i < 100; i++)); do
  kill -0 "$other_pid" 2>/dev/null || break
  sleep 0.1
done
"$gpuraid" create --force k=1 m=1 size=4M "${other[0]}" "$shm/new" >/dev/null ||
  fail "create after the stop"
