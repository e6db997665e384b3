#!/usr/bin/env python3
"""From upstream's VPA 1.8.1 to ours and back, by way of the shadow, with a day of history in checkpoints: at every second at most one updater
acts and one webhook answers, as the audit log of the API server has it; checkpoints stay, recommendations stay within a bucket, the shadow writes
nothing but its own, and the migration itself evicts no pod. MIGRATE_WORKLOADS (200) says of how many workloads."""

import atexit
import contextlib
import datetime
import json
import os
import shutil
import signal
import tempfile
import threading
import time

from bed import eventually, main, quantity, requests, steady, story
from vpa_bed import uids, workload

COUNT = int(os.environ.get("MIGRATE_WORKLOADS", "200"))
BUCKET = 1.05 + 1e-6
ELECTED = "--leader-elect=true"
NAMES = [f"w{i}" for i in range(COUNT)]
UPDATERS = {"vpa-updater", "tandem-updater"}

# What is written by whom, whose webhook changed it, and who holds which lease.
FOLDER = tempfile.mkdtemp(prefix="tandem-migrate-")
atexit.register(shutil.rmtree, FOLDER, True)
LOG = os.path.join(FOLDER, "audit")
WRITES = ["create", "update", "patch", "delete", "deletecollection"]
with open(os.path.join(FOLDER, "policy"), "w") as written:
    json.dump({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": [
        {"level": "Request", "verbs": WRITES, "resources": [{"group": "coordination.k8s.io", "resources": ["leases"]}], "namespaces": ["kube-system"]},
        {"level": "Metadata", "verbs": WRITES}, {"level": "None"}]}, written)
ARGS = f"--audit-policy-file={FOLDER}/policy --audit-log-path={LOG}"


def audit(since=0, until=None):
    """The lines of the log that begin in a span of its bytes."""
    with open(LOG, "rb") as file:
        file.seek(since)
        text = file.read(until - since if until else -1)
    return [json.loads(line) for line in text.splitlines() if line.endswith(b"}")]


def mark():
    """Where the log is now: what comes is later."""
    return os.path.getsize(LOG)


def what(row):
    ref = row.get("objectRef", {})
    return row["verb"], ref.get("resource", ""), ref.get("subresource", ""), ref.get("name", "")


def ours(rows):
    return [row for row in rows if row.get("userAgent", "").startswith("tandem/")]


def second(row):
    return datetime.datetime.fromisoformat(row["stageTimestamp"].replace("Z", "+00:00")).timestamp()


def one_updater(rows):
    """Leases of updaters: a holder that was followed by another never renews again before it has won anew, so that no second has two."""
    terms = []  # (holder, first, last) in the order of the log
    for row in rows:
        if what(row)[1] == "leases" and what(row)[3] in UPDATERS and row["responseStatus"]["code"] < 300:
            holder = (row.get("requestObject") or {}).get("spec", {}).get("holderIdentity")
            if holder and terms and terms[-1][0] == holder:
                terms[-1][2] = second(row)
            elif holder:
                terms.append([holder, second(row), second(row)])
    for one, other in zip(terms, terms[1:]):
        assert one[2] <= other[1], f"two updaters: {one} and {other}"
    assert len({term[0] for term in terms}) == len(terms), f"leases went to and fro: {terms}"
    return terms


def one_webhook(rows):
    """Pods that were created, by dry run too: how many webhooks gave each its size, by second."""
    seen = {}
    for row in rows:
        if what(row)[:3] == ("create", "pods", "") and row["responseStatus"]["code"] < 300:
            count = sum(1 for key, value in row.get("annotations", {}).items()
                        if key.startswith("mutation.webhook.admission.k8s.io/") and '"webhook":"vpa.k8s.io"' in value)
            seen.setdefault(int(second(row)), []).append(count)
    assert all(max(counts) <= 1 for counts in seen.values()), "two webhooks changed one pod"
    return seen


def targets(bed):
    """(vpa, container, resource) -> target."""
    return {(vpa["metadata"]["name"], row["containerName"], resource): quantity(amount)
            for vpa in bed.list("VerticalPodAutoscaler")
            for row in vpa.get("status", {}).get("recommendation", {}).get("containerRecommendations", [])
            for resource, amount in row["target"].items()}


def apart(one, other):
    """How far the farthest two are from each other."""
    assert one.keys() == other.keys() and one, (len(one), len(other))
    return max(max(one[key], other[key]) / min(one[key], other[key]) for key in one)


