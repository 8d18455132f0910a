#!/bin/bash
# own-mounts: run a command in a mount name space of its own.
#
#   tests/own-mounts.sh COMMAND ARG...
#
# Tests run beside each other, and some of them make name spaces.  A new one has
# a copy of each mount, so a file system that is unmounted lives on there until
# that test ends.  What COMMAND mounts is seen in no other name space; and its
# own lets go of what other tests have mounted.  Without root it is just run.
#
# SPDX-License-Identifier: BSD-3-Clause

export OWN_MOUNTS=yes
if [ "$(id -u)" != 0 ] || ! unshare --mount true 2>/dev/null; then
  exec "$@"
fi
exec unshare --mount --propagation private bash -c '
  for dir in /tmp /var/tmp /dev/shm ${TMPDIR:+"$TMPDIR"}; do
    findmnt -rno TARGET | grep -F "$dir/"
  done | sort -ru | while read -r mount; do
    mount=$(printf %b "$mount")
    case "$PWD/ ${TMPDIR:-}/" in
      "$mount"/*|*" $mount"/*) ;;
      *) umount -l "$mount" 2>/dev/null ;;
    esac
  done
  exec "$@"' - "$@"
