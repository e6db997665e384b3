#!/usr/bin/env python3
"""Beside upstream's VPA 1.8.1: the same feed gives the same statuses, the same pods the same patches, checkpoints and parts can be exchanged."""

import base64
import http.client
import json
import re
import ssl
import time

from bed import eventually, main, metric, quantity, steady, story
from vpa_bed import sized, uids, workload

BUCKET = 1.05 + 1e-6  # how far apart the edges of two neighbouring buckets are


# ---- The same feed ----

FEED = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: app, image: app, resources: {requests: {cpu: 100m, memory: 200Mi}}}
      - {name: side, image: app, resources: {requests: {cpu: 100m, memory: 200Mi}}}
---
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: web}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  updatePolicy: {updateMode: Recreate}
  resourcePolicy: {containerPolicies: [{containerName: side, maxAllowed: {cpu: 150m}}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 1
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers: [{name: app, image: app, resources: {requests: {cpu: 100m, memory: 800Mi}}}]
---
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: db}
spec:
  targetRef: {apiVersion: apps/v1, kind: StatefulSet, name: db}
  updatePolicy: {updateMode: Recreate}
---
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: lost}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: lost}
  updatePolicy: {updateMode: Recreate}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: empty}
spec:
  replicas: 0
  selector: {matchLabels: {app: empty}}
  template:
    metadata: {labels: {app: empty}}
    spec: {containers: [{name: app, image: app}]}
---
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: empty}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: empty}
  updatePolicy: {updateMode: Recreate}
