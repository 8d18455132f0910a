#!/usr/bin/env bash
# gpuraid test: a short run of each fuzzer, as many inputs each time, which
# begins with its seeds alone.
#
#   FUZZ_SECONDS   run each for this time instead
#   SEED           a number, or random; 1 unless given
#
# scripts/check runs it with the address sanitizer, whose build has nearly all
# that is needed.  There, and without clang's libFuzzer, the inputs are random
# changes of the seeds.
#
# SPDX-License-Identifier: BSD-3-Clause
# run-tests: long address-only timeout=1200
# run-tests: inputs=code,scripts,tests/fuzz,tests/array/replay,tests/*.[ch]

set -e
cd "$(dirname "$0")/../.."

export FUZZ_CORPUS
FUZZ_CORPUS=$(mktemp -d)
trap 'rm -rf "$FUZZ_CORPUS"' EXIT
export SEED=${SEED:-1}

# They differ in how long an input takes.
nr_runs ()
{
    case $1 in
        pages) echo 120000 ;;
        rings) echo 1500 ;;
        assemble) echo 2500 ;;
        *) echo 10000 ;;
    esac
}

echo "fuzzers run by $(scripts/fuzz --which)"
for name in $(scripts/fuzz --list); do
    if [ -n "$FUZZ_SECONDS" ]; then
        scripts/fuzz --seconds "$FUZZ_SECONDS" "$name"
    else
        scripts/fuzz --runs "$(nr_runs "$name")" "$name"
    fi
done
