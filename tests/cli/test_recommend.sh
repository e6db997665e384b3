#!/bin/sh
# `tandem recommend` from outside: right sizes of the shop of the examples as a table, as data, as YAML and as CSV, with too little
# data and with enough, floors, and manifests edited in place and as a diff; refusals in one line with their exit status.
. "$(dirname "$0")/lib.sh"

say() {
    name=$1
    shift
    count=$((count + 1))
    if "$@"; then
        echo "ok $count - $name"
    else
        echo "not ok $count - $name"
        failed=$((failed + 1))
    fi
}

check "help" 0 '^usage: tandem recommend' '' recommend --help
check "no words" 2 '' "^tandem: recommend: 'web': takes options only" recommend web
check "its outputs" 2 '' "^tandem: recommend: --output: 'wide': use table, json, yaml or csv" recommend --output wide
check "its flags" 2 '' '^tandem: recommend: --to: unknown option' recommend --to x
check "its estimators" 2 '' "^tandem: recommend: --estimator: 'best': use upstream, adaptive, .*track-calm$" recommend --estimator best
check "samples are a number" 2 '' "^tandem: recommend: --min-samples: 'few': must be a whole number" recommend --min-samples few
check "history is a duration" 2 '' "^tandem: recommend: --min-history: 'long': must be a duration such as 6h" recommend --min-history long
check "floors are quantities" 2 '' "^tandem: recommend: --cpu-min: '1x': must be a quantity such as 10m" recommend --cpu-min 1x
check "of memory too" 2 '' "^tandem: recommend: --memory-min: '-1': must be a quantity such as 64Mi" recommend --memory-min=-1
check "a dry run of what" 2 '' '^tandem: recommend: --dry-run: only allowed with --patch' recommend --dry-run
check "an output of files" 2 '' '^tandem: recommend: --output: not allowed with --patch' recommend --patch a.yaml -o json

cat >"$work/refused" <<'END'
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c}}]
current-context: c
END
check "a server that is not there" 2 '' '^tandem: recommend: .*127\.0\.0\.1' recommend --kubeconfig "$work/refused"

KUBECONFIG="$work/kubeconfig"
export KUBECONFIG
"$tandem" up --quiet "$top/examples/shop" --speed 600 --listen 127.0.0.1:0 --kubeconfig "$KUBECONFIG" >"$work/up.out" 2>"$work/up.err" &
pid=$!
trap 'kill "$pid" 2>/dev/null; wait "$pid"; rm -rf "$work"' EXIT
# Half an hour of the shop, three seconds of ours, and then some for a loaded machine.
for _ in $(seq 150); do
    if "$tandem" recommend -n shop --min-samples 30 2>/dev/null | grep -q 'vpa/db-leader .*→ [0-9]'; then
        break
    fi
    sleep 0.2
done

few="--min-samples 1"
check "right sizes" 0 '^ shop +sts/db x1 +db +vpa/db-leader +[0-9.]+m? → [0-9.]+m? ' '' recommend $few
check "by another estimator" 0 '^ shop +sts/db x1 +db +vpa/db-leader +[0-9.]+m? → [0-9.]+m? ' '' recommend --estimator adaptive $few
check "with totals" 0 '^total: [0-9.]+m? → [0-9.]+m? cpu.*, [0-9.]+[MGT]i → [0-9.]+[MGT]i memory.*; ' '' recommend -n shop $few
check "too little data is said" 0 '^ shop +deploy/worker x[0-9] +worker +- +400m → \? +256Mi → \? +not enough data \([0-9]+ samples?\)$' '' \
    recommend -n shop
check "and counted" 0 '^[0-9]+ containers? left out of the total: not enough data' '' recommend -n shop
check "history is enough too" 0 '^ shop +deploy/worker .*400m → [0-9]' '' recommend -n shop --min-history 0s
check "a floor is a floor" 0 '^ shop +deploy/worker .* → ≤ 5 \(floor\) +256Mi → ≤ 4Gi \(floor\)$' '' recommend -n shop $few --cpu-min 5 --memory-min 4Gi
check "and no want" 0 '^total: .* cpu \(and floors of [0-9.]+\), .* memory \(and floors of [0-9.]+Gi\)' '' recommend -n shop $few --cpu-min 5 --memory-min 4Gi
check "of a namespace without pods" 0 '^total: 0 → 0 cpu' '' recommend -n default
check "of one that is not there" 2 '' "^tandem: recommend: namespace 'nope' does not exist$" recommend -n nope
check "as data" 0 '^      "sizedBy": "vpa/db-leader",' '' recommend -o json
check "with what is missing" 0 '^      "enoughData": false,' '' recommend -o json
check "as YAML" 0 '^kind: Deployment$' '' recommend --output yaml $few
check "with comments" 0 '^# container worker: [0-9]+ samples? over .*, confidence 0\.[0-9]+' '' recommend --output yaml $few
mkdir "$work/untouched"
cp "$top/examples/shop/shop.yaml" "$work/untouched"
check "no YAML of too little" 0 '' '' recommend --output yaml -n shop
check "nor an edit, which is said" 0 'shop.yaml: 0 containers changed$' '^tandem: recommend: [0-9]+ containers? left out: not enough data ' \
    recommend -n shop --patch "$work/untouched/shop.yaml"
check "as CSV" 0 '^shop,Deployment,worker,worker,,[0-9],400,[0-9]+,false,268435456,[0-9]+,(true|false),true,[0-9]+,[0-9]+,[0-9.]+,0.$' '' \
    recommend -o csv $few
