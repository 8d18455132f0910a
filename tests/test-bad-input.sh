#!/bin/bash
# test-bad-input.sh: for any wrong input: one clear line on stderr, exit
# status not 0, and no member changed.
#
# Some 120 starts of nbdkit; test-assemble and test-create take the same
# ways under the sanitizers.
# run-tests: no-sanitizer
#
# SPDX-License-Identifier: BSD-3-Clause
# run-tests: no-sanitizer

source tests/functions.sh
need nbdkit mkswap

cd "$shm"

# Names, modes, sizes, room and times: any write changes a time.
stats ()
{
  find . ! -name 'sock*' ! -name control ! -name pid \
    -printf '%p %m %s %b %T@\n' | sort
}

# The content of the files, too.
snapshot ()
{
  sha256sum [a-f] noise swap > "$tmp/sums"
}

unchanged ()
{
  sha256sum --quiet -c "$tmp/sums" || fail "a member was changed"
}

# refused WHY COMMAND...
refused ()
{
  local why=$1 rc=0 before
  shift
  before=$(stats)
  LD_PRELOAD=$san_preload ASAN_OPTIONS=$san_asan TSAN_OPTIONS=$san_tsan \
    timeout $((30 * slow)) "$@" >"$tmp/out" 2>"$tmp/err" </dev/null || rc=$?
  [ $rc -ne 0 ] || fail "not refused: $*"
  [ $rc -lt 124 ] || fail "exit status $rc: $*: $(cat "$tmp/err")"
  [ "$(wc -l < "$tmp/err")" = 1 ] ||
    fail "not one line: $*: $(cat "$tmp/err")"
  grep -q -- "$why" "$tmp/err" ||
    fail "does not say \"$why\": $*: $(cat "$tmp/err")"
  [ "$(stats)" = "$before" ] || fail "something was changed: $*"
  nr_refused=$((nr_refused + 1))
}

nr_refused=0
serve ()
{
  local why=$1
  shift
  refused "$why" nbdkit -U - "$plugin" "$@" --run true
}

create ()
{
  local why=$1
  shift
  refused "$why" "$gpuraid" create "$@"
}

# Both: create, and nbdkit that may create.
both ()
{
  create "$@"
  serve "$@" create=missing
}

truncate -s 8M a b c d e f blank small.img
truncate -s 100K small.img
: > empty
mkdir dir folder
truncate -s 8M swap
mkswap swap >/dev/null 2>&1
noise $((4 << 20)) > noise
mkfifo pipe
for i in $(seq 65); do truncate -s 8M "many$i"; done

snapshot

# --- keys ------------------------------------------------------------------
serve 'unknown key: colour' colour=red a b c
create 'unknown key: colour' colour=red a b c
create 'unknown key: cache' cache=64M k=2 m=1 a b c
both 'k= is given but not m=' k=2 a b c
both 'm= is given but not k=' m=2 a b c
both 'from 1 to 63' k=0 m=1 a
both 'from 1 to 63' k=two m=1 a b c
both 'from 1 to 63' k=1 m=-1 a
both 'at most 64' k=60 m=5 a b c
both 'chunk=3000: must be a power of two' chunk=3000 k=2 m=1 a b c
both 'power of two' chunk=8M k=2 m=1 a b c
both 'not a size' size=much k=2 m=1 a b c
both 'at least' size=100 k=2 m=1 a b c
both 'missing' size= k=2 m=1 a b c
both 'given twice' k=2 k=2 m=1 a b c
both 'must be one of' code=raid5 k=2 m=1 a b c
both 'w=6: must be one of 4|8' code=crs w=6 k=2 m=1 a b c
both 'w=8: goes with code=crs only' code=rs w=8 k=2 m=1 a b c
create 'w=4: goes with code=crs only' w=4 k=2 m=1 a b c
both 'k=15 m=2 w=4: k + m must be at most 16' code=crs w=4 k=15 m=2 a b c
both 'must be one of' checksum=md5 k=2 m=1 a b c
both 'not a size' journal-size=long k=2 m=1 a b c
both 'at most 1T' journal-size=0 k=2 m=1 a b c
both 'at most 1T' journal-size=2T k=2 m=1 a b c
create 'goes with consistency=journal' consistency=none \
  journal-size=1M k=2 m=1 a b c
create 'journal-size=143360: too small, at least 147456 is' \
  consistency=journal journal-size=140K k=2 m=1 a b c
create 'journal-size=16384: too small' \
  consistency=journal journal-size=16K chunk=4K k=2 m=1 a b c
