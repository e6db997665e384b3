"""A real control plane on loopback with our controllers on it, and stories that are told about it.

A file live_*.py is a list of functions marked @story("what is shown"), each of which gets the bed, and ends with main(). A story fails by
an exception; it waits with eventually() and holds with steady(), never by a bare sleep. Each story has a namespace of its own (bed.ns).
Run one by hand: tests/e2e/live_selector.py BUILD [--quick] [WORD...]; stories whose name holds a word. Only Python's own library is used.
"""

import contextlib
import fcntl
import http.client
import inspect
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.parse

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
KIT = os.path.join(TOP, "..", "shared", "realplane")
CACHE = os.environ.get("REALPLANE_CACHE") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "tandem-realplane")
# Which control plane of the kit: its newest, or REALPLANE_K8S=1.34; each has a cache of its own.
RELEASE = os.environ.get("REALPLANE_K8S", "")
PLANE = CACHE + (f"-{RELEASE}" if RELEASE else "")

# Where the collections are: kind -> (prefix of the path, plural).
KINDS = {
    "Namespace": ("/api/v1", "namespaces"), "Node": ("/api/v1", "nodes"), "Pod": ("/api/v1", "pods"),
    "Event": ("/api/v1", "events"), "Secret": ("/api/v1", "secrets"), "LimitRange": ("/api/v1", "limitranges"),
    "ResourceQuota": ("/api/v1", "resourcequotas"),
    "ConfigMap": ("/api/v1", "configmaps"), "ServiceAccount": ("/api/v1", "serviceaccounts"),
    "Deployment": ("/apis/apps/v1", "deployments"), "ReplicaSet": ("/apis/apps/v1", "replicasets"),
    "StatefulSet": ("/apis/apps/v1", "statefulsets"), "DaemonSet": ("/apis/apps/v1", "daemonsets"),
    "Job": ("/apis/batch/v1", "jobs"), "PodDisruptionBudget": ("/apis/policy/v1", "poddisruptionbudgets"),
    "Lease": ("/apis/coordination.k8s.io/v1", "leases"),
    "HorizontalPodAutoscaler": ("/apis/autoscaling/v2", "horizontalpodautoscalers"),
    "TandemHPA": ("/apis/autoscaling.tandem.dev/v2", "horizontalpodautoscalers"),
    "VerticalPodAutoscaler": ("/apis/autoscaling.k8s.io/v1", "verticalpodautoscalers"),
    "VerticalPodAutoscalerCheckpoint": ("/apis/autoscaling.k8s.io/v1", "verticalpodautoscalercheckpoints"),
    "Hvpa": ("/apis/autoscaling.k8s.io/v1alpha1", "hvpas"),
    "MutatingWebhookConfiguration": ("/apis/admissionregistration.k8s.io/v1", "mutatingwebhookconfigurations"),
    "ValidatingWebhookConfiguration": ("/apis/admissionregistration.k8s.io/v1", "validatingwebhookconfigurations"),
    "ValidatingAdmissionPolicy": ("/apis/admissionregistration.k8s.io/v1", "validatingadmissionpolicies"),
    "ValidatingAdmissionPolicyBinding": ("/apis/admissionregistration.k8s.io/v1", "validatingadmissionpolicybindings"),
}
CLUSTER_WIDE = {"Namespace", "Node", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy",
                "ValidatingAdmissionPolicyBinding"}
PATCHES = {"merge": "application/merge-patch+json", "json": "application/json-patch+json",
           "strategic": "application/strategic-merge-patch+json"}


class Refused(Exception):
    """An answer of the API server that is not a success."""

    def __init__(self, status, body):
        self.status = status
        try:
            self.message = json.loads(body).get("message", "")
        except ValueError:
            self.message = body.decode(errors="replace")
        super().__init__(f"{status}: {self.message}")


def quantity(text):
    """A Kubernetes quantity as a float."""
    match = re.fullmatch(r"([-+]?[0-9.]+)([a-zA-Z]*)", str(text))
    scale = {"": 1, "n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12,
             "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
    return float(match[1]) * scale[match[2]]


def eventually(seconds, check, what):
    """The first true value that check gives; what went wrong last is told when there is none in time."""
    end, last = time.monotonic() + seconds, None
    while True:
        try:
            value = check()
            if value:
                return value
            last = value
        except (Refused, KeyError, IndexError, TypeError, AssertionError, OSError) as error:
            last = error
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what}; last seen: {last!r}")
        time.sleep(0.25)


