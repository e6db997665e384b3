#!/bin/sh
# The same scenario and seed are the same bytes, three runs of each. With two compilers: scripts/determinism.
. "$(dirname "$0")/lib.sh"
for scenario in closed tasks loss; do
    count=$((count + 1))
    for run in 1 2 3; do
        "$tandem" simulate --quiet --output json "$top/tests/data/scenarios/$scenario" >"$work/$run" 2>"$work/err" </dev/null ||
            cat "$work/err" >"$work/$run.failed"
    done
    if [ -s "$work/1" ] && cmp -s "$work/1" "$work/2" && cmp -s "$work/1" "$work/3" && ! ls "$work"/*.failed >/dev/null 2>&1; then
        echo "ok $count - $scenario"
    else
        echo "not ok $count - $scenario: $(cat "$work"/*.failed 2>/dev/null | head -n 1)"
        failed=$((failed + 1))
    fi
done
finish
