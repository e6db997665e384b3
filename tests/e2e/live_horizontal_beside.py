#!/usr/bin/env python3
"""HPAs beside the controller of kube-controller-manager: equal ones on the same measurements end in the same numbers and words, and two
controllers never scale one target. Here upstream's controller serves autoscaling/v2, ours autoscaling.tandem.dev/v2."""

import json
import re
import time

from bed import Refused, eventually, main, steady, story

FLAGS = ["--horizontal-pod-autoscaler-sync-period=5s", "--horizontal-pod-autoscaler-downscale-stabilization=10s",
         "--horizontal-pod-autoscaler-cpu-initialization-period=2s", "--horizontal-pod-autoscaler-initial-readiness-delay=1s"]
OURS, THEIRS = "TandemHPA", "HorizontalPodAutoscaler"

# StatefulSets, so that pods have the same names on both sides.
TARGET = """
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: NAME}
spec:
  replicas: REPLICAS
  serviceName: NAME
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: LABEL}}
  template:
    metadata: {labels: {app: LABEL}}
    spec:
      containers:
      - {name: app, image: app, resources: {requests: {cpu: 100m, memory: 100Mi}}}
      - {name: side, image: side, resources: {requests: {cpu: 100m, memory: 100Mi}}}
"""


def target(name, replicas, label=None):
    return TARGET.replace("NAME", name).replace("REPLICAS", str(replicas)).replace("LABEL", label or name)


def resource(name, **aim):
    kind = "Utilization" if "averageUtilization" in aim else "AverageValue"
    return {"type": "Resource", "resource": {"name": name, "target": {"type": kind, **aim}}}


def cpu(percent):
    return resource("cpu", averageUtilization=percent)


def pods(metric, average, selector=None):
    return {"type": "Pods", "pods": {"metric": {"name": metric, **({"selector": selector} if selector else {})},
                                     "target": {"type": "AverageValue", "averageValue": average}}}


def thing(metric, kind, name, **aim):
    return {"type": "Object", "object": {"metric": {"name": metric}, "describedObject": {"apiVersion": "v1", "kind": kind, "name": name},
                                         "target": {"type": "Value" if "value" in aim else "AverageValue", **aim}}}


def external(metric, labels=None, **aim):
    return {"type": "External", "external": {"metric": {"name": metric, **({"selector": {"matchLabels": labels}} if labels else {})},
                                             "target": {"type": "Value" if "value" in aim else "AverageValue", **aim}}}


def container(name, container_name, **aim):
    return {"type": "ContainerResource", "containerResource": {
        "name": name, "container": container_name, "target": {"type": "Utilization" if "averageUtilization" in aim else "AverageValue", **aim}}}


