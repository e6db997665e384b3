#!/usr/bin/env python3
"""Replicas that share the namespaces of a real cluster: `tandem run --shards N`. live_shards.py BUILD [--quick] [--minutes M] [WORD...]:
replicas are killed at random for M minutes (1 unless told). Who wrote what is read from the API server's audit log: each replica has an
account of its own, with the Roles of `tandem manifests --shards`."""

import atexit
import collections
import datetime
import json
import os
import random
import shutil
import sys
import tempfile
import time

from bed import eventually, main, open_gate, story

MINUTES = float(sys.argv[sys.argv.index("--minutes") + 1]) if "--minutes" in sys.argv else 1
if "--minutes" in sys.argv:
    del sys.argv[sys.argv.index("--minutes"):sys.argv.index("--minutes") + 2]
REPLICAS, NAMESPACES, LEASE = 4, 40, 15
ACCOUNT = "system:serviceaccount:replicas:"
FOLDER = tempfile.mkdtemp(prefix="tandem-shards-")
atexit.register(shutil.rmtree, FOLDER, True)
POLICY = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
          "rules": [{"level": "Metadata", "userGroups": ["system:serviceaccounts:replicas"]}, {"level": "None"}]}
with open(os.path.join(FOLDER, "policy"), "w") as policy_file:
    json.dump(POLICY, policy_file)
GATE = "" if "--gate=off" in sys.argv else open_gate("ShardedListAndWatch")  # without it each replica is sent all
ARGS = f"--audit-policy-file={FOLDER}/policy --audit-log-path={FOLDER}/log{GATE}"
WRITES = {"create", "update", "patch", "delete"}
VPA = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: NS}
spec:
  replicas: COUNT
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: app, resources: {requests: {cpu: 10m, memory: 100Mi}}}]}
---
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: web, namespace: NS}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  updatePolicy: {updateMode: "Off"}
---
"""


def team(i):
    return f"team-{i}"


def when(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def audit():
    with open(os.path.join(FOLDER, "log")) as file:
        return [json.loads(line) for line in file if line.endswith("\n")]


def writes(since=0):
    """Namespace -> (began, ended, replica) of each write of a VPA's status or checkpoint, in order."""
    found = collections.defaultdict(list)
    for event in audit():
        about = event.get("objectRef", {})
        if event["verb"] in WRITES and about.get("apiGroup") == "autoscaling.k8s.io" and when(event["requestReceivedTimestamp"]) >= since:
            found[about["namespace"]].append((when(event["requestReceivedTimestamp"]), when(event["stageTimestamp"]),
                                              event["user"]["username"].removeprefix(ACCOUNT)))
    return {ns: sorted(rows) for ns, rows in found.items()}


def apart(found):
    """No two replicas write for one namespace at one time, nor by turns: after another one's write nobody comes back before a lease
    could have changed hands."""
    turns = 0
    for ns, rows in found.items():
        last = {}
        for (_, ended, who), (began, _, other) in zip(rows, rows[1:]):
            last[who] = ended
            if who != other:
                turns += 1
                assert began >= ended, f"{who} and {other} wrote for {ns} at one time"
                assert other not in last or began - last[other] > 2, f"{other} and {who} wrote for {ns} by turns"
    return turns


def kubeconfig(bed, name):
    if bed.kubectl("get", "serviceaccount", name, "-n", "replicas", check=False)[0] != 0:
        bed.kubectl("create", "serviceaccount", name, "-n", "replicas")
    token = bed.kubectl("create", "token", name, "-n", "replicas", "--duration=4h").strip()
    path = os.path.join(FOLDER, name)
    with open(path, "w") as file:
        json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "c",
                   "clusters": [{"name": "c", "cluster": {"server": f"https://127.0.0.1:{bed.ports['api']}",
                                                          "certificate-authority": os.path.join(bed.folder, "pki", "ca.crt")}}],
                   "users": [{"name": "u", "user": {"token": token}}], "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}, file)
    return path


BORN = [0]


def replica(bed, shards):
    """A process of its own account, so that a restart is told from what was before it."""
    BORN[0] += 1
    name = f"r{BORN[0]}"
    return bed.run("--kubeconfig", kubeconfig(bed, name), f"--shards={shards}", "--controllers=recommender",
                   name=name, wait=False)


def holders(bed, shards):
    """Replica of each shard."""
    found = {}
    for lease in bed.list("Lease", namespace="kube-system"):
        name, holder = lease["metadata"]["name"], lease["spec"].get("holderIdentity") or ""
        if name.startswith("tandem-shard-") and name.endswith(f"-of-{shards}") and holder:
            found[name] = holder.split("@")[0]
    return found


