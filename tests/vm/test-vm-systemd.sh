#!/bin/bash
# test-vm-systemd: the units under a real systemd, with the nbd driver of a real
# kernel, in user-mode Linux: the server is killed, stopped and started again
# under a mount, what owns the device is killed, the mount is stopped while it is
# in use, and the machine is powered off.  Also with udevd and /etc/fstab.
#
# run-tests: long no-sanitizer timeout=1200
# run-tests: inputs=code,scripts,system,tests/vm
#
# SPDX-License-Identifier: BSD-3-Clause

[ -x /lib/systemd/systemd ] || { echo "no systemd: run scripts/deps"; exit 1; }
exec scripts/vm timeout -k 10 1100 tests/vm/systemd.sh live off fstab
