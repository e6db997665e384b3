"""Watches ConfigMaps and pods while threads create, patch and delete 2,000 of them, then compares the caches with the
server's lists: name, uid and resourceVersion of every object. Usage: churn.py SECONDS [SEED]"""

import random
import sys
import threading
import time

from kubernetes import client, config, watch

OBJECTS = {"configmap": 1500, "pod": 500}
THREADS = 4
NAMESPACE = "python-churn"
PAGE = 200
WATCH_SECONDS = 3  # short, so that resuming is what mostly happens
SETTLE_SECONDS = 30


class Cache(threading.Thread):
    """List, then watch from the list's version; a watch that ends is resumed, one that is gone begins with a list."""

    def __init__(self, kind):
        super().__init__(daemon=True)
        self.api = client.CoreV1Api()
        self.list_call = {
            "configmap": self.api.list_namespaced_config_map,
            "pod": self.api.list_namespaced_pod,
        }[kind]
        self.kind = kind
        self.items = {}
        self.lock = threading.Lock()
        self.version = None
        self.lists = self.resumes = self.events = self.bookmarks = 0
        self.failure = None
        self.is_stopping = False

    def take_list(self):
        items, token = {}, None
        versions = set()
        while True:
            page = self.list_call(NAMESPACE, limit=PAGE, _continue=token)
            versions.add(page.metadata.resource_version)
            for item in page.items:
                items[item.metadata.name] = identity(item)
            token = page.metadata._continue
            if not token:
                break
        if len(versions) != 1:
            raise AssertionError(f"pages of one list have versions {sorted(versions)}")
        with self.lock:
            self.items = items
        self.version = versions.pop()
        self.lists += 1

    def take_event(self, event):
        meta = event["object"]["metadata"] if event["type"] == "BOOKMARK" else event["object"].metadata
        if event["type"] == "BOOKMARK":
            self.version = meta["resourceVersion"]
            self.bookmarks += 1
            return
        with self.lock:
            known = self.items.get(meta.name)
            if event["type"] == "ADDED" and known:
                raise AssertionError(f"{meta.name}: ADDED, but it was there")
            if event["type"] in ("MODIFIED", "DELETED") and (not known or known[0] != meta.uid):
                raise AssertionError(f"{meta.name}: {event['type']} of uid {meta.uid}, but the cache has {known}")
            if event["type"] == "DELETED":
                del self.items[meta.name]
            else:
                self.items[meta.name] = identity(event["object"])
        self.version = meta.resource_version
        self.events += 1

    def run(self):
        try:
            self.take_list()
            while not self.is_stopping:
                try:
                    stream = watch.Watch().stream(
                        self.list_call,
                        NAMESPACE,
                        resource_version=self.version,
                        timeout_seconds=WATCH_SECONDS,
                        allow_watch_bookmarks=True,
                    )
                    for event in stream:
                        self.take_event(event)
                    self.resumes += 1
                except client.ApiException as e:
                    if e.status != 410:
                        raise
                    self.take_list()
        except Exception as e:  # told by the main thread, which alone decides the exit status
            self.failure = e


def identity(item):
    return (item.metadata.uid, item.metadata.resource_version)