serve 'numbers from 0 to 63' gpus=0,x a b c
serve 'goes with coder=auto or coder=cuda' coder=isal gpus=0 a b c
serve 'must be one of' coder=abacus a b c
serve 'must be one of' degraded=perhaps a b c
serve 'must be one of' cache-mode=none a b c
serve 'must be one of' create=yes a b c
serve 'not a size' cache=some a b c
serve 'not a time' timeout=soon a b c
serve 'at least 1s' timeout=10ms a b c
serve 'too long' control=$(printf 'x%.0s' {1..120}) a b c
serve 'no member' degraded=allow
serve 'not in this version' nbd://localhost/ a b

# --- members to create on ---------------------------------------------------
both 'k= and m= are needed' a b c
both 'needs 3 members, but 2 are given' k=2 m=1 a b
both 'needs 6 members, but 65 are given' k=4 m=2 many*
both 'given twice' k=2 m=1 a b ./a
ln -s a symlink
ln a hardlink
both 'symlink' k=2 m=1 a b symlink
both 'hardlink' k=2 m=1 a b hardlink
rm symlink hardlink
both 'directory' k=2 m=1 a b dir
both 'empty' k=2 m=1 a b empty
both 'pipe' k=2 m=1 a b pipe
both 'small.img' k=2 m=1 a b small.img
both 'swap' k=2 m=1 a b swap
both 'size= is needed' k=2 m=1 a b new
both 'No such file' k=2 m=1 size=1M a b nowhere/new
both 'needs at least' k=2 m=1 size=1G a b c
both 'not in this version' k=2 m=1 a b nbd+unix:///x
serve 'no member-' dir=folder
serve 'No such file' dir=nowhere
serve 'no other members' dir=folder a

# --- members to open --------------------------------------------------------
serve 'no superblock' blank
serve 'no superblock' noise
serve 'empty' empty
serve 'directory' dir
serve 'no member was found' nothing

unchanged
"$gpuraid" create k=2 m=2 a b c d >/dev/null
"$gpuraid" create k=1 m=1 e f >/dev/null
snapshot
create 'gpuraid superblock' k=2 m=1 a blank many1
serve 'k=2' k=3 m=1 a b c d
serve 'm=2' k=2 m=3 a b c d
serve 'chunk=65536' chunk=4K a b c d
serve 'size=' size=1M a b c d
serve 'another array' a b c d e
serve 'another array' a b c e
serve 'no superblock' a b c d blank
serve 'no superblock' a b c swap
serve 'empty' a b c d empty
serve 'directory' a b c d dir
cp d copy
serve 'same member' a b c d copy
rm copy
ln -s d symlink
ln d hardlink
serve 'symlink' a b c d symlink
serve 'hardlink' a b c d hardlink
rm symlink hardlink
serve 'too few' a b
serve 'too few' a b nothing
serve 'too few' degraded=force a
serve 'degraded=refuse' degraded=refuse a b c
serve 'needed' a b cache=1K c d

unchanged

# A file that cannot be read.
if [ "$(id -u)" = 0 ]; then
  need setpriv
  cp "$plugin" plugin.so
  chmod 755 . plugin.so
  chmod 444 a b d
  chmod 000 c
  refused 'Permission denied' setpriv --reuid=65534 --clear-groups \
    nbdkit -U - ./plugin.so a b c d --run true
  rm plugin.so
else
  chmod 000 c
  serve 'Permission denied' a b c d
fi
chmod 644 a b c d

# A second server, and create and another server meanwhile.
members=("$PWD/a" "$PWD/b" "$PWD/c" "$PWD/d")
start_raid
serve 'in use' a b c d
serve 'in use' d
create 'in use' --force k=2 m=2 a b c d
"$gpuraid" examine a b c d >/dev/null || fail "examine of a running array"
serve 'another server' control="$control" e f
stop_raid
unchanged

# --- superblocks with bits flipped -------------------------------------------
echo "$0: SEED=$SEED"
RANDOM=$SEED
size=$(stat -c %s a)
flip ()
{
  local off=$1 byte
  byte=$(od -An -tu1 -j "$off" -N1 c)
  printf "\\x$(printf %x $((byte ^ (1 << RANDOM % 8))))" |
    dd of=c bs=1 seek="$off" conv=notrunc status=none
}
cp c sound
for i in 1 2 3 4 5 6; do
  cp sound c
  for copy in 0 4096 $((size - 8192)) $((size - 4096)); do
    flip $((copy + (RANDOM % 1500)))
  done
  serve 'damaged\|no superblock\|newer' a b c d
  refused 'superblock' "$gpuraid" examine c
  # One copy is enough.
  dd if=sound of=c bs=4096 count=1 skip=1 seek=1 conv=notrunc status=none
  LD_PRELOAD=$san_preload ASAN_OPTIONS=$san_asan TSAN_OPTIONS=$san_tsan \
    nbdkit -U - "$plugin" a b c d --run true ||
    fail "one sound copy is not enough"
done
echo "$0: $nr_refused refusals"
