#!/usr/bin/env python3
"""Never: a request that takes the machine. Requests of 3 MiB, each the worst of its shape, go to the webhook of `tandem run` (which needs no credentials) and to the API of the local cluster: lists without end, errors without end, texts, depth, patches that copy, aliases,
patterns. For each the peak of the memory above rest and the time that the event loop was blocked are printed and bounded; afterwards the
memory is given back and the next client is served.

The peak is the kernel's (VmHWM, reset before each). The blocked time is the longest wait of a client that asks for /healthz all the time,
as far as the process was really computing in it: on a busy machine a wait alone says nothing."""
from never import *

SIZE = (3 << 20) - 4096
MEMORY_MIB_MAX = 64
BLOCKED_MS_MAX = 100 * min(2, SLOW)  # two threads of a busy core take turns
THROWS_MAX = 3  # a bomb over a bound is thrown again: what blocks does so each time, a neighbour on the core does not
RETURN_MIB_MAX = 24  # what may still be held a moment after the last of them

cluster = Cluster()
run = Run(cluster, "--webhook-listen", "127.0.0.1:0").await_start().await_ready()
webhook = int(re.search(r"webhook=https://127.0.0.1:(\d+)", run.output()).group(1))
untrusting = ssl.create_default_context()
untrusting.check_hostname, untrusting.verify_mode = False, ssl.CERT_NONE
ONLY = os.environ.get("ONLY", "")

# ---- Bodies ----


at_caps = False  # are bodies made that are just not refused for their size?


def values_in(text):
    value = json.loads(text)
    return 1 + sum(values_in(json.dumps(item)) for item in (value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()))


