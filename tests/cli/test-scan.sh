#!/bin/bash
# test-scan.sh: gpuraid scan finds arrays in files and folders, says what state
# they are in, and how to open them.
#
# run-tests: no-thread
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need nbdkit

export GPURAID_RUNDIR=$shm/run GPURAID_CONFIG_DIR=$tmp/conf
mkdir "$GPURAID_RUNDIR" "$GPURAID_CONFIG_DIR" "$shm/one" "$shm/two" \
  "$shm/none"

# run STATUS ARG...
run ()
{
  local want=$1 rc=0
  shift
  timeout 60 "$gpuraid" scan "$@" >"$tmp/out" 2>"$tmp/err" || rc=$?
  [ $rc = "$want" ] || fail "scan $*: status $rc: $(cat "$tmp/out" "$tmp/err")"
}

has () { grep -qxE -- "$1" "$tmp/out" || fail "no $1: $(cat "$tmp/out")"; }
# is FIELD VALUE: of the JSON
is ()
{
  local v
  v=$(field "$1" <"$tmp/out")
  [ "$v" = "$2" ] || fail "$1 is $v, not $2: $(cat "$tmp/out")"
}

make_members 3 8M "$shm/two"
two=("${members[@]}")
create_array k=2 m=1 >/dev/null
make_members 4 8M "$shm/one"
# Names that a shell and a glob would read in another way.
mv "${members[1]}" "$shm/one/it's [1].img"
members[1]="$shm/one/it's [1].img"
create_array k=2 m=2 label=tank size=4M >/dev/null
uuid=$("$gpuraid" examine --json "${members[0]}" | field 0.uuid)
noise 100000 >"$shm/none/noise"
mkdir "$shm/none/folder"
: >"$shm/none/empty"
mkfifo "$shm/none/pipe"

# ---- none

run 1 "$shm/none"
grep -qx "gpuraid: no array was found; a folder in a folder is not looked at: name it" \
  "$tmp/err" || fail "$(cat "$tmp/err")"
[ ! -s "$tmp/out" ] || fail "found: $(cat "$tmp/out")"
run 1 --json "$shm/none"
[ "$(tr -d ' \n' <"$tmp/out")" = "[]" ] || fail "found: $(cat "$tmp/out")"
run 1 "$shm/none/folder"
grep -qx "gpuraid: no array was found" "$tmp/err" || fail "$(cat "$tmp/err")"
run 1 "$shm/nosuch"
grep -q "nosuch: No such file" "$tmp/err" || fail "$(cat "$tmp/err")"
run 1 "$shm/none/empty"
grep -q "empty: is too small for a member: leave it out" "$tmp/err" ||
  fail "$(cat "$tmp/err")"
run 2 --nosuch

# ---- a copy of a member in the same folder: a server refuses both

cp "${two[1]}" "$shm/two/copy"
run 0 "$shm/two"
grep -q "can't be opened: .*/copy .*the same member, or one is a copy" \
  "$tmp/out" || fail "the copy is not named: $(cat "$tmp/out")"
rm "$shm/two/copy"
ln "${two[1]}" "$shm/two/other-name"
run 0 "$shm/two"
! grep -q "can't be opened" "$tmp/out" || fail "$(cat "$tmp/out")"
rm "$shm/two/other-name"

# ---- two

sum=$(cat "${members[@]}" "${two[@]}" | md5sum)
run 0 "$shm/one" "$shm/none" "${two[@]}" "${two[0]}"
[ ! -s "$tmp/err" ] || fail "said: $(cat "$tmp/err")"
has "tank  $uuid  2\+2  4 MiB  4 of 4 members  healthy"
has "[-0-9a-f]{36}  2\+1  .* MiB  3 of 3 members  healthy"
has "    slot 2   active      ${members[2]}"
[ "$(grep -c 'open it:' "$tmp/out")" = 2 ] || fail "$(cat "$tmp/out")"
run 0 --json "$shm/one" "$shm/two"
is 0.label tank
is 0.uuid "$uuid"
is 0.k 2
is 0.m 2
is 0.size $((4 << 20))
is 0.slots 4
is 0.found 4
is 0.state healthy
is 0.why null
is 0.running null
is 1.label null
is 1.k 2
# One that can't be read does not hide the others.
run 1 "$shm/nosuch" "$shm/one"
has "tank .*  4 of 4 members  healthy"
[ "$sum" = "$(cat "${members[@]}" "${two[@]}" | md5sum)" ] ||
  fail "a member was written"

