#!/bin/bash
# test-bad-input.sh: for any wrong input: one clear line on stderr that says
# what is wrong and what to do next, exit status not 0, and no member changed.
#
# Some 120 starts of nbdkit; test-assemble-refused and test-create take the same
# ways under the sanitizers.
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

# refused WHY NEXT COMMAND...: the message has WHY, and NEXT, which is what to
# do or what would be right.
refused ()
{
  local why=$1 next=$2 rc=0 before
  shift 2
  before=$(stats)
  LD_PRELOAD=$san_preload ASAN_OPTIONS=$san_asan TSAN_OPTIONS=$san_tsan \
    timeout 30 "$@" >"$tmp/out" 2>"$tmp/err" </dev/null || rc=$?
  [ $rc -ne 0 ] || fail "not refused: $*"
  [ $rc -lt 124 ] || fail "exit status $rc: $*: $(cat "$tmp/err")"
  [ "$(wc -l < "$tmp/err")" = 1 ] ||
    fail "not one line: $*: $(cat "$tmp/err")"
  grep -q -- "$why" "$tmp/err" ||
    fail "does not say \"$why\": $*: $(cat "$tmp/err")"
  grep -qF -- "$next" "$tmp/err" ||
    fail "does not say \"$next\": $*: $(cat "$tmp/err")"
  [ "$(stats)" = "$before" ] || fail "something was changed: $*"
  nr_refused=$((nr_refused + 1))
}

nr_refused=0
serve ()
{
  local why=$1 next=$2
  shift 2
  refused "$why" "$next" nbdkit -U - "$plugin" "$@" --run true
}

