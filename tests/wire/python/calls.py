"""What programs written with the official Python client do: one function for each, run in turn. Usage: calls.py"""

import sys
import time
import traceback

from kubernetes import client, config, dynamic, utils, watch

NAMESPACE = "python-calls"
GROUP = "shop.example.com"


def deployment(name, replicas=2):
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "app", "image": "app"}]},
            },
        },
    }


def config_map(name, data, labels=None):
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, labels=labels), data=data)


def refused(status, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except client.ApiException as e:
        assert e.status == status, f"status {e.status}, expected {status}: {e.body}"
        return e
    raise AssertionError(f"was not refused with {status}")


def test_version_and_discovery():
    assert client.VersionApi().get_code().minor == "36"
    groups = {group.name for group in client.ApisApi().get_api_versions().groups}
    assert {"apps", "autoscaling", "policy", "coordination.k8s.io"} <= groups, groups
    names = {resource.name for resource in client.CoreV1Api().get_api_resources().resources}
    assert {"pods", "pods/eviction", "pods/resize", "configmaps"} <= names, names


def test_create_read_replace_delete():
    core = client.CoreV1Api()
    made = core.create_namespaced_config_map(NAMESPACE, config_map("one", {"a": "1"}))
    assert made.metadata.uid and made.metadata.creation_timestamp.tzinfo
    refused(409, core.create_namespaced_config_map, NAMESPACE, config_map("one", {}))
    made.data = {"a": "2"}
    replaced = core.replace_namespaced_config_map("one", NAMESPACE, made)
    assert replaced.metadata.resource_version != made.metadata.resource_version
    refused(409, core.replace_namespaced_config_map, "one", NAMESPACE, made)
    assert core.read_namespaced_config_map("one", NAMESPACE).data == {"a": "2"}
    core.delete_namespaced_config_map("one", NAMESPACE)
    refused(404, core.read_namespaced_config_map, "one", NAMESPACE)


def test_refusals_have_causes():
    body = deployment("wrong")
    body["spec"]["template"]["metadata"]["labels"] = {"app": "other"}
    e = refused(422, client.AppsV1Api().create_namespaced_deployment, NAMESPACE, body)
    assert '"spec.template.metadata.labels"' in e.body, e.body


def test_patch_types():
    core = client.CoreV1Api()
    core.create_namespaced_config_map(NAMESPACE, config_map("patched", {"a": "1", "b": "2"}))
    merged = core.patch_namespaced_config_map("patched", NAMESPACE, {"data": {"b": None, "c": "3"}})
    assert merged.data == {"a": "1", "c": "3"}, merged.data
    steps = [{"op": "test", "path": "/data/a", "value": "1"}, {"op": "remove", "path": "/data/a"}]
    assert core.patch_namespaced_config_map("patched", NAMESPACE, steps).data == {"c": "3"}
    refused(422, core.patch_namespaced_config_map, "patched", NAMESPACE, steps)


def test_server_side_apply():
    api = dynamic.DynamicClient(client.ApiClient()).resources.get(api_version="apps/v1", kind="Deployment")
    first = api.server_side_apply(body=deployment("applied", 2), namespace=NAMESPACE, field_manager="one")
    assert [m.manager for m in first.metadata.managedFields] == ["one"], first.metadata.managedFields
    try:
        api.server_side_apply(body=deployment("applied", 3), namespace=NAMESPACE, field_manager="two")
        raise AssertionError("no conflict")
    except dynamic.exceptions.ConflictError as e:
        assert "one" in str(e.body) and ".spec.replicas" in str(e.body), e.body
    forced = api.server_side_apply(
        body=deployment("applied", 3), namespace=NAMESPACE, field_manager="two", force_conflicts=True
    )
    assert forced.spec.replicas == 3
    assert sorted(m.manager for m in forced.metadata.managedFields if m.operation == "Apply") == ["one", "two"]


def test_scale():
    apps = client.AppsV1Api()
    apps.create_namespaced_deployment(NAMESPACE, deployment("scaled", 1))
    scale = apps.read_namespaced_deployment_scale("scaled", NAMESPACE)
    assert scale.spec.replicas == 1 and scale.status.selector == "app=scaled", scale
    for _ in range(20):  # the controller writes the same object: a conflict means to read it again
        scale = apps.read_namespaced_deployment_scale("scaled", NAMESPACE)
        scale.spec.replicas = 4
        try:
            assert apps.replace_namespaced_deployment_scale("scaled", NAMESPACE, scale).spec.replicas == 4
            break
        except client.ApiException as e:
            assert e.status == 409, e
    else:
        raise AssertionError("20 conflicts in a row")
    assert apps.patch_namespaced_deployment_scale("scaled", NAMESPACE, {"spec": {"replicas": 2}}).spec.replicas == 2
    assert apps.read_namespaced_deployment("scaled", NAMESPACE).spec.replicas == 2


def definition():
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "required": ["size"],
                "properties": {"size": {"type": "integer", "minimum": 1}, "colour": {"type": "string", "default": "red"}},
            },
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"baskets.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": "baskets", "singular": "basket", "kind": "Basket"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                }
            ],
        },
    }


