#!/bin/sh
# The official Python client (PyPI's kubernetes) against the local cluster: its ordinary calls, then list and watch for SECONDS (60)
# while 2,000 objects churn. Usage: python.sh BUILD
. "$(dirname "$0")/lib.sh"
seconds=${SECONDS:-60}
python=$build/python/bin/python
if [ ! -x "$python" ] || ! "$python" -c 'import kubernetes' 2>/dev/null; then
    { python3 -m venv "$build/python" && "$build/python/bin/pip" install -q 'kubernetes>=36'; } >"$work/pip.log" 2>&1 ||
        { echo "FAIL the Python client is installed"; tail -5 "$work/pip.log"; exit 1; }
fi

# lines NAME COMMAND...: runs a program that prints lines "ok NAME" and "FAIL NAME" and counts them.
lines() {
    lines_name=$1
    shift
    "$@" >"$work/lines" 2>&1 </dev/null
    lines_status=$?
    cat "$work/lines"
    passed=$((passed + $(grep -cE '^ok ' "$work/lines")))
    lines_failed=$(grep -cE '^FAIL ' "$work/lines")
    failed=$((failed + lines_failed))
    [ "$lines_status" -eq 0 ] || [ "$lines_failed" -gt 0 ] || verdict "$lines_name ends well" "$lines_status"
}

cluster_start
lines calls "$python" "$top/tests/wire/python/calls.py"
lines churn "$python" "$top/tests/wire/python/churn.py" "$seconds"
finish
