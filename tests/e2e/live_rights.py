#!/usr/bin/env python3
"""Least privilege on a real cluster: with the Roles of `tandem manifests` all controllers do their work without one refusal, no right is
granted that they do not use, each right that is taken away is missed by name; explain and recommend need a Role of one namespace."""

import atexit
import copy
import json
import os
import re
import shutil
import subprocess
import tempfile

from bed import eventually, free_port, main, quantity, requests, story
from servers import local, real
from vpa_bed import provided, workload

USER = "system:serviceaccount:kube-system:tandem"
KINDS = ("recommender", "updater", "admission", "horizontal", "hvpa")
ALONE = {kind: f"{USER}-{kind}" for kind in KINDS}
# What no flag of the program asks for: it is granted where Hvpas are to write templates.
TEMPLATES = ("deployments", "statefulsets", "daemonsets", "replicationcontrollers")
AUDIT = tempfile.mkdtemp(prefix="tandem-audit-")
atexit.register(shutil.rmtree, AUDIT, True)
# Every answer to our own requests, and to no others.
POLICY = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
          "rules": [{"level": "Metadata", "users": [USER, *ALONE.values()]}, {"level": "None"}]}
with open(os.path.join(AUDIT, "policy"), "w") as policy_file:
    json.dump(POLICY, policy_file)
ARGS = f"--audit-policy-file={AUDIT}/policy --audit-log-path={AUDIT}/log"

DEPLOYMENT = """
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME}
spec:
  replicas: 2
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec: {containers: [{name: app, image: app, resources: {requests: {cpu: 200m, memory: 100Mi}}}]}
"""
HPA = """
---
apiVersion: GROUP/v2
kind: HorizontalPodAutoscaler
metadata: {name: NAME}
spec:
  scaleTargetRef: {apiVersion: TARGET, name: NAME}
  maxReplicas: 5
  metrics:
  - {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 100}}}
  - {type: Pods, pods: {metric: {name: rps}, target: {type: AverageValue, averageValue: "10"}}}
  - type: Object
    object: {metric: {name: hits}, describedObject: {apiVersion: v1, kind: Service, name: front}, target: {type: Value, value: "1000"}}
  - {type: External, external: {metric: {name: queue}, target: {type: AverageValue, averageValue: "100"}}}
"""
HVPA = """
---
apiVersion: autoscaling.k8s.io/v1alpha1
kind: Hvpa
metadata: {name: NAME}
spec:
  MODE
  targetRef: {apiVersion: TARGET, name: NAME}
  hpaSpec:
    minReplicas: 1
    maxReplicas: 6
    metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 100}}}]
  vpaSpec: {resourcePolicy: {containerPolicies: [{containerName: app, minAllowed: {memory: 300Mi}}]}}
"""
GAMES = """
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: games.play.dev}
spec:
  group: play.dev
  scope: Namespaced
  names: {plural: games, singular: game, kind: Game, listKind: GameList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas, labelSelectorPath: .status.selector}
"""
# Not seen in the audit, and needed: owners and templates of kinds that the bed has no Hvpas on, owners that no cache has yet, what the
# server asks for when an applied object is new, and events that happen once more.
RARE = {
    ("", "replicationcontrollers", "get"), ("", "replicationcontrollers", "patch"), ("apps", "daemonsets", "get"),
    ("apps", "daemonsets", "patch"), ("apps", "deployments", "get"), ("apps", "replicasets", "get"), ("apps", "statefulsets", "get"),
    ("batch", "cronjobs", "get"), ("batch", "jobs", "get"), ("autoscaling", "horizontalpodautoscalers", "create"),
    ("autoscaling.k8s.io", "verticalpodautoscalers", "create"), ("", "events", "patch"),
}


