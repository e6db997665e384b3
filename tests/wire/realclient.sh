#!/bin/sh
# Our client against a real kube-apiserver: its list+watch cache follows 10,000 pods through a rollout, a compaction of etcd,
# restarts of the API server, and stretches in which it was frozen while the world went on. Each time its content is compared
# with the server's list, object by object, and its events are counted. Usage: tests/wire/realclient.sh BUILD
. "$(dirname "$0")/lib.sh"
kit=$top/../shared/realplane
client=$build/tests/wire/wire_realclient
bed=$work/bed
pods=${REALCLIENT_PODS:-10000}
some=$((pods / 10))
client_pid=

leave() {
    [ -z "$client_pid" ] || kill -KILL "$client_pid" 2>/dev/null
    REALPLANE_CACHE=$cache "$kit/down" "$bed" >/dev/null 2>&1
    wire_leave
}
trap leave EXIT

if [ ! -d "$kit" ]; then
    echo "FAIL the control plane kit is missing beside the tree: $kit"
    exit 1
fi
REALPLANE_CACHE=$cache "$top/tests/e2e/up" "$bed" --nodes 1 --hpa=none >"$out" 2>&1
verdict "a real control plane starts" $? "$out"
[ "$failed" -eq 0 ] || exit 1
. "$bed/ports"
KUBECONFIG=$bed/kubeconfig
export KUBECONFIG

pid_of() {
    sed -n "s/^$1 //p" "$bed/pids" | tail -n 1
}

# Pods that no scheduler and no kubelet looks at need the API server only: the others would just take its time.
for name in kube-controller-manager kube-scheduler kwok fakemetrics; do
    kill "$(pid_of $name)" 2>/dev/null
    sed -i "/^$name /d" "$bed/pids"
done

# ---- The client and what it knows ----

mkfifo "$work/commands"
"$client" "$KUBECONFIG" follow <"$work/commands" >"$work/answers" 2>"$work/client.err" &
client_pid=$!
exec 3>"$work/commands"

# ask COMMAND: the client's answer, one line.
ask() {
    ask_before=$(wc -l <"$work/answers")
    echo "$1" >&3
    ask_left=200
    while [ "$(wc -l <"$work/answers")" -le "$ask_before" ] && [ $ask_left -gt 0 ]; do
        sleep 0.05
        ask_left=$((ask_left - 1))
    done
    tail -n 1 "$work/answers"
}

# value KEY: of the last stat.
value() {
    sed -n "s/.*\b$1=\([^ ]*\).*/\1/p" "$work/stat"
}

has() { # has KEY VALUE: the client says so now
    ask stat >"$work/stat"
    cat "$work/stat"
    [ "$(value "$1")" = "$2" ]
}

resident_kib() {
    sed -n 's/^VmRSS:[[:space:]]*\([0-9]*\) kB/\1/p' "/proc/$client_pid/status"
}

# The whole list in one answer, by another program; only metadata, because that is quick. (For what calls itself curl the
# server would write it over many lines.)
server_list() {
    # shellcheck disable=SC2154 # api is a port in $bed/ports
    curl -sS -A wire --cacert "$bed/pki/ca.crt" --cert "$bed/pki/admin.crt" --key "$bed/pki/admin.key" \
        -H 'Accept: application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1' \
        "https://127.0.0.1:$api/api/v1/pods" >"$work/list.json" &&
        grep -oE '"metadata":\{"name":"[^"]*","namespace":"[^"]*","uid":"[^"]*","resourceVersion":"[^"]*"' "$work/list.json" |
        awk -F '"' '{print $10, $6, $14, $18}' | LC_ALL=C sort >"$work/list"
}

client_list() {
    rm -f "$work/dump.raw"
    ask "dump $work/dump.raw" >/dev/null
    LC_ALL=C sort "$work/dump.raw" >"$work/dump"
}

is_same() {
    client_list && cmp "$work/dump" "$work/list"
}

# compared NAME: within a minute the cache has exactly what the server lists: names, uids and versions.
compared() {
    server_list && [ -s "$work/list" ] && eventually 60 is_same
    compared_status=$?
    if [ $compared_status -ne 0 ]; then
        ask stat >>"$work/eventually"
        diff "$work/dump" "$work/list" | head -n 10 >>"$work/eventually"
        cat "$work/client.err" >>"$work/eventually"
    fi
    verdict "$1 ($(wc -l <"$work/list") pods, object by object)" $compared_status "$work/eventually"
}

# writes NAME OPERATION FROM TO [TEXT]
writes() {
    writes_name=$1
    shift
    does "$writes_name" "$client" "$KUBECONFIG" "$@"
}

# ---- The API server and etcd ----

# What the API server was started with, one argument a line.
arguments=$work/apiserver.args
tr '\0' '\n' <"/proc/$(pid_of kube-apiserver)/cmdline" >"$arguments"

api_stop() {
    kill -KILL "$(pid_of kube-apiserver)"
    while [ -e "/proc/$(pid_of kube-apiserver)" ]; do sleep 0.1; done
    sed -i '/^kube-apiserver /d' "$bed/pids"
}

