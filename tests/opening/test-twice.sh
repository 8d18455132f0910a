#!/bin/bash
# test-twice: an array that is served is not served again through another
# device or name of its members, in either order; nor from a name space that
# shares neither /run nor the network, if the kernel can tell.
#
# run-tests: long no-sanitizer
#
# SPDX-License-Identifier: BSD-3-Clause

[ -n "$OWN_MOUNTS" ] || exec tests/own-mounts.sh "$0" "$@"
source tests/functions.sh
source tests/nbd-servers.sh
need nbdkit nbdsh
need_loop

make_members 3 16M
files=("${members[@]}")
create_array k=2 m=1 >/dev/null

mkdir "$shm/bound" "$shm/linked"
mount --bind "$shm" "$shm/bound" || skip "no loop devices: no mount"
on_exit umount -l "$shm/bound"
loops=() exports=() bound=() linked=()
for i in 0 1 2; do
  dev=$(losetup -f --show "${files[i]}") || skip "no loop devices: losetup failed"
  on_exit losetup -d "$dev"
  loops+=("$dev")
  serve_on "m$i" file "${files[i]}"
  exports+=("$(uri_of "m$i")")
  bound+=("$shm/bound/${files[i]##*/}")
  ln "${files[i]}" "$shm/linked/$i"
  linked+=("$shm/linked/$i")
done
# A second export of each, as another host has it.
again=()
for i in 0 1 2; do
  serve_on "n$i" file "${files[i]}"
  again+=("$(uri_of "n$i")")
done

sums () { md5sum "${files[@]}"; }

# A name space with its own /run and network, as a container has it.
alone=(unshare --net --mount --propagation private bash -c
  'mount -t tmpfs tmpfs /run && exec "$@"' -)

# refused WHAT COMMAND...: with no word to the members
refused ()
{
  local what=$1 rc=0 before
  shift
  before=$(sums)
  timeout 120 "$@" >"$tmp/out" 2>&1 || rc=$?
  [ $rc != 0 ] || fail "$what: it was served: $(cat "$tmp/out")"
  grep -q "in use\|which runs on this host" "$tmp/out" || fail "$what: $(cat "$tmp/out")"
  [ "$before" = "$(sums)" ] || fail "$what: a member was written"
}

serve=(nbdkit -U - "$plugin")
write='nbdsh -u "$uri" -c "h.pwrite(b\"x\" * 4096, 0); h.flush()"'

# freeze, thaw: beats, and what is due a second later, would change the members
freeze ()
{
  is_ours "$raid_pid" && kill -STOP "$raid_pid"
  wait_for has_stopped "$raid_pid" || fail "the server does not stop"
}
thaw () { kill -CONT "$raid_pid"; }

# one_after_other FIRST SECOND...: with the names of the first it is served
one_after_other ()
{
  local first=$1 second
  local -n names=$1
  shift
  members=("${names[@]}")
  start_raid
  nbdsh -u "$uri" -c 'h.pwrite(b"1" * (1 << 20), 0); h.flush()'
  freeze
  for second; do
    local -n other=$second
    refused "$second after $first" "${in_space[@]}" "${serve[@]}" \
      "${other[@]}" --run "$write"
    [ "$first" = files ] || continue
    refused "$second after $first, for reading" "${in_space[@]}" \
      nbdkit -r -U - "$plugin" "${other[@]}" --run true
    refused "create on $second after $first" "${in_space[@]}" \
      "$gpuraid" create --force k=2 m=1 "${other[@]}"
  done
  thaw
  expect_state healthy
  nbdsh -u "$uri" -c 'assert h.pread(1 << 20, 0) == b"1" * (1 << 20)'
  stop_raid
}

in_space=()
for first in files loops exports; do
  one_after_other $first files loops bound linked exports again
done

# The kernel's locks are the same in all name spaces: of a file, and of the one
# behind a loop device or a partition of it.
unshare --net true 2>/dev/null || exit 0
in_space=("${alone[@]}")
one_after_other files files loops bound linked
one_after_other loops files loops bound linked

# Nor does a root of its own hide the file behind a loop device, if it can be
# seen in it.
mkdir "$shm/root"
mount --rbind / "$shm/root"
mount -t tmpfs tmpfs "$shm/root/run"
on_exit umount -l "$shm/root"
for i in 0 1 2; do
  dev=$(chroot "$shm/root" losetup -f --show "${files[i]}")
  on_exit losetup -d "$dev"
  loops[i]=$dev
done
in_space=("${alone[@]}" chroot "$shm/root")
one_after_other files loops

# An export has no lock.  There the beat tells, which needs a server that runs.
members=("${files[@]}")
start_raid multihost=yes
nbdsh -u "$uri" -c 'h.pwrite(b"2" * (1 << 20), 0); h.flush()'
! timeout 120 "${alone[@]}" "${serve[@]}" "${again[@]}" --run "$write" \
  >"$tmp/out" 2>&1 || fail "again after files: it was served"
grep -q "in use by another server" "$tmp/out" ||
  fail "again after files: $(cat "$tmp/out")"
expect_state healthy
nbdsh -u "$uri" -c 'assert h.pread(1 << 20, 0) == b"2" * (1 << 20)'
stop_raid
