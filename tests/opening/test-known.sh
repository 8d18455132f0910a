#!/bin/bash
# test-known: a folder whose file system is not mounted does not become a new
# array: files that were members are noted on this host.
#
# run-tests: no-sanitizer
#
# SPDX-License-Identifier: BSD-3-Clause

cd "$(dirname "$0")/../.."
source tests/functions.sh
need nbdkit nbdsh

notes=$GPURAID_STATE_DIR/known
export GPURAID_RUNDIR=$shm/run GPURAID_CONFIG_DIR=$shm/conf
mkdir "$shm/run" "$GPURAID_CONFIG_DIR"

# serve KEY...: one that starts answers a client
serve ()
{
  rm -f "$sock"
  timeout 60 nbdkit -U "$sock" "$plugin" "$@" \
    --run 'nbdsh -u "$uri" -c "print(bytes(h.pread(4, 0)))"' \
    >"$tmp/out" 2>"$tmp/err"
}

served ()
{
  serve "$@" || fail "$*: $(cat "$tmp/err")"
}

# refused KEY...: in one line that names the note; nothing is made
refused ()
{
  ! serve "$@" || fail "$*: it was served"
  [ "$(wc -l <"$tmp/err")" = 1 ] || fail "$*: $(cat "$tmp/err")"
  grep -q "was a member of the array.*mount its file system.*: rm $notes/" \
    "$tmp/err" || fail "$*: $(cat "$tmp/err")"
}

# write TEXT KEY...
write ()
{
  rm -f "$sock"
  timeout 60 nbdkit -U "$sock" "$plugin" "${@:2}" \
    --run "nbdsh -u \"\$uri\" -c 'h.pwrite(b\"$1\", 0); h.flush()'" ||
    fail "no write"
}

nr_notes ()
{
  find "$notes" -type f | wc -l
}

# A file system that is not mounted is an empty folder.
new=(k=2 m=1 size=8M)
big=$shm/big$'\n'" \\n"
mkdir -p "$big/array"
mount ()
{
  rmdir "$big/array" && mv "$shm/away" "$big/array"
}
umount ()
{
  mv "$big/array" "$shm/away" && mkdir "$big/array"
}

write data dir="$big/array" "${new[@]}"
[ "$(nr_notes)" = 1 ] || fail "notes: $(nr_notes)"
umount
refused dir="$big/array" "${new[@]}"
ln -s "$big" "$shm/link"
refused dir="$shm/link/array" "${new[@]}"       # another name of the folder
refused create=missing "${new[@]}" "$big/array/member-01.img" "$shm/a" "$shm/b"
[ -z "$(ls "$big/array")" ] || fail "files were made: $(ls "$big/array")"

# Files that were emptied, or made by another program, are none of it either.
for i in 0 1 2; do
  truncate -s 8M "$big/array/member-0$i.img"
done
refused dir="$big/array"  "${new[@]}"
rm "$big/array"/*

# Mounted, it is what it was.
mount
served dir="$big/array" "${new[@]}"
grep -q data "$tmp/out" || fail "another array: $(cat "$tmp/out")"

# It moved: what was noted of the old place is forgotten, and the new is known.
mkdir "$shm/new"
mv "$big/array"/* "$shm/new/"
served dir="$shm/new"
served dir="$big/array" "${new[@]}"
[ "$(nr_notes)" = 2 ] || fail "notes: $(nr_notes)"
mv "$shm/new" "$shm/gone"
mkdir "$shm/new"
refused dir="$shm/new" "${new[@]}"

# The line that it says, and the key.
served dir="$shm/new" create=again "${new[@]}"
rm "$shm/new"/*
served dir="$shm/new" create=again "${new[@]}"
rm "$shm/new"/*
refused dir="$shm/new" "${new[@]}"
eval "$(grep -o "rm $notes/[0-9a-f-]*" "$tmp/err")"
served dir="$shm/new" "${new[@]}"

# One that was made by the command was never served.
mkdir "$shm/made"
(cd "$shm/made" && "$gpuraid" create "${new[@]}" x y z >/dev/null) ||
  fail "create"
rm "$shm/made"/*
refused create=missing "${new[@]}" "$shm/made/x" "$shm/made/y" "$shm/made/z"
# It was asked for by name.
(cd "$shm/made" && "$gpuraid" create "${new[@]}" x y z >/dev/null) ||
  fail "create again"
for note in "$notes"/*; do
  ! grep -qx "$shm/made/x" "$note" || found+=("$note")
done
[ ${#found[@]} = 1 ] || fail "of both arrays: ${found[*]}"

# A member that was replaced while it ran.
members=("$shm/made/x" "$shm/made/y" "$shm/made/z")
mkdir "$shm/other"
start_raid
for i in 0 1 2; do
  replace_member $i "$shm/other/$i"
  wait_healthy
done
"$gpuraid" spare "$control" "$shm/other/spare" || fail "spare"
stop_raid
rm "$shm/made"/* "$shm/other"/*
refused create=missing "${new[@]}" "$shm/other/0" "$shm/other/1" "$shm/other/2"
refused create=missing k=1 m=1 size=1M "$shm/u" "$shm/other/spare"
served create=missing "${new[@]}" "$shm/made/x" "$shm/made/y" "$shm/made/z"

# By its name, as a service starts it.
printf '%s\n' "dir=$shm/named" "${new[@]}" >"$GPURAID_CONFIG_DIR/named.conf"
! "$gpuraid" start named 2>"$tmp/err" || fail "named: it was started"
grep -q "mount its file system, or make this folder first" "$tmp/err" ||
  fail "named: $(cat "$tmp/err")"
mkdir "$shm/named"
"$gpuraid" start named >/dev/null || fail "named: start"
"$gpuraid" stop named || fail "named: stop"
rm "$shm/named"/*
! "$gpuraid" start named 2>"$tmp/err" || fail "named: it was started"
grep -q "was a member of" "$tmp/err" || fail "named: $(cat "$tmp/err")"

# Where nothing can be noted, or a note is damaged, all else works.
mkdir "$shm/p" "$shm/q"
GPURAID_STATE_DIR=/proc/none served dir="$shm/p" "${new[@]}"
rm "$shm/p"/*
GPURAID_STATE_DIR=/proc/none served dir="$shm/p" "${new[@]}"
echo damaged >"$notes/00112233-4455-6677-8899-aabbccddeeff"
mkdir "$notes/00112233-4455-6677-8899-aabbccddee00"
served dir="$shm/q" "${new[@]}"
