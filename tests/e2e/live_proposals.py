#!/usr/bin/env python3
"""The proposals together: their example manifests as they stand in their texts, on the real server and on the local one; one VPA that uses three
proposals at once; an Hvpa whose mode is switched live between all of its modes; what is left of an Hvpa that is deleted."""

import os
import re

from bed import TOP, eventually, local, main, quantity, real, requests, steady, story
from hvpa_play import FLAGS, VERTICAL, WEB, DEPLOYMENT, Play, condition, judged, status
from servers import local, real

SEEDS = os.path.join(TOP, "..", "shared", "seeds")
MODES = ("HPAPreferred", "HPABiased", "VPABiased", "Mixed", "RatioBased")

# By the number of the text and of its block: what a server and validate say. Status blocks and comments are left as they are.
ACCEPTED = {("003", 0): "the Deployment, the Job and the HPA", ("004", 0): "a pod with resources", ("004", 1): "a pod with both levels",
            ("004", 2): "the same", ("004", 3): "a VPA with its status", ("004", 6): "valid, but impractical", ("004", 7): "a sidecar that is Off"}
REFUSED = {("004", 4): ("Duplicate value", "two containers of one name"), ("004", 5): ("must be controlled by at least one container policy", "a resource that nobody controls")}
FRAGMENTS = {("003", 1)}  # of an HPA: it has no name


def examples():
    """(text, block) -> YAML, as it stands there."""
    found = {}
    for name in sorted(os.listdir(SEEDS)):
        with open(os.path.join(SEEDS, name), encoding="utf-8") as file:
            for number, block in enumerate(re.findall(r"```yaml\n(.*?)```", file.read(), re.S)):
                found[(name[:3], number)] = block
    return found


@story("the example manifests of the proposals, as they stand there, on the real server and on the local one", quick=True)
def verbatim(bed):
    blocks = examples()
    assert set(blocks) == set(ACCEPTED) | set(REFUSED) | FRAGMENTS, sorted(blocks)
    with local(bed) as on_local:
        for server, kubectl in (("real", real(bed)), ("local", on_local)):
            for key, block in sorted(blocks.items()):
                if key in FRAGMENTS:
                    continue
                code, said = kubectl("apply", "--validate=strict", "-n", "default", "-f", "-", text=block)
                judged_offline = bed.tandem("validate", "-", text=block, check=False)
                if key in ACCEPTED:
                    assert code == 0, (server, key, said)
                    assert judged_offline[0] == 0, (key, judged_offline)
                else:
                    words, what = REFUSED[key]
                    assert code != 0 and words in said, (server, key, what, said)
                    assert judged_offline[0] == 1 and words in judged_offline[1], (key, judged_offline)
                kubectl("delete", "--ignore-not-found", "--wait=true", "--grace-period=0", "--force", "-n", "default", "-f", "-", text=block)
        # The fragment, in the HPA of the same text: taken where the field is served, refused elsewhere and by validate, which says what works.
        line = re.search(r"^  SelectionStrategy: \w+", blocks[("003", 1)], re.M)[0]
        chosen = blocks[("003", 0)].rpartition("---\n")[2].replace("spec:\n", f"spec:\n{line}\n", 1)
        code, said = on_local("apply", "--validate=strict", "-n", "default", "-f", "-", text=chosen)
        assert code == 0, said
        assert on_local("get", "hpa", "test-app-hpa", "-n", "default", "-o", "jsonpath={.spec.selectionStrategy}") == (0, "OwnerReference")
        code, said = real(bed)("apply", "--validate=strict", "-n", "default", "-f", "-", text=chosen)
        assert code != 0 and 'unknown field "spec.SelectionStrategy"' in said, said
        code, said, _ = bed.tandem("validate", "-", text=chosen, check=False)
        assert code == 1 and "autoscaling.tandem.dev/v2" in said and "tandem.dev/hpa-selection-strategy" in said, said


# One workload of two roles whose pods have resources of their own.
TWO_ROLES = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 3
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db, role: follower}}
    spec:
      resources: {requests: {cpu: 100m, memory: 100Mi}}
      containers: [{name: app, image: app, resources: {requests: {cpu: 80m, memory: 80Mi}}}, {name: side, image: app}]
"""
THREE_IN_ONE = """
---
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: follower}
spec:
  targetRef: {apiVersion: apps/v1, kind: StatefulSet, name: db}
  selector: {matchLabels: {role: follower}}
  updatePolicy:
    updateMode: Recreate
    evictionRequirements: [{resources: [memory], changeRequirement: TargetHigherThanRequests}]
  resourcePolicy: {podPolicies: {maxAllowed: {cpu: "2", memory: 2Gi}}}
