#!/usr/bin/env python3
"""What shapes a recommendation and a new pod: container policies, LimitRanges, OOMs, recommenders by name; what is refused; registration."""

from bed import Refused, eventually, main, quantity, requests, steady, story
from vpa_bed import GATES, instead, provided, sized, uids, workload

MI = 2**20


def container(pod, name):
    return next(c for c in pod["spec"]["containers"] if c["name"] == name).get("resources", {})


def newest(bed, selector, count):
    """The pod that is made when one more is asked for."""
    before = uids(bed.pods(selector))
    bed.patch("Deployment", selector.split("=")[1], {"spec": {"replicas": count}})
    return next(pod for pod in bed.running(selector, count) if pod["metadata"]["uid"] not in before)


@story("container policies: bounds, mode Off, values and resources that are not controlled, and the default for the others")
def policies(bed):
    for name in ("app", "side", "calc", "disk", "rest"):
        bed.usage("web-*", name, "300m", "300Mi")
    bed.apply("""
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: web}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  updatePolicy: {updateMode: Initial}
  resourcePolicy:
    containerPolicies:
    - {containerName: app, minAllowed: {memory: 600Mi}, maxAllowed: {cpu: 200m}}
    - {containerName: side, mode: "Off"}
    - {containerName: calc, controlledValues: RequestsOnly}
    - {containerName: disk, controlledResources: [memory]}
    - {containerName: "*", minAllowed: {cpu: 700m}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      initContainers:
      - {name: setup, image: app, resources: {requests: {cpu: 10m, memory: 10Mi}}}
      - {name: helper, image: app, restartPolicy: Always, resources: {requests: {cpu: 10m, memory: 10Mi}}}
      containers:
      - {name: app, image: app, resources: {requests: {cpu: 10m, memory: 100Mi}, limits: {cpu: 40m, memory: 100Mi}}}
      - {name: side, image: app, resources: {requests: {cpu: 11m, memory: 11Mi}}}
      - {name: calc, image: app, resources: {requests: {cpu: 10m, memory: 100Mi}, limits: {cpu: 50m, memory: 1Gi}}}
      - {name: disk, image: app, resources: {requests: {cpu: 12m, memory: 12Mi}, limits: {memory: 24Mi}}}
      - {name: rest, image: app}
""")
    bed.running("app=web", 1)
    told = eventually(60, lambda: (r := bed.recommendation("web")) and quantity(r["disk"]["target"]["memory"]) > 300 * MI and r, "all is learnt")
    assert set(told) == {"app", "calc", "disk", "rest"}, told
    assert told["app"]["target"]["cpu"] == "200m" and quantity(told["app"]["uncappedTarget"]["cpu"]) > 0.3, told["app"]
    assert told["app"]["target"]["memory"] == "600Mi" and quantity(told["app"]["uncappedTarget"]["memory"]) < 600 * MI, told["app"]
    assert set(told["disk"]["target"]) == {"memory"}, told["disk"]
    assert told["rest"]["target"]["cpu"] == "700m", told["rest"]
    pod = newest(bed, "app=web", 2)
    app, side, calc, disk, rest = (container(pod, name) for name in ("app", "side", "calc", "disk", "rest"))
    assert app == {"requests": {"cpu": "200m", "memory": "600Mi"}, "limits": {"cpu": "800m", "memory": "600Mi"}}, app
    assert side == {"requests": {"cpu": "11m", "memory": "11Mi"}}, side
    assert calc["limits"] == {"cpu": "50m", "memory": "1Gi"} and calc["requests"]["cpu"] == "50m", calc
    assert quantity(calc["requests"]["memory"]) == quantity(told["calc"]["target"]["memory"]), calc
    assert disk["requests"]["cpu"] == "12m" and "cpu" not in disk["limits"], disk
    assert quantity(disk["limits"]["memory"]) == 2 * quantity(disk["requests"]["memory"]) > 600 * MI, disk
    assert rest["requests"]["cpu"] == "700m" and "limits" not in rest, rest
    assert all(c["resources"]["requests"] == {"cpu": "10m", "memory": "10Mi"} for c in pod["spec"]["initContainers"])
    notes = pod["metadata"]["annotations"]
    assert notes["vpaObservedContainers"] == "app, side, calc, disk, rest"
    assert "container 2: cpu capped to container limit, " in notes["vpaUpdates"] and "container 1" not in notes["vpaUpdates"], notes
    columns = bed.kubectl("-n", bed.ns, "get", "vpa", "web").splitlines()
    assert columns[0].split() == ["NAME", "TARGET", "MODE", "CPU", "MEM", "PROVIDED", "AGE"], columns
    assert columns[1].split()[1:6] == ["web", "Initial", "200m", "600Mi", "True"], columns


