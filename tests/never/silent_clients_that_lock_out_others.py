#!/usr/bin/env python3
"""Never: silent clients that lock out others. 4,500 connections that say nothing, then as many that stop in the middle of the TLS handshake
or of a request, are opened to the webhook, to the port for health and metrics, and to the API of the local cluster, and more are opened as
they are closed. All the while probes, a real review and a real request are answered at once. The programs start with the usual limit of
1,024 open files."""
from never import *

import resource

CROWD = 4500  # more than a server has places for
PATIENCE_S = 2 * SLOW  # the client of a probe gives up after one to a few seconds

soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
cluster = Cluster()
cluster.deploy("web")
run = Run(cluster, "--webhook-listen", "127.0.0.1:0").await_start().await_ready()
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
webhook = int(re.search(r"webhook=https://127.0.0.1:(\d+)", run.output()).group(1))
untrusting = ssl.create_default_context()
untrusting.check_hostname, untrusting.verify_mode = False, ssl.CERT_NONE
ports = {"the webhook": webhook, "health and metrics": run.port, "the API": int(cluster.url.rsplit(":", 1)[1])}
request = {"uid": "u", "kind": {"kind": "Pod", "version": "v1"}, "resource": {"resource": "pods", "version": "v1"}, "namespace": "default"}
pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
REVIEW = json.dumps({"request": dict(request, operation="CREATE", object=pod)})


def ask(kind, port, method, path, body=None, headers=None, **more):
    """One request on a connection of its own: its answer and how long it took."""
    began = time.monotonic()
    connection = kind("127.0.0.1", port, timeout=PATIENCE_S, **more)
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read(), time.monotonic() - began
    finally:
        connection.close()


def decent():
    """The slowest of all decent clients; an exception for one that is not served."""
    status, text, probe = ask(http.client.HTTPConnection, run.port, "GET", "/healthz")
    assert (status, text) == (200, b"ok"), (status, text)
    status, text, judged = ask(http.client.HTTPSConnection, webhook, "POST", "/", REVIEW, {"Content-Type": "application/json"}, context=untrusting)
    assert status == 200 and json.loads(text)["response"]["allowed"], (status, text)
    status, text, read = ask(http.client.HTTPSConnection, ports["the API"], "GET", "/api/v1/namespaces/default", context=cluster.context)
    assert status == 200, (status, text)
    return max(probe, judged, read)


def served(rounds):
    try:
        return max(decent() for _ in range(rounds)), ""
    except Exception as error:
        return None, "%s: %s" % (type(error).__name__, error)


def crowd(port, first):
    """Silent connections, as many as a hostile client can hold."""
    quiet = []
    for number in range(CROWD):
        connection = socket.socket()
        connection.setblocking(False)
        connection.connect_ex(("127.0.0.1", port))
        quiet.append(connection)
        if number % 50 == 49:
            time.sleep(0.005)
            for one in quiet[-50:] if first else ():
                try:
                    one.send(first)
                except OSError:
                    pass  # it had to go already
    return quiet


check("decent clients are served", served(1)[0] is not None, served(1)[1])
for name, port in ports.items():
    for what, first in (("say nothing", b""), ("stop in the middle", b"GET / HTTP/1.1\r\nHost" if port == run.port else b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc")):
        quiet = crowd(port, first)
        worst, why = served(5)
        check("%s: %d clients that %s do not hold up others" % (name, CROWD, what), worst is not None, why)
        print("# the slowest decent client took %.0f ms" % ((worst or 0) * 1000), flush=True)
        for connection in quiet:
            connection.close()
check("the processes live", run.is_alive() and cluster.is_alive(), run.tail())
finish()