def audit(user=USER):
    """(status, verb, group, resource with subresource, name, namespace) of every answer to that account."""
    rows = []
    with open(os.path.join(AUDIT, "log")) as file:
        for line in file:
            event = json.loads(line)
            if event["user"]["username"] != user:
                continue
            about = event.get("objectRef", {})
            resource = about.get("resource", "") + (f"/{about['subresource']}" if about.get("subresource") else "")
            rows.append((event.get("responseStatus", {}).get("code", 0), event["verb"], about.get("apiGroup", ""),
                         resource or event["requestURI"], about.get("name", ""), about.get("namespace", "")))
    return rows


def roles(bed):
    """Kind, object of each role of the manifests."""
    found = json.loads(bed.kubectl("-n", "kube-system", "get", "clusterroles,roles", "-l", "app.kubernetes.io/name=tandem", "-o", "json"))
    return [item for item in found["items"] if item["metadata"]["name"].startswith("tandem-")]


def rights(bed):
    """Every single right that is granted: kind of the role, group, resource, name, verb."""
    return sorted({(role["kind"], group, resource, name, verb) for role in roles(bed) for rule in role["rules"] for group in rule["apiGroups"]
                   for resource in rule["resources"] for name in rule.get("resourceNames", [""]) for verb in rule["verbs"]})


def grant(bed):
    """One account for all of it."""
    bed.apply(bed.tandem("manifests", "--only", "rbac", "--namespace", "kube-system", "--template-actuation", "--horizontal=builtin",
                         "--feature-gates=CPUStartupBoost=true"), namespace=None)


def setup(bed):
    grant(bed)
    bed.service = bed.account("kube-system", "tandem")


def fits(granted, used):
    """Does the right cover the request?"""
    _, group, resource, name, verb = granted
    return (verb == used[1] and group in ("*", used[2]) and name in ("", used[4]) and
            (resource in ("*", used[3]) or (resource == "*/scale" and used[3].endswith("/scale"))))


def put_back(bed, mutating, validating):
    """Both webhook configurations are mended when another client changes them."""
    for kind, name in (("MutatingWebhookConfiguration", mutating), ("ValidatingWebhookConfiguration", validating)):
        hooks = eventually(30, lambda kind=kind, name=name: bed.get(kind, name), f"{name} is registered")["webhooks"]
        hooks[0]["timeoutSeconds"] = 29
        bed.patch(kind, name, {"webhooks": hooks})
        eventually(30, lambda kind=kind, name=name: bed.get(kind, name)["webhooks"][0]["timeoutSeconds"] != 29, f"{name} is put back")


# Where a pod finds its account, in a view of the files of its own.
POD = """
run=$(readlink -f /var/run) && mount -t tmpfs tmpfs "$run" && account=/var/run/secrets/kubernetes.io/serviceaccount && mkdir -p "$account" &&
printf %s "$TOKEN" >"$account/token" && cp "$CA" "$account/ca.crt" && printf kube-system >"$account/namespace" && unset TOKEN CA KUBECONFIG && exec "$@"
"""