def await_definition():
    api = client.ApiextensionsV1Api()
    for _ in range(100):
        status = api.read_custom_resource_definition(f"baskets.{GROUP}").status
        if any(c.type == "Established" and c.status == "True" for c in status.conditions or []):
            return
        time.sleep(0.1)
    raise AssertionError("the definition is not established")


def test_custom_objects():
    client.ApiextensionsV1Api().create_custom_resource_definition(definition())
    await_definition()
    api = client.CustomObjectsApi()
    where = (GROUP, "v1", NAMESPACE, "baskets")
    body = {"apiVersion": f"{GROUP}/v1", "kind": "Basket", "metadata": {"name": "big"}, "spec": {"size": 3}}
    made = api.create_namespaced_custom_object(*where, body)
    assert made["spec"] == {"size": 3, "colour": "red"}, made
    refused(422, api.create_namespaced_custom_object, *where, body | {"metadata": {"name": "bad"}, "spec": {"size": 0}})
    patched = api.patch_namespaced_custom_object(*where, "big", {"spec": {"size": 5}})
    assert patched["spec"]["size"] == 5 and patched["metadata"]["generation"] == 2
    status = api.patch_namespaced_custom_object_status(*where, "big", {"status": {"used": 1}, "spec": {"size": 9}})
    assert status["status"] == {"used": 1} and status["spec"]["size"] == 5
    assert [item["metadata"]["name"] for item in api.list_namespaced_custom_object(*where)["items"]] == ["big"]
    for event in watch.Watch().stream(api.list_namespaced_custom_object, *where, timeout_seconds=5):
        assert event["type"] == "ADDED" and event["object"]["spec"]["size"] == 5, event
        break
    api.delete_namespaced_custom_object(*where, "big")
    refused(404, api.get_namespaced_custom_object, *where, "big")


def test_dynamic_client():
    api = dynamic.DynamicClient(client.ApiClient())
    baskets = api.resources.get(api_version=f"{GROUP}/v1", kind="Basket")
    body = {"apiVersion": f"{GROUP}/v1", "kind": "Basket", "metadata": {"name": "dynamic"}, "spec": {"size": 1}}
    assert baskets.create(body=body, namespace=NAMESPACE).spec.colour == "red"
    assert baskets.get(name="dynamic", namespace=NAMESPACE).metadata.name == "dynamic"
    changed = baskets.patch(
        body={"spec": {"colour": "blue"}},
        name="dynamic",
        namespace=NAMESPACE,
        content_type="application/merge-patch+json",
    )
    assert changed.spec.colour == "blue"
    for event in baskets.watch(namespace=NAMESPACE, timeout=5):
        assert event["object"].metadata.name == "dynamic"
        break
    baskets.delete(name="dynamic", namespace=NAMESPACE)
    deployments = api.resources.get(api_version="apps/v1", kind="Deployment")
    deployments.create(body=deployment("dynamic", 1), namespace=NAMESPACE)
    assert deployments.status.get(name="dynamic", namespace=NAMESPACE).metadata.name == "dynamic"
    deployments.delete(name="dynamic", namespace=NAMESPACE)


