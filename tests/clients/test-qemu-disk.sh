#!/bin/bash
# test-qemu-disk: QEMU's own NBD client, with the options of docs/install.md,
# goes on when the server was killed, and what the guest has written is there.
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need qemu-io nbdcopy

# The block device that the page gives to a virtual machine, on our socket.
options=$(sed -n 's/^ *-blockdev \(driver=nbd,.*\) \\$/\1/p' docs/install.md |
  sed "s,/run/gpuraid/tank.sock,$sock,; s/,node-name=[a-z]*//")
[ -n "$options" ] || fail "docs/install.md has no -blockdev"

make_members 6 40M
create_array k=4 m=2
start_raid

mkfifo "$tmp/commands"
qemu-io -t writeback --image-opts "$options" <"$tmp/commands" >"$tmp/out" 2>&1 &
client=$!
on_exit kill_ours $client
exec 3>"$tmp/commands"
# It reads one line at a time.
# ask WORD...
nr=0
ask ()
{
  echo "$*" >&3
  nr=$((nr + 1))
}
answered ()
{
  [ "$(grep -c 'bytes at offset' "$tmp/out")" -eq $nr ]
}
ask write -P 1 0 4M
wait_for answered || fail "no write: $(cat "$tmp/out")"
# Without a flush: QEMU does not send again what was answered.
for i in 1 2; do
  kill_raid
  ask write -P $((i + 1)) ${i}M 4k
  sleep 0.3
  start_raid
  # At once, before what was written is written out.
  wait_for answered || fail "it does not go on: $(cat "$tmp/out")"
done
kill_raid
start_raid
for what in "1 0 1M" "2 1M 4k" "3 2M 4k" "1 3M 1M"; do
  ask "read -P $what"
  wait_for answered || fail "read $what: $(cat "$tmp/out")"
done
echo quit >&3
timeout 20 tail -s 0.05 --pid=$client -f /dev/null ||
  fail "qemu-io does not end: $(cat "$tmp/out")"
wait $client || fail "qemu-io: $(cat "$tmp/out")"
! grep -i "error\|fail" "$tmp/out" || fail "qemu-io met an error"
stop_raid