"""


@story("one VPA with a selector, resources of the pod and eviction requirements: each of the three counts")
def three_in_one(bed):
    bed.usage("db-*", "app", "10m", "20Mi")
    bed.usage("db-*", "side", "10m", "20Mi")
    bed.apply(TWO_ROLES)
    before = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in bed.running("app=db", 3)}
    bed.patch("Pod", "db-0", {"metadata": {"labels": {"role": "leader"}}})
    bed.apply(THREE_IN_ONE.replace("TargetHigherThanRequests", "TargetLowerThanRequests"))
    recommended = eventually(60, lambda: bed.get("VerticalPodAutoscaler", "follower")["status"]["recommendation"]["podRecommendation"]["target"],
                             "the pod has a recommendation")
    assert quantity(recommended["memory"]) > quantity("100Mi"), recommended

    def same(*names):
        now = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in bed.pods("app=db")}
        return all(now.get(name) == before[name] for name in names)
    steady(15, lambda: same(*before), "a growth is no shrink: the requirement withholds it")
    bed.patch("VerticalPodAutoscaler", "follower", {"spec": {"updatePolicy": {"evictionRequirements": [
        {"resources": ["memory"], "changeRequirement": "TargetHigherThanRequests"}]}}})
    eventually(120, lambda: not same("db-1") and not same("db-2") and len(bed.running("app=db", 3, 5)) == 3, "the followers grow")
    assert same("db-0"), "the leader is not selected"
    for name in ("db-1", "db-2"):
        pod = bed.get("Pod", name)
        assert quantity(pod["spec"]["resources"]["requests"]["memory"]) >= quantity(recommended["memory"]) * 0.9, pod["spec"]
        assert "Pod" in pod["metadata"]["annotations"]["vpaUpdates"], pod["metadata"]
    assert bed.get("Pod", "db-0")["spec"]["resources"]["requests"]["memory"] == "100Mi"


def circuit():
    """The modes in an order in which each follows each other one once."""
    left = {mode: [other for other in MODES if other != mode] for mode in MODES}
    path, stack = [], [MODES[-1]]
    while stack:
        if left[stack[-1]]:
            stack.append(left[stack[-1]].pop())
        else:
            path.append(stack.pop())
    assert len(set(zip(path, path[1:]))) == len(path) - 1 == 20, path
    return path


@story("the mode is switched live, in all twenty ordered pairs: each is in force at once, and a load that rests moves nothing")
def switches(bed):
    bed.apply(WEB)
    play = Play(bed)
    play.look()
    eventually(60, lambda: play.look() and judged(bed), "both verdicts are there")
    play.until(60, lambda n, sizes: condition(bed) == "True/Deciding", "it decides")
    order = circuit()
    first = None
    for mode in order:
        bed.patch("Hvpa", "web", {"spec": {"mode": mode}})
        play.until(20, lambda n, sizes: status(bed).get("mode") == mode and condition(bed) == "True/Deciding", f"{mode} is in force")
        assert status(bed)["decision"]["reason"], status(bed)
        first = first or play.look()
    play.holds(6, lambda n, sizes: n >= 1 and sizes[-1] >= 100, "the workload is there")
    assert play.turns() <= 2, f"goes back and forth: {play.way()}"
    assert not bed.events("ScaleFailed", "web") and not bed.events("InvalidSpec", "web")


@story("deleted: the next pods have what the template says, or with onDelete: Keep what the Hvpa gave them")
def deleted(bed):
    for keeps in (False, True):
        bed.apply(DEPLOYMENT + VERTICAL)
        if keeps:
            bed.patch("Hvpa", "web", {"spec": {"onDelete": "Keep"}})
            eventually(30, lambda: bed.get("Hvpa", "web")["metadata"].get("finalizers") == ["tandem.dev/on-delete"], "it is held")
        play = Play(bed, demand=5.0)
        size = play.until(90, lambda n, sizes: sizes[0] >= 2000 and sizes[-1], "both pods are larger")
        assert quantity(bed.get("Deployment", "web")["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"]) == 1
        bed.delete("Hvpa", "web")
        eventually(30, lambda: not [row for row in bed.list("Hvpa") if row["metadata"]["name"] == "web"], "it goes")
        template = bed.get("Deployment", "web")["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]
        assert (quantity(template["cpu"]) * 1000 >= 0.8 * size) if keeps else (quantity(template["cpu"]) == 1), (keeps, template, size)
        known = {pod["metadata"]["uid"] for pod in bed.running("app=web", 2)}
        bed.delete("Pod", bed.pods("app=web")[0]["metadata"]["name"])
        fresh = eventually(60, lambda: [pod for pod in bed.running("app=web", 2, 5) if pod["metadata"]["uid"] not in known], "another pod")
        assert all(requests(pod)["cpu"] == template["cpu"] for pod in fresh), [requests(pod) for pod in fresh]
        if keeps:
            eventually(20, lambda: bed.events("SizesKept", "web"), "the event tells it")
        bed.delete("Deployment", "web")
        eventually(60, lambda: not bed.pods("app=web"), "nothing is left")


def setup(bed):
    bed.run(*FLAGS, "--updater-interval=5s")


main(setup=setup)