create ()
{
  local why=$1 next=$2
  shift 2
  refused "$why" "$next" "$gpuraid" create "$@"
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
serve 'unknown key: colour' '--help lists them' colour=red a b c
create 'unknown key: colour' '--help lists them' colour=red a b c
create 'unknown key: cache' '--help lists them' cache=64M k=2 m=1 a b c
both 'k= is given but not m=' 'give both or none' k=2 a b c
both 'm= is given but not k=' 'give both or none' m=2 a b c
both 'from 1 to 63' 'must be a number from' k=0 m=1 a
both 'from 1 to 63' 'must be a number from' k=two m=1 a b c
both 'from 1 to 63' 'must be a number from' k=1 m=-1 a
both 'at most 64' 'k + m must be' k=60 m=5 a b c
both 'chunk=3000: must be a power of two' 'from 4K to 4M' \
  chunk=3000 k=2 m=1 a b c
both 'power of two' 'from 4K to 4M' chunk=8M k=2 m=1 a b c
both 'not a size' 'a number with K, M, G or T' size=much k=2 m=1 a b c
both 'at least' '4096 bytes' size=100 k=2 m=1 a b c
both 'missing' 'leave the key out' size= k=2 m=1 a b c
both 'given twice' 'leave one' k=2 k=2 m=1 a b c
both 'must be one of' 'rs|crs' code=raid5 k=2 m=1 a b c
both 'w=6: must be one of 4|8' 'one of 4|8' code=crs w=6 k=2 m=1 a b c
both 'w=8: goes with code=crs only' 'leave w= out' code=rs w=8 k=2 m=1 a b c
create 'w=4: goes with code=crs only' 'leave w= out' w=4 k=2 m=1 a b c
both 'k=15 m=2 w=4: k + m must be at most 16' 'or w=8' \
  code=crs w=4 k=15 m=2 a b c
both 'must be one of' 'none|crc32c' checksum=md5 k=2 m=1 a b c
both 'not a size' 'a number with K, M, G or T' journal-size=long k=2 m=1 a b c
both 'at most 1T' 'at least 1 byte' journal-size=0 k=2 m=1 a b c
both 'at most 1T' 'at least 1 byte' journal-size=2T k=2 m=1 a b c
create 'goes with consistency=journal' 'leave it out' consistency=none \
  journal-size=1M k=2 m=1 a b c
create 'journal-size=143360: too small, at least 147456 is' 'at least 147456' \
  consistency=journal journal-size=140K k=2 m=1 a b c
create 'journal-size=16384: too small' 'at least' \
  consistency=journal journal-size=16K chunk=4K k=2 m=1 a b c
serve 'numbers from 0 to 63' 'must be all' gpus=0,x a b c
serve 'goes with coder=auto or coder=cuda' 'leave one of them out' \
  coder=isal gpus=0 a b c
serve 'must be one of' 'auto|simd|isal|gf-complete|cuda' coder=abacus a b c
serve 'must be one of' 'allow|refuse|force' degraded=perhaps a b c
serve 'must be one of' 'writeback|writethrough' cache-mode=none a b c
serve 'must be one of' 'error|wait' no-space=no a b c
serve 'must be one of' 'no|missing' create=yes a b c
serve 'not a size' 'a number with K, M, G or T' cache=some a b c
serve 'not a time' 'a number with ms, s or m' timeout=soon a b c
serve 'at least 1s' 'must be' timeout=10ms a b c
serve 'too long' 'give one of at most' control=$(printf 'x%.0s' {1..120}) a b c
serve 'no member' 'name the files or disks' degraded=allow

# --- members to create on ---------------------------------------------------
both 'k= and m= are needed' 'k=4 m=2: any 2 of 6' a b c
both 'needs 3 members, but 2 are given' 'name more' k=2 m=1 a b
both 'needs 6 members, but 65 are given' 'leave some out' k=4 m=2 many*
both 'given twice' 'leave one' k=2 m=1 a b ./a
ln -s a symlink
ln a hardlink
both 'symlink' 'stop the array that uses it' k=2 m=1 a b symlink
both 'hardlink' 'stop the array that uses it' k=2 m=1 a b hardlink
rm symlink hardlink
both 'directory' 'leave it out' k=2 m=1 a b dir
both 'empty' 'make it longer' k=2 m=1 a b empty
both 'pipe' 'leave it out' k=2 m=1 a b pipe
both 'small.img' 'name a larger one' k=2 m=1 a b small.img
both 'swap' '--force takes it' k=2 m=1 a b swap
both 'size= is needed' 'to make it' k=2 m=1 a b new
both 'No such file' 'folder first' k=2 m=1 size=1M a b nowhere/new
both 'needs at least' 'give a smaller size=' k=2 m=1 size=1G a b c
both 'no socket' '?socket=' k=2 m=1 a b nbd+unix:///x
both 'not a URI of a member' 'begin with nbd://' k=2 m=1 a b http://localhost/x
create 'can.t connect' 'start its server' k=2 m=1 a b 'nbd+unix:///?socket=nowhere'
serve 'no member-' 'size= are needed to make them' dir=folder
serve 'No such file' 'folder first' dir=nowhere
serve 'no other members' 'leave one of them out' dir=folder a

# --- members to open --------------------------------------------------------
serve 'no superblock' 'gpuraid scan finds' blank
serve 'no superblock' 'gpuraid scan finds' noise
serve 'empty' 'gpuraid scan finds' empty
serve 'directory' 'leave it out' dir
serve 'no member was found' 'gpuraid scan finds them' nothing

unchanged
"$gpuraid" create k=2 m=2 a b c d >/dev/null
"$gpuraid" create k=1 m=1 e f >/dev/null
snapshot
create 'gpuraid superblock' '--force takes it' k=2 m=1 a blank many1
serve 'k=2' 'leave the key out' k=3 m=1 a b c d
serve 'm=2' 'leave the key out' k=2 m=3 a b c d
serve 'chunk=65536' 'leave the key out' chunk=4K a b c d
serve 'size=' 'leave the key out' size=1M a b c d
serve 'another array' 'leave out those of one' a b e f
serve 'another array' 'add the missing members' a e b
serve 'no superblock' 'add the missing members' a blank b
serve 'no superblock' 'add the missing members' a swap b
serve 'no superblock' 'add the missing members' a small.img b
serve 'empty' 'add the missing members' a b empty
serve 'directory' 'leave it out' a b c d dir
cp d copy
serve 'same member' 'leave one out' a b c d copy
rm copy
ln -s d symlink
ln d hardlink
serve 'symlink' 'stop the array that uses it' a b c d symlink
serve 'hardlink' 'stop the array that uses it' a b c d hardlink
rm symlink hardlink
serve 'too few' 'add the missing members' a b
serve 'too few' 'add the missing members' a b nothing
serve 'too few' 'add the missing members' degraded=force a
serve 'degraded=refuse' 'or use degraded=allow' degraded=refuse a b c
serve 'needed' 'at least' a b cache=1K c d
serve 'cache=.*: too large' 'this machine has' a b cache=64T c d

unchanged

# A file that cannot be read.
if [ "$(id -u)" = 0 ]; then
  need setpriv
  cp "$plugin" plugin.so
  chmod 755 . plugin.so
  chmod 444 a b d
  chmod 000 c
  refused 'Permission denied' 'run this as root' \
    setpriv --reuid=65534 --clear-groups \
    nbdkit -U - ./plugin.so a b c d --run true
  rm plugin.so
else
  chmod 000 c
  serve 'Permission denied' 'run this as root' a b c d
fi
chmod 644 a b c d

# A second server, and create and another server meanwhile.
members=("$PWD/a" "$PWD/b" "$PWD/c" "$PWD/d")
start_raid
serve 'in use' 'gpuraid stop' a b c d
serve 'in use' 'gpuraid stop' d
create 'in use' 'gpuraid stop' --force k=2 m=2 a b c d
"$gpuraid" examine a b c d >/dev/null || fail "examine of a running array"
serve 'another server' 'give another path' control="$control" e f
stop_raid
unchanged

# --- superblocks with bits flipped -------------------------------------------
echo "$0: SEED=$SEED"
RANDOM=$SEED
size=$(stat -c %s a)
cp c sound
for i in 1 2 3 4 5 6; do
  cp sound c
  for copy in 0 4096 $((size - 8192)) $((size - 4096)); do
    flip c $((copy + RANDOM % 1500)) $((1 << RANDOM % 8))
  done
  serve 'damaged\|no superblock\|newer' 'add the missing members' a c d
  refused 'superblock' 'open the array without it' "$gpuraid" examine c
  # One copy is enough.
  dd if=sound of=c bs=4096 count=1 skip=1 seek=1 conv=notrunc status=none
  LD_PRELOAD=$san_preload ASAN_OPTIONS=$san_asan TSAN_OPTIONS=$san_tsan \
    nbdkit -U - "$plugin" a b c d --run true ||
    fail "one sound copy is not enough"
done
echo "$0: $nr_refused refusals"