def checkpoints(bed):
    return {c["metadata"]["name"]: c["status"]["totalSamplesCount"] for c in bed.list("VerticalPodAutoscalerCheckpoint")}


def pods(bed):
    return uids(bed.pods())


def lease(bed, name):
    try:
        return bed.get("Lease", name, namespace="kube-system")["spec"].get("holderIdentity", "")
    except Exception:
        return ""


def hooks(bed):
    """Where pods are sent to, each webhook for pods with its address, but for those of probes."""
    return [hook["clientConfig"].get("url") for config in bed.list("MutatingWebhookConfiguration") for hook in config["webhooks"]
            if hook["name"] == "vpa.k8s.io"]


def end(bed, part):
    """One of upstream's programs; it does not end by SIGTERM while it elects a leader, so its lease has to run out."""
    pid = bed.pid(part)
    gone = lambda: not os.path.exists(f"/proc/{pid}") or open(f"/proc/{pid}/stat").read().split()[2] == "Z"
    os.kill(pid, signal.SIGTERM)
    with contextlib.suppress(AssertionError):
        eventually(3, gone, "it has ended")
    if not gone():
        os.kill(pid, signal.SIGKILL)
    eventually(20, gone, f"upstream's {part} has ended")


class Watch(threading.Thread):
    """Ten times a second: how many webhooks pods are sent to, and whether one that is created now comes back with its size."""

    def __init__(self, bed, names):
        super().__init__(daemon=True)
        self.bed, self.rows, self.goes_on, self.names = bed, [], True, names
        self.namespace, self.owner = bed.ns, None

    def look(self):
        """A pod as the ReplicaSet of the first workload would make it, by dry run: its memory."""
        self.owner = owner = self.owner or next(r for r in self.bed.list("ReplicaSet", namespace=self.namespace)
                                                if r["metadata"]["name"].startswith(self.names[0] + "-"))
        made = self.bed.create("Pod", {"metadata": {
            "generateName": "probe-", "labels": owner["spec"]["template"]["metadata"]["labels"],
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
                                 "controller": True}]}, "spec": owner["spec"]["template"]["spec"]}, namespace=self.namespace, dry=True)
        return quantity(requests(made)["memory"])

    def run(self):
        while self.goes_on:
            try:
                self.rows.append((time.monotonic(), len(hooks(self.bed)), self.look()))
            except OSError:
                break  # the bed is gone: what failed is told elsewhere
            time.sleep(0.1)


@contextlib.contextmanager
def watched(bed):
    """None of the moments was without a webhook; what is seen is given back."""
    other = type(bed).__new__(type(bed))
    other.__dict__.update(bed.__dict__)
    other._connection = None  # one connection a thread
    watch = Watch(other, NAMES)
    watch.start()
    yield watch
    watch.goes_on = False
    watch.join(20)
    assert not watch.is_alive()
    asked = quantity("100Mi")
    assert len(watch.rows) > 20
    gaps = [b[0] - a[0] for a, b in zip(watch.rows, watch.rows[1:])]
    assert max(gaps) < 5, f"not looked for {max(gaps)} s"
    bare = [row for row in watch.rows if row[2] <= asked]
    # Upstream's admission controller deletes its registration before it makes it anew: that moment is its own.
    assert len(bare) <= 1, f"{len(bare)} of {len(watch.rows)} pods came without a size"
    assert max(row[1] for row in watch.rows) == 1, "two webhooks for pods"


def histogram(rows, total):
    midnight = datetime.datetime.now(datetime.timezone.utc).replace(hour=0, minute=0, second=0, microsecond=0).isoformat().replace("+00:00", "Z")
    return {"referenceTimestamp": midnight, "bucketWeights": {str(bucket): weight for bucket, weight in rows.items()}, "totalWeight": total}


def remember(bed):
    """A day of each workload in its checkpoint, as upstream's recommender would have left it."""
    now = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)
    text = lambda at: at.isoformat().replace("+00:00", "Z")
    for i, name in enumerate(NAMES):
        cpu, memory = 14 + i % 9, 17 + i % 7  # buckets: about 0.2 to 0.45 cores, 250 to 400 MB
        bed.create("VerticalPodAutoscalerCheckpoint", {
            "metadata": {"name": f"{name}-app"}, "spec": {"vpaObjectName": name, "containerName": "app"}, "status": {
                "version": "v3", "lastUpdateTime": text(now), "firstSampleStart": text(now - datetime.timedelta(days=1)),
                "lastSampleStart": text(now - datetime.timedelta(minutes=1)), "totalSamplesCount": 1440,
                "cpuHistogram": histogram({cpu - 2: 3000, cpu - 1: 10000, cpu: 4000}, 400.0),
                "memoryHistogram": histogram({memory: 10000}, 1.0)}})


