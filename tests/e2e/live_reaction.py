#!/usr/bin/env python3
"""How long from a value in metrics to the scale write, beside the HPA controller of kube-controller-manager at the same sync period, and
at how many requests. live_reaction.py BUILD [--changes N]: 40 changes unless told. Upstream's controller serves autoscaling/v2, ours
autoscaling.tandem.dev/v2; both see the same values from the same moment on. Times and counts are the API server's audit log's."""

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

from bed import eventually, main, story

CHANGES = int(sys.argv[sys.argv.index("--changes") + 1]) if "--changes" in sys.argv else 40
if "--changes" in sys.argv:
    del sys.argv[sys.argv.index("--changes"):sys.argv.index("--changes") + 2]
HPAS, PERIOD = 20, 15
FOLDER = tempfile.mkdtemp(prefix="tandem-reaction-")
atexit.register(shutil.rmtree, FOLDER, True)
with open(os.path.join(FOLDER, "policy"), "w") as policy_file:
    json.dump({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived", "ResponseStarted"],
               "rules": [{"level": "Metadata", "omitManagedFields": True}]}, policy_file)
ARGS = f"--audit-policy-file={FOLDER}/policy --audit-log-path={FOLDER}/log --audit-log-maxsize=4096"
SIDES = {"ours": ("TandemHPA", "tandem/"), "theirs": ("HorizontalPodAutoscaler", "horizontal-pod-autoscaler")}
TARGET = """
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: NAME}
spec:
  replicas: 2
  serviceName: NAME
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec: {containers: [{name: app, image: app, resources: {requests: {cpu: 100m, memory: 100Mi}}}]}
"""


def when(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def audit(since, until):
    """What each side asked: (when, namespace, name, whether it is a write of a scale)."""
    asked = collections.defaultdict(list)
    with open(os.path.join(FOLDER, "log")) as log:
        for line in log:
            event = json.loads(line)
            at, about = when(event["requestReceivedTimestamp"]), event.get("objectRef", {})
            for side, (_, agent) in SIDES.items():
                if agent in event.get("userAgent", "") and since <= at < until:
                    is_scale = about.get("subresource") == "scale" and event["verb"] == "update"
                    asked[side].append((at, about.get("namespace"), about.get("name"), is_scale))
    return asked


def percentile(lags, share):
    return sorted(lags)[min(len(lags) - 1, int(len(lags) * share))]


def play(bed, names):
    """Changes each value in turn at moments of its own: (when it was there, name). Between two of one HPA lie two sync periods, so that
    both sides have settled."""
    plan = sorted((random.uniform(0, PERIOD) + turn * (2.2 * PERIOD) + random.uniform(0, PERIOD / 2), name, turn)
                  for name in names for turn in range(CHANGES // HPAS))
    began, made = time.time(), []
    for at, name, turn in plan:
        time.sleep(max(0, began + at - time.time()))
        bed.usage(f"{name}-*", "*", "100m" if turn % 2 == 0 else "20m", "20Mi", namespace="reaction*")
        made.append((time.time(), name))
    time.sleep(1.5 * PERIOD)
    return made


def lags(made, writes, namespace):
    """From each value to the first write of its scale before the next value, and how many had none: they count as that long."""
    found, missed = [], 0
    for at, name in made:
        until = min([later for later, other in made if other == name and later > at], default=at + 2 * PERIOD)
        first = min([w for w, ns, target, is_scale in writes if is_scale and ns == namespace and target == name and at <= w < until], default=None)
        missed += first is None
        found.append((first or until) - at)
    return found, missed


@story("a new value is acted upon within a second, with no more requests than upstream's controller makes")
def reaction(bed):
    places = {"ours": "reaction-ours", "theirs": bed.ns}
    bed.create("Namespace", {"metadata": {"name": places["ours"]}})
    names = [f"web{i}" for i in range(HPAS)]
    for name in names:
        bed.usage(f"{name}-*", "*", "50m", "20Mi", namespace="reaction*")
    for side, namespace in places.items():
        bed.apply("".join(TARGET.replace("NAME", name) for name in names), namespace)
    for namespace in places.values():
        eventually(180, lambda: sum(any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", []))
                                    for pod in bed.pods(namespace=namespace)) == 2 * HPAS, "all pods are ready")
    for side, namespace in places.items():
        for name in names:
            bed.create(SIDES[side][0], {"metadata": {"name": name}, "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": name}, "minReplicas": 2, "maxReplicas": 4,
                "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}],
                "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}}}}, namespace=namespace)
    time.sleep(5 * PERIOD)  # both have judged each HPA a few times, and its pods are old enough to count
    began = time.time()
    made = play(bed, names)
    asked = audit(began, time.time())
    minutes = (time.time() - began) / 60
    shown = {}
    for side, namespace in places.items():
        seen, missed = lags(made, asked[side], namespace)
        shown[side] = (percentile(seen, 0.5), percentile(seen, 0.99), len(asked[side]) / minutes, missed)
        print("     {}: {} changes, p50 {:.2f} s, p99 {:.2f} s, {:.0f} requests/min, {} never acted upon".format(side, len(seen), *shown[side]), flush=True)
    assert shown["ours"][3] == 0, "every value is acted upon before the next"
    assert shown["ours"][0] <= 1, "half of all changes are acted upon within a second"
    assert shown["ours"][1] < shown["theirs"][1], "and the slowest sooner than upstream's"
    assert shown["ours"][2] <= shown["theirs"][2], "with no more requests"


if __name__ == "__main__":
    main("upstream", env={"APISERVER_ARGS": ARGS}, setup=lambda bed: bed.run(
        f"--horizontal-pod-autoscaler-sync-period={PERIOD}s", "--horizontal=off", "--controllers=horizontal", "--leader-elect=false"))
