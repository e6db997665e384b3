"""A control plane as the differential test sees it: calls, and a cache by watches that keeps the order of what happened."""

import base64
import http.client
import json
import os
import queue
import ssl
import subprocess
import tempfile
import threading
import time

KINDS = {
    "Pod": ("/api/v1", "pods"),
    "Event": ("/api/v1", "events"),
    "ReplicationController": ("/api/v1", "replicationcontrollers"),
    "ConfigMap": ("/api/v1", "configmaps"),
    "ReplicaSet": ("/apis/apps/v1", "replicasets"),
    "Deployment": ("/apis/apps/v1", "deployments"),
    "StatefulSet": ("/apis/apps/v1", "statefulsets"),
    "DaemonSet": ("/apis/apps/v1", "daemonsets"),
    "ControllerRevision": ("/apis/apps/v1", "controllerrevisions"),
    "Job": ("/apis/batch/v1", "jobs"),
    "CronJob": ("/apis/batch/v1", "cronjobs"),
    "PodDisruptionBudget": ("/apis/policy/v1", "poddisruptionbudgets"),
    "PersistentVolumeClaim": ("/api/v1", "persistentvolumeclaims"),
}
WATCH_SECONDS = 1500  # longer than any run
CALL_SECONDS = 30
PROBES = "probes"  # a namespace


