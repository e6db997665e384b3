#!/bin/sh
# `tandem up` from outside: it starts, says where, keeps its kubeconfig to its owner, ends at once when asked to, and refuses in
# one line with exit 2. On a terminal (up_pty.py, where python3 is there) a live table; in a pipe a line for each event.
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
    : >"$work/up.out" # the run before said where it was, too
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
    say "health needs no credentials" answers
    say "strangers are refused" refuses
fi
port=$(url_of | sed 's/.*://')
check "a flag of a connection is none of it" 2 '' '^tandem: up: --kube-api-qps: unknown option' up --kube-api-qps 3
check "a bad value of a controller's flag" 2 '' "^tandem: up: --updater-interval: '0s': must be" up --updater-interval 0s
check "a port that is taken" 2 '' "^tandem: .*127\\.0\\.0\\.1:$port.*in use" up --quiet --listen "127.0.0.1:$port" --kubeconfig "$work/x"
stop
say "it ends with 0 when asked to" [ "$status" -eq 0 ]
say "and at once" [ "$tenths" -lt 10 ]

start --data "$work/data" --listen 127.0.0.1:0 --kubeconfig "$work/data.kubeconfig"
say "a cluster in a folder" grep -q "local cluster \"tandem\" in $work/data (3 nodes, 24 cores, 96Gi), seed 1" "$work/up.out"
say "its authority's key is its owner's alone" mode_is "$work/data/ca.key" 600
say "its tokens' key is its owner's alone" mode_is "$work/data/token.key" 600
say "the folder is its owner's alone" mode_is "$work/data" 700
check "a folder that another one has" 2 '' "^tandem: .*$work/data" up --quiet --data "$work/data" --listen 127.0.0.1:0 --kubeconfig "$work/x"
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

if command -v curl >/dev/null; then
    start --address 127.0.0.1:0 --updater-interval 30s --kubeconfig "$work/metrics.kubeconfig"
    metrics=$(sed -n 's|.*\(http://[^ ]*\)/metrics.*|\1|p' "$work/up.out")
    say "metrics of the controllers" sh -c "curl --silent --max-time 5 '$metrics/metrics' | grep -q '^# TYPE process_resident_memory_bytes'"
    say "and their health" sh -c "curl --silent --max-time 5 '$metrics/livez' | grep -q ok"
    stop
fi
start --nodes 1 --seed 5 --speed 0.5
say "one node" grep -q '(1 node, 8 cores, 32Gi), 0.5x speed, seed 5$' "$work/up.out"
stop
start --nodes 0 --kubeconfig "$work/none.kubeconfig"
say "no nodes" grep -q 'local cluster "tandem" (no nodes), seed 1$' "$work/up.out"
stop

# A scenario: an hour in two seconds, a line for each event.
start "$top/examples/shop" --speed 1800
for _ in $(seq 100); do
    grep -q '  Pod db-0  RoleTaken' "$work/up.out" && break
    sleep 0.1
done
say "a scenario has a name, speed and seed" grep -q 'local cluster "shop" (3 nodes, 24 cores, 96Gi), 1800x speed, seed 7$' "$work/up.out"
say "and a kubeconfig of that name" mode_is "$work/shop.kubeconfig" 600
say "what happens is told" grep -qE '^day 1 00:[0-9:]+  Deployment web  ScalingReplicaSet: Scaled up replica set ' "$work/up.out"
say "roles are given out" grep -qE '^day 1 00:[0-9:]+  Pod db-0  RoleTaken: is leader now' "$work/up.out"
say "after the greeting" [ "$(grep -n 'stop ' "$work/up.out" | cut -d: -f1)" -eq 4 ]
say "and nothing else" [ "$(tail -n +5 "$work/up.out" | grep -cvE '^day [0-9]+ [0-9:]{8}  [A-Za-z]+.*: ')" -eq 0 ]
say "no escape codes in a file" [ "$(tr -d -c '\033' <"$work/up.out" | wc -c)" -eq 0 ]
stop
say "a scenario ends with 0" [ "$status" -eq 0 ]
say "and at once too" [ "$tenths" -lt 10 ]
say "nothing on standard error" [ ! -s "$work/up.err" ]

count=$((count + 1))
if "$tandem" up "$top/examples/shop" --quiet --speed 600 --listen 127.0.0.1:0 2>"$work/up.err" | head -n 5 >"$work/up.out" && [ "$(wc -l <"$work/up.out")" -eq 5 ]; then
    echo "ok $count - a reader that leaves ends it"
else
    echo "not ok $count - a reader that leaves ends it"
    failed=$((failed + 1))
fi

if command -v python3 >/dev/null; then
    python3 "$top/tests/cli/up_pty.py" "$tandem" "$work" "$top/examples/shop" --speed 60 >"$work/pty.out" 2>&1
    sed "s/^\(not \)\{0,1\}ok - /&on a terminal: /" "$work/pty.out"
    say "a terminal" grep -q '^ok - a dumb terminal gets lines' "$work/pty.out"
    say "a terminal, no failures" [ "$(grep -c '^not ok' "$work/pty.out")" -eq 0 ]
else
    count=$((count + 1))
    echo "ok $count - a terminal # SKIP python3 is not there"
fi

check "an unknown option" 2 '' "^tandem: up: --nope: unknown option" up --nope
check "a missing value" 2 '' "^tandem: up: --listen: needs a value" up --listen
check "two arguments" 2 '' "^tandem: up: 'now': tandem up takes one scenario" up "$top/examples/shop" now
check "a scenario that is not there" 2 '' "^tandem: .*$work/none" up "$work/none"
check "a folder without a scenario" 2 '' "^tandem: .*$work/scenario.yaml" up "$work"
for speed in 0 0.09 10001 -1 fast '' 1x '[60]' 1e400; do
    check "speed '$speed'" 2 '' "^tandem: up: --speed: '.*': must be a number from 0.1 to 10000" up --speed "$speed"
done
check "a folder for a scenario" 2 '' "^tandem: up: --data: '$work/d': not allowed with a scenario" up "$top/examples/shop" --data "$work/d"
check "a folder at another speed" 2 '' "^tandem: up: --data: '$work/d': only allowed with --speed 1" up --speed 2 --data "$work/d"
check "nodes beside a scenario's" 2 '' "^tandem: --nodes: '2': not allowed, .*examples/shop/scenario.yaml defines its nodes" up "$top/examples/shop" --nodes 2
check "a bad seed" 2 '' "^tandem: up: --seed: '-1'" up --seed -1
check "a bad number of nodes" 2 '' "^tandem: up: --nodes: 'many'" up --nodes many
check "an address that is none" 2 '' "^tandem: .*nonsense" up --quiet --listen nonsense --kubeconfig "$work/x"
check "an address by name" 2 '' "^tandem: .*localhost" up --quiet --listen localhost:0 --kubeconfig "$work/x"
check "a kubeconfig that cannot be written" 2 '' "^tandem: .*$work/no/such/x" up --quiet --listen 127.0.0.1:0 --kubeconfig "$work/no/such/x"
check "a folder that cannot be made" 2 '' "^tandem: .*/dev/null/x" up --quiet --data /dev/null/x --listen 127.0.0.1:0 --kubeconfig "$work/x"
check "help" 0 '^usage: tandem up ' '' up --help
finish
