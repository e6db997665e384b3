#!/usr/bin/env python3
"""A neighbour that does all of it at once, beside the load of a cluster: neighbour.py BUILD [--seconds=600] [--rate=200]

On a real control plane pods of a workload with a VPA are created at that rate (dry runs, so that the API server asks the webhook and stores
nothing), while a process beside it throws bombs at the webhook and the probes' port, opens connections that say nothing, reads answers a byte
at a time and sends garbage. No create fails and none comes back unchanged, the webhook's 99th percentile as the API server measures it is
under 20 ms, memory is bounded, nothing restarts. Ends with the figures and "1 passed, 0 failed"."""

import http.client
import json
import multiprocessing
import os
import random
import re
import socket
import ssl
import sys
import threading
import time

from bed import eventually, main, story
from vpa_bed import provided, workload

SECONDS = next((float(a.split("=")[1]) for a in sys.argv if a.startswith("--seconds=")), 600)
RATE = next((float(a.split("=")[1]) for a in sys.argv if a.startswith("--rate=")), 200)
CALLERS = 8
P99_MS_MAX = 20
RSS_MIB_MAX = 128
BOMBS = [b"[" * (3 << 20), b'{"request":' + b"[0," * 900_000, b'{"request":{"object":"' + b"\\u0041" * 500_000 + b'"}}', b'{"a":' * 600_000]


# ---- The neighbour, a process of its own ----

def blind():
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def connect(port, is_tls):
    raw = socket.create_connection(("127.0.0.1", port), timeout=5)
    return blind().wrap_socket(raw) if is_tls else raw


def bombs(ports, counts, chance):
    port, is_tls = chance.choice(ports)
    body = chance.choice(BOMBS)
    with connect(port, is_tls) as peer:
        peer.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        peer.recv(4096)
    counts["bombs"] += 1
    time.sleep(0.2)


def silence(ports, counts, chance):
    held = []
    try:
        for _ in range(100):
            port, _ = chance.choice(ports)
            held.append(socket.create_connection(("127.0.0.1", port), timeout=5))
            if chance.random() < 0.5:
                held[-1].sendall(b"POST / HTTP/1.1\r\nHost: a\r\n"[: chance.randrange(1, 24)])
            counts["silent"] += 1
        time.sleep(chance.uniform(1, 15))
    finally:
        for peer in held:
            peer.close()


def slow(ports, counts, chance):
    port, is_tls = chance.choice(ports)
    with connect(port, is_tls) as peer:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        peer.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n" * 50)
        counts["slow"] += 1
        for _ in range(20):
            peer.recv(1)
            time.sleep(0.5)


def garbage(ports, counts, chance):
    port, is_tls = chance.choice(ports)
    with connect(port, is_tls and chance.random() < 0.5) as peer:
        peer.sendall(chance.randbytes(chance.randrange(1, 4096)))
        counts["garbage"] += 1
        peer.recv(4096)
    time.sleep(0.02)


def neighbour(ports, counts, seed):
    def forever(act, number):
        chance = random.Random(seed * 100 + number)
        while True:
            try:
                act(ports, counts, chance)
            except OSError:
                time.sleep(0.01)  # refused or cut off: that is what they are for
    for number, act in enumerate((bombs, silence, silence, slow, slow, garbage, garbage)):
        threading.Thread(target=forever, args=(act, number), daemon=True).start()
    time.sleep(1e9)


# ---- The load ----

def pod_of(bed):
    """A pod as its ReplicaSet makes it, under a name of its own each."""
    pod = bed.pods("app=web")[0]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "web-", "labels": pod["metadata"]["labels"],
                                                            "ownerReferences": pod["metadata"]["ownerReferences"]},
            "spec": {"containers": [{"name": c["name"], "image": c["image"], "resources": {"requests": {"cpu": "1m", "memory": "1Mi"}}}
                                    for c in pod["spec"]["containers"]]}}


