# migrate-helpers: what the hidden lines of docs/migrate.md.in call.
#
# Sourced by scripts/dev/make-recovery for each command.  T is the section's
# folder; its files stand for disks.
#
# SPDX-License-Identifier: BSD-3-Clause

source "${HELPERS%/*}/recovery-helpers.sh"

# old_disk: a disk with data, about which gpuraid knows nothing
old_disk ()
{
  /usr/bin/python3 - "$T/old/disk.img" <<'PY'
import random, sys
with open(sys.argv[1], "wb") as f:
    f.write(random.Random(1).randbytes(32 << 20))
PY
}

# Servers that the section has started beside that of the array.
end_server ()
{
  local f
  crash || :
  for f in "$T"/run/*.pid; do
    [ ! -e "$f" ] || kill "$(cat "$f")" 2>/dev/null
  done
}