def settle(bed):
    """The workloads, a day of their history, and upstream's VPA at work on them."""
    bed.usage("*", "app", "300m", "300Mi")
    bed.apply("\n---\n".join(workload(name, "Off", replicas=1) for name in NAMES))
    remember(bed)
    bed.upstream(recommender=f"{ELECTED} --checkpoints-timeout=20s", updater=ELECTED)
    eventually(120, lambda: len(targets(bed)) == 2 * COUNT, "upstream recommends for all")
    eventually(180, lambda: len(checkpoints(bed)) == COUNT and min(checkpoints(bed).values()) > 1440, "and goes on with their checkpoints")
    # Now with updates. What pods have is far below: upstream makes them the recommended size.
    for name in NAMES:
        bed.patch("VerticalPodAutoscaler", name, {"spec": {"updatePolicy": {"updateMode": "Recreate", "minReplicas": 1}}})
    eventually(400, lambda: len(bed.pods()) == COUNT and all(quantity(requests(pod)["memory"]) > 2**27 for pod in bed.pods()),
               "upstream has sized the pods")


def shadowed(bed):
    """The shadow beside upstream's: both tables within a bucket, the same evictions, and no write that is not its own."""
    bed.apply(bed.tandem("manifests", "--shadow", "--only", "crds"), namespace=None)
    told = bed.tandem("preflight", "--shadow")
    assert "nothing to mend" in told and "--shadow leaves everything to it" in told, told
    begin = mark()
    shadow = bed.run("--shadow", "--leader-elect", "--horizontal=off", name="shadow")
    look = lambda: json.loads(bed.tandem("recommend", "--shadow", "-n", bed.ns, "-o", "json"))["vpas"]
    rows = eventually(120, lambda: (rows := look()) and all(row["hasShadow"] for row in rows) and rows, "every VPA has its shadow")
    assert len(rows) == COUNT
    table = eventually(60, lambda: (text := bed.tandem("recommend", "--shadow", "-n", bed.ns)) and
                       f"{2 * COUNT} of {2 * COUNT} targets are within 5 % of upstream's." in text and text, "all targets are within a bucket")
    assert "evicts 0 and resizes 0 pods, by Tandem's 0 and 0." in table, table[-400:]
    assert shadow.metric("tandem_shadow_vpas") == COUNT and shadow.metric("tandem_shadow_writes_total", is_error="false") >= COUNT
    shadow.stop()
    wrote = {what(row)[1] + ("/" + what(row)[3] if what(row)[1] == "leases" else "") for row in ours(audit(begin))
             if "selfsubjectaccessreviews" not in what(row)[1]}
    assert wrote <= {"verticalpodautoscalershadows", "leases/tandem-shadow", "leases/"}, wrote
    assert "verticalpodautoscalershadows" in wrote, "the audit saw it"


@story("beside upstream's all of ours holds and nothing of upstream's is touched; what upstream gives up ours takes")
def beside(bed):
    bed.upstream(recommender=ELECTED, updater=ELECTED)
    before = {name: lease(bed, name) for name in ("vpa-recommender-lease", "vpa-updater")}
    assert all(before.values()), before
    config = bed.get("MutatingWebhookConfiguration", "vpa-webhook-config")
    program = bed.run("--leader-elect", name="beside", wait=False)
    held = lambda controller: program.metric("tandem_held_by_upstream", controller=controller)
    eventually(40, lambda: all(held(c) == 1 for c in ("recommender", "updater", "admission")), "all three hold")
    with open(program.log) as log:
        said = log.read()
    assert "updater holds until upstream's is gone" in said and "upstream's vpa-updater is alive: lease kube-system/vpa-updater is held and renewed by" in said, said
    steady(10, lambda: {name: lease(bed, name) for name in before} == before and hooks(bed) == [config["webhooks"][0]["clientConfig"]["url"]],
           "leases and registration are upstream's")
    assert bed.get("MutatingWebhookConfiguration", "vpa-webhook-config")["metadata"]["resourceVersion"] == config["metadata"]["resourceVersion"]
    alone = bed.run("--controllers=updater", name="alone", wait=False)
    eventually(30, lambda: alone.process.poll() is not None, "one that is alone does not wait")
    assert alone.process.returncode == 2 and "upstream's vpa-updater is alive" in alone.tail(), alone.tail()
    bed.programs.remove(alone)
    end(bed, "updater")
    eventually(60, lambda: held("updater") == 0 and lease(bed, "tandem-updater"), "the updater begins")
    assert held("recommender") == 1
    bed.upstream("updater", updater=ELECTED)
    eventually(40, lambda: held("updater") == 1 and not lease(bed, "tandem-updater"), "and steps back")
    bed.kit("vpa-upstream", "stop")
    eventually(90, lambda: all(held(c) == 0 for c in ("recommender", "updater", "admission")) and program.get("/readyz")[0] == 200, "all of ours begins")
    assert lease(bed, "tandem-recommender") and len(hooks(bed)) == 1
    program.stop()


