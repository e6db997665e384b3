"""shards.py REAL-KUBECONFIG LOCAL-KUBECONFIG SELECTORS: shard selectors on two API servers, and every answer that differs."""

import http.client
import json
import random
import sys
import threading
import time
import urllib.parse

from planes import Plane

NAMESPACES = [f"team-{i}" for i in range(1, 41)] + [f"ns-{c}" for c in "abcdefgh"] + ["shop", "billing", "web", "x"]
PER_NAMESPACE = 3
FULL = 1 << 64
FIELD = "object.metadata.namespace"
TOYS = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "toys.shards.example"},
        "spec": {"group": "shards.example", "scope": "Namespaced",
                 "names": {"plural": "toys", "kind": "Toy", "singular": "toy", "listKind": "ToyList"},
                 "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                     "type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}}
SECRETS, TOYS_PATH = "/api/v1/secrets", "/apis/shards.example/v1/toys"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
PARTIAL = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


def ranges(*pairs, field=FIELD):
    end = lambda n: "0x10000000000000000" if n == FULL else f"0x{n:016x}"
    return " || ".join(f"shardRange({field}, '0x{lo:016x}', '{end(hi)}')" for lo, hi in pairs)


def query(path, **values):
    return path + "?" + urllib.parse.urlencode(values)


def ask(plane, method, path, accept="application/json"):
    connection = http.client.HTTPSConnection(plane.address, context=plane.tls, timeout=30)
    try:
        connection.request(method, path, headers={"Accept": accept})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def identity(item):
    metadata = item["metadata"]
    return (metadata.get("namespace", ""), metadata["name"])


def seen(status, body):
    """What has to be equal of an answer: all but versions, uids, times and the bytes of a token."""
    tree = json.loads(body)
    if tree.get("kind") == "Status":
        return status, tree
    metadata = {k: bool(v) if k == "continue" else v for k, v in tree["metadata"].items() if k not in ("resourceVersion", "selfLink")}
    if not metadata.get("continue"):
        metadata.pop("continue", None)
    items = (tree["items"] or []) if "items" in tree else [row["object"] for row in tree["rows"] or []]
    return status, tree["kind"], metadata, [identity(i) for i in items]


def pages(plane, path, **values):
    told, token = [], ""
    while True:
        status, body = ask(plane, "GET", query(path, **values, **({"continue": token} if token else {})))
        told.append(seen(status, body))
        token = json.loads(body)["metadata"].get("continue", "")
        if not token:
            return told


def watched(plane, path, accept="application/json", **values):
    status, body = ask(plane, "GET", query(path, watch=1, **values), accept)
    if status != 200:
        return seen(status, body)
    events = [json.loads(line) for line in body.splitlines()]
    initial = [e for e in events if e["type"] != "BOOKMARK"]
    marks = [e["object"]["metadata"].get("annotations", {}) for e in events if e["type"] == "BOOKMARK"]
    return sorted((e["type"], identity(e["object"])) for e in initial), {"k8s.io/initial-events-end": "true"} in marks


def live(plane, selector, seed):
    """The events of changes that are made while a watch is open."""
    status, body = ask(plane, "GET", query(SECRETS, limit=1))
    assert status == 200
    version = json.loads(body)["metadata"]["resourceVersion"]
    told = []
    thread = threading.Thread(target=lambda: told.append(
        ask(plane, "GET", query(SECRETS, watch=1, timeoutSeconds=4, resourceVersion=version, shardSelector=selector))))
    thread.start()
    time.sleep(0.5)
    order = random.Random(seed)
    for step in range(40):
        ns = order.choice(NAMESPACES)
        path = f"/api/v1/namespaces/{ns}/secrets"
        plane.call("POST", path, {"metadata": {"name": f"live-{step}"}})
        plane.call("PATCH", f"{path}/live-{step}", {"metadata": {"labels": {"step": "1"}}}, "application/merge-patch+json")
        if step % 2:
            plane.call("DELETE", f"{path}/live-{step}")
    thread.join()
    status, body = told[0]
    for step in range(0, 40, 2):
        for ns in NAMESPACES:
            plane.call("DELETE", f"/api/v1/namespaces/{ns}/secrets/live-{step}")
    return [(e["type"], identity(e["object"])) for e in map(json.loads, body.splitlines())]


def fill(plane):
    plane.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", TOYS)
    for ns in NAMESPACES:
        plane.call("POST", "/api/v1/namespaces", {"metadata": {"name": ns}})
    for _ in range(100):
        if ask(plane, "GET", TOYS_PATH)[0] == 200:
            break
        time.sleep(0.1)
    for ns in NAMESPACES:
        for i in range(PER_NAMESPACE):
            labels = {"odd": str(i % 2)}
            for path, kind in ((f"/api/v1/namespaces/{ns}/secrets", {}),
                               (f"/apis/shards.example/v1/namespaces/{ns}/toys", {"apiVersion": "shards.example/v1", "kind": "Toy"})):
                status, body = plane.call("POST", path, {**kind, "metadata": {"name": f"m{i}", "labels": labels}})[:2]
                assert status == 201, (path, body)