@story("LimitRanges of containers and of pods bound what is given")
def limit_ranges(bed):
    bed.usage("web-*", "app", "300m", "300Mi")
    bed.apply(workload("web", "Initial", 1))
    bed.running("app=web", 1)
    eventually(60, lambda: quantity(bed.recommendation("web")["app"]["target"]["memory"]) > 300 * MI, "memory is learnt")
    bed.apply("""
apiVersion: v1
kind: LimitRange
metadata: {name: bounds}
spec: {limits: [{type: Container, max: {memory: 300Mi, cpu: 2}, min: {cpu: 10m}}]}
""")
    # Limits are one and a half times the request, so a limit of 300Mi leaves 200Mi.
    pod = eventually(30, lambda: (p := newest(bed, "app=web", len(bed.pods("app=web")) + 1)) and
                     "LimitRange" in p["metadata"]["annotations"].get("vpaUpdates", "") and p, "a pod is held inside the range")
    assert container(pod, "app")["requests"]["memory"] == "200Mi" and container(pod, "app")["limits"]["memory"] == "300Mi", pod["spec"]
    assert "memory capped to fit Max in container LimitRange" in pod["metadata"]["annotations"]["vpaUpdates"]
    bed.delete("LimitRange", "bounds")

    bed.apply("""
apiVersion: v1
kind: LimitRange
metadata: {name: pods}
spec: {limits: [{type: Pod, max: {cpu: 500m, memory: 1Gi}}]}
""")
    pod = eventually(30, lambda: (p := newest(bed, "app=web", len(bed.pods("app=web")) + 1)) and
                     container(p, "app")["limits"]["cpu"] == "500m" and p, "the pod's limit is the range's")
    assert container(pod, "app")["requests"]["cpu"] == "250m", pod["spec"]
    bed.delete("LimitRange", "pods")


@story("a LimitRange for pods: what containers keep takes part of its maximum, and the API server accepts the pods")
def kept_limits(bed):
    bed.usage("web-*", "app", "100m", "600Mi")
    bed.usage("web-*", "kept", "100m", "20Mi")
    bed.usage("web-*", "off", "100m", "20Mi")
    bed.apply("""
apiVersion: v1
kind: LimitRange
metadata: {name: pods}
spec: {limits: [{type: Pod, max: {memory: 1Gi}}]}
---
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: web}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  updatePolicy: {updateMode: Recreate}
  resourcePolicy: {containerPolicies: [{containerName: kept, controlledResources: [cpu]}, {containerName: "off", mode: "Off"}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      initContainers: [{name: side, image: app, restartPolicy: Always, resources: {limits: {cpu: 10m, memory: 124Mi}}}]
      containers:
      - {name: app, image: app, resources: {requests: {cpu: 10m, memory: 100Mi}, limits: {cpu: 20m, memory: 200Mi}}}
      - {name: kept, image: app, resources: {requests: {cpu: 10m, memory: 200Mi}, limits: {cpu: 20m, memory: 300Mi}}}
      - {name: "off", image: app, resources: {requests: {cpu: 10m, memory: 200Mi}, limits: {cpu: 20m, memory: 200Mi}}}
""")
    before = uids(bed.running("app=web", 2))
    eventually(60, lambda: quantity(bed.recommendation("web")["app"]["target"]["memory"]) > 600 * MI, "memory is learnt")
    eventually(90, lambda: not before & uids(bed.running("app=web", 2, 1)), "both pods are replaced, and their replacements accepted")
    for pod in bed.running("app=web", 2):
        by = {c["name"]: c["resources"] for c in pod["spec"]["containers"]}
        # 1Gi less 300Mi, 200Mi and the sidecar's 124Mi: 400Mi are left for the limit, half of it for the request.
        assert 399 * MI < quantity(by["app"]["limits"]["memory"]) <= 400 * MI, by
        assert 199 * MI < quantity(by["app"]["requests"]["memory"]) <= 200 * MI, by
        assert by["kept"]["limits"]["memory"] == "300Mi" and by["off"]["limits"]["memory"] == "200Mi", by


