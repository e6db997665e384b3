#!/bin/sh
# A client-go 0.36 program against the local cluster: calls of every client it has, leader election, and informers whose caches
# must equal the server's lists after 2,000 objects have churned for SECONDS (60). Usage: clientgo.sh BUILD
. "$(dirname "$0")/lib.sh"
(cd "$top/tests/wire/clientgo" && go build -o "$build/clientgo" .) >"$work/build.log" 2>&1 ||
    { echo "FAIL the client-go program is built"; tail -20 "$work/build.log"; exit 1; }
cluster_start
"$build/clientgo" -seconds "${SECONDS:-60}" >"$work/lines" 2>"$work/klog" </dev/null
status=$?
cat "$work/lines"
passed=$((passed + $(grep -cE '^ok ' "$work/lines")))
failed=$((failed + $(grep -cE '^FAIL ' "$work/lines")))
[ "$status" -eq 0 ] || [ "$failed" -gt 0 ] || verdict "clientgo ends well" "$status" "$work/klog"
finish
