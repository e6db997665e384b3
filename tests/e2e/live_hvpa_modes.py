#!/usr/bin/env python3
"""Hvpas of cpu and memory: each mode over a load that asks for both; two wishes at once; a ratio without borders; whole HPA and VPA objects as
specs; fields without effect."""

import time

from bed import eventually, main, quantity, requests, story
from hvpa_play import DEPLOYMENT, FLAGS, WEB, Play, condition, decision, judged, status

CPU = 'controlledResources: [cpu], minAllowed: {cpu: 100m}, maxAllowed: {cpu: "4"}'
BOTH = 'controlledResources: [cpu, memory], minAllowed: {cpu: 100m, memory: 100Mi}, maxAllowed: {cpu: "4", memory: 4Gi}'
assert CPU in WEB
WEB_OF_BOTH = WEB.replace(CPU, BOTH)
NEED = quantity("900Mi")  # of each pod's memory, more than the template has


def memory(bed, name):
    """The smallest request of a pod."""
    return min(quantity(requests(pod)["memory"]) for pod in bed.pods(f"app={name}"))


@story("each mode gives cpu and memory to a load that asks for both, without going back and forth", quick=True)
def both(bed):
    names = {"hpapreferred": "HPAPreferred", "hpabiased": "HPABiased", "vpabiased": "VPABiased", "mixed": "Mixed", "ratio": "RatioBased"}
    for name, mode in names.items():
        text = WEB_OF_BOTH.replace("web", name).replace("RatioBased", mode)
        bed.apply(text.replace("maxReplicas: 20", "maxReplicas: 3") if mode == "HPAPreferred" else text)
    plays = {name: Play(bed, name) for name in names}

    def live(seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for play in plays.values():
                play.look()
            time.sleep(0.25)
    live(1)
    eventually(60, lambda: (live(0.1), all(judged(bed, name) for name in names))[1], "all verdicts are there")
    for play in plays.values():
        play.demand, play.memory = 5.0, "900Mi"

    def done(name):
        _, replicas, size = plays[name].looks[-1]
        if name == "hpapreferred":
            return replicas == 3 and size > 1000 and memory(bed, name) >= NEED
        total = replicas * (size if name == "ratio" else 1000)  # by what the HPA measures against
        return total >= 0.9 * 2000 * 5.0 and memory(bed, name) >= NEED
    eventually(90, lambda: (live(0.1), all(done(name) for name in names))[1], "each has what it needs of both")
    live(10)
    for name, mode in names.items():
        way = f"{name}: {plays[name].way()}"
        assert done(name), f"{way}, memory {memory(bed, name)}"
        assert plays[name].turns() <= 1, f"goes back and forth: {way}"
        given = decision(bed, name)["requests"]["app"]
        assert quantity(given["memory"]) >= NEED and quantity(given["cpu"]) >= 1, given
        assert status(bed, name)["mode"] == mode and condition(bed, name=name) == "True/Deciding"
        assert bed.events("VerticalScaled", name) and bed.events("HorizontalScaled", name)


# Mode, what else the spec says, and the axis of two wishes at once.
TWO_WISHES = [
    ("HPAPreferred", {}, "Horizontal"), ("HPABiased", {}, "Horizontal"), ("VPABiased", {}, "Vertical"),
    ("Mixed", {"preference": "horizontal"}, "Horizontal"), ("Mixed", {"preference": "vertical"}, "Vertical"),
    ("Mixed", {"preference": "horizontal", "horizontalThreshold": 100}, "Vertical"),
    ("Mixed", {"preference": "vertical", "verticalThreshold": {"cpu": {"value": "100"}, "memory": {"value": "100Gi"}}}, "Horizontal"),
    ("RatioBased", {}, "Both"),
]


@story("both wish to grow at once, the VPA cpu and memory: each mode takes the axis that the proposal names, Mixed by thresholds and preference")
def two_wishes(bed):
    bed.apply(WEB_OF_BOTH)
    bed.patch("Hvpa", "web", {"spec": {"paused": True, "coupling": "None", "vertical": {
        "settleSeconds": 0, "scaleUp": {"stabilizationDuration": "0s"}, "scaleDown": {"stabilizationDuration": "0s"}}}})
    play = Play(bed, demand=5.0, memory="900Mi")

    def wished():
        wish = status(bed)["recommendation"]
        target = wish["vertical"]["containers"][0]["target"]
        return wish["horizontal"]["desiredReplicas"] > 2 and quantity(target["cpu"]) > 1.5 and quantity(target["memory"]) > NEED
    play.until(90, lambda n, sizes: wished(), "both wishes are there")
    for mode, mixed, axis in TWO_WISHES:
        bed.patch("Hvpa", "web", {"spec": {"mode": mode, "mixed": None}})
        bed.patch("Hvpa", "web", {"spec": {"mixed": mixed or None}})
        play.until(30, lambda n, sizes, mode=mode, axis=axis: wished() and status(bed)["mode"] == mode and decision(bed)["axis"] == axis,
                   f"{mode} {mixed}: {axis}")
        made = decision(bed)
        given = made["requests"]["app"]
        grows = quantity(given["cpu"]) > 1 and quantity(given["memory"]) > (NEED if axis == "Vertical" else quantity("450Mi"))
        assert (made["replicas"] > 2) == (axis != "Vertical") and grows == (axis != "Horizontal"), (mode, mixed, made)
    assert play.look()[0] == 2, "a paused one changes nothing"


@story("Mixed: what is above the limit counts as above its threshold")
def above(bed):
    limited = WEB_OF_BOTH.replace("requests: {cpu: \"1\", memory: 400Mi}", "requests: {cpu: \"1\", memory: 400Mi}, limits: {cpu: LIMIT, memory: 8Gi}")
    assert "LIMIT" in limited
    mixed = "mode: Mixed\n  paused: true\n  coupling: None\n  mixed: {preference: vertical, verticalThreshold: {cpu: {value: \"100\"}, memory: {value: 100Gi}}}"
    for name, limit, axis in (("below", '"64"', "Horizontal"), ("above", '"1200m"', "Vertical")):
        bed.apply(limited.replace("LIMIT", limit).replace("mode: RatioBased", mixed).replace("web", name))
        play = Play(bed, name, demand=5.0)
        play.until(90, lambda n, sizes, name=name, axis=axis: quantity(status(bed, name)["recommendation"]["vertical"]["containers"][0]["target"]["cpu"]) > 1.5 and
                   status(bed, name)["recommendation"]["horizontal"]["desiredReplicas"] > 2 and decision(bed, name)["axis"] == axis, f"{name} the limit: {axis}")


@story("a ratio in an interval: below it the one axis, within both, above it the other, up and down")
def interval(bed):
    spec = "mode: RatioBased\n  initialScaling: horizontal\n  finalScaling: vertical\n" \
           "  ratioBasedScalingSpec: {vToHScalingRatio: 1, startReplicaCount: 3, finishReplicaCount: 5}"
    play = Play(bed)
    bed.apply(WEB.replace("mode: RatioBased", spec))
    play.until(60, lambda n, sizes: judged(bed), "both verdicts are there")
    assert play.look() == (2, [1000, 1000]), play.way()
    for demand, check, what in ((1.4, lambda n, sizes: (n, sizes[-1]) == (3, 1000), "below the interval replicas alone"),
                                (3.0, lambda n, sizes: 3 < n <= 5 and sizes[-1] > 1050 and n * sizes[0] >= 0.9 * 6000, "within it both"),
                                (9.0, lambda n, sizes: n == 5 and sizes[0] >= 3000, "above it sizes alone")):
        play.demand = demand
        play.until(90, check, what)
        play.holds(6, lambda n, sizes: n <= 5, "replicas stay")
    play.demand = 0.4
    play.until(120, lambda n, sizes: n == 1, "down to minReplicas")
    assert play.turns() <= 1, play.way()


@story("a ratio without borders: at maxReplicas sizes go on to maxAllowed, at minReplicas to minAllowed")
def borders(bed):
    text = WEB.replace('maxAllowed: {cpu: "4"}', 'maxAllowed: {cpu: "2"}').replace("maxReplicas: 20", "maxReplicas: 4")
    assert "startReplicaCount" not in text and "finishReplicaCount" not in text
    play = Play(bed)
    bed.apply(text)
    play.until(60, lambda n, sizes: judged(bed), "both verdicts are there")
    play.demand = 12.0
    play.until(90, lambda n, sizes: n == 4 and sizes[0] == 2000, "replicas to their maximum, sizes to theirs")
    play.demand = 0.02
    play.until(120, lambda n, sizes: n == 1 and sizes[-1] == 100, "and both to their minimum")
    assert play.turns() <= 1, play.way()


WHOLE = """
---
apiVersion: autoscaling.k8s.io/v1alpha1
kind: Hvpa
metadata: {name: web}
spec:
  mode: HPABiased
  hpaSpec:
    apiVersion: autoscaling/v2
    kind: HorizontalPodAutoscaler
    metadata: {name: of-before}
    spec:
      scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
      minReplicas: 1
      maxReplicas: 6
      metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]
  vpaSpec:
    apiVersion: autoscaling.k8s.io/v1
    kind: VerticalPodAutoscaler
    metadata: {name: of-before}
    spec:
      targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
      resourcePolicy: {containerPolicies: [{containerName: app, controlledResources: [memory], minAllowed: {memory: 700Mi}}]}
"""


@story("whole HPA and VPA objects as hpaSpec and vpaSpec: their specs count, and their targets")
def whole(bed):
    play = Play(bed, demand=2.5)
    bed.apply(DEPLOYMENT + WHOLE)
    play.until(90, lambda n, sizes: 4 <= n <= 6, "replicas by the HPA's metric, within its range")
    play.until(90, lambda n, sizes: memory(bed, "web") >= quantity("700Mi"), "sizes by the VPA's policy")
    assert play.look()[1][-1] == 1000, "cpu is not controlled"
    assert not bed.list("HorizontalPodAutoscaler") and not bed.list("VerticalPodAutoscaler"), "no other object is made"
    bed.refused(DEPLOYMENT.replace("web", "other") + WHOLE.replace("{name: web}", "{name: other}", 1).replace("Deployment, name: web", "Deployment, name: other", 1), "targetRef")


@story("what is accepted and has no effect is warned of, field by field")
def warned(bed):
    bed.apply(DEPLOYMENT)
    rows = [
        ({"mode": "HPABiased", "ratioBasedScalingSpec": {"vToHScalingRatio": 1}}, ["spec.ratioBasedScalingSpec"]),
        ({"mode": "RatioBased", "initialScaling": "vertical"}, ["spec.initialScaling"]),
        ({"mode": "RatioBased", "finalScaling": "horizontal"}, ["spec.finalScaling"]),
    ]
    for extra, words in rows:
        text = WEB.rpartition("---")[2].replace("  mode: RatioBased\n", "".join(f"  {key}: {value}\n" for key, value in extra.items()))
        code, said = bed.kubectl("-n", bed.ns, "apply", "--dry-run=server", "-f", "-", text=text, check=False)
        assert code == 0 and "Warning: " in said, (extra, said)
        for word in words:
            assert word in said, (word, said)
    code, said = bed.kubectl("-n", bed.ns, "apply", "--dry-run=server", "-f", "-", text=WEB.rpartition("---")[2], check=False)
    assert code == 0 and "Warning" not in said, said


main(setup=lambda bed: bed.run(*FLAGS, "--updater-interval=5s"))
