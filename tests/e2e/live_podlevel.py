#!/usr/bin/env python3
"""Pod-level resources: the recommendation of the whole pod, admission and resize at both levels, LimitRanges, policies, what is refused."""

import contextlib
import json

from bed import Refused, eventually, main, quantity, requests, steady, story

MI = 2**20
FEATURE = "InPlacePodLevelResourcesVerticalScaling"

# The pod has requests and limits of its own, one container has some too, the other has none and takes what is left.
WORKLOAD = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: work}
spec:
  replicas: 2
  selector: {matchLabels: {app: work}}
  template:
    metadata: {labels: {app: work}}
    spec:
      resources: {requests: {cpu: 100m, memory: 100Mi}, limits: {cpu: 200m, memory: 200Mi}}
      containers:
      - {name: main, image: app, resources: {requests: {cpu: 80m, memory: 80Mi}, limits: {cpu: 160m, memory: 160Mi}}}
      - {name: side, image: app}
"""
POD_ONLY = WORKLOAD.replace(", resources: {requests: {cpu: 80m, memory: 80Mi}, limits: {cpu: 160m, memory: 160Mi}}", "")
VPA = """
---
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: work}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: work}
  updatePolicy: {updateMode: "MODE"}
  resourcePolicy: POLICY
"""


def vpa(mode="Recreate", policy="{}"):
    return VPA.replace("MODE", mode).replace("POLICY", policy)


def busy(bed):
    """Both containers use much more than the pod asks for."""
    bed.usage("work-*", "main", "400m", "500Mi")
    bed.usage("work-*", "side", "100m", "200Mi")


def recommended(bed):
    """(pod-level recommendation, container name -> its row), once there is one for both containers."""
    status = bed.get("VerticalPodAutoscaler", "work")["status"]["recommendation"]
    rows = {row["containerName"]: row for row in status["containerRecommendations"]}
    assert set(rows) == {"main", "side"}, rows
    return status.get("podRecommendation"), rows


def sums(rows, kind, resource):
    return sum(quantity(row[kind][resource]) for row in rows.values() if resource in row[kind])


def own(pod):
    """Requests and limits of the pod itself."""
    resources = pod["spec"].get("resources", {})
    return resources.get("requests", {}), resources.get("limits", {})


def near(left, right, part=0.01):
    return abs(left - right) <= part * max(left, right)


def uids(pods):
    return {pod["metadata"]["uid"] for pod in pods}


def reborn(bed, before, seconds=120):
    """Two ready pods of which none was there before."""
    return eventually(seconds, lambda: not uids(pods := bed.running("app=work", 2, 5)) & before and pods, "both pods are new")


def account(pod):
    return pod["metadata"].get("annotations", {}).get("vpaUpdates", "")


def pod_clause(pod):
    """The part of the account that tells of the pod level."""
    clauses = account(pod).split(": ", 1)[-1].split("; ")
    found = [clause for clause in clauses if clause.startswith("Pod")]
    assert found, account(pod)
    return found[0]


def create_as_work(bed, dry=True, **spec):
    """A pod as the ReplicaSet of work makes it, sent by ourselves to see the answer."""
    owner = bed.list("ReplicaSet", "app=work")[0]
    template = owner["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {
        "generateName": "work-", "labels": template["metadata"]["labels"],
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "controller": True,
                             "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}]},
        "spec": {**template["spec"], **spec}}
    return bed.create("Pod", pod, dry=dry)


@contextlib.contextmanager
def declared(bed):
    """The nodes can resize pods at pod level, as long as this lasts. Whether they can: an older server keeps no such declaration, and refuses
    every resize of pods with resources of their own."""
    def declare(features):
        for node in bed.list("Node"):
            bed.patch("Node", node["metadata"]["name"], {"status": {"declaredFeatures": features}}, subresource="status")
    declare([FEATURE])
    try:
        yield all(FEATURE in node["status"].get("declaredFeatures", []) for node in bed.list("Node"))
    finally:
        declare(None)


def evicted_instead(bed, before):
    """Both pods come again in their size, and an attempt is counted."""
    for new in reborn(bed, before):
        assert quantity(own(new)[0]["cpu"]) > 0.5 and quantity(requests(new, "main")["memory"]) > 500 * MI, new["spec"]
        assert "vpaInPlaceUpdated" not in new["metadata"]["annotations"]
    assert bed.events("EvictedByVPA") and not bed.events("InPlaceResizedByVPA")
    assert bed.programs[-1].metric("vpa_updater_failed_in_place_update_attempts_total"), "the attempt is counted"


def left_alone(bed, before):
    """Mode InPlace on a server that resizes no such pod: they stay, and explain says why."""
    steady(12, lambda: uids(bed.pods("app=work")) == before, "the pods stay")
    said = bed.tandem("explain", "vpa", "work", "-n", bed.ns, "--feature-gates=InPlace=true")
    assert f"does not declare {FEATURE}, so the API server refuses" in said and "it stays as it is" in said, said


@contextlib.contextmanager
def instead(bed, *flags):
    """Controllers with other flags take over for a while."""
    bed.programs[-1].stop()
    program = bed.run(*flags)
    try:
        yield program
    finally:
        program.stop()
        bed.run()


@story("the pod has a recommendation, and comes back in its size at both levels", quick=True)
def both_levels(bed):
    busy(bed)
    bed.apply(WORKLOAD + vpa())
    before = uids(bed.running("app=work", 2))
    pod, rows = eventually(40, lambda: recommended(bed)[0] and recommended(bed), "a pod-level recommendation")
    for kind in ("target", "lowerBound", "upperBound"):
        for resource in ("cpu", "memory"):
            assert near(quantity(pod[kind][resource]), sums(rows, kind, resource), 1e-9), (kind, resource, pod, rows)
    assert "uncappedTarget" not in pod, pod
    assert quantity(pod["target"]["cpu"]) > 0.5 and quantity(pod["target"]["memory"]) > 700 * MI, pod

    for new in reborn(bed, before):
        asked, limits = own(new)
        whole, parts = recommended(bed)
        assert near(quantity(asked["cpu"]), quantity(whole["target"]["cpu"]), 0.1), (asked, whole)
        assert near(quantity(asked["memory"]), quantity(whole["target"]["memory"]), 0.1), (asked, whole)
        assert near(quantity(limits["cpu"]), 2 * quantity(asked["cpu"])) and near(quantity(limits["memory"]), 2 * quantity(asked["memory"]))
        main_, side = new["spec"]["containers"]
        assert near(quantity(requests(new, "main")["cpu"]), quantity(parts["main"]["target"]["cpu"]), 0.1), (main_, parts)
        assert near(quantity(main_["resources"]["limits"]["memory"]), 2 * quantity(requests(new, "main")["memory"])), main_
        assert not side.get("resources"), side
        clause = pod_clause(new)
        assert all(word in clause for word in ("cpu request", "memory request", "cpu limit", "memory limit")), clause
        assert "container 0: " in account(new) and "container 1: " not in account(new), account(new)
        assert new["metadata"]["annotations"]["vpaObservedContainers"] == "main, side"
    assert len(bed.events("EvictedByVPA")) == 2 and bed.events("EvictedPod", "work")
    after = uids(bed.pods("app=work"))
    steady(12, lambda: uids(bed.pods("app=work")) == after, "pods of the right size are left alone")
    said = bed.tandem("explain", "vpa", "work", "-n", bed.ns)
    assert "pod" in said, said


@story("a node that cannot resize at pod level: the pods are evicted instead")
def fallback(bed):
    busy(bed)
    bed.apply(WORKLOAD + vpa("Off"))
    before = uids(bed.running("app=work", 2))
    eventually(40, lambda: recommended(bed)[0], "a recommendation")
    bed.programs[-1].stop()
    bed.apply(vpa("InPlaceOrRecreate"))
    said = bed.tandem("explain", "vpa", "work", "-n", bed.ns)
    assert f"does not declare {FEATURE}, so the API server refuses" in said and "it is evicted instead" in said, said
    bed.run()
    evicted_instead(bed, before)


@story("a node that can: both levels in one resize, the pods stay")
def in_place(bed):
    busy(bed)
    with declared(bed) as can:
        bed.apply(WORKLOAD + vpa("InPlaceOrRecreate"))
        before = uids(bed.running("app=work", 2))
        if not can:
            return evicted_instead(bed, before)
        pods = eventually(120, lambda: all(quantity(own(pod)[0]["cpu"]) > 0.5 for pod in bed.running("app=work", 2)) and bed.pods("app=work"),
                          "both pods are resized")
        assert uids(pods) == before
        pods = eventually(20, lambda: all(account(pod) for pod in bed.pods("app=work")) and bed.pods("app=work"), "annotations follow")
        for pod in pods:
            asked, limits = own(pod)
            assert quantity(limits["memory"]) >= quantity(asked["memory"]) > 700 * MI, pod["spec"]["resources"]
            assert quantity(requests(pod, "main")["cpu"]) > 0.4 and not pod["spec"]["containers"][1].get("resources")
            assert pod["metadata"]["annotations"]["vpaInPlaceUpdated"] == "true"
            assert "cpu request" in pod_clause(pod)
        assert bed.events("InPlaceResizedByVPA") and not bed.events("EvictedByVPA")

        # Only the pod level has to change: its minimum rises, the container that has requests keeps its own.
        bed.apply(vpa("InPlaceOrRecreate", "{containerPolicies: [{containerName: main, maxAllowed: {cpu: 400m, memory: 500Mi}}, "
                                           "{containerName: side, minAllowed: {cpu: 1800m, memory: 2Gi}}]}"))
        pods = eventually(120, lambda: all(quantity(own(pod)[0]["cpu"]) >= 2.2 for pod in bed.running("app=work", 2)) and bed.pods("app=work"),
                          "both pods are larger")
        assert uids(pods) == before
        assert all(quantity(requests(pod, "main")["cpu"]) <= 0.4 for pod in pods)


@story("mode InPlace never evicts, also where a resize is refused")
def in_place_only(bed):
    busy(bed)
    with instead(bed, "--feature-gates=InPlace=true"):
        bed.apply(POD_ONLY + vpa("InPlace"))
        before = uids(bed.running("app=work", 2))
        eventually(40, lambda: recommended(bed)[0], "a recommendation")
        eventually(40, lambda: bed.programs[-1].metric("vpa_updater_failed_in_place_update_attempts_total"), "a resize was tried")
        steady(12, lambda: uids(bed.pods("app=work")) == before, "the pods stay")
        with declared(bed) as can:
            if not can:
                return left_alone(bed, before)
            eventually(60, lambda: all(quantity(own(pod)[0]["cpu"]) > 0.5 for pod in bed.pods("app=work")), "resized when it is possible")
        assert uids(bed.pods("app=work")) == before


@story("more than any node has: refused in place, and the pod is not thrown out for nothing")
def infeasible(bed):
    busy(bed)
    with declared(bed) as can:
        with instead(bed, "--feature-gates=InPlace=true"):
            bed.apply(POD_ONLY + vpa("InPlace", "{containerPolicies: [{containerName: main, minAllowed: {cpu: 70}}]}"))
            before = uids(bed.running("app=work", 2))
            eventually(40, lambda: quantity(recommended(bed)[0]["target"]["cpu"]) > 70, "a target that fits nowhere")
            if not can:
                return left_alone(bed, before)
            eventually(40, lambda: "node didn't have enough" in bed.tandem("explain", "vpa", "work", "-n", bed.ns) or
                       bed.programs[-1].metric("vpa_updater_failed_in_place_update_attempts_total", reason="InPlaceUpdateInfeasible"),
                       "the refusal is known for what it is")
            steady(8, lambda: uids(bed.pods("app=work")) == before, "the pods stay")


@story("only the pod has resources: its containers get none")
def pod_only(bed):
    busy(bed)
    bed.apply(POD_ONLY + vpa())
    before = uids(bed.running("app=work", 2))
    pods = reborn(bed, before)
    for pod in pods:
        assert quantity(own(pod)[0]["cpu"]) > 0.5 and quantity(own(pod)[1]["memory"]) > 1400 * MI, pod["spec"]["resources"]
        assert not any(container.get("resources") for container in pod["spec"]["containers"])
        assert "container" not in account(pod).split("; ", 1)[-1].replace(pod_clause(pod), ""), account(pod)
    after = uids(pods)
    steady(15, lambda: uids(bed.pods("app=work")) == after, "containers without requests are no reason to evict")


@story("no limit, or limits alone, at pod level")
def limits(bed):
    busy(bed)
    bed.apply(POD_ONLY.replace(", limits: {cpu: 200m, memory: 200Mi}", "") + vpa("Initial"))
    bed.running("app=work", 2)
    eventually(40, lambda: recommended(bed)[0], "a recommendation")
    pod = eventually(20, lambda: account(new := create_as_work(bed)) and new, "new pods are sized")
    assert not own(pod)[1] and quantity(own(pod)[0]["memory"]) > 700 * MI, pod["spec"]["resources"]
    assert "NOT set" in pod_clause(pod), pod_clause(pod)

    # Requests that the API server fills in from limits count as written.
    pod = create_as_work(bed, resources={"limits": {"cpu": "200m", "memory": "200Mi"}})
    asked, limit = own(pod)
    assert asked == limit and quantity(asked["cpu"]) > 0.5, pod["spec"]["resources"]

    # A resource that the pod does not name is not added.
    pod = create_as_work(bed, resources={"requests": {"memory": "100Mi"}, "limits": {"memory": "150Mi"}})
    asked, limit = own(pod)
    assert set(asked) == set(limit) == {"memory"} and near(quantity(limit["memory"]), 1.5 * quantity(asked["memory"])), pod["spec"]["resources"]


@story("no stanza at pod level: as ever, and both ways of a rollout")
def no_stanza(bed):
    busy(bed)
    plain = POD_ONLY.replace("      resources: {requests: {cpu: 100m, memory: 100Mi}, limits: {cpu: 200m, memory: 200Mi}}\n", "")
    bed.apply(plain + vpa("Initial"))
    bed.running("app=work", 2)
    eventually(40, lambda: recommended(bed)[1], "a recommendation of containers")
    assert recommended(bed)[0] is None
    pod = eventually(20, lambda: account(new := create_as_work(bed)) and new, "new pods are sized")
    assert not pod["spec"].get("resources") and quantity(requests(pod, "side")["memory"]) > 200 * MI, pod["spec"]
    assert "; Pod" not in account(pod) and ": Pod" not in account(pod), account(pod)

    bed.apply(POD_ONLY)
    whole = eventually(60, lambda: recommended(bed)[0], "the pod level appears with the first pod that states it")
    assert near(quantity(whole["target"]["cpu"]), sums(recommended(bed)[1], "target", "cpu"), 0.05)
    bed.kubectl("-n", bed.ns, "patch", "deployment", "work", "--type=json", "-p",
                '[{"op": "remove", "path": "/spec/template/spec/resources"}]')
    eventually(60, lambda: recommended(bed)[0] is None, "and goes with the last one")


@story("bounds of the pod: containers are scaled with it, an edit counts in the next pass")
def policies(bed):
    busy(bed)
    bed.apply(POD_ONLY + vpa("Initial"))
    bed.running("app=work", 2)
    eventually(40, lambda: recommended(bed)[0], "a recommendation")
    _, free = recommended(bed)
    share = quantity(free["main"]["target"]["memory"]) / sums(free, "target", "memory")

    def bounded(policy, resource, value):
        bed.apply(vpa("Initial", policy))
        whole, rows = eventually(40, lambda: quantity(recommended(bed)[0]["target"][resource]) == value and recommended(bed), f"{resource} is {value}")
        for kind in ("lowerBound", "upperBound"):
            assert (quantity(whole[kind][resource]) <= value) == (kind == "lowerBound") or quantity(whole[kind][resource]) == value, whole
        for row in rows.values():
            assert quantity(row["lowerBound"][resource]) <= quantity(row["target"][resource]) <= quantity(row["upperBound"][resource]), row
        return rows

    rows = bounded("{podPolicies: {minAllowed: {memory: 4Gi}}}", "memory", 4096 * MI)
    assert near(sums(rows, "target", "memory"), 4096 * MI) and near(quantity(rows["main"]["target"]["memory"]) / (4096 * MI), share), rows
    assert rows["main"]["uncappedTarget"] == free["main"]["uncappedTarget"], (rows, free)
    rows = bounded("{podPolicies: {maxAllowed: {cpu: 200m, memory: 300Mi}}}", "memory", 300 * MI)
    assert sums(rows, "target", "memory") <= 300 * MI and sums(rows, "target", "cpu") <= 0.2, rows
    pod = eventually(20, lambda: quantity(own(new := create_as_work(bed))[0]["memory"]) == 300 * MI and new, "new pods follow")
    assert quantity(own(pod)[1]["memory"]) == 600 * MI, pod["spec"]["resources"]

    # A container's own minimum is stronger; admission then raises the request of the pod and says so.
    bounded("{podPolicies: {maxAllowed: {memory: 300Mi}}, containerPolicies: [{containerName: main, minAllowed: {memory: 400Mi}}]}",
            "memory", 300 * MI)
    small = [{"name": "main", "image": "app", "resources": {"requests": {"memory": "50Mi"}}}, {"name": "side", "image": "app"}]
    eventually(20, lambda: quantity(own(pod := create_as_work(bed, containers=small))[0]["memory"]) >= 400 * MI and "raised" in pod_clause(pod),
               "the request of the pod is raised")

    # A container of mode Off is not in the sum.
    bed.apply(vpa("Initial", "{containerPolicies: [{containerName: main, mode: \"Off\"}]}"))
    status = eventually(40, lambda: (found := bed.get("VerticalPodAutoscaler", "work")["status"]["recommendation"]) and
                        [row["containerName"] for row in found["containerRecommendations"]] == ["side"] and found, "only side is recommended for")
    assert status["podRecommendation"]["target"] == status["containerRecommendations"][0]["target"], status

    # One resource of two, requests without limits.
    bed.apply(vpa("Initial", "{podPolicies: {controlledResources: [memory], controlledValues: RequestsOnly}}"))
    eventually(40, lambda: set(recommended(bed)[0]["target"]) == {"memory"}, "memory alone")
    pod = eventually(20, lambda: quantity(own(new := create_as_work(bed))[0]["memory"]) > 700 * MI and new, "memory alone is written")
    assert own(pod)[0]["cpu"] == "100m" and own(pod)[1]["cpu"] == "200m", pod["spec"]["resources"]
    assert quantity(own(pod)[1]["memory"]) >= quantity(own(pod)[0]["memory"]), "a limit below the request would be refused"


@story("a LimitRange for pods: what is written fits it, and the account says so")
def pod_limit_range(bed):
    busy(bed)
    bed.apply(POD_ONLY + vpa("Initial"))
    bed.running("app=work", 2)
    eventually(40, lambda: recommended(bed)[0], "a recommendation")
    bed.apply("{apiVersion: v1, kind: LimitRange, metadata: {name: pods}, spec: {limits: [{type: Pod, min: {memory: 3Gi}, max: {cpu: 400m}}]}}")
    pod = eventually(20, lambda: "LimitRange" in account(new := create_as_work(bed)) and new, "new pods fit")
    asked, limit = own(pod)
    assert quantity(asked["memory"]) == 3072 * MI and quantity(limit["memory"]) == 6144 * MI, pod["spec"]["resources"]
    assert quantity(asked["cpu"]) <= quantity(limit["cpu"]) <= 0.4, pod["spec"]["resources"]
    assert "Min in Pod LimitRange" in pod_clause(pod) and "Max in Pod LimitRange" in pod_clause(pod), account(pod)

    # The recommendation itself knows no LimitRange; the updater judges by what would be written.
    assert quantity(recommended(bed)[0]["target"]["memory"]) < 2048 * MI
    before = uids(bed.pods("app=work"))
    bed.patch("VerticalPodAutoscaler", "work", {"spec": {"updatePolicy": {"updateMode": "Recreate"}}})
    after = uids(reborn(bed, before))
    steady(15, lambda: uids(bed.pods("app=work")) == after, "pods at the border of the LimitRange are left alone")


@story("a LimitRange for containers: pods that a VPA manages are refused with its name, others are not")
def container_limit_range(bed):
    busy(bed)
    bed.apply(POD_ONLY)
    before = uids(bed.running("app=work", 2))
    bed.apply("{apiVersion: v1, kind: LimitRange, metadata: {name: small-things}, "
              "spec: {limits: [{type: Container, default: {cpu: 150m, memory: 150Mi}, defaultRequest: {cpu: 10m, memory: 10Mi}}]}}")
    bed.apply(vpa())

    def refusal():
        try:
            create_as_work(bed)
            return None
        except Refused as refused:
            return refused
    refused = eventually(20, refusal, "pods are refused")
    assert refused.status == 403 and "LimitRange 'small-things'" in refused.message and "'work'" in refused.message, refused.message
    assert "remove" in refused.message and "namespace without" in refused.message, refused.message

    # No pod is evicted whose replacement would be refused.
    eventually(40, lambda: recommended(bed)[0], "a recommendation")
    steady(15, lambda: uids(bed.pods("app=work")) == before, "no pod is evicted that could not come back")
    assert "small-things" in bed.tandem("explain", "vpa", "work", "-n", bed.ns)
    bed.patch("Deployment", "work", {"spec": {"replicas": 3}})
    eventually(20, lambda: any("small-things" in event["message"] for event in bed.events("FailedCreate")), "the ReplicaSet says why it has no third pod")
    bed.patch("Deployment", "work", {"spec": {"replicas": 2}})

    # No VPA, no refusal; nor with one that only watches.
    bed.create("Pod", {"metadata": {"name": "free"}, "spec": {"resources": {"requests": {"cpu": "500m"}}, "containers": [{"name": "a", "image": "a"}]}})
    bed.patch("VerticalPodAutoscaler", "work", {"spec": {"updatePolicy": {"updateMode": "Off"}}})
    eventually(20, lambda: not refusal(), "Off refuses nothing")
    bed.patch("VerticalPodAutoscaler", "work", {"spec": {"updatePolicy": {"updateMode": "Initial"}}})
    eventually(20, refusal, "Initial does")
    bed.delete("LimitRange", "small-things")
    eventually(20, lambda: not refusal() and account(create_as_work(bed)), "without the LimitRange pods are sized again")


@story("the same with --pod-level-container-limitrange=warn: taken, with a warning")
def warned(bed):
    busy(bed)
    with instead(bed, "--pod-level-container-limitrange=warn"):
        bed.apply("{apiVersion: v1, kind: LimitRange, metadata: {name: small-things}, spec: {limits: [{type: Container, max: {memory: 900Mi}}]}}")
        bed.apply(POD_ONLY + vpa("Initial"))
        bed.running("app=work", 2)
        eventually(40, lambda: recommended(bed)[0], "a recommendation")
        pod = eventually(20, lambda: account(new := create_as_work(bed)) and new, "new pods are sized")
        assert quantity(own(pod)[0]["memory"]) > 700 * MI, pod["spec"]["resources"]
        owner = bed.list("ReplicaSet", "app=work")[0]
        text = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "told", "labels": {"app": "work"}, "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "controller": True, "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}]},
            "spec": owner["spec"]["template"]["spec"]}
        said = bed.kubectl("-n", bed.ns, "create", "--dry-run=server", "-f", "-", text=json.dumps(text), check=False)[1]
        assert "Warning" in said and "small-things" in said, said


@story("global maxima of pods, and the gate closed")
def flags(bed):
    busy(bed)
    bed.apply(POD_ONLY + vpa("Initial"))
    bed.running("app=work", 2)
    with instead(bed, "--pod-recommendation-max-allowed-cpu=300m", "--pod-recommendation-max-allowed-memory=400Mi"):
        whole = eventually(60, lambda: near(quantity(recommended(bed)[0]["target"]["cpu"]), 0.3) and recommended(bed)[0], "the flag's maximum holds")
        assert quantity(whole["target"]["memory"]) == 400 * MI, whole
        # A maximum in the VPA wins over the flag, for its own resource.
        bed.apply(vpa("Initial", "{podPolicies: {maxAllowed: {cpu: 350m}}}"))
        whole = eventually(40, lambda: near(quantity(recommended(bed)[0]["target"]["cpu"]), 0.35) and recommended(bed)[0], "the VPA's maximum wins")
        assert quantity(whole["target"]["memory"]) == 400 * MI, whole
    with instead(bed, "--feature-gates=PodLevelResources=false"):
        eventually(60, lambda: recommended(bed)[0] is None, "nothing at pod level with the gate closed")
        # As before the proposal: the pod's own resources are not managed, its containers get requests, policies of pods are not looked at.
        bed.apply(vpa("Initial", "{podPolicies: {minAllowed: {cpu: 2}, maxAllowed: {cpu: 1}}}"))
        large = {"requests": {"cpu": "4", "memory": "8Gi"}}
        pod = eventually(20, lambda: account(new := create_as_work(bed, resources=large)) and new, "new pods are sized")
        assert pod["spec"]["resources"] == large and quantity(requests(pod, "main")["cpu"]) > 0.4, pod["spec"]
        assert account(pod).startswith("Pod resources updated by work: container 0: "), account(pod)


@story("what cannot be right is refused with its path, when it is made and when it is changed")
def refused_policies(bed):
    pod = "spec.resourcePolicy.podPolicies"
    rows = [
        ("{podPolicies: {minAllowed: {cpu: 2}, maxAllowed: {cpu: 1}}}", f"{pod}.maxAllowed"),
        ("{podPolicies: {minAllowed: {cpu: 0.0001}}}", f"{pod}.minAllowed"),
        ("{podPolicies: {maxAllowed: {memory: 100m}}}", f"{pod}.maxAllowed"),
        ("{podPolicies: {maxAllowed: {memory: -1}}}", f"{pod}.maxAllowed"),
        ("{podPolicies: {minAllowed: {memory: much}}}", f"{pod}.minAllowed"),
        ("{podPolicies: {controlledResources: [gpu]}}", f"{pod}.controlledResources[0]"),
        ("{podPolicies: {controlledValues: LimitsOnly}}", f"{pod}.controlledValues"),
        ("{podPolicies: {minAllowed: {cpu: 1}}, containerPolicies: [{containerName: a, minAllowed: {cpu: 600m}}, "
         "{containerName: b, minAllowed: {cpu: 500m}}]}", f"{pod}.minAllowed"),
        ("{podPolicies: {maxAllowed: {memory: 1Gi}}, containerPolicies: [{containerName: a, maxAllowed: {memory: 1Gi}}, "
         "{containerName: b, maxAllowed: {memory: 1Mi}}]}", f"{pod}.maxAllowed"),
        ("{podPolicies: {controlledResources: [memory]}, containerPolicies: [{containerName: '*', controlledResources: [cpu]}]}",
         f"{pod}.controlledResources[0]"),
        ("{podPolicies: {controlledResources: [cpu]}, containerPolicies: [{containerName: '*', mode: 'Off'}]}", f"{pod}.controlledResources[0]"),
    ]
    said = bed.refused("".join(vpa("Recreate", policy).replace("name: work}\nspec", f"name: bad-{i}}}\nspec") for i, (policy, _) in enumerate(rows)))
    for i, (policy, path) in enumerate(rows):
        answer = said.partition(f'"bad-{i}"')[2].partition('"bad-')[0]
        assert path in answer, (policy, path, answer, said)
    good = [
        "{podPolicies: {}}",
        "{podPolicies: {minAllowed: {cpu: 1}, maxAllowed: {cpu: 1}}}",
        "{podPolicies: {minAllowed: {cpu: 1}}, containerPolicies: [{containerName: a, minAllowed: {cpu: 600m}}, {containerName: '*', minAllowed: {cpu: 2}}]}",
        "{podPolicies: {minAllowed: {cpu: 1}}, containerPolicies: [{containerName: a, mode: 'Off', minAllowed: {cpu: 6}}]}",
        "{podPolicies: {controlledResources: [memory]}, containerPolicies: [{containerName: c1, mode: 'Off'}, {containerName: c3, controlledResources: [memory]}]}",
    ]
    for policy in good:
        bed.apply(vpa("Recreate", policy))
    for policy, path in rows[::4]:
        bed.refused(vpa("Recreate", policy), path)
    assert "controlledResources" in bed.get("VerticalPodAutoscaler", "work")["spec"]["resourcePolicy"]["podPolicies"]


@story("what has no recommendation yet is left as it is, and a log line names it")
def skipped(bed):
    plain = POD_ONLY.replace("      resources: {requests: {cpu: 100m, memory: 100Mi}, limits: {cpu: 200m, memory: 200Mi}}\n", "")
    assert plain != POD_ONLY
    busy(bed)
    bed.apply(plain + vpa("Initial"))
    eventually(60, lambda: recommended(bed)[1], "both containers have a recommendation")
    program = bed.programs[-1]
    bed.patch("Deployment", "work", {"spec": {"template": {"spec": {
        "resources": {"requests": {"cpu": "100m", "memory": "100Mi"}},
        "containers": [{"name": "new", "image": "app", "resources": {"requests": {"cpu": "10m"}}}]}}}}, "strategic")
    eventually(60, lambda: any("new" in [c["name"] for c in pod["spec"]["containers"]] for pod in bed.pods("app=work")), "pods of the new template")
    with open(program.log) as file:
        said = [line for line in file if f"namespace={bed.ns}" in line or "work-" in line]
    of_container = [line for line in said if "No recommendation found for container, skipping" in line]
    assert of_container and "container=new" in of_container[0], said
    assert any("No recommendation found for pod, skipping" in line and "pod=work-" in line for line in said), said
    fresh = next(pod for pod in bed.pods("app=work") if "new" in [c["name"] for c in pod["spec"]["containers"]])
    assert requests(fresh, "new")["cpu"] == "10m", fresh["spec"]


@story("init containers and containers of mode Off are no part of the pod's recommendation")
def left_out(bed):
    busy(bed)
    text = WORKLOAD.replace("      containers:\n", "      initContainers: [{name: init, image: app, resources: {requests: {cpu: 50m, memory: 50Mi}}}]\n      containers:\n")
    bed.apply(text + vpa("Off", '{containerPolicies: [{containerName: side, mode: "Off"}]}'))
    def look():
        found = bed.get("VerticalPodAutoscaler", "work")["status"]["recommendation"]
        return found.get("podRecommendation") and found
    found = eventually(60, look, "a recommendation of the pod")
    assert [row["containerName"] for row in found["containerRecommendations"]] == ["main"], found
    main_target = found["containerRecommendations"][0]["target"]
    for resource in ("cpu", "memory"):
        assert near(quantity(found["podRecommendation"]["target"][resource]), quantity(main_target[resource])), found


main()
