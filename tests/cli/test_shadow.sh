#!/bin/sh
# `tandem run --shadow` and `tandem recommend --shadow` from outside: the shop with its controllers in upstream's role, the shadow
# beside them, and both in one table; refusals in one line with their exit status.
. "$(dirname "$0")/lib.sh"

# Another program is played by curl.
command -v curl >/dev/null || { echo "curl is missing" && [ -z "${CI:-}" ] && exit 77; exit 1; }

check "shadow and controllers" 2 '' '^tandem: run: --shadow: only computes, so --controllers has nothing to act on$' run --shadow --controllers=updater
check "shadow in upstream's place" 2 '' '^tandem: run: --shadow: only computes, so --replace-upstream has nothing to act on$' run --shadow --replace-upstream
check "shadow and HPAs" 2 '' '^tandem: run: --shadow: only computes, so --horizontal has nothing to act on$' run --shadow --horizontal=builtin
check "manifests of both" 2 '' '^tandem: manifests: --shadow and --replace-upstream exclude each other$' manifests --shadow --replace-upstream
check "a table and a patch" 2 '' '^tandem: recommend: --shadow: not allowed with --patch$' recommend --shadow --patch a.yaml
check "a table from Prometheus" 2 '' '^tandem: recommend: --shadow: not allowed with --from prometheus$' recommend --shadow --from prometheus http://127.0.0.1:1
check "a table as CSV" 2 '' '^tandem: recommend: --shadow: not allowed with --output csv$' recommend --shadow -o csv

count=$((count + 1))
writes=$("$tandem" manifests --shadow --only rbac | awk '
    /^- apiGroups:/ {resources = ""}
    /^  [a-zA-Z]+:$/ {part = $1; next}
    part == "resources:" && /^  - / {resources = resources $2 " "}
    part == "verbs:" && /^  - (create|update|patch|delete)/ {print resources}' | sort -u | tr -d '\n')
if [ "$writes" = "leases verticalpodautoscalershadows " ]; then
    echo "ok $count - its rights have no write but of its own ($writes)"
else
    echo "not ok $count - its rights have no write but of its own: $writes"
    failed=$((failed + 1))
fi

KUBECONFIG="$work/kubeconfig"
export KUBECONFIG
"$tandem" up --quiet --page off "$top/examples/shop" --speed 60 --listen 127.0.0.1:0 --kubeconfig "$KUBECONFIG" >"$work/up.out" 2>"$work/up.err" &
up=$!
run=
trap 'kill $up $run 2>/dev/null; wait; rm -rf "$work"' EXIT
for _ in $(seq 100); do
    "$tandem" preflight --shadow >/dev/null 2>&1 && break
    sleep 0.2
done
check "before it was ever there" 2 '' "^tandem: recommend: verticalpodautoscalershadows\.autoscaling\.tandem\.dev is not served: nothing was computed yet; 'tandem manifests --shadow' installs what does$" recommend --shadow
server=$(sed -n 's/^ *server: "\{0,1\}\([^"]*\)"\{0,1\}$/\1/p' "$KUBECONFIG")
sed -n 's/^ *client-certificate-data: "\{0,1\}\([^"]*\)"\{0,1\}$/\1/p' "$KUBECONFIG" | base64 -d >"$work/crt"
sed -n 's/^ *client-key-data: "\{0,1\}\([^"]*\)"\{0,1\}$/\1/p' "$KUBECONFIG" | base64 -d >"$work/key"
name=verticalpodautoscalershadows.autoscaling.tandem.dev
"$tandem" manifests --shadow --only crds | sed '/^---$/d' >"$work/crd.yaml"
curl -sSk --cert "$work/crt" --key "$work/key" -X PATCH -H 'Content-Type: application/apply-patch+yaml' --data-binary "@$work/crd.yaml" \
    "$server/apis/apiextensions.k8s.io/v1/customresourcedefinitions/$name?fieldManager=test" >"$work/answer" 2>&1
"$tandem" run --shadow --recommender-interval=2s --address 127.0.0.1:0 >"$work/run.out" 2>&1 &
run=$!
for _ in $(seq 150); do
    "$tandem" recommend --shadow -o json 2>/dev/null | grep -q '"hasShadow": true' && break
    sleep 0.2
done
sleep 1
check "both in one table" 0 '^ *VPA +CONTAINER +RESOURCE +UPSTREAM +TANDEM +APART +UPSTREAM BOUNDS +TANDEM BOUNDS +UPSTREAM DOES +TANDEM DOES$' '' recommend --shadow
check "a row" 0 '^ *shop/db-leader +db +memory +[0-9]+Mi +[0-9]+Mi +[-+][0-9]+% +[0-9]+Mi\.\.[0-9]+Mi ' '' recommend --shadow -n shop
check "how many are alike" 0 '^[0-9]+ of [0-9]+ targets are within 5 % of upstream' '' recommend --shadow
check "what both would do" 0 '^The next pass of an updater by upstream.s recommendations evicts [0-9]+ and resizes [0-9]+ pods, by Tandem.s ' '' recommend --shadow
check "as data" 0 '^          "tandem": \{$' '' recommend --shadow --output json
check "as YAML" 0 '^    tandem:$|^  *tandem:$' '' recommend --shadow -o yaml
check "as a page" 0 '^[0-9]+ of [0-9]+ targets' '' recommend --shadow --report "$work/shadow.html"
count=$((count + 1))
if python3 - "$work/shadow.html" <<'PY'; then
import json, re, sys
page = open(sys.argv[1]).read()
data = json.loads(re.search(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', page, re.S)[1])
blocks = {block["name"]: block["rows"] for block in data["score"]["blocks"]}
rows = blocks["shop/db-leader db"]
assert [row["name"] for row in rows] == ["upstream", "tandem"], rows
titles = [column["title"] for column in data["score"]["columns"]]
assert titles == ["CPU", "CPU from", "CPU to", "memory", "memory from", "memory to", "evicts", "resizes"], titles
for row in rows:
    cpu, low, high, memory, least, most, evicts, resizes = row["cells"]
    assert low <= cpu <= high and least <= memory <= most and memory > 2**20 and evicts >= 0 and resizes >= 0, row
assert "targets are within 5 % of upstream's." in data["score"]["note"], data["score"]["note"]
PY
    echo "ok $count - the page has target, bounds and deeds of both"
else
    echo "not ok $count - the page has target, bounds and deeds of both"
    failed=$((failed + 1))
fi
check "a page that cannot be written" 2 '' "^tandem: recommend: " recommend --shadow --report "$work/none/shadow.html"
check "of an empty namespace" 0 '^0 of 0 targets' '' recommend --shadow -n default
kill "$run"
wait "$run"
code=$?
count=$((count + 1))
if [ "$code" -eq 0 ] && grep -q 'shadow started lease=tandem-shadow' "$work/run.out" && ! grep -qE 'ERROR|cannot write' "$work/run.out"; then
    echo "ok $count - it ran and ended in order"
else
    echo "not ok $count - it ran and ended in order: $code: $(tail -c 600 "$work/run.out")"
    failed=$((failed + 1))
fi
finish