---
apiVersion: v1
kind: Pod
metadata: {name: beside, annotations: {usage.realplane/app: "10m,20Mi"}}  # measured all the time: no metrics at all are a failure
spec: {containers: [{name: app, image: app}]}
"""
OURS, THEIRS = SIDES = "feed-ours", "feed-theirs"
INTERVAL = "--recommender-interval=2s"


def feed(bed, app, side, db):
    for namespace in SIDES:
        bed.usage("web-*", "app", *app, namespace=namespace)
        bed.usage("web-*", "side", *side, namespace=namespace)
        bed.usage("db-*", "app", *db, namespace=namespace)


def checkpoints(bed, namespace):
    return {item["metadata"]["name"]: item for item in bed.list("VerticalPodAutoscalerCheckpoint", namespace=namespace)}


def taken(bed, namespace):
    """Samples of a pod that its checkpoint knows of."""
    item = checkpoints(bed, namespace).get("db-app")
    return item["status"]["totalSamplesCount"] if item else 0


def looked(port):
    """How often the recommender has read metrics, and done all that it did after the time before."""
    return metric(port, "vpa_recommender_execution_latency_seconds_count", step="LoadMetrics") or 0


def sampled(bed, ports, count, *values):
    """Both take exactly the same samples of these values, at least so many: pods have metrics only while their side lags behind, for
    on a busy machine one of two that look every so often looks more often. ports: of the recommender of each side."""
    feed(bed, *values)
    begun, end = {side: taken(bed, side) for side in SIDES}, time.monotonic() + 120 + 10 * count
    while True:
        have = {side: taken(bed, side) - begun[side] for side in SIDES}
        for side in SIDES:
            if (have[side] < count) == (side in bed.hidden):
                bed.hide(side, have[side] >= count)
        if min(have.values()) >= count:
            before = {side: looked(ports[side]) for side in SIDES}  # one look may still be under way
            eventually(60, lambda: all(looked(ports[side]) >= before[side] + 2 for side in SIDES), "all that was read is written")
            have = {side: taken(bed, side) - begun[side] for side in SIDES}
            if len(set(have.values())) == 1:
                return
            count = max(have.values())
        assert time.monotonic() < end, f"{have} samples, not {count}"
        time.sleep(0.1)


def status(bed, namespace, vpa):
    return bed.get("VerticalPodAutoscaler", vpa, namespace=namespace).get("status", {})


def targets(bed, namespace):
    return {(vpa, row["containerName"], kind, resource): quantity(amount)
            for vpa in ("web", "db") for row in status(bed, namespace, vpa).get("recommendation", {}).get("containerRecommendations", [])
            for kind in ("target", "uncappedTarget") for resource, amount in row[kind].items()}


def spread(bed):
    """How far apart the two are: 1 when all targets are equal."""
    ours, theirs = targets(bed, OURS), targets(bed, THEIRS)
    assert len(ours) == 12 and ours.keys() == theirs.keys(), (ours, theirs)
    return max(max(ours[key], theirs[key]) / min(ours[key], theirs[key]) for key in ours)


def conditions(bed, namespace, vpa):
    return [(c["type"], c["status"], c.get("reason"), c.get("message", "").replace(namespace, "NS")) for c in status(bed, namespace, vpa)["conditions"]]


def equal(ours, theirs):
    assert ours == theirs, f"{ours} beside {theirs}"
    return True


def same(bed, what):
    eventually(30, lambda: spread(bed) == 1, f"{what}: all targets are equal")


@story("the same feed: the same samples give equal targets, whatever their values, and equal conditions")
def same_feed(bed):
    for namespace in SIDES:
        bed.create("Namespace", {"metadata": {"name": namespace}})
        eventually(20, lambda: bed.get("ServiceAccount", "default", namespace=namespace), "the namespace is ready")
        bed.hide(namespace)
        bed.apply(FEED, namespace)
        eventually(60, lambda: len([pod for pod in bed.pods(namespace=namespace) if pod["status"].get("phase") == "Running"]) == 4, "pods run")
    bed.upstream("recommender", recommender=f"{INTERVAL} --vpa-object-namespace={THEIRS}")
    program = bed.run(INTERVAL, "--controllers=recommender", f"--vpa-object-namespace={OURS}", name="feed")
    ports = {OURS: program.port, THEIRS: bed.ports["recommender"]}
    # The numbers of samples are such that no decile falls between two of them.
    sampled(bed, ports, 8, ("200m", "300Mi"), ("100m", "100Mi"), ("500m", "500Mi"))
    same(bed, "one value")
    # A spike of more than a tenth of the time carries the ninth decile; the peak of memory counts at once.
    sampled(bed, ports, 4, ("700m", "900Mi"), ("300m", "120Mi"), ("50m", "501Mi"))
    same(bed, "a spike")
    assert targets(bed, OURS)["web", "app", "target", "memory"] > 900 * 2**20
    sampled(bed, ports, 9, ("100m", "100Mi"), ("100m", "100Mi"), ("900m", "100Mi"))
    same(bed, "after the spike")
    assert targets(bed, OURS)["web", "app", "target", "cpu"] > 0.7
    # OOMs: of a container that asks for more than it was seen to use, and of one that uses more than it asks for.
    before = targets(bed, OURS)
    for namespace in SIDES:
        bed.oom("db-0", "app", namespace)
        bed.oom(bed.pods("app=web", namespace)[0]["metadata"]["name"], "app", namespace)
    for key in (("db", "app", "target", "memory"), ("web", "app", "target", "memory")):
        eventually(60, lambda: targets(bed, OURS)[key] > 1.1 * before[key] and spread(bed) == 1, f"the OOM of {key[0]} is in both")
    # Values that change with every sample, around the ninth decile.
    seen = set()
    for step, (app, side, db) in enumerate(zip((760, 830, 650, 900, 990, 720), (20, 130, 240, 350, 460, 570), (300, 953, 1006, 1059, 400, 1112))):
        sampled(bed, ports, 1, (f"{app}m", f"{100 + step}Mi"), (f"{side}m", "90Mi"), (f"{db}m", "90Mi"))
        same(bed, f"step {step}")
        seen |= {value for key, value in targets(bed, OURS).items() if key[3] == "cpu"}
    assert len(seen) > 7, f"the targets do not move: {seen}"
    for vpa in ("web", "db", "empty", "lost"):
        eventually(20, lambda: equal(conditions(bed, OURS, vpa), conditions(bed, THEIRS, vpa)), f"conditions of {vpa} are equal")
        assert status(bed, OURS, vpa)["observedGeneration"] == status(bed, THEIRS, vpa)["observedGeneration"]
    for bound, far in (("lowerBound", 1.3), ("upperBound", 1.3)):  # they follow the time between the first and the last sample
        for ours, theirs in zip(*(status(bed, ns, "web")["recommendation"]["containerRecommendations"] for ns in SIDES)):
            for resource in ("cpu", "memory"):
                pair = sorted((quantity(ours[bound][resource]), quantity(theirs[bound][resource])))
                assert pair[1] <= far * pair[0], (bound, ours, theirs)


@story("checkpoints are exchanged: upstream goes on from ours, we from upstream's")
def exchange(bed):
    if OURS not in {n["metadata"]["name"] for n in bed.list("Namespace")}:
        same_feed(bed)  # told alone
    assert bed.standing(), "the feed came to no good end"
    kept_ours, kept_theirs = (checkpoints(bed, ns) for ns in SIDES)
    assert set(kept_ours) == set(kept_theirs) == {"web-app", "web-side", "db-app"}, (kept_ours, kept_theirs)
    for name, ours in kept_ours.items():
        theirs = kept_theirs[name]
        assert ours["spec"] == theirs["spec"]
        assert ours["status"].keys() == theirs["status"].keys(), (ours["status"].keys(), theirs["status"].keys())
        assert ours["status"]["version"] == "v3" and ours["status"]["memoryHistogram"] == theirs["status"]["memoryHistogram"], (ours, theirs)
        assert ours["status"]["totalSamplesCount"] == theirs["status"]["totalSamplesCount"], (ours, theirs)
        mine, other = (set(c["status"]["cpuHistogram"]["bucketWeights"]) for c in (ours, theirs))
        assert mine == other, (mine, other)
    bed.standing()[-1].stop()
    bed.kit("vpa-upstream", "stop")
    kept = {ns: targets(bed, ns) for ns in SIDES}
    bed.upstream("recommender", recommender=f"{INTERVAL} --vpa-object-namespace={OURS}")
    program = bed.run(INTERVAL, "--controllers=recommender", f"--vpa-object-namespace={THEIRS}", name="exchange")
    sampled(bed, {OURS: bed.ports["recommender"], THEIRS: program.port}, 1, ("150m", "200Mi"), ("60m", "90Mi"), ("400m", "90Mi"))
    # Memory of the day that is under way is in no checkpoint: both start it anew, from the same samples.
    fresh = lambda ns: targets(bed, ns)["web", "app", "target", "memory"] < 0.5 * kept[ns]["web", "app", "target", "memory"]
    eventually(60, lambda: fresh(OURS) and fresh(THEIRS), "both have taken over")
    eventually(30, lambda: spread(bed) <= BUCKET, "and agree")
    for ns in SIDES:
        for key, value in targets(bed, ns).items():
            if key[3] == "cpu":
                assert max(value, kept[ns][key]) <= BUCKET * min(value, kept[ns][key]), (ns, key, value, kept[ns][key])
    program.stop()
    bed.kit("vpa-upstream", "stop")


# ---- Parts of both ----

@story("upstream's updater with our recommender and webhook", quick=True)
def their_updater(bed):
    program = bed.run("--controllers=recommender,admission", name="mixed")
    bed.upstream("updater")
    bed.usage("web-*", "app", "300m", "300Mi")
    bed.usage("place-*", "app", "300m", "300Mi")
    bed.apply(workload("web", "Recreate") + "---" + workload("place", "InPlaceOrRecreate"))
    before = {name: uids(bed.running(f"app={name}", 3)) for name in ("web", "place")}
    assert not uids(sized(bed, "web", 3, 120)) & before["web"]
    assert uids(sized(bed, "place", 3, 120)) == before["place"]
    lease = bed.get("Lease", "vpa-admission-controller", namespace="kube-system")
    eventually(60, lambda: bed.get("Lease", "vpa-admission-controller", namespace="kube-system")["spec"]["renewTime"] > lease["spec"].get("renewTime", ""),
               "the lease is renewed")
    bed.kit("vpa-upstream", "stop")
    program.stop()


@story("our updater with upstream's webhook, and nothing is evicted once its lease is old")
def their_webhook(bed):
    program = bed.run("--controllers=recommender,updater", "--admission-controller-status-lease-timeout=20s", name="mixed")
    bed.usage("web-*", "app", "300m", "300Mi")
    bed.usage("late-*", "app", "300m", "300Mi")
    bed.apply(workload("web", "Recreate"))
    before = uids(bed.running("app=web", 3))
    steady(8, lambda: uids(bed.pods("app=web")) == before, "no pod is evicted while there is no webhook")
    bed.upstream("admission")
    assert not uids(sized(bed, "web", 3, 120)) & before
    bed.kit("vpa-upstream", "stop")
    skipped = lambda: program.metric("vpa_updater_admission_controller_status_invalid_total", reason="invalid") or 0
    before = skipped()
    eventually(60, lambda: skipped() > before, "the lease is old")
    bed.apply(workload("late", "Recreate"))
    before = uids(bed.running("app=late", 3))
    steady(12, lambda: uids(bed.pods("app=late")) == before, "no pod is evicted")
    program.stop()


# ---- The same reviews ----

CONNECTIONS = {}


def review(port, request):
    """What a webhook answers."""
    if port not in CONNECTIONS:
        CONNECTIONS[port] = http.client.HTTPSConnection("127.0.0.1", port, context=ssl._create_unverified_context(), timeout=20)
    connection = CONNECTIONS[port]
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "1", "operation": "CREATE", "requestKind": request["kind"], "requestResource": request["resource"], **request}}
    connection.request("POST", "/", json.dumps(body), {"Content-Type": "application/json"})
    answer = json.loads(connection.getresponse().read())["response"]
    if "patch" in answer:
        answer["patch"] = json.loads(base64.b64decode(answer["patch"]))
    return answer


def plain(answer):
    """A patch without the order in which upstream goes through its maps."""
    rows = []
    for row in answer.get("patch") or []:
        if row["path"] == "/metadata/annotations/vpaUpdates":
            head, _, rest = row["value"].partition(": ")
            row = {**row, "value": head + ": " + "; ".join(part.split(": ", 1)[0] + ": " + ", ".join(sorted(part.split(": ", 1)[1].split(", ")))
                                                          if ": " in part else part for part in rest.split("; "))}
        rows.append(json.dumps(row, sort_keys=True))
    return answer["allowed"], sorted(rows)


def pod(containers, **more):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {
        "generateName": "web-", "namespace": "", "labels": {"app": "web"}, **more,
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "UID", "controller": True}]},
        "spec": {"containers": containers}}


def box(name="app", **resources):
    return {"name": name, "image": "app", **({"resources": resources} if resources else {})}


PODS = {
    "nothing asked for": pod([box()]),
    "requests": pod([box(requests={"cpu": "10m", "memory": "100Mi"})]),
    "requests and limits": pod([box(requests={"cpu": "10m", "memory": "100Mi"}, limits={"cpu": "25m", "memory": "150Mi"})]),
    "guaranteed": pod([box(requests={"cpu": "100m", "memory": "1Gi"}, limits={"cpu": "100m", "memory": "1Gi"})]),
    "limits only": pod([box(limits={"cpu": "1", "memory": "1Gi"})]),
    "cpu only": pod([box(requests={"cpu": "0.1"}, limits={"cpu": "0.35"})]),
    "odd amounts": pod([box(requests={"cpu": "1333m", "memory": "123456789"}, limits={"cpu": "1.5", "memory": "1e9", "example.com/gpu": "1"})]),
    "tiny": pod([box(requests={"cpu": "1m", "memory": "1"}, limits={"cpu": "1000", "memory": "1Ti"})]),
    "two, one unknown": pod([box(requests={"cpu": "10m"}), box("stranger", requests={"cpu": "10m"})]),
    "stranger without resources": pod([box(), box("stranger")]),
    "both": pod([box(requests={"cpu": "10m"}), box("side", requests={"memory": "1Gi"}, limits={"memory": "2Gi"})]),
    "annotated": pod([box(requests={"cpu": "10m"})], annotations={"a": "b"}),
    "empty annotations": pod([box(requests={"cpu": "10m"})], annotations={}),
    "other labels": pod([box()], labels={"app": "other"}),
    "init containers": {**pod([box()]), "spec": {"containers": [box()], "initContainers": [box("side")]}},
    "reversed": pod([box("side"), box(limits={"memory": "300Mi"})]),
}
POLICIES = {
    "none": {},
    "bounds": {"resourcePolicy": {"containerPolicies": [{"containerName": "app", "minAllowed": {"cpu": "600m"}, "maxAllowed": {"memory": "200Mi"}}]}},
    "RequestsOnly": {"resourcePolicy": {"containerPolicies": [{"containerName": "*", "controlledValues": "RequestsOnly"}]}},
    "app Off": {"resourcePolicy": {"containerPolicies": [{"containerName": "app", "mode": "Off"}]}},
    "memory only": {"resourcePolicy": {"containerPolicies": [{"containerName": "app", "controlledResources": ["memory"]}]}},
    "mode Off": {"updatePolicy": {"updateMode": "Off"}},
    "boost": {"startupBoost": {"cpu": {"type": "Factor", "factor": 3}}},
    "boost more": {"startupBoost": {"cpu": {"type": "Quantity", "quantity": "250m"}},
                   "resourcePolicy": {"containerPolicies": [{"containerName": "app", "controlledValues": "RequestsOnly"}]}},
    "boost of Off": {"updatePolicy": {"updateMode": "Off"}, "startupBoost": {"cpu": {"type": "Factor", "factor": 2}}},
    "Initial": {"updatePolicy": {"updateMode": "Initial"}},
}
RANGES = {
    "no range": None,
    "container max": [{"type": "Container", "max": {"cpu": "300m", "memory": "256Mi"}}],
    "container min": [{"type": "Container", "min": {"cpu": "800m", "memory": "1Gi"}}],
    "pod max": [{"type": "Pod", "max": {"cpu": "400m", "memory": "512Mi"}}],
    "pod min": [{"type": "Pod", "min": {"cpu": "1", "memory": "3Gi"}}],
    "container default": [{"type": "Container", "default": {"cpu": "2", "memory": "2Gi"}, "defaultRequest": {"cpu": "1"}}],
}
# Limits that stay as they are (RequestsOnly) take their own room of a Pod LimitRange's max; upstream scales as if they followed the
# requests: docs/deviations.md.
KEPT = {"RequestsOnly": ("cpu only", "both", "reversed"), "boost more": ("cpu only", "reversed")}


@story("the same pods get the same patches from both webhooks, whatever policies and LimitRanges say")
def same_patches(bed):
    gate = "--feature-gates=CPUStartupBoost=true"
    bed.upstream("admission", admission=gate)
    ours = bed.run(gate, "--controllers=admission", "--register-webhook=false", name="reviews", wait=False)
    bed.apply("""
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: app}]}
""")
    uid = bed.get("ReplicaSet", "web")["metadata"]["uid"]
    bed.create("VerticalPodAutoscaler", {
        "apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler", "metadata": {"name": "web"},
        "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web"}, "updatePolicy": {"updateMode": "Recreate"}}})
    row = lambda name, cpu, memory: {"containerName": name, "target": {"cpu": cpu, "memory": memory}, "lowerBound": {"cpu": cpu, "memory": memory},
                                     "upperBound": {"cpu": cpu, "memory": memory}, "uncappedTarget": {"cpu": cpu, "memory": memory}}
    bed.patch("VerticalPodAutoscaler", "web", {"status": {"recommendation": {"containerRecommendations": [
        row("app", "487m", "587804717"), row("side", "25m", "250Mi")]}}}, subresource="status")
    kind = {"kind": {"group": "", "version": "v1", "kind": "Pod"}, "resource": {"group": "", "version": "v1", "resource": "pods"}, "namespace": bed.ns}
    seen = set()
    for range_name, limits in RANGES.items():
        if limits:
            bed.create("LimitRange", {"metadata": {"name": "range"}, "spec": {"limits": limits}})
        for policy_name, policy in POLICIES.items():
            spec = {"targetRef": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web"}, "updatePolicy": {"updateMode": "Recreate"}, **policy}
            bed.patch("VerticalPodAutoscaler", "web", [{"op": "replace", "path": "/spec", "value": spec}], "json")

            def differences():
                found = []
                for name, body in PODS.items():
                    body = json.loads(json.dumps(body).replace('"UID"', f'"{uid}"').replace('"namespace": ""', f'"namespace": "{bed.ns}"'))
                    answers = [plain(review(port, {**kind, "object": body})) for port in (bed.ports["webhook"], ours.webhook_port)]
                    seen.add(str(answers[1]))
                    is_kept = range_name == "pod max" and name in KEPT.get(policy_name, ())
                    if answers[0] != answers[1] and not is_kept and '"value": "-1' not in str(answers[0]):  # upstream's slip: docs/deviations.md
                        found.append((range_name, policy_name, name, answers))
                return found
            # Both read policies and ranges from watches: once they have seen them, they agree.
            time.sleep(0.3)
            eventually(20, lambda: not (found := differences()) or (_ for _ in ()).throw(AssertionError(found[0])), "the patches are equal")
        if limits:
            bed.delete("LimitRange", "range")
            time.sleep(0.5)
    assert len(seen) > 100, f"only {len(seen)} answers that differ"
    same_refusals(bed, ours)
    ours.stop()
    bed.kit("vpa-upstream", "stop")


SPECS = [
    {}, {"updatePolicy": {}}, {"updatePolicy": {"updateMode": "Sometimes"}}, {"updatePolicy": {"updateMode": "Auto"}},
    {"updatePolicy": {"updateMode": "InPlace"}}, {"updatePolicy": {"updateMode": "Recreate", "minReplicas": 0}},
    {"updatePolicy": {"updateMode": "Recreate", "evictAfterOOMSeconds": 5}},
    {"resourcePolicy": {"containerPolicies": [{"mode": "Auto"}, {"containerName": "a", "mode": "Sometimes"}]}},
    {"resourcePolicy": {"containerPolicies": [{"containerName": "a", "minAllowed": {"cpu": "1"}, "maxAllowed": {"cpu": "10m", "memory": "1"}}]}},
    {"resourcePolicy": {"containerPolicies": [{"containerName": "a", "minAllowed": {"cpu": "1500u", "memory": "1500m"}}]}},
    {"resourcePolicy": {"containerPolicies": [{"containerName": "a", "mode": "Off", "controlledValues": "RequestsAndLimits"}]}},
    {"resourcePolicy": {"containerPolicies": [{"containerName": "a", "mode": "Off", "controlledValues": "RequestsOnly"}]}},
    {"resourcePolicy": {"containerPolicies": [{"containerName": "a", "controlledResources": ["cpu", "gpu"]}]}},
    {"resourcePolicy": {"containerPolicies": [{"containerName": "a", "oomBumpUpRatio": "0.5", "oomMinBumpUp": "-1"}]}},
    {"recommenders": [{"name": "a"}, {"name": "b"}]}, {"recommenders": [{"name": "a"}]},
    {"startupBoost": {"cpu": {"type": "Factor", "factor": 2}}},
    {"updatePolicy": {"updateMode": "Recreate", "minReplicas": -3}, "recommenders": [{"name": "a"}, {"name": "b"}]},
]


def in_order(part):
    """Upstream goes over resources in a random order: sentences and causes are compared sorted."""
    if isinstance(part, str):
        about, _, sentences = part.replace("[", "").replace("]", "").partition(" is invalid: ")
        return about, sorted(re.split(r", (?=spec)", sentences))
    return {**part, "causes": sorted(part.get("causes", []), key=str)} if isinstance(part, dict) else part


def same_refusals(bed, ours):
    """VPAs are refused in the same words, with the same causes; the same default is filled in."""
    kind = {"group": "autoscaling.k8s.io", "version": "v1", "kind": "VerticalPodAutoscaler"}
    resource = {"group": "autoscaling.k8s.io", "version": "v1", "resource": "verticalpodautoscalers"}
    for spec in SPECS:
        body = {"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler", "metadata": {"name": "v", "namespace": bed.ns},
                "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "v"}, **spec}}
        request = {"kind": kind, "resource": resource, "namespace": bed.ns, "name": "v", "object": body}
        theirs, mine = (review(port, request) for port in (bed.ports["webhook"], ours.webhook_port))
        assert mine.get("warnings") == theirs.get("warnings"), (spec, mine, theirs)
        assert mine["allowed"] == theirs["allowed"] and mine.get("patch") == theirs.get("patch"), (spec, mine, theirs)
        if not mine["allowed"]:
            for part in ("message", "reason", "code", "details"):
                assert in_order(mine["status"].get(part)) == in_order(theirs["status"].get(part)), (spec, part, mine["status"], theirs["status"])


main(setup=lambda bed: None)