@story("an OOM raises memory at once, by the VPA's own ratio, and a kill of the recommender forgets nothing")
def out_of_memory(bed):
    for name in ("web", "more"):
        bed.usage(f"{name}-*", "app", "100m", "500Mi")
    bed.apply(workload("web", "Off", 2) + "---" + workload("more", "Off", 2, container="{containerName: app, oomBumpUpRatio: '2'}"))
    memory = lambda name: quantity(bed.recommendation(name)["app"]["target"]["memory"])
    pods = {name: bed.running(f"app={name}", 2)[0]["metadata"]["name"] for name in ("web", "more")}
    for name, pod in pods.items():
        eventually(60, lambda: memory(name) > 500 * MI, "memory is learnt")
    calm = memory("web")
    for name, pod in pods.items():
        bed.oom(pod, "app")
    raised = eventually(60, lambda: (m := memory("web")) >= 1.15 * calm and m, "memory is raised")
    assert raised < 1.35 * calm, (calm, raised)
    assert eventually(60, lambda: (m := memory("more")) >= 1.9 * calm and m, "memory is doubled") < 2.2 * calm
    eventually(30, lambda: bed.get("VerticalPodAutoscalerCheckpoint", "web-app")["metadata"]["annotations"], "the OOM is written down")
    bed.programs[-1].kill()
    bed.delete("Pod", pods["web"])
    bed.run(GATES, "--checkpoints-gc-interval=5s")
    steady(15, lambda: memory("web") >= raised, "the OOM is not forgotten")


@story("a quick OOM is reason enough for a new size, whatever the age of the pod")
def quick_oom(bed):
    bed.usage("web-*", "app", "100m", "400Mi")
    text = workload("web", "Recreate", 2).replace("{cpu: 10m, memory: 100Mi}", "{cpu: 200m, memory: 600Mi}")
    bed.apply(text.replace("limits: {cpu: 20m, memory: 150Mi}", "limits: {memory: 600Mi}"))
    before = uids(bed.running("app=web", 2))
    eventually(60, lambda: quantity(bed.recommendation("web")["app"]["target"]["memory"]) > 400 * MI, "memory is learnt")
    steady(12, lambda: uids(bed.pods("app=web")) == before, "inside of its range a young pod is left alone")
    victim = bed.pods("app=web")[0]["metadata"]
    bed.oom(victim["name"], "app")
    eventually(60, lambda: victim["uid"] not in uids(bed.pods("app=web")), "the pod that died is replaced")
    pod = next(p for p in bed.running("app=web", 2) if p["metadata"]["uid"] not in before)
    assert quantity(requests(pod)["memory"]) > 700 * MI, requests(pod)