class Writer(threading.Thread):
    """Owns every THREADS-th name of each kind, so that it knows what exists and no call can conflict."""

    def __init__(self, index, seed, end):
        super().__init__(daemon=True)
        self.api = client.CoreV1Api()
        self.random = random.Random(f"{seed}-{index}")
        self.names = [(kind, f"{kind}-{i}") for kind, n in OBJECTS.items() for i in range(n) if i % THREADS == index]
        self.exists = {}
        self.end = end
        self.calls = {"create": 0, "patch": 0, "delete": 0}
        self.failure = None

    def create(self, kind, name):
        meta = client.V1ObjectMeta(name=name, labels={"churn": "yes"})
        if kind == "configmap":
            made = self.api.create_namespaced_config_map(NAMESPACE, client.V1ConfigMap(metadata=meta, data={"n": "0"}))
        else:
            # No scheduler shall touch these: what writes here is only this program.
            spec = client.V1PodSpec(
                scheduler_name="nobody",
                termination_grace_period_seconds=0,
                containers=[client.V1Container(name="app", image="app")],
            )
            made = self.api.create_namespaced_pod(NAMESPACE, client.V1Pod(metadata=meta, spec=spec))
        self.exists[name] = identity(made)

    def patch(self, kind, name):
        body = {"metadata": {"annotations": {"churn": str(self.random.random())}}}
        call = {"configmap": self.api.patch_namespaced_config_map, "pod": self.api.patch_namespaced_pod}[kind]
        self.exists[name] = identity(call(name, NAMESPACE, body))

    def delete(self, kind, name):
        call = {"configmap": self.api.delete_namespaced_config_map, "pod": self.api.delete_namespaced_pod}[kind]
        call(name, NAMESPACE)
        del self.exists[name]

    def step(self, kind, name):
        verb = "create"
        if name in self.exists:
            verb = "delete" if self.random.random() < 0.3 else "patch"
        getattr(self, verb)(kind, name)
        self.calls[verb] += 1

    def run(self):
        try:
            for kind, name in self.names:
                self.step(kind, name)
            while time.monotonic() < self.end:
                self.step(*self.random.choice(self.names))
        except Exception as e:
            self.failure = e


def settle(cache):
    """What is missing or different in the cache when the list and the cache have had time to become equal."""
    end = time.monotonic() + SETTLE_SECONDS
    while True:
        server = {item.metadata.name: identity(item) for item in cache.list_call(NAMESPACE).items}
        with cache.lock:
            items = dict(cache.items)
        differing = [name for name in server.keys() | items.keys() if server.get(name) != items.get(name)]
        if not differing or cache.failure or time.monotonic() > end:
            return server, differing
        time.sleep(0.2)


def main():
    seconds = float(sys.argv[1])
    seed = sys.argv[2] if len(sys.argv) > 2 else "1"
    config.load_kube_config()
    client.CoreV1Api().create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=NAMESPACE)))
    caches = [Cache(kind) for kind in OBJECTS]
    writers = [Writer(i, seed, time.monotonic() + seconds) for i in range(THREADS)]
    for thread in caches + writers:
        thread.start()
    for writer in writers:
        writer.join()
    failures = [f"a writer: {w.failure!r}" for w in writers if w.failure]
    known = {name: value for w in writers for name, value in w.exists.items()}
    for cache in caches:
        server, differing = settle(cache)
        expected = {name: value for name, value in known.items() if name.startswith(cache.kind + "-")}
        print(
            f"   {cache.kind}: {len(server)} at the end, {cache.events} events, {cache.lists} lists, "
            f"{cache.resumes} resumes, {cache.bookmarks} bookmarks"
        )
        if cache.failure:
            failures.append(f"{cache.kind}: {cache.failure!r}")
        if differing:
            failures.append(f"{cache.kind}: {len(differing)} differ, for example {sorted(differing)[:3]}")
        wrong = [name for name in server.keys() | expected.keys() if server.get(name) != expected.get(name)]
        # A controller may have written too (the namespace's own ConfigMap), but never to what a writer owns.
        wrong = [name for name in wrong if name.startswith(cache.kind + "-")]
        if wrong:
            failures.append(f"{cache.kind}: {len(wrong)} are not what was acknowledged, for example {sorted(wrong)[:3]}")
    totals = {verb: sum(w.calls[verb] for w in writers) for verb in ("create", "patch", "delete")}
    print(f"   seed {seed}, {seconds:g} s: " + ", ".join(f"{n} {verb}s" for verb, n in totals.items()))
    client.CoreV1Api().delete_namespace(NAMESPACE)
    for failure in failures:
        print(f"   {failure}")
    print("FAIL churn" if failures else "ok churn")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
