#!/usr/bin/env python3
"""The Vertical Pod Autoscaler on a real cluster: what each mode does, in-place resizes and their refusals, and what holds an eviction back."""

import base64
import contextlib
import http.server
import json
import os
import ssl
import threading

from bed import eventually, free_port, main, quantity, requests, steady, story

# A request below the least that is recommended is outside of every range, so nothing needs to grow old first.
WORKLOAD = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME}
spec:
  replicas: REPLICAS
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}, annotations: {ANNOTATIONS}}
    spec:
      containers: [{name: app, image: app, resources: {requests: {cpu: 10m, memory: 100Mi}, limits: {cpu: 20m, memory: 150Mi}}}]
---
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: NAME}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: NAME}
  updatePolicy: {updateMode: "MODE", POLICY}
  resourcePolicy: {containerPolicies: [CONTAINER]}
"""

GATES = "--feature-gates=InPlace=true,CPUStartupBoost=true,PerVPAConfig=true"


def workload(name, mode, replicas=3, annotations="", policy="", container=""):
    text = WORKLOAD.replace("NAME", name).replace("MODE", mode).replace("REPLICAS", str(replicas))
    return text.replace("ANNOTATIONS", annotations).replace("POLICY", policy).replace("CONTAINER", container)


def uids(pods):
    return {pod["metadata"]["uid"] for pod in pods}


def is_sized(pod, target):
    """Requests are the target, the limits have kept their distance: twice the cpu, one and a half times the memory."""
    wish, limits = requests(pod), pod["spec"]["containers"][0]["resources"]["limits"]
    return (quantity(wish["cpu"]) == quantity(target["cpu"]) and quantity(wish["memory"]) == quantity(target["memory"])
            and abs(quantity(limits["cpu"]) - 2 * quantity(target["cpu"])) < 0.0011
            and abs(quantity(limits["memory"]) - 1.5 * quantity(target["memory"])) <= 1)


def sized(bed, name, count, seconds=90):
    """All pods have the size that their VPA recommends now."""
    def look():
        target = bed.recommendation(name)["app"]["target"]
        pods = bed.running(f"app={name}", count, 1)
        return all(is_sized(pod, target) for pod in pods) and pods
    return eventually(seconds, look, f"all pods of {name} have the recommended size")


def provided(bed, name, seconds=60):
    return eventually(seconds, lambda: bed.condition("VerticalPodAutoscaler", name, "RecommendationProvided")["status"] == "True" and
                      bed.recommendation(name), f"{name} has a recommendation")


@contextlib.contextmanager
def instead(bed, *flags):
    """Another tandem run in the place of the one that all stories share."""
    bed.programs[-1].stop()
    try:
        yield bed.run(*flags)
    finally:
        bed.programs[-1].stop()
        bed.run(GATES)


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
    steady(12, lambda: uids(bed.pods("app=web")) == uids(pods) or uids(bed.pods("app=web")).isdisjoint(uids(pods)), "nobody is evicted again")
    assert "web" in bed.tandem("explain", "vpa", "web", "-n", bed.ns)


@story("Initial sizes new pods only, Off none, and both have a recommendation")
def passive(bed):
    bed.usage("first-*", "app", "300m", "300Mi")
    bed.usage("none-*", "app", "300m", "300Mi")
    bed.apply(workload("first", "Initial") + "---" + workload("none", "Off"))
    before = {name: uids(bed.running(f"app={name}", 3)) for name in ("first", "none")}
    for name in before:
        provided(bed, name)
    steady(15, lambda: all(uids(bed.pods(f"app={name}")) == before[name] for name in before), "nobody is evicted")
    assert all(requests(pod) == {"cpu": "10m", "memory": "100Mi"} for pod in bed.pods())
    for name in before:
        bed.patch("Deployment", name, {"spec": {"replicas": 4}})
    target = bed.recommendation("first")["app"]["target"]
    new = [pod for pod in bed.running("app=first", 4) if pod["metadata"]["uid"] not in before["first"]]
    assert is_sized(new[0], target) or is_sized(new[0], bed.recommendation("first")["app"]["target"]), new[0]["spec"]
    new = [pod for pod in bed.running("app=none", 4) if pod["metadata"]["uid"] not in before["none"]]
    assert requests(new[0]) == {"cpu": "10m", "memory": "100Mi"} and "vpaUpdates" not in new[0]["metadata"].get("annotations", {})


@story("InPlaceOrRecreate and InPlace resize the running pods, a few at a time")
def in_place(bed):
    bed.usage("web-*", "app", "300m", "300Mi")
    bed.usage("only-*", "app", "300m", "300Mi")
    bed.apply(workload("web", "InPlaceOrRecreate") + "---" + workload("only", "InPlace"))
    before = {name: uids(bed.running(f"app={name}", 3)) for name in ("web", "only")}
    for name in before:
        pods = sized(bed, name, 3)
        assert uids(pods) == before[name], "pods were replaced"
        for pod in pods:
            assert pod["metadata"]["annotations"]["vpaInPlaceUpdated"] == "true"
            assert "vpaUpdates" not in pod["metadata"]["annotations"]
        done = [e for e in bed.events("InPlaceResizedByVPA") if e["involvedObject"]["name"].startswith(name)]
        assert {e["message"] for e in done} == {"Pod was resized in place by VPA Updater."}
        for pod in pods:
            eventually(20, lambda: bed.get("Pod", pod["metadata"]["name"])["status"]["containerStatuses"][0]["resources"]["requests"] ==
                       requests(bed.get("Pod", pod["metadata"]["name"])), "the kubelet shows the new size")
    assert not bed.events("EvictedByVPA")
    assert bed.programs[-1].metric("vpa_updater_in_place_updated_pods_total", vpa_name="web", vpa_namespace=bed.ns) >= 3


@story("a deferred resize is waited for, not answered by an eviction")
def deferred(bed):
    bed.usage("web-*", "app", "300m", "300Mi")
    bed.apply(workload("web", "InPlaceOrRecreate", annotations="realplane/resize: Deferred"))
    before = uids(bed.running("app=web", 3))
    waits = lambda: [pod for pod in bed.pods("app=web") for c in pod["status"]["conditions"]
                     if c["type"] == "PodResizePending" and c["reason"] == "Deferred"]
    eventually(60, waits, "a resize is pending")
    steady(15, lambda: uids(bed.pods("app=web")) == before, "nobody is evicted")
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
    steady(10, lambda: uids(bed.pods("app=only")) == before["only"], "mode InPlace evicts nobody")
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
    bed.apply(workload("web", "InPlaceOrRecreate", container=giant) + "---" + workload("only", "InPlace", container=giant))
    before = {name: uids(bed.running(f"app={name}", 3)) for name in ("web", "only")}
    eventually(60, lambda: bed.events("EvictedByVPA"), "the resize that is refused becomes an eviction")
    eventually(60, lambda: bed.events("InPlaceResizeSkipped"), "mode InPlace remembers the refusal")
    failed = lambda: bed.programs[-1].metric("vpa_updater_failed_in_place_update_attempts_total", reason="InPlaceUpdateInfeasible",
                                             vpa_name="only", vpa_namespace=bed.ns)
    eventually(30, lambda: failed() == 3, "each pod was tried")
    steady(15, lambda: len(uids(bed.pods("app=web")) & before["web"]) == 2 and uids(bed.pods("app=only")) == before["only"],
           "two of three go on as they are")
    assert failed() == 3, f"tried again: {failed()}"


@story("a PodDisruptionBudget is respected, then released")
def budget(bed):
    bed.usage("web-*", "app", "300m", "300Mi")
    bed.apply("""
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {maxUnavailable: 0, selector: {matchLabels: {app: web}}}
""")
    bed.apply(workload("web", "Recreate"))
    before = uids(bed.running("app=web", 3))
    provided(bed, "web")
    eventually(60, lambda: bed.programs[-1].metric("vpa_updater_failed_eviction_attempts_total", vpa_namespace=bed.ns, reason="EvictionError"),
               "an eviction is tried")
    steady(15, lambda: uids(bed.pods("app=web")) == before, "nobody is evicted past the budget")
    assert not bed.events("EvictedByVPA")
    bed.delete("PodDisruptionBudget", "web")
    assert not uids(sized(bed, "web", 3)) & before


@story("fewer replicas than minReplicas are left alone; a VPA may ask for less or for more")
def min_replicas(bed):
    for name in ("lone", "brave", "many"):
        bed.usage(f"{name}-*", "app", "300m", "300Mi")
    bed.apply(workload("lone", "Recreate", 1) + "---" + workload("brave", "Recreate", 1, policy="minReplicas: 1") + "---" +
              workload("many", "Recreate", 3, policy="minReplicas: 4"))
    before = {name: uids(bed.running(f"app={name}", count)) for name, count in (("lone", 1), ("brave", 1), ("many", 3))}
    assert not uids(sized(bed, "brave", 1)) & before["brave"]
    steady(10, lambda: all(uids(bed.pods(f"app={name}")) == before[name] for name in ("lone", "many")), "too few to spare one")
    assert "minReplicas" in bed.tandem("explain", "vpa", "lone", "-n", bed.ns)


class Undo(http.server.BaseHTTPRequestHandler):
    """A webhook of somebody else, which writes over what ours did."""

    def do_POST(self):
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        patch = [{"op": "replace", "path": "/spec/containers/0/resources", "value": {"requests": {"cpu": "10m", "memory": "100Mi"}}}]
        answer = {"uid": review["request"]["uid"], "allowed": True, "patchType": "JSONPatch",
                  "patch": base64.b64encode(json.dumps(patch).encode()).decode()}
        body = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def undone(bed):
    """New pods of the story's namespace lose what other webhooks wrote."""
    pki = os.path.join(bed.folder, "pki")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", free_port()), Undo)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(os.path.join(pki, "server.crt"), os.path.join(pki, "server.key"))
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with open(os.path.join(pki, "ca.crt"), "rb") as file:
        authority = base64.b64encode(file.read()).decode()
    bed.create("MutatingWebhookConfiguration", {"metadata": {"name": "zz-undo"}, "webhooks": [{
        "name": "undo.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail",
        "clientConfig": {"url": f"https://127.0.0.1:{server.server_address[1]}/", "caBundle": authority},
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": bed.ns}},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]}]})
    try:
        yield
    finally:
        bed.delete("MutatingWebhookConfiguration", "zz-undo")
        server.shutdown()


@story("pods that come back unchanged twice are left alone, with an event")
def left_alone(bed):
    bed.usage("web-*", "app", "300m", "300Mi")
    fixed = "{containerName: app, minAllowed: {cpu: 400m, memory: 400Mi}, maxAllowed: {cpu: 400m, memory: 400Mi}}"
    with undone(bed):
        bed.apply(workload("web", "Recreate", 2, container=fixed))
        bed.running("app=web", 2)
        eventually(90, lambda: len(bed.events("LeftAlone")) >= 3, "each of the two is left alone, which the VPA tells too")
        after = uids(bed.running("app=web", 2))
        evicted = {e["involvedObject"]["uid"] for e in bed.events("EvictedByVPA")}
        assert len(evicted) == 4, f"twice each: {len(evicted)}"
        steady(20, lambda: uids(bed.pods("app=web")) == after, "nobody is evicted any more")
        assert "left alone" in bed.events("LeftAlone", "web")[0]["message"]
    # Another recommendation is another chance.
    bed.apply(workload("web", "Recreate", 2, container=fixed.replace("400m", "500m")))
    sized(bed, "web", 2)


@story("an OOM raises memory at once, survives a kill, and a quick one brings the pod its new size")
def out_of_memory(bed):
    bed.usage("web-*", "app", "100m", "500Mi")
    bed.apply(workload("web", "Off", 2))
    name = bed.running("app=web", 2)[0]["metadata"]["name"]
    eventually(60, lambda: quantity(bed.recommendation("web")["app"]["target"]["memory"]) > 500 * 2**20, "memory is learnt")
    calm = quantity(bed.recommendation("web")["app"]["target"]["memory"])
    bed.oom(name, "app")
    raised = eventually(60, lambda: (m := quantity(bed.recommendation("web")["app"]["target"]["memory"])) >= 1.15 * calm and m, "memory is raised")
    assert raised < 1.35 * calm
    eventually(30, lambda: bed.get("VerticalPodAutoscalerCheckpoint", "web-app")["metadata"]["annotations"], "the OOM is written down")
    bed.programs[-1].kill()
    bed.delete("Pod", name)
    bed.run(GATES)
    steady(15, lambda: quantity(bed.recommendation("web")["app"]["target"]["memory"]) >= raised, "the OOM is not forgotten")


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


@story("evictions keep to their rate")
def rate(bed):
    names = [f"w{i}" for i in range(6)]
    for name in names:
        bed.usage(f"{name}-*", "app", "300m", "300Mi")
    bed.apply("---".join(workload(name, "Recreate", 2) for name in names))
    with instead(bed, "--eviction-rate-limit=0.2", "--eviction-rate-burst=1") as program:
        count = lambda: program.metric("vpa_updater_evicted_pods_total", vpa_namespace=bed.ns) or 0
        eventually(60, lambda: count() == 1, "the first is evicted")
        steady(3, lambda: count() <= 2, "the next one waits for 5 s")
        eventually(60, lambda: count() >= 4, "the others follow")
    times = sorted(e["firstTimestamp"] for e in bed.events("EvictedByVPA"))
    stamps = [int(t[11:13]) * 3600 + int(t[14:16]) * 60 + int(t[17:19]) for t in times]
    assert all((b - a) % 86400 >= 4 for a, b in zip(stamps, stamps[1:])), times


main(setup=lambda bed: bed.run(GATES))
