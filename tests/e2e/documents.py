#!/usr/bin/env python3
"""The OpenAPI documents of the local server beside those of a real one.

    documents.py KUBECONFIG BUILD       of the real server; kubectl is on the path

Every kind that the local server publishes is walked from its type in both servers' /openapi/v2 and /openapi/v3: names of types, fields,
their types and references, required fields, defaults, allowed values, how lists and maps merge. Descriptions are ours, so only that there is
one is asked. Then `kubectl explain --recursive` of each kind must print the same tree from both servers. Prints each difference with its path;
ends with the plain line "N passed, N failed". DIFFERENCES says what may differ, and why.
"""

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time

# What is looked at in a schema; anything else that a server publishes is a difference.
KEYS = {"type", "format", "$ref", "enum", "default", "required", "properties", "items", "additionalProperties", "oneOf",
        "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type", "x-kubernetes-patch-strategy",
        "x-kubernetes-patch-merge-key", "x-kubernetes-group-version-kind"}

# Where, what, and why it may differ.
DIFFERENCES = [
    (r"", r"x-kubernetes-unions", "no client reads it: it repeats in another form what the discriminator's allowed values say"),
    (r"", r"x-kubernetes-list-type: ours 'atomic', the server's None", "a list without a type is atomic; ours says so"),
    (r"PersistentVolumeClaimStatus\.allocatedResourceStatuses$", r"x-kubernetes-map-type: ours None, the server's 'granular'",
     "a map without a type is granular; the server says so of this one"),
    (r"v2\.HorizontalPodAutoscalerSpec\.[sS]electionStrategy$", r"^the server has no such field$",
     "a proposal's field, which the local server serves behind the gate HPASelectionStrategy"),
    (r"^v3 apis/metrics\.k8s\.io/.*(/items|/additionalProperties)$", r"default: ours .*, the server's None",
     "metrics-server, of an older Kubernetes, publishes no defaults of items"),
]

# Kinds of ours that a server of Kubernetes does not have: definitions that a user installs, and other servers' metrics.
OTHERS = {"autoscaling.k8s.io", "autoscaling.tandem.dev", "custom.metrics.k8s.io", "external.metrics.k8s.io"}