def steady(seconds, check, what):
    """The check holds now and all of the time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = check()
        assert value, f"did not stay: {what}; seen: {value!r}"
        time.sleep(0.25)


def open_gate(name):
    """What opens a gate of the API server, for APISERVER_ARGS; empty where this server has no such gate, and would not start with it."""
    said = subprocess.run([os.path.join(PLANE, "bin", "kube-apiserver"), "--help"], capture_output=True, text=True, check=False).stdout
    return f" --feature-gates={name}=true" if re.search(rf"\b{name}=true\|false", said) else ""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def fetch(port, path):
    """Status and text of what a program on loopback answers."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    with contextlib.closing(connection):
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def metric(port, name, **labels):
    """Sum of a program's samples of a metric whose labels include these; None when there is none."""
    total = None
    for line in fetch(port, "/metrics")[1].splitlines():
        match = re.fullmatch(r"([a-zA-Z_:]+)(?:\{(.*)\})? ([-+.0-9eEinfNa]+)", line)
        if match and match[1] == name:
            have = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', match[2] or ""))
            if all(have.get(k) == v for k, v in labels.items()):
                total = (total or 0) + float(match[3])
    return total


class Program:
    """tandem run. The log is kept; the end must be in order and without a word of a sanitizer."""

    def __init__(self, bed, name, flags, env=None):
        self.bed, self.name, self.flags, self.env = bed, name, flags, env
        self.log = os.path.join(bed.folder, f"{name}.log")
        self.port, self.webhook_port = free_port(), free_port()
        command = [os.path.join(bed.build, "tandem"), "run", "--kubeconfig", bed.kubeconfig,
                   "--address", f"127.0.0.1:{self.port}", "--webhook-listen", f"127.0.0.1:{self.webhook_port}"]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command + list(flags), stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                            env={**os.environ, **(env or {})})

    def get(self, path):
        return fetch(self.port, path)

    def metric(self, name, **labels):
        return metric(self.port, name, **labels)

    def ready(self, seconds=60):
        eventually(seconds, lambda: self.alive() and self.get("/readyz")[0] == 200, f"{self.name} is ready")

    def alive(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"{self.name} ended with {self.process.returncode}: {self.tail()}")
        return True

    def tail(self):
        with open(self.log, errors="replace") as log:
            return "".join(log.readlines()[-15:])

    def kill(self):
        """As a machine that is switched off."""
        self.process.kill()
        self.process.wait()

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.kill()
                raise AssertionError(f"{self.name} did not stop in 60 s: {self.tail()}") from None
            assert self.process.returncode == 0, f"{self.name} ended with {self.process.returncode}: {self.tail()}"
        self.clean()

    def clean(self):
        with open(self.log, errors="replace") as log:
            text = log.read()
        found = re.search(r"(ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|runtime error:|ERROR: LeakSanitizer).*", text)
        assert not found, f"{self.name}: {text[found.start():found.start() + 3000]}"


