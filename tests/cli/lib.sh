# For the tests of the program from outside: sourced by each with the program and the top of the tree as arguments. Leaves
# $tandem, $top and the folder $work, which goes away at the end.
set -u
export LC_ALL=C.UTF-8 # what is printed in other locales is tested where it matters
tandem=$1
top=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
count=0
failed=0
beside=

# check NAME STATUS STDOUT-PATTERN STDERR-PATTERN ARGS...: patterns are extended regular expressions over the whole text, the
# empty one asks for no output at all. Errors that match $beside are not looked at.
check() {
    name=$1 status=$2 out_pattern=$3 err_pattern=$4
    shift 4
    count=$((count + 1))
    "$tandem" "$@" >"$work/out" 2>"$work/err" </dev/null
    got=$?
    [ -z "$beside" ] || sed -i -E "/$beside/d" "$work/err"
    why=
    [ "$got" -eq "$status" ] || why="exit status $got, expected $status"
    if [ -z "$out_pattern" ]; then
        [ ! -s "$work/out" ] || why="$why; output: $(head -c 300 "$work/out")"
    else
        grep -qE "$out_pattern" "$work/out" || why="$why; output: $(head -c 300 "$work/out")"
    fi
    if [ -z "$err_pattern" ]; then
        [ ! -s "$work/err" ] || why="$why; errors: $(head -c 300 "$work/err")"
    else
        grep -qE "$err_pattern" "$work/err" || why="$why; errors: $(head -c 300 "$work/err")"
        [ "$(wc -l <"$work/err")" -eq 1 ] || why="$why; more than one line of errors"
    fi
    if [ -z "$why" ]; then
        echo "ok $count - $name"
    else
        echo "not ok $count - $name: $why"
        failed=$((failed + 1))
    fi
}

# The last line of a test: how many checks there were; fails when one has.
finish() {
    printf '%s\n' "1..$count"
    [ "$failed" -eq 0 ]
}