class Server:
    def __init__(self, config):
        self.config = config
        self.v2 = json.loads(self.kubectl("get", "--raw", "/openapi/v2"))["definitions"]
        self.paths = json.loads(self.kubectl("get", "--raw", "/openapi/v3"))["paths"]
        self.v3 = {}

    def kubectl(self, *words):
        done = subprocess.run(["kubectl", "--kubeconfig", self.config, *words], capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            raise RuntimeError(f"kubectl {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def document(self, path):
        if path not in self.v3:
            self.v3[path] = json.loads(self.kubectl("get", "--raw", "/openapi/v3/" + path))["components"]["schemas"]
        return self.v3[path]


@contextlib.contextmanager
def cluster(build):
    """A local cluster; its kubeconfig."""
    with tempfile.TemporaryDirectory() as folder:
        config = os.path.join(folder, "kubeconfig")
        up = subprocess.Popen([os.path.join(build, "tandem"), "up", "-q", "--listen", "127.0.0.1:0", "--kubeconfig", config,
                               "--controllers", "none"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        try:
            for _ in range(200):
                if os.path.exists(config) or up.poll() is not None:
                    break
                time.sleep(0.1)
            yield config
        finally:
            up.terminate()
            up.wait()


def with_metrics(config):
    """The real server, once it publishes what metrics-server does, which it asks for in the background."""
    for _ in range(90):
        server = Server(config)
        if "apis/metrics.k8s.io/v1beta1" in server.paths and any(".metrics.v1beta1." in name for name in server.v2):
            break
        time.sleep(1)
    return server


class Walk:
    """One kind in one pair of documents."""

    def __init__(self, document, ours, theirs):
        self.document, self.ours, self.theirs = document, ours, theirs
        self.seen = set()
        self.found = []
        self.excused = set()

    def differ(self, where, what):
        for place, text, why in DIFFERENCES:
            if re.search(place, f"{self.document} {where}") and re.search(text, what):
                self.excused.add(why)
                return
        self.found.append(f"{where}: {what}")

    @staticmethod
    def plain(schema):
        """A reference that is wrapped so that it may have neighbours, unwrapped."""
        schema = dict(schema)
        for part in schema.pop("allOf", []):
            schema.update(part)
        if "required" in schema:
            schema["required"] = sorted(schema["required"])
        return schema

    def value(self, where, key, ours, theirs):
        if key == "x-kubernetes-group-version-kind":
            missing = [one for one in ours or [] if one not in (theirs or [])]
            if missing or bool(ours) != bool(theirs):
                self.differ(where, f"{key}: the server's has not {missing}, ours {'has some' if ours else 'has none'}")
        elif ours != theirs:
            self.differ(where, f"{key}: ours {ours!r}, the server's {theirs!r}")

    def schema(self, where, ours, theirs, described=True):
        ours, theirs = self.plain(ours), self.plain(theirs)
        if described and not ours.get("description"):
            self.differ(where, "has no description")
        for key in sorted((set(ours) | set(theirs)) - {"description"}):
            if key == "properties":
                self.properties(where, ours.get(key, {}), theirs.get(key, {}))
            elif key in ("items", "additionalProperties") and key in ours and key in theirs:
                self.schema(f"{where}/{key}", ours[key], theirs[key], described=False)
            elif key in KEYS:
                self.value(where, key, ours.get(key), theirs.get(key))
            else:
                self.differ(where, f"{key}: ours {ours.get(key)!r}, the server's {theirs.get(key)!r}")
        for reference in {ours.get("$ref")} - {None}:
            self.name(reference.rsplit("/", 1)[1])

    def properties(self, where, ours, theirs):
        for name in sorted(set(ours) | set(theirs)):
            place = f"{where}.{name}"
            if name not in theirs:
                self.differ(place, "the server has no such field")
            elif name not in ours:
                self.differ(place, "ours has no such field")
            else:
                self.schema(place, ours[name], theirs[name])

    def name(self, name):
        if name in self.seen:
            return
        self.seen.add(name)
        if name not in self.ours or name not in self.theirs:
            self.differ(name, f"is published by {'the server' if name in self.theirs else 'us'} only")
        else:
            self.schema(name, self.ours[name], self.theirs[name])


class Totals:
    def __init__(self):
        self.passed = self.failed = 0
        self.excused = set()

    def verdict(self, what, differences):
        print(f"{'FAIL' if differences else 'ok  '} {what}")
        for line in differences[:40]:
            print(f"    {line}")
        if differences:
            self.failed += 1
        else:
            self.passed += 1


def kinds(schemas, group, version):
    """The kinds of a document that belong to its group and version, with the names of their types."""
    found = {}
    for name, schema in schemas.items():
        for gvk in schema.get("x-kubernetes-group-version-kind", []):
            if gvk["group"] == group and gvk["version"] == version:
                found[gvk["kind"]] = name
    return found


def compare(totals, document, kind, name, ours, theirs):
    walk = Walk(document, ours, theirs)
    walk.name(name)
    totals.excused |= walk.excused
    totals.verdict(f"{document} {kind}", walk.found)
    return len(walk.seen)


def tree(server, plural, api_version):
    """The fields that `kubectl explain --recursive` prints, without sentences: from the line FIELDS on."""
    text = server.kubectl("explain", plural, "--api-version", api_version, "--recursive")
    return text[text.index("FIELDS:"):].rstrip().split("\n")


def explain(totals, real, local):
    """kubectl explain of every kind that the local server lists."""
    for line in local.kubectl("api-resources", "--no-headers", "--sort-by=name").splitlines():
        words = line.split()
        plural, api_version, kind = words[0], words[-3], words[-1]
        if api_version.rpartition("/")[0] in OTHERS:
            continue
        try:
            ours, theirs = tree(local, plural, api_version), tree(real, plural, api_version)
            if (plural, api_version) == ("horizontalpodautoscalers", "autoscaling/v2"):
                proposed = [line for line in ours if re.fullmatch(r" *[sS]electionStrategy\t<string>", line)]
                assert len(proposed) == 2, ours
                ours = [line for line in ours if line not in proposed]
            found = [f"ours {a.strip()!r}, the server's {b.strip()!r}" for a, b in zip(ours, theirs) if a != b]
            if len(ours) != len(theirs):
                found.append(f"{len(ours)} lines, the server's has {len(theirs)}")
        except (RuntimeError, ValueError) as problem:
            found = [str(problem)]
        totals.verdict(f"kubectl explain --recursive {plural} of {api_version} ({kind})", found)


def documents(totals, real, local):
    """Every kind of every document that the local server has; how many types they lead to."""
    types = 0
    for path in sorted(local.paths):
        group, _, version = path.partition("/")[2].rpartition("/")
        if group in OTHERS:
            continue
        ours = local.document(path)
        if path not in real.paths:
            totals.verdict(path, ["the server has no such group and version"])
            continue
        for kind, name in sorted(kinds(ours, group, version).items()):
            types += compare(totals, f"v3 {path}", kind, name, ours, real.document(path))
            compare(totals, f"v2 {path}", kind, name, local.v2, real.v2)
    return types


def main():
    totals = Totals()
    with cluster(sys.argv[2]) as config:
        real, local = with_metrics(sys.argv[1]), Server(config)
        types = documents(totals, real, local)
        explain(totals, real, local)
    print(f"{types} types compared; differences that are meant:")
    for why in sorted(totals.excused):
        print(f"    {why}")
    print(f"{totals.passed} passed, {totals.failed} failed")
    return 0 if totals.failed == 0 and totals.passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