@story("recommenders by name: each writes its own VPAs, and none collects the checkpoints of another")
def recommenders(bed):
    for name in ("mine", "theirs", "nobodys"):
        bed.usage(f"{name}-*", "app", "300m", "300Mi")
    named = lambda name, by: workload(name, "Off", 1).replace("  targetRef:", f"  recommenders: [{{name: {by}}}]\n  targetRef:")
    bed.apply(workload("mine", "Off", 1) + "---" + named("theirs", "other") + "---" + named("nobodys", "absent"))
    bed.apply("""
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscalerCheckpoint
metadata: {name: nobodys-app}
spec: {vpaObjectName: nobodys, containerName: app}
status: {version: v3}
---
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscalerCheckpoint
metadata: {name: gone-app}
spec: {vpaObjectName: gone, containerName: app}
status: {version: v3}
""")
    provided(bed, "mine")
    steady(10, lambda: not bed.recommendation("theirs") and not bed.recommendation("nobodys"), "others' VPAs are not written")
    other = bed.run("--controllers=recommender", "--recommender-name=other", "--checkpoints-gc-interval=5s", name="other")
    provided(bed, "theirs")
    checkpoints = lambda: {c["metadata"]["name"] for c in bed.list("VerticalPodAutoscalerCheckpoint")}
    eventually(30, lambda: checkpoints() == {"mine-app", "theirs-app", "nobodys-app"}, "each has its checkpoint; that of no VPA is collected")
    steady(15, lambda: checkpoints() == {"mine-app", "theirs-app", "nobodys-app"}, "no recommender collects another's")
    assert not bed.recommendation("nobodys")
    other.stop()
    bed.programs.remove(other)
    bed.delete("VerticalPodAutoscaler", "theirs")
    eventually(60, lambda: checkpoints() == {"mine-app", "nobodys-app"}, "with its VPA a checkpoint goes")


REFUSED = [  # what is put into spec, and what the answer must name
    ("updatePolicy: {}", "spec.updatePolicy.updateMode", "updateMode is required if UpdatePolicy is used"),
    ("updatePolicy: {updateMode: Sometimes}", "spec.updatePolicy.updateMode", "Sometimes"),
    ("updatePolicy: {updateMode: Recreate, minReplicas: 0}", "spec.updatePolicy.minReplicas", "minReplicas has to be positive"),
    ("updatePolicy: {updateMode: Recreate, minReplicas: -1}", "spec.updatePolicy.minReplicas", "-1"),
    ("updatePolicy: {updateMode: Recreate, evictAfterOOMSeconds: 0}", "spec.updatePolicy.evictAfterOOMSeconds", "0"),
    ("resourcePolicy: {containerPolicies: [{mode: Auto}]}", "spec.resourcePolicy.containerPolicies[0].containerName", "Required value"),
    ("resourcePolicy: {containerPolicies: [{containerName: a}, {containerName: b, mode: Maybe}]}",
     "spec.resourcePolicy.containerPolicies[1].mode", "Maybe"),
    ("resourcePolicy: {containerPolicies: [{containerName: a, minAllowed: {cpu: 1}, maxAllowed: {cpu: 500m}}]}",
     "spec.resourcePolicy.containerPolicies[0].maxAllowed[cpu]", "max resource for cpu is lower than min"),
    ("resourcePolicy: {containerPolicies: [{containerName: a, minAllowed: {cpu: 1500u}}]}",
     "spec.resourcePolicy.containerPolicies[0].minAllowed[cpu]", "must be a whole number of milli CPUs"),
    ("resourcePolicy: {containerPolicies: [{containerName: a, maxAllowed: {memory: 100500m}}]}",
     "spec.resourcePolicy.containerPolicies[0].maxAllowed[memory]", "must be a whole number of bytes"),
    ("resourcePolicy: {containerPolicies: [{containerName: a, maxAllowed: {memory: lots}}]}",
     "spec.resourcePolicy.containerPolicies[0].maxAllowed", "lots"),
    ("resourcePolicy: {containerPolicies: [{containerName: a, mode: 'Off', controlledValues: RequestsAndLimits}]}",
     "spec.resourcePolicy.containerPolicies[0].controlledValues", "controlledValues shouldn't be specified if container scaling mode is off"),
    ("resourcePolicy: {containerPolicies: [{containerName: a, controlledResources: [cpu, gpu]}]}",
     "spec.resourcePolicy.containerPolicies[0].controlledResources[1]", "gpu"),
    ("resourcePolicy: {containerPolicies: [{containerName: a, oomBumpUpRatio: '0.5'}]}",
     "spec.resourcePolicy.containerPolicies[0].oomBumpUpRatio", "must be greater than or equal to 1.0"),
    ("recommenders: [{name: a}, {name: b}]", "spec.recommenders", "must have at most 1 item"),
    ("startupBoost: {cpu: {type: Factor}}", "spec.startupBoost.cpu", "required when type is Factor"),
    ("startupBoost: {cpu: {type: Factor, factor: 0}}", "spec.startupBoost.cpu.factor", "must be >= 1 for type Factor"),
    ("startupBoost: {cpu: {type: Quantity}}", "spec.startupBoost.cpu", "required when type is Quantity"),
]
BARE = """
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: odd}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: odd}
"""