# Also in a folder, where what can't be a member is passed over.
echo 5 >"${two[0]}.error"
LD_PRELOAD="$san_preload $B/tests/slow-reads.so" ASAN_OPTIONS=$san_asan run 0 "$shm/two"
has ".*  2 of 3 members  degraded"
grep -q ": ${two[0]}: Input/output error" "$tmp/err" || fail "$(cat "$tmp/err")"
[ "$(wc -l <"$tmp/err")" = 1 ] || fail "more lines: $(cat "$tmp/err")"
rm "${two[0]}.error"

# ---- a member that this user can't read is no secret

if [ "$(id -u)" = 0 ]; then
  need setpriv
  install -m 755 "$gpuraid" "$shm/gpuraid"
  chmod 755 "$shm"
  chmod 600 "${two[0]}"
  rc=0
  timeout 60 setpriv --reuid=65534 --regid=65534 --clear-groups \
    "$shm/gpuraid" scan "$shm/two" >"$tmp/out" 2>"$tmp/err" || rc=$?
  [ $rc = 0 ] || fail "status $rc: $(cat "$tmp/out" "$tmp/err")"
  grep -q "2 of 3 members" "$tmp/out" || fail "$(cat "$tmp/out")"
  grep -q ": ${two[0]}: can't be read by this user" "$tmp/err" ||
    fail "does not say that a file can't be read: $(cat "$tmp/err")"
  chmod 644 "${two[0]}"
fi

# ---- what it says opens the array: the command, and the file

# Also where a name would be more than one line of a file, or less.
cp -r "$shm/one" "$shm/three"
mv "$shm/three/member-02.img" "$shm/three/c
hook=\\[c] "
run 0 --json "$shm/three"
field 0.config <"$tmp/out" >"$GPURAID_CONFIG_DIR/tank.conf"
[ "$(wc -l <"$GPURAID_CONFIG_DIR/tank.conf")" = 5 ] &&
  ! grep -q '^hook=' "$GPURAID_CONFIG_DIR/tank.conf" ||
  fail "$(cat "$GPURAID_CONFIG_DIR/tank.conf")"
kept=("${members[@]}")
members=()
start_raid degraded=refuse config=tank
stop_raid
members=("${kept[@]}")

