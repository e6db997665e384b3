"""Cases of the chart for test_chart.sh: chart_cases.py TANDEM HELM CHART. Prints a line a case; exit 2 when it could not come to its end."""

import json
import os
import subprocess
import sys

import yaml

TANDEM, HELM, CHART = sys.argv[1:4]
NAMESPACE = "tandem-system"
failed = 0
rendered = set()  # paths of values with which the chart was rendered, beside its own


def case(name, problem):
    """A line: None is right."""
    global failed  # pylint: disable=global-statement
    failed += problem is not None
    print(f"ok - {name}" if problem is None else f"not ok - {name}: {str(problem)[:600]}", flush=True)


def objects(text):
    """(kind, namespace, name) -> object."""
    found = {}
    for item in yaml.safe_load_all(text):
        if item:
            key = item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"]
            assert key not in found, f"{key} twice"
            found[key] = item
    return found


def manifests(*args):
    done = subprocess.run([TANDEM, "manifests", "--image", "tandem:0.1.0", *args], capture_output=True, text=True, check=True)
    return objects(done.stdout)


def helm(*args, values=None, release="tandem", namespace=NAMESPACE):
    """status, output, errors of helm template."""
    command = [HELM, "template", release, CHART, "--namespace", namespace, "--kube-version", "1.36.3", *args]
    if values is not None:
        command += ["--values", "-"]
    return subprocess.run(command, capture_output=True, text=True, input=yaml.safe_dump(values or {}), check=False)


def leaves(tree, path=""):
    """Paths below which the chart does not look: what is there is handed on whole."""
    for key, value in tree.items():
        here = f"{path}.{key}".lstrip(".")
        if isinstance(value, dict) and here not in WHOLE and not here.endswith(".labels"):
            yield from leaves(value, here)
        else:
            yield here


WHOLE = {"resources", "affinity", "nodeSelector", "podAnnotations", "podLabels", "serviceAccountAnnotations", "serviceAnnotations",
         "webhook.certManager.issuerRef"}


def of_schema(node, path=""):
    """The same of the schema. `global` is Helm's, for charts that have this one in them."""
    for key, value in node["properties"].items():
        here = f"{path}.{key}".lstrip(".")
        if here == "global":
            continue
        if "properties" in value and here not in WHOLE:
            yield from of_schema(value, here)
        else:
            yield here


def chart(values=None, *args, **named):
    rendered.update(leaves(values or {}))
    done = helm(*args, values=values, **named)
    assert done.returncode == 0, done.stderr
    return objects(done.stdout)


