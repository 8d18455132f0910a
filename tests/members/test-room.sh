#!/bin/bash
# test-room: create, replace and spare ask whether there is room for what a
# member has allocated, say how much is needed and how much there is, and leave
# files as they were.
#
# run-tests: no-sanitizer
#
# SPDX-License-Identifier: BSD-3-Clause

[ -n "$OWN_MOUNTS" ] || exec tests/own-mounts.sh "$0" "$@"
source tests/functions.sh
need_loop

small=$tmp/small
mkdir "$small"
mount -t tmpfs -o size=40M tmpfs "$small" || skip "no loop devices: no mount"
on_exit umount -l "$small"

# used: bytes that are allocated on the small file system
used () { stat -f -c '%b %f %S' "$small" | awk '{ print ($1 - $2) * $3 }'; }

# What is there: sizes, space, and content up to what the test has written.
look ()
{
  local f
  used
  find "$small" -type f -printf '%p %s %b\n' | sort
  for f in "$small"/*; do
    [ ! -f "$f" ] || head -c 24M "$f" | md5sum
  done
}

# refused PATTERN COMMAND...: in one line with both figures; nothing is taken,
# made or changed
refused ()
{
  local rc=0 before after pattern=$1
  shift
  before=$(look)
  timeout 60 "$@" >"$tmp/out" 2>"$tmp/err" || rc=$?
  [ $rc = 1 ] || fail "$*: status $rc"
  [ "$(wc -l <"$tmp/err")" = 1 ] || fail "$*: $(cat "$tmp/err")"
  grep -qE "$pattern" "$tmp/err" || fail "$*: $(cat "$tmp/err")"
  after=$(look)
  [ "$before" = "$after" ] || fail "$*: left something: $before$after"
}
figures="No space.* needs? [0-9]+ bytes more.* its file system has [0-9]+ free: make room, or"

# ---- create

cd "$small"
new=(k=2 m=1 size=64M journal-size=16M)
refused "$small: $figures give a smaller journal-size=" \
  "$gpuraid" create "${new[@]}" a b c
refused "$figures" "$gpuraid" create --dry-run "${new[@]}" a b c
refused "$figures" nbdkit -U - "$plugin" "${new[@]}" dir="$small" --run true

# Files that are there, with something in them that is no signature, and one
# whose space was allocated before.
for i in a b; do
  truncate -s 60M $i
  noise 8192 $i | dd of=$i bs=4096 seek=5000 conv=notrunc status=none
done
fallocate -l 20M c
truncate -s 60M c
for more in "" --force; do
  refused "$figures" "$gpuraid" create $more "${new[@]}" a b c
done
refused "$figures leave allocate=yes out" \
  "$gpuraid" create k=2 m=1 journal-size=1M allocate=yes a b c
refused "1 member there needs" "$gpuraid" create k=1 m=1 journal-size=20M \
  size=20M a "$shm/elsewhere"
[ ! -e "$shm/elsewhere" ] || fail "a file was made elsewhere"

# A file system that says less than it has.
cat >"$tmp/less.c" <<'C'
#include <sys/statvfs.h>
int statvfs (const char *path, struct statvfs *fs)
{ *fs = (struct statvfs) { .f_frsize = 4096, .f_blocks = 9, .f_bfree = 1 };
  return 0; }
int fstatvfs (int fd, struct statvfs *fs)
{ return statvfs ("", fs); }
C
cc -D_GNU_SOURCE -shared -fPIC -o "$tmp/less.so" "$tmp/less.c"
less=(env LD_PRELOAD="$tmp/less.so" "$gpuraid" create)
fits=(k=1 m=1 journal-size=4M size=8M d e)
refused "4096 free: make room, or .*, or, if that is wrong, gpuraid create --any-room" \
  "${less[@]}" "${fits[@]}"
"${less[@]}" --any-room --dry-run "${fits[@]}" >/dev/null || fail "--dry-run"
[ ! -e d ] || fail "--any-room --dry-run made something"
"${less[@]}" --any-room "${fits[@]}" >/dev/null || fail "--any-room"
"$gpuraid" check d e >/dev/null || fail "--any-room: check"
rm d e
refused "$figures" "$gpuraid" create --any-room "${new[@]}" a b c

# Half way: where the file system does not say what is free, and where it also
# can't allocate, so that a write finds that there is no space.
cat >"$tmp/unknown.c" <<'C'

#include <errno.h>
#include <fcntl.h>
#include <sys/statvfs.h>
int statvfs (const char *path, struct statvfs *fs)
{ *fs = (struct statvfs) { 0 }; return 0; }
int fstatvfs (int fd, struct statvfs *fs)
{ *fs = (struct statvfs) { 0 }; return 0; }
#ifdef NO_FALLOCATE
#include <sys/syscall.h>
#include <unistd.h>
int fallocate (int fd, int mode, off_t off, off_t len)
{
  if ((mode & FALLOC_FL_PUNCH_HOLE) == 0)
    { errno = EOPNOTSUPP; return -1; }
  return syscall (SYS_fallocate, fd, mode, off, len);
}
#endif
C
cc -D_GNU_SOURCE -shared -fPIC -o "$tmp/unknown.so" "$tmp/unknown.c"
cc -D_GNU_SOURCE -DNO_FALLOCATE -shared -fPIC -o "$tmp/unable.so" "$tmp/unknown.c"
refused "fallocate: .*: No space left on device" \
  env LD_PRELOAD="$tmp/unknown.so" "$gpuraid" create "${new[@]}" a b c
refused "fallocate: .*: No space left on device" \
  env LD_PRELOAD="$tmp/unknown.so" "$gpuraid" create "${new[@]}" d e f
refused "fallocate: .*: No space left on device" env LD_PRELOAD="$tmp/unknown.so" \
  "$gpuraid" create k=2 m=1 journal-size=1M allocate=yes a b c
rm a b c                        # here what is in data may be lost
truncate -s 60M a b c
refused "write: .*: No space left on device" \
  env LD_PRELOAD="$tmp/unable.so" "$gpuraid" create "${new[@]}" a b c

# What has its space needs none.
rm a b c
fallocate -l 30M a
truncate -s 30M "$shm/b"
"$gpuraid" create k=1 m=1 journal-size=16M a "$shm/b" >/dev/null ||
  fail "create on files that have their space"
rm a "$shm/b"

# ---- replace and spare

members=("$shm/x" "$shm/y" "$shm/z")
create_array k=2 m=1 size=64M journal-size=4M >/dev/null
start_raid
noise $((48 << 20)) | timeout 60 nbdcopy --flush - "$uri" || fail "nbdcopy"
for command in "replace 1" spare; do
  set -- $command
  again=("$gpuraid" "$1" --force "$control" ${2:+"$2"})
  fallocate -l 20M filler
  refused "the new member needs [0-9]+ bytes more.* has [0-9]+ free" \
    "${again[@]}" "$small/new"
  truncate -s 64M there
  noise 4096 there | dd of=there bs=4096 seek=3 conv=notrunc status=none
  refused "the new member needs [0-9]+ bytes more.* has [0-9]+ free" \
    "${again[@]}" "$small/there"
  rm there filler
done
expect_state healthy
replace_member 1 "$small/new"
wait_healthy
stop_raid

# A file system of the server that says less than it has.
members[1]=$small/new
san_preload="$tmp/less.so $san_preload"
start_raid
for command in "spare" "replace 0"; do
  set -- $command
  again=("$gpuraid" "$1" "$control" ${2:+"$2"})
  refused "4096 free: make room, .* or, if that is wrong, give --any-room" \
    "${again[@]}" "$shm/w$1"
  [ ! -e "$shm/w$1" ] || fail "$1 has made it"
  timeout 60 "${again[@]}" --any-room "$shm/w$1" || fail "$1 --any-room"
done
wait_healthy
stop_raid
