#!/usr/bin/env python3
"""The Vertical Pod Autoscaler on a real cluster: what each mode does, in-place resizes and their refusals, startup boosts."""

import json

from bed import eventually, main, quantity, requests, steady, story
from vpa_bed import GATES, instead, is_sized, provided, sized, uids, workload


@story("Recreate and Auto evict one by one, and what comes back has the recommended size", quick=True)
def recreate(bed):
    bed.usage("web-*", "app", "300m", "300Mi")
    bed.usage("old-*", "app", "300m", "300Mi")
    bed.apply(workload("web", "Recreate"))
    said = bed.kubectl("-n", bed.ns, "apply", "-f", "-", text=workload("old", "Auto"), check=False)
    assert said[0] == 0 and '"Auto" mode is deprecated' in said[1], said
    before = {name: uids(bed.running(f"app={name}", 3)) for name in ("web", "old")}
    provided(bed, "web")
    assert bed.recommendation("web")["app"].keys() == {"containerName", "target", "lowerBound", "upperBound", "uncappedTarget"}
    status = bed.get("VerticalPodAutoscaler", "web")["status"]
    assert status["observedGeneration"] == bed.get("VerticalPodAutoscaler", "web")["metadata"]["generation"]
    for name in ("web", "old"):
        pods = sized(bed, name, 3)
        assert not before[name] & uids(pods)
        notes = pods[0]["metadata"]["annotations"]
        assert notes["vpaUpdates"].startswith(f"Pod resources updated by {name}: container 0: "), notes
        assert {"cpu request", "memory request", "cpu limit", "memory limit"} <= set(notes["vpaUpdates"].split(": ")[2].split(", ")), notes
        assert notes["vpaObservedContainers"] == "app"
        evicted = [e for e in bed.events("EvictedByVPA") if e["involvedObject"]["name"].startswith(name)]
        assert {e["involvedObject"]["kind"] for e in evicted} == {"Pod"} and len({e["involvedObject"]["name"] for e in evicted}) == 3, evicted
        assert evicted[0]["message"] == "Pod was evicted by VPA Updater to apply resource recommendation."
        times = sorted(e["firstTimestamp"] or e["eventTime"] for e in evicted)
        assert len(set(times)) == 3, f"more than one of three at a time: {times}"
        assert any(e["involvedObject"]["kind"] == "VerticalPodAutoscaler" for e in bed.events("EvictedPod", name))
    assert bed.programs[-1].metric("vpa_updater_evicted_pods_total", vpa_name="web", vpa_namespace=bed.ns) == 3
    steady(12, lambda: uids(bed.pods("app=web")) == uids(pods) or uids(bed.pods("app=web")).isdisjoint(uids(pods)), "no pod is evicted again")
    assert "web" in bed.tandem("explain", "vpa", "web", "-n", bed.ns)


@story("Initial sizes new pods only, Off none, and both have a recommendation")
def passive(bed):
    bed.usage("first-*", "app", "300m", "300Mi")
    bed.usage("none-*", "app", "300m", "300Mi")
    bed.apply(workload("first", "Initial") + "---" + workload("none", "Off"))
    before = {name: uids(bed.running(f"app={name}", 3)) for name in ("first", "none")}
    for name in before:
        provided(bed, name)
    steady(15, lambda: all(uids(bed.pods(f"app={name}")) == before[name] for name in before), "no pod is evicted")
    assert all(requests(pod) == {"cpu": "10m", "memory": "100Mi"} for pod in bed.pods())
    for name in before:
        bed.patch("Deployment", name, {"spec": {"replicas": 4}})
    target = bed.recommendation("first")["app"]["target"]
    new = [pod for pod in bed.running("app=first", 4) if pod["metadata"]["uid"] not in before["first"]]
    assert is_sized(new[0], target) or is_sized(new[0], bed.recommendation("first")["app"]["target"]), new[0]["spec"]
    new = [pod for pod in bed.running("app=none", 4) if pod["metadata"]["uid"] not in before["none"]]
    assert requests(new[0]) == {"cpu": "10m", "memory": "100Mi"} and "vpaUpdates" not in new[0]["metadata"].get("annotations", {})
    bed.patch("VerticalPodAutoscaler", "none", {"spec": {"updatePolicy": {"updateMode": "InPlaceOrRecreate"}}})
    assert before["none"] < uids(sized(bed, "none", 4)), "the mode is followed when it changes"