check "a report" 0 '^total: ' '' recommend -n shop $few --report "$work/sizes.html"
say "has the same rows" grep -q '"name":"shop/worker worker","kind":"Deployment","rows":' "$work/sizes.html"
say "and the YAML" grep -q 'kind: Deployment' "$work/sizes.html"
check "a report that cannot be written" 2 '' '^tandem: recommend: --report: .*absent/x.html: cannot write into ' recommend -n shop --report "$work/absent/x.html"
check "with a header" 0 '^namespace,kind,workload,container,sizedBy,pods,cpuRequestMilli,' '' recommend -o csv

# ---- Manifests ----

# A pod of the report that began just now has no samples yet, which is said whatever else is edited.
beside='^tandem: recommend: [0-9]+ containers? left out: not enough data '
cp "$top/examples/shop/shop.yaml" "$work/shop.yaml"
chmod 640 "$work/shop.yaml"
check "a diff" 0 '^\+          requests: \{cpu: [0-9]+m, memory: [0-9]+Mi\}' '' recommend -n shop $few --patch "$work/shop.yaml" --dry-run
say "which applies" sh -c 'cp "$0/shop.yaml" "$0/copy.yaml" && sed "s,^\(---\|+++\) [ab]/.*,\1 copy.yaml," "$0/out" >"$0/diff" && cd "$0" && git apply -p0 diff && ! cmp -s "$0/copy.yaml" "$0/shop.yaml"' "$work"
say "and leaves the file" cmp -s "$work/shop.yaml" "$top/examples/shop/shop.yaml"
# Those of api and worker, and that of the report where a busy machine comes to half past midnight.
check "in place" 0 'shop.yaml: [23] containers changed$' '' recommend -n shop $few --patch "$work/shop.yaml"
say "with its mode" [ "$(stat -c %a "$work/shop.yaml")" = 640 ]
say "only requests and limits" sh -c '! diff "$0" "$1" | grep "^[<>]" | grep -vE "^[<>] +(requests|limits): "' "$top/examples/shop/shop.yaml" "$work/shop.yaml"
say "nothing else lies there" sh -c '[ "$(ls "$0" | grep -c "^shop.yaml")" = 1 ]' "$work"

cat >"$work/forms.yaml" <<'END'
# A comment with ä.
apiVersion: apps/v1
kind: Deployment
metadata: {name: worker}   # no namespace: -n
spec:
  template:
    spec:
      containers:
      - name: other      # not in the cluster
        image: x
      - name: "worker"
        image: y         # nothing asked for yet
      volumes: []
END
sed 's/$/\r/' "$work/forms.yaml" >"$work/crlf.yaml"
printf '{"kind": "List", "apiVersion": "v1", "items": [{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "worker"}, "spec": {"template": {"spec": {"containers": [{"name": "worker", "resources": {"requests": {"cpu": 4}, "limits": {"cpu": 8}}}]}}}}]}\n' >"$work/list.json"
printf 'apiVersion: apps/v1\nkind: DeploymentList\nitems:\n- metadata: {name: worker, namespace: shop}\n  spec: {template: {spec: {containers: [{name: worker}]}}}\n' >"$work/kinds.yaml"
cat >"$work/anchor.yaml" <<'END'
x-small: &small {requests: {cpu: 100m, memory: 64Mi}}
apiVersion: apps/v1
kind: Deployment
metadata: {name: worker, namespace: shop}
spec: {template: {spec: {containers: [{name: worker, resources: *small}]}}}
END
cp "$work/anchor.yaml" "$work/anchor.old"
check "several files" 1 'forms.yaml: 1 container changed' \
    "anchor.yaml: Deployment worker, container worker: line [0-9]+: the value is an alias; change its anchor by hand$" \
    recommend -n shop $few --patch "$work/forms.yaml" "$work/crlf.yaml" "$work/list.json" "$work/anchor.yaml"
say "a block that was missing" sh -c 'tr "\n" "|" <"$0" | grep -qE "image: y         # nothing asked for yet\|        resources:\|          requests:\|            cpu: [0-9]+m\|            memory: [0-9]+Mi\|      volumes"' "$work/forms.yaml"
say "the rest as it was" [ "$(grep -vcE '^ +(resources:|requests:|cpu: .*|memory: .*)$' "$work/forms.yaml")" = 13 ]
say "line ends stay" [ "$(grep -c "$(printf '\r')\$" "$work/crlf.yaml")" = "$(wc -l <"$work/crlf.yaml")" ]
say "JSON stays JSON, limits in proportion" sh -c 'grep -oE "\"cpu\": \"?[0-9.]+m?" "$0" | tr -d "\"mcpu: " | paste -sd" " - | { read -r r l; [ "$l" -eq $((2 * r)) ]; }' "$work/list.json"
check "a list of a kind" 0 'kinds.yaml: 1 container changed$' '' recommend -n shop $few --patch "$work/kinds.yaml"
say "an alias is left alone" cmp -s "$work/anchor.yaml" "$work/anchor.old"
check "no such file" 2 '' "^tandem: recommend: $work/none.yaml: No such file" recommend -n shop $few --patch "$work/none.yaml"
printf 'a: [\n' >"$work/broken.yaml"
check "a file that is no YAML" 2 '' "^tandem: recommend: $work/broken.yaml: line " recommend -n shop $few --patch "$work/broken.yaml"
sed -i 's/ cpu: .*/ cpu: 77/' "$work/forms.yaml"
ln -s forms.yaml "$work/link.yaml"
check "a link" 0 'link.yaml: 1 container changed' '' recommend -n shop $few --patch "$work/link.yaml"
say "stays a link" [ -L "$work/link.yaml" ]
say "and is followed" grep -qE '^ +cpu: [0-9]+m$' "$work/forms.yaml"
finish