def partitions(count, seed):
    order = random.Random(seed)
    cuts = [0] + sorted(order.randrange(1, FULL) for _ in range(count - 1)) + [FULL]
    return [ranges(pair) for pair in zip(cuts, cuts[1:])]


def main():
    real, local = Plane("real", sys.argv[1]), Plane("local", sys.argv[2])
    with open(sys.argv[3]) as file:
        selectors = [row["selector"] for row in json.load(file)]
    for plane in (real, local):
        fill(plane)
    failed = 0

    def compare(name, rows):
        nonlocal failed
        different = []
        count = 0
        for what, fn in rows:
            count += 1
            wanted, got = fn(real), fn(local)
            if wanted != got:
                different.append((what, wanted, got))
        failed += bool(different)
        print(f"FAIL {name}: {len(different)} of {count}" if different else f"ok   {name}: {count} answers")
        for what, wanted, got in different[:5]:
            print(f"    {what[:200]}\n      real  {str(wanted)[:700]}\n      local {str(got)[:700]}")

    def get(path, accept="application/json", **values):
        return lambda plane: seen(*ask(plane, "GET", query(path, **values), accept))

    shards = [s for n in (2, 3, 8) for s in partitions(n, n)] + [ranges((0, FULL)), ranges((5, 6)), ranges((0, 1 << 63), (3 << 62, FULL))]
    compare("texts of selectors, on a list", [(s, get("/apis/batch/v1/jobs", shardSelector=s)) for s in selectors])
    compare("texts of selectors, on a watch", [(s, lambda plane, s=s: watched(plane, "/apis/batch/v1/jobs", shardSelector=s, timeoutSeconds=1))
                                               for s in selectors if "0x" not in s])
    for path in (SECRETS, TOYS_PATH, "/api/v1/namespaces/shop/secrets"):
        compare(f"lists of {path}", [(s, get(path, shardSelector=s)) for s in shards])
    compare("lists with labels, fields and forms", [
        (s, get(SECRETS, accept, shardSelector=s, **more)) for s in shards[:5] for accept in ("application/json", TABLE, PARTIAL)
        for more in ({}, {"labelSelector": "odd=1"}, {"fieldSelector": "metadata.name=m2"})])
    compare("cluster-scoped lists", [(s, get("/api/v1/namespaces", shardSelector=s, fieldSelector="metadata.name=shop")) for s in partitions(3, 1)])
    compare("pages", [(s, lambda plane, s=s, path=path, limit=limit, more=more: pages(plane, path, shardSelector=s, limit=limit, **more))
                      for s in shards[:5] for path in (SECRETS, TOYS_PATH) for limit in (2, 7, 500)
                      for more in ({}, {"labelSelector": "odd=0"})])
    compare("what is wrong first", [(str(v), get(SECRETS, **v)) for v in (
        {"shardSelector": "x", "labelSelector": "a=(("}, {"shardSelector": "x", "fieldSelector": "spec.x=1"},
        {"shardSelector": "x", "resourceVersion": "abc"}, {"shardSelector": "x", "continue": "abc"},
        {"shardSelector": "x", "sendInitialEvents": "true"}, {"resourceVersion": "abc"}, {"shardSelector": ""}, {"shardSelector": " "})])
    compare("initial events of watches", [(s, lambda plane, s=s, path=path, more=more: watched(
        plane, path, shardSelector=s, timeoutSeconds=1, **more)) for s in shards[:4] for path in (SECRETS, TOYS_PATH)
        for more in ({"resourceVersion": "0"}, {"sendInitialEvents": "true", "allowWatchBookmarks": "true",
                                                "resourceVersionMatch": "NotOlderThan"})])
    compare("events of changes", [(s, lambda plane, s=s: live(plane, s, 7)) for s in (shards[0], shards[3])])
    compare("shards of uids are all objects, each once", [("8 shards", lambda plane: sorted(
        i for shard in partitions(8, 5) for i in seen(*ask(plane, "GET", query(SECRETS, shardSelector=shard.replace("namespace", "uid"))))[3]))])
    compare("deletion by shard", [(s, lambda plane, s=s: seen(*ask(plane, "DELETE", query("/api/v1/namespaces/shop/secrets", shardSelector=s))))
                                  for s in ("x", ranges((5, 6)), ranges((0, FULL)))])
    return 1 if failed else 0


sys.exit(main())