@story("VPAs that make no sense are refused, with the path of what is wrong; the others get their default", quick=True)
def refused(bed):
    for part, *words in REFUSED:
        bed.refused(BARE + f"  {part}\n", *words)
    bed.refused(BARE.replace("  targetRef: {apiVersion: apps/v1, kind: Deployment, name: odd}", "  updatePolicy: {updateMode: Recreate}"), "targetRef")
    two = BARE + "  updatePolicy: {updateMode: Recreate, minReplicas: 0}\n  recommenders: [{name: a}, {name: b}]\n"
    bed.refused(two, "spec.updatePolicy.minReplicas", "spec.recommenders")
    bed.apply(BARE)
    assert bed.get("VerticalPodAutoscaler", "odd")["spec"]["updatePolicy"] == {"updateMode": "Recreate"}
    try:  # An update is judged as a creation is.
        bed.patch("VerticalPodAutoscaler", "odd", {"spec": {"updatePolicy": {"minReplicas": 0}}})
        raise AssertionError("accepted")
    except Refused as error:
        assert error.status == 422 or error.status == 400, error
        assert "spec.updatePolicy.minReplicas" in str(error)


@story("a target that is missing, owned by another, or without pods is told by a condition")
def targets(bed):
    bed.apply(workload("web", "Off", 1))
    owned = eventually(30, lambda: bed.list("ReplicaSet"), "the Deployment has its ReplicaSet")[0]["metadata"]["name"]
    bed.apply(BARE.replace("odd", "missing") + "---" +
              BARE.replace("name: odd}\nspec", "name: owned}\nspec").replace("kind: Deployment, name: odd", f"kind: ReplicaSet, name: {owned}") +
              "---" + workload("empty", "Off", 0))
    said = lambda name, kind: bed.condition("VerticalPodAutoscaler", name, kind)
    why = eventually(60, lambda: said("missing", "ConfigUnsupported"), "the missing target is told")
    assert why["status"] == "True" and f"Deployment {bed.ns}/missing does not exist" in why["message"], why
    why = eventually(60, lambda: said("owned", "ConfigUnsupported"), "the owned target is told")
    assert "has a parent controller but it should point to a topmost well-known or scalable controller" in why["message"], why
    why = eventually(60, lambda: said("empty", "NoPodsMatched"), "the lack of pods is told")
    assert why["status"] == "True" and why["message"] == "No pods match this VPA object", why
    why = said("empty", "RecommendationProvided")
    assert why["status"] == "False" and why["reason"] == "NoPodsMatched", why
    assert "recommendation" not in bed.get("VerticalPodAutoscaler", "empty")["status"] or not bed.recommendation("empty")
    bed.apply(workload("missing", "Off", 1))  # It comes into being: all is well.
    provided(bed, "missing")
    assert not said("missing", "ConfigUnsupported")


KINDS = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  serviceName: db
  selector: {matchLabels: {app: db}}
  template: &pod
    metadata: {labels: {app: db}}
    spec:
      containers: [{name: app, image: app, resources: {requests: {cpu: 10m, memory: 100Mi}, limits: {cpu: 20m, memory: 150Mi}}}]
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      containers: [{name: app, image: app, resources: {requests: {cpu: 10m, memory: 100Mi}, limits: {cpu: 20m, memory: 150Mi}}}]
---
apiVersion: v1
kind: ReplicationController
metadata: {name: old}
spec:
  replicas: 2
  selector: {app: old}
  template:
    metadata: {labels: {app: old}}
    spec:
      containers: [{name: app, image: app, resources: {requests: {cpu: 10m, memory: 100Mi}, limits: {cpu: 20m, memory: 150Mi}}}]
