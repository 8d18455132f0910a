#!/bin/bash
# test-dump-plugin.sh: --dump-plugin works without an array, its fields
# begin with gpuraid_, are documented, and say what is true.
#
# SPDX-License-Identifier: BSD-3-Clause
# run-tests: no-sanitizer

source tests/functions.sh
need nbdkit

LD_PRELOAD=$san_preload ASAN_OPTIONS=$san_asan TSAN_OPTIONS=$san_tsan \
  nbdkit "$plugin" --dump-plugin > "$tmp/dump"

value ()
{
  sed -n "s/^$1=//p" "$tmp/dump"
}

[ "$(value name)" = gpuraid ] || fail "name=$(value name)"
[ "$(value magic_config_key)" = member ] || fail "no magic_config_key"
[ "$(value max_thread_model)" = parallel ] || fail "not parallel"
[ "$(value gpuraid_version)" = "$("$gpuraid" --version | cut -d' ' -f2)" ] ||
  fail "plugin and command have different versions"
[ "$(value version)" = "$(value gpuraid_version)" ] || fail "two versions"
[ "$(value gpuraid_max_members)" = 64 ] || fail "gpuraid_max_members"
grep -qF "C<$(value gpuraid_members)>." docs/nbdkit-gpuraid-plugin.pod &&
  [[ " $(value gpuraid_members) " = *" nbd "* ]] ||
  fail "gpuraid_members=$(value gpuraid_members)"

sed -n 's/^\(gpuraid_[a-z_]*\)=.*/\1/p' "$tmp/dump" | sort > "$tmp/fields"
sed -n 's/^=item C<\(gpuraid_[a-z_]*\)>/\1/p' \
  docs/nbdkit-gpuraid-plugin.pod | sort > "$tmp/documented"
diff "$tmp/fields" "$tmp/documented" ||
  fail "the man page (>) does not have the fields (<)"

# The values that it names are taken; a message about them would be
# another one.
try ()
{
  LD_PRELOAD=$san_preload ASAN_OPTIONS=$san_asan TSAN_OPTIONS=$san_tsan \
    timeout 30 nbdkit -U - "$plugin" "$@" "$tmp/nothing" --run true \
    2>"$tmp/err" && fail "$*: a server with no members"
  grep -q 'no member was found' "$tmp/err" || fail "$*: $(cat "$tmp/err")"
}
for v in $(value gpuraid_coders); do try coder="$v"; done
for v in $(value gpuraid_codes); do try code="$v"; done
for v in $(value gpuraid_checksums); do try checksum="$v"; done
for v in $(value gpuraid_consistencies); do try consistency="$v"; done
try chunk="$(value gpuraid_min_chunk)"
try chunk="$(value gpuraid_max_chunk)"
