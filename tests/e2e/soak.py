#!/usr/bin/env python3
"""Controllers at work while things go wrong, again and again: usage that moves, OOMs, deleted pods, a metrics server that is silent or gone,
an API server that is killed, a compacted store, a webhook configuration that is deleted, our own process killed and restarted. At the end nothing
that was learnt is lost, memory has stopped growing, and no sanitizer has a word to say.

    tests/e2e/soak.py BUILD [MINUTES]        30 unless told; try build/address and build/thread too

What the address sanitizer holds back of freed memory takes minutes to fill and looks like growth: ASAN_OPTIONS=quarantine_size_mb=8 keeps it small.
"""

import json
import random
import sys
import time

from bed import Bed, Refused, eventually

COUNT = 12  # workloads, three pods each
MODES = ["Recreate", "InPlaceOrRecreate", "Initial", "Off"]

WORKLOAD = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME}
spec:
  replicas: 3
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec:
      containers: [{name: app, image: app, resources: {requests: {cpu: 100m, memory: 100Mi}}}]
"""
VPA = """
---
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: NAME}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: NAME}
  updatePolicy: {updateMode: "MODE"}
"""
HPA = """
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: NAME}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: NAME}
  minReplicas: 2
  maxReplicas: 6
  metrics: [{type: Resource, resource: {name: cpu, target: {type: AverageValue, averageValue: 300m}}}]
"""
HVPA = """
---
apiVersion: autoscaling.k8s.io/v1alpha1
kind: Hvpa
metadata: {name: NAME}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: NAME}
  mode: RatioBased
  hpaSpec:
    minReplicas: 2
    maxReplicas: 6
    metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}}]
  vpaSpec: {}
"""


class Soak:
    def __init__(self, bed):
        self.bed, self.random, self.ooms, self.firsts = bed, random.Random(7), {}, {}
        self.program, self.sizes, self.counts = None, [], {}
        self.names = [f"w{i}" for i in range(COUNT)]

    def begin(self):
        for i, name in enumerate(self.names):
            extra = HVPA if i % 6 == 5 else HPA if i % 6 == 4 else VPA.replace("MODE", MODES[i % 4])
            self.bed.usage(f"{name}-*", "app", "150m", "200Mi")
            self.bed.apply((WORKLOAD + extra).replace("NAME", name))
        self.program = self.bed.run()
        for name in self.vpas():
            eventually(120, lambda name=name: self.first(name), f"{name} has a checkpoint")
            self.firsts[name] = self.first(name)

    def vpas(self):
        return [name for i, name in enumerate(self.names) if i % 6 < 4]

    def first(self, name):
        return self.bed.get("VerticalPodAutoscalerCheckpoint", f"{name}-app")["status"]["firstSampleStart"]

    def known_ooms(self, name):
        """Not the target: a peak is one of many, and new pods bring new ones."""
        notes = self.bed.get("VerticalPodAutoscalerCheckpoint", f"{name}-app")["metadata"]["annotations"]
        return json.loads(notes["tandem.dev/oom"])["count"]

    # What happens.

    def usage(self):
        for name in self.names:
            self.bed.usage(f"{name}-*", "app", f"{self.random.randint(50, 900)}m", f"{self.random.randint(150, 400)}Mi")

    def oom(self):
        name = self.random.choice(self.vpas())
        pods = self.bed.pods(f"app={name}")
        if pods:
            self.bed.oom(pods[0]["metadata"]["name"], "app")
            self.ooms[name] = self.ooms.get(name, 0) + 1
            eventually(90, lambda: self.known_ooms(name) >= self.ooms[name], f"{name} knows of its OOM")

    def delete(self):
        for pod in self.random.sample(self.bed.pods(), 5):
            try:
                self.bed.delete("Pod", pod["metadata"]["name"])
            except Refused:
                pass  # gone already

    def metrics_silent(self):
        with self.bed.frozen("fakemetrics"):
            time.sleep(20)

    def metrics_gone(self):
        with self.bed.dead("fakemetrics"):
            time.sleep(20)

    def server_killed(self):
        with self.bed.dead("kube-apiserver"):
            self.bed.compact()
            time.sleep(8)
        eventually(90, lambda: self.bed.kubectl("get", "--raw", "/readyz"), "the API server is back")
        eventually(90, lambda: self.bed.list("VerticalPodAutoscaler"), "and serves our kinds")

    def compacted(self):
        self.bed.patch("Deployment", self.names[0], {"metadata": {"annotations": {"turn": str(time.time())}}})
        self.bed.compact()

    def hook_removed(self):
        self.bed.delete("MutatingWebhookConfiguration", "tandem-outside-webhook-config")
        eventually(60, lambda: self.bed.get("MutatingWebhookConfiguration", "tandem-outside-webhook-config"), "the webhook is put back")

    def killed(self):
        self.program.kill()
        self.program.clean()
        self.program = self.bed.run()
        self.sizes = []

    def restarted(self):
        self.program.stop()
        self.program = self.bed.run()
        self.sizes = []

    # What must hold.

    def hold(self):
        self.program.alive()
        self.program.clean()
        for name, first in self.firsts.items():
            assert self.first(name) == first, f"{name} lost its history"
        for name, count in self.ooms.items():
            assert self.known_ooms(name) >= count, f"{name} forgot an OOM: {self.known_ooms(name)} of {count}"
        self.sizes.append(self.program.metric("process_resident_memory_bytes"))

    def turn(self, kill):
        faults = [self.usage, self.usage, self.oom, self.delete, self.metrics_silent, self.metrics_gone, self.server_killed, self.compacted,
                  self.hook_removed]
        fault = self.random.choice([self.killed, self.restarted] if kill else faults)
        self.counts[fault.__name__] = self.counts.get(fault.__name__, 0) + 1
        fault()
        time.sleep(7)
        eventually(120, lambda: self.program.get("/readyz")[0] == 200, f"ready after {fault.__name__}")
        self.hold()
        print(f"{time.strftime('%H:%M:%S')} {fault.__name__}: {self.sizes[-1] / 2**20:.1f} MiB", flush=True)


def main():
    minutes = float(sys.argv[2]) if len(sys.argv) > 2 else 30
    bed = Bed(sys.argv[1])
    soak, faults = Soak(bed), []
    try:
        soak.begin()
        end, next_kill = time.monotonic() + 60 * minutes, time.monotonic() + 60 * minutes / 4
        while time.monotonic() < end:
            kill = time.monotonic() > next_kill
            if kill:
                next_kill += 60 * minutes / 4
            soak.turn(kill)
        sizes = soak.sizes
        if len(sizes) >= 8:
            early, late = max(sizes[:len(sizes) // 2]), max(sizes[len(sizes) // 2:])
            assert late <= early * 1.1 + 4 * 2**20, f"memory grows: {early / 2**20:.0f} to {late / 2**20:.0f} MiB"
    except (AssertionError, RuntimeError) as error:
        faults.append(str(error))
    faults += bed.down()
    print(", ".join(f"{name} {count}" for name, count in sorted(soak.counts.items())))
    for fault in faults:
        print(f"FAIL {fault}")
    print(f"{0 if faults else 1} passed, {len(faults)} failed")
    sys.exit(1 if faults else 0)


main()
