#!/usr/bin/env python3
"""Replicas that share the namespaces of a real cluster: `tandem run --shards N`. live_shards.py BUILD [--quick] [--minutes M]
[--namespaces N] [--gate=off] [WORD...]: replicas are killed at random for M minutes (1 unless told), in N namespaces (40). Who wrote what
is read from the API server's audit log: each replica has an account of its own, with the Roles of `tandem manifests --shards`. What each
receives is counted on its way from the API server."""

import atexit
import bisect
import collections
import contextlib
import datetime
import json
import multiprocessing
import os
import random
import re
import shutil
import socket
import sys
import tempfile
import threading
import time

from bed import eventually, main, open_gate, story



def told(flag, default):
    """The number after a flag, which is taken out of the arguments."""
    if flag not in sys.argv:
        return default
    at = sys.argv.index(flag)
    value = float(sys.argv[at + 1])
    del sys.argv[at:at + 2]
    return value


MINUTES, NAMESPACES = told("--minutes", 1), int(told("--namespaces", 40))
REPLICAS, SHARDS, LEASE = 4, 8, 15
PATIENCE = 60 + NAMESPACES / 4  # seconds until each namespace has been written for
ACCOUNT = "system:serviceaccount:replicas:"
FOLDER = tempfile.mkdtemp(prefix="tandem-shards-")
atexit.register(shutil.rmtree, FOLDER, True)
POLICY = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
          "rules": [{"level": "Metadata", "userGroups": ["system:serviceaccounts:replicas"]}, {"level": "None"}]}
with open(os.path.join(FOLDER, "policy"), "w") as policy_file:
    json.dump(POLICY, policy_file)
GATE = "" if "--gate=off" in sys.argv else open_gate("ShardedListAndWatch")  # without it each replica is sent all
ARGS = f"--audit-policy-file={FOLDER}/policy --audit-log-path={FOLDER}/log --audit-log-maxsize=4096{GATE}"
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
    return f"team-{i + 1}"


def pods_of(i):
    return 8 if i % 10 == 0 else 1


def fnv(text):
    """The hash that shards are cut by: FNV-1a, 64 bits."""
    value = 0xcbf29ce484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001b3 & (1 << 64) - 1
    return value


def weigh(starts):
    """Pods and VPAs of each shard, which begin at zero and at these hashes."""
    weights = [0] * (len(starts) + 1)
    for i in range(NAMESPACES):
        weights[bisect.bisect_right(starts, fnv(team(i)))] += pods_of(i) + 1
    return weights