def most_of(item):
    """How many of an item, or of a member, a body may have."""
    try:
        is_member = item.startswith('"') and '":' in item
        return min(9900, 48000 // values_in(item.split(":", 1)[1] if is_member else item))
    except ValueError:
        return 9900


def many(item, room=SIZE, joint=","):
    """As many as there is room for; %d is the number of each."""
    parts, used, number = [], 0, 0
    most = most_of(item.replace("%d", "0")) if at_caps else room
    while used < room and number < most:
        part = item.replace("%d", str(number))
        parts.append(part)
        used += len(part) + len(joint)
        number += 1
    return joint.join(parts)


def review(group, resource, kind, obj, operation="CREATE", more=""):
    where = '{"group":"%s","version":"v1","%s":"%s"}'
    return '{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","kind":%s,"resource":%s,"name":"x","namespace":"default","operation":"%s"%s,"object":%s}}' % (
        where % (group, "kind", kind),
        where % (group, "resource", resource),
        operation,
        more,
        obj,
    )


def of_pod(spec, meta=""):
    return '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"bomb"%s},"spec":{%s}}' % (meta, spec)


ONE = '"containers":[{"name":"c","image":"i"}]'


def of_vpa(spec):
    return '{"apiVersion":"autoscaling.k8s.io/v1","kind":"VerticalPodAutoscaler","metadata":{"name":"bomb"},"spec":{"targetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"x"}%s}}' % spec


def of_hpa(spec, group="autoscaling.tandem.dev"):
    return '{"apiVersion":"%s/v2","kind":"HorizontalPodAutoscaler","metadata":{"name":"bomb"},"spec":{"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"x"},"maxReplicas":3%s}}' % (group, spec)


def of_hvpa(spec):
    return '{"apiVersion":"autoscaling.k8s.io/v1alpha1","kind":"Hvpa","metadata":{"name":"bomb"},"spec":{"targetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"x"}%s}}' % spec


def of_deployment(spec):
    return '{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"bomb"},"spec":{"replicas":0,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{%s}}}}' % spec


def of_map(meta="", rest=""):
    return '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"bomb"%s}%s}' % (meta, rest)


METRIC = '{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":50}}}'
OBJECT_METRIC = '{"type":"Pods","pods":{"metric":{"name":"m%d","selector":{"matchExpressions":[{"key":"k","operator":"?"}]}},"target":{}}}'
def make_webhook_bombs():
    half = SIZE // 2
    pods = {
        "containers {}": of_pod('"containers":[%s]' % many("{}")),
        "containers named": of_pod('"containers":[%s]' % many('{"name":"c%d","image":"i"}')),
        "containers of one name": of_pod('"containers":[%s]' % many('{"name":"c","image":"i"}')),
        "containers with requests": of_pod('"containers":[%s]' % many('{"name":"c%d","image":"i","resources":{"requests":{"cpu":"1","memory":"1Gi"}}}')),
        "containers null": of_pod('"containers":[%s]' % many("null")),
        "initContainers": of_pod('"initContainers":[%s],%s' % (many('{"name":"c%d","image":"i","restartPolicy":"Always"}'), ONE)),
        "env {}": of_pod('"containers":[{"name":"c","image":"i","env":[%s]}]' % many("{}")),
        "env named": of_pod('"containers":[{"name":"c","image":"i","env":[%s]}]' % many('{"name":"E%d","value":"v"}')),
        "env of one name": of_pod('"containers":[{"name":"c","image":"i","env":[%s]}]' % many('{"name":"E","value":"v"}')),
        "ports": of_pod('"containers":[{"name":"c","image":"i","ports":[%s]}]' % many('{"containerPort":99999}')),
        "volumes {}": of_pod('"volumes":[%s],%s' % (many("{}"), ONE)),
        "volumes named": of_pod('"volumes":[%s],%s' % (many('{"name":"v%d","emptyDir":{}}'), ONE)),
        "volume mounts": of_pod('"containers":[{"name":"c","image":"i","volumeMounts":[%s]}]' % many('{"name":"v%d","mountPath":"/%d"}')),
        "resources": of_pod('"containers":[{"name":"c","image":"i","resources":{"requests":{%s}}}]' % many('"r%d":"x"')),
        "limits": of_pod('"containers":[{"name":"c","image":"i","resources":{"limits":{%s}}}]' % many('"e.io/r%d":"1"')),
        "tolerations": of_pod('"tolerations":[%s],%s' % (many("{}"), ONE)),
        "affinity": of_pod('"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[%s]}}},%s' % (many('{"matchExpressions":[{}]}'), ONE)),
        "labels": of_pod(ONE, ',"labels":{%s}' % many('"l%d":"v"')),
        "bad labels": of_pod(ONE, ',"labels":{%s}' % many('"!%d":"!"')),
        "annotations": of_pod(ONE, ',"annotations":{%s}' % many('"!%d":"v"')),
        "one long name": of_pod('"containers":[{"name":"%s","image":"i"}]' % ("!" * SIZE)),
        "long names": of_pod('"containers":[%s]' % many('{"name":"%s"}' % ("\\u0001" * 5000))),
        "owners": of_pod(ONE, ',"ownerReferences":[%s]' % many("{}")),
        "finalizers": of_pod(ONE, ',"finalizers":[%s]' % many('"!"')),
        "managed fields": of_pod(ONE, ',"managedFields":[%s]' % many('{"manager":"m%d","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:a":{}}}')),
        "unknown members": of_pod('%s,%s' % (many('"u%d":0'), ONE)),
        "unknown depth": of_pod('"a":%s%s,%s' % ("[" * 400, "]" * 400, ONE)),
        "unknown wide": of_pod('"a":[%s],%s' % (many("0"), ONE)),
        "unknown empties": of_pod('"a":[%s],%s' % (many("[]"), ONE)),
        "one key": of_pod('%s,%s' % (many('"":0'), ONE)),
        "deep and wide": of_pod('"a":[%s],%s' % (many("[" * 300 + "]" * 300), ONE)),
    }
    hpas = {
        "metrics {}": ',"metrics":[%s]' % many("{}"),
        "metrics null": ',"metrics":[%s]' % many("null"),
        "metrics": ',"metrics":[%s]' % many(METRIC),
        "metrics with selectors": ',"metrics":[%s]' % many(OBJECT_METRIC),
        "one selector": ',"metrics":[{"type":"Pods","pods":{"metric":{"name":"m","selector":{"matchExpressions":[%s]}},"target":{"type":"AverageValue","averageValue":"1"}}}]' % many('{"key":"k%d","operator":"In","values":[""]}'),
        "values": ',"metrics":[{"type":"Pods","pods":{"metric":{"name":"m","selector":{"matchExpressions":[{"key":"k","operator":"In","values":[%s]}]}},"target":{"type":"AverageValue","averageValue":"1"}}}]' % many('"!"'),
        "policies": ',"behavior":{"scaleUp":{"policies":[%s]}}' % many("{}"),
        "long type": ',"metrics":[{"type":"%s"}]' % ("!" * SIZE),
        "long types": ',"metrics":[%s]' % many('{"type":"%s"}' % ("x" * 1000)),
    }
    vpas = {
        "policies {}": ',"resourcePolicy":{"containerPolicies":[%s]}' % many("{}"),
        "policies": ',"resourcePolicy":{"containerPolicies":[%s]}' % many('{"containerName":"c%d","mode":"?"}'),
        "policies of one name": ',"resourcePolicy":{"containerPolicies":[%s]}' % many('{"containerName":"c"}'),
        "minAllowed": ',"resourcePolicy":{"containerPolicies":[{"containerName":"c","minAllowed":{%s}}]}' % many('"r%d":"1"'),
        "requirements": ',"updatePolicy":{"evictionRequirements":[%s]}' % many("{}"),
        "selector": ',"selector":{"matchExpressions":[%s]}' % many("{}"),
        "selector labels": ',"selector":{"matchLabels":{%s}}' % many('"l%d":"!"'),
        "selector values": ',"selector":{"matchExpressions":[{"key":"k","operator":"In","values":[%s]}]}' % many('"v%d"'),
        "recommenders": ',"recommenders":[%s]' % many("{}"),
        "status": '},"status":{"recommendation":{"containerRecommendations":[%s]}' % many('{"containerName":"c%d","target":{"cpu":"1"}}'),
        "conditions": '},"status":{"conditions":[%s]' % many("{}"),
    }
    hvpas = {
        "rows": ',"vertical":{"containerPolicies":[%s]},"horizontal":{"metrics":[]}' % many("{}"),
        "metrics": ',"horizontal":{"metrics":[%s]}' % many("{}"),
        "spec": ",%s" % many('"u%d":[]'),
        "hpaSpec": ',"hpaSpec":{"maxReplicas":3,"metrics":[%s]}' % many("{}"),
        "vpaSpec": ',"vpaSpec":{"resourcePolicy":{"containerPolicies":[%s]}}' % many("{}"),
    }

    webhook_bombs = [("pod: " + name, review("", "pods", "Pod", body)) for name, body in pods.items()]
    webhook_bombs += [("HPA: " + name, review("autoscaling.tandem.dev", "horizontalpodautoscalers", "HorizontalPodAutoscaler", of_hpa(spec))) for name, spec in hpas.items()]
    webhook_bombs += [("VPA: " + name, review("autoscaling.k8s.io", "verticalpodautoscalers", "VerticalPodAutoscaler", of_vpa(spec))) for name, spec in vpas.items()]
    webhook_bombs += [("Hvpa: " + name, review("autoscaling.k8s.io", "hvpas", "Hvpa", of_hvpa(spec))) for name, spec in hvpas.items()]
    webhook_bombs += [
        ("review: both objects", review("", "pods", "Pod", of_pod('"containers":[%s]' % many("{}", half)), "UPDATE", ',"oldObject":' + of_pod('"containers":[%s]' % many("{}", half)))),
        ("review: HPA both objects", review("autoscaling.tandem.dev", "horizontalpodautoscalers", "HorizontalPodAutoscaler", of_hpa(',"metrics":[%s]' % many("{}", half)), "UPDATE", ',"oldObject":' + of_hpa(',"metrics":[%s]' % many("{}", half)))),
        ("review: groups of the user", review("", "pods", "Pod", of_pod(ONE), "CREATE", ',"userInfo":{"groups":[%s]}' % many('"g"'))),
        ("review: nothing but lists", "[%s]" % many("[]")),
        ("review: nothing but numbers", "[%s]" % many("0")),
        ("review: a text of escapes", '"%s"' % ("\\u00e9" * (SIZE // 6))),
        ("review: depth", "[" * SIZE),
    ]
    return pods, hpas, vpas, [(name, "POST", "/", JSON, body) for name, body in webhook_bombs]


# ---- Requests to the API ----

PODS_AT, MAPS_AT, CRDS_AT = PODS, "/api/v1/namespaces/default/configmaps", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
HPAS_AT = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
JSON, YAML, MERGE, STRATEGIC, JSON_PATCH, APPLY = (
    "application/json",
    "application/yaml",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/json-patch+json",
    "application/apply-patch+yaml",
)


def of_crd(schema, name="bombs"):
    return (
        '{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"%s.ex.io"},"spec":{"group":"ex.io","scope":"Namespaced","names":{"plural":"%s","singular":"%s","kind":"K%s","listKind":"K%sList"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"%s}}}]}}'
        % (name, name, name[:-1], name, name, schema)
    )


def seed():
    """What patches are sent to, and a custom kind with defaults and a costly pattern."""
    cluster.post(MAPS_AT, json.loads(of_map().replace("bomb", "seed")))
    cluster.post(MAPS_AT, json.loads(of_map("", ',"data":{"a":"%s"}' % ("x" * 100000)).replace("bomb", "copied")))
    cluster.post(DEPLOYMENTS, json.loads(of_deployment(ONE).replace('"bomb"', '"seed"')))
    cluster.post(PODS_AT, json.loads(of_pod(ONE).replace('"bomb"', '"seed"')))
    schema = ',"properties":{"spec":{"type":"object","properties":{"l":{"type":"array","items":{"type":"object","properties":{%s}}},"t":{"type":"string","pattern":"^(x?){900}(x*x*){20}y$"},"n":{"type":"array","items":{"type":"integer","multipleOf":3,"minimum":5}},"u":{"type":"array","uniqueItems":true,"items":{"type":"integer"}},"s":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},"m":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"}}}},"e":{"type":"string","enum":[%s]}}}}' % (
        many('"d%d":{"type":"string","default":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}', 4000),
        many('"v%d"', 4000),
    )
    cluster.post(CRDS_AT, json.loads(of_crd(schema, "things")))
    if not soon(10 * SLOW, lambda: cluster.get("/apis/ex.io/v1/namespaces/default/things")):
        check("the custom kind is served", False)


def thing(spec):
    return '{"apiVersion":"ex.io/v1","kind":"Kthings","metadata":{"name":"bomb"},"spec":{%s}}' % spec


THINGS_AT = "/apis/ex.io/v1/namespaces/default/things"
laughs = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join("%s: &%s [%s]\n" % (b, b, ",".join(["*" + a] * 9)) for a, b in zip("abcdefgh", "bcdefghi"))


def make_api_bombs(pods, hpas, vpas):
    half = SIZE // 2
    api_bombs = [("pod: " + name, "POST", PODS_AT, JSON, body) for name, body in pods.items()]
    api_bombs += [("Deployment: " + name, "POST", DEPLOYMENTS, JSON, of_deployment(body.split('"spec":{', 1)[1][:-2])) for name, body in pods.items() if '"metadata":{"name":"bomb"}' in body]
    api_bombs += [("HPA: " + name, "POST", HPAS_AT, JSON, of_hpa(spec, "autoscaling")) for name, spec in hpas.items()]
    api_bombs += [("VPA: " + name, "POST", VPAS, JSON, of_vpa(spec)) for name, spec in vpas.items()]
    api_bombs += [
        ("ConfigMap: data", "POST", MAPS_AT, JSON, of_map("", ',"data":{%s}' % many('"k%d":""'))),
        ("ConfigMap: bad data", "POST", MAPS_AT, JSON, of_map("", ',"data":{%s}' % many('"!%d":0'))),
        ("ConfigMap: labels", "POST", MAPS_AT, JSON, of_map(',"labels":{%s}' % many('"l%d":"v"'))),
        ("ConfigMap: owners", "POST", MAPS_AT, JSON, of_map(',"ownerReferences":[%s]' % many('{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u%d"}'))),
        ("ConfigMap: finalizers", "POST", MAPS_AT, JSON, of_map(',"finalizers":[%s]' % many('"e.io/f%d"'))),
        ("ConfigMap: managed fields", "POST", MAPS_AT, JSON, of_map(',"managedFields":[{"manager":"m","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{%s}}]' % many('"f:a%d":{}'))),
        ("ConfigMap: one text", "POST", MAPS_AT, JSON, of_map("", ',"data":{"k":"%s"}' % ("x" * SIZE))),
        ("ConfigMap: one text of escapes", "POST", MAPS_AT, JSON, of_map("", ',"data":{"k":"%s"}' % ("\\u0001" * (SIZE // 6)))),
        ("ConfigMap: as YAML", "POST", MAPS_AT, YAML, "metadata: {name: bomb}\ndata:\n" + many('  k%d: ""', SIZE, "\n")),
        ("YAML: aliases", "POST", MAPS_AT, YAML, laughs),
        ("YAML: many aliases", "POST", MAPS_AT, YAML, "a: &a [%s]\nb: [%s]\n" % (many("x", 3000), many("*a", 30000))),
        ("YAML: flow", "POST", MAPS_AT, YAML, "a: [%s]\n" % many("[]")),
        ("YAML: flow depth", "POST", MAPS_AT, YAML, "a: %s\n" % ("[" * SIZE)),
        ("YAML: block", "POST", MAPS_AT, YAML, "a:\n" + many("- 0", SIZE, "\n")),
        ("YAML: anchors", "POST", MAPS_AT, YAML, "a:\n" + many("- &a%d x", SIZE, "\n")),
        ("YAML: folded", "POST", MAPS_AT, YAML, "a: >\n" + many("  x", SIZE, "\n")),
        ("CRD: patterns", "POST", CRDS_AT, JSON, of_crd(',"properties":{%s}' % many('"p%d":{"type":"string","pattern":"^(a{100}b{100}c{100}d{100}){10}[a-z]{900}$"}', 1400000))),
        ("CRD: long patterns", "POST", CRDS_AT, JSON, of_crd(',"properties":{%s}' % many('"p%d":{"type":"string","pattern":"' + "a" * 4000 + '"}', 1400000))),
        ("CRD: bad patterns", "POST", CRDS_AT, JSON, of_crd(',"properties":{%s}' % many('"p%d":{"type":"string","pattern":"' + "a" * 4000 + '["}'))),
        ("CRD: properties", "POST", CRDS_AT, JSON, of_crd(',"properties":{%s}' % many('"p%d":{}'))),
        ("CRD: valid properties", "POST", CRDS_AT, JSON, of_crd(',"properties":{%s}' % many('"p%d":{"type":"string"}', 1400000))),
        ("CRD: versions", "POST", CRDS_AT, JSON, of_crd("").replace('"versions":[', '"versions":[%s,' % many("{}"))),
        ("CRD: depth", "POST", CRDS_AT, JSON, of_crd(',"properties":' + '{"a":{"properties":' * 150 + "{}" + "}}" * 150)),
        ("CRD: names", "POST", CRDS_AT, JSON, of_crd("").replace('"names":{', '"names":{"shortNames":[%s],' % many('"!"'))),
        ("CRD: columns", "POST", CRDS_AT, JSON, of_crd("").replace('"storage":true,', '"storage":true,"additionalPrinterColumns":[%s],' % many("{}"))),
        ("custom: defaults", "POST", THINGS_AT, JSON, thing('"l":[%s]' % many("{}"))),
        ("custom: pattern", "POST", THINGS_AT, JSON, thing('"t":"%s"' % ("x" * 1400000))),
        ("custom: numbers", "POST", THINGS_AT, JSON, thing('"n":[%s]' % many("1"))),
        ("custom: unique", "POST", THINGS_AT, JSON, thing('"u":[%s]' % many("%d", 1400000))),
        ("custom: set", "POST", THINGS_AT, JSON, thing('"s":[%s]' % many('"%d"', 1400000))),
        ("custom: map", "POST", THINGS_AT, JSON, thing('"m":[%s]' % many('{"k":"%d"}', 1400000))),
        ("custom: enum", "POST", THINGS_AT, JSON, thing('"e":"%s"' % ("x" * SIZE))),
        ("custom: unknown", "POST", THINGS_AT, JSON, thing(many('"u%d":0'))),
        ("review: SubjectAccessReview", "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", JSON, '{"spec":{"user":"u","groups":[%s],"resourceAttributes":{"verb":"get","resource":"pods"}}}' % many('"g%d"')),
        ("review: extra", "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", JSON, '{"spec":{"user":"u","extra":{%s},"resourceAttributes":{"verb":"get","resource":"pods"}}}' % many('"g%d":["x"]')),
        ("review: TokenReview", "POST", "/apis/authentication.k8s.io/v1/tokenreviews", JSON, '{"spec":{"token":"t","audiences":[%s]}}' % many('"g%d"')),
        ("eviction", "POST", PODS_AT + "/seed/eviction", JSON, '{"metadata":{"name":"seed"},"deleteOptions":{"dryRun":[%s]}}' % many('"All"')),
        ("binding", "POST", PODS_AT + "/seed/binding", JSON, '{"metadata":{"name":"seed","annotations":{%s}},"target":{"name":"n"}}' % many('"a%d":"b"')),
        ("delete options", "DELETE", MAPS_AT + "/none", JSON, '{"dryRun":[%s]}' % many('"All"')),
        ("merge patch: labels", "PATCH", MAPS_AT + "/seed", MERGE, '{"metadata":{"labels":{%s}}}' % many('"l%d":"v"')),
        ("merge patch: data", "PATCH", MAPS_AT + "/seed?dryRun=All", MERGE, '{"data":{%s}}' % many('"k%d":"v"')),
        ("merge patch: nulls", "PATCH", MAPS_AT + "/seed?dryRun=All", MERGE, '{"data":{%s}}' % many('"k%d":null')),
        ("merge patch: depth", "PATCH", MAPS_AT + "/seed?dryRun=All", MERGE, '{"a":' * 500 + "1" + "}" * 500),
        ("strategic: containers", "PATCH", DEPLOYMENTS + "/seed?dryRun=All", STRATEGIC, '{"spec":{"template":{"spec":{"containers":[%s]}}}}' % many('{"name":"c%d","image":"i"}')),
        ("strategic: order", "PATCH", DEPLOYMENTS + "/seed?dryRun=All", STRATEGIC, '{"spec":{"template":{"spec":{"$setElementOrder/containers":[%s]}}}}' % many('{"name":"c%d"}')),
        ("strategic: deletes", "PATCH", DEPLOYMENTS + "/seed?dryRun=All", STRATEGIC, '{"spec":{"template":{"spec":{"containers":[%s]}}}}' % many('{"$patch":"delete","name":"c%d"}')),
        ("strategic: retained keys", "PATCH", DEPLOYMENTS + "/seed?dryRun=All", STRATEGIC, '{"spec":{"strategy":{"$retainKeys":[%s]}}}' % many('"k%d"')),
        ("strategic: primitive list", "PATCH", DEPLOYMENTS + "/seed?dryRun=All", STRATEGIC, '{"metadata":{"finalizers":[%s],"$deleteFromPrimitiveList/finalizers":[%s]}}' % (many('"e.io/f%d"', half), many('"e.io/f%d"', half))),
        ("JSON patch: tests", "PATCH", MAPS_AT + "/seed?dryRun=All", JSON_PATCH, "[%s]" % many('{"op":"test","path":"/kind","value":"ConfigMap"}')),
        ("JSON patch: adds", "PATCH", MAPS_AT + "/seed?dryRun=All", JSON_PATCH, '[{"op":"add","path":"/data","value":{}},%s]' % many('{"op":"add","path":"/data/k%d","value":"v"}', 500000)),
        ("JSON patch: copies", "PATCH", MAPS_AT + "/copied?dryRun=All", JSON_PATCH, "[%s]" % many('{"op":"copy","from":"/data","path":"/data/k%d"}', 600000)),
        ("JSON patch: doubling", "PATCH", MAPS_AT + "/seed?dryRun=All", JSON_PATCH, '[{"op":"add","path":"/data","value":{"a":"b"}},%s]' % many('{"op":"copy","from":"/data","path":"/data/k%d"}', 4000)),
        ("JSON patch: list front", "PATCH", MAPS_AT + "/seed?dryRun=All", JSON_PATCH, '[{"op":"add","path":"/metadata/finalizers","value":[]},%s]' % many('{"op":"add","path":"/metadata/finalizers/0","value":"e.io/f%d"}', 600000)),
        ("JSON patch: a wide value", "PATCH", MAPS_AT + "/seed?dryRun=All", JSON_PATCH, '[{"op":"add","path":"/data","value":[%s]}]' % many("0")),
        ("JSON patch: a deep path", "PATCH", MAPS_AT + "/seed?dryRun=All", JSON_PATCH, '[{"op":"add","path":"%s","value":1}]' % ("/a" * (SIZE // 2))),
        ("apply: containers", "PATCH", DEPLOYMENTS + "/seed?fieldManager=m&dryRun=All", APPLY, of_deployment('"containers":[%s]' % many('{"name":"c%d","image":"i"}')).replace('"bomb"', '"seed"')),
        ("apply: env", "PATCH", DEPLOYMENTS + "/seed?fieldManager=m&dryRun=All", APPLY, of_deployment('"containers":[{"name":"c","image":"i","env":[%s]}]' % many('{"name":"E%d","value":"v"}')).replace('"bomb"', '"seed"')),
        ("apply: data", "PATCH", MAPS_AT + "/seed?fieldManager=m&dryRun=All", APPLY, of_map("", ',"data":{%s}' % many('"k%d":"v"')).replace('"bomb"', '"seed"')),
        ("apply: set", "PATCH", MAPS_AT + "/seed?fieldManager=m&dryRun=All", APPLY, of_map(',"finalizers":[%s]' % many('"e.io/f%d"')).replace('"bomb"', '"seed"')),
        ("apply: aliases", "PATCH", MAPS_AT + "/seed?fieldManager=m&dryRun=All", APPLY, laughs),
        ("list: a selector", "GET", PODS_AT + "?labelSelector=" + many("a%d", 15000, "%2C"), JSON, None),
        ("list: a field selector", "GET", PODS_AT + "?fieldSelector=" + many("metadata.name%3Dx", 15000, "%2C"), JSON, None),
    ]
    return api_bombs


# ---- Measuring ----


class Watcher(threading.Thread):
    """A client that asks for /healthz all the time and remembers its longest wait and the computing in it."""

    def __init__(self, program, api):
        super().__init__(daemon=True)
        self.program, self.api, self.worst, self.stops, self.begun = program, api, 0.0, False, threading.Event()

    def computed(self):
        with open("/proc/%d/schedstat" % self.program.pid) as file:
            return int(file.read().split()[0]) / 1e6

    def run(self):
        while not self.stops:
            began, computed = time.monotonic(), self.computed()
            try:
                self.api.call("GET", "/healthz")
            except Exception as error:
                if self.program.is_alive():
                    print("# /healthz: %s" % error)
                return
            self.worst = max(self.worst, min((time.monotonic() - began) * 1000, self.computed() - computed))
            self.begun.set()
            time.sleep(0.002)


def peak_mib(program, reset=False):
    if reset:
        with open("/proc/%d/clear_refs" % program.pid, "w") as file:
            file.write("5")
    with open("/proc/%d/status" % program.pid) as file:
        return int(re.search(r"VmHWM:\s+(\d+)", file.read()).group(1)) / 1024


def throw(program, health, api, name, method, path, content_type, body):
    """One bomb: what it is answered, the peak above rest and the time that the loop was blocked."""
    watcher = Watcher(program, health)
    watcher.start()
    watcher.begun.wait(20 * SLOW)
    rest = program.rss_kib() / 1024
    peak_mib(program, True)
    watcher.worst, began = 0.0, time.monotonic()
    try:
        status, text = api.call(method, path, body, content_type)
    except Exception as error:
        status, text = 0, str(error)
    took = (time.monotonic() - began) * 1000
    watcher.stops = True
    watcher.join(60 * SLOW)
    above = peak_mib(program) - rest if program.is_alive() else -1
    print("# %-42s %4.1f MiB in, status %3d, %7.1f MiB above rest, %7.1f ms blocked, %7.1f ms in all, %.1f MiB out" % (name, len(body or path) / 2**20, status, above, watcher.worst, took, len(text) / 2**20), flush=True)
    good = program.is_alive() and status > 0
    if not SANITIZER:
        good = good and above <= MEMORY_MIB_MAX and watcher.worst <= BLOCKED_MS_MAX
    return good, (name, status, round(above), round(watcher.worst), text[:200], len(text))


def volley(title, program, health, bombs, api, cleans=False):
    bad, worst, stored = [], [0.0, 0.0], 0
    rest = program.rss_kib() / 1024
    for bomb in bombs:
        if ONLY and ONLY not in bomb[0]:
            continue
        for throw_number in range(THROWS_MAX):
            good, told = throw(program, health, api, *bomb)
            if cleans and told[1] in (200, 201) and bomb[1] == "POST":
                stored += told[5] / 2**20
                cluster.call("DELETE", bomb[2] + ("/bombs.ex.io" if "customresource" in bomb[2] else "/bomb") + "?gracePeriodSeconds=0")
            if good or not program.is_alive():
                break
        worst = [max(worst[0], told[2]), max(worst[1], told[3])]
        if not good:
            bad.append(told)
        if not program.is_alive():
            break
    check("%s: %d bombs, at most %.0f MiB above rest and %.0f ms blocked" % (title, len(bombs), worst[0], worst[1]), not bad, "\n#   ".join(str(row) for row in bad))
    # What was stored and deleted again stays in the log of changes, for watches that are behind: as made, changed and deleted.
    after = SANITIZER or soon(10 * SLOW, lambda: program.rss_kib() / 1024 - rest < RETURN_MIB_MAX + 3 * stored)
    left = program.rss_kib() / 1024 - rest
    check("%s: the memory is given back (%.1f MiB are left)" % (title, left), after, "%.1f MiB are left, %.1f MiB were stored" % (left, stored))


webhook_api, api = Api("https://127.0.0.1:%d" % webhook, untrusting), Api(cluster.url, cluster.context)
seed()
for at_caps in (False, True):
    size = "at the caps" if at_caps else "of 3 MiB"
    pods, hpas, vpas, webhook_bombs = make_webhook_bombs()
    volley("the webhook, " + size, run, run.own, webhook_bombs, webhook_api)
    volley("the API, " + size, cluster, Api(cluster.url, cluster.context), make_api_bombs(pods, hpas, vpas), api, True)
finish()