AT_ONCE = {"scaleDown": {"stabilizationWindowSeconds": 0}}
ONE_BY_ONE = {"scaleDown": {"stabilizationWindowSeconds": 0, "policies": [{"type": "Pods", "value": 1, "periodSeconds": 5}]},
              "scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 5}]}}

# Name -> (replicas or None for no target, cpu of each container before and after, spec of the HPA).
CASES = {
    "up": (2, "200m", "200m", {"maxReplicas": 4, "metrics": [cpu(50)]}),
    "within": (2, "52m", "48m", {"maxReplicas": 4, "metrics": [cpu(50)]}),
    "down": (4, "10m", "60m", {"maxReplicas": 6, "metrics": [cpu(50)]}),
    "down-at-once": (4, "10m", "60m", {"maxReplicas": 6, "metrics": [cpu(50)], "behavior": AT_ONCE}),
    "one-by-one": (4, "10m", "90m", {"maxReplicas": 4, "metrics": [cpu(50)], "behavior": ONE_BY_ONE}),
    "never-up": (2, "200m", "10m", {"maxReplicas": 4, "metrics": [cpu(50)], "behavior": {"scaleUp": {"selectPolicy": "Disabled"}, **AT_ONCE}}),
    "never-down": (4, "10m", "200m", {"maxReplicas": 5, "metrics": [cpu(50)], "behavior": {"scaleDown": {"selectPolicy": "Disabled"}}}),
    "window-up": (2, "200m", "200m", {"maxReplicas": 4, "metrics": [cpu(50)], "behavior": {"scaleUp": {"stabilizationWindowSeconds": 3600}}}),
    "tolerant": (2, "70m", "90m", {"maxReplicas": 4, "metrics": [cpu(50)], "behavior": {"scaleUp": {"tolerance": "500m"}}}),
    "memory": (2, "10m", "10m", {"maxReplicas": 4, "metrics": [resource("memory", averageValue="30Mi")]}),
    "both": (2, "30m", "90m", {"maxReplicas": 4, "metrics": [cpu(50), resource("memory", averageUtilization=90)]}),
    "container": (2, "200m", "20m", {"maxReplicas": 4, "metrics": [container("cpu", "app", averageUtilization=80)]}),
    "container-value": (2, "200m", "20m", {"maxReplicas": 4, "metrics": [container("memory", "side", averageValue="10Mi")]}),
    "no-container": (2, "200m", "20m", {"maxReplicas": 4, "metrics": [container("cpu", "nobody", averageUtilization=80)]}),
    "pods": (2, "10m", "10m", {"maxReplicas": 4, "metrics": [pods("rps", "10")]}),
    "pods-milli": (2, "10m", "10m", {"maxReplicas": 4, "metrics": [pods("rps", "18500m")]}),
    "object-value": (2, "10m", "10m", {"maxReplicas": 4, "metrics": [thing("hits", "Service", "front", value="50")]}),
    "object-average": (2, "10m", "10m", {"maxReplicas": 4, "metrics": [thing("hits", "Service", "front", averageValue="30")]}),
    "external-value": (2, "10m", "10m", {"maxReplicas": 4, "metrics": [external("queue", value="20")]}),
    "external-average": (2, "10m", "10m", {"maxReplicas": 4, "metrics": [external("queue", {"q": "a"}, averageValue="10")]}),
    "external-none": (2, "10m", "10m", {"maxReplicas": 4, "metrics": [external("queue", {"q": "nobody"}, averageValue="10")]}),
    "no-pods-metric": (2, "10m", "10m", {"maxReplicas": 4, "metrics": [pods("nothing", "10")]}),
    "no-object": (2, "10m", "10m", {"maxReplicas": 4, "metrics": [thing("hits", "Service", "back", value="50")]}),
    "no-kind": (2, "10m", "10m", {"maxReplicas": 4, "metrics": [thing("hits", "Nonsense", "back", value="50")]}),
    "half-broken-up": (2, "200m", "200m", {"maxReplicas": 4, "metrics": [pods("nothing", "10"), cpu(50)]}),
    "half-broken-down": (4, "10m", "10m", {"maxReplicas": 4, "metrics": [cpu(50), pods("nothing", "10")], "behavior": AT_ONCE}),
    "below": (1, "100m", "100m", {"minReplicas": 3, "maxReplicas": 4, "metrics": [cpu(50)]}),
    "above": (5, "100m", "100m", {"maxReplicas": 2, "metrics": [cpu(50)]}),
    "paused": (0, "100m", "100m", {"maxReplicas": 2, "metrics": [cpu(50)]}),
    "plain": (2, "100m", "100m", {"maxReplicas": 3}),
    "no-target": (None, "", "", {"maxReplicas": 2, "metrics": [cpu(50)]}),
    "no-such-kind": (None, "", "", {"maxReplicas": 2, "metrics": [cpu(50)], "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Nonsense", "name": "x"}}),
    "no-group": (None, "", "", {"maxReplicas": 2, "metrics": [cpu(50)], "scaleTargetRef": {"apiVersion": "nobody.dev/v1", "kind": "StatefulSet", "name": "x"}}),
    "no-scale": (None, "", "", {"maxReplicas": 2, "metrics": [cpu(50)], "scaleTargetRef": {"apiVersion": "batch/v1", "kind": "Job", "name": "x"}}),
    "old-version": (2, "200m", "200m", {"maxReplicas": 4, "metrics": [cpu(50)], "scaleTargetRef": {"apiVersion": "apps/v1beta1", "kind": "StatefulSet", "name": "old-version"}}),
}


def hpa(name, spec):
    return {"metadata": {"name": name}, "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": name}, **spec}}


def spoken(text, namespace):
    """Without what must differ: the namespace, and the order of names that upstream does not keep."""
    text = text.replace(namespace, "NS")
    return re.sub(r"\[(NS/[^]]*)\]", lambda names: "[" + " ".join(sorted(names[1].split())) + "]", text)


