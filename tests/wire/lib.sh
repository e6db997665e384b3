# For the scripts of this folder: a cluster of `tandem up` in a folder of its own, and lines "ok NAME" or "FAIL NAME". Sourced with
# the build folder as first argument; leaves $build, $top, the folder $work, $cache, and puts the real binaries on the PATH.
set -u
build=$(cd "$1" && pwd)
top=$(cd "$(dirname "$0")/../.." && pwd)
cache=${REALPLANE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tandem-realplane}
PATH=$cache/bin:$PATH
tandem=$build/tandem
work=$(mktemp -d)
out=$work/out
cluster_pid=
passed=0
failed=0

wire_leave() {
    cluster_stop
    rm -rf "$work"
}
trap wire_leave EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# cluster_start [OPTIONS of tandem up]: waits until it serves; sets $KUBECONFIG, $url, $host_port and $cluster_pid.
cluster_start() {
    : >"$work/up.out"
    "$tandem" up --listen 127.0.0.1:0 --kubeconfig "$work/kubeconfig" --controllers none -q "$@" >"$work/up.out" 2>"$work/up.err" </dev/null &
    cluster_pid=$!
    if ! eventually 20 grep -q 'https://' "$work/up.out"; then
        echo "FAIL the cluster starts"
        cat "$work/up.err"
        exit 1
    fi
    KUBECONFIG=$work/kubeconfig
    export KUBECONFIG
    url=$(grep -oE 'https://[^ ]+' "$work/up.out" | head -1)
    host_port=${url#https://}
}

# cluster_stop [SIGNAL]
cluster_stop() {
    [ -n "$cluster_pid" ] || return 0
    kill "-${1:-TERM}" "$cluster_pid" 2>/dev/null
    wait "$cluster_pid" 2>/dev/null
    cluster_pid=
}

# eventually SECONDS COMMAND...: again and again until it succeeds; its output of the last try is in $work/eventually.
eventually() {
    eventually_end=$(($(date +%s) + $1))
    shift
    until "$@" >"$work/eventually" 2>&1; do
        [ "$(date +%s)" -lt "$eventually_end" ] || return 1
        sleep 0.1
    done
}

# verdict NAME STATUS [LOG]
verdict() {
    if [ "$2" -eq 0 ]; then
        passed=$((passed + 1))
        echo "ok   $1"
    else
        failed=$((failed + 1))
        echo "FAIL $1"
        [ -z "${3:-}" ] || sed 's/^/    /' "$3" | tail -25
    fi
}

# does NAME COMMAND...: succeeds.
does() {
    does_name=$1
    shift
    "$@" >"$out" 2>&1 </dev/null
    verdict "$does_name" $? "$out"
}

# says NAME PATTERN COMMAND...: succeeds, and a line of its output matches the extended regular expression.
says() {
    says_name=$1 says_pattern=$2
    shift 2
    "$@" >"$out" 2>&1 </dev/null && grep -qE -e "$says_pattern" "$out"
    says_status=$?
    [ "$says_status" -eq 0 ] || echo "(expected: $says_pattern)" >>"$out"
    verdict "$says_name" "$says_status" "$out"
}

# gives NAME TEXT COMMAND...: succeeds, and its standard output is exactly the text.
gives() {
    gives_name=$1 gives_text=$2
    shift 2
    gives_got=$("$@" 2>"$out" </dev/null) && [ "$gives_got" = "$gives_text" ]
    gives_status=$?
    [ "$gives_status" -eq 0 ] || printf 'got:\n%s\nexpected:\n%s\n' "$gives_got" "$gives_text" >>"$out"
    verdict "$gives_name" "$gives_status" "$out"
}

# refused NAME PATTERN COMMAND...: fails, and a line of its output matches.
refused() {
    refused_name=$1 refused_pattern=$2
    shift 2
    "$@" >"$out" 2>&1 </dev/null
    refused_status=$?
    [ "$refused_status" -ne 0 ] && grep -qE -e "$refused_pattern" "$out"
    refused_met=$?
    [ "$refused_met" -eq 0 ] || echo "(status $refused_status, expected: $refused_pattern)" >>"$out"
    verdict "$refused_name" "$refused_met" "$out"
}

# soon NAME SECONDS COMMAND...: succeeds within the time.
soon() {
    soon_name=$1
    shift
    eventually "$@"
    verdict "$soon_name" $? "$work/eventually"
}

# The last line of a script. A server that died, that complained, or that does not end well (a sanitizer's build says so then) is a
# failure whatever the clients saw.
finish() {
    if [ -n "$cluster_pid" ]; then
        kill -0 "$cluster_pid" 2>/dev/null
        verdict "the server is still there" $? "$work/up.err"
        kill -TERM "$cluster_pid" 2>/dev/null
        wait "$cluster_pid"
        finish_status=$?
        cluster_pid=
        [ "$finish_status" -eq 0 ] && [ ! -s "$work/up.err" ]
        verdict "the server ends in peace and had nothing to complain about" $? "$work/up.err"
    fi
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ]
}