class Bed:
    """The control plane of one file of stories."""

    def __init__(self, build, hpa="none", nodes=3, env=None):
        self.build = os.path.abspath(build)
        self.folder = tempfile.mkdtemp(prefix="tandem-e2e-")
        self.kubeconfig = os.path.join(self.folder, "kubeconfig")
        self.env = {**os.environ, "REALPLANE_CACHE": CACHE, "KUBECONFIG": self.kubeconfig, **(env or {})}
        self.env["PATH"] = os.path.join(PLANE, "bin") + ":" + self.env["PATH"]
        self.ns, self._judges_room = "default", None
        self.programs, self.rows, self.hidden, self.has_upstream, self._connection = [], {}, set(), False, None
        with open(os.path.join(tempfile.gettempdir(), f"tandem-e2e-{os.getuid()}.lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # two beds that start at once would take the same ports
            self._start("up", f"--hpa={hpa}", "--nodes", str(nodes))
        with open(os.path.join(self.folder, "ports")) as ports:
            self.ports = {k: int(v) for k, v in re.findall(r"(\w+)=(\d+)", ports.read())}
        self._tls = ssl.create_default_context(cafile=os.path.join(self.folder, "pki", "ca.crt"))
        self._tls.load_cert_chain(*(os.path.join(self.folder, "pki", f"admin.{end}") for end in ("crt", "key")))
        self.apply(self.tandem("manifests", "--only", "crds"), namespace=None)
        eventually(30, lambda: self.list("Hvpa") is not None and self.list("VerticalPodAutoscaler") is not None
                   and self.list("TandemHPA") is not None, "the definitions are served")

    # The kit and the programs.

    def kit(self, script, *args, env=None, timeout=300):
        done = subprocess.run([os.path.join(KIT, script), self.folder, *args], env={**self.env, **(env or {})}, timeout=timeout,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        assert done.returncode == 0, f"{script}: {done.stdout}{done.stderr}"
        return done.stdout

    def _start(self, *args):
        """Another process may take the ports that were found free."""
        for attempt in (0, 1, 2):
            try:
                self.kit(*args)
                return
            except AssertionError as error:
                if attempt == 2 or "ended" not in str(error):
                    raise
                time.sleep(2)

    def down(self):
        """Ends all; tells what of it did not end in order."""
        faults = []
        for program in self.programs:
            try:
                program.stop()
            except AssertionError as error:
                faults.append(str(error))
        self.kit("down")
        if not os.environ.get("KEEP"):
            subprocess.run(["rm", "-rf", self.folder], check=False)
        return faults

    def run(self, *flags, name="tandem", wait=True, env=None):
        """Starts tandem run with short intervals; later flags win over the ones here."""
        name = name if name not in [p.name for p in self.programs] else f"{name}-{len(self.programs)}"
        program = Program(self, name, ["--recommender-interval=5s", "--updater-interval=5s", "--horizontal-pod-autoscaler-sync-period=5s",
                                       "--hvpa-sync-period=5s", "--horizontal=builtin", *flags], env)
        self.programs.append(program)
        if wait:
            program.ready()
        return program

    def tandem(self, *args, check=True, text=None):
        """Another command of tandem; what it prints."""
        done = subprocess.run([os.path.join(self.build, "tandem"), *args], env=self.env, capture_output=True, text=True, input=text, timeout=120)
        assert not check or done.returncode == 0, f"tandem {' '.join(args)}: {done.returncode}: {done.stderr}"
        return done.stdout if check else (done.returncode, done.stdout, done.stderr)

    def upstream(self, parts="recommender updater admission", recommender="", updater="", admission=""):
        """Upstream's VPA on the bed, fast as ours."""
        self.has_upstream = True
        self.kit("vpa-upstream", env={"VPA_PARTS": parts, "VPA_RECOMMENDER_ARGS": f"--recommender-interval=5s {recommender}",
                                      "VPA_UPDATER_ARGS": f"--updater-interval=5s {updater}", "VPA_ADMISSION_ARGS": admission})

    def standing(self):
        return [program for program in self.programs if program.process.poll() is None]

    def tidy(self, before):
        """After a story that failed: what it started ends, what it ended runs again, so that the next one finds what it expects.
        Tells what did not end in order."""
        faults = []
        if self.has_upstream:
            self.kit("vpa-upstream", "stop")
        for program in self.standing():
            if program not in before:
                try:
                    program.stop()
                except AssertionError as error:
                    faults.append(str(error))
        lost = [program for program in before if program.process.poll() is not None]
        self.programs = [program for program in before if program not in lost]
        for program in (program for program in lost if isinstance(program, Program)):
            self.programs.append(Program(self, program.name, program.flags, program.env))
            self.programs[-1].ready()
        return faults

    def oom(self, pod, container, namespace=None):
        self.kit("oom", namespace or self.ns, pod, container)

    # What goes wrong with a cluster.

    def pid(self, name):
        """Of a program of the control plane."""
        with open(os.path.join(self.folder, "pids")) as pids:
            return int(dict(line.split() for line in pids)[name])

    @contextlib.contextmanager
    def frozen(self, name):
        """A program that does not answer, its connections open."""
        os.kill(self.pid(name), signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.pid(name), signal.SIGCONT)

    @contextlib.contextmanager
    def dead(self, name):
        """A program that is killed, and started again with the same arguments at the end."""
        pid = self.pid(name)
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            command = file.read().split(b"\0")[:-1]
        os.kill(pid, signal.SIGKILL)
        eventually(10, lambda: not os.path.exists(f"/proc/{pid}") or open(f"/proc/{pid}/stat").read().split()[2] == "Z", f"{name} is gone")
        try:
            yield
        finally:
            with open(os.path.join(self.folder, "log", name), "ab") as log:
                started = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
            with open(os.path.join(self.folder, "pids")) as pids:
                lines = pids.read().replace(f"{name} {pid}\n", f"{name} {started.pid}\n")
            with open(os.path.join(self.folder, "pids"), "w") as pids:
                pids.write(lines)

    def compact(self):
        """etcd forgets all that is not the newest."""
        def ask(path, body):
            connection = http.client.HTTPConnection("127.0.0.1", self.ports["etcd"], timeout=20)
            with contextlib.closing(connection):
                connection.request("POST", path, json.dumps(body))
                answer = connection.getresponse()
                text = answer.read()
                assert answer.status == 200, text
                return json.loads(text)
        revision = ask("/v3/kv/range", {"key": "AA=="})["header"]["revision"]
        ask("/v3/kv/compaction", {"revision": revision, "physical": True})

    def usage(self, pod, container, cpu, memory, namespace=None):
        """Usage of the pods that match, from the next request on; a cpu of None removes the row."""
        key = (namespace or self.ns, pod, container)
        self.rows.pop(key, None)
        if cpu is not None:
            self.rows[key] = {"namespace": key[0], "pod": pod, "container": container, "cpu": cpu, "memory": memory}
        self._write_usage()

    def usages(self, container, rows, namespace=None):
        """Usage of pods by their names, in one write: {pod: (cpu, memory)}; None removes the row."""
        for pod, row in rows.items():
            key = (namespace or self.ns, pod, container)
            self.rows.pop(key, None)
            if row:
                self.rows[key] = {"namespace": key[0], "pod": pod, "container": container, "cpu": row[0], "memory": row[1]}
        self._write_usage()

    def hide(self, namespace, is_hidden=True):
        """No pod of the namespace has metrics, or all have them again, whatever their rows say."""
        (self.hidden.add if is_hidden else self.hidden.discard)(namespace)
        self._write_usage()

    def value(self, resource, name, metric, value, namespace=None):
        """A custom metric of objects ("pods", "web-*", "rps", "20")."""
        row = {"namespace": namespace or self.ns, "resource": resource, "object": name, "metric": metric, "value": value}
        self.rows[("custom", row["namespace"], resource, name, metric)] = row
        self._write_usage()

    def external(self, metric, labels, value, namespace=None):
        """A series of an external metric; None removes it."""
        key = ("external", namespace or self.ns, metric, str(labels))
        self.rows.pop(key, None)
        if value is not None:
            self.rows[key] = {"namespace": key[1], "metric": metric, "labels": labels, "value": value}
        self._write_usage()

    def _write_usage(self):
        hidden = [{"namespace": namespace, "hide": True} for namespace in sorted(self.hidden)]
        pods = hidden + [row for row in self.rows.values() if "pod" in row]  # the first that matches holds
        custom = [row for row in self.rows.values() if "resource" in row]
        external = [row for row in self.rows.values() if "labels" in row]
        temporary = os.path.join(self.folder, "usage.tmp")
        with open(temporary, "w") as file:
            json.dump({"default": {"cpu": "10m", "memory": "20Mi"}, "pods": pods, "custom": custom, "external": external}, file)
        os.rename(temporary, os.path.join(self.folder, "usage.json"))

    # The API.

    def call(self, method, path, body=None, content="application/json"):
        data = None if body is None else json.dumps(body)
        for attempt in (0, 1):
            if self._connection is None:
                self._connection = http.client.HTTPSConnection("127.0.0.1", self.ports["api"], context=self._tls, timeout=40)
            try:
                self._connection.request(method, path, data, {"Content-Type": content, "User-Agent": "tandem-e2e"})
                answer = self._connection.getresponse()
                text = answer.read()
                break
            except (OSError, http.client.HTTPException):
                self._connection.close()
                self._connection = None
                if attempt:
                    raise
        if answer.status >= 300:
            raise Refused(answer.status, text)
        return json.loads(text)

    def path(self, kind, name=None, subresource=None, namespace=None):
        prefix, plural = KINDS[kind]
        where = "" if kind in CLUSTER_WIDE or namespace == "*" else f"/namespaces/{namespace or self.ns}"
        return f"{prefix}{where}/{plural}" + (f"/{name}" if name else "") + (f"/{subresource}" if subresource else "")

    # What a server can do, by what it keeps and answers: stories of something that it lacks show what happens instead (docs/preflight.md).

    def keeps_tolerance(self):
        """The tolerance in the behavior of an HPA of autoscaling/v2."""
        made = self.create("HorizontalPodAutoscaler", {"metadata": {"generateName": "try-"}, "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "try"}, "maxReplicas": 2,
            "behavior": {"scaleUp": {"tolerance": "500m"}}}}, namespace="default", dry=True)
        return "tolerance" in made["spec"]["behavior"]["scaleUp"]

    def judges_room(self):
        """A resize for which the pod's node is too small is refused at once. Others leave that to the kubelet, which pods with the annotation
        realplane/resize: Infeasible have."""
        if self._judges_room is None:
            large = {"cpu": "1000"}
            self.create("Pod", {"metadata": {"name": "room"}, "spec": {"containers": [
                {"name": "app", "image": "app", "resources": {"requests": {"cpu": "10m"}}}]}}, namespace="default")
            eventually(60, lambda: self.get("Pod", "room", namespace="default")["spec"].get("nodeName"), "a pod has a node")
            try:
                self.call("PATCH", self.path("Pod", "room", "resize", "default") + "?dryRun=All", {"spec": {"containers": [
                    {"name": "app", "resources": {"requests": large}}]}}, PATCHES["strategic"])
                self._judges_room = False
            except Refused as refused:
                assert refused.status == 403, refused
                self._judges_room = True
            self.delete("Pod", "room", namespace="default")
        return self._judges_room

    def get(self, kind, name, subresource=None, namespace=None):
        return self.call("GET", self.path(kind, name, subresource, namespace))

    def list(self, kind, selector="", namespace=None):
        query = f"?labelSelector={urllib.parse.quote(selector)}" if selector else ""
        return self.call("GET", self.path(kind, namespace=namespace) + query)["items"]

    def create(self, kind, body, namespace=None, dry=False):
        """What the object is need not be said in it."""
        prefix = KINDS[kind][0].removeprefix("/apis/").removeprefix("/api/")
        body = {"apiVersion": prefix, "kind": kind.replace("TandemHPA", "HorizontalPodAutoscaler"), **body}
        return self.call("POST", self.path(kind, namespace=namespace) + ("?dryRun=All" if dry else ""), body)

    def patch(self, kind, name, body, form="merge", subresource=None, namespace=None):
        return self.call("PATCH", self.path(kind, name, subresource, namespace), body, PATCHES[form])

    def delete(self, kind, name, namespace=None):
        return self.call("DELETE", self.path(kind, name, namespace=namespace))

    def kubectl(self, *args, text=None, check=True):
        done = subprocess.run(["kubectl", *args], env=self.env, capture_output=True, text=True, input=text, timeout=120)
        assert not check or done.returncode == 0, f"kubectl {' '.join(args)}: {done.stderr}"
        return done.stdout if check else (done.returncode, done.stdout + done.stderr)

    def apply(self, text, namespace=""):
        """Manifests, in the story's namespace unless they name one."""
        where = [] if namespace is None else ["-n", namespace or self.ns]
        return self.kubectl(*where, "apply", "--server-side", "-f", "-", text=text)

    def refused(self, text, *words):
        """The manifests are not accepted, and the answer holds each of the words."""
        status, said = self.kubectl("-n", self.ns, "apply", "-f", "-", text=text, check=False)
        assert status != 0, "accepted: " + text
        for word in words:
            assert word in said, f"{word!r} is not in {said!r}"
        return said

    def account(self, namespace, name):
        """A kubeconfig with which one is that service account."""
        token = self.kubectl("-n", namespace, "create", "token", name, "--duration=2h").strip()
        path = os.path.join(self.folder, f"{namespace}-{name}.kubeconfig")
        with open(path, "w") as file:
            json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "c",
                       "clusters": [{"name": "c", "cluster": {"server": f"https://127.0.0.1:{self.ports['api']}",
                                                              "certificate-authority": os.path.join(self.folder, "pki", "ca.crt")}}],
                       "users": [{"name": "u", "user": {"token": token}}],
                       "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": namespace}}]}, file)
        return path

    # What stories ask most.

    def pods(self, selector="", namespace=None):
        """Pods that are not going."""
        return [pod for pod in self.list("Pod", selector, namespace) if not pod["metadata"].get("deletionTimestamp")]

    def running(self, selector, count, seconds=60):
        return eventually(seconds, lambda: (pods := self.pods(selector)) and len(pods) == count and all(
            any(c["type"] == "Ready" and c["status"] == "True" for c in pod.get("status", {}).get("conditions", [])) for pod in pods) and pods,
            f"{count} pods of {selector} are ready")

    def recommendation(self, vpa):
        """Container name -> {target, lowerBound, upperBound, uncappedTarget}."""
        status = self.get("VerticalPodAutoscaler", vpa).get("status", {})
        return {row["containerName"]: row for row in status.get("recommendation", {}).get("containerRecommendations", [])}

    def condition(self, kind, name, type_):
        for condition in self.get(kind, name).get("status", {}).get("conditions", []):
            if condition["type"] == type_:
                return condition
        return None

    def events(self, reason=None, name=None, namespace=None):
        return [e for e in self.list("Event", namespace=namespace)
                if (not reason or e.get("reason") == reason) and (not name or e.get("involvedObject", {}).get("name") == name)]


