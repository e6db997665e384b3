#!/bin/sh
# `tandem up` from outside: it starts, says where, keeps its kubeconfig to its owner, ends at once when asked to, and refuses in
# one line with exit 2.
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

# say NAME CONDITION...: one more check, of a command's status.
say() {
    count=$((count + 1))
    name=$1
    shift
    if "$@"; then
        echo "ok $count - $name"
    else
        echo "not ok $count - $name: $(head -c 300 "$work/up.out" "$work/up.err" 2>/dev/null)"
        failed=$((failed + 1))
    fi
}

# start ARGS...: in the background; returns when it has said where it is, or has ended.
start() {
    "$tandem" up --quiet "$@" >"$work/up.out" 2>"$work/up.err" &
    pid=$!
    for _ in $(seq 200); do
        if grep -q 'stop ' "$work/up.out" || ! kill -0 "$pid" 2>/dev/null; then
            return
        fi
        sleep 0.05
    done
}

# stop: asks it to end and leaves its status and how many tenths of a second that took.
stop() {
    kill -TERM "$pid"
    tenths=0
    while kill -0 "$pid" 2>/dev/null && [ "$tenths" -lt 100 ]; do
        sleep 0.1
        tenths=$((tenths + 1))
    done
    wait "$pid"
    status=$?
}

mode_is() { [ "$(stat -c %a "$1")" = "$2" ]; }
url_of() { sed -n 's/.*\(https:[^ ]*\).*/\1/p' "$work/up.out"; }
answers() { curl --silent --insecure --max-time 5 "$(url_of)/healthz" | grep -q ok; }
refuses() { curl --silent --insecure --max-time 5 "$(url_of)/api/v1/pods" | grep -q '"system:anonymous\\" cannot list'; }

start --listen 127.0.0.1:0 --kubeconfig "$work/first.kubeconfig"
say "it says where it is" grep -qE '^  API +https://127\.0\.0\.1:[0-9]+ .*KUBECONFIG=.*/first\.kubeconfig' "$work/up.out"
say "nothing on standard error" [ ! -s "$work/up.err" ]
say "its kubeconfig is its owner's alone" mode_is "$work/first.kubeconfig" 600
say "the kubeconfig names the server" grep -q "server: *\"\\?$(url_of)" "$work/first.kubeconfig"
if command -v curl >/dev/null; then
    say "health is told to everybody" answers
    say "strangers are refused" refuses
fi
port=$(url_of | sed 's/.*://')
check "a port that is taken" 2 '' "^tandem: up: .*127\\.0\\.0\\.1:$port.*in use" up --quiet --listen "127.0.0.1:$port" --kubeconfig "$work/x"
stop
say "it ends with 0 when asked to" [ "$status" -eq 0 ]
say "and at once" [ "$tenths" -lt 10 ]

start --data "$work/data" --listen 127.0.0.1:0 --kubeconfig "$work/data.kubeconfig"
say "a cluster in a folder" grep -q "local cluster in $work/data" "$work/up.out"
say "its authority's key is its owner's alone" mode_is "$work/data/ca.key" 600
say "its tokens' key is its owner's alone" mode_is "$work/data/token.key" 600
say "the folder is its owner's alone" mode_is "$work/data" 700
check "a folder that another one has" 2 '' "^tandem: up: .*$work/data" up --quiet --data "$work/data" --listen 127.0.0.1:0 --kubeconfig "$work/x"
cp "$work/data/ca.crt" "$work/before.crt"
stop
start --data "$work/data" --listen 127.0.0.1:0 --kubeconfig "$work/data.kubeconfig"
say "the authority is kept" cmp -s "$work/before.crt" "$work/data/ca.crt"
stop
say "it ends with 0 again" [ "$status" -eq 0 ]
: >"$work/data/token.key"
check "a key that was cut" 2 '' 'token\.key: has 0 bytes' up --quiet --data "$work/data" --listen 127.0.0.1:0 --kubeconfig "$work/x"

start --kubeconfig "$work/default.kubeconfig"
say "without --listen it finds a port" grep -q 'https://127.0.0.1:' "$work/up.out"
stop

check "an unknown option" 2 '' "^tandem: up: --nope: unknown option" up --nope
check "a missing value" 2 '' "^tandem: up: --listen: unknown option or missing value" up --listen
check "an argument" 2 '' "^tandem: up: 'now': tandem up takes no arguments" up now
check "a bad seed" 2 '' "^tandem: up: --seed: '-1'" up --seed -1
check "a bad number of nodes" 2 '' "^tandem: up: --nodes: 'many'" up --nodes many
check "an address that is none" 2 '' "^tandem: up: .*nonsense" up --quiet --listen nonsense --kubeconfig "$work/x"
check "an address by name" 2 '' "^tandem: up: .*localhost" up --quiet --listen localhost:0 --kubeconfig "$work/x"
check "a kubeconfig that cannot be written" 2 '' "^tandem: up: .*$work/no/such/x" up --quiet --listen 127.0.0.1:0 --kubeconfig "$work/no/such/x"
check "a folder that cannot be made" 2 '' "^tandem: up: .*/dev/null/x" up --quiet --data /dev/null/x --listen 127.0.0.1:0 --kubeconfig "$work/x"
check "help" 0 '^usage: tandem up ' '' up --help
finish
