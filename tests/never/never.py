"""For the tests of this folder that need the real program: a cluster of `tandem up`, a `tandem run` on it, and checks that end as TAP.

Every program that is started here is ended here, and must end well: a sanitizer's build says at its end what it has found."""

import base64
import http.client
import itertools
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import traceback

TANDEM = os.path.abspath(sys.argv[1])
TOP = os.path.abspath(sys.argv[2])
SANITIZER = sys.argv[3] if len(sys.argv) > 3 else ""
# How much longer things may take: a sanitizer's build is slow, and so is a machine that others use.
SLOW = (3 if SANITIZER else 1) * min(8, max(1, os.getloadavg()[0] / (os.cpu_count() or 1)))

VPAS = "/apis/autoscaling.k8s.io/v1/namespaces/default/verticalpodautoscalers"
CHECKPOINTS = "/apis/autoscaling.k8s.io/v1/namespaces/default/verticalpodautoscalercheckpoints"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
PODS = "/api/v1/namespaces/default/pods"
MUTATING = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"

for name in ("KUBECONFIG", "NAMESPACE"):
    os.environ.pop(name, None)
work = tempfile.mkdtemp(prefix="never-")
started = []  # every Program
numbers = itertools.count()
count = failures = 0


def check(name, is_good, why=""):
    global count, failures
    count += 1
    failures += not is_good
    print("ok %d - %s" % (count, name) if is_good else "not ok %d - %s: %s" % (count, name, why), flush=True)
    return is_good


def soon(seconds, asks, pause=0.2):
    """What `asks` answers once that is true, or its last answer."""
    end = time.monotonic() + seconds
    while True:
        answer = asks()
        if answer or time.monotonic() > end:
            return answer
        time.sleep(pause)


def finish():
    for program in reversed(started):
        program.end()
    shutil.rmtree(work, ignore_errors=True)
    print("1..%d" % count)
    sys.exit(1 if failures or not count else 0)