"""


@story("StatefulSets, DaemonSets and ReplicationControllers are sized as Deployments are")
def kinds(bed):
    text = KINDS.replace(" &pod", "")
    for name, kind, version in (("db", "StatefulSet", "apps/v1"), ("agent", "DaemonSet", "apps/v1"), ("old", "ReplicationController", "v1")):
        bed.usage(f"{name}-*", "app", "300m", "300Mi")
        text += "---" + BARE.replace("odd", name).replace("kind: Deployment", f"kind: {kind}").replace("apps/v1", version)
    bed.apply(text)
    before = {name: uids(bed.running(f"app={name}", count)) for name, count in (("db", 2), ("agent", 3), ("old", 2))}
    for name, count in (("db", 2), ("agent", 3), ("old", 2)):
        assert not uids(sized(bed, name, count, 120)) & before[name]


@story("the webhook is registered in time, put back when it is gone, and removed at the end", quick=True)
def registration(bed):
    registered = lambda: {kind: {w["metadata"]["name"]: w for w in bed.list(kind) if w["metadata"]["name"] in ("tandem-outside-webhook-config", "tandem-outside-webhook-config")}
                          for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")}
    both = lambda: all(registered().values())
    eventually(60, both, "both are there")
    for row in registered().values():
        for config in row.values():
            for hook in config["webhooks"]:
                assert hook["failurePolicy"] == "Ignore" and hook["sideEffects"] == "None", hook
                assert hook["clientConfig"]["url"].startswith(f"https://127.0.0.1:{bed.programs[-1].webhook_port}/"), hook["clientConfig"]
                assert hook["clientConfig"]["caBundle"]
    lease = bed.get("Lease", "tandem-admission", namespace="kube-system")
    assert lease["spec"]["renewTime"]
    bed.delete("MutatingWebhookConfiguration", "tandem-outside-webhook-config")
    eventually(25, both, "what was deleted is put back")
    bed.patch("MutatingWebhookConfiguration", "tandem-outside-webhook-config", [{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": "Cg=="}], "json")
    eventually(25, lambda: bed.get("MutatingWebhookConfiguration", "tandem-outside-webhook-config")["webhooks"][0]["clientConfig"]["caBundle"] != "Cg==",
               "what was changed is put right")

    bed.programs[-1].stop()
    assert not any(registered().values()), "still registered after the end"
    # No webhook validates now, and no write is refused.
    bed.apply(BARE + "  updatePolicy: {updateMode: Recreate, minReplicas: 0}\n")
    program = bed.run("--keep-webhooks")
    eventually(60, both, "registered within a minute")
    program.stop()
    assert both(), "removed though asked to keep it"
    bed.run(GATES, "--checkpoints-gc-interval=5s")
    eventually(60, lambda: bed.get("MutatingWebhookConfiguration", "tandem-outside-webhook-config")["webhooks"][0]["clientConfig"]["url"].startswith(
        f"https://127.0.0.1:{bed.programs[-1].webhook_port}/"), "the next one takes it over")


@story("alpha fields are refused while their gate is closed")
def gates(bed):
    with instead(bed):
        bed.refused(BARE + "  updatePolicy: {updateMode: InPlace}\n", "spec.updatePolicy.updateMode", "you must enable feature gate InPlace")
        bed.refused(BARE + "  startupBoost: {cpu: {type: Factor, factor: 2}}\n", "spec.startupBoost", "you must enable feature gate CPUStartupBoost")
        bed.refused(BARE + "  updatePolicy: {updateMode: Recreate, evictAfterOOMSeconds: 60}\n", "spec.updatePolicy.evictAfterOOMSeconds", "PerVPAConfig")
        bed.refused(BARE + "  resourcePolicy: {containerPolicies: [{containerName: a, oomMinBumpUp: 1Mi}]}\n",
                    "spec.resourcePolicy.containerPolicies[0].oomMinBumpUp", "PerVPAConfig")


main(setup=lambda bed: bed.run(GATES, "--checkpoints-gc-interval=5s"))
