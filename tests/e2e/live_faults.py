#!/usr/bin/env python3
"""What is learnt survives: a killed process, another leader, an API server that restarts with its history compacted, a new certificate,
no metrics. Nothing is evicted meanwhile, and all goes on afterwards."""

import base64
import contextlib
import datetime
import os
import subprocess
import threading
import time

from bed import Refused, eventually, main, quantity, requests, steady, story

# The request is below the least bound of a young history, so that there is something to do for the updater.
WORKLOAD = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: app, image: app, resources: {requests: {cpu: 100m, memory: 100Mi}}}]
---
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: web}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  updatePolicy: {updateMode: "MODE"}
"""
ELECTION = ["--leader-elect", "--leader-elect-lease-duration=6s", "--leader-elect-renew-deadline=4s", "--leader-elect-retry-period=1s"]


def memory(bed, bound="target"):
    return quantity(bed.recommendation("web")["app"][bound]["memory"])


def checkpoint(bed):
    return bed.get("VerticalPodAutoscalerCheckpoint", "web-app")["status"]


def written(bed):
    """An OOM is in the checkpoint within 5 s of its detection; a busy machine may take longer."""
    stored = lambda: bed.get("VerticalPodAutoscalerCheckpoint", "web-app")["metadata"].get("annotations", {})
    eventually(20, lambda: stored().get("tandem.dev/oom"), "the OOM is in the checkpoint")


def uids(bed):
    return {pod["metadata"]["uid"] for pod in bed.pods("app=web")}


def learn(bed, mode="Off", cpu="200m"):
    """A workload that is measured and known, with a checkpoint."""
    bed.usage("web-*", "app", cpu, "300Mi")
    bed.apply(WORKLOAD.replace("MODE", mode))
    bed.running("app=web", 3)
    eventually(60, lambda: memory(bed) and checkpoint(bed)["firstSampleStart"], "there is a recommendation and a checkpoint")


def kill_one(bed):
    """A container of the workload runs out of memory; gives the target that follows."""
    before = memory(bed)
    bed.oom(bed.pods("app=web")[0]["metadata"]["name"], "app")
    eventually(60, lambda: memory(bed) >= before * 1.19, "the target follows the OOM")
    return memory(bed)


def known(bed, target, first):
    """What was learnt is there: the OOM in the target, the history in the checkpoint."""
    assert memory(bed) >= target * 0.99, f"target {memory(bed)} after {target}"
    assert checkpoint(bed)["firstSampleStart"] == first
    return True


@contextlib.contextmanager
def only(*programs):
    """Programs of one story; others would hold the leases."""
    try:
        yield programs[0]
    finally:
        for program in programs:
            program.stop()


@story("kill -9 after an OOM loses neither the OOM nor the history")
def killed(bed):
    program = bed.run()
    learn(bed)
    bumped, first = kill_one(bed), checkpoint(bed)["firstSampleStart"]
    written(bed)
    program.kill()
    with only(bed.run()) as program:
        eventually(60, lambda: program.metric("vpa_recommender_vpa_objects_count") and known(bed, bumped, first), "it is known again")
        steady(15, lambda: known(bed, bumped, first), "it stays known")


@story("another leader takes over with all that was learnt, and only one acts")
def leaders(bed):
    rest = "--controllers=recommender,updater,horizontal,hvpa"
    hook = bed.run("--controllers=admission", name="hook")
    first_leader = bed.run(rest, *ELECTION, name="one")
    learn(bed)
    bumped, first = kill_one(bed), checkpoint(bed)["firstSampleStart"]
    second = bed.run(rest, *ELECTION, name="two", wait=False)

    def holder():
        return bed.get("Lease", "tandem-recommender", namespace="kube-system")["spec"]["holderIdentity"]

    held = holder()
    steady(10, lambda: holder() == held, "a second process does not take the lease")
    written(bed)
    first_leader.kill()
    with only(hook, second):
        eventually(60, lambda: holder() != held, "the second process takes the lease")
        steady(20, lambda: known(bed, bumped, first), "it knows")
        bed.apply(WORKLOAD.replace("MODE", "Recreate"))
        eventually(90, lambda: all(quantity(requests(pod)["memory"]) >= bumped * 0.99 for pod in bed.running("app=web", 3)), "it acts")


@story("an API server that restarts with a compacted store: nothing is lost, watches go on")
def restarted(bed):
    with only(bed.run()) as program:
        learn(bed)
        bumped, first = kill_one(bed), checkpoint(bed)["firstSampleStart"]
        with bed.dead("kube-apiserver"):
            bed.compact()  # the watches' place is forgotten: they begin again with a list
            time.sleep(12)
        eventually(60, lambda: bed.kubectl("get", "--raw", "/readyz"), "the API server is back")
        eventually(60, lambda: bed.list("VerticalPodAutoscaler"), "and serves our kinds")
        eventually(90, lambda: program.get("/readyz")[0] == 200, "it is ready again")
        steady(15, lambda: known(bed, bumped, first), "it knows")
        # What comes afterwards is seen: a change of a VPA, a pod, a new workload.
        bed.apply(WORKLOAD.replace("MODE", "Recreate"))
        eventually(120, lambda: all(quantity(requests(pod)["memory"]) >= bumped * 0.99 for pod in bed.running("app=web", 3)), "it acts")
        bed.apply(WORKLOAD.replace("MODE", "Off").replace("web", "later"))
        eventually(60, lambda: bed.recommendation("later")["app"], "a new VPA gets its recommendation")
        assert program.metric("process_resident_memory_bytes") < 300e6


@story("compaction under a running watch is not noticed")
def compacted(bed):
    with only(bed.run()) as program:
        learn(bed)
        for i in range(20):
            bed.patch("Deployment", "web", {"metadata": {"annotations": {"turn": str(i)}}})
            bed.compact()
        bed.apply(WORKLOAD.replace("MODE", "Recreate"))
        eventually(90, lambda: all(quantity(requests(pod)["memory"]) > 100 * 2**20 for pod in bed.running("app=web", 3)), "it acts")
        program.alive()


def stale(bed):
    condition = bed.condition("VerticalPodAutoscaler", "web", "MetricsStale")
    return bool(condition) and condition["status"] == "True"


def outage(bed, way):
    with only(bed.run()) as program:
        learn(bed)
        bumped, first = kill_one(bed), checkpoint(bed)["firstSampleStart"]
        with way:
            eventually(90, lambda: stale(bed), "the VPA says so")
            # There is much to do for the updater: the pods are far from the target. It does nothing by knowledge that is old.
            bed.apply(WORKLOAD.replace("MODE", "Recreate"))
            before = uids(bed)
            steady(30, lambda: uids(bed) == before, "nothing is evicted")
            assert "based on stale metrics" in bed.tandem("explain", "vpa", "web", "-n", bed.ns)
            known(bed, bumped, first)
        eventually(60, lambda: not stale(bed), "the VPA says that they are back")
        eventually(90, lambda: all(quantity(requests(pod)["memory"]) >= bumped * 0.99 for pod in bed.running("app=web", 3)), "it acts")
        program.alive()


@story("metrics that do not answer: said on the VPA, nothing is evicted, nothing is lost")
def silent(bed):
    outage(bed, bed.frozen("fakemetrics"))


@story("metrics that are gone: said on the VPA, nothing is evicted, nothing is lost")
def gone(bed):
    outage(bed, bed.dead("fakemetrics"))


class Stream:
    """Pods made by dry run all the time; each must come back changed by the webhook."""

    def __init__(self, bed):
        self.bed, self.total, self.faults, self.going = bed, 0, [], True
        self.thread = threading.Thread(target=self.run)

    def run(self):
        import bed as library  # a connection of its own
        mine = library.Bed.__new__(library.Bed)
        mine.__dict__.update(self.bed.__dict__, _connection=None)
        owner = mine.list("ReplicaSet", "app=web")[0]["metadata"]
        pod = {"metadata": {"generateName": "web-", "labels": {"app": "web"}, "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner["name"], "uid": owner["uid"], "controller": True}]},
            "spec": {"containers": [{"name": "app", "image": "app"}]}}
        while self.going:
            self.total += 1
            try:
                if not requests(mine.create("Pod", pod, dry=True)).get("memory"):
                    self.faults.append("unchanged")
            except (Refused, OSError) as error:
                self.faults.append(str(error))
            time.sleep(0.02)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.going = False
        self.thread.join()


def openssl(folder, *args):
    done = subprocess.run(["openssl", *args], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def aged_identity(bed, secret, authority_days, certificate_days):
    """The Secret's data with an authority and a certificate of which so many days are over and left: (over, left)."""
    folder = os.path.join(bed.folder, f"aged-{authority_days[1]}-{certificate_days[1]}")
    os.mkdir(folder)

    def stamp(days):
        return (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=days)).strftime("%Y%m%d%H%M%SZ")

    with open(os.path.join(folder, "ca.cnf"), "w") as file:
        file.write("[ca]\ndefault_ca=d\n[d]\ndatabase=index\nserial=serial\nnew_certs_dir=.\ndefault_md=sha256\npolicy=p\n[p]\n"
                   "commonName=supplied\n[authority]\nbasicConstraints=critical,CA:true\nkeyUsage=critical,keyCertSign,cRLSign\n"
                   "subjectKeyIdentifier=hash\n[server]\nsubjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth\n"
                   "keyUsage=critical,digitalSignature\n")
    open(os.path.join(folder, "index"), "w").close()
    with open(os.path.join(folder, "serial"), "w") as file:
        file.write("1000\n")
    for name, subject in (("ca", "/CN=tandem-aged"), ("server", "/CN=127.0.0.1")):
        openssl(folder, "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", f"{name}.sec1")
        openssl(folder, "pkcs8", "-topk8", "-nocrypt", "-in", f"{name}.sec1", "-out", f"{name}.key")
        openssl(folder, "req", "-new", "-key", f"{name}.key", "-subj", subject, "-out", f"{name}.csr")
    common = ["ca", "-batch", "-notext", "-config", "ca.cnf"]
    openssl(folder, *common, "-selfsign", "-keyfile", "ca.key", "-in", "ca.csr", "-out", "ca.crt", "-extensions", "authority",
            "-startdate", stamp(-authority_days[0]), "-enddate", stamp(authority_days[1]))
    openssl(folder, *common, "-keyfile", "ca.key", "-cert", "ca.crt", "-in", "server.csr", "-out", "server.crt", "-extensions", "server",
            "-startdate", stamp(-certificate_days[0]), "-enddate", stamp(certificate_days[1]))

    def data(name):
        with open(os.path.join(folder, name), "rb") as file:
            return base64.b64encode(file.read()).decode()

    return {"caCert.pem": data("ca.crt"), "caKey.pem": data("ca.key"), "serverCert.pem": data("server.crt"), "serverKey.pem": data("server.key")}