def apart(one, other, path=""):
    """The first difference between two trees, or None."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys(), key=str):
            if key not in one or key not in other:
                return f"{path}.{key}: only in {'the first' if key in one else 'the second'}"
            found = apart(one[key], other[key], f"{path}.{key}")
            if found:
                return found
        return None
    if isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            return f"{path}: {one} and {other}"
        return next((found for i, pair in enumerate(zip(one, other)) if (found := apart(*pair, f"{path}[{i}]"))), None)
    return None if one == other and type(one) is type(other) else f"{path}: {one!r} and {other!r}"


def same(name, values, *args, **named):
    """The chart with these values is `tandem manifests` with these options."""
    try:
        case(name, apart(manifests(*args), chart(values, **named)))
    except AssertionError as error:
        case(name, error)


def at(tree, path):
    for part in path.split("/"):
        tree = tree[int(part)] if isinstance(tree, list) else tree[part]
    return tree


DEPLOYMENT = ("Deployment", NAMESPACE, "tandem")
POD = "spec/template/spec"


def sets(name, values, key, path, expected):
    """The value is where it belongs, and nothing else is another than before."""
    try:
        got = chart(values)
        found = at(got[key], path)
        if found != expected:
            case(name, f"{path}: {found!r}, expected {expected!r}")
            return
        rest = {k: v for k, v in got.items() if k != key}
        before = {k: v for k, v in chart().items() if k != key}
        case(name, apart(before, rest))
    except (AssertionError, KeyError, IndexError) as error:
        case(name, f"{type(error).__name__}: {error}")


def refused(name, values, *words):
    """A typo, or a value that cannot be, is named."""
    done = helm(values=values)
    missing = [word for word in words if word not in done.stderr]
    case(name, None if done.returncode != 0 and not missing else f"status {done.returncode}, {missing} not in: {done.stderr or done.stdout[:200]}")


def adds(name, values, gone=(), come=()):
    """Objects that are there more, or less."""
    try:
        before, got = set(chart()), set(chart(values))
        case(name, None if before - got == set(gone) and got - before == set(come) else f"gone {before - got}, come {got - before}")
    except AssertionError as error:
        case(name, error)


def main():
    """Every case."""
    lint = subprocess.run([HELM, "lint", "--strict", CHART], capture_output=True, text=True, check=False)
    case("helm lint --strict", None if lint.returncode == 0 else lint.stdout + lint.stderr)
    same("with default values the same objects as tandem manifests", None)
    same("in another namespace", None, "--namespace", "scaling", namespace="scaling")
    same("one controller", {"controllers": ["recommender"]}, "--controllers", "recommender")
    same("without the updater, beside upstream's", {"controllers": ["recommender", "admission"]}, "--controllers", "recommender,admission")
    same("without the webhook", {"controllers": ["updater", "horizontal"]}, "--controllers", "updater,horizontal")
    same("without Hvpas", {"controllers": ["recommender", "updater", "admission", "horizontal"]}, "--controllers",
         "recommender,updater,admission,horizontal")
    same("the updater alone", {"controllers": ["updater"]}, "--controllers", "updater")
    same("admission alone", {"controllers": ["admission"]}, "--controllers", "admission")
    same("with boosts at the start", {"featureGates": "CPUStartupBoost=true"}, "--feature-gates", "CPUStartupBoost=true")
    same("with another gate", {"featureGates": "InPlace=true"}, "--feature-gates", "InPlace=true")
    same("Hvpas that write templates", {"templateActuation": True}, "--template-actuation")
    same("capped at the largest node", {"capToNode": True}, "--cap-to-node")
    same("metrics with TLS", {"metricsTls": True}, "--metrics-tls")
    same("resizes noted on pods", {"annotateResizedPods": True}, "--annotate-resized-pods")
    same("shared by nine replicas", {"shards": 8}, "--shards", "8")
    same("in upstream's place", {"replaceUpstream": True}, "--replace-upstream")
    same("HPAs of the cluster", {"horizontal": "builtin"}, "--horizontal", "builtin")
    same("CRDs of VPA that others have", {"crds": {"vpa": False}}, "--skip-vpa-crds")
    same("beside upstream's", {"shadow": True}, "--shadow")
    same("no CRDs", {"crds": {"install": False}}, "--only", "rbac,webhooks,deployment")

    crds = [key for key in chart() if key[0] == "CustomResourceDefinition"]
    keep = [key for key in crds if chart()[key]["metadata"]["annotations"].get("helm.sh/resource-policy") != "keep"]
    case("CRDs stay at an uninstall", None if len(crds) == 4 and not keep else keep)
    box = POD + "/containers/0"
    sets("image.repository", {"image": {"repository": "r.example/t"}}, DEPLOYMENT, box + "/image", "r.example/t:0.1.0")
    sets("image.tag", {"image": {"tag": "v2"}}, DEPLOYMENT, box + "/image", "tandem:v2")
    digest = "sha256:" + "0123456789abcdef" * 4
    sets("image.digest", {"image": {"digest": digest, "tag": "v2"}}, DEPLOYMENT, box + "/image", "tandem@" + digest)
    sets("image.pullPolicy", {"image": {"pullPolicy": "Never"}}, DEPLOYMENT, box + "/imagePullPolicy", "Never")
    sets("image.pullSecrets", {"image": {"pullSecrets": ["s"]}}, DEPLOYMENT, POD + "/imagePullSecrets", [{"name": "s"}])
    sets("replicas", {"replicas": 3}, DEPLOYMENT, "spec/replicas", 3)
    sets("resources", {"resources": {"requests": {"cpu": "2"}}}, DEPLOYMENT, box + "/resources/requests/cpu", "2")
    sets("priorityClassName", {"priorityClassName": "p"}, DEPLOYMENT, POD + "/priorityClassName", "p")
    sets("nodeSelector", {"nodeSelector": {"a": "b"}}, DEPLOYMENT, POD + "/nodeSelector", {"a": "b"})
    sets("tolerations", {"tolerations": [{"operator": "Exists"}]}, DEPLOYMENT, POD + "/tolerations", [{"operator": "Exists"}])
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}}
    sets("affinity", {"affinity": affinity}, DEPLOYMENT, POD + "/affinity", affinity)
    sets("topologySpreadConstraints", {"topologySpreadConstraints": [{"maxSkew": 2}]}, DEPLOYMENT, POD + "/topologySpreadConstraints", [{"maxSkew": 2}])
    sets("podAnnotations", {"podAnnotations": {"a": "b"}}, DEPLOYMENT, "spec/template/metadata/annotations/a", "b")
    sets("podLabels", {"podLabels": {"team": "b"}}, DEPLOYMENT, "spec/template/metadata/labels",
         {"app.kubernetes.io/name": "tandem", "team": "b"})
    sets("serviceAccountAnnotations", {"serviceAccountAnnotations": {"a": "b"}}, ("ServiceAccount", NAMESPACE, "tandem"), "metadata/annotations",
         {"a": "b"})
    sets("serviceAnnotations", {"serviceAnnotations": {"a": "b"}}, ("Service", NAMESPACE, "tandem-webhook"), "metadata/annotations", {"a": "b"})
    sets("extraArgs", {"extraArgs": ["--v=5"]}, DEPLOYMENT, box + "/args/5", "--v=5")
    sets("extraEnv", {"extraEnv": [{"name": "A", "value": "b"}]}, DEPLOYMENT, box + "/env/1", {"name": "A", "value": "b"})
    sets("podDisruptionBudget.maxUnavailable", {"podDisruptionBudget": {"maxUnavailable": 2}}, ("PodDisruptionBudget", NAMESPACE, "tandem"),
         "spec/maxUnavailable", 2)
    webhook_cases(box)
    adds("podDisruptionBudget.create", {"podDisruptionBudget": {"create": False}}, gone=[("PodDisruptionBudget", NAMESPACE, "tandem")])
    adds("networkPolicy.create", {"networkPolicy": {"create": False}}, gone=[("NetworkPolicy", NAMESPACE, "tandem")])
    certificate_cases(box)
    monitoring_cases(box)
    refusals()
    with open(os.path.join(CHART, "values.schema.json")) as file:
        schema = set(of_schema(json.load(file)))
    with open(os.path.join(CHART, "values.yaml")) as file:
        defaults = set(leaves(yaml.safe_load(file)))
    case("the schema has the values that values.yaml has", None if schema == defaults else schema ^ defaults)
    case(f"each of the {len(schema)} values has a case", None if len(schema) > 40 and schema <= rendered else sorted(schema - rendered))


def packed(name):
    """A file of the chart that another part of the tree brings; None: it is not there."""
    path = os.path.join(CHART, "files", name)
    if not os.path.exists(path):
        return None
    with open(path) as file:
        return file.read()


def monitoring_cases(box):
    """What watches the program, and its page."""
    service, monitor = ("Service", NAMESPACE, "tandem-metrics"), ("ServiceMonitor", NAMESPACE, "tandem")
    adds("serviceMonitor.create", {"serviceMonitor": {"create": True}}, come=[service, monitor])
    got = chart({"serviceMonitor": {"create": True, "interval": "7s", "labels": {"release": "p"}}})
    endpoint, labels = at(got[monitor], "spec/endpoints/0"), at(got[monitor], "metadata/labels")
    case("serviceMonitor.interval", None if endpoint == {"port": "metrics", "interval": "7s"} else endpoint)
    case("serviceMonitor.labels", None if labels.get("release") == "p" else labels)
    chosen, has = at(got[monitor], "spec/selector/matchLabels").items(), at(got[service], "metadata/labels").items()
    ports = [port["name"] for port in at(got[DEPLOYMENT], box + "/ports")]
    case("and it selects the Service of the port", None if chosen <= has and at(got[service], "spec/ports/0/targetPort") in ports else (chosen, has))
    for value, name, key in (("prometheusRule", "alerts.yaml", ("PrometheusRule", NAMESPACE, "tandem")),
                             ("dashboard", "tandem.json", ("ConfigMap", NAMESPACE, "tandem-dashboard"))):
        text = packed(name)
        if text is None:
            refused(f"{value}.create without its file", {value: {"create": True}}, f"files/{name} is not in this chart")
            continue
        adds(f"{value}.create", {value: {"create": True}}, come=[key])
        got = chart({value: {"create": True, "labels": {"a": "b"}}})[key]
        case(f"{value}.labels", None if at(got, "metadata/labels").get("a") == "b" else got["metadata"])
        case(f"{value} is the file", apart(yaml.safe_load(text), got["spec"] if value == "prometheusRule" else json.loads(at(got, "data/tandem.json"))))
    page = ("Service", NAMESPACE, "tandem-page")
    adds("page.create", {"page": {"create": True}}, come=[page, ("ClusterRoleBinding", "", "tandem-page")])
    got = chart({"page": {"create": True}})
    ports = at(got["NetworkPolicy", NAMESPACE, "tandem"], "spec/ingress/0/ports")
    args = at(got[DEPLOYMENT], box + "/args")
    case("and its port is served and let in", None if {"port": "page"} in ports and "--page-listen=:8443" in args and
         {"name": "page", "containerPort": 8443} in at(got[DEPLOYMENT], box + "/ports") else (ports, args))
    refused("a page without the webhook", {"page": {"create": True}, "controllers": ["recommender"]}, "page.create", "admission")


def webhook_cases(box):
    """Values that the registration and the program must both have."""
    mutating = ("MutatingWebhookConfiguration", "", "tandem-webhook-config")
    got = chart({"webhook": {"failurePolicy": "Fail", "timeoutSeconds": 7, "exemptNamespaces": ["quiet"]}})
    args = at(got[DEPLOYMENT], box + "/args")
    hooks = {hook["name"]: hook for hook in got[mutating]["webhooks"]}
    case("webhook.failurePolicy", None if hooks["vpa.k8s.io"]["failurePolicy"] == "Fail" and "--webhook-failure-policy-fail" in args and
         hooks["probe.webhook.tandem.dev"]["failurePolicy"] == "Ignore" else (hooks, args))
    case("webhook.timeoutSeconds", None if all(h["timeoutSeconds"] == 7 for h in hooks.values()) and "--webhook-timeout-seconds=7" in args else args)
    values = hooks["vpa.k8s.io"]["namespaceSelector"]["matchExpressions"][0]["values"]
    case("webhook.exemptNamespaces", None if values == ["quiet", NAMESPACE] and "--webhook-exempt-namespaces=quiet" in args else (values, args))


def certificate_cases(box):
    """Another program's certificate."""
    issuer, certificate = ("Issuer", NAMESPACE, "tandem-webhook"), ("Certificate", NAMESPACE, "tandem-webhook")
    adds("webhook.certManager.create", {"webhook": {"certManager": {"create": True}}}, come=[
        issuer, certificate, ("Issuer", NAMESPACE, "tandem-webhook-root"), ("Certificate", NAMESPACE, "tandem-webhook-root")])
    got = chart({"webhook": {"certManager": {"create": True}}})
    spec = got[certificate]["spec"]
    case("and the program waits for its Secret", None if "--webhook-certificate-issued" in at(got[DEPLOYMENT], box + "/args") and
         spec["secretName"] == "tandem-webhook-tls" and spec["dnsNames"] == [f"tandem-webhook.{NAMESPACE}.svc"] and
         spec["issuerRef"] == {"name": "tandem-webhook", "kind": "Issuer"} else spec)
    chosen = {"name": "house", "kind": "ClusterIssuer"}
    values = {"webhook": {"certManager": {"create": True, "issuerRef": chosen}}}
    adds("webhook.certManager.issuerRef", values, come=[certificate])
    case("and is asked for", None if chart(values)[certificate]["spec"]["issuerRef"] == chosen else chart(values)[certificate])
    refused("an issuer with a typo", {"webhook": {"certManager": {"issuerRef": {"nam": "x"}}}}, "issuerRef", "nam")


def refusals():
    """What the schema says no to."""
    refused("shadow in upstream's place", {"shadow": True, "replaceUpstream": True}, "values don't meet the specifications")
    refused("a typo", {"replica": 3}, "replica")
    refused("a typo further in", {"image": {"name": "x"}}, "image", "name")
    refused("a typo in webhook", {"webhook": {"failurepolicy": "Fail"}}, "failurepolicy")
    refused("a controller that is none", {"controllers": ["scaler"]}, "controllers")
    refused("no controller", {"controllers": []}, "controllers")
    refused("a policy that is none", {"webhook": {"failurePolicy": "Maybe"}}, "failurePolicy")
    refused("replicas that are text", {"replicas": "two"}, "replicas")
    refused("a digest that is none", {"image": {"digest": "sha256:1"}}, "digest")
    refused("horizontal as a boolean", {"horizontal": False}, "horizontal")
    refused("an argument that is none", {"extraArgs": ["v=5"]}, "extraArgs")
    refused("a label that is a number", {"podLabels": {"a": 1}}, "podLabels")


main()
sys.exit(1 if failed else 0)
