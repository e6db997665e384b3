#!/usr/bin/env python3
"""Two webhook replicas behind one address, and pairs of objects on one target that are created at once: no pair is left unnoticed."""

import base64
import concurrent.futures
import contextlib
import http.client
import json
import socket
import ssl
import threading
import time

from bed import KINDS, eventually, main, story

PAIRS = 50
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment"}


class Balancer:
    """A Service: connections go to the two replicas in turn, byte for byte."""

    def __init__(self, ports):
        self.ports, self.count = ports, [0] * len(ports)
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                which = sum(self.count) % len(self.ports)
                self.count[which] += 1
                with contextlib.suppress(OSError):
                    server = socket.create_connection(("127.0.0.1", self.ports[which]))
                    for pair in ((client, server), (server, client)):
                        threading.Thread(target=self._pump, args=pair, daemon=True).start()

    @staticmethod
    def _pump(source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.listener.close()


def is_trusted(port, bundle):
    """Whether what is served there is signed by an authority of the bundle, as it is once the Secret of all replicas has been read."""
    try:
        with socket.create_connection(("127.0.0.1", port), 5) as plain:
            ssl.create_default_context(cadata=bundle).wrap_socket(plain, server_hostname="127.0.0.1").close()
        return True
    except OSError:
        return False


def replicas(bed):
    """The program that runs is followed by two that do not register; their registration is ours, with the balancer's address."""
    kinds = {"MutatingWebhookConfiguration": "tandem-outside-webhook-config", "ValidatingWebhookConfiguration": "tandem-outside-webhook-config"}
    found = {kind: eventually(30, lambda kind=kind, name=name: bed.get(kind, name), "the registration") for kind, name in kinds.items()}
    bed.programs[-1].stop()
    one = bed.run("--leader-elect", "--register-webhook=false", "--webhook-probe-interval=0s", name="one", wait=False)
    two = bed.run("--leader-elect", "--register-webhook=false", "--webhook-probe-interval=0s", "--controllers=admission", name="two", wait=False)
    bundle = base64.b64decode(found["MutatingWebhookConfiguration"]["webhooks"][0]["clientConfig"]["caBundle"]).decode()
    for program in (one, two):
        eventually(60, lambda program=program: program.alive() and is_trusted(program.webhook_port, bundle), "a replica has read the shared certificate")
    balancer = Balancer([one.webhook_port, two.webhook_port])
    for kind, name in kinds.items():
        config = found[kind]
        config["metadata"] = {"name": name}
        config["webhooks"] = [w for w in config["webhooks"] if not w["name"].startswith("probe.")]
        for webhook in config["webhooks"]:
            webhook["clientConfig"]["url"] = f"https://127.0.0.1:{balancer.port}/"
            webhook["failurePolicy"] = "Fail"
        bed.create(kind, config)
    return one, two, balancer


def vpa(name, target):
    return {"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler", "metadata": {"name": name},
            "spec": {"targetRef": {**TARGET, "name": target}, "updatePolicy": {"updateMode": "Off"}}}


def hvpa(name, target):
    """The proposal's literal form."""
    return {"apiVersion": "autoscaling.k8s.io/v1alpha1", "kind": "Hvpa", "metadata": {"name": name},
            "spec": {"vpaSpec": {"spec": {"targetRef": {**TARGET, "name": target}}}}}


def create_at_once(bed, objects):
    """A connection for each, all of them ready before the first is sent; name -> (status, seconds, message)."""
    start = threading.Barrier(len(objects))

    def create(item):
        prefix, plural = KINDS[item["kind"]]
        path = f"{prefix}/namespaces/{bed.ns}/{plural}"
        connection = http.client.HTTPSConnection("127.0.0.1", bed.ports["api"], context=bed._tls, timeout=60)
        with contextlib.closing(connection):
            connection.connect()
            start.wait(60)
            began = time.monotonic()
            connection.request("POST", path, json.dumps(item), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = json.loads(answer.read())
            return item["metadata"]["name"], (answer.status, time.monotonic() - began, text.get("message", ""))

    with concurrent.futures.ThreadPoolExecutor(len(objects)) as pool:
        return dict(pool.map(create, objects))


def judge(bed, make, kind, is_reported):
    """Of each pair one is refused, or the younger one says so within 5 s."""
    prefix = kind.lower()
    answers = create_at_once(bed, [make(f"{prefix}-{i}-{side}", f"target-{i}") for i in range(PAIRS) for side in "ab"])
    created = time.monotonic()
    refused, both = 0, []
    for i in range(PAIRS):
        pair = [answers[f"{prefix}-{i}-{side}"] for side in "ab"]
        statuses = sorted(answer[0] for answer in pair)
        assert statuses in ([201, 201], [201, 422]), pair
        refused += statuses == [201, 422]
        both += [i] if statuses == [201, 201] else []
    slowest = max(answer[1] for answer in answers.values())
    for i in both:
        objects = [bed.get(kind, f"{prefix}-{i}-{side}") for side in "ab"]
        younger = max(objects, key=lambda o: (o["metadata"]["creationTimestamp"], o["metadata"]["name"]))["metadata"]["name"]
        eventually(max(0, created + 5 - time.monotonic()), lambda: is_reported(younger), f"{younger} says so within 5 s")
    told = time.monotonic() - created
    print(f"  {kind}: {PAIRS} pairs at once: {refused} with one refused, {len(both)} admitted at the same instant and told within {told:.1f} s; "
          f"slowest answer {slowest * 1000:.0f} ms", flush=True)
    return refused, len(both)


@story("fifty pairs at once by two webhook replicas: one of each is refused, or the younger says so within 5 s")
def pairs(bed):
    one, two, balancer = replicas(bed)
    try:
        judge(bed, vpa, "VerticalPodAutoscaler", lambda name: bed.condition("VerticalPodAutoscaler", name, "ConflictingSelector"))
        judge(bed, hvpa, "Hvpa", lambda name: bed.condition("Hvpa", name, "Ready")["reason"] == "TargetConflict")
        assert min(balancer.count) > 0, balancer.count
        for program in (one, two):
            assert program.metric("tandem_admission_siblings_total", source="list") > 0, program.name
            assert not program.metric("tandem_admission_siblings_total", source="informer"), program.name
        # One after the other, as kubectl does: there is no instant to share.
        for i in range(10):
            assert create_at_once(bed, [vpa(f"first-{i}", f"next-{i}")])[f"first-{i}"][0] == 201
            status, _, message = create_at_once(bed, [vpa(f"second-{i}", f"next-{i}")])[f"second-{i}"]
            assert status == 422 and f"first-{i}" in message, (status, message)
    finally:
        for kind, name in (("MutatingWebhookConfiguration", "tandem-outside-webhook-config"), ("ValidatingWebhookConfiguration", "tandem-outside-webhook-config")):
            bed.delete(kind, name)
        balancer.close()


main()
