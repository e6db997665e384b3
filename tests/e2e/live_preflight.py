#!/usr/bin/env python3
"""`tandem preflight` on the real control plane: a cluster is broken in one way after another, each is named in one line with its remedy, and
where the remedy is a command of ours it mends it. The definitions are those that Helm has installed, `kubectl apply`, or neither."""

import base64
import json
import os
import re

import bed as kit
from bed import PLANE, TOP, eventually, main, story

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
VPA = CRDS + "verticalpodautoscalers.autoscaling.k8s.io"
SYSTEM = "tandem-system"


def preflight(bed, *flags):
    """(exit status, lines)."""
    status, out, errors = bed.tandem("preflight", *flags, check=False)
    assert not errors, errors
    return status, out.splitlines()


def mends(bed, *flags):
    status, lines = preflight(bed, *flags)
    found = [line for line in lines if line.startswith("mend ")]
    assert status == (1 if found else 0) and lines[-1] == (f"{len(found)} to mend" if found else "nothing to mend"), lines
    return found


def expect(bed, begin, *words, flags=(), seconds=20):
    """One line to mend, and no other."""
    def look():
        found = mends(bed, *flags)
        return len(found) == 1 and found[0].startswith(begin) and all(word in found[0] for word in words) or (_ for _ in ()).throw(AssertionError(found))
    eventually(seconds, look, f"one line: {begin}")


def well(bed, *flags, seconds=30):
    eventually(seconds, lambda: not mends(bed, *flags) or (_ for _ in ()).throw(AssertionError(mends(bed, *flags))), "nothing to mend")


# Rows of the table in docs/preflight.md, and how their notes begin.
LACKS = {"`pods/resize`": "no in-place resize", "pod-level resources": "no pod-level resources",
         "in-place resize of pod-level resources": "no node declares InPlacePodLevelResourcesVerticalScaling",
         "sharded lists and watches": "no sharded lists and watches", "`minReplicas: 0` of HPAs": "no scale to zero",
         "`tolerance` in the behavior of HPAs": "no tolerance in the behavior of an HPA"}


def documented(version):
    """What the table says that a server of this version lacks, as the beginnings of notes; None: the version is not in the table."""
    with open(os.path.join(TOP, "docs", "preflight.md")) as file:
        rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in file.read().split("## Server versions")[1].splitlines()
                if line.startswith("|")]
    assert set(LACKS) <= {row[0] for row in rows}, rows
    if version not in rows[0]:
        return None
    column = rows[0].index(version)
    return {LACKS[row[0]] for row in rows if row[0] in LACKS and row[column] != "yes"}


@story("a sound cluster before the installation, and what this server lacks, as the documentation has it", quick=True)
def sound(bed):
    status, lines = preflight(bed)
    assert status == 0 and lines[-1] == "nothing to mend", lines
    assert lines[0].startswith("ok    server      Kubernetes v1."), lines[0]
    assert any(line.startswith("ok    pods        the program's pod is let into namespace default") for line in lines), lines
    version = re.search(r"Kubernetes v(\S+)", lines[0])[1]
    lacks = {next(text for text in LACKS.values() if line.startswith(f"note  server      {text}")) for line in lines[1:] if line.startswith("note  server ")}
    assert lacks == documented(version), (version, lacks, documented(version))
    report = json.loads(bed.tandem("preflight", "-o", "json"))
    assert report["mends"] == 0 and len(report["findings"]) == len(lines) - 1
    first = bed.list("Namespace")
    assert {ns["metadata"]["name"] for ns in first}.isdisjoint({SYSTEM, "tandem-preflight"}), "nothing was made"


@story("the metrics API: gone, without an answer, without metrics")
def metrics(bed):
    service = bed.call("GET", "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.metrics.k8s.io")
    bed.call("DELETE", "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.metrics.k8s.io")
    expect(bed, "mend  metrics     metrics.k8s.io is not served; install metrics-server")
    service["spec"]["service"]["name"] = "nobody"
    bed.call("POST", "/apis/apiregistration.k8s.io/v1/apiservices", {k: service[k] for k in ("apiVersion", "kind", "spec")} | {
        "metadata": {"name": "v1beta1.metrics.k8s.io"}})
    expect(bed, "mend  metrics     metrics.k8s.io does not answer (", "mend the Service of APIService v1beta1.metrics.k8s.io")
    bed.call("DELETE", "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.metrics.k8s.io")
    restore_metrics(bed)
    well(bed)
    bed.apply(kit_pod("counted"))
    bed.running("app=counted", 1)
    for namespace in bed.list("Namespace"):
        bed.hide(namespace["metadata"]["name"])
    expect(bed, "mend  metrics     metrics.k8s.io answers, but has metrics of no pod; ", seconds=240)  # a new pod may have none for a while
    for namespace in bed.list("Namespace"):
        bed.hide(namespace["metadata"]["name"], False)
    well(bed)


