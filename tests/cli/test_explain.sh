#!/bin/sh
# `tandem explain` from outside: the shop of the examples at work, each kind explained as text and as data; refusals in one line
# with their exit status.
. "$(dirname "$0")/lib.sh"

check "help of explain" 0 '^usage: tandem explain KIND NAME' '' explain --help
check "no kind" 2 '' '^tandem: explain: takes a kind and a name' explain
check "no name" 2 '' '^tandem: explain: takes a kind and a name' explain vpa
check "too many words" 2 '' '^tandem: explain: takes a kind and a name' explain vpa a b
check "an unknown kind" 2 '' "^tandem: explain: 'node': must be one of vpa, hpa, hvpa, pod, deployment" explain node a
check "an unknown flag" 2 '' '^tandem: explain: --nope: unknown option' explain --nope vpa a
check "an unknown output" 2 '' "^tandem: explain: --output: 'wide': use text, json or yaml" explain vpa a --output wide
check "no such kubeconfig" 2 '' "^tandem: explain: kubeconfig $work/none: " explain vpa a --kubeconfig "$work/none"

cat >"$work/refused" <<'END'
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c}}]
current-context: c
END
check "a server that is not there" 2 '' '^tandem: explain: .*127\.0\.0\.1' explain vpa a --kubeconfig "$work/refused"
check "no such context" 2 '' '^tandem: explain: .*nope' explain vpa a --kubeconfig "$work/refused" --context nope

KUBECONFIG="$work/kubeconfig"
export KUBECONFIG
mkdir "$work/shop"
cp "$top"/examples/shop/* "$work/shop"
sed '/^kind: Hvpa$/,/^spec:/ s|^  name: web$|&\n  annotations: {tandem.dev/estimator: track}|' "$top/examples/shop/shop.yaml" >"$work/shop/shop.yaml"
"$tandem" up --quiet "$work/shop" --speed 600 --listen 127.0.0.1:0 --kubeconfig "$KUBECONFIG" >"$work/up.out" 2>"$work/up.err" &
pid=$!
trap 'kill "$pid" 2>/dev/null; wait "$pid"; rm -rf "$work"' EXIT
# Half an hour of the shop, three seconds of ours, and then some for a loaded machine.
for _ in $(seq 150); do
    if "$tandem" explain vpa db-leader -n shop 2>/dev/null | grep -q 'percentile 90 of use'; then
        break
    fi
    sleep 0.2
done

check "a VPA" 0 '^db-leader \(VerticalPodAutoscaler shop/db-leader, InPlaceOrRecreate, of StatefulSet db, pods with role=leader\)' '' \
    explain vpa db-leader -n shop
check "what it recommends" 0 '^  recommends  db: cpu [0-9m.]+, memory [0-9.]+[MG]i  \(no update for requests from ' '' explain vpa/db-leader -n shop
check "and why" 0 '^              cpu: percentile 90 of use is [0-9]+m?, with a margin of 15 % ' '' explain vpa db-leader -n shop
check "and what of its pods" 0 '^  pods        db-[0-2]: ' '' explain vpa db-leader -n shop
check "an Hvpa" 0 '^web \(Hvpa shop/web, RatioBased 1:1, replicas 2\.\.20, ratio stage 2\.\.18\) decided at 2' '' explain hvpa web -n shop
check "what it wants" 0 '^  wanted  horizontally  [0-9]+ replicas ' '' explain hvpa web --namespace shop
check "by its estimator" 0 '^          vertically +cpu .*(three quarters of the last hour|a busy hour of the first day) [0-9]+m' '' explain hvpa web -n shop
check "an HPA" 0 '^api \(HorizontalPodAutoscaler shop/api of Deployment/api, replicas 2\.\.10\) decided at 2' '' explain hpa api -n shop
check "of which group" 0 '^  group       autoscaling/v2' '' explain hpa api -n shop
check "which pods it counts" 0 '^  counted     api-[^ ]+' '' explain hpa api -n shop
check "and as data" 0 '^        "counted": true' '' explain hpa api -n shop -o json
check "a pod" 0 '^  managed     by VPA db-(leader|follower), mode InPlaceOrRecreate: its target is StatefulSet db and its selector ' '' \
    explain pod db-1 -n shop
check "and whose it is not" 0 '^  not by      VPA db-(leader|follower): its selector .* does not match labels ' '' explain pod db-1 -n shop
check "a workload" 0 '^  acted on by Hvpa web: tandem explain hvpa web -n shop$' '' explain deployment web -n shop
check "two VPAs on one" 0 'VPA db-follower: tandem explain vpa db-follower -n shop$' '' explain sts db -n shop
check "as data" 0 '^  "kind": "VerticalPodAutoscaler",' '' explain vpa db-leader -n shop --output json
check "its account too" 0 '^      "estimator": ' '' explain vpa db-leader -n shop -o json
check "as YAML" 0 '^kind: VerticalPodAutoscaler$' '' explain vpa db-leader -n shop -o yaml
check "at which values an HPA moves" 0 '^  would change it: scales out: cpu resource utilization \(percentage of request\) above 8[0-9]%$' '' explain hpa api -n shop
check "and as data" 0 '^        "scalesOutAbove": "8[0-9]%"' '' explain hpa api -n shop -o json
for what in "vpa batch" "hpa api" "hvpa web" "pod db-0"; do
    count=$((count + 1))
    # shellcheck disable=SC2086 # two words
    "$tandem" explain $what -n shop | grep -v '^  annotations\|^  *vpaUpdates\|^  counted  \|^  excluded  ' >"$work/said"
    if [ -s "$work/said" ] && ! grep -E '[0-9]e[+-][0-9]|[0-9]{8}' "$work/said"; then
        echo "ok $count - $what has numbers for reading"
    else
        echo "not ok $count - $what has numbers for reading"
        failed=$((failed + 1))
    fi
done
check "an Hvpa as data" 0 '^  "account": ' '' explain hvpa web -n shop -o json
if command -v python3 >/dev/null; then
    for what in "vpa cache" "hpa api" "hvpa web" "pod db-0" "sts db"; do
        count=$((count + 1))
        # shellcheck disable=SC2086 # two words
        if "$tandem" explain $what -n shop -o json | python3 -c 'import json, sys; assert json.load(sys.stdin)["says"] is not None'; then
            echo "ok $count - $what is JSON"
        else
            echo "not ok $count - $what is JSON"
            failed=$((failed + 1))
        fi
    done
fi
check "a VPA that is not there" 1 '' '^tandem: explain: VerticalPodAutoscaler shop/nope: not found$' explain vpa nope -n shop
check "an HPA that is not there" 1 '' '^tandem: explain: HorizontalPodAutoscaler shop/nope: .*not found' explain hpa nope -n shop
check "a pod that is elsewhere" 1 '' '^tandem: explain: Pod default/db-0: not found$' explain pod db-0 -n default

finish