@story("InPlaceOrRecreate and InPlace resize the running pods, a few at a time")
def in_place(bed):
    bed.usage("web-*", "app", "300m", "300Mi")
    bed.usage("only-*", "app", "300m", "300Mi")
    bed.apply(workload("web", "InPlaceOrRecreate") + "---" + workload("only", "InPlace"))
    before = {name: uids(bed.running(f"app={name}", 3)) for name in ("web", "only")}
    for name in before:
        pods = sized(bed, name, 3)
        assert uids(pods) == before[name], "pods were replaced"
        # The annotation is a write of its own, behind the resize.
        marked = lambda: [p for p in bed.pods(f"app={name}") if p["metadata"].get("annotations", {}).get("vpaInPlaceUpdated") == "true"]
        pods = eventually(20, lambda: marked() if uids(marked()) == before[name] else None, "the pods are marked")
        for pod in pods:
            assert "vpaUpdates" not in pod["metadata"]["annotations"]
        done = [e for e in bed.events("InPlaceResizedByVPA") if e["involvedObject"]["name"].startswith(name)]
        assert {e["message"] for e in done} == {"Pod was resized in place by VPA Updater."}
        for pod in pods:
            eventually(20, lambda: bed.get("Pod", pod["metadata"]["name"])["status"]["containerStatuses"][0]["resources"]["requests"] ==
                       requests(bed.get("Pod", pod["metadata"]["name"])), "the kubelet shows the new size")
    assert not bed.events("EvictedByVPA")
    assert bed.programs[-1].metric("vpa_updater_in_place_updated_pods_total", vpa_name="web", vpa_namespace=bed.ns) >= 3


@story("under the adaptive estimator memory grows at once, CPU and decreases wait for hours, also after a restart")
def adaptive(bed):
    bed.usage("web-*", "app", "300m", "300Mi")
    bed.apply(workload("web", "InPlaceOrRecreate").replace("kind: VerticalPodAutoscaler\nmetadata: {name: web}",
              "kind: VerticalPodAutoscaler\nmetadata: {name: web, annotations: {tandem.dev/estimator: adaptive}}"))
    before = uids(bed.running("app=web", 3))
    size = lambda: sorted((quantity(requests(pod)["cpu"]), quantity(requests(pod)["memory"])) for pod in bed.pods("app=web"))
    eventually(90, lambda: all(memory > 300 << 20 for _, memory in size()), "memory has grown, and CPU with it")
    small = size()
    assert all(cpu >= 0.3 for cpu, _ in small), small
    since = bed.condition("VerticalPodAutoscaler", "web", "AdaptiveEstimator")
    assert since["status"] == "True" and since["lastTransitionTime"] in since["message"], since
    for pod in bed.pods("app=web"):
        noted = json.loads(bed.kubectl("-n", bed.ns, "get", "pod", pod["metadata"]["name"], "-o", "json", "--show-managed-fields"))
        assert any(entry.get("subresource") == "resize" for entry in noted["metadata"]["managedFields"]), "the server notes resizes"
    bed.usage("web-*", "app", "1500m", "100Mi")
    eventually(60, lambda: quantity(bed.recommendation("web")["app"]["target"]["cpu"]) > 1, "more CPU is recommended")
    steady(15, lambda: size() == small, "but nothing is changed within four hours")
    with instead(bed, GATES):
        steady(30, lambda: size() == small, "nor by another process")
        assert "AdaptiveEstimator" in str(bed.get("VerticalPodAutoscaler", "web")["status"])
    bed.usage("web-*", "app", "1500m", "900Mi")
    eventually(120, lambda: all(cpu > 1 and memory > 900 << 20 for cpu, memory in size()), "memory grows at once, and takes CPU with it")
    assert uids(bed.pods("app=web")) == before and not bed.events("EvictedByVPA")


@story("a deferred resize is waited for, not answered by an eviction")
def deferred(bed):
    bed.usage("web-*", "app", "300m", "300Mi")
    bed.apply(workload("web", "InPlaceOrRecreate", annotations="realplane/resize: Deferred"))
    before = uids(bed.running("app=web", 3))
    waits = lambda: [pod for pod in bed.pods("app=web") for c in pod["status"]["conditions"]
                     if c["type"] == "PodResizePending" and c["reason"] == "Deferred"]
    eventually(60, waits, "a resize is pending")
    steady(15, lambda: uids(bed.pods("app=web")) == before, "no pod is evicted")
    for pod in bed.pods("app=web"):
        bed.patch("Pod", pod["metadata"]["name"], {"metadata": {"annotations": {"realplane/resize": None}}})
    assert uids(sized(bed, "web", 3)) == before