class Relay:
    """Stands between a replica and the API server and counts the bytes that come back; a process of its own, so that it is not in the way."""

    def __init__(self, port):
        self.port, self.count = port, multiprocessing.Value("Q", 0)
        self.server = socket.create_server(("127.0.0.1", 0))
        self.address = self.server.getsockname()[1]
        multiprocessing.Process(target=self.accept, daemon=True).start()
        self.server.close()

    def received(self):
        return self.count.value

    def accept(self):
        while True:
            client, _ = self.server.accept()
            try:
                server = socket.create_connection(("127.0.0.1", self.port))
            except OSError:
                client.close()
                continue
            threading.Thread(target=self.copy, args=(client, server, False), daemon=True).start()
            threading.Thread(target=self.copy, args=(server, client, True), daemon=True).start()

    def copy(self, source, target, is_counted):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if is_counted:
                    with self.count.get_lock():
                        self.count.value += len(data)
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def when(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


SEEN = {"bytes": 0, "writes": collections.defaultdict(list), "denied": set()}


def audit():
    """Reads on in the log: each write of a VPA's status or checkpoint, and what was refused."""
    with open(os.path.join(FOLDER, "log"), "rb") as file:
        file.seek(SEEN["bytes"])
        for line in file:
            if not line.endswith(b"\n"):
                break
            SEEN["bytes"] += len(line)
            event = json.loads(line)
            about = event.get("objectRef", {})
            if event.get("responseStatus", {}).get("code") == 403:
                SEEN["denied"].add(event["requestURI"])
            if event["verb"] in WRITES and about.get("apiGroup") == "autoscaling.k8s.io":
                SEEN["writes"][about["namespace"]].append((when(event["requestReceivedTimestamp"]), when(event["stageTimestamp"]),
                                                           event["user"]["username"].removeprefix(ACCOUNT)))
    return SEEN


def writes(since=0):
    """Namespace -> (began, ended, replica) of each write since then, in order."""
    found = {ns: sorted(row for row in rows if row[0] >= since) for ns, rows in audit()["writes"].items()}
    return {ns: rows for ns, rows in found.items() if rows}


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


def kubeconfig(bed, name, port):
    if bed.kubectl("get", "serviceaccount", name, "-n", "replicas", check=False)[0] != 0:
        bed.kubectl("create", "serviceaccount", name, "-n", "replicas")
    token = bed.kubectl("create", "token", name, "-n", "replicas", "--duration=4h").strip()
    path = os.path.join(FOLDER, name)
    with open(path, "w") as file:
        json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "c",
                   "clusters": [{"name": "c", "cluster": {"server": f"https://127.0.0.1:{port}",
                                                          "certificate-authority": os.path.join(bed.folder, "pki", "ca.crt")}}],
                   "users": [{"name": "u", "user": {"token": token}}], "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}, file)
    return path


BORN = [0]


def replica(bed, shards, is_counted=False):
    """A process of its own account, so that a restart is told from what was before it."""
    BORN[0] += 1
    name = f"r{BORN[0]}"
    relay = Relay(bed.ports["api"]) if is_counted else None
    program = bed.run("--kubeconfig", kubeconfig(bed, name, relay.address if relay else bed.ports["api"]), f"--shards={shards}",
                      "--controllers=recommender", name=name, wait=False)
    program.relay = relay
    return program


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
    for first in range(0, NAMESPACES, 40):
        bed.apply("".join(VPA.replace("NS", team(i)).replace("COUNT", str(pods_of(i)))
                          for i in range(first, min(first + 40, NAMESPACES))), namespace=None)
    total = sum(pods_of(i) for i in range(NAMESPACES))
    eventually(300, lambda: len([pod for pod in bed.pods(namespace="*") if pod["metadata"]["namespace"].startswith("team-") and
                                 pod["status"]["phase"] == "Running"]) == total, "all pods run")
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
        replica(bed, SHARDS, is_counted=True)
    held = settled(bed, SHARDS, 180 + NAMESPACES)
    assert held == [2, 2, 2, 2], held
    served(bed, time.time(), PATIENCE)
    apart(writes(began))
    for program in bed.standing():
        filtered = program.metric("tandem_cache_filtered", resource="pods")
        foreign = program.metric("tandem_cache_foreign_bytes_total", resource="pods")
        assert (filtered == 2 and foreign == 0) if GATE else foreign > 0, (filtered, foreign)


def cut(bed):
    config = bed.get("ConfigMap", "tandem-shards", namespace="kube-system")["data"]
    return [int(start, 16) for start in config["starts"].split(",")]


@story("the heaviest shard is within half of the mean, where equal parts of the hash's range are not", quick=True)
def weights(bed):
    starts = cut(bed)
    assert len(starts) == SHARDS - 1, starts
    chosen, equal = weigh(starts), weigh([(1 << 64) // SHARDS * i for i in range(1, SHARDS)])
    halves = weigh([1 << 63])
    mean = sum(chosen) / SHARDS
    print(f"     heaviest of 8 by the mean: {max(chosen) / mean:.2f}, of equal parts {max(equal) / mean:.2f}; "
          f"of two halves {max(halves) * 2 / sum(halves):.2f}", flush=True)
    assert max(chosen) <= 1.5 * mean, chosen
    assert max(equal) > 1.5 * mean, equal


def loads(bed):
    """Pods and VPAs in the shards of each standing replica."""
    by_shard = weigh(cut(bed))
    return {program: sum(by_shard[int(number) - 1] for number in set(re.findall(r'shard="(\d+)-of-', program.get("/metrics")[1])))
            for program in bed.standing()}


@story("with the gate on each replica receives its share of what happens", quick=True)
def received(bed):
    """Of objects, in lists and watches: metrics of pods have no selector for shards, and there are none meanwhile."""
    if not GATE:
        return
    settled(bed, SHARDS, 90 + NAMESPACES)
    bed.hide("team-*")
    time.sleep(10)
    share = loads(bed)
    assert sum(share.values()) == sum(weigh([])), share
    counted = {program: program.relay.received() for program in share}
    turns = max(1, 120 // NAMESPACES)
    for turn in range(turns):
        for i in range(NAMESPACES):
            bed.patch("Deployment", "web", {"spec": {"template": {"metadata": {"annotations": {"turn": str(turn)}}}}}, namespace=team(i))
        time.sleep(20)
    got = {program: program.relay.received() - was for program, was in counted.items()}
    bed.hide("team-*", False)
    assert loads(bed) == share, "no shard has changed hands meanwhile"
    ratios = sorted(got[program] / sum(got.values()) * sum(share.values()) / share[program] for program in share)
    print(f"     {sum(got.values()) / 1024:.0f} KiB in {turns} rollouts; of each replica by its pods and VPAs: "
          + ", ".join(f"{ratio:.2f}" for ratio in ratios), flush=True)
    assert ratios[0] >= 0.8 and ratios[-1] <= 1.2, ratios


def learnt(bed):
    """Since when the checkpoint of each namespace knows something."""
    return {item["metadata"]["namespace"]: item["status"]["firstSampleStart"]
            for item in bed.list("VerticalPodAutoscalerCheckpoint", namespace="*") if item["metadata"]["namespace"].startswith("team-")}


@story("a replica that is killed is replaced within the lease and 10 s, nothing learnt is lost")
def takeover(bed):
    settled(bed, SHARDS, 120 + NAMESPACES)
    served(bed, time.time(), PATIENCE)
    before = learnt(bed)
    assert len(before) == NAMESPACES, "each namespace has its checkpoint"
    end = time.time() + 60 * MINUTES
    took = []
    while time.time() < end:
        victim = random.choice(bed.standing())
        lost = victim.metric("tandem_shards_held")
        killed = time.time()
        victim.kill()
        eventually(8 * LEASE, lambda: sum(int(p.metric("tandem_shards_held") or 0) for p in bed.standing()) == SHARDS,
                   f"{lost} shards of a dead replica are taken over")
        took.append(time.time() - killed)
        replica(bed, SHARDS)
        settled(bed, SHARDS, 90 + NAMESPACES)
    served(bed, time.time(), PATIENCE)
    print(f"     {len(took)} killed, taken over within {max(took):.1f} s, half within {sorted(took)[len(took) // 2]:.1f} s, "
          f"{apart(writes())} changes of hands", flush=True)
    assert learnt(bed) == before, "what was learnt began when it did"
    assert max(took) <= LEASE + 10, f"without a holder for longer than lease duration and 10 s: {took}"


@story("N changes from 8 to 12 to 3 under load, and never has a namespace two writers")
def resize(bed):
    for shards in (12, 3):
        for old in bed.standing():
            old.stop()
            replica(bed, shards)
        settled(bed, shards, 180 + NAMESPACES)
        served(bed, time.time(), PATIENCE)
    apart(writes())
    assert not audit()["denied"], f"refused: {audit()['denied']}"


if __name__ == "__main__":
    sys.argv = [a for a in sys.argv if not a.startswith("--gate=")]
    main(env={"APISERVER_ARGS": ARGS}, setup=prepare)
