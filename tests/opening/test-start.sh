#!/bin/bash
# test-start.sh: making and opening an array with nbdkit alone: dir=,
# create=missing, relative paths in a daemon, and the messages.
#
# A command of --run does not always survive a preloaded sanitizer.
# run-tests: no-sanitizer
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need nbdkit nbdinfo qemu-io

cd "$shm"

# serve KEY...: run a command against it, in the foreground
serve ()
{
  LD_PRELOAD=$san_preload ASAN_OPTIONS=$san_asan TSAN_OPTIONS=$san_tsan \
    timeout 60 nbdkit -U - "$plugin" "$@" 2>"$tmp/err"
}

size ()
{
  serve "$@" --run 'nbdinfo --size "$uri"'
}

# notices N WORD: N lines on stderr, and the word among them
notices ()
{
  [ "$(wc -l <"$tmp/err")" = "$1" ] || fail "not $1 lines: $(cat "$tmp/err")"
  [ "$1" = 0 ] || grep -q -- "$2" "$tmp/err" || fail "no $2: $(cat "$tmp/err")"
  ! grep -qi error "$tmp/err" || fail "an error: $(cat "$tmp/err")"
}

mkdir d
[ "$(size dir=d k=4 m=2 size=20M)" = $((20 << 20)) ] || fail "$(cat "$tmp/err")"
notices 0
[ "$(ls d | tr '\n' ' ')" = "member-00.img member-01.img member-02.img \
member-03.img member-04.img member-05.img " ] || fail "$(ls d)"
[ "$(du -sk d | cut -f1)" -lt 30000 ] || fail "the files are not sparse"
[ "$(size dir=d)" = $((20 << 20)) ] || fail "again: $(cat "$tmp/err")"
[ "$(size dir=d k=4 m=2 size=20M)" = $((20 << 20)) ] || fail "the same again"
notices 0

# One notice, whatever is missing.
mv d/member-01.img d/member-04.img .
[ "$(size dir=d)" = $((20 << 20)) ] || fail "two missing"
notices 1 'missing'
[ "$(size dir=d k=4 m=2 size=20M)" = $((20 << 20)) ] || fail "two missing"
notices 1 'missing'
[ ! -e d/member-01.img ] || fail "a missing member was made"
mv member-0* d/

# An interrupted creation without any superblock continues.
mkdir e
truncate -s 20M e/member-02.img
[ "$(size dir=e k=2 m=1 size=20M)" = $((20 << 20)) ] || fail "$(cat "$tmp/err")"
[ "$(ls e | wc -l)" = 3 ] || fail "$(ls e)"

# create=missing, then the same command again.
for i in 1 2; do
  [ "$(size create=missing k=1 m=1 size=3M x y)" = $((3 << 20)) ] ||
    fail "create=missing: $(cat "$tmp/err")"
done
[ "$(size create=no y x)" = $((3 << 20)) ] || fail "create=no"

# A daemon changes its folder; its paths are still right.
LD_PRELOAD=$san_preload ASAN_OPTIONS=$san_asan TSAN_OPTIONS=$san_tsan \
  nbdkit -U "$sock" -P "$shm/pid" "$plugin" control=ctl x y 2>"$tmp/err"
wait_for test -s "$shm/pid" || fail "no daemon"
pid=$(cat "$shm/pid")
on_exit kill_ours "$pid"
[ -S ctl ] || fail "no control socket"
[ "$(stat -c %a ctl)" = 600 ] || fail "others may use the control socket"
qemu-io -f raw -c 'write -P 7 1000 5000' -c 'read -P 7 1000 5000' \
  "$uri" >/dev/null || fail "I/O with a daemon"
[ "$(timeout 30 "$gpuraid" status --json ./ctl | field members.0.path)" = \
  "$shm/x" ] || fail "not an absolute path"
kill "$pid"
wait_for test ! -e "/proc/$pid" || fail "the daemon stays"
serve x y --run 'qemu-io -f raw -c "read -P 7 1000 5000" "$uri"' >/dev/null ||
  fail "what the daemon wrote is not there"
