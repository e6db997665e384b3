#!/usr/bin/env python3
"""The chart on a real API server, by helm: installed, upgraded with other values, rolled back and uninstalled; and the kustomize base by kubectl. What
is there after each step is what `helm template` renders; definitions, and with them every VPA, outlive the release, and another install takes them up again."""

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile

from bed import TOP, eventually, main, steady, story

CHART = "deploy/chart/tandem"
# The lines of docs/cluster.md.
LINE = "tandem deploy/chart/tandem --namespace tandem-system --set image.repository=registry.example/tandem".split()
FOLDER = tempfile.mkdtemp(prefix="tandem-chart-")
SYSTEM = "tandem-system"
CRDS = ("verticalpodautoscalers.autoscaling.k8s.io", "verticalpodautoscalercheckpoints.autoscaling.k8s.io",
        "horizontalpodautoscalers.autoscaling.tandem.dev", "hvpas.autoscaling.k8s.io")


def helm(bed, *args, check=True):
    env = {**bed.env, **{f"HELM_{name}_HOME": FOLDER for name in ("CACHE", "CONFIG", "DATA")}}
    done = subprocess.run([HELM, *args], env=env, cwd=TOP, capture_output=True, text=True, timeout=300)
    assert not check or done.returncode == 0, f"helm {' '.join(args)}: {done.stderr}"
    return done.stdout if check else (done.returncode, done.stderr)


def objects(text):
    """(kind, namespace, name) of each document."""
    found = set()
    for document in re.split(r"^---$", text, flags=re.M):
        kind = re.search(r"^kind: (\S+)$", document, re.M)
        metadata = re.search(r"^metadata:\n((?:  .*\n)+)", document, re.M)
        if kind and metadata:
            name = re.search(r"^  name: (\S+)$", metadata[1], re.M)[1]
            namespace = re.search(r"^  namespace: (\S+)$", metadata[1], re.M)
            found.add((kind[1], namespace[1] if namespace else "", name.strip('"')))
    return found


def there(bed, key):
    kind, namespace, name = key
    status, _ = bed.kubectl(*(["-n", namespace] if namespace else []), "get", kind, name, check=False)
    return status == 0


def deployment(bed):
    return bed.get("Deployment", "tandem", namespace=SYSTEM)["spec"]


def install(bed, verb, *args):
    return helm(bed, verb, *LINE, *args)