def in_cluster(bed):
    """The webhook's registration as a pod makes it: by its service account, under the names of an installation in the cluster."""
    log = os.path.join(bed.folder, "in-cluster.log")
    token = bed.kubectl("-n", "kube-system", "create", "token", "tandem", "--duration=1h").strip()
    env = {**os.environ, "TOKEN": token, "CA": os.path.join(bed.folder, "pki", "ca.crt"), "HOME": "/nonexistent",
           "KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(bed.ports["api"])}
    command = ["unshare", "--mount", "sh", "-c", POD, "sh", os.path.join(bed.build, "tandem"), "run", "--controllers=admission", "--status-lease-name=tandem-admission", "--leader-elect",
               f"--address=127.0.0.1:{free_port()}", f"--port={free_port()}"]
    with open(log, "wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, env=env)
    try:
        eventually(60, lambda: "runs" in open(log).read() or process.poll() is not None, "it runs in the cluster")
        assert process.poll() is None, open(log).read()
        put_back(bed, "tandem-webhook-config", "tandem-webhook-config")
    finally:
        process.terminate()
        process.wait(30)
    said = open(log).read()
    assert "missing permission" not in said, re.findall(".*missing permission.*", said)


@story("with the Roles of the manifests every controller works without a refusal, and uses them all", quick=True)
def enough(bed):
    program = bed.run("--kubeconfig", bed.service, "--leader-elect", "--feature-gates=CPUStartupBoost=true,InPlace=true",
                      "--checkpoints-gc-interval=5s", "--hpa-selection-strategy=OwnerReference")
    for name in ("one", "two", "inner", "outer", "chess"):
        bed.usage(f"{name}-*", "app", "400m", "90Mi")
    for name in ("evicted", "resized"):
        bed.usage(f"{name}-*", "app", "300m", "300Mi")
    bed.value("pods", "*", "rps", "10")
    bed.value("services", "front", "hits", "100")
    bed.external("queue", {"q": "a"}, "30")
    bed.kubectl("-n", bed.ns, "create", "service", "clusterip", "front", "--tcp=80")
    bed.apply(GAMES, namespace=None)
    texts = [workload("evicted", "Recreate"), "---", workload("resized", "InPlaceOrRecreate")]
    texts += [DEPLOYMENT.replace("NAME", name) for name in ("one", "two", "inner", "outer")]
    texts += [DEPLOYMENT.replace("NAME", "set").replace("kind: Deployment", "kind: StatefulSet").replace("replicas", "serviceName: set\n  replicas")]
    texts += [HPA.replace("NAME", name).replace("GROUP", group).replace("TARGET", "apps/v1, kind: Deployment")
              for name, group in (("one", "autoscaling"), ("two", "autoscaling.tandem.dev"))]
    texts += [HVPA.replace("NAME", name).replace("MODE", mode).replace("TARGET", f"apps/v1, kind: {kind}") for name, kind, mode in (
        ("inner", "Deployment", "mode: VPABiased"), ("outer", "Deployment", "mode: VPABiased\n  sources: Objects\n  vertical: {actuation: Template}"),
        ("set", "StatefulSet", "mode: VPABiased\n  vertical: {actuation: Template}"))]
    bed.apply("\n".join(texts))
    eventually(20, lambda: bed.kubectl("get", "games.play.dev", "-A") is not None, "games are served")
    bed.apply("{apiVersion: play.dev/v1, kind: Game, metadata: {name: chess}, spec: {replicas: 2}}")
    bed.call("PATCH", f"/apis/play.dev/v1/namespaces/{bed.ns}/games/chess/status", {"status": {"replicas": 2, "selector": "app=inner"}},
             "application/merge-patch+json")
    bed.apply("{apiVersion: autoscaling.k8s.io/v1, kind: VerticalPodAutoscaler, metadata: {name: chess}, spec: {targetRef: {apiVersion: "
              "play.dev/v1, kind: Game, name: chess}, updatePolicy: {updateMode: 'Off'}}}")
    provided(bed, "evicted")
    eventually(90, lambda: bed.events("EvictedByVPA"), "a pod is evicted")
    eventually(60, lambda: bed.events("InPlaceResizedByVPA"), "a pod is resized")
    for name in ("one", "two"):
        eventually(60, lambda name=name: bed.get("Deployment", name)["spec"]["replicas"] > 2, f"{name} grows")
    eventually(90, lambda: bed.list("HorizontalPodAutoscaler") and any(o["kind"] == "Hvpa" for v in bed.list("VerticalPodAutoscaler")
                                                                        for o in v["metadata"].get("ownerReferences", [])), "an Hvpa has children")
    for kind, name in (("Deployment", "outer"), ("StatefulSet", "set")):
        eventually(120, lambda kind=kind, name=name: quantity(requests({"spec": bed.get(kind, name)["spec"]["template"]["spec"]})["memory"])
                   >= 300 * 2**20, f"the template of {name} is written")
    eventually(60, lambda: bed.list("VerticalPodAutoscalerCheckpoint"), "checkpoints are written")
    bed.delete("VerticalPodAutoscaler", "evicted")
    eventually(60, lambda: "evicted-app" not in [c["metadata"]["name"] for c in bed.list("VerticalPodAutoscalerCheckpoint")],
               "a checkpoint goes with its VPA")
    put_back(bed, "tandem-outside-webhook-config", "tandem-outside-webhook-config")
    bed.patch("Secret", "tandem-webhook-tls", {"data": {"serverCert.pem": "bm9uc2Vuc2U="}}, namespace="kube-system")
    eventually(30, lambda: bed.get("Secret", "tandem-webhook-tls", namespace="kube-system")["data"]["serverCert.pem"] != "bm9uc2Vuc2U=",
               "the certificate is made again")
    bed.patch("Hvpa", "outer", {"spec": {"sources": "Internal"}})
    eventually(60, lambda: not any(o["kind"] == "Hvpa" for h in bed.list("HorizontalPodAutoscaler")
                                   for o in h["metadata"].get("ownerReferences", [])), "the children go")
    program.stop()
    said = open(program.log).read()
    assert "missing permission" not in said, re.findall(".*missing permission.*", said)
    in_cluster(bed)
    rows = audit()
    refused = sorted({row[1:] for row in rows if row[0] == 403})
    assert not refused, f"refused: {refused}"
    assert len(rows) > 200 and any(row[3] == "pods/eviction" for row in rows), "the audit saw us"
    granted = rights(bed)
    unused = {(group, resource, verb) for kind, group, resource, name, verb in granted
              if not any(fits((kind, group, resource, name, verb), row) for row in rows)
              and not (verb == "list" and (kind, group, resource, name, "watch") in granted)}  # of servers that cannot stream a list
    assert unused <= RARE, f"granted and not used: {sorted(unused - RARE)}"


@story("each controller alone has an account of its own, whose rights are enough", quick=True)
def alone(bed):
    bed.usage("*", "app", "300m", "300Mi")
    bed.apply(workload("web", "InPlaceOrRecreate") + DEPLOYMENT.replace("NAME", "inner") +
              HVPA.replace("NAME", "inner").replace("MODE", "mode: VPABiased").replace("TARGET", "apps/v1, kind: Deployment"))
    bed.running("app=web", 3)
    for kind in KINDS:
        bed.apply(bed.tandem("manifests", "--only", "rbac", "--namespace", "kube-system", "--controllers", kind), namespace=None)
    programs = [bed.run("--kubeconfig", bed.account("kube-system", f"tandem-{kind}"), f"--controllers={kind}", "--leader-elect",
                        "--horizontal=off", "--annotate-resized-pods=false", name=kind) for kind in KINDS]
    eventually(90, lambda: bed.events("InPlaceResizedByVPA"), "a pod is resized")
    assert not any("vpaInPlaceUpdated" in pod["metadata"].get("annotations", {}) for pod in bed.pods("app=web")), "a pod was patched"
    eventually(60, lambda: bed.condition("Hvpa", "inner", "Ready"), "the Hvpa is looked at")
    for kind, program in zip(KINDS, programs):
        program.stop()
        said = open(program.log).read()
        rows = audit(ALONE[kind])
        refused = sorted({row[1:] for row in rows if row[0] == 403})
        assert rows and not refused and "missing permission" not in said, f"{kind}: refused {refused}: {said[-2000:]}"
    grant(bed)


def without(role, kind, group, resource, name, verb):
    """The role less one right, its rules split as far as needed; None when it has not got it."""
    less, found = copy.deepcopy(role), False
    rules = []
    for rule in less["rules"]:
        hit = (role["kind"] == kind and group in rule["apiGroups"] and resource in rule["resources"] and verb in rule["verbs"] and
               name in rule.get("resourceNames", [""]))
        if not hit:
            rules.append(rule)
            continue
        found = True
        others = {**rule, "resources": [r for r in rule["resources"] if r != resource]}
        verbs = {**rule, "resources": [resource], "verbs": [v for v in rule["verbs"] if v != verb]}
        rules += [r for r in (others, verbs) if r["resources"] and r["verbs"]]
    less["rules"] = rules
    less["metadata"].pop("managedFields", None)
    less["metadata"].pop("resourceVersion", None)
    return less if found else None


def missing(bed, name):
    """What a process says at its start that it lacks, without its registration."""
    program = bed.run("--kubeconfig", bed.service, "--leader-elect", "--register-webhook=false", "--address=127.0.0.1:0",
                      "--webhook-listen=127.0.0.1:0", name=name, wait=False)
    try:
        program.port = int(eventually(20, lambda: program.alive() and re.search(r"metrics_port=(\d+)", open(program.log).read()), "it runs")[1])
        eventually(20, lambda: program.metric("tandem_access_missing") is not None, "the rights are looked at")
        return sorted(re.findall(r"missing permission: (.*)", open(program.log).read()))
    finally:
        program.kill()
        bed.programs.remove(program)


def put(bed, role):
    path = f"/apis/rbac.authorization.k8s.io/v1/{'namespaces/kube-system/' if role['kind'] == 'Role' else ''}{role['kind'].lower()}s/{role['metadata']['name']}"
    bed.call("PUT", path, role)


@story("each right that is taken away is missed by name, and nothing else")
def named(bed):
    assert missing(bed, "whole") == []
    before, wrong = roles(bed), []
    for number, (kind, group, resource, name, verb) in enumerate(rights(bed)):
        if verb == "patch" and resource in TEMPLATES:
            continue
        changed = [(role, less) for role in before if (less := without(role, kind, group, resource, name, verb))]
        for _, less in changed:
            put(bed, less)
        names = f'], resourceNames: ["{name}"' if name else ""
        where = "ClusterRole" if kind == "ClusterRole" else 'Role in namespace "kube-system"'
        expected = f'apiGroups: ["{group}"], resources: ["{resource}"{names}], verbs: ["{verb}"] ({where})'
        try:
            said = eventually(10, lambda number=number: missing(bed, f"less-{number}"), f"something is missing without {expected}")
            if said != [expected]:
                wrong.append(f"{expected}: {said}")
        except AssertionError as error:
            wrong.append(str(error))
        for role, _ in changed:
            whole = copy.deepcopy(role)
            whole["metadata"].pop("resourceVersion", None)
            put(bed, whole)
    assert not wrong, "\n".join(wrong)
    assert missing(bed, "whole-again") == []


def role(name, *rules, kind="Role"):
    return json.dumps({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": name, **({"namespace": "default"} if kind == "Role" else {})},
                       "rules": [dict(zip(("apiGroups", "resources", "verbs", "resourceNames"), rule)) for rule in rules]})


def binding(name, kind, of, user="mallory"):
    return json.dumps({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": name, "namespace": "default"},
                       "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": of},
                       "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]})


RBAC = ["rbac.authorization.k8s.io"]
WRITER = (RBAC, ["roles", "rolebindings"], ["create", "update", "patch", "get"])
PODS = ([""], ["pods", "*/scale"], ["get", "list"])
# What mallory tries, who may write roles and read pods and one secret.
TRIES = (
    ("held", role("held", ([""], ["pods"], ["list"]))), ("more", role("more", ([""], ["pods"], ["get", "watch", "delete"]))),
    ("two", role("two", (["", "apps"], ["pods", "deployments"], ["get"]))), ("star", role("star", ([""], ["pods"], ["*"]))),
    ("any", role("any", (["*"], ["*"], ["*"]))), ("sub", role("sub", (["apps"], ["deployments/scale"], ["get"]))),
    ("part", role("part", ([""], ["secrets"], ["get"], ["mine"]), ([""], ["secrets"], ["get"], ["yours", "mine"]))),
    ("odd", role("odd", ([""], ["pods"], ["g\"e\\t"]))), ("all-of-them", role("all-of-them", ([""], ["secrets"], ["get"]))),
    ("bind", binding("bind", "Role", "readers")), ("bind-more", binding("bind-more", "Role", "strong")),
    ("bind-gone", binding("bind-gone", "Role", "gone")), ("bind-may", binding("bind-may", "ClusterRole", "mighty", "eve")),
    ("bind-cluster-gone", binding("bind-cluster-gone", "ClusterRole", "gone")), ("bind-cluster", binding("bind-cluster", "ClusterRole", "mightier")),
)


@story("a user grants only what that user has, in the words of the real server, there and on the local one", quick=True)
def grants(bed):
    said = {}
    with local(bed) as on_local:
        for server, kubectl in (("real", real(bed)), ("local", on_local)):
            rights_of_mallory = role("readers", PODS, ([""], ["secrets"], ["get"], ["mine"]))
            for text in (rights_of_mallory, role("writers", WRITER, (RBAC, ["clusterroles"], ["bind"], ["mighty"])),
                         role("strong", ([""], ["nodes"], ["delete"])), role("mighty", (["*"], ["*"], ["*"]), kind="ClusterRole"),
                         role("mightier", (["*"], ["*"], ["*"]), kind="ClusterRole"), binding("readers", "Role", "readers"),
                         binding("writers", "Role", "writers")):
                code, words = kubectl("apply", "-f", "-", text=text)
                assert code == 0, (server, words)
            said[server] = {name: kubectl("create", "-f", "-", "--as=mallory", "--as-group=dev", text=text) for name, text in TRIES}
    different = {name: (said["real"][name], said["local"][name]) for name, _ in TRIES if said["real"][name] != said["local"][name]}
    assert not different, different
    refused = sorted(name for name, (code, _) in said["real"].items() if code != 0)
    assert refused == ["all-of-them", "any", "bind-cluster", "bind-cluster-gone", "bind-gone", "bind-more", "more", "odd", "part", "star", "sub", "two"], refused


READER = """
apiVersion: v1
kind: ServiceAccount
metadata: {name: dev}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader}
rules:
- {apiGroups: ["", apps, batch, metrics.k8s.io], resources: [pods, replicationcontrollers, deployments, replicasets, statefulsets, daemonsets,
    jobs, cronjobs], verbs: [get, list, watch]}
- {apiGroups: [autoscaling.k8s.io, autoscaling], resources: [verticalpodautoscalers, horizontalpodautoscalers], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: ServiceAccount, name: dev, namespace: NAMESPACE}]
"""


@story("explain and recommend need the rights of one namespace", quick=True)
def readers(bed):
    bed.usage("web-*", "app", "300m", "300Mi")
    bed.apply(workload("web", "Off") + READER.replace("NAMESPACE", bed.ns).replace("apiVersion: v1\n", "---\napiVersion: v1\n", 1))
    bed.running("app=web", 3)
    file = bed.account(bed.ns, "dev")
    for where in (["-n", bed.ns], []):
        said = bed.tandem("explain", "vpa", "web", "--kubeconfig", file, *where)
        assert "web (VerticalPodAutoscaler" in said and "no permission to list" in said and "hvpas" in said, said
    said = bed.tandem("explain", "deployment", "web", "--kubeconfig", file)
    assert "VPA web" in said, said
    said = bed.tandem("recommend", "-n", bed.ns, "--kubeconfig", file)
    assert "deploy/web x3" in said and "vpa/web" in said, said
    status, _, said = bed.tandem("explain", "hvpa", "web", "--kubeconfig", file, check=False)
    assert status == 2 and said.startswith("tandem: explain: hvpas: ") and "forbidden" in said and said.count("\n") == 1, said
    for command in (["recommend"], ["explain", "vpa", "web", "-n", "kube-system"]):
        status, _, said = bed.tandem(*command, "--kubeconfig", file, check=False)
        assert status == 2 and "pods" in said and "forbidden" in said and said.count("\n") == 1, (command, said)


main(env={"APISERVER_ARGS": ARGS}, setup=setup)