class Plane:
    def __init__(self, name, kubeconfig):
        self.name = name
        text = subprocess.run(["kubectl", "--kubeconfig", kubeconfig, "config", "view", "--raw", "-o", "json"],
                              check=True, capture_output=True, text=True).stdout
        config = json.loads(text)
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.address = cluster["server"].removeprefix("https://").rstrip("/")
        self.tls = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        # Python loads client certificates from files only.
        with tempfile.NamedTemporaryFile(mode="w", delete=False) as both:
            both.write(base64.b64decode(user["client-certificate-data"]).decode())
            both.write(base64.b64decode(user["client-key-data"]).decode())
        try:
            self.tls.load_cert_chain(both.name)
        finally:
            os.unlink(both.name)
        self.local = threading.local()
        self.lock = threading.Lock()
        self.objects = {}  # by namespace, then (kind, name)
        self.log = {}  # by namespace: (kind, type, object) in the order of arrival
        self.changed = {}  # by namespace: monotonic time of the last change
        self.failure = None
        self.ending = queue.SimpleQueue()  # pods that are being deleted

    # ---- Calls ----

    def call(self, method, path, body=None, content="application/json"):
        """Status and object of the answer. A connection that was closed between two calls is opened again."""
        data = None if body is None else json.dumps(body)
        for attempt in (1, 2):
            connection = getattr(self.local, "connection", None)
            if connection is None:
                connection = http.client.HTTPSConnection(self.address, context=self.tls, timeout=CALL_SECONDS)
                self.local.connection = connection
            try:
                connection.request(method, path, data, {"Content-Type": content, "Accept": "application/json"})
                answer = connection.getresponse()
                return answer.status, json.loads(answer.read())
            except (http.client.HTTPException, ConnectionError):
                connection.close()
                self.local.connection = None
                if attempt == 2:
                    raise
        raise AssertionError("not reached")

    @staticmethod
    def path(kind, ns, name="", sub=""):
        base, plural = KINDS.get(kind, ("/api/v1", kind.lower() + "s"))
        return f"{base}/namespaces/{ns}/{plural}" + (f"/{name}" if name else "") + (f"/{sub}" if sub else "")

    # ---- Watches ----

    def start(self):
        started = []
        for kind in KINDS:
            ready = threading.Event()
            threading.Thread(target=self.watch, args=(kind, ready), daemon=True).start()
            started.append(ready)
        threading.Thread(target=self.reap, daemon=True).start()
        for ready in started:
            if not ready.wait(CALL_SECONDS):
                raise AssertionError(f"{self.name}: a watch does not begin: {self.failure}")

    def watch(self, kind, ready):
        base, plural = KINDS[kind]
        try:
            status, items = self.call("GET", f"{base}/{plural}?limit=1")
            if status != 200:
                raise AssertionError(f"list {plural}: {status}")
            version = items["metadata"]["resourceVersion"]
            connection = http.client.HTTPSConnection(self.address, context=self.tls, timeout=WATCH_SECONDS)
            connection.request("GET", f"{base}/{plural}?watch=1&resourceVersion={version}&timeoutSeconds={WATCH_SECONDS}")
            answer = connection.getresponse()
            ready.set()
            for line in answer:
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise AssertionError(f"watch {plural}: {event['object']}")
                self.take(kind, event["type"], event["object"])
            raise AssertionError(f"the watch of {plural} ended")
        except Exception as failure:  # a thread tells its end by this alone
            self.failure = self.failure or f"{self.name}: {kind}: {failure!r}"

    def take(self, kind, change, item):
        meta = item["metadata"]
        ns = meta.get("namespace", "")
        with self.lock:
            objects = self.objects.setdefault(ns, {})
            self.log.setdefault(ns, []).append((kind, change, item))
            if change == "DELETED":
                objects.pop((kind, meta["name"]), None)
            else:
                objects[kind, meta["name"]] = item
            if kind != "Event":
                self.changed[ns] = time.monotonic()
        if kind == "Pod" and change == "MODIFIED" and meta.get("deletionGracePeriodSeconds") and "nodeName" in item["spec"]:
            self.ending.put(meta)

    # ---- What is known ----

    def known(self, ns):
        with self.lock:
            return dict(self.objects.get(ns, {})), list(self.log.get(ns, [])), self.changed.get(ns, 0)

    def get(self, kind, ns, name):
        with self.lock:
            return self.objects.get(ns, {}).get((kind, name))

    def pods(self, ns):
        """Pods that are not being deleted, by their number if they have one, else in the order of their appearance."""
        objects, log, _ = self.known(ns)
        order = {}
        for kind, change, item in log:
            if kind == "Pod" and change == "ADDED":
                order.setdefault(item["metadata"]["uid"], len(order))
        found = [o for (kind, _), o in objects.items() if kind == "Pod" and "deletionTimestamp" not in o["metadata"]]

        def place(pod):
            labels = pod["metadata"].get("labels", {})
            number = labels.get("apps.kubernetes.io/pod-index") or labels.get("batch.kubernetes.io/job-completion-index") or "0"
            return int(number), order[pod["metadata"]["uid"]]
        return sorted(found, key=place)

    # ---- Probes ----

    def probe_start(self, name):
        """Objects of that name, of no consequence, by whose status controllers show that they have come to the end of their queues."""
        template = {"metadata": {"labels": {"probe": name}}, "spec": {"containers": [{"name": "app", "image": "app"}]}}
        spec = {"replicas": 0, "selector": {"matchLabels": {"probe": name}}, "template": template}
        self.call("POST", "/api/v1/namespaces", {"metadata": {"name": PROBES}})  # the first story makes it
        for kind, more in (("Deployment", {"paused": True}), ("ReplicaSet", {})):
            code, answer = self.call("POST", self.path(kind, PROBES), {"metadata": {"name": name}, "spec": {**spec, **more}})
            if code != 201:
                raise AssertionError(f"{self.name}: probe {name}: {code} {answer}")

    def probe(self, name, number):
        """Comes back when the controllers have seen what is asked for now, and so everything before it."""
        end = time.monotonic() + CALL_SECONDS
        for kind in ("Deployment", "ReplicaSet"):
            path = self.path(kind, PROBES, name)
            generation = self.call("PATCH", path, {"spec": {"minReadySeconds": number}}, "application/merge-patch+json")[1]["metadata"]["generation"]
            while self.call("GET", path)[1].get("status", {}).get("observedGeneration", 0) < generation:
                if time.monotonic() > end:
                    raise AssertionError(f"{self.name}: the controller of {kind} does not answer")
                time.sleep(0.05)

    # ---- The end of pods ----

    def reap(self):
        """A pod that is being deleted goes at once, as if its containers had ended. By its uid, for a new one may have its name."""
        while True:
            meta = self.ending.get()
            body = {"gracePeriodSeconds": 0, "preconditions": {"uid": meta["uid"]}}
            try:
                self.call("DELETE", self.path("Pod", meta["namespace"], meta["name"]), body)
            except Exception as failure:  # as in watch
                self.failure = self.failure or f"{self.name}: the end of {meta['name']}: {failure!r}"
