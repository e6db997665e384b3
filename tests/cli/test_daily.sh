#!/bin/sh
# A plain daily load, by an HPA alone and by an Hvpa in each of its modes: no request is dropped that the HPA alone would serve.
#   tests/cli/test_daily.sh TANDEM TOP [DURATION [COUPLING...]]    until the second noon and the modes' own couplings, unless told otherwise
. "$(dirname "$0")/lib.sh"
span=${3:-38h}
shift $(($# > 2 ? 3 : 2))
[ $# -gt 0 ] || set -- ''
daily=$top/tests/data/scenarios/daily

# play NAME SCALER: the scenario under that scaler; says how many requests it dropped.
play() {
    mkdir -p "$work/$1"
    cp "$daily/objects.yaml" "$daily/scenario.yaml" "$work/$1"
    cp "$2" "$work/$1/scaler.yaml"
    "$tandem" simulate -q --for "$span" -o json "$work/$1/scenario.yaml" | sed -n 's/^ *"dropped": \([0-9.e+]*\).*/\1/p' | head -1
}

alone=$(play alone "$daily/hpa.yaml")
for mode in HPAPreferred HPABiased VPABiased Mixed RatioBased; do
    for coupling in "$@"; do
        name=$mode${coupling:+-$coupling}
        sed "s/mode: .*/mode: $mode${coupling:+\n  coupling: $coupling}/" "$daily/hvpa.yaml" >"$work/$name.yaml"
        dropped=$(play "$name" "$work/$name.yaml")
        count=$((count + 1))
        if awk "BEGIN { exit !(\"$dropped\" != \"\" && \"$alone\" != \"\" && $dropped + 0 <= $alone + 1) }"; then
            echo "ok $count - $name dropped $dropped of $span, the HPA alone $alone"
        else
            echo "not ok $count - $name dropped $dropped of $span, the HPA alone $alone"
            failed=$((failed + 1))
        fi
    done
done
finish