def test_pages_are_one_snapshot():
    core = client.CoreV1Api()
    for i in range(25):
        core.create_namespaced_config_map(NAMESPACE, config_map(f"page-{i:02}", {}, {"paged": "yes"}))
    names, token, versions, remaining = [], None, set(), []
    while True:
        page = core.list_namespaced_config_map(NAMESPACE, limit=10, _continue=token)
        names += [item.metadata.name for item in page.items if item.metadata.name.startswith("page-")]
        versions.add(page.metadata.resource_version)
        remaining.append(page.metadata.remaining_item_count)
        if len(remaining) == 1:
            core.delete_namespaced_config_map("page-24", NAMESPACE)
            core.create_namespaced_config_map(NAMESPACE, config_map("page-99", {}, {"paged": "yes"}))
        token = page.metadata._continue
        if not token:
            break
    assert names == [f"page-{i:02}" for i in range(25)], names
    assert len(versions) == 1 and remaining[0] >= 15 and remaining[-1] is None, (versions, remaining)
    refused(400, core.list_namespaced_config_map, NAMESPACE, limit=10, _continue="not-a-token")
    core.delete_collection_namespaced_config_map(NAMESPACE, label_selector="paged=yes")
    assert not core.list_namespaced_config_map(NAMESPACE, label_selector="paged=yes").items


def test_selectors():
    core = client.CoreV1Api()
    for name, tier in (("sel-a", "front"), ("sel-b", "back")):
        pod = client.V1Pod(
            metadata=client.V1ObjectMeta(name=name, labels={"tier": tier}),
            spec=client.V1PodSpec(
                scheduler_name="nobody",
                termination_grace_period_seconds=0,
                containers=[client.V1Container(name="app", image="app")],
            ),
        )
        core.create_namespaced_pod(NAMESPACE, pod)

    def names(**selectors):
        return [p.metadata.name for p in core.list_namespaced_pod(NAMESPACE, **selectors).items if p.metadata.name[:4] == "sel-"]

    assert names(field_selector="metadata.name=sel-a") == ["sel-a"]
    assert names(field_selector="status.phase=Pending,spec.schedulerName=nobody") == ["sel-a", "sel-b"]
    assert names(field_selector="spec.nodeName!=") == []
    assert names(label_selector="tier in (front, middle)") == ["sel-a"]
    assert names(label_selector="tier,tier notin (front)") == ["sel-b"]
    refused(400, core.list_namespaced_pod, NAMESPACE, field_selector="spec.colour=red")
    refused(400, core.list_namespaced_pod, NAMESPACE, label_selector="tier in front")
    for name in ("sel-a", "sel-b"):
        core.delete_namespaced_pod(name, NAMESPACE)


def test_eviction_and_disruption_budget():
    core = client.CoreV1Api()
    pod = client.V1Pod(
        metadata=client.V1ObjectMeta(name="evicted", labels={"app": "evicted"}),
        spec=client.V1PodSpec(
            scheduler_name="nobody",
            termination_grace_period_seconds=0,
            containers=[client.V1Container(name="app", image="app")],
        ),
    )
    core.create_namespaced_pod(NAMESPACE, pod)
    eviction = client.V1Eviction(metadata=client.V1ObjectMeta(name="evicted", namespace=NAMESPACE))
    assert core.create_namespaced_pod_eviction("evicted", NAMESPACE, eviction)
    for _ in range(50):
        if not core.list_namespaced_pod(NAMESPACE, label_selector="app=evicted").items:
            break
        time.sleep(0.1)
    refused(404, core.create_namespaced_pod_eviction, "evicted", NAMESPACE, eviction)


