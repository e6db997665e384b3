#!/usr/bin/env python3
"""Hvpas, what is decided: five modes over a spike and its end, both sources, what holds a wish back, who else may not act, wrong ones."""

import datetime
import time

from bed import Refused, eventually, main, quantity, requests, steady, story
from hvpa_play import DEPLOYMENT, FLAGS, HVPA, WEB, Play, blocked, condition, decision, judged, status


@story("RatioBased shares a spike between number and size, and gives both back", quick=True)
def ratio(bed):
    play = Play(bed)
    bed.apply(WEB)
    play.until(60, lambda n, sizes: judged(bed), "both verdicts are there")
    play.demand = 5.0
    play.until(90, lambda n, sizes: n > 2 and n * sizes[0] >= 9000, "both axes grow until half of what is requested is used")
    assert len(play.look()[1]) == play.look()[0] and play.looks[-1][2] > 1000, play.way()
    now = eventually(20, lambda: (play.look(), (s := status(bed))["current"]["replicas"] == s["decision"]["replicas"] == play.looks[-1][1] and s)[1], "status")
    assert now["mode"] == "RatioBased" and now["targetSelector"] == "app=web"
    assert now["recommendation"]["horizontal"]["valid"] and now["recommendation"]["vertical"]["containers"][0]["target"]["cpu"]
    assert now["lastScaling"]["horizontalTime"] and now["lastScaling"]["verticalTime"]
    told = "".join(e["message"] for e in bed.events("HorizontalScaled", "web"))
    assert "RatioBased" in told and "2 -> " in told, told
    assert " -> " in bed.events("VerticalScaled", "web")[0]["message"]
    # A pod that comes now comes at that size, not at the template's.
    before = {pod["metadata"]["name"] for pod in bed.pods("app=web")}
    bed.delete("Pod", min(before))
    fresh = play.until(20, lambda n, sizes: [pod for pod in bed.pods("app=web") if pod["metadata"]["name"] not in before], "a new pod")
    assert quantity(requests(fresh[0])["cpu"]) > 1.5 and fresh[0]["metadata"].get("generation", 1) == 1

    play.demand = 1.0
    play.until(120, lambda n, sizes: n <= 3 and n * sizes[-1] <= 2700, "both are given back")
    assert play.turns() <= 2, play.way()
    scale = eventually(20, lambda: (s := bed.get("Hvpa", "web", "scale"))["spec"]["replicas"] == play.look()[0] and s, "the scale follows")
    assert scale["status"]["selector"] == "app=web"
    assert "RatioBased" in bed.kubectl("-n", bed.ns, "get", "hvpa", "web")
    assert "RatioBased" in bed.tandem("explain", "hvpa", "web", "-n", bed.ns)
    assert bed.programs[0].metric("hvpa_decisions_total", mode="RatioBased", axis="Both") >= 1