def together(*functions):
    """All at once; one that breaks off is a failure."""

    def guarded(function):
        try:
            function()
        except Exception:
            check("%s comes to its end" % getattr(function, "__name__", function), False, traceback.format_exc())

    threads = [threading.Thread(target=guarded, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Program:
    """One run of tandem; its output is in files."""

    def __init__(self, name, *args, env=None):
        self.name, self.path = name, os.path.join(work, "%s-%d" % (name, next(numbers)))
        with open(self.path + ".out", "wb") as out, open(self.path + ".err", "wb") as err:
            self.process = subprocess.Popen(
                [TANDEM, *args], stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=work, env=dict(os.environ, **(env or {}))
            )
        self.pid, self.is_ended = self.process.pid, False
        started.append(self)

    def output(self):
        with open(self.path + ".out", errors="replace") as out, open(self.path + ".err", errors="replace") as err:
            return out.read() + err.read()

    def is_alive(self):
        return self.process.poll() is None

    def tail(self):
        return "%s: %s" % (self.name, self.output()[-700:])

    def rss_kib(self):
        with open("/proc/%d/statm" % self.pid) as statm:
            return int(statm.read().split()[1]) * resource_page // 1024

    def kill(self):
        """Without a word to it."""
        self.is_ended = True
        self.process.kill()
        self.process.wait()

    def end(self):
        if self.is_ended:
            return
        self.is_ended = True
        was_alive = self.is_alive()
        if was_alive:
            self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(30 * SLOW)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = "none: killed after waiting for it"
        check("%s lived to its end and ended with 0" % self.name, was_alive and status == 0, "status %s; %s" % (status, self.tail()))


resource_page = os.sysconf("SC_PAGE_SIZE")


class Api:
    """What a client of an API server sends, over one connection; one thread."""

    def __init__(self, url, context=None, headers=None):
        self.host, self.context, self.headers = url.split("//")[1], context, headers or {}
        self.is_tls = url.startswith("https")
        self.connection = None

    def call(self, method, path, body=None, content_type="application/json"):
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        headers = dict(self.headers, **({"Content-Type": content_type} if body else {}))
        for is_last in (False, True):
            is_new = not self.connection
            if is_new:
                kind = http.client.HTTPSConnection if self.is_tls else http.client.HTTPConnection
                more = {"context": self.context} if self.is_tls else {}
                self.connection = kind(self.host, timeout=20 * SLOW, **more)
            try:
                self.connection.request(method, path, body, headers)
                answer = self.connection.getresponse()
                return answer.status, answer.read().decode(errors="replace")
            except (OSError, http.client.HTTPException):
                self.connection.close()
                self.connection = None
                if is_new or is_last:  # else an idle connection had been closed meanwhile
                    raise

    def get(self, path):
        """The object, or None."""
        status, text = self.call("GET", path)
        return json.loads(text) if status == 200 else None

    def post(self, path, body):
        status, text = self.call("POST", path, body)
        if status not in (200, 201):
            raise RuntimeError("POST %s: %d %s" % (path, status, text[:500]))
        return json.loads(text)

    def patch(self, path, body, kind="merge-patch"):
        return self.call("PATCH", path, body, "application/%s+json" % kind)

    def delete(self, path):
        return self.call("DELETE", path)[0]

    def items(self, path):
        return (self.get(path) or {"items": []})["items"]


class Cluster(Program, Api):
    """A local cluster without controllers, which measures every second."""

    def __init__(self, *args):
        scenario = os.path.join(work, "scenario-%d.yaml" % next(numbers))
        with open(scenario, "w") as file:
            file.write("{apiVersion: sim.tandem.dev/v1, kind: Scenario, metadata: {name: never}, spec: {metrics: {resolution: 1s}}}\n")
        if "--data" in args:
            scenario = "-q"  # a folder goes without one
        self.kubeconfig = os.path.join(work, "kubeconfig-%d" % next(numbers))
        args += (scenario,)
        Program.__init__(
            self, "the cluster", "up", "-q", "--controllers", "none", "--listen", "127.0.0.1:0", "--kubeconfig", self.kubeconfig, *args
        )
        if not soon(20 * SLOW, lambda: "stop " in self.output() or not self.is_alive()) or not self.is_alive():
            check("the cluster starts", False, self.tail())
            finish()
        with open(self.kubeconfig) as file:
            text = file.read()
        self.url = re.search(r"server: (\S+)", text).group(1)
        self.data = {name: value for name, value in re.findall(r"(\S+)-data: \"?([A-Za-z0-9+/=]+)", text)}
        paths = {}
        for name, value in self.data.items():
            paths[name] = "%s-%s.pem" % (self.path, name)
            with open(paths[name], "wb") as file:
                file.write(base64.b64decode(value))
        context = ssl.create_default_context(cafile=paths["certificate-authority"])
        context.load_cert_chain(paths["client-certificate"], paths["client-key"])
        self.ca_path = paths["certificate-authority"]
        Api.__init__(self, self.url, context)

    def deploy(self, name, use="400m,300Mi", resources=None, replicas=3, **spec):
        container = {"name": "app", "image": "nginx", "resources": resources or {"requests": {"cpu": "100m", "memory": "100Mi"}}}
        template = {
            "metadata": {"labels": {"app": name}, "annotations": {"usage.tandem.dev/app": use}},
            "spec": dict({"containers": [container]}, **spec),
        }
        body = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
        self.post(DEPLOYMENTS, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": body})

    def vpa(self, name, mode="Recreate", **spec):
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
        body = dict({"targetRef": target, "updatePolicy": {"updateMode": mode}}, **spec)
        meta = {"name": name}
        self.post(VPAS, {"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler", "metadata": meta, "spec": body})

    def target(self, name, resource):
        """What a VPA recommends for the first container, as text."""
        status = (self.get(VPAS + "/" + name) or {}).get("status", {})
        containers = status.get("recommendation", {}).get("containerRecommendations", [])
        return containers[0]["target"].get(resource) if containers else None

    def condition(self, name, kind):
        """The message of a condition that is True."""
        for condition in (self.get(VPAS + "/" + name) or {}).get("status", {}).get("conditions", []):
            if condition["type"] == kind and condition["status"] == "True":
                return condition.get("message") or condition.get("reason") or "-"
        return None

    def uids(self, app):
        return {pod["metadata"]["uid"] for pod in self.items(PODS + "?labelSelector=app%3D" + app)}


class Run(Program):
    """The controllers on a cluster, or on any kubeconfig."""

    def __init__(self, cluster, *args, kubeconfig=None, env=None):
        Program.__init__(
            self, "tandem run", "run", "--kubeconfig", kubeconfig or cluster.kubeconfig, "--address", "127.0.0.1:0", *args, env=env
        )
        self.port = None

    def await_start(self):
        found = soon(20 * SLOW, lambda: re.search(r'metrics_port"?[=:] ?(\d+)', self.output()) or not self.is_alive())
        if not found or found is True:
            check("tandem run starts", False, self.tail())
            finish()
        self.port = int(found.group(1))
        self.own = Api("http://127.0.0.1:%d" % self.port)
        return self

    def says(self, path):
        try:
            return self.own.call("GET", path)[1]
        except (OSError, http.client.HTTPException) as error:
            return str(error)

    def await_ready(self):
        check("tandem run is ready", soon(30 * SLOW, lambda: self.says("/readyz") == "ok"), self.says("/readyz") + self.tail())
        return self


def bytes_of(quantity):
    units = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "k": 1000, "M": 10**6, "G": 10**9}
    match = re.fullmatch(r"(\d+)([A-Za-z]*)", quantity or "0")
    return int(match.group(1)) * units.get(match.group(2), 1)
