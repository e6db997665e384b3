#!/bin/sh
# The workflows of .github by actionlint, and that they run what there is. Exit 77, which skips it, where there is no actionlint to be had;
# in CI that is a failure.
. "$(dirname "$0")/lib.sh"
cd "$top" || exit 1
# say NAME CONDITION...
say() {
    count=$((count + 1))
    name=$1
    shift
    if "$@" >"$work/out" 2>&1; then
        echo "ok $count - $name"
    else
        echo "not ok $count - $name: $(head -c 1000 "$work/out")"
        failed=$((failed + 1))
    fi
}
targets_exist() {
    for target in $(grep -hE 'run: (.* )?make' .github/workflows/*.yml | grep -v apt-get | grep -oE 'make( |$).*' | tr ' ' '\n' | grep -xE '[a-z][a-z-]+' |
        grep -vx make | sort -u); do
        grep -qE "^$target:" Makefile || { echo "no target $target"; return 1; }
    done
    for script in $(grep -ohE '(^|[ (])scripts/[a-z-]+' .github/workflows/*.yml | tr -d ' (' | sort -u); do
        [ -x "$script" ] || { echo "no $script"; return 1; }
    done
}
say "targets and scripts that they run are there" targets_exist
no_secrets() { ! grep -nE 'secrets\.|docker://|ghcr\.io|docker\.io' .github/workflows/*.yml; }
say "they need no secret" no_secrets
pinned() { ! grep -nE 'uses: ' .github/workflows/*.yml | grep -vE 'uses: [a-z-]+/[a-z-]+@v[0-9]+$'; }
say "actions have a version" pinned
actionlint=$(scripts/actionlint 2>"$work/why") || {
    cat "$work/why"
    finish || exit 1
    [ -z "${CI:-}" ] || exit 1
    exit 77
}
say "actionlint has nothing to say" "$actionlint" -no-color .github/workflows/build.yml .github/workflows/test.yml .github/workflows/image.yml \
    .github/workflows/release.yml
printf 'on: push\njobs: {x: {runs-on: ubuntu-24.04, steps: [{run: "echo ${{ github.nothing }}"}]}}\n' >"$work/bad.yml"
refused() { ! "$actionlint" -no-color "$work/bad.yml" && return 0; }
say "and it sees a mistake" refused
finish
