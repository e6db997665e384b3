#!/bin/sh
# deploy/ from outside: what is generated is what the program prints; the chart renders, with its default values, the objects of
# `tandem manifests` field by field, each value changes what it names, and a typo is refused. Exit 77, which skips the chart, where
# there is no helm to be had; in CI that is a failure.
. "$(dirname "$0")/lib.sh"

count=$((count + 1))
if "$top/scripts/deploy" "$tandem" --check >"$work/out" 2>&1; then
    echo "ok $count - deploy/ is what the program prints"
else
    echo "not ok $count - deploy/ is what the program prints: $(head -c 500 "$work/out")"
    failed=$((failed + 1))
fi
helm=$("$top/scripts/helm" 2>"$work/why") && python3 -c 'import yaml' 2>>"$work/why" || {
    cat "$work/why"
    finish || exit 1
    [ -z "${CI:-}" ] || exit 1
    exit 77
}
HELM_CACHE_HOME=$work/helm HELM_CONFIG_HOME=$work/helm HELM_DATA_HOME=$work/helm
export HELM_CACHE_HOME HELM_CONFIG_HOME HELM_DATA_HOME
unset KUBECONFIG
python3 -B "$top/tests/cli/chart_cases.py" "$tandem" "$helm" "$top/deploy/chart/tandem" >"$work/cases"
status=$?
sed "s/^\(ok\|not ok\) /\1 /" "$work/cases" | awk -v from="$count" '/^(ok|not ok) -/ {from++; sub(/ -/, " " from " -")} {print}'
count=$((count + $(grep -cE '^(ok|not ok) -' "$work/cases")))
failed=$((failed + $(grep -c '^not ok' "$work/cases") + (status > 1)))
finish
