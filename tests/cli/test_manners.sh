#!/bin/sh
# Manners of every command: help, suggestions, closed pipes, locales without UTF-8, narrow terminals, a KUBECONFIG that names no
# file, an API server that is not there, and two installations on one cluster.
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
unset KUBECONFIG NAMESPACE
commands="up run explain recommend simulate validate replay manifests"

# say NAME CONDITION...: one more check, of a command's status.
say() {
    count=$((count + 1))
    name=$1
    shift
    if "$@"; then
        echo "ok $count - $name"
    else
        echo "not ok $count - $name"
        failed=$((failed + 1))
    fi
}

# Help.
same_help() {
    for command in $commands; do
        "$tandem" help "$command" >"$work/a" || return 1
        "$tandem" "$command" --help | cmp -s - "$work/a" || return 1
    done
}
say "help X is X --help" same_help
narrow_help() {
    for command in "" $commands; do
        # shellcheck disable=SC2086 # no command is no word
        "$tandem" $command --help | awk 'length($0) > 80 { print; wide = 1 } END { exit wide || NR < 10 }' || return 1
    done
}
say "help is no wider than 80 columns" narrow_help
check "help of the program" 0 'tandem help COMMAND' '' help

# Suggestions.
check "a command" 2 '' "^tandem: 'vlidate' is not a command; did you mean validate\?$" vlidate k8s
check "help of a command" 2 '' "^tandem: 'simulat' is not a command; did you mean simulate\?$" help simulat
check "none" 2 '' "^tandem: 'zzz' is not a command; 'tandem --help' lists them$" zzz
check "an option" 2 '' '^tandem: simulate: --sede: unknown option; did you mean --seed\?$' simulate --sede 3 x
check "an option with a value" 2 '' '^tandem: explain: --nmespace: unknown option; did you mean --namespace\?$' explain --nmespace=x vpa y
check "no option comes near" 2 '' "^tandem: up: --colour: unknown option; see 'tandem up --help'$" up --colour
check "a letter" 2 '' "^tandem: replay: -x: unknown option; see 'tandem replay --help'$" replay -x
check "a value is missing" 2 '' "^tandem: manifests: --image: needs a value; see 'tandem manifests --help'$" manifests --image
check "a value too many" 2 '' "^tandem: manifests: --uninstall: takes no value; " manifests --uninstall=yes
check "a flag" 2 '' '^tandem: run: --kubeconfg: unknown flag; did you mean --kubeconfig\?$' run --kubeconfg x
check "a kind" 2 '' "^tandem: explain: 'deploymnet': unknown kind; did you mean deployment\?$" explain deploymnet web
check "a policy" 2 '' "^tandem: replay: --policy: 'upstraem': unknown policy; did you mean upstream\?$" replay --policy upstraem x
check "a controller" 2 '' "^tandem: up: --controllers: 'updator': unknown controller; did you mean updater\?$" up --controllers updator
check "a gate" 2 '' "'Hpva': unknown gate; did you mean Hvpa\?$" simulate --feature-gates Hpva=true x

# A reader that goes away.
closed() {
    (
        "$tandem" "$@" 2>"$work/err"
        echo $? >"$work/status"
    ) | head -n 1 >/dev/null
    [ "$(cat "$work/status")" -eq 141 ] && [ ! -s "$work/err" ]
}
say "a closed pipe ends quietly" closed manifests --only crds
say "and does not wait for the end of a run" closed simulate "$top/examples/shop" --for 3d --events
full() { "$tandem" manifests --only crds >/dev/full 2>"$work/err"; [ $? -eq 2 ] && grep -q '^tandem: cannot write to standard output$' "$work/err"; }
say "a full disk is told" full

# Locales.
printable() { LC_ALL=C grep -q '[^ -~	]' "$1" && return 1 || return 0; }
plain() {
    LC_ALL=$1 LANG=$1 "$tandem" simulate "$top/examples/shop" --for 8h $2 >"$work/plain" 2>&1 && printable "$work/plain"
}
say "LC_ALL=C has a table in ASCII" plain C ""
say "and JSON" plain C "-o json"
say "with escapes" grep -q 'u2192 [0-9]* replica' "$work/plain"
say "and YAML" plain POSIX "-o yaml"
manifests_plain() { LC_ALL=C "$tandem" manifests --only crds >"$work/plain" && printable "$work/plain" && grep -q 'us|\\xB5s|ms' "$work/plain"; }
say "and manifests, with the same values" manifests_plain
decision() { LC_ALL=C.UTF-8 "$tandem" simulate "$top/examples/shop" --for 8h -o json | grep -q '"decision": "[0-9]* → [0-9]* replicas*: cpu [0-9]* % of [0-9]* %"'; }
say "UTF-8 has arrows, and decisions their own words" decision

