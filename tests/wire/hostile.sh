#!/bin/sh
# Requests that no decent client sends: 4xx or a closed connection, and the server goes on.
# Usage: tests/wire/hostile.sh BUILD
. "$(dirname "$0")/lib.sh"
cluster_start
"$build/tests/wire/wire_hostile" "$KUBECONFIG" >"$out" 2>&1
status=$?
cat "$out"
passed=$(grep -cE '^ok ' "$out")
failed=$(grep -cE '^FAIL ' "$out")
[ "$status" -eq 0 ] || [ "$failed" -gt 0 ]
verdict "the hostile client came to its end" $?
finish
