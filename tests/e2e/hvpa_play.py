"""What the stories of Hvpas share: a workload that is played, and how one is asked.

Usage is an open loop on the bed, so a story plays its workload: Play shares a demand among the pods and writes what each of them uses.
"""

import time

from bed import eventually, quantity, requests

# Windows of a real cluster are minutes; these are seconds, so that a story is told in one of them.
FLAGS = ("--hvpa-sync-period=2s", "--recommender-interval=2s", "--cpu-histogram-decay-half-life=3s", "--horizontal=off",
         "--horizontal-pod-autoscaler-cpu-initialization-period=1s", "--horizontal-pod-autoscaler-initial-readiness-delay=1s")

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: app, image: app, resources: {requests: {cpu: "1", memory: 400Mi}}}]
"""

HVPA = """
---
apiVersion: autoscaling.k8s.io/v1alpha1
kind: Hvpa
metadata: {name: web}
spec:
  mode: RatioBased
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  hpaSpec:
    minReplicas: 1
    maxReplicas: 20
    behavior:
      scaleUp: {policies: [{type: Percent, value: 400, periodSeconds: 15}]}
      scaleDown: {stabilizationWindowSeconds: 5}
    metrics:
    - type: Resource
      resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}
  vpaSpec:
    resourcePolicy:
      containerPolicies:
      - {containerName: app, controlledResources: [cpu], minAllowed: {cpu: 100m}, maxAllowed: {cpu: "4"}}
  vertical:
    settleSeconds: 3
    scaleUp: {stabilizationDuration: 4s}
    scaleDown: {stabilizationDuration: 8s}
"""
WEB = DEPLOYMENT + HVPA

# Only sizes, of cpu, and at once.
VERTICAL = """
---
apiVersion: autoscaling.k8s.io/v1alpha1
kind: Hvpa
metadata: {name: web}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  vpaSpec:
    resourcePolicy:
      containerPolicies: [{containerName: app, controlledResources: [cpu], minAllowed: {cpu: 100m}, maxAllowed: {cpu: "200"}}]
  vertical: {settleSeconds: 0, scaleUp: {stabilizationDuration: 0s}, scaleDown: {stabilizationDuration: 0s}}
"""


class Play:
    """A workload whose pods share a demand of so many cores, and what became of it, look by look."""

    def __init__(self, bed, name="web", demand=1.0, memory="200Mi", kind="Deployment"):
        self.bed, self.name, self.demand, self.memory, self.kind = bed, name, demand, memory, kind
        self.looks = []  # what was seen, at each change: (when, replicas, largest size in milli-cores)
        self.used = set()  # pods that use something; a new one is idle until the next look

    def look(self):
        """The workload lives on for a moment: what there is of it."""
        pods = self.bed.pods(f"app={self.name}")
        names = {pod["metadata"]["name"] for pod in pods}
        share = (f"{1000 * self.demand / max(1, len(pods)):.0f}m", self.memory)
        self.bed.usages("app", {**dict.fromkeys(self.used - names), **dict.fromkeys(names, share)})
        self.used = names
        replicas = self.bed.get(self.kind, self.name)["spec"].get("replicas", len(pods))
        sizes = sorted(round(1000 * quantity(requests(pod).get("cpu", "0"))) for pod in pods) or [0]
        if not self.looks or self.looks[-1][1:] != (replicas, sizes[-1]):
            self.looks.append((time.monotonic(), replicas, sizes[-1]))
        return replicas, sizes

    def until(self, seconds, check, what):
        """Played until the check of replicas and sizes holds."""
        try:
            return eventually(seconds, lambda: check(*self.look()), what)
        except AssertionError as error:
            raise AssertionError(f"{error}; it went {self.way()}") from None

    def holds(self, seconds, check, what):
        """Played, and the check holds all of the time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            seen = self.look()
            assert check(*seen), f"did not stay: {what}; it went {self.way()}"
            time.sleep(0.25)

    def way(self, since=0):
        return " ".join(f"{replicas}x{size}m" for _, replicas, size in self.looks[since:])

    def turns(self, since=0):
        """How often replicas or sizes changed their direction, the worse of the two."""
        most = 0
        for axis in (1, 2):
            values = [look[axis] for look in self.looks[since:]]
            steps = [b - a for a, b in zip(values, values[1:]) if a != b]
            most = max(most, sum(1 for a, b in zip(steps, steps[1:]) if (a > 0) != (b > 0)))
        return most


def status(bed, name="web"):
    return bed.get("Hvpa", name).get("status", {})


def decision(bed, name="web"):
    return status(bed, name)["decision"]


def condition(bed, type_="Ready", name="web"):
    """Status and reason of a condition: "True/Deciding"; empty when there is none."""
    found = bed.condition("Hvpa", name, type_)
    return f"{found['status']}/{found['reason']}" if found else ""


def blocked(bed, name="web"):
    """What is held back: {"vertical cpu": "Settling"}"""
    return {f"{row['axis']} {row.get('resource', '')}".strip(): row["reason"] for row in status(bed, name).get("blocked", [])}


def judged(bed, name="web"):
    """Both verdicts are there."""
    return condition(bed, "HorizontalReady", name).startswith("True") and condition(bed, "VerticalReady", name).startswith("True")