@story("an infeasible resize: InPlaceOrRecreate evicts, InPlace leaves the pod as it is and says so")
def infeasible(bed):
    bed.usage("web-*", "app", "300m", "300Mi")
    bed.usage("only-*", "app", "300m", "300Mi")
    fixed = "{containerName: app, minAllowed: {cpu: 400m, memory: 400Mi}, maxAllowed: {cpu: 400m, memory: 400Mi}}"
    no = "realplane/resize: Infeasible"
    bed.apply(workload("web", "InPlaceOrRecreate", annotations=no) + "---" + workload("only", "InPlace", annotations=no, container=fixed))
    before = {name: uids(bed.running(f"app={name}", 3)) for name in ("web", "only")}
    eventually(120, lambda: not uids(sized(bed, "web", 3, 1)) & before["web"], "all are replaced")
    eventually(60, lambda: bed.events("InPlaceResizeSkipped"), "the refusal is remembered")
    steady(10, lambda: uids(bed.pods("app=only")) == before["only"], "mode InPlace evicts no pod")
    assert bed.programs[-1].metric("vpa_updater_in_place_infeasible_skip_pods_total", vpa_name="only", vpa_namespace=bed.ns) >= 1
    # Less than what was refused is tried again.
    bed.apply(workload("only", "InPlace", annotations=no, container=fixed.replace("400m", "350m").replace("400Mi", "350Mi")))
    for pod in bed.pods("app=only"):
        bed.patch("Pod", pod["metadata"]["name"], {"metadata": {"annotations": {"realplane/resize": None}}})
    assert uids(sized(bed, "only", 3, 60)) <= before["only"]


@story("more than any node has: refused at once, one pod is lost at most, InPlace loses none and does not try again")
def beyond_node(bed):
    bed.usage("web-*", "app", "300m", "300Mi")
    bed.usage("only-*", "app", "300m", "300Mi")
    giant = "{containerName: app, minAllowed: {cpu: 100}, maxAllowed: {cpu: 100}}"
    later = "" if bed.judges_room() else "realplane/resize: Infeasible"  # the kubelet's word, not the API server's
    bed.apply(workload("web", "InPlaceOrRecreate", annotations=later, container=giant) + "---" +
              workload("only", "InPlace", annotations=later, container=giant))
    before = {name: uids(bed.running(f"app={name}", 3)) for name in ("web", "only")}
    eventually(60, lambda: bed.events("EvictedByVPA"), "the resize that is refused becomes an eviction")
    eventually(60, lambda: bed.events("InPlaceResizeSkipped"), "mode InPlace remembers the refusal")
    failed = lambda: bed.programs[-1].metric("vpa_updater_failed_in_place_update_attempts_total", reason="InPlaceUpdateInfeasible",
                                             vpa_name="only", vpa_namespace=bed.ns)
    if later:
        tried = lambda: sum(pod["metadata"]["generation"] > 1 for pod in bed.pods("app=only"))
        eventually(30, lambda: tried() == 3, "each pod was tried")
        wishes = {pod["metadata"]["uid"]: pod["metadata"]["generation"] for pod in bed.pods("app=only")}
        steady(15, lambda: len(uids(bed.pods("app=web")) & before["web"]) == 2 and uids(bed.pods("app=only")) == before["only"],
               "two of three go on as they are")
        assert wishes == {pod["metadata"]["uid"]: pod["metadata"]["generation"] for pod in bed.pods("app=only")}, "tried again"
        return
    eventually(30, lambda: failed() == 3, "each pod was tried")
    steady(15, lambda: len(uids(bed.pods("app=web")) & before["web"]) == 2 and uids(bed.pods("app=only")) == before["only"],
           "two of three go on as they are")
    assert failed() == 3, f"tried again: {failed()}"


@story("a startup boost is given to a new pod and taken back in place")
def boost(bed):
    bed.usage("web-*", "app", "300m", "300Mi")
    once = "startupBoost: {cpu: {type: Factor, factor: 3, durationSeconds: 10}}"
    bed.apply(workload("web", "Recreate", 2).replace("  targetRef:", f"  {once}\n  targetRef:"))
    before = uids(bed.running("app=web", 2))
    eventually(60, lambda: quantity(provided(bed, "web")["app"]["target"]["cpu"]) > 0.3, "cpu is learnt")
    bed.delete("Pod", bed.pods("app=web")[0]["metadata"]["name"])
    pod = eventually(30, lambda: [p for p in bed.pods("app=web") if p["metadata"]["uid"] not in before], "a new pod is there")[0]
    assert quantity(requests(pod)["cpu"]) > 0.9, requests(pod)
    kept = json.loads(pod["metadata"]["annotations"]["vpaCpuStartupBoost/app"])
    assert kept == {"requests": {"cpu": "10m", "memory": "100Mi"}, "limits": {"cpu": "20m", "memory": "150Mi"}}, kept
    name = pod["metadata"]["name"]
    calm = eventually(60, lambda: "vpaCpuStartupBoost/app" not in (now := bed.get("Pod", name))["metadata"]["annotations"] and now,
                      "the boost is taken back")
    assert calm["metadata"]["uid"] == pod["metadata"]["uid"]
    assert quantity(requests(calm)["cpu"]) * 2.5 < quantity(requests(pod)["cpu"])


main(setup=lambda bed: bed.run(GATES))
