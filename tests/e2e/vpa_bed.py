"""What the stories of the Vertical Pod Autoscaler share: a workload with its VPA, and when its pods have the recommended size."""

import contextlib

from bed import eventually, quantity, requests

# A request below the least that is recommended is outside of every range, so nothing needs to grow old first.
WORKLOAD = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME}
spec:
  replicas: REPLICAS
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}, annotations: {ANNOTATIONS}}
    spec:
      containers: [{name: app, image: app, resources: {requests: {cpu: 10m, memory: 100Mi}, limits: {cpu: 20m, memory: 150Mi}}}]
---
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: NAME}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: NAME}
  updatePolicy: {updateMode: "MODE", POLICY}
  resourcePolicy: {containerPolicies: [CONTAINER]}
"""

GATES = "--feature-gates=InPlace=true,CPUStartupBoost=true,PerVPAConfig=true"


def workload(name, mode, replicas=3, annotations="", policy="", container=""):
    text = WORKLOAD.replace("NAME", name).replace("MODE", mode).replace("REPLICAS", str(replicas))
    return text.replace("ANNOTATIONS", annotations).replace("POLICY", policy).replace("CONTAINER", container)


def uids(pods):
    return {pod["metadata"]["uid"] for pod in pods}


def is_sized(pod, target):
    """Requests are the target, the limits have kept their distance: twice the cpu, one and a half times the memory."""
    wish, limits = requests(pod), pod["spec"]["containers"][0]["resources"]["limits"]
    return (quantity(wish["cpu"]) == quantity(target["cpu"]) and quantity(wish["memory"]) == quantity(target["memory"])
            and abs(quantity(limits["cpu"]) - 2 * quantity(target["cpu"])) < 0.0011
            and abs(quantity(limits["memory"]) - 1.5 * quantity(target["memory"])) <= 1)


def sized(bed, name, count, seconds=90):
    """All pods have the size that their VPA recommends now."""
    def look():
        target = bed.recommendation(name)["app"]["target"]
        pods = bed.running(f"app={name}", count, 1)
        return all(is_sized(pod, target) for pod in pods) and pods
    return eventually(seconds, look, f"all pods of {name} have the recommended size")


def provided(bed, name, seconds=60):
    return eventually(seconds, lambda: bed.condition("VerticalPodAutoscaler", name, "RecommendationProvided")["status"] == "True" and
                      bed.recommendation(name), f"{name} has a recommendation")


@contextlib.contextmanager
def instead(bed, *flags):
    """Another tandem run in the place of the one that all stories share."""
    bed.programs[-1].stop()
    try:
        yield bed.run(*flags)
    finally:
        bed.programs[-1].stop()
        bed.run(GATES)
