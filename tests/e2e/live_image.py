#!/usr/bin/env python3
"""The installation as a cluster has it: `tandem manifests` applied, its image started by pod_runner as the Deployment says, by its service
account and with its rights. Every controller does its work, the token rotates, nothing is refused."""

import atexit
import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

from bed import TOP, eventually, main, steady, story
from vpa_bed import provided, sized, workload

FOLDER = tempfile.mkdtemp(prefix="tandem-pod-")
atexit.register(shutil.rmtree, FOLDER, True)
STATE = os.path.join(FOLDER, "pod")
USER = "system:serviceaccount:tandem-system:tandem"
NAMESPACE = "tandem-system"

for name, body in (
        # Every answer to our own requests, and each one to a token that is not known.
        ("policy", {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
                    "rules": [{"level": "Metadata", "users": [USER, "", "system:anonymous"]}, {"level": "None"}]}),
        # Webhooks and metrics are reached through the pod's own entrance, as a cluster network would lead there.
        ("egress", {"apiVersion": "apiserver.k8s.io/v1beta1", "kind": "EgressSelectorConfiguration", "egressSelections": [
            {"name": "cluster", "connection": {"proxyProtocol": "HTTPConnect", "transport": {"uds": {"udsName": f"{STATE}/services"}}}}]})):
    with open(os.path.join(FOLDER, name), "w") as written:
        json.dump(body, written)
ARGS = (f"--audit-policy-file={FOLDER}/policy --audit-log-path={FOLDER}/audit --egress-selector-config-file={FOLDER}/egress")

HPA = """
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: grown}
spec:
  replicas: 2
  selector: {matchLabels: {app: grown}}
  template:
    metadata: {labels: {app: grown}}
    spec: {containers: [{name: app, image: app, resources: {requests: {cpu: 200m, memory: 100Mi}}}]}
---
apiVersion: autoscaling.tandem.dev/v2
kind: HorizontalPodAutoscaler
metadata: {name: grown}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: grown}
  maxReplicas: 5
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 100}}}]
"""
HVPA = (HPA.replace("grown", "both").replace("autoscaling.tandem.dev/v2", "autoscaling.k8s.io/v1alpha1").replace("HorizontalPodAutoscaler", "Hvpa")
        .split("spec:\n  scaleTargetRef")[0] + """spec:
  mode: VPABiased
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: both}
  hpaSpec:
    minReplicas: 1
    maxReplicas: 6
    metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 100}}}]
  vpaSpec: {resourcePolicy: {containerPolicies: [{containerName: app, minAllowed: {memory: 300Mi}}]}}
""")


class Entrance:
    """The API server's way to Services before there is a pod: pod_runner takes it over."""

    def __init__(self):
        os.makedirs(STATE)
        self.process = subprocess.Popen([sys.executable, "-B", os.path.join(TOP, "tests", "e2e", "pod_runner"), "--only-services",
                                         f"{STATE}/services"])

    def close(self):
        self.process.terminate()
        self.process.wait(10)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{STATE}/services")


class Pod:
    """One pod_runner."""

    def __init__(self, bed):
        self.log, self.name = os.path.join(STATE, "log"), "pod"
        self.process = subprocess.Popen(
            [sys.executable, "-B", os.path.join(TOP, "tests", "e2e", "pod_runner"), "--kubeconfig", bed.kubeconfig, "--root",
             os.path.join(bed.build, "image"), "--state", STATE, "-n", NAMESPACE, "tandem"])

    def get(self, path):
        connection = http.client.HTTPConnection("pod", timeout=10)
        with contextlib.closing(connection):
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.connect(os.path.join(STATE, "port-8942"))
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def alive(self):
        assert self.process.poll() is None, f"the pod ended with {self.process.returncode}: {self.said()[-3000:]}"
        return True

    def said(self):
        with open(self.log, errors="replace") as file:
            return file.read()

    def tokens(self):
        with open(os.path.join(STATE, "tokens")) as file:
            return file.read().split()

    def clean(self):
        assert "Sanitizer" not in self.said(), self.said()[-3000:]

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            status = self.process.wait(60)
            assert status == 0, f"the pod ended with {status}: {self.said()[-3000:]}"


def setup(bed):
    bed.apply(bed.tandem("manifests"), namespace=None)
    ENTRANCE.close()
    bed.pod = Pod(bed)
    bed.programs.append(bed.pod)
    eventually(90, lambda: bed.pod.alive() and bed.pod.get("/readyz")[0] == 200, "the pod is ready")


def audit():
    with open(os.path.join(FOLDER, "audit")) as file:
        return [json.loads(line) for line in file]