def requests(pod, container=None):
    """Requests of one container (the first)."""
    for row in pod["spec"]["containers"]:
        if container in (None, row["name"]):
            return row.get("resources", {}).get("requests", {})
    return {}


@contextlib.contextmanager
def local(bed, *flags):
    """kubectl on a local cluster: (arguments, text) -> (status, what it said)."""
    with tempfile.TemporaryDirectory() as folder:
        config = os.path.join(folder, "kubeconfig")
        up = subprocess.Popen([os.path.join(bed.build, "tandem"), "up", "--quiet", "--page", "off", "--listen", "127.0.0.1:0", "--kubeconfig", config,
                               *flags], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        kubectl = real(bed, "--kubeconfig", config)
        try:
            eventually(30, lambda: kubectl("get", "--raw", "/readyz")[0] == 0, "the local cluster is there")
            yield kubectl
        finally:
            up.terminate()
            up.wait()


def real(bed, *where):
    """The same on the bed."""
    def kubectl(*args, text=None):
        done = subprocess.run(["kubectl", *where, *args], env=bed.env, capture_output=True, text=True, input=text, timeout=60)
        return done.returncode, done.stdout + done.stderr
    return kubectl


STORIES = []


def story(name, quick=False):
    """Marks a story; the quick ones are told by make e2e QUICK=1."""
    def mark(function):
        STORIES.append((name, quick, function))
        return function
    return mark


def main(hpa="none", nodes=3, env=None, setup=None):
    """All stories of a file on one bed. setup(bed) comes first, for example to start the controllers: by default bed.run()."""
    build, quick = sys.argv[1], "--quick" in sys.argv
    words = [word for word in sys.argv[2:] if not word.startswith("-")]
    told = [(n, f) for n, q, f in STORIES if (q or not quick) and (not words or any(w in n for w in words))]
    if not told:
        print("0 passed, 0 failed")
        return
    bed, passed, failed = Bed(build, hpa, nodes, env), 0, 0
    try:
        (setup or Bed.run)(bed)
        for name, function in told:
            began, before = time.monotonic(), bed.standing()
            bed.ns = re.sub(r"[^a-z0-9]+", "-", function.__name__).strip("-")
            try:
                bed.create("Namespace", {"metadata": {"name": bed.ns}})
                eventually(20, lambda: bed.get("ServiceAccount", "default"), "the namespace has its service account")
                function(bed)
                for program in bed.programs:
                    program.clean()
                passed += 1
                print(f"ok   {name} ({time.monotonic() - began:.0f} s)", flush=True)
            except Exception as error:  # pylint: disable=broad-except
                failed += 1
                line = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == inspect.getfile(function)]
                print(f"FAIL {name}: {os.path.basename(sys.argv[0])}:{line[-1] if line else '?'}: {error}", flush=True)
                for fault in bed.tidy(before):
                    print(f"     {fault}", flush=True)
    finally:
        for fault in bed.down():
            failed += 1
            print(f"FAIL the end: {fault}", flush=True)
    print(f"{passed} passed, {failed} failed", flush=True)
    sys.exit(1 if failed else 0)
