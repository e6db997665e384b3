#!/usr/bin/env python3
"""Selector beside targetRef: several VPAs divide the pods of one workload, and no pod ever has two of them."""

import time

from bed import Refused, eventually, main, quantity, requests, steady, story

MI = 2**20

# Roles are given by labels later, as by an election: every pod is born a follower.
DATABASE = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 3
  serviceName: db
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db, role: follower}}
    spec:
      containers: [{name: app, image: app, resources: {requests: {cpu: 10m, memory: 50Mi}}}]
"""

VPA = """
---
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: NAME}
spec:
  targetRef: {apiVersion: apps/v1, kind: StatefulSet, name: db}
  selector: SELECTOR
  updatePolicy: {updateMode: MODE}
"""
LEADER, FOLLOWER = "{matchLabels: {role: leader}}", "{matchLabels: {role: follower}}"


def vpa(name, selector, mode="InPlaceOrRecreate", target="db"):
    text = VPA.replace("NAME", name).replace("SELECTOR", selector).replace("MODE", f'"{mode}"').replace("name: db", f"name: {target}")
    return text if selector else text.replace("  selector: \n", "")


def lead(bed, leader, *followers):
    """The role moves, and the work with it."""
    for name, role, cpu, memory in [(leader, "leader", "1500m", "1200Mi")] + [(f, "follower", "100m", "300Mi") for f in followers]:
        bed.usage(name, "app", cpu, memory)
        bed.patch("Pod", name, {"metadata": {"labels": {"role": role}}})


def target(bed, name):
    """cpu, memory of the recommendation."""
    row = bed.recommendation(name)["app"]["target"]
    return quantity(row["cpu"]), quantity(row["memory"])


def size(bed, pod):
    row = requests(bed.get("Pod", pod))
    return quantity(row["cpu"]), quantity(row["memory"])


def uids(bed):
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in bed.pods("app=db")}


def is_like(got, wanted):
    """The recommendation may move a little between being read and being written."""
    return all(abs(g - w) <= 0.1 * w for g, w in zip(got, wanted))


def database(bed):
    bed.apply(DATABASE)
    bed.running("app=db", 3)


def bypass(bed, text):
    """Created while no webhook judges; it is put back by the program."""
    def created():
        for config in bed.list("ValidatingWebhookConfiguration"):
            bed.delete("ValidatingWebhookConfiguration", config["metadata"]["name"])
        bed.apply(text)
        return True
    before = {config["metadata"]["name"] for config in bed.list("ValidatingWebhookConfiguration")}
    assert before, "there is something to pass by"
    for _ in range(20):
        try:
            created()
            break
        except (AssertionError, Refused):  # put back in between, or the server has not heard of the end of it
            time.sleep(0.5)
    else:
        raise AssertionError("the webhook could not be passed by")
    eventually(60, lambda: {c["metadata"]["name"] for c in bed.list("ValidatingWebhookConfiguration")} == before, "the webhook is put back")


@story("leader and followers of one StatefulSet have sizes of their own, which follow a role that moves", quick=True)
def roles(bed):
    database(bed)
    lead(bed, "db-0", "db-1", "db-2")
    bed.apply(vpa("leader", LEADER) + vpa("follower", FOLLOWER))
    eventually(60, lambda: target(bed, "leader")[0] >= 1.5 and target(bed, "follower")[0] < 0.3, "two recommendations")
    eventually(90, lambda: is_like(size(bed, "db-0"), target(bed, "leader")), "the one leader among three is sized")
    eventually(90, lambda: all(is_like(size(bed, pod), target(bed, "follower")) for pod in ("db-1", "db-2")), "the followers are sized")
    before = uids(bed)

    # Passes are counted, not seconds: the machine may be busy.
    tandem = bed.programs[-1]
    passes = lambda: tandem.metric("vpa_updater_execution_latency_seconds_count", step="total") or 0
    began = passes()
    lead(bed, "db-1", "db-0", "db-2")
    eventually(90, lambda: is_like(size(bed, "db-1"), target(bed, "leader")), "the promoted pod has the leader's size")
    grown = passes()
    assert grown - began <= 3, f"{grown - began} passes"  # two, and the one that was under way
    eventually(60, lambda: is_like(size(bed, "db-0"), target(bed, "follower")), "the demoted pod has a follower's size")
    assert uids(bed) == before, "all of it in place"
    assert target(bed, "follower")[0] < 0.3, "the work of the leader is not in the followers' history"
    said = bed.tandem("explain", "pod", "db-1", "-n", bed.ns)
    assert "by VPA leader" in said and "VPA follower: its selector role=follower does not match" in said, said

    bed.refused(vpa("third", "{matchExpressions: [{key: role, operator: In, values: [leader, witness]}]}"), "leader", "role=leader")


main()
