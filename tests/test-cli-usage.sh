#!/bin/bash
# test-cli-usage: `gpuraid --help` and the man page name the same
# subcommands with the same options, and each of those is there.
#
# SPDX-License-Identifier: BSD-3-Clause
# run-tests: no-sanitizer

source tests/functions.sh
need podchecker

podchecker docs/gpuraid.pod 2>"$tmp/pod.err" ||
  fail "docs/gpuraid.pod: $(cat "$tmp/pod.err")"

timeout 10 "$gpuraid" --help >"$tmp/help" || fail "--help: status $?"
sed -n 's/^  gpuraid \([a-z]*\) .*/\1/p' "$tmp/help" | sort >"$tmp/from-help"
sed -n 's/^=head2 gpuraid \([a-z]*\) .*/\1/p' docs/gpuraid.pod |
  sort >"$tmp/from-pod"
[ -s "$tmp/from-help" ] || fail "--help names no subcommand"
diff "$tmp/from-help" "$tmp/from-pod" || fail "not the subcommands of the pod"

options_in ()
{
  { grep -o -- '--[a-z]*' || :; } | sort | tr '\n' ' '
}

while read -r c; do
  # Without arguments each says how it is called.
  ! timeout 10 "$gpuraid" "$c" >"$tmp/out" 2>"$tmp/err" ||
    fail "gpuraid $c: exit status 0"
  grep -q "^usage: gpuraid $c " "$tmp/err" || fail "gpuraid $c: no usage"
  [ ! -s "$tmp/out" ] || fail "gpuraid $c: $(cat "$tmp/out")"

  # The options of the usage, in the pod's heading and synopsis.
  options=$(options_in <"$tmp/err")
  for where in "=head2 gpuraid $c " " gpuraid $c "; do
    found=$(grep -m 1 "^$where" docs/gpuraid.pod | options_in)
    [ "$options" = "$found" ] || fail "$where: options $found, not $options"
  done
done <"$tmp/from-help"

for args in "" "nosuch" "--nosuch"; do
  ! timeout 10 "$gpuraid" $args >"$tmp/out" 2>"$tmp/err" ||
    fail "gpuraid $args: exit status 0"
  [ "$(wc -l <"$tmp/err")" = 1 ] || fail "not one line: $(cat "$tmp/err")"
done