SERVICE = {}


def restore_metrics(bed):
    bed.call("POST", "/apis/apiregistration.k8s.io/v1/apiservices", {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", **SERVICE})


def kit_pod(name):
    return f"""
apiVersion: v1
kind: Pod
metadata: {{name: {name}, labels: {{app: {name}}}}}
spec: {{containers: [{{name: app, image: app}}]}}
"""


def forget(bed):
    """No definitions of VPA."""
    for name in ("verticalpodautoscalers", "verticalpodautoscalercheckpoints"):
        try:
            bed.call("DELETE", f"{CRDS}{name}.autoscaling.k8s.io")
        except kit.Refused:
            pass
    eventually(30, lambda: status_of(bed, VPA) == 404, "the definition is gone")


def definition(bed):
    """What is said of the definition of VPAs, once the server has taken it in."""
    look = lambda: next(line for line in preflight(bed)[1] if " crds        verticalpodautoscalers." in line)
    return eventually(30, lambda: " is not established " not in (line := look()) and line, "it is established")


def status_of(bed, path):
    try:
        bed.call("GET", path)
        return 200
    except kit.Refused as refused:
        return refused.status


def upstream_crds():
    with open(os.path.join(PLANE, "vpa-crd.yaml")) as file:
        return file.read()


def install_line(bed, *flags):
    """The line of docs/run.md: (status, what kubectl said)."""
    text = bed.tandem("manifests", "--image", "tandem:e2e", *flags)
    return bed.kubectl("apply", "--server-side", "-f", "-", text=text, check=False)


@story("definitions that are missing, or that kubectl apply or Helm has installed: the install line, and whose they are")
def definitions(bed):
    forget(bed)
    well(bed)
    status, said = install_line(bed)
    assert status == 0, said
    well(bed)
    assert any("ok    rights      service account tandem-system/tandem has all " in line for line in preflight(bed)[1])
    bed.kubectl("delete", "--ignore-not-found", "-f", "-", text=bed.tandem("manifests", "--uninstall"))
    eventually(60, lambda: status_of(bed, f"/api/v1/namespaces/{SYSTEM}") == 404, "the namespace is gone")
    # kubectl apply, as upstream's script does it: its manager holds the fields, so ours conflict with one line that names it.
    forget(bed)
    bed.kubectl("apply", "-f", "-", text=upstream_crds())
    line = definition(bed)
    assert line.startswith("note  crds        verticalpodautoscalers.autoscaling.k8s.io of manager 'kubectl-client-side-apply' does not keep ") and \
        ".spec.selector" in line and "--skip-vpa-crds" in line, line
    status, said = install_line(bed, "--skip-vpa-crds")
    assert status == 0, said
    well(bed)
    # Helm: the release is named; without --skip-vpa-crds kubectl says which fields conflict, forced they are ours.
    forget(bed)
    text = upstream_crds()
    for name in ("verticalpodautoscalers", "verticalpodautoscalercheckpoints"):
        text = text.replace(f"  name: {name}.autoscaling.k8s.io", f"  name: {name}.autoscaling.k8s.io", 1)
    bed.kubectl("create", "--field-manager=helm", "-f", "-", text=text)
    for name in ("verticalpodautoscalers", "verticalpodautoscalercheckpoints"):
        bed.kubectl("annotate", "--field-manager=helm", "crd", f"{name}.autoscaling.k8s.io", "meta.helm.sh/release-name=vpa",
                    "meta.helm.sh/release-namespace=kube-system")
    line = definition(bed)
    assert "of Helm release kube-system/vpa does not keep" in line and "takes .spec.versions from Helm release kube-system/vpa" in line, line
    status, said = install_line(bed)
    assert status != 0 and 'conflict with "helm"' in said and ".spec.versions" in said, said
    status, said = install_line(bed, "--skip-vpa-crds")
    assert status == 0, said
    bed.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", text=bed.tandem("manifests", "--only", "crds"))
    line = definition(bed)
    assert line.startswith("ok "), line
    # Old ones: another version, and a schema from before what has been there for years.
    forget(bed)
    old = json.loads(bed.kubectl("create", "--dry-run=client", "-o", "json", "-f", "-", text=bed.tandem("manifests", "--only", "crds")).split("\n}\n")[0] + "\n}")
    properties = old["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    del properties["recommenders"]
    bed.kubectl("create", "-f", "-", text=json.dumps(old))
    line = definition(bed)
    assert line.startswith("mend ") and " is too old: " in line and "tandem manifests --only crds" in line, line
    bed.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", text=bed.tandem("manifests", "--only", "crds"))
    well(bed)


@story("rights: a verb that the service account lost, and an account of a reader")
def rights(bed):
    well(bed)  # installed by the story before
    role = bed.call("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/tandem-updater")
    for rule in role["rules"]:
        if "pods/resize" in rule["resources"]:
            rule["verbs"] = ["get"]
    other = bed.call("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/tandem-hvpa")
    rules = [rule for rule in other["rules"] if "pods/resize" not in rule["resources"]]
    bed.call("PUT", "/apis/rbac.authorization.k8s.io/v1/clusterroles/tandem-updater", role)
    bed.call("PUT", "/apis/rbac.authorization.k8s.io/v1/clusterroles/tandem-hvpa", {**other, "rules": rules})
    expect(bed, 'mend  rights      service account tandem-system/tandem lacks apiGroups: [""], resources: ["pods/resize"], verbs: ["patch"] (ClusterRole); '
           "tandem manifests --only rbac | kubectl apply --server-side -f -")
    bed.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", text=bed.tandem("manifests", "--only", "rbac"))
    well(bed)
    # A reader of VPAs and nothing else: what it may not see is a note, what would be needed of it a line.
    bed.apply("""
apiVersion: v1
kind: ServiceAccount
metadata: {name: reader}
""")
    token = bed.kubectl("-n", bed.ns, "create", "token", "reader").strip()
    with open(os.path.join(bed.folder, "reader"), "w") as file:
        with open(os.path.join(bed.folder, "pki", "ca.crt"), "rb") as authority:
            bundle = base64.b64encode(authority.read()).decode()
        json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                   "clusters": [{"name": "c", "cluster": {"server": f"https://127.0.0.1:{bed.ports['api']}", "certificate-authority-data": bundle}}],
                   "users": [{"name": "u", "user": {"token": token}}]}, file)
    status, lines = preflight(bed, "--kubeconfig", os.path.join(bed.folder, "reader"))
    text = "\n".join(lines)
    assert status == 1 and "note  metrics     you may not list pods of metrics.k8s.io" in text and "note  crds " in text and "note  upstream " in text, text
    assert "mend  rights      you lack " in text and "mend  pods        the program's pod is refused in namespace default: " in text, text


@story("programs in the way: a second updater, one by its lease, another installation, gardener's")
def programs(bed):
    well(bed)
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "x", "image": "IMAGE"}]}}

    def deploy(namespace, name, image):
        body = json.loads(json.dumps(template).replace("IMAGE", image))
        bed.create("Deployment", {"metadata": {"name": name}, "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "x"}}, "template": body}},
                   namespace=namespace)
    deploy("kube-system", "vpa-updater", "registry.k8s.io/autoscaling/vpa-updater:1.8.1")
    expect(bed, "mend  upstream    vpa-updater acts: Deployment kube-system/vpa-updater, 1 replica; kubectl -n kube-system scale deployment vpa-updater "
           "--replicas=0; ")
    assert "; --replace-upstream stands by and takes over (docs/migrate.md)" in "\n".join(preflight(bed, "--replace-upstream")[1])
    assert all(" rights " in line and "manifests --replace-upstream --only rbac" in line for line in mends(bed, "--replace-upstream"))
    bed.kubectl("-n", "kube-system", "scale", "deployment", "vpa-updater", "--replicas=0")  # as it says
    well(bed)
    bed.delete("Deployment", "vpa-updater", namespace="kube-system")
    deploy(bed.ns, "tandem", "registry.example/tandem:0.1.0")
    expect(bed, f"mend  tandem      another installation: Deployment {bed.ns}/tandem; tandem manifests --uninstall --namespace {bed.ns} | ")
    bed.delete("Deployment", "tandem")
    deploy(bed.ns, "hvpa-controller", "europe-docker.pkg.dev/gardener-project/releases/gardener/hvpa-controller:v0.17.0")
    expect(bed, "mend  upstream    hvpa-controller acts: ", "ours would act beside it")
    bed.delete("Deployment", "hvpa-controller")
    bed.upstream("recommender", recommender="--leader-elect=true")
    expect(bed, "mend  upstream    '", "' holds lease kube-system/vpa-recommender-lease; stop it; ")
    bed.kit("vpa-upstream", "stop")
    well(bed, seconds=90)
    alone = bed.run("--controllers=recommender", name="alone")
    expect(bed, "mend  tandem      a 'tandem run' outside the cluster runs the recommender: ", "stop it")
    with open(alone.log) as log:
        assert "preflight: no in-place resize" not in log.read()
    alone.stop()
    well(bed)


POLICY = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: tags}
spec:
  failurePolicy: Fail
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validations: [{expression: "object.spec.containers.all(c, c.image.contains('@sha256:'))", message: "images by digest only"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: tags}
spec: {policyName: tags, validationActions: [Deny]}
"""


@story("admission that refuses the program's pod: a policy, a quota, a webhook that does not answer")
def admission(bed):
    well(bed)
    bed.apply(POLICY, namespace=None)
    expect(bed, f"mend  pods        the program's pod is refused in namespace {SYSTEM}: ", "images by digest only", f"exempt namespace {SYSTEM}", seconds=60)
    well(bed, "--image", "registry.example/tandem@sha256:" + "0" * 64)
    bed.delete("ValidatingAdmissionPolicyBinding", "tags")
    bed.delete("ValidatingAdmissionPolicy", "tags")
    well(bed, seconds=60)
    bed.create("ResourceQuota", {"metadata": {"name": "full"}, "spec": {"hard": {"pods": "0"}}}, namespace=SYSTEM)
    expect(bed, f"mend  pods        the program's pod is refused in namespace {SYSTEM}: ", "exceeded quota: full")
    bed.delete("ResourceQuota", "full", namespace=SYSTEM)
    bed.create("MutatingWebhookConfiguration", {"metadata": {"name": "gone"}, "webhooks": [{
        "name": "gone.example.com", "clientConfig": {"url": "https://127.0.0.1:1/"}, "failurePolicy": "Fail", "sideEffects": "None",
        "admissionReviewVersions": ["v1"], "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]}]})
    expect(bed, "mend  pods        the program's pod is refused in namespace ", 'failed calling webhook "gone.example.com"', seconds=60)
    bed.delete("MutatingWebhookConfiguration", "gone")
    well(bed)
    bed.patch("Namespace", SYSTEM, {"metadata": {"labels": {"pod-security.kubernetes.io/warn": "restricted", "pod-security.kubernetes.io/enforce": "restricted"}}})
    well(bed)  # the pod of the Deployment is fit for the strictest level


@story("the webhook's authority: wrong in its registration, and registered by upstream with no server behind it")
def authority(bed):
    pki = os.path.join(bed.folder, "pki")
    with open(os.path.join(pki, "ca.crt"), "rb") as file:
        known = file.read()
    with open(os.path.join(pki, "front-ca.crt"), "rb") as file:
        other = file.read()
    with open(os.path.join(pki, "server.crt"), "rb") as file:
        certificate = file.read()
    text = lambda pem: base64.b64encode(pem).decode()
    bed.create("Secret", {"metadata": {"name": "tandem-webhook-tls"}, "data": {"caCert.pem": text(known), "serverCert.pem": text(certificate)}}, namespace=SYSTEM)

    def bundle(pem):
        for hook in bed.get("MutatingWebhookConfiguration", "tandem-webhook-config")["webhooks"]:
            hooks.append({**hook, "clientConfig": {**hook["clientConfig"], "caBundle": text(pem)}})
        bed.patch("MutatingWebhookConfiguration", "tandem-webhook-config", {"webhooks": hooks})
        hooks.clear()
    hooks = []
    assert any("note  webhook     tandem-webhook-config has no caBundle yet" in line for line in preflight(bed)[1])
    bundle(other)
    expect(bed, f"mend  webhook     caBundle of tandem-webhook-config is not the authority in Secret {SYSTEM}/tandem-webhook-tls: no pod is changed; ")
    bundle(known)
    well(bed)
    assert any("ok    webhook     tandem-webhook-config is registered with its authority" in line for line in preflight(bed)[1])
    bed.upstream("admission")
    eventually(40, lambda: any("vpa-webhook-config both change pods" in line for line in mends(bed)), "two webhooks for pods")
    bed.kit("vpa-upstream", "stop")
    well(bed, seconds=90)


@story("who reconciles HPAs: kube-controller-manager without its HPA controller, by what became of an HPA")
def hpas(bed):
    bed.create("HorizontalPodAutoscaler", {"metadata": {"name": "old"}, "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "none"}, "maxReplicas": 2}})
    expect(bed, "mend  hpa         no controller reconciles HPAs of autoscaling/v2; --horizontal=builtin lets Tandem do it", seconds=150)
    expect(bed, "mend  rights      service account tandem-system/tandem lacks ", "horizontalpodautoscalers/status",
           "tandem manifests --horizontal=builtin --only rbac | kubectl apply --server-side -f -", flags=["--horizontal=builtin"])
    bed.kubectl("apply", "--server-side", "-f", "-", text=bed.tandem("manifests", "--horizontal=builtin", "--only", "rbac"))
    well(bed, "--horizontal=builtin")
    well(bed, "--controllers=recommender,updater,admission")
    bed.delete("HorizontalPodAutoscaler", "old")


def setup(bed):
    SERVICE.update({"spec": bed.call("GET", "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.metrics.k8s.io")["spec"],
                    "metadata": {"name": "v1beta1.metrics.k8s.io"}})


main(setup=setup)
