#!/bin/bash
# test-killed-client: clients that are killed with requests under way end
# neither the server nor other clients, and leave no thread and no descriptor;
# over TCP and with TLS too.
#
#   ROUNDS=   killed clients of each kind, default 4
#
# run-tests: no-sanitizer
# They follow calls and returns, and here a function of nbdkit is made to return.
#
# SPDX-License-Identifier: BSD-3-Clause

cd "$(dirname "$0")/../.."
source tests/functions.sh
source tests/nbd-servers.sh
need nbdkit psktool
rounds=${ROUNDS:-4}

make_members 6 40M
create_array k=4 m=2 >/dev/null
psktool -u alice -p "$tmp/keys.psk" >/dev/null 2>&1 || fail "psktool"

# kill_clients KIND URI [FLAG...]: of a server with these flags
kill_clients ()
{
  local kind=$1 uri=$2 rc=0
  shift 2
  raid_flags=("$@")
  start_raid
  timeout $((150 * rounds)) \
    /usr/bin/python3 tests/clients/killed-clients.py "$raid_pid" \
    "$uri" "$rounds" >"$tmp/out" 2>"$tmp/err" || rc=$?
  if [ $rc -ne 0 ]; then
    cat "$tmp/err" >&2
    [ $rc -ne 75 ] || exit 75
    fail "$kind: $(tail -n 1 "$tmp/err")"
  fi
  is_ours "$raid_pid" || fail "$kind: the server has ended"
  echo "$0: $kind: $(cat "$tmp/out")"
  stop_raid
}

tls=(--tls=require --tls-psk="$tmp/keys.psk")
kill_clients plain "$uri"
kill_clients TLS "nbds+unix://alice@/?socket=$sock&tls-psk-file=$tmp/keys.psk" \
  "${tls[@]}"
port=$(free_port)
raid_listen=(-i 127.0.0.1 -p "$port")
kill_clients TCP "nbd://127.0.0.1:$port"
kill_clients "TLS on TCP" \
  "nbds://alice@127.0.0.1:$port/?tls-psk-file=$tmp/keys.psk" "${tls[@]}"
exit 0
