#!/bin/sh
# Mixed and HPABiased with their defaults, where the HPA waits for one replica more while memory leaks: under HPABiased the VPA waits with it, and
# containers are killed; Mixed does not let one replica stand in the way.
#   tests/cli/test_mixed.sh TANDEM TOP
. "$(dirname "$0")/lib.sh"

# kills MODE: how many containers were killed for memory in a day.
kills() {
    mkdir -p "$work/$1"
    cp "$top"/tests/data/scenarios/mixed/*.yaml "$work/$1"
    sed -i "s/mode: Mixed/mode: $1/" "$work/$1/objects.yaml"
    "$tandem" simulate -q --seed 1 -o json "$work/$1/scenario.yaml" | sed -n 's/^ *"ooms": \([0-9]*\).*/\1/p' | head -1
}

mixed=$(kills Mixed)
biased=$(kills HPABiased)
count=1
if [ "${mixed:-1}" -eq 0 ] && [ "${biased:-0}" -gt 0 ]; then
    echo "ok 1 - Mixed had no kills, HPABiased $biased"
else
    echo "not ok 1 - kills: Mixed ${mixed:-unknown}, HPABiased ${biased:-unknown}"
    failed=1
fi
finish