def status_of(row):
    return row.get("responseStatus", {}).get("code", 0)


@story("the image runs as its Deployment says: user, rights, files")
def confined(bed):
    pod = bed.pod
    with open(os.path.join(STATE, "started")) as file:
        runtime = int(file.read())
    children = [int(line.split()[0]) for line in subprocess.run(["ps", "-e", "-o", "pid=,ppid="], capture_output=True, text=True, check=True)
                .stdout.splitlines() if int(line.split()[1]) == runtime]
    seen = dict(line.rstrip("\n").split(":\t", 1) for line in open(f"/proc/{children[0]}/status") if ":\t" in line)
    assert seen["Name"] == "tandem" and set(seen["Uid"].split()) == {"65532"}, seen
    assert int(seen["CapEff"], 16) == int(seen["CapPrm"], 16) == int(seen["CapBnd"], 16) == 0 and seen["NoNewPrivs"] == "1", seen
    assert seen["Seccomp"] == "2", seen
    root = next(line.split() for line in open(f"/proc/{children[0]}/mountinfo") if line.split()[4] == "/")
    assert "ro" in root[5].split(","), root
    wanted = bed.get("Deployment", "tandem", namespace=NAMESPACE)["spec"]["template"]["spec"]["containers"][0]["args"]
    said = open(f"/proc/{children[0]}/cmdline").read().split("\0")[:-1]
    assert said == ["/usr/bin/tandem", *wanted], said
    assert "missing permission" not in pod.said(), pod.said()


@story("in the cluster a pod is patched when it is made, resized in place and evicted; replicas follow; the token rotates; nothing is refused")
def works(bed):
    pod = bed.pod
    hook = eventually(60, lambda: [h for h in bed.list("MutatingWebhookConfiguration") if h["webhooks"][0]["clientConfig"].get("service")],
                      "the webhook is registered by its Service")[0]
    eventually(30, lambda: bed.get("MutatingWebhookConfiguration", hook["metadata"]["name"])["webhooks"][0]["clientConfig"].get("caBundle"),
               "the webhook has its certificate")
    for name in ("evicted", "resized"):
        bed.usage(f"{name}-*", "app", "300m", "300Mi")
    for name in ("grown", "both"):
        bed.usage(f"{name}-*", "app", "400m", "90Mi")
    bed.apply("---\n".join([workload("evicted", "Recreate"), workload("resized", "InPlaceOrRecreate")]) + HPA + HVPA)
    before = pod.tokens()
    provided(bed, "resized", 150)
    os.kill(pod.process.pid, signal.SIGHUP)
    eventually(20, lambda: len(pod.tokens()) == len(before) + 1, "the kubelet has a new token")
    eventually(200, lambda: bed.events("InPlaceResizedByVPA"), "a pod is resized in place")
    eventually(200, lambda: bed.events("EvictedByVPA"), "a pod is evicted")
    sized(bed, "evicted", 3, 240)
    eventually(60, lambda: bed.get("Deployment", "grown")["spec"]["replicas"] > 2, "the HPA's replicas grow")
    eventually(60, lambda: bed.get("Deployment", "both")["spec"]["replicas"] > 2 or
               bed.get("Hvpa", "both").get("status", {}).get("conditions"), "the Hvpa is decided")
    patched = [p for p in bed.pods("app=evicted") if any("vpa" in key.lower() for key in p["metadata"].get("annotations", {}))]
    assert patched, "a new pod was patched by the webhook"
    new = pod.tokens()[-1]
    used = lambda: {ident for row in audit() for ident in row["user"].get("extra", {}).get("authentication.kubernetes.io/credential-id", [])}
    eventually(120, lambda: f"JTI={new}" in used(), "requests carry the new token")
    steady(3, pod.alive, "the pod lives")
    rows = audit()
    refused = sorted({(row["verb"], row["requestURI"]) for row in rows if status_of(row) in (401, 403)})
    assert not refused, f"refused: {refused}"
    assert len([row for row in rows if row["user"].get("username") == USER]) > 100, "the audit saw us"
    assert "missing permission" not in pod.said(), pod.said()


@story("it ends in order, with its leases given back")
def ends(bed):
    bed.pod.stop()
    elected = [lease for lease in bed.list("Lease", namespace="kube-system") if lease["spec"].get("leaseTransitions") is not None]
    assert len(elected) >= 4 and not any(lease["spec"].get("holderIdentity") for lease in elected), elected


ENTRANCE = Entrance()
try:
    main(env={"APISERVER_ARGS": ARGS}, setup=setup)
finally:
    ENTRANCE.close()