def parsed(bed, text):
    """(kind, namespace, name) -> object, as kubectl reads them."""
    text, found = bed.kubectl("create", "--dry-run=client", "-o", "json", "-f", "-", text=text), {}
    while text.strip():
        item, end = json.JSONDecoder().raw_decode(text.strip())
        found[item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"]] = item
        text = text.strip()[end:]
    return found


@story("the kustomize base behind an overlay that names the image: what `tandem manifests` prints, applied and removed")
def kustomize(bed):
    overlay, image = os.path.join(FOLDER, "overlay"), "registry.example/tandem@sha256:" + "0123456789abcdef" * 4
    os.makedirs(overlay)
    with open(os.path.join(overlay, "kustomization.yaml"), "w") as file:
        json.dump({"resources": [os.path.relpath(os.path.join(TOP, "deploy", "kustomize"), overlay)],
                   "images": [{"name": "tandem", "newName": "registry.example/tandem", "digest": image.split("@")[1]}]}, file)
    got, wanted = parsed(bed, bed.kubectl("kustomize", overlay)), parsed(bed, bed.tandem("manifests", "--image", image))
    assert got.keys() == wanted.keys() and len(got) > 25, got.keys() ^ wanted.keys()
    different = [key for key in got if got[key] != wanted[key]]
    assert not different, [(key, got[key], wanted[key]) for key in different][:1]
    bed.kubectl("apply", "--server-side", "-k", overlay)
    assert not [key for key in got if not there(bed, key)]
    bed.kubectl("delete", "--ignore-not-found", "-f", "-", text=bed.tandem("manifests", "--uninstall"))
    left = eventually(60, lambda: (left := {key[0] for key in got if there(bed, key)}) == {"CustomResourceDefinition"} and left, "only definitions are left")
    assert left


@story("installed: every object of the chart is there, and the server keeps what was meant", quick=True)
def installed(bed):
    for name in CRDS:  # the bed brought them
        bed.kubectl("delete", "crd", name)
    rendered = objects(helm(bed, "template", "tandem", CHART, "--kube-version", "1.36.3", "--namespace", SYSTEM, "--set", "image.repository=registry.example/tandem"))
    said = install(bed, "install", "--create-namespace")
    assert f"tandem preflight --namespace {SYSTEM} " in said and "WARNING" not in said and "helm uninstall leaves the CRDs" in said, said
    missing = [key for key in rendered if not there(bed, key)]
    assert len(rendered) > 25 and not missing, missing
    spec = deployment(bed)
    assert spec["replicas"] == 2 and spec["template"]["spec"]["containers"][0]["image"] == "registry.example/tandem:0.1.0", spec
    eventually(60, lambda: len([p for p in bed.pods(namespace=SYSTEM) if p.get("status", {}).get("phase") == "Running"]) == 2, "two pods run")
    look = lambda: bed.tandem("preflight", check=False)[1]
    with contextlib.suppress(AssertionError):
        eventually(30, lambda: "nothing to mend" in look(), "the cluster is fit")
    out = look()
    assert "nothing to mend" in out, out
    assert "ok    rights      service account tandem-system/tandem has all" in out, out
    status, error = helm(bed, "install", "second", CHART, "--namespace", "elsewhere", "--create-namespace", check=False)
    assert status != 0 and "tandem" in error, "a second release would have the same objects"


@story("upgraded with other values, and rolled back")
def upgraded(bed):
    bed.create("Namespace", {"metadata": {"name": "kept"}})
    bed.apply("""
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: web, namespace: kept}
spec: {targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
""", namespace=None)
    before = deployment(bed)
    said = install(bed, "upgrade", "--dry-run", "--set", "webhook.failurePolicy=Fail,replaceUpstream=true,horizontal=builtin,shards=4")
    assert "WARNING: webhook.failurePolicy is Fail" in said, said
    assert f"  tandem preflight --namespace {SYSTEM} --replace-upstream --horizontal=builtin --shards=4 " in said, said
    assert deployment(bed) == before
    install(bed, "upgrade", "--set", "replicas=3")
    assert deployment(bed)["replicas"] == 3
    install(bed, "upgrade", "--set", "replicas=3,webhook.timeoutSeconds=7,horizontal=builtin,podDisruptionBudget.create=false",
            "--set", "extraArgs={--v=5}", "--set", "nodeSelector.disk=ssd", "--set", "webhook.exemptNamespaces={kept}")
    spec = deployment(bed)
    args = spec["template"]["spec"]["containers"][0]["args"]
    assert spec["replicas"] == 3 and spec["template"]["spec"]["nodeSelector"] == {"disk": "ssd"}, spec
    assert {"--horizontal=builtin", "--webhook-timeout-seconds=7", "--webhook-exempt-namespaces=kept", "--v=5"} <= set(args), args
    hooks = bed.get("MutatingWebhookConfiguration", "tandem-webhook-config")["webhooks"]
    assert all(hook["timeoutSeconds"] == 7 for hook in hooks), hooks
    assert not there(bed, ("poddisruptionbudget", SYSTEM, "tandem"))
    status, error = helm(bed, "upgrade", "tandem", CHART, "--namespace", SYSTEM, "--set", "replica=3", check=False)
    assert status != 0 and "replica" in error, error
    install(bed, "upgrade", "--set", "controllers={recommender}")
    assert not there(bed, ("service", SYSTEM, "tandem-webhook")) and not there(bed, ("clusterrole", "", "tandem-updater"))
    assert all(there(bed, ("crd", "", name)) for name in CRDS), "a definition went with its controller"
    helm(bed, "rollback", "tandem", "1", "--namespace", SYSTEM)
    spec = deployment(bed)
    assert spec["replicas"] == before["replicas"] and spec["template"]["spec"] == before["template"]["spec"], spec
    assert there(bed, ("service", SYSTEM, "tandem-webhook")) and there(bed, ("poddisruptionbudget", SYSTEM, "tandem"))
    assert there(bed, ("verticalpodautoscaler", "kept", "web"))


@story("the shadow, and back to acting: rights are exchanged with it")
def shadow(bed):
    said = install(bed, "upgrade", "--set", "shadow=true")
    assert f"  tandem preflight --namespace {SYSTEM} --shadow " in said, said
    assert "--shadow" in deployment(bed)["template"]["spec"]["containers"][0]["args"]
    assert there(bed, ("clusterrole", "", "tandem-shadow")) and not there(bed, ("clusterrole", "", "tandem-updater"))
    account = f"--as=system:serviceaccount:{SYSTEM}:tandem"
    may = lambda verb, what, sub="": bed.kubectl("auth", "can-i", verb, what, f"--subresource={sub}", "-A", account, check=False)[0] == 0
    eventually(20, lambda: may("patch", "verticalpodautoscalershadows.autoscaling.tandem.dev") and may("list", "pods"), "it may do its own")
    assert not may("patch", "verticalpodautoscalers.autoscaling.k8s.io", "status") and not may("create", "pods", "eviction") and not may("patch", "pods", "resize")
    install(bed, "upgrade")
    assert there(bed, ("clusterrole", "", "tandem-updater")) and not there(bed, ("clusterrole", "", "tandem-shadow"))
    eventually(20, lambda: may("create", "pods", "eviction"), "it may act again")


@story("uninstalled: nothing is left but the definitions and their objects, and the next install takes them up")
def uninstalled(bed):
    rendered = objects(helm(bed, "get", "manifest", "tandem", "--namespace", SYSTEM))
    helm(bed, "uninstall", "tandem", "--namespace", SYSTEM)
    left = eventually(60, lambda: (left := {key for key in rendered if there(bed, key)}) and
                      {key[0] for key in left} == {"CustomResourceDefinition"} and left, "only definitions are left")
    assert {key[2] for key in left} >= set(CRDS), left
    assert there(bed, ("verticalpodautoscaler", "kept", "web"))
    install(bed, "install")
    steady(2, lambda: there(bed, ("verticalpodautoscaler", "kept", "web")), "the VPA is still there")
    helm(bed, "uninstall", "tandem", "--namespace", SYSTEM)


@story("where upstream's chart has the definitions: they are left as they are")
def of_others(bed):
    for name in CRDS[:2]:
        bed.kubectl("annotate", "--overwrite", "crd", name, "meta.helm.sh/release-name=vpa", "meta.helm.sh/release-namespace=kube-system")
    version = lambda: [json.loads(bed.kubectl("get", "crd", name, "-o", "json"))["metadata"]["resourceVersion"] for name in CRDS[:2]]
    before = version()
    install(bed, "install")
    assert version() == before
    helm(bed, "uninstall", "tandem", "--namespace", SYSTEM)
    assert version() == before and all(there(bed, ("crd", "", name)) for name in CRDS)


found = subprocess.run([os.path.join(TOP, "scripts", "helm")], capture_output=True, text=True, check=False)
if found.returncode:
    print(f"FAIL {found.stderr.strip()}\n0 passed, 1 failed")
    sys.exit(1)
HELM = found.stdout.strip()
main(setup=lambda bed: None)