def told(bed, kind, namespace):
    """Name -> what a user sees of each HPA of a side."""
    seen = {}
    for item in bed.list(kind, namespace=namespace):
        status = item.get("status", {})
        name = item["metadata"]["name"]
        seen[name] = {
            "currentReplicas": status.get("currentReplicas", 0), "desiredReplicas": status.get("desiredReplicas", 0),
            "currentMetrics": status.get("currentMetrics"), "scaled": "lastScaleTime" in status,
            "conditions": [(c["type"], c["status"], c["reason"], spoken(c["message"], namespace)) for c in status.get("conditions", [])],
            "events": sorted({(e["type"], e["reason"], spoken(e["message"], namespace), e["source"]["component"])
                              for e in bed.list("Event", namespace=namespace)
                              if e["involvedObject"]["kind"] == "HorizontalPodAutoscaler" and e["involvedObject"]["name"] == name}),
        }
    return seen


def equal(bed, ours, theirs, names):
    """Every named HPA is the same on both sides, in all that is told of it."""
    mine, other = told(bed, OURS, ours), told(bed, THEIRS, theirs)
    differences = [f"{name}: {part}: {json.dumps(mine[name][part])}\n   beside {json.dumps(other[name][part])}"
                   for name in names for part in other[name] if mine[name][part] != other[name][part]]
    late = [name for name in names if not other[name]["conditions"]]
    assert not differences and not late, "\n".join([f"not judged by upstream: {late}", *differences])
    return True


@story("equal HPAs on the same measurements say and do the same as upstream's, to the letter")
def beside(bed):
    sides = {THEIRS: bed.ns, OURS: "beside-ours"}
    bed.create("Namespace", {"metadata": {"name": sides[OURS]}})
    alike = [name for name in CASES if name != "tolerant" or bed.keeps_tolerance()]
    for name, (_, before, _, _) in CASES.items():
        if before:
            bed.usage(f"{name}-[0-9]*", "*", before, "20Mi", namespace="beside*")
    bed.value("pods", "pods-*", "rps", "20", namespace="beside*")
    bed.value("services", "front", "hits", "100", namespace="beside*")
    bed.external("queue", {"q": "a"}, "25", namespace="beside*")
    bed.external("queue", {"q": "b"}, "35", namespace="beside*")
    for namespace in sides.values():
        bed.apply("".join(target(name, replicas) for name, (replicas, _, _, _) in CASES.items() if replicas is not None), namespace)
        total = sum(replicas for replicas, _, _, _ in CASES.values() if replicas)
        eventually(90, lambda: len([p for p in bed.pods(namespace=namespace) if any(
            c["type"] == "Ready" and c["status"] == "True" for c in p["status"].get("conditions", []))]) == total, "all pods are ready")
    time.sleep(3)  # so that no pod is young for one side only
    for kind, namespace in sides.items():
        for name, (_, _, _, spec) in CASES.items():
            bed.create(kind, hpa(name, spec), namespace=namespace)
    eventually(120, lambda: equal(bed, sides[OURS], sides[THEIRS], alike), "both sides are the same")
    if "tolerant" not in alike:  # upstream's server did not keep it, so its HPA is as any other
        replicas = {kind: bed.get("StatefulSet", "tolerant", namespace=ns)["spec"]["replicas"] for kind, ns in sides.items()}
        assert replicas[THEIRS] > 2 and replicas[OURS] == 2, replicas
    for name, (_, _, after, _) in CASES.items():
        if after:
            bed.usage(f"{name}-[0-9]*", "*", after, "20Mi", namespace="beside*")
    bed.value("pods", "pods-*", "rps", "18", namespace="beside*")
    bed.value("services", "front", "hits", "10", namespace="beside*")
    bed.external("queue", {"q": "a"}, "5", namespace="beside*")
    time.sleep(12)  # two sync periods of each
    eventually(120, lambda: equal(bed, sides[OURS], sides[THEIRS], alike), "both sides are the same after a change")