@story("the shadow first, then taken over with --replace-upstream, and back: one webhook and one updater at a time, nothing lost, no pod evicted")
def there_and_back(bed):
    settle(bed)
    shadowed(bed)
    before, learnt, there, begin = targets(bed), checkpoints(bed), pods(bed), mark()
    with watched(bed):
        ours = bed.run("--replace-upstream", "--leader-elect", "--horizontal=off", name="ours")
        eventually(60, lambda: hooks(bed) == [f"https://127.0.0.1:{ours.webhook_port}/"], "our webhook answers")
        steady(8, lambda: lease(bed, "vpa-updater") and not lease(bed, "vpa-updater").startswith("tandem"), "upstream's updater still leads")
        for part, name in (("updater", "vpa-updater"), ("recommender", "vpa-recommender-lease")):
            end(bed, part)
            eventually(40, lambda name=name: lease(bed, name).startswith("tandem"), f"ours has {name}")
        end(bed, "admission")
        eventually(60, lambda: ours.get("/readyz")[0] == 200, "ours is ready")
        eventually(60, lambda: apart(before, targets(bed)) <= BUCKET, "recommendations are within one bucket")
        eventually(90, lambda: all(checkpoints(bed)[name] > count for name, count in learnt.items()), "checkpoints go on counting")
        assert checkpoints(bed).keys() == learnt.keys()
        # And back.
        middle = targets(bed)
        bed.upstream("admission")
        eventually(60, lambda: hooks(bed) == [f"https://127.0.0.1:{bed.ports['webhook']}"] or hooks(bed) == [f"https://127.0.0.1:{bed.ports['webhook']}/"],
                   "upstream's webhook answers")

        def upstreams():
            now = hooks(bed)
            assert len(now) == 1 and f":{bed.ports['webhook']}" in now[0], now
            return True
        steady(8, upstreams, "and ours does not take it back")
        learnt = checkpoints(bed)
        ours.stop()
        assert hooks(bed) and f":{bed.ports['webhook']}" in hooks(bed)[0], "the end of ours has removed upstream's registration"
        bed.upstream("recommender updater", recommender=ELECTED, updater=ELECTED)
        eventually(60, lambda: lease(bed, "vpa-updater") and not lease(bed, "vpa-updater").startswith("tandem"), "upstream's updater leads")
        eventually(60, lambda: apart(middle, targets(bed)) <= BUCKET, "recommendations are within one bucket")
        eventually(150, lambda: all(checkpoints(bed)[name] > count for name, count in learnt.items()), "upstream goes on counting")
    assert pods(bed) == there, "a pod was evicted"
    assert checkpoints(bed).keys() == learnt.keys()
    rows = audit(begin)
    evicted = [what(row) for row in rows if what(row)[2] == "eviction" or what(row)[:3] == ("delete", "pods", "")]
    assert not evicted, evicted
    lost = [what(row) for row in rows if row["verb"].startswith("delete") and what(row)[1] == "verticalpodautoscalercheckpoints"]
    assert not lost, lost
    terms, seconds = one_updater(rows), one_webhook(rows)
    assert len(terms) == 3 and terms[1][0].startswith("tandem"), f"upstream's, ours, upstream's: {terms}"
    assert len(seconds) > 60 and sum(max(counts) == 0 for counts in seconds.values()) <= 1, "seconds without a webhook"
    print(f"     {COUNT} workloads, {len(rows)} writes in {len(seconds)} s; updaters {[term[0].split('_')[0] for term in terms]}, "
          f"without one for {[round(b[1] - a[2]) for a, b in zip(terms, terms[1:])]} s", flush=True)
    bed.kit("vpa-upstream", "stop")


main(env={"APISERVER_ARGS": ARGS}, setup=lambda bed: None)