@story("a certificate near its end is renewed without a failed request")
def rotated(bed):
    def secret():
        return bed.get("Secret", "tandem-webhook-tls", namespace="kube-system")

    def bundle():
        hooks = bed.get("MutatingWebhookConfiguration", "tandem-outside-webhook-config")["webhooks"]
        return base64.b64decode(hooks[0]["clientConfig"]["caBundle"]).decode()

    program = bed.run()
    learn(bed, "Initial")
    program.stop()
    # Its certificate has used up two thirds of its life, its authority has not.
    aged = aged_identity(bed, secret(), (10, 3000), (20, 5))
    bed.patch("Secret", "tandem-webhook-tls", {"data": aged}, namespace="kube-system")
    with only(bed.run()):
        eventually(30, lambda: base64.b64decode(aged["caCert.pem"]).decode().strip() in bundle(), "the authority is kept")
        with Stream(bed) as stream:
            eventually(60, lambda: secret()["data"]["serverCert.pem"] != aged["serverCert.pem"], "the certificate is new")
            time.sleep(5)
            # Now the authority is near its end too: a new one stands beside it at first.
            old = aged_identity(bed, secret(), (3000, 30), (1, 20))
            bed.patch("Secret", "tandem-webhook-tls", {"data": old}, namespace="kube-system")
            eventually(90, lambda: bundle().count("BEGIN CERTIFICATE") == 2, "two authorities are trusted")
            steady(10, lambda: bundle().count("BEGIN CERTIFICATE") == 2, "for a while")
        print(f"     {stream.total} pods, {len(stream.faults)} unchanged {stream.faults[:3]}")
        assert stream.total > 100 and not stream.faults


main(setup=lambda bed: None)