@story("pods that two HPAs count, pods without a request and metrics that are away: the same words")
def problems(bed):
    sides = {THEIRS: bed.ns, OURS: "problems-ours"}
    bed.create("Namespace", {"metadata": {"name": sides[OURS]}})
    cases = {"first": {"maxReplicas": 3, "metrics": [cpu(50)]}, "second": {"maxReplicas": 3, "metrics": [cpu(50)]},
             "bare": {"maxReplicas": 3, "metrics": [cpu(50)]}, "queue": {"maxReplicas": 3, "metrics": [external("Queue", value="10")]},
             "rps": {"maxReplicas": 3, "metrics": [pods("rps", "10")]}, "hits": {"maxReplicas": 3, "metrics": [thing("hits", "Service", "front", value="9")]}}
    bed.external("queue", {}, "10", namespace="problems*")
    bed.value("pods", "rps-*", "rps", "10", namespace="problems*")
    bed.value("services", "front", "hits", "9", namespace="problems*")
    for namespace in sides.values():
        bed.apply(target("first", 1, "shared") + target("second", 1, "shared") + target("queue", 1) + target("rps", 1) + target("hits", 1) +
                  target("bare", 1).replace("cpu: 100m, ", ""), namespace)
        eventually(60, lambda: len([p for p in bed.pods(namespace=namespace) if p["status"]["phase"] == "Running"]) == 6, "all pods run")
    time.sleep(3)
    for kind, namespace in sides.items():
        for name, spec in cases.items():
            bed.create(kind, hpa(name, spec), namespace=namespace)
            if name == "first":
                time.sleep(6)  # so that the first is alone on both sides before the second comes
    eventually(60, lambda: told(bed, THEIRS, bed.ns)["second"]["conditions"][-1][2] == "AmbiguousSelector", "upstream says so")
    eventually(90, lambda: equal(bed, sides[OURS], sides[THEIRS], set(cases) - {"first"}), "both sides are the same")
    away = ("queue", "rps", "hits")
    verdicts = lambda: [told(bed, THEIRS, bed.ns)[name]["conditions"][1] for name in away]
    with bed.dead("fakemetrics"):
        eventually(90, lambda: all(verdict[1] == "False" for verdict in verdicts()), "upstream notices")
        eventually(90, lambda: equal(bed, sides[OURS], sides[THEIRS], away), "both sides say the same of metrics that are away")
        # Discovery notices too, and has no version of custom metrics any more.
        eventually(180, lambda: sum("no known available metric versions" in verdict[3] for verdict in verdicts()) == 2, "upstream sees it in discovery")
        eventually(90, lambda: equal(bed, sides[OURS], sides[THEIRS], away), "both sides say the same of metrics that no server has")
    eventually(90, lambda: all(verdict[1] == "True" for verdict in verdicts()), "upstream is well again")
    eventually(90, lambda: equal(bed, sides[OURS], sides[THEIRS], away), "both are well again")


@story("HPAs that upstream refuses are refused in our group, with the same field")
def refusals(bed):
    good = hpa("web", {"minReplicas": 2, "maxReplicas": 3, "metrics": [cpu(50)]})
    def wrong(**spec):
        return {**good, "spec": {**good["spec"], **spec}}
    rows = [wrong(maxReplicas=1), wrong(maxReplicas=0), wrong(minReplicas=0), wrong(minReplicas=-1), wrong(scaleTargetRef={"kind": "", "name": "web"}),
            wrong(scaleTargetRef={"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "a/b"}),
            wrong(scaleTargetRef={"apiVersion": "v1", "kind": "ConfigMap", "name": "x"}),
            wrong(metrics=[cpu(0)]), wrong(metrics=[cpu(-1)]), wrong(metrics=[resource("cpu", averageValue="0")]),
            wrong(metrics=[pods("", "10")]), wrong(metrics=[pods("rps", "-1")]), wrong(metrics=[container("cpu", "", averageUtilization=5)]),
            wrong(metrics=[external("queue", value="-5")]), wrong(metrics=[thing("hits", "", "front", value="1")]),
            wrong(metrics=[{"type": "Resource"}]), wrong(metrics=[{**cpu(50), "type": "Pods"}]), wrong(metrics=[{**cpu(50), "type": "Nonsense"}]),
            wrong(behavior={"scaleUp": {"stabilizationWindowSeconds": 3601}}), wrong(behavior={"scaleUp": {"selectPolicy": "Most"}}),
            wrong(behavior={"scaleDown": {"policies": []}}), wrong(behavior={"scaleDown": {"policies": [{"type": "Pods", "value": 0, "periodSeconds": 1}]}}),
            wrong(behavior={"scaleDown": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 1801}]}}),
            *([wrong(behavior={"scaleUp": {"tolerance": "-0.1"}})] if bed.keeps_tolerance() else [])]

    def refusal(kind, body):
        try:
            bed.create(kind, body, dry=True)
        except Refused as error:
            return error
        return None
    for body in rows:
        theirs, ours = refusal(THEIRS, body), refusal(OURS, body)
        assert theirs and ours, f"{body['spec']}: upstream: {theirs}, ours: {ours}"
        fields = set(re.findall(r"spec(?:\.[a-zA-Z]+(?:\[\d+\])?)+", theirs.message))
        named = set(re.findall(r"spec(?:\.[a-zA-Z]+(?:\[\d+\])?)+", ours.message))
        # The definition alone, without the webhook, refuses a metric as a whole.
        assert any(field.startswith(name) for field in fields for name in named), f"{theirs.message} beside {ours.message}"
    assert bed.create(THEIRS, good, dry=True) and bed.create(OURS, good, dry=True)
    assert refusal(OURS, wrong(behavior={"scaleUp": {"tolerance": "-0.1"}})), "ours has the field, whatever the server's own HPA has"


