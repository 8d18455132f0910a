#!/bin/bash
# test-exports.sh: nbdkit's entry point and the flags of -D are all that the
# plugin exports, and nothing that is for tests is in it or in the command.
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need nm

nm -D --defined-only "$plugin" | awk '{ print $NF }' | sort >"$tmp/exported"
grep -qx plugin_init "$tmp/exported" || fail "plugin_init is not exported"
grep -qx gpuraid_debug_loop "$tmp/exported" ||
  fail "-D gpuraid.loop can't be set"
grep -vx -e plugin_init -e 'gpuraid_debug_[a-z_]*' "$tmp/exported" \
  >"$tmp/other" && fail "exported too: $(head -n 20 "$tmp/other" | xargs)"

for f in "$plugin" "$gpuraid"; do
  nm "$f" >"$tmp/symbols"
  grep -q ' array_new$' "$tmp/symbols" || fail "$f: no symbols"
  grep ' sim_' "$tmp/symbols" >"$tmp/sim" &&
    fail "$f: simulated members: $(head -n 20 "$tmp/sim" | xargs)"
done
exit 0