@story("each mode follows a spike and its end, without going back and forth")
def modes(bed):
    names = {"hpapreferred": "HPAPreferred", "hpabiased": "HPABiased", "vpabiased": "VPABiased", "mixed": "Mixed", "ratio": "RatioBased"}
    for name, mode in names.items():
        bed.apply(WEB.replace("web", name).replace("RatioBased", mode))
    # The HPA's own tolerance lets a tenth too much use rest, which RatioBased does; a user who wants more of the need says so.
    names["close"] = "RatioBased"
    bed.apply(WEB.replace("web", "close").replace("scaleUp: {policies", "scaleUp: {tolerance: 40m, policies"))
    plays = {name: Play(bed, name) for name in names}

    def live(seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for play in plays.values():
                play.look()
            time.sleep(0.25)

    live(1)
    eventually(60, lambda: (live(0.1), all(judged(bed, name) for name in names))[1], "all verdicts are there")
    for demand in (5.0, 1.0):
        before = {name: len(play.looks) - 1 for name, play in plays.items()}
        for play in plays.values():
            play.demand = demand
        live(40)
        quiet = time.monotonic()
        live(20)
        for name, play in plays.items():
            way = f"{name} at {demand}: {play.way(before[name])}"
            assert play.looks[-1][0] <= quiet, f"changes in the last third of a constant load: {way}"
            assert play.turns(before[name]) <= 1, f"goes back and forth: {way}"
            _, replicas, size = play.looks[-1]
            total = replicas * (size if name in ("hpapreferred", "ratio", "close") else 1000)  # by what the HPA measures against
            least = 1 / 1.1 if name == "ratio" else 0.95
            assert least * 2000 * demand <= total <= 1.3 * 2000 * demand, f"not what the HPA's target needs: {way}"
            assert names[name] != "RatioBased" or decision(bed, name)["reason"] == "NoChange", f"a wish is left: {way} {decision(bed, name)}"
            assert condition(bed, name=name) == "True/Deciding" and condition(bed, "Progressing", name) == "False/AsDecided"
        sizes = {name: play.looks[-1][2] for name, play in plays.items()}
        # What the HPA measures against the template is not smaller than that before a day was seen.
        assert all(sizes[name] == 1000 for name in ("hpapreferred", "hpabiased", "vpabiased", "mixed")), sizes
        for name in ("ratio", "close"):
            assert sizes[name] > 1300 if demand == 5.0 else sizes[name] < 1300, sizes
    for name, mode in names.items():
        assert status(bed, name)["mode"] == mode and bed.events("HorizontalScaled", name)
    assert decision(bed, "hpapreferred")["reason"] == "NoChange", status(bed, "hpapreferred")
    assert "the floor at which the HPA works" in bed.tandem("explain", "hvpa", "hpapreferred", "-n", bed.ns)


@story("at the ends of its range HPAPreferred grows pods and gives back what they grew")
def preferred(bed):
    play = Play(bed, demand=3.0)
    bed.apply(WEB.replace("RatioBased", "HPAPreferred").replace("maxReplicas: 20", "maxReplicas: 3"))
    play.until(90, lambda n, sizes: n == 3 and sizes[0] > 1000 and decision(bed)["axis"] in ("Vertical", "None"), "at maxReplicas pods grow")
    assert bed.condition("Hvpa", "web", "ScalingLimited")["status"] == "True"
    play.demand = 0.2
    play.until(90, lambda n, sizes: n == 1 and sizes[-1] == 1000, "at minReplicas they shrink to the template")


@story("Mixed waits below both thresholds, until its patience is over")
def patience(bed):
    play = Play(bed, demand=0.8)
    mixed = "mode: Mixed\n  mixed: {preference: horizontal, horizontalThreshold: 8, verticalThreshold: {cpu: {value: \"3\"}}, patienceSeconds: 8}\n" \
            "  coupling: Reconcile"
    bed.apply(WEB.replace("mode: RatioBased", mixed))
    play.until(60, lambda n, sizes: judged(bed), "both verdicts are there")
    play.demand = 2.0
    play.until(30, lambda n, sizes: decision(bed)["reason"] == "BelowThresholds", "both wishes are below")
    assert decision(bed)["belowThresholdsSince"] and play.look()[0] == 2
    play.until(30, lambda n, sizes: n > 2, "patience ends")
    assert any("ThresholdPatienceExpired" in e["message"] for e in bed.events("HorizontalScaled", "web"))


@story("verdicts of child objects: a stock HPA on the Hvpa's scale, and a VPA that only recommends")
def children(bed):
    play = Play(bed)
    bed.apply(WEB.replace("mode: RatioBased", "mode: RatioBased\n  sources: Objects"))
    hpa = play.until(30, lambda n, sizes: bed.get("HorizontalPodAutoscaler", "web-hvpa"), "a child HPA")
    vpa = play.until(30, lambda n, sizes: bed.get("VerticalPodAutoscaler", "web-hvpa"), "a child VPA")
    assert hpa["spec"]["scaleTargetRef"] == {"apiVersion": "autoscaling.k8s.io/v1alpha1", "kind": "Hvpa", "name": "web"}
    assert vpa["spec"]["targetRef"]["kind"] == "Deployment" and vpa["spec"]["updatePolicy"]["updateMode"] == "Off"
    assert all(child["metadata"]["ownerReferences"][0]["name"] == "web" for child in (hpa, vpa))
    play.until(60, lambda n, sizes: judged(bed), "both verdicts are there")
    play.demand = 5.0
    play.until(90, lambda n, sizes: n > 2 and n * sizes[0] >= 9000, "both axes grow")
    play.demand = 1.0
    play.until(120, lambda n, sizes: n <= 3 and n * sizes[-1] <= 2700, "both are given back")
    assert play.turns() <= 2, play.way()
    # Under Reference the child measures against the template.
    bed.patch("Hvpa", "web", {"spec": {"coupling": "Reference"}})
    target = play.until(30, lambda n, sizes: (t := bed.get("HorizontalPodAutoscaler", "web-hvpa")["spec"]["metrics"][0]["resource"]["target"])
                        ["type"] == "AverageValue" and t, "an absolute target")
    assert quantity(target["averageValue"]) == 0.5
    replicas = play.look()[0]
    bed.delete("Hvpa", "web")
    eventually(60, lambda: not bed.list("HorizontalPodAutoscaler") and not bed.list("VerticalPodAutoscaler"), "children go with it")
    play.holds(5, lambda n, sizes: n == replicas, "what was applied stays")


@story("the scale of an Hvpa can be read and written; what stands there is what was applied")
def scale(bed):
    play = Play(bed)
    bed.apply(WEB)
    play.until(30, lambda n, sizes: bed.get("Hvpa", "web", "scale")["spec"]["replicas"] == 2, "it is filled in on first sight")
    play.until(30, lambda n, sizes: bed.get("Hvpa", "web", "scale")["status"] == {"replicas": 2, "selector": "app=web"}, "its status")
    bed.kubectl("-n", bed.ns, "scale", "hvpa", "web", "--replicas=7")
    play.until(30, lambda n, sizes: bed.get("Hvpa", "web", "scale")["spec"]["replicas"] == 2, "only the workload's metrics count")
    assert play.looks[-1][1] == 2
    # Another client scales the workload: that is where the next decision starts.
    bed.kubectl("-n", bed.ns, "scale", "deployment", "web", "--replicas=6")
    play.until(60, lambda n, sizes: n <= 3, "back to what its load needs")
    bed.kubectl("-n", bed.ns, "scale", "deployment", "web", "--replicas=30")
    play.until(30, lambda n, sizes: n == 20, "at once within the range")
    bed.kubectl("-n", bed.ns, "scale", "deployment", "web", "--replicas=0")
    play.until(30, lambda n, sizes: decision(bed)["reason"] == "ScalingDisabled", "zero switches it off")
    play.holds(5, lambda n, sizes: n == 0, "and stays")


@story("a paused one decides, reports, and does nothing")
def paused(bed):
    play = Play(bed, demand=5.0)
    bed.apply(WEB.replace("mode: RatioBased", "paused: true"))
    play.until(60, lambda n, sizes: decision(bed)["reason"] == "BothApplied", "it decides")
    told = status(bed)
    assert told["decision"]["replicas"] > 2 and quantity(told["decision"]["requests"]["app"]["cpu"]) > 1
    assert told["recommendation"]["horizontal"]["desiredReplicas"] > 2 and "lastScaling" not in told
    assert condition(bed) == "True/Paused"
    play.holds(6, lambda n, sizes: (n, sizes) == (2, [1000, 1000]), "nothing is done")
    assert not bed.events("HorizontalScaled", "web") and not bed.events("VerticalScaled", "web")
    assert "paused" in bed.tandem("explain", "hvpa", "web", "-n", bed.ns)
    bed.patch("Hvpa", "web", {"spec": {"paused": False}})
    play.until(30, lambda n, sizes: n > 2 and sizes[0] > 1000, "then it acts")


@story("Off means off on each axis, and a maintenance window opens and closes it")
def policies(bed):
    play = Play(bed, demand=5.0)
    bed.apply(WEB)
    off = {"updatePolicy": {"updateMode": "Off"}}
    bed.patch("Hvpa", "web", {"spec": {"horizontal": {"scaleUp": off}, "vertical": {"scaleUp": off}}})
    play.until(60, lambda n, sizes: blocked(bed) == {"horizontal": "UpdatePolicy", "vertical cpu": "UpdatePolicy"}, "both axes are held")
    assert decision(bed)["reason"] == "Blocked" and decision(bed)["axis"] == "None"
    play.holds(5, lambda n, sizes: (n, sizes) == (2, [1000, 1000]), "nothing is done")
    assert status(bed)["recommendation"]["horizontal"]["desiredReplicas"] > 2

    def window(begin, end, zone):
        now = datetime.datetime.now(datetime.timezone(datetime.timedelta(hours=zone)))
        return {key: (now + datetime.timedelta(hours=hours)).strftime("%H%M%S%z") for key, hours in (("begin", begin), ("end", end))}

    inside = {"updatePolicy": {"updateMode": "MaintenanceWindow"}}
    bed.patch("Hvpa", "web", {"spec": {"maintenanceTimeWindow": window(2, 4, 1), "vertical": {"scaleUp": inside}}})
    play.until(30, lambda n, sizes: blocked(bed) == {"horizontal": "UpdatePolicy", "vertical cpu": "MaintenanceWindow"}, "the window is closed")
    play.holds(4, lambda n, sizes: (n, sizes) == (2, [1000, 1000]), "nothing is done")
    bed.patch("Hvpa", "web", {"spec": {"maintenanceTimeWindow": window(-1, 1, -5)}})
    play.until(30, lambda n, sizes: sizes[0] > 1000 and n == 2, "inside the window pods grow, and replicas do not")
    bed.patch("Hvpa", "web", {"spec": {"horizontal": {"scaleUp": {"updatePolicy": {"updateMode": "Auto"}}}}})
    play.until(30, lambda n, sizes: n > 2, "now they do")


@story("only one may act on a target")
def conflicts(bed):
    play = Play(bed, demand=1.0)
    bed.apply(DEPLOYMENT)
    bed.running("app=web", 2)
    play.look()  # the demand is shared from the first measurement on: one pod alone would ask for more size
    bed.apply(HVPA)
    play.until(60, lambda n, sizes: condition(bed) == "True/Deciding", "it acts")
    time.sleep(1)  # creation times are of whole seconds
    younger = HVPA.replace("{name: web}", "{name: younger}", 1)
    bed.refused(younger, "web already scales this target")
    bed.programs[-1].stop()  # past the webhook, which goes with the program
    bed.apply(younger)
    bed.run(*FLAGS)
    play.until(30, lambda n, sizes: condition(bed, name="younger") == "False/TargetConflict", "a younger one does not")
    assert "'web'" in bed.condition("Hvpa", "younger", "Ready")["message"] and condition(bed) == "True/Deciding"
    assert "TargetConflict" in bed.tandem("explain", "hvpa", "younger", "-n", bed.ns)

    vpa = """
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: rival}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  updatePolicy: {updateMode: "Off"}
"""
    bed.apply(vpa)
    play.holds(5, lambda n, sizes: condition(bed) == "True/Deciding", "a VPA of mode Off is no rival")
    bed.apply(vpa.replace('"Off"', "Initial"))
    play.until(30, lambda n, sizes: condition(bed) == "False/TargetConflict", "one of another mode is")
    assert "'rival'" in bed.condition("Hvpa", "web", "Ready")["message"]
    play.demand = 5.0
    play.holds(8, lambda n, sizes: (n, sizes) == (2, [1000, 1000]), "it stops")
    bed.delete("VerticalPodAutoscaler", "rival")
    play.until(60, lambda n, sizes: n > 2 and condition(bed) == "True/Deciding", "alone again it goes on")

    for kind, group in (("HorizontalPodAutoscaler", "autoscaling/v2"), ("TandemHPA", "autoscaling.tandem.dev/v2")):
        bed.create(kind, {"apiVersion": group, "kind": "HorizontalPodAutoscaler", "metadata": {"name": "rival"}, "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "minReplicas": 1, "maxReplicas": 20,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}]}})
        play.until(30, lambda n, sizes: condition(bed) == "False/TargetConflict", f"an HPA of {group} is a rival")
        bed.delete(kind, "rival")
        play.until(30, lambda n, sizes: condition(bed) == "True/Deciding", "and gone")
    assert len(bed.events("TargetConflict", "web")) >= 1
    bed.delete("Hvpa", "web")
    play.until(30, lambda n, sizes: condition(bed, name="younger") == "True/Deciding", "the younger follows the elder")


@story("a missing target, a missing metric, a loop: said in conditions and events")
def problems(bed):
    play = Play(bed)
    bed.apply(HVPA.replace("mode: RatioBased", "coupling: None").replace("- type: Resource\n", """- type: Pods
      pods: {metric: {name: requests}, target: {type: AverageValue, averageValue: "10"}}
    - type: Resource
"""))
    eventually(30, lambda: condition(bed) == "False/TargetNotFound", "there is no target")
    assert bed.events("TargetNotFound", "web")[0]["type"] == "Warning"
    bed.apply(DEPLOYMENT)
    play.until(90, lambda n, sizes: condition(bed) == "True/Deciding", "there is one")
    play.until(30, lambda n, sizes: condition(bed, "Coupled") == "True/LoopPossible", "nothing cuts the loop")
    assert bed.events("LoopPossible", "web")
    # One of two metrics is missing: out on the other one, never in.
    play.demand = 0.2
    play.holds(9, lambda n, sizes: n == 2, "not in on half of the metrics")
    play.demand = 5.0
    play.until(60, lambda n, sizes: n > 2, "out on the good one")
    bed.patch("Hvpa", "web", {"spec": {"hpaSpec": {"metrics": [{"type": "Pods", "pods": {
        "metric": {"name": "requests"}, "target": {"type": "AverageValue", "averageValue": "10"}}}]}}})
    play.until(30, lambda n, sizes: condition(bed, "HorizontalReady") == "False/MetricsUnavailable", "no metric at all")
    assert bed.events("RecommendationUnavailable", "web")
    size = play.looks[-1][2]
    play.demand = 12.0
    play.until(60, lambda n, sizes: sizes[0] > size, "the vertical axis goes on alone")
    bed.value("pods", "web-*", "requests", "12")
    play.until(30, lambda n, sizes: condition(bed, "HorizontalReady") == "True/ValidMetricFound", "the metric is there")


FAULTS = [
    ("mode: RatioBased", "mode: Both", "spec.mode", "Both"),
    ("minReplicas: 1", "minReplicas: 21", "spec.hpaSpec.maxReplicas", "20"),
    ("minReplicas: 1", "minReplicas: 0", "spec.hpaSpec.minReplicas", "0"),
    ("hpaSpec:", "hpaSpec:\n    scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: other}", "spec.hpaSpec.scaleTargetRef.name", "other"),
    ("vpaSpec:", "vpaSpec:\n    targetRef: {apiVersion: apps/v1, kind: StatefulSet, name: web}", "spec.vpaSpec.targetRef.kind", "StatefulSet"),
    ("vpaSpec:", "vpaSpec:\n    selector: {matchLabels: {role: leader}}", "spec.vpaSpec.selector", "RatioBased"),
    ("maxAllowed: {cpu: \"4\"}", "maxAllowed: {cpu: 50m}", "spec.vpaSpec.resourcePolicy.containerPolicies[0].maxAllowed.cpu", "50m"),
    ("averageUtilization: 50", "averageUtilization: 0", "spec.hpaSpec.metrics[0].resource.target.averageUtilization", "0"),
    ("stabilizationWindowSeconds: 5", "stabilizationWindowSeconds: 4000", "spec.hpaSpec.behavior.scaleDown.stabilizationWindowSeconds", "4000"),
    ("mode: RatioBased", "ratioBasedScalingSpec: {vToHScalingRatio: -1}", "spec.ratioBasedScalingSpec.vToHScalingRatio", "-1"),
    ("mode: RatioBased", "ratioBasedScalingSpec: {startReplicaCount: 9, finishReplicaCount: 4}", "spec.ratioBasedScalingSpec.finishReplicaCount", "4"),
    ("mode: RatioBased", "mixed: {horizontalThreshold: -1}", "spec.mixed.horizontalThreshold", "-1"),
    ("settleSeconds: 3", "tolerancePercent: 101", "spec.vertical.tolerancePercent", "101"),
    ("stabilizationDuration: 8s", "stabilizationDuration: soon", "spec.vertical.scaleDown.stabilizationDuration", "soon"),
    ("settleSeconds: 3", "scaleDown: {updatePolicy: {updateMode: MaintenanceWindow}}\n    settleSeconds: 3",
     "spec.vertical.scaleDown.updatePolicy.updateMode", "MaintenanceWindow"),
    ("mode: RatioBased", "maintenanceTimeWindow: {begin: 220000+0100, end: 210000+0000}", "spec.maintenanceTimeWindow", "220000+0100"),
]


@story("wrong specs are refused with their path")
def refused(bed):
    for old, new, path, value in FAULTS:
        text = HVPA.replace("    scaleDown: {stabilizationDuration: 8s}\n", "") if new.startswith("scaleDown") else HVPA
        assert old in text, old
        bed.refused(text.replace(old, new), path, value)
    bed.refused(HVPA.split("  targetRef")[0] + "  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}\n", "spec", "hpaSpec")
    # An update too, and what is there stays.
    bed.apply(HVPA)
    try:
        bed.patch("Hvpa", "web", {"spec": {"hpaSpec": {"minReplicas": 30}}})
        raise RuntimeError("accepted")
    except Refused as error:
        assert "spec.hpaSpec.maxReplicas" in error.message, error.message
    assert bed.get("Hvpa", "web")["spec"]["hpaSpec"]["minReplicas"] == 1


# Made before the webhook was there (prepare): what admission would have refused.
UNREFUSED = {"range": ("minReplicas: 1", "minReplicas: 21", "False/InvalidSpec", "spec.hpaSpec.maxReplicas"),
             "selector": ("vpaSpec:", "vpaSpec:\n    selector: {matchLabels: {role: leader}}", "False/InvalidSpec", "spec.vpaSpec.selector"),
             "mismatch": ("hpaSpec:", "hpaSpec:\n    scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: other}",
                          "False/TargetMismatch", "spec.hpaSpec.scaleTargetRef.name")}


@story("what admission did not see is said in the status, and nothing is done")
def unrefused(bed):
    bed.ns = "before"
    for name, (_, _, reason, path) in UNREFUSED.items():
        eventually(30, lambda n=name, r=reason: condition(bed, name=n) == r, f"{name} is not ready")
        assert path in bed.condition("Hvpa", name, "Ready")["message"]
        event = eventually(10, lambda n=name, r=reason: bed.events(r.split("/")[1], n), f"an event about {name}")
        assert len(event) == 1 and event[0]["type"] == "Warning" and event[0].get("count", 1) == 1
        assert path in bed.tandem("explain", "hvpa", name, "-n", bed.ns)
    bed.usage("*", "app", "3", "200Mi")
    steady(8, lambda: all(d["spec"]["replicas"] == 2 for d in bed.list("Deployment")), "nothing is scaled")
    # Mended, it works.
    bed.patch("Hvpa", "range", {"spec": {"hpaSpec": {"minReplicas": 1}}})
    eventually(60, lambda: bed.get("Deployment", "range")["spec"]["replicas"] > 2, "a mended one acts")


def prepare(bed):
    bed.create("Namespace", {"metadata": {"name": "before"}})
    for name, (old, new, _, _) in UNREFUSED.items():
        bed.apply(WEB.replace(old, new).replace("web", name), "before")
    bed.run(*FLAGS)


# The HPA controller of the cluster is at work, for child objects; Hvpas do not need ours.
main(hpa="upstream", env={"KCM_ARGS": "--horizontal-pod-autoscaler-sync-period=2s --horizontal-pod-autoscaler-cpu-initialization-period=1s "
                          "--horizontal-pod-autoscaler-initial-readiness-delay=1s"}, setup=prepare)