@story("a target of both: ours says TargetConflict, upstream's HPA is left alone")
def conflict(bed):
    bed.usage("web-*", "*", "200m", "20Mi")
    bed.apply(target("web", 1))
    bed.running("app=web", 1)
    bed.create(THEIRS, hpa("theirs", {"maxReplicas": 2, "metrics": [cpu(50)], "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web"}}))
    bed.create(OURS, hpa("ours", {"maxReplicas": 4, "metrics": [cpu(50)], "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web"}}))
    said = eventually(60, lambda: (c := bed.condition(OURS, "ours", "AbleToScale")) and c["status"] == "False" and c, "ours stands back")
    assert said["reason"] == "TargetConflict" and "theirs" in said["message"], said
    eventually(60, lambda: bed.get("StatefulSet", "web")["spec"]["replicas"] == 2, "upstream's scales")
    steady(12, lambda: bed.get("StatefulSet", "web")["spec"]["replicas"] == 2, "and ours does not")
    assert not any(entry["manager"] == "tandem-horizontal" for entry in bed.get(THEIRS, "theirs")["metadata"]["managedFields"])
    bed.delete(THEIRS, "theirs")
    eventually(60, lambda: bed.get("StatefulSet", "web")["spec"]["replicas"] == 4, "with the other gone ours scales")


@story("a built-in HPA that another controller serves is left to it, taken over when that is gone, and given back")
def takeover(bed):
    bed.programs[-1].stop()
    bed.run(*FLAGS, "--horizontal=builtin", name="builtin")

    def writers():
        """Who has ever scaled the target, and who served the HPA last."""
        return ({entry["manager"] for entry in bed.get("StatefulSet", "web")["metadata"]["managedFields"] if entry.get("subresource") == "scale"},
                bed.condition(THEIRS, "web", "AbleToScale")["reason"])
    bed.usage("web-*", "*", "200m", "20Mi")
    bed.apply(target("web", 1))
    bed.running("app=web", 1)
    bed.create(THEIRS, hpa("web", {"maxReplicas": 2, "metrics": [cpu(50)]}))
    eventually(60, lambda: bed.get("StatefulSet", "web")["spec"]["replicas"] == 2, "upstream's controller scales")
    told_by = eventually(60, lambda: bed.events("AnotherControllerActive", "web"), "ours says that it does not")
    assert len(told_by) == 1 and "kube-controller-manager" in told_by[0]["message"], told_by
    # A controller that agrees with what is stored is silent; silence is not taken for its end.
    steady(45, lambda: writers()[0] == {"kube-controller-manager"}, "ours never scales")
    with bed.dead("kube-controller-manager"):
        bed.patch(THEIRS, "web", {"spec": {"maxReplicas": 3}})
        eventually(150, lambda: bed.get("StatefulSet", "web")["spec"]["replicas"] == 3, "with the other gone ours takes over")
        assert "tandem-horizontal" in writers()[0]
        eventually(60, lambda: writers()[1] == "ReadyForNewScale", "and serves it")
    # Back again, it writes the status when it has something to say, and ours steps back.
    bed.patch("StatefulSet", "web", {"spec": {"replicas": 1}})
    bed.patch(THEIRS, "web", {"spec": {"maxReplicas": 4}})
    eventually(90, lambda: bed.get("StatefulSet", "web")["spec"]["replicas"] == 4, "it is scaled again")
    eventually(60, lambda: any(e["manager"] == "kube-controller-manager" and e.get("subresource") == "status"
                               for e in bed.get(THEIRS, "web")["metadata"]["managedFields"]), "the other has written")
    bed.programs[-1].stop()
    bed.run(*FLAGS, "--horizontal=off")


main("upstream", env={"KCM_ARGS": " ".join(FLAGS)}, setup=lambda bed: bed.run(*FLAGS, "--horizontal=off"))