def settled(bed, shards, seconds):
    """Each shard has a holder, and every replica works on its share of them."""
    standing = bed.standing()
    share = -(-shards // len(standing))

    def look():
        held = [int(program.metric("tandem_shards_held") or 0) for program in standing]
        return sum(held) == shards and max(held) <= share and len(holders(bed, shards)) == shards and held
    return eventually(seconds, look, f"{shards} shards are spread over {len(standing)} replicas")


def served(bed, since, seconds):
    """Each namespace was written for since then."""
    def look():
        missing = {team(i) for i in range(NAMESPACES)} - set(writes(since))
        assert not missing, f"nobody wrote for {sorted(missing)}"
        return True
    eventually(seconds, look, "every namespace is looked after")


def prepare(bed):
    """Skewed pods, roles, and replicas that are still to come."""
    bed.create("Namespace", {"metadata": {"name": "replicas"}})
    for i in range(NAMESPACES):
        bed.create("Namespace", {"metadata": {"name": team(i)}})
    bed.apply("".join(VPA.replace("NS", team(i)).replace("COUNT", "8" if i % 10 == 0 else "1") for i in range(NAMESPACES)), namespace=None)
    text = bed.tandem("manifests", "--only", "rbac", "--controllers=recommender", "--shards=8")
    bed.kubectl("create", "namespace", "tandem-system", check=False)
    bed.apply(text, namespace=None)
    group = [{"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "system:serviceaccounts:replicas"}]
    for kind in ("clusterrolebindings", "rolebindings"):
        for item in json.loads(bed.kubectl("get", kind, "-A", "-l", "app.kubernetes.io/name=tandem", "-o", "json"))["items"]:
            where = ["-n", item["metadata"]["namespace"]] if "namespace" in item["metadata"] else []
            bed.kubectl(*where, "patch", kind, item["metadata"]["name"], "--type=merge", "-p", json.dumps({"subjects": group}))


@story("8 shards are spread over 4 replicas, each namespace has one writer", quick=True)
def shares(bed):
    began = time.time()
    for _ in range(REPLICAS):
        replica(bed, 8)
    held = settled(bed, 8, 180)
    assert held == [2, 2, 2, 2], held
    since = time.time()
    served(bed, since, 60)
    apart(writes(began))
    config = bed.get("ConfigMap", "tandem-shards", namespace="kube-system")["data"]
    assert config["shards"] == "8" and len(config["starts"].split(",")) == 7, config
    for program in bed.standing():
        filtered = program.metric("tandem_cache_filtered", resource="pods")
        foreign = program.metric("tandem_cache_foreign_bytes_total", resource="pods")
        assert (filtered == 2 and foreign == 0) if GATE else foreign > 0, (filtered, foreign)


@story("a replica that is killed is replaced within the lease and 10 s, nothing learnt is lost")
def takeover(bed):
    settled(bed, 8, 120)
    served(bed, time.time(), 60)
    before = {team(i): bed.list("VerticalPodAutoscalerCheckpoint", namespace=team(i)) for i in range(NAMESPACES)}
    assert all(before.values()), "each namespace has its checkpoint"
    end = time.time() + 60 * MINUTES
    worst = 0
    while time.time() < end:
        victim = random.choice(bed.standing())
        lost = victim.metric("tandem_shards_held")
        killed = time.time()
        victim.kill()
        eventually(LEASE + 10, lambda: sum(int(p.metric("tandem_shards_held") or 0) for p in bed.standing()) == 8,
                   f"{lost} shards of a dead replica are taken over")
        worst = max(worst, time.time() - killed)
        replica(bed, 8)
        settled(bed, 8, 90)
    served(bed, time.time(), 60)
    print(f"     taken over within {worst:.1f} s, {apart(writes())} changes of hands", flush=True)
    for ns, checkpoints in before.items():
        first = {c["metadata"]["name"]: c["status"]["firstSampleStart"] for c in checkpoints}
        now = {c["metadata"]["name"]: c["status"]["firstSampleStart"] for c in bed.list("VerticalPodAutoscalerCheckpoint", namespace=ns)}
        assert first == now, f"{ns}: what was learnt began at {first}, now at {now}"


@story("N changes from 8 to 12 to 3 under load, and never has a namespace two writers")
def resize(bed):
    for shards in (12, 3):
        for old in bed.standing():
            old.stop()
            replica(bed, shards)
        settled(bed, shards, 180)
        served(bed, time.time(), 60)
    apart(writes())
    denied = [e["requestURI"] for e in audit() if e.get("responseStatus", {}).get("code") == 403]
    assert not denied, f"refused: {set(denied)}"


if __name__ == "__main__":
    sys.argv = [a for a in sys.argv if not a.startswith("--gate=")]
    main(env={"APISERVER_ARGS": ARGS}, setup=prepare)