def caller(bed, body, end, took, wrong):
    """Creates at its share of the rate, each measured."""
    connection = http.client.HTTPSConnection("127.0.0.1", bed.ports["api"], context=bed._tls, timeout=30)  # pylint: disable=protected-access
    path, due = bed.path("Pod") + "?dryRun=All", time.monotonic()
    while time.monotonic() < end:
        due = max(due + CALLERS / RATE, time.monotonic() - 1)
        time.sleep(max(0, due - time.monotonic()))
        began = time.monotonic()
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
        took.append(time.monotonic() - began)
        if answer.status != 201 or b'"cpu":"1m"' in text:
            wrong.append((answer.status, text[:300]))


def webhook_buckets(bed):
    """Upper bound in seconds -> how many of our webhook's answers were as fast, as the API server counts them."""
    found = {}
    for line in bed.kubectl("get", "--raw", "/metrics").splitlines():
        match = re.match(r'apiserver_admission_webhook_admission_duration_seconds_bucket\{.*le="([^"]+)".*\} (\S+)', line)
        if match and 'name="vpa.k8s.io"' in line and 'operation="CREATE"' in line:
            found[float(match[1])] = found.get(float(match[1]), 0) + float(match[2])
    return found


def percentile(before, after, share):
    """Between two looks, within a bucket as Prometheus has it: evenly."""
    rows = sorted((bound, after[bound] - before.get(bound, 0)) for bound in after)
    wanted, below, low = share * rows[-1][1], 0, 0.0
    for bound, count in rows:
        if count >= wanted:
            return low if bound == float("inf") else low + (bound - low) * (wanted - below) / max(1, count - below)
        below, low = count, bound
    return low


@story("a neighbour that does all of it at once is not noticed")
def beside(bed):
    program = bed.programs[-1]
    bed.usage("web-*", "app", "300m", "300Mi")
    bed.apply(workload("web", "Initial"))
    bed.running("app=web", 3)
    provided(bed, "web")
    hook = int(re.search(r"webhook=https://127.0.0.1:(\d+)", open(program.log).read())[1])
    body = json.dumps(pod_of(bed))
    eventually(30, lambda: b'"cpu":"1m"' not in json.dumps(bed.call("POST", bed.path("Pod") + "?dryRun=All", json.loads(body))).encode(), "pods are mutated")
    with multiprocessing.Manager() as manager:
        counts = manager.dict(bombs=0, silent=0, slow=0, garbage=0)
        bad = multiprocessing.Process(target=neighbour, args=([(hook, True), (program.port, False)], counts, 1), daemon=True)
        bad.start()
        took, wrong, rss, end = [], [], [], time.monotonic() + SECONDS
        before, pid = webhook_buckets(bed), program.process.pid
        callers = [threading.Thread(target=caller, args=(bed, body, end, took, wrong), daemon=True) for _ in range(CALLERS)]
        for thread in callers:
            thread.start()
        while time.monotonic() < end:
            with open(f"/proc/{pid}/statm", encoding="ascii") as statm:
                rss.append(int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20)
            time.sleep(0.2)
        for thread in callers:
            thread.join(40)
        after, done = webhook_buckets(bed), dict(counts)
        bad.kill()
    p99 = 1000 * percentile(before, after, 0.99)
    print(f"     {len(took)} creates in {SECONDS:.0f} s, {len(wrong)} wrong; the webhook's p99 {p99:.1f} ms, a create's "
          f"{1000 * sorted(took)[int(0.99 * len(took))]:.1f} ms; RSS {max(rss):.0f} MiB at most; {done}; load {os.getloadavg()[0]:.1f}", flush=True)
    assert program.alive() and program.process.pid == pid, "it ended"
    assert not wrong, wrong[0]
    assert all(done.values()), done
    assert max(rss) < RSS_MIB_MAX, f"{max(rss):.0f} MiB"
    assert len(took) > 0.9 * SECONDS * RATE, f"{len(took)} creates only"
    assert p99 < P99_MS_MAX, f"{p99:.1f} ms"


main(setup=lambda bed: bed.run("--webhook-listen=127.0.0.1:0"))
