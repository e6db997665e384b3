#!/usr/bin/env python3
"""What holds the updater back: budgets, minReplicas, rates, pods that come back unchanged, namespaces that the webhook leaves out."""

import base64
import contextlib
import http.server
import json
import os
import ssl
import threading

from bed import eventually, free_port, main, requests, steady, story
from vpa_bed import GATES, instead, provided, sized, uids, workload


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
    steady(15, lambda: uids(bed.pods("app=web")) == before, "no pod is evicted past the budget")
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
    """Another webhook, which writes over what ours did."""

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
        steady(20, lambda: uids(bed.pods("app=web")) == after, "no pod is evicted any more")
        assert "evicted twice" in bed.events("LeftAlone", "web")[0]["message"]
    # Another recommendation is another chance.
    bed.apply(workload("web", "Recreate", 2, container=fixed.replace("400m", "500m")))
    sized(bed, "web", 2)


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


@story("where the webhook does not look no pod is evicted, and the VPA says why")
def exempt(bed):
    bed.usage("web-*", "app", "300m", "300Mi")
    bed.apply(workload("web", "Recreate", 2))
    with instead(bed, f"--webhook-exempt-namespaces={bed.ns},elsewhere"):
        before = uids(bed.running("app=web", 2))
        why = eventually(60, lambda: bed.condition("VerticalPodAutoscaler", "web", "WebhookNotMutating"), "the condition is set")
        assert why["status"] == "True" and why["reason"] == "NamespaceExempt" and bed.ns in why["message"], why
        provided(bed, "web")
        steady(15, lambda: uids(bed.pods("app=web")) == before, "no pod is evicted")
        bed.patch("Deployment", "web", {"spec": {"replicas": 3}})
        assert all(requests(pod) == {"cpu": "10m", "memory": "100Mi"} for pod in bed.running("app=web", 3))
    sized(bed, "web", 3)
    assert not bed.condition("VerticalPodAutoscaler", "web", "WebhookNotMutating")


def blocked(bed, reason, says):
    """The VPA says why its pods are not evicted."""
    row = bed.condition("VerticalPodAutoscaler", "web", "EvictionBlocked")
    return row and row["status"] == "True" and row["reason"] == reason and says in row["message"] and row


POD_LEVEL = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      resources: {limits: {cpu: 200m, memory: 300Mi}}
      containers: [{name: app, image: app, resources: {requests: {cpu: 10m, memory: 100Mi}}}]
---
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: web}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  updatePolicy: {updateMode: Recreate}
"""


@story("with PodLevelResources off, a pod whose replacement the API server would refuse is not evicted")
def unreturnable(bed):
    bed.usage("web-*", "app", "300m", "300Mi")
    with instead(bed, "--feature-gates=PodLevelResources=false"):
        bed.apply(POD_LEVEL)
        before = uids(bed.running("app=web", 2))
        provided(bed, "web")
        eventually(60, lambda: blocked(bed, "ReplacementRefused", "spec.resources.requests[cpu]"), "the VPA says so")
        steady(20, lambda: uids(bed.pods("app=web")) == before, "no pod is evicted")
        assert len(bed.events("ReplacementRefused", "web")) == 1 and not bed.events("EvictedByVPA")
    # With the gate on the pod's own resources follow.
    eventually(90, lambda: not uids(bed.running("app=web", 2, 1)) & before, "they are updated")
    eventually(60, lambda: not bed.condition("VerticalPodAutoscaler", "web", "EvictionBlocked"), "the condition goes")


@story("a pod that a quota or a LimitRange would keep out is not evicted, until there is room")
def no_room(bed):
    bed.usage("web-*", "app", "300m", "300Mi")
    bed.apply(workload("web", "Recreate", 2))
    bed.running("app=web", 2)
    bed.apply("{apiVersion: v1, kind: ResourceQuota, metadata: {name: compute}, spec: {hard: {requests.cpu: 200m}}}")
    eventually(30, lambda: "requests.cpu" in bed.get("ResourceQuota", "compute").get("status", {}).get("used", {}), "the quota counts")
    before = uids(bed.pods("app=web"))
    eventually(90, lambda: blocked(bed, "ReplacementRefused", "exceeded quota: compute"), "the VPA says so")
    steady(15, lambda: uids(bed.pods("app=web")) == before, "no pod is evicted")
    said = bed.tandem("explain", "vpa", "web", "-n", bed.ns)
    assert "its replacement would be refused: exceeded quota: compute" in said and "would be evicted" not in said, said
    bed.apply("{apiVersion: v1, kind: LimitRange, metadata: {name: ratio}, spec: {limits: [{type: Pod, maxLimitRequestRatio: {cpu: 1500m}}]}}")
    bed.delete("ResourceQuota", "compute")  # after it: a pass between the two would find room
    eventually(60, lambda: blocked(bed, "ReplacementRefused", "cpu max limit to request ratio per Pod is 1500m"), "another reason")
    assert uids(bed.pods("app=web")) == before
    bed.delete("LimitRange", "ratio")
    assert not uids(sized(bed, "web", 2)) & before
    eventually(60, lambda: not bed.condition("VerticalPodAutoscaler", "web", "EvictionBlocked"), "the condition goes")


REFUSE = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-large-pods-NS}
spec:
  failurePolicy: Fail
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validations: [{expression: "object.metadata.namespace != 'NS' || !has(object.metadata.annotations) || !('vpaUpdates' in object.metadata.annotations)", message: no pods of this size}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-large-pods-NS}
spec: {policyName: no-large-pods-NS, validationActions: [Deny]}
"""


@story("a replacement that is refused all the same: its siblings are left alone")
def refused_replacement(bed):
    bed.usage("web-*", "app", "300m", "300Mi")
    bed.apply(REFUSE.replace("NS", bed.ns))
    try:
        bed.apply(workload("web", "Recreate", 8))
        bed.running("app=web", 8)
        eventually(90, lambda: blocked(bed, "ReplacementRefused", "no pods of this size"), "the VPA says so")
        steady(20, lambda: len(bed.pods("app=web")) == 7, "one is lost, no more")
    finally:
        bed.delete("ValidatingAdmissionPolicyBinding", f"no-large-pods-{bed.ns}")
        bed.delete("ValidatingAdmissionPolicy", f"no-large-pods-{bed.ns}")
    bed.delete("ReplicaSet", bed.list("ReplicaSet")[0]["metadata"]["name"])  # its retries have long pauses
    sized(bed, "web", 8)


main(setup=lambda bed: bed.run(GATES))
