#!/usr/bin/env python3
"""Never: a panic path reachable from the network. Every port that the program opens (the webhook, metrics, the API of the local cluster)
meets what no decent client sends: broken HTTP and TLS, deep and huge JSON, hostile reviews, clients that close half, vanish, or say one
byte a second. The process lives, and serves the next one at once."""
from never import *

import random
import struct

cluster = Cluster()
cluster.deploy("web")
cluster.vpa("web")
run = Run(cluster, "--webhook-listen", "127.0.0.1:0", "--recommender-interval", "1s", "--updater-interval", "1s").await_start().await_ready()
# One controller alone: what the others would answer for is not there.
alone = [Run(cluster, "--controllers", name).await_start() for name in ("recommender", "updater", "horizontal", "hvpa")]
for other in alone:
    for page in ("/health-check", "/readyz", "/metrics", "/healthz", "/livez", "/"):
        other.says(page)
    check("%s alone answers every page" % other.process.args[-1], other.is_alive() and other.says("/healthz") == "ok", other.tail())
    other.end()

webhook = int(re.search(r"webhook=https://127.0.0.1:(\d+)", run.output()).group(1))
untrusting = ssl.create_default_context()
untrusting.check_hostname, untrusting.verify_mode = False, ssl.CERT_NONE


def link(port, is_tls, patience=5):
    plain = socket.create_connection(("127.0.0.1", port), timeout=patience * SLOW)
    return untrusting.wrap_socket(plain) if is_tls else plain


def drain(connection):
    """What comes until the other side closes; None when it is silent."""
    got = b""
    try:
        while True:
            piece = connection.recv(65536)
            if not piece:
                return got
            got += piece
            if b"\r\n\r\n" in got and b"ontent-Length: 0" in got:
                return got
    except (socket.timeout, TimeoutError):
        return got or None
    except OSError:
        return got


def post(body, path="/", head=""):
    return ("POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\n%sContent-Length: %d\r\n\r\n" % (path, head, len(body))).encode() + body


def review(**request):
    whole = {"uid": "u", "kind": {"group": "", "version": "v1", "kind": "Pod"}, "resource": {"group": "", "version": "v1", "resource": "pods"}}
    whole.update({"namespace": "default", "operation": "CREATE", "object": {}}, **request)
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": whole}).encode()


broken = [
    b"\r\n" * 1000,
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET\r\n\r\n",
    b"\x00" * 4096,
    b"A" * 200000,
    b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 5000 + b"\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\n",
    b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"POST / HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\nConnection: close\r\n\r\n\x1f\x8b\x08\x00",
    b"GET http://[::1/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    b"GET /%zz%00/../../../etc/passwd?%=&&&=%ff HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    b"GET /metrics HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n",
]
pod = {"metadata": {"name": "p", "labels": {"app": "web"}}, "spec": {"containers": [{"name": "app", "resources": {"requests": {"cpu": "1"}}}]}}
bodies = [
    b"",
    b"null",
    b"[]",
    b"{",
    b'"' + b"\\u0000" * 1000 + b'"',
    b"[" * 200000,
    b'{"request":' * 50000,
    b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":null}',
    b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":{}}}',
    b'{"a":1e999999999}',
    b"\xff\xfe" * 100,
    b" " * 5000000,
    review(object=None),
    review(object=[]),
    review(object={"spec": {"containers": [None, 1, "x", {}, []]}}),
    review(object={"spec": {"containers": [{"name": "app"}] * 5000}}),
    review(object=dict(pod, spec={"containers": [{"name": "app", "resources": {"requests": {"cpu": "9" * 5000, "memory": "1e-9999"}}}]})),
    review(object=dict(pod, spec={"containers": [{"name": "app", "resources": {"requests": {"cpu": -1, "memory": True}, "limits": []}}]})),
    review(object=dict(pod, metadata={"labels": {"a" * 1000: "b" * 1000}, "ownerReferences": [{"controller": True, "kind": "ReplicaSet", "name": None}]})),
    review(object=dict(pod, metadata={"annotations": {"x" * 100: "y" * 500000}})),
    review(namespace="n" * 100000),
    review(operation="\u0000", object=pod),
    review(object=pod, kind={"group": "autoscaling.k8s.io", "kind": "VerticalPodAutoscaler"}, resource={"group": "autoscaling.k8s.io", "resource": "verticalpodautoscalers"}),
]
for group, resource, kind in (
    ("autoscaling.k8s.io", "verticalpodautoscalers", "VerticalPodAutoscaler"),
    ("autoscaling.k8s.io", "hvpas", "Hvpa"),
    ("autoscaling.tandem.dev", "horizontalpodautoscalers", "HorizontalPodAutoscaler"),
):
    where = {"kind": {"group": group, "version": "v1", "kind": kind}, "resource": {"group": group, "version": "v1", "resource": resource}}
    for spec in (None, 1, [], {"targetRef": None}, {"targetRef": {"kind": 1}, "selector": {"matchExpressions": [None] * 500}}, {"metrics": [{}] * 500}):
        bodies.append(review(object={"metadata": {"name": "x"}, "spec": spec}, oldObject={"spec": spec}, operation="UPDATE", **where))