def test_autoscaler():
    api = client.AutoscalingV2Api()
    body = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "maxReplicas": 5},
    }
    made = api.create_namespaced_horizontal_pod_autoscaler(NAMESPACE, body)
    assert made.spec.min_replicas == 1 and made.spec.metrics[0].resource.target.average_utilization == 80
    old = client.AutoscalingV1Api().read_namespaced_horizontal_pod_autoscaler("web", NAMESPACE)
    assert old.spec.target_cpu_utilization_percentage == 80
    body["spec"]["maxReplicas"] = 0
    refused(422, api.create_namespaced_horizontal_pod_autoscaler, NAMESPACE, body | {"metadata": {"name": "wrong"}})


def test_access_reviews_and_tokens():
    review = client.V1SelfSubjectAccessReview(
        spec=client.V1SelfSubjectAccessReviewSpec(
            resource_attributes=client.V1ResourceAttributes(verb="create", resource="pods", namespace=NAMESPACE)
        )
    )
    assert client.AuthorizationV1Api().create_self_subject_access_review(review).status.allowed
    core = client.CoreV1Api()
    core.create_namespaced_service_account(
        NAMESPACE, client.V1ServiceAccount(metadata=client.V1ObjectMeta(name="robot"))
    )
    asked = client.AuthenticationV1TokenRequest(spec=client.V1TokenRequestSpec(audiences=[], expiration_seconds=3600))
    token = core.create_namespaced_service_account_token("robot", NAMESPACE, asked).status.token
    settings = client.Configuration.get_default_copy()
    settings.cert_file = settings.key_file = None
    settings.api_key = {"authorization": f"Bearer {token}"}
    robot = client.CoreV1Api(client.ApiClient(settings))
    e = refused(403, robot.list_namespaced_pod, NAMESPACE)
    assert f"system:serviceaccount:{NAMESPACE}:robot" in e.body, e.body


def test_create_from_dict():
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "from-dict"}, "data": {"a": "1"}}
    utils.create_from_dict(client.ApiClient(), body, namespace=NAMESPACE)
    assert client.CoreV1Api().read_namespaced_config_map("from-dict", NAMESPACE).data == {"a": "1"}


def test_leases_and_events():
    api = client.CoordinationV1Api()
    lease = client.V1Lease(metadata=client.V1ObjectMeta(name="lock"), spec=client.V1LeaseSpec(holder_identity="me"))
    made = api.create_namespaced_lease(NAMESPACE, lease)
    made.spec.lease_duration_seconds = 15
    assert api.replace_namespaced_lease("lock", NAMESPACE, made).spec.lease_duration_seconds == 15
    event = client.CoreV1Event(
        metadata=client.V1ObjectMeta(generate_name="note-"),
        involved_object=client.V1ObjectReference(kind="Lease", name="lock", namespace=NAMESPACE),
        reason="Noted",
        message="once",
        type="Normal",
    )
    core = client.CoreV1Api()
    assert core.create_namespaced_event(NAMESPACE, event).metadata.name.startswith("note-")
    found = core.list_namespaced_event(NAMESPACE, field_selector="involvedObject.name=lock,reason=Noted").items
    assert [e.message for e in found] == ["once"]


def test_watch_from_an_unknown_version():
    core = client.CoreV1Api()
    e = refused(400, core.list_namespaced_config_map, NAMESPACE, resource_version="text", watch=True)
    assert "resource version" in e.body.lower(), e.body


def test_namespace_goes_with_its_objects():
    core = client.CoreV1Api()
    core.delete_namespace(NAMESPACE)
    for _ in range(100):
        try:
            core.read_namespace(NAMESPACE)
        except client.ApiException as e:
            assert e.status == 404, e
            assert not core.list_namespaced_config_map(NAMESPACE).items
            return
        time.sleep(0.1)
    raise AssertionError("the namespace is still there")


def main():
    config.load_kube_config()
    client.CoreV1Api().create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=NAMESPACE)))
    failed = 0
    for name, test in list(globals().items()):
        if not name.startswith("test_"):
            continue
        try:
            test()
            print(f"ok {name[5:]}")
        except Exception:
            failed += 1
            print(f"FAIL {name[5:]}")
            print("".join(f"   {line}\n" for line in traceback.format_exc().splitlines()))
        sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