# api_start [ARGUMENT]: as it was, and one argument more.
api_start() {
    api_more=${1:-}
    set --
    while IFS= read -r argument; do
        set -- "$@" "$argument"
    done <"$arguments"
    [ -z "$api_more" ] || set -- "$@" "$api_more"
    setsid "$@" >>"$bed/log/kube-apiserver" 2>&1 </dev/null &
    echo "kube-apiserver $!" >>"$bed/pids"
    eventually 60 kubectl get --raw /readyz
}

# All revisions of etcd but the newest are forgotten.
compact() {
    # shellcheck disable=SC2154 # etcd is a port in $bed/ports
    revision=$(curl -sS "http://127.0.0.1:$etcd/v3/kv/range" -d '{"key":"AA=="}' | sed -n 's/.*"revision":"\([0-9]*\)".*/\1/p')
    [ -n "$revision" ] &&
        curl -sS "http://127.0.0.1:$etcd/v3/kv/compaction" -d "{\"revision\":\"$revision\",\"physical\":true}" >"$work/compacted" &&
        ! grep -q '"error"' "$work/compacted"
}

# The client sees the API server go and does not see it come back: what is written meanwhile is in no buffer of its
# connection.
freeze() {
    api_stop
    kill -STOP "$client_pid"
    api_start
}

# thaw [ARGUMENT of the API server]: no version from before now can be watched from. Then the client goes on.
thaw() {
    compact && api_stop && api_start "$@"
    thaw_status=$?
    kill -CONT "$client_pid"
    return $thaw_status
}

# ---- The story ----

# 1. Pods arrive while the cache watches: each is one event.
soon "the cache has synced" 30 has synced 1
has synced 1 >/dev/null
added=$(value added)
writes "$pods pods are created" create 0 "$pods" one
soon "each of them was one addition" 30 has added $((added + pods))
compared "the cache is the server's list"

# 2. A rollout: every pod changes, each change is one event.
writes "every pod is labelled" label 0 "$pods" two
soon "each label was one change" 30 has changed "$pods"
kib_before=$(resident_kib)

# 3. A part is replaced by new pods of the same names, while etcd forgets its past.
writes "$some pods are deleted" delete 0 $some
does "etcd is compacted" compact
writes "$some pods come back under their names" create 0 $some three
soon "each deletion was told" 30 has deleted $some
soon "each new pod was told" 30 has added $((added + pods + some))
compared "the cache is the server's list after the replacement"

# 4. The API server is killed and comes back: the watch goes on, nothing is told twice.
api_stop
sleep 2
does "the API server starts again" api_start
writes "$some pods are labelled after its restart" label $some $((2 * some)) four
soon "each label was one change again" 60 has changed $((pods + some))
compared "the cache is the server's list after a restart"
[ "$(value deleted)" = "$some" ] && [ "$(value added)" = $((added + pods + some)) ]
verdict "the restart brought no other event" $? "$work/stat"

# 5. The client is frozen, pods go, and the versions it knows are forgotten: it lists again.
does "the client is frozen" freeze
writes "$some pods go while the client is frozen" delete 0 $some
does "their versions are forgotten" thaw
soon "every missed deletion was told" 90 has deleted $((2 * some))
compared "the cache is the server's list after the thaw"
[ "$(value expired)" -ge 1 ] && [ "$(value lists)" -ge 2 ]
verdict "its version had expired and it listed again ($(value lists) lists, $(value pages) pages)" $? "$work/stat"

# 6. The same with pods replaced under their names and a server that has no streaming lists: it lists in pages.
does "the client is frozen again" freeze
writes "$some pods are deleted meanwhile" delete $some $((2 * some))
writes "and come back" create $some $((2 * some)) five
does "their versions are forgotten, and there are no streaming lists" thaw --feature-gates=WatchList=false
soon "every missed replacement was told" 90 has deleted $((3 * some))
soon "with its addition" 30 has added $((added + pods + 2 * some))
compared "the cache is the server's list after the second thaw"
# What changed was on the first pages, so all of it may have been told before the last page came.
has_pages() {
    has synced 0 >/dev/null
    [ "$(value pages)" -ge "$1" ]
}
eventually 30 has_pages $(((pods - some) / 500)) && [ "$(value expired)" -ge 2 ]
verdict "its version had expired and it listed in pages ($(value pages) of them)" $? "$work/stat"

# 7. Memory is flat and calls are few.
writes "$some pods are labelled once more" label $some $((2 * some)) six
compared "the cache is the server's list at the end"
kib_after=$(resident_kib)
has synced 0 >/dev/null
echo "     memory: $kib_before KiB after the first rollout, $kib_after KiB at the end; $(value bytes) bytes for $(value objects) pods"
[ "$kib_after" -le $((kib_before * 5 / 4 + 2048)) ]
verdict "memory is flat" $? "$work/stat"
echo "     calls: $(value calls) in all, at most $(value calls_per_second_max) in a second; $(value failures) attempts failed"
[ "$(value calls_per_second_max)" -le 40 ]
verdict "at most 40 calls in any second" $? "$work/stat"
echo quit >&3
exec 3>&-
wait "$client_pid"
verdict "the client ends well" $? "$work/client.err"
client_pid=
finish