depth = {"metadata": {"name": "x"}}
for _ in range(400):
    depth = {"spec": depth, "a": [depth.get("a")]}
bodies.append(review(object=depth))


def serves():
    """Both ports answer a decent client at once."""
    connection = http.client.HTTPSConnection("127.0.0.1", webhook, context=untrusting, timeout=20 * SLOW)
    try:
        connection.request("POST", "/", review(object=pod), {"Content-Type": "application/json"})
        answer = json.loads(connection.getresponse().read())
        return answer["response"]["allowed"] is True and run.says("/healthz") == "ok" and run.is_alive()
    except Exception as error:
        return not error and False
    finally:
        connection.close()


def throw(port, is_tls, data, closes):
    """One hostile client. False: it is answered by something that is not HTTP."""
    try:
        connection = link(port, is_tls)
    except OSError:
        return True
    try:
        connection.sendall(data)
        if closes == "half":
            connection.unwrap() if is_tls else connection.shutdown(socket.SHUT_WR)
    except (OSError, ValueError):
        pass  # it had enough
    if closes == "reset":
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
        return True
    got = drain(connection) if closes == "no" else b""
    connection.close()
    return got is None or not got or got.startswith(b"HTTP/1.")


ports = {"the webhook": (webhook, True), "metrics": (run.port, False), "the API": (int(cluster.url.rsplit(":", 1)[1]), True)}
check("a decent client is served", serves(), run.tail())
for name, (port, is_tls) in ports.items():
    for closes in ("no", "half", "reset"):
        check("%s: broken HTTP, closing %s" % (name, closes), all([throw(port, is_tls, data, closes) for data in broken if closes != "no" or len(data) > 5000 or b"close" in data]) and serves())
    check("%s: hostile bodies" % name, all([throw(port, is_tls, post(body), "no") for body in bodies]) and serves(), run.tail())
    check("%s: hostile bodies, vanishing" % name, all([throw(port, is_tls, post(body)[: max(1, len(body) // 2)], "reset") for body in bodies]) and serves(), run.tail())

# TLS that is none, half of it, and thousands of noise.
noise = random.Random(1)
hellos = [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\xff\xff\x01\xff\xff", b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00", b"\x15\x03\x03\x00\x02\x02\x28", b"\x80\x2e\x01"]
hellos += [b"\x16\x03\x01" + bytes(noise.randrange(256) for _ in range(noise.randrange(1, 400))) for _ in range(60)]
for name, (port, is_tls) in ports.items():
    for hello in hellos:
        throw(port, False, hello, "half")
    check("%s: TLS that is none" % name, serves(), run.tail())

# Crowds that say nothing, or a byte now and then, on every port at once; decent clients do not wait for them.
crowd = []
for name, (port, is_tls) in ports.items():
    for number in range(40):
        quiet = socket.create_connection(("127.0.0.1", port), timeout=5 * SLOW)
        if not is_tls and number % 2:
            quiet.sendall(b"GET / HTTP/1.1\r\nA: ")
        crowd.append(quiet)
began, served = time.monotonic(), 0
while time.monotonic() - began < 4:
    for quiet in crowd:
        try:
            quiet.send(b"\x16" if quiet.getpeername()[1] != run.port else b"a")
        except OSError:
            pass
    served += serves()
check("many slow clients do not hold up others", served >= 3, "%d decent clients were served" % served)
for quiet in crowd:
    quiet.close()
check("the cluster serves", cluster.get("/api/v1/namespaces/default") is not None)
check("the process serves", serves(), run.tail())
finish()