# A narrow terminal: no line is wider, and what is missing is named.
narrow() {
    python3 - "$tandem" "$top/examples/shop" <<'P'
import fcntl, os, pty, struct, sys, termios
pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
    os.execv(sys.argv[1], ["tandem", "simulate", sys.argv[2], "--for", "10m", "-q"])
text = b""
try:
    while piece := os.read(fd, 4096):
        text += piece
except OSError:
    pass
lines = text.decode().replace("\r", "").splitlines()
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
assert max(map(len, lines)) <= 60, lines
assert any(line.startswith("a wider terminal also shows: ") for line in lines), lines
assert not lines[0].endswith("DROPPED"), lines
P
}
say "a narrow terminal drops columns and names them" narrow

# Configurations.
export KUBECONFIG="$work/absent"
check "KUBECONFIG without a file" 2 '' "^tandem: explain: KUBECONFIG: '$work/absent': there is no such file; " explain vpa web
check "the same for run" 2 '' "^tandem: run: KUBECONFIG: '$work/absent': there is no such file; " run
KUBECONFIG="$work/absent:$work/other"
check "several" 2 '' "^tandem: recommend: KUBECONFIG: '.*': none of these files exists; " recommend

# A server that is not there.
cat >"$work/dead" <<'Y'
apiVersion: v1
kind: Config
current-context: a
clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: a, user: {token: x}}]
contexts: [{name: a, context: {cluster: a, user: a}}]
Y
KUBECONFIG="$work/dead"
check "explain names the server" 2 '' '^tandem: explain: cannot reach the API server at https://127.0.0.1:1 ' explain vpa web
check "recommend too" 2 '' '^tandem: recommend: cannot reach the API server at https://127.0.0.1:1 ' recommend
timeout 4 "$tandem" run --address 127.0.0.1:0 2>"$work/run.err"
say "run says so at once, and again" grep -q 'cannot reach the API server (try 2).*next_try_in=4s' "$work/run.err"

# Two installations.
"$tandem" up --controllers none --listen 127.0.0.1:0 --kubeconfig "$work/up.kubeconfig" >"$work/up.out" 2>&1 &
up=$!
tries=50
until [ -s "$work/up.kubeconfig" ] || [ "$tries" -eq 0 ]; do
    tries=$((tries - 1))
    sleep 0.2
done
KUBECONFIG="$work/up.kubeconfig"
"$tandem" run --address 127.0.0.1:0 2>"$work/first.err" &
first=$!
tries=50
until grep -q 'pods are mutated' "$work/first.err" || [ "$tries" -eq 0 ]; do
    tries=$((tries - 1))
    sleep 0.2
done
timeout 30 "$tandem" run --address 127.0.0.1:0 2>"$work/second.err"
say "the second stops" test $? -eq 2
say "and says why" grep -qE "^tandem: run: a 'tandem run' outside the cluster already runs the [a-z]* here: lease kube-system/" "$work/second.err"
say "with nothing begun" sh -c "! grep -q ' started ' '$work/second.err'"
timeout 30 "$tandem" run --leader-elect --address 127.0.0.1:0 2>"$work/second.err"
say "so does one that elects" test $? -eq 2
kill "$first"
wait "$first"
say "the first ends in order" test $? -eq 0
"$tandem" run --address 127.0.0.1:0 2>"$work/third.err" &
third=$!
tries=25
until grep -q 'hvpa started' "$work/third.err" || [ "$tries" -eq 0 ]; do
    tries=$((tries - 1))
    sleep 0.2
done
say "then another begins at once" grep -q 'hvpa started' "$work/third.err"
kill -9 "$third"
"$tandem" run --address 127.0.0.1:0 2>"$work/fourth.err" &
fourth=$!
tries=150
until grep -q 'hvpa started' "$work/fourth.err" || [ "$tries" -eq 0 ]; do
    tries=$((tries - 1))
    sleep 0.2
done
say "leases of a process that died are taken over" grep -q 'hvpa started' "$work/fourth.err"
kill "$fourth" "$up"
wait
finish