# The command that is printed opens the array when it is pasted, whatever is in the
# names, also without the members that it can do without.
odd=$shm/odd
cp -r "$shm/one" "$odd"
mv "$odd/it's [1].img" "$odd/"$'it\'s \\ "$(false)" $x`!*\xc3\xa9; [1] '
mv "$odd/member-02.img" "$odd/"$'-\n\t\e[31m\x7f\''
mv "$odd/member-03.img" "$odd/k=v"$'\xff\xc3(\\'
pasted ()
{
  members=()
  nbdkit () { [ "$1" = gpuraid ] && members=("${@:2}"); }
  eval "$2" || fail "the command: $2"
  unset -f nbdkit
  [ ${#members[@]} = "$1" ] || fail "${#members[@]} members: $2"
  start_raid
  [ "$(status_field uuid)" = "$uuid" ] || fail "another array: $2"
  expect_state "$([ "$1" = 4 ] && echo healthy || echo degraded)"
  stop_raid
}
kept=("${members[@]}")
for nr in 4 3; do
  run 0 "$odd"
  pasted $nr "$(sed -n 's/^  open it: //p' "$tmp/out")"
  run 0 --json "$odd"
  pasted $nr "$(field 0.command <"$tmp/out")"
  rm -f "$odd/member-00.img"
done
members=("${kept[@]}")
run 0 "$shm/three"
has '    slot 2   active      .*/three/c\?hook=\\\[c\] '
timeout 10 "$gpuraid" examine --brief "$shm"/three/c* >"$tmp/out"
[ "$(wc -l <"$tmp/out")" = 1 ] || fail "$(cat "$tmp/out")"
rm -r "$shm/three"

run 0 --json "$shm/one"
field 0.command <"$tmp/out" >"$tmp/command"
field 0.config <"$tmp/out" >"$GPURAID_CONFIG_DIR/tank.conf"
grep -q '^nbdkit gpuraid ' "$tmp/command" || fail "$(cat "$tmp/command")"
eval "words=($(cut -d' ' -f3- "$tmp/command"))"
kept=("${members[@]}")
members=("${words[@]}")
start_raid degraded=refuse
stop_raid
members=()
control=$GPURAID_RUNDIR/name.control
start_raid degraded=refuse config=tank

# ---- it is running: also one that another folder of sockets has

run 0 "$shm/one"
grep -q "is running: gpuraid status name" "$tmp/out" || fail "$(cat "$tmp/out")"
! grep -q "open it" "$tmp/out" || fail "$(cat "$tmp/out")"
"$gpuraid" fail name 1
run 0 --json "$shm"/{one,two}
is 0.running name
is 0.state degraded
is 0.members.1.state failed
is 1.running null
stop_raid
members=("${kept[@]}")

# ---- degraded, and too few

run 0 "$shm/one"
has "tank .*  4 of 4 members  degraded"
has "    slot .   failed  .*"
mkdir "$tmp/away"
mv "${members[0]}" "${members[1]}" "$tmp/away"
run 0 --json "$shm/one"
is 0.state failed
is 0.found 2
[ "$(field 0.why <"$tmp/out")" != null ] || fail "no reason"
run 0 "$shm/one"
grep -q "can't be opened: " "$tmp/out" || fail "$(cat "$tmp/out")"
mv "$tmp/away"/* "$shm/one"

# ---- a disk whose last partition is a member

for name in "$shm"/two/{a,z}-disk; do
  { head -c 1M /dev/zero; cat "${two[1]}"; } >"$name"
done
run 0 --json "$shm/two"
is 0.found 3
is 0.members.1.path "${two[1]}"
[ "$(grep -c disk "$tmp/out")" = 0 ] || fail "$(cat "$tmp/out")"
rm "$shm"/two/?-disk

# ---- damaged: half of the superblocks, then all

run 0 "$shm/two"
! grep superblocks "$tmp/out" || fail "$(cat "$tmp/out")"
dd if=/dev/zero of="${two[0]}" bs=8K count=1 conv=notrunc status=none
run 0 "$shm/two"
has ".*  3 of 3 members  healthy"
line=$(grep -n -F "${two[0]}" "$tmp/out" | head -n 1 | cut -d: -f1)
has "             only 2 of its 4 superblocks are good: .*"
sed -n "$((line + 1))p" "$tmp/out" | grep -q '2 of its 4 superblocks' ||
  fail "not below its member: $(cat "$tmp/out")"
run 0 --json "$shm/two"
is 0.members.0.superblocks 2
is 0.members.1.superblocks 4
size=$(stat -c %s "${two[0]}")
for off in 0 4096 $((size - 8192)) $((size - 4096)); do
  # The whole crc: one byte of it may be that already.
  printf GPURAIDSxxxx |
    dd of="${two[0]}" bs=1 seek="$off" conv=notrunc status=none
done
run 0 "$shm/two"
has ".*  2 of 3 members  degraded"
grep -q "${two[0]}: a member whose superblocks are damaged" "$tmp/err" ||
  fail "$(cat "$tmp/err")"
