#!/usr/bin/env python3
"""The proposals together: their example manifests as they stand in their texts, on the real server and on the local one; one VPA that uses three
proposals at once; an Hvpa whose mode is switched live between all of its modes; what is left of an Hvpa that is deleted."""

import contextlib
import os
import re
import subprocess
import tempfile

from bed import TOP, eventually, main, quantity, requests, steady, story
from hvpa_play import FLAGS, VERTICAL, WEB, DEPLOYMENT, Play, condition, judged, status

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


@contextlib.contextmanager
def local(bed):
    """kubectl on a local cluster: (arguments, text) -> (status, what it said)."""
    with tempfile.TemporaryDirectory() as folder:
        config = os.path.join(folder, "kubeconfig")
        up = subprocess.Popen([os.path.join(bed.build, "tandem"), "up", "--quiet", "--listen", "127.0.0.1:0", "--kubeconfig", config],
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

        def kubectl(*args, text=None):
            done = subprocess.run(["kubectl", "--kubeconfig", config, *args], env=bed.env, capture_output=True, text=True, input=text, timeout=60)
            return done.returncode, done.stdout + done.stderr
        try:
            eventually(30, lambda: kubectl("get", "--raw", "/readyz")[0] == 0, "the local cluster is there")
            yield kubectl
        finally:
            up.terminate()
            up.wait()


def real(bed):
    def kubectl(*args, text=None):
        done = subprocess.run(["kubectl", *args], env=bed.env, capture_output=True, text=True, input=text, timeout=60)
        return done.returncode, done.stdout + done.stderr
    return kubectl


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


GAMES = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: games.play.example}
spec:
  group: play.example
  names: {kind: Game, plural: games, singular: game}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas, labelSelectorPath: .status.selector}
"""
OWNED = """
---
apiVersion: autoscaling.tandem.dev/v2
kind: HorizontalPodAutoscaler
metadata: {name: NAME}
spec:
  selectionStrategy: OwnerReference
  scaleTargetRef: {apiVersion: API, kind: KIND, name: NAME}
  minReplicas: 1
  maxReplicas: 5
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]
"""
STRANGER = """
apiVersion: batch/v1
kind: Job
metadata: {name: stranger}
spec:
  template:
    metadata: {labels: {app: LABEL}}
    spec: {restartPolicy: Never, containers: [{name: app, image: app, resources: {requests: {cpu: 100m}}}]}
"""


def owned(name, kind, api):
    return OWNED.replace("NAME", name).replace("KIND", kind).replace("API", api)


def counts(bed, name):
    said = bed.condition("TandemHPA", name, "SelectionStrategy")
    return said["message"] if said and said["status"] == "True" else ""


@story("by owners: of a StatefulSet and of a custom resource only their own pods count, a Job's with the same labels do not")
def owners(bed):
    bed.usage("db-*", "app", "40m", "20Mi")
    bed.usage("game-*", "app", "40m", "20Mi")
    bed.usage("stranger-*", "app", "1", "20Mi")
    bed.apply(TWO_ROLES.replace("replicas: 3", "replicas: 2").replace("resources: {requests: {cpu: 100m, memory: 100Mi}}", "terminationGracePeriodSeconds: 1"))
    bed.apply(STRANGER.replace("LABEL", "db"))
    bed.running("app=db", 3)
    bed.usage("db-*", "side", "0", "1Mi")
    bed.patch("StatefulSet", "db", {"spec": {"template": {"spec": {"containers": [
        {"name": "app", "resources": {"requests": {"cpu": "100m"}}}, {"name": "side", "resources": {"requests": {"cpu": "10m"}}}]}}}}, "strategic")
    bed.apply(owned("db", "StatefulSet", "apps/v1"))
    eventually(60, lambda: "2 of 3 pods that the selector matches counted, 1 excluded" in counts(bed, "db"), "the StatefulSet's two count")
    said = bed.tandem("explain", "hpa", "db", "-n", bed.ns)
    assert "db-0" in said and "(of Job/stranger)" in said, said

    bed.apply(GAMES, None)
    eventually(30, lambda: "games" in bed.kubectl("api-resources", "--api-group=play.example"), "the kind is served")
    bed.apply("apiVersion: play.example/v1\nkind: Game\nmetadata: {name: game}\nspec: {replicas: 1}\n")
    bed.kubectl("-n", bed.ns, "patch", "games.play.example", "game", "--subresource=status", "--type=merge", "-p",
                '{"status": {"replicas": 1, "selector": "app=game"}}')
    uid = bed.kubectl("-n", bed.ns, "get", "games.play.example", "game", "-o", "jsonpath={.metadata.uid}")
    for name, owner in (("game-0", [{"apiVersion": "play.example/v1", "kind": "Game", "name": "game", "uid": uid, "controller": True}]), ("game-alone", [])):
        bed.create("Pod", {"metadata": {"name": name, "labels": {"app": "game"}, "ownerReferences": owner},
                           "spec": {"containers": [{"name": "app", "image": "app", "resources": {"requests": {"cpu": "100m"}}}]}})
    bed.running("app=game", 2)
    bed.apply(owned("game", "Game", "play.example/v1"))
    eventually(60, lambda: "1 of 2 pods that the selector matches counted, 1 excluded" in counts(bed, "game"), "the custom resource's own counts")
    assert "game-alone (no owner)" in bed.tandem("explain", "hpa", "game", "-n", bed.ns)


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


# Mode, what else the spec says, and the axis of two wishes at once.
TWO_WISHES = [
    ("HPAPreferred", {}, "Horizontal"), ("HPABiased", {}, "Horizontal"), ("VPABiased", {}, "Vertical"),
    ("Mixed", {"preference": "horizontal"}, "Horizontal"), ("Mixed", {"preference": "vertical"}, "Vertical"),
    ("Mixed", {"preference": "horizontal", "horizontalThreshold": 100}, "Vertical"),
    ("Mixed", {"preference": "vertical", "verticalThreshold": {"cpu": {"value": "100"}}}, "Horizontal"),
]


@story("both wish to grow at once: each mode takes the axis that the proposal names, Mixed by thresholds and preference")
def two_wishes(bed):
    bed.apply(WEB)
    bed.patch("Hvpa", "web", {"spec": {"paused": True, "coupling": "None", "vertical": {
        "settleSeconds": 0, "scaleUp": {"stabilizationDuration": "0s"}, "scaleDown": {"stabilizationDuration": "0s"}}}})
    play = Play(bed, demand=5.0)

    def both():
        wish = status(bed)["recommendation"]
        return wish["horizontal"]["desiredReplicas"] > 2 and \
            quantity(wish["vertical"]["containers"][0]["target"]["cpu"]) > 1.5
    play.until(90, lambda n, sizes: both(), "both wishes are there")
    for mode, mixed, axis in TWO_WISHES:
        bed.patch("Hvpa", "web", {"spec": {"mode": mode, "mixed": None}})
        bed.patch("Hvpa", "web", {"spec": {"mixed": mixed or None}})
        play.until(30, lambda n, sizes, mode=mode, axis=axis: both() and status(bed)["mode"] == mode and status(bed)["decision"]["axis"] == axis,
                   f"{mode} {mixed}: {axis}")
    assert play.look()[0] == 2, "a paused one changes nothing"


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
