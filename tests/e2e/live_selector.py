#!/usr/bin/env python3
"""Selector beside targetRef: several VPAs divide the pods of one workload, and no pod ever has two of them."""

import json
import re
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
    """Created while no webhook judges: the webhooks go with the program."""
    bed.programs[-1].stop()
    assert not bed.list("ValidatingWebhookConfiguration")
    bed.apply(text)
    bed.run()
    eventually(60, lambda: bed.list("ValidatingWebhookConfiguration"), "the webhook is back")


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



@story("a single leader among three is recreated: replicas are counted of the whole workload")
def lonely(bed):
    # The name of a pod is a label too, and one that outlives an eviction: the new pod is judged by its own labels.
    only = "{matchLabels: {statefulset.kubernetes.io/pod-name: db-0}}"
    others = "{matchExpressions: [{key: statefulset.kubernetes.io/pod-name, operator: NotIn, values: [db-0]}]}"
    database(bed)
    lead(bed, "db-0", "db-1", "db-2")
    before = uids(bed)
    bed.apply(vpa("leader", only, "Recreate") + vpa("others", others, "Off"))
    eventually(90, lambda: (now := uids(bed)) and len(now) == 3 and now["db-0"] != before["db-0"] and
               is_like(size(bed, "db-0"), target(bed, "leader")), "the leader was evicted and is reborn in its size")
    after = uids(bed)
    assert all(after[pod] == before[pod] and size(bed, pod) == (0.01, 50 * MI) for pod in ("db-1", "db-2")), "the others are as they were"
    note = bed.get("Pod", "db-0")["metadata"]["annotations"]["vpaUpdates"]
    assert "leader" in note, note


@story("two replicas are needed where two are asked for, counted of the whole workload")
def few(bed):
    database(bed)
    lead(bed, "db-0", "db-1", "db-2")
    before = uids(bed)
    text = vpa("leader", "{matchLabels: {statefulset.kubernetes.io/pod-name: db-0}}", "Recreate")
    bed.apply(text.replace("updateMode:", "minReplicas: 4, updateMode:"))
    eventually(60, lambda: target(bed, "leader")[0] >= 1.5, "a recommendation")
    steady(15, lambda: uids(bed) == before, "three replicas are less than four")
    bed.apply(text.replace("updateMode:", "minReplicas: 3, updateMode:"))
    eventually(60, lambda: uids(bed).get("db-0") not in (None, before["db-0"]), "three are enough, though one is selected")


def condition(bed, name, kind):
    rows = bed.get("VerticalPodAutoscaler", name).get("status", {}).get("conditions", [])
    return next((row for row in rows if row["type"] == kind), None)


ELECTED = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: db}
spec:
  replicas: 3
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers: [{name: app, image: app, resources: {requests: {cpu: 10m, memory: 50Mi}}}]
"""


@story("a pod that has its role from an election is not evicted: its replacement would not be selected")
def elected(bed):
    bed.apply(ELECTED)
    bed.running("app=db", 3)
    names = sorted(uids(bed))
    lead(bed, *names)
    before = uids(bed)
    text = vpa("leader", LEADER, "Recreate").replace("kind: StatefulSet", "kind: Deployment")
    bed.apply(text)
    blocked = lambda: condition(bed, "leader", "EvictionBlocked")
    eventually(90, lambda: (row := blocked()) and row["reason"] == "ReplacementNotSelected" and "role=leader" in row["message"], "it is said")
    steady(30, lambda: uids(bed) == before, "nothing is evicted")
    bed.apply(text.replace("Recreate", "InPlaceOrRecreate"))
    eventually(90, lambda: is_like(size(bed, names[0]), target(bed, "leader")), "where the mode lets it, it is resized")
    eventually(60, lambda: blocked() is None, "the condition goes")
    assert uids(bed) == before, "in place"


def follow(selector, said):
    """The selector as the hint of a refusal would have it: one key more, or another requirement on one."""
    hint = re.search(r"e\.g\. (\S+) (In|NotIn|Exists|DoesNotExist)(?: \(([^)]*)\))?( instead of)?", said)
    assert hint, said
    key, operator, values, instead = hint.groups()
    kept = [row for row in selector if not (instead and row["key"] == key)]
    return kept + [{"key": key, "operator": operator, **({"values": values.split(", ")} if values else {})}]


@story("the hint of a refusal works when it is followed")
def hints(bed):
    bed.apply(DATABASE + vpa("leader", LEADER, "Off"))
    for selector in ([{"key": "env", "operator": "In", "values": ["prod"]}],
                     [{"key": "role", "operator": "In", "values": ["leader", "witness"]}],
                     [{"key": "role", "operator": "Exists"}],
                     [{"key": "role", "operator": "NotIn", "values": ["follower"]}],
                     [{"key": "role", "operator": "In", "values": ["leader"]}]):
        said = bed.refused(vpa("third", json.dumps({"matchExpressions": selector}), "Off"), "leader")
        bed.apply(vpa("third", json.dumps({"matchExpressions": follow(selector, said)}), "Off"))
        bed.delete("VerticalPodAutoscaler", "third")


@story("what overlaps is refused with a witness, what is disjoint is accepted")
def judged(bed):
    expression = "{matchExpressions: [%s]}"
    exists = expression % "{key: role, operator: Exists}"
    absent = expression % "{key: role, operator: DoesNotExist}"
    bed.apply(DATABASE + vpa("leader", LEADER, "Off") + vpa("absent", absent, "Off"))
    rows = [
        # Case 1: without a selector, an empty one, empty parts of one.
        ("", ("leader", "catch-all")), ("{}", ("leader", "catch-all")), ("{matchLabels: {}, matchExpressions: []}", ("leader", "catch-all")),
        # Case 2: no key in common; both keys, and labels that both would select.
        ("{matchLabels: {env: prod}}", ("leader", "role", "env", "env=prod, role=leader")),
        # Common keys that can be satisfied.
        (LEADER, ("leader", "role=leader")),
        (expression % "{key: role, operator: In, values: [x, leader]}", ("leader", "role=leader")),
        (expression % "{key: role, operator: NotIn, values: [follower]}", ("leader", "absent", "role=leader")),
        (exists, ("leader", "role=leader")),
        ("{matchLabels: {role: leader, env: prod}}", ("leader", "env=prod, role=leader")),
        (expression % "{key: role, operator: NotIn, values: [leader]}", ("absent",)),
        # It can never match.
        ("{matchLabels: {role: a}, matchExpressions: [{key: role, operator: NotIn, values: [a]}]}", ("spec.selector", "role")),
        (expression % "{key: x, operator: Exists}, {key: x, operator: DoesNotExist}", ("spec.selector", "x")),
        # No selector at all.
        (expression % "{key: role, operator: Near, values: [a]}", ("spec.selector", "Near")),
        (expression % "{key: role, operator: In, values: []}", ("spec.selector",)),
        (expression % "{key: role, operator: Exists, values: [a]}", ("spec.selector",)),
    ]
    for selector, words in rows:
        bed.refused(vpa("third", selector, "Off"), *words)
    # Everything else that is disjoint by one key; other targets and other names of kinds are no siblings.
    bed.apply(vpa("follower", FOLLOWER, "Off") + vpa("env", "{matchLabels: {role: witness, env: prod}}", "Off") +
              vpa("rest", "{matchExpressions: [{key: role, operator: Exists}, {key: role, operator: NotIn, values: [leader, follower, witness]}]}", "Off") +
              vpa("other", "", "Off", target="another") + vpa("deployment", "", "Off").replace("StatefulSet", "Deployment"))
    # An edit is judged as a creation is; one of neither selector nor target is not.
    def edit(name, spec):
        return bed.patch("VerticalPodAutoscaler", name, {"spec": spec})
    for name, spec, words in [
            ("follower", {"selector": {"matchLabels": {"role": "leader"}}}, ("leader", "role=leader")),
            ("follower", {"selector": None}, ("catch-all",)),
            ("other", {"targetRef": {"name": "db"}}, ("catch-all",))]:
        try:
            edit(name, spec)
        except Refused as refusal:
            assert all(word in refusal.message for word in words), refusal.message
        else:
            raise AssertionError(f"{name} {spec} was accepted")
    edit("follower", {"selector": {"matchLabels": {"role": "follower"}, "matchExpressions": [{"key": "env", "operator": "Exists"}]}})
    edit("leader", {"updatePolicy": {"updateMode": "Initial"}})
    # A dry run is refused in the same words.
    try:
        body = bed.get("VerticalPodAutoscaler", "leader")
        body["metadata"] = {"name": "dry"}
        bed.create("VerticalPodAutoscaler", body, dry=True)
    except Refused as refusal:
        assert "role=leader" in refusal.message
    else:
        raise AssertionError("a dry run was accepted")
    # Files are judged in the same way before there is a cluster.
    code, said, wrong = bed.tandem("validate", "-", check=False, text=vpa("a", LEADER) + vpa("b", exists))
    assert code != 0 and "role=leader" in said + wrong, said + wrong


@story("past the webhook the younger of two says ConflictingSelector, and the elder keeps the pods")
def passed_by(bed):
    database(bed)
    lead(bed, "db-0", "db-1", "db-2")
    bed.apply(vpa("elder", LEADER, "Off") + vpa("follower", FOLLOWER, "Off"))
    time.sleep(1.1)  # ages are compared by creationTimestamp, which has seconds
    wide = "{matchExpressions: [{key: role, operator: In, values: [leader, witness]}]}"
    bypass(bed, vpa("a-younger", wide))
    before = uids(bed)
    said = eventually(60, lambda: bed.condition("VerticalPodAutoscaler", "a-younger", "ConflictingSelector"), "the younger says so")
    assert said["status"] == "True" and "elder" in said["message"] and "role=leader" in said["message"], said
    eventually(60, lambda: target(bed, "elder")[0] >= 1.5, "the elder learns")
    steady(20, lambda: uids(bed) == before and size(bed, "db-0") == (0.01, 50 * MI), "no VPA acts: the elder must not, the younger may not")
    assert not bed.recommendation("a-younger"), "the younger learns nothing of the elder's pods"
    assert not bed.condition("VerticalPodAutoscaler", "elder", "ConflictingSelector")
    told = eventually(30, lambda: bed.events("ConflictingSelector", "a-younger"), "an event")
    assert len(told) == 1 and told[0].get("count", 1) == 1 and "elder" in told[0]["message"], told
    explained = bed.tandem("explain", "pod", "db-0", "-n", bed.ns)
    assert "by VPA elder" in explained and "VPA a-younger: its selector matches too, but VPA elder is older" in explained, explained
    assert "ConflictingSelector" in bed.tandem("explain", "vpa", "a-younger", "-n", bed.ns)
    # Other edits of it are not blocked; a pod that only it matches is its own.
    bed.patch("VerticalPodAutoscaler", "a-younger", {"spec": {"updatePolicy": {"minReplicas": 1}}})
    bed.usage("db-2", "app", "1500m", "1200Mi")
    bed.patch("Pod", "db-2", {"metadata": {"labels": {"role": "witness"}}})
    eventually(90, lambda: size(bed, "db-2")[0] > 1, "it acts on a pod that is its alone")
    assert all(size(bed, pod) == (0.01, 50 * MI) for pod in ("db-0", "db-1"))
    # With the elder gone it takes over.
    bed.delete("VerticalPodAutoscaler", "elder")
    eventually(60, lambda: not bed.condition("VerticalPodAutoscaler", "a-younger", "ConflictingSelector"), "no conflict any more")
    eventually(90, lambda: size(bed, "db-0")[0] > 1, "and it acts")


@story("a VPA without a selector beside one with: the elder keeps what both match")
def catch_all(bed):
    database(bed)
    lead(bed, "db-0", "db-1", "db-2")
    bed.apply(vpa("all", "", "Off"))
    time.sleep(1.1)
    bypass(bed, vpa("leader", LEADER, "Recreate"))
    before = uids(bed)
    said = eventually(60, lambda: bed.condition("VerticalPodAutoscaler", "leader", "ConflictingSelector"), "the younger says so")
    assert "all" in said["message"] and "role=leader" in said["message"], said
    eventually(60, lambda: target(bed, "all")[0] > 0, "the elder learns")
    steady(15, lambda: uids(bed) == before, "no pod has two")
    assert not bed.condition("VerticalPodAutoscaler", "all", "ConflictingSelector")
    # Now the other is younger: it has what the elder does not select.
    bed.delete("VerticalPodAutoscaler", "all")
    bed.patch("VerticalPodAutoscaler", "leader", {"spec": {"updatePolicy": {"updateMode": "Off"}}})
    eventually(60, lambda: target(bed, "leader")[0] >= 1.5, "the leader's VPA learns now")
    bypass(bed, vpa("rest", "{}", "Off"))
    eventually(60, lambda: bed.condition("VerticalPodAutoscaler", "rest", "ConflictingSelector"), "the younger says so")
    eventually(60, lambda: 0 < target(bed, "rest")[0] < 0.3, "its history is of the followers alone")


@story("histories are of the VPA: a pod that moves there and back, an edited selector and a restart lose nothing")
def histories(bed):
    database(bed)
    lead(bed, "db-0", "db-1", "db-2")
    bed.apply(vpa("leader", LEADER, "Off") + vpa("follower", FOLLOWER, "Off"))
    eventually(60, lambda: target(bed, "leader")[0] >= 1.5 and 0 < target(bed, "follower")[0] < 0.3, "two recommendations")
    for leader, others in (("db-1", ("db-0", "db-2")), ("db-0", ("db-1", "db-2"))):
        lead(bed, leader, *others)
        eventually(30, lambda: f"by VPA leader" in bed.tandem("explain", "pod", leader, "-n", bed.ns), "the pod is the leader's")
        steady(11, lambda: target(bed, "leader")[0] >= 1.5 and target(bed, "follower")[0] < 0.3 and
               target(bed, "leader")[1] > 1000 * MI > target(bed, "follower")[1], "each history is of one role")
    # No pod is the leader: the recommendation stays, and waits for the next one.
    bed.patch("Pod", "db-0", {"metadata": {"labels": {"role": "none"}}})
    steady(11, lambda: target(bed, "leader")[0] >= 1.5, "what the leader needs is known without one")
    assert "by no VPA" in bed.tandem("explain", "pod", "db-0", "-n", bed.ns)
    # A selector that is edited keeps the history.
    bed.patch("VerticalPodAutoscaler", "leader", {"spec": {"selector": {"matchLabels": {"role": "primary"}}}})
    steady(11, lambda: target(bed, "leader")[0] >= 1.5, "an edit forgets nothing")
    bed.patch("Pod", "db-0", {"metadata": {"labels": {"role": "primary"}}})
    eventually(30, lambda: "by VPA leader" in bed.tandem("explain", "pod", "db-0", "-n", bed.ns), "the edited selector is in force")

    # One checkpoint for each VPA and container; a restart reads them.
    def checkpoints():
        return {row["spec"]["vpaObjectName"]: row for row in bed.list("VerticalPodAutoscalerCheckpoint")}
    eventually(60, lambda: set(checkpoints()) == {"leader", "follower"} and
               all(row["status"].get("totalSamplesCount", 0) > 0 for row in checkpoints().values()), "a checkpoint of each")
    known = {name: target(bed, name) for name in ("leader", "follower")}
    bed.programs[-1].stop()
    for name in known:
        bed.patch("VerticalPodAutoscaler", name, [{"op": "remove", "path": "/status"}], "json", "status")
    for pod in ("db-0", "db-1", "db-2"):
        bed.patch("Pod", pod, {"metadata": {"labels": {"role": "none"}}})
    bed.run()
    eventually(60, lambda: all(is_like(target(bed, name), known[name]) for name in known), "both profiles are back, apart, without a pod")


@story("pods that no VPA selects are left alone")
def unmanaged(bed):
    database(bed)
    lead(bed, "db-0", "db-1", "db-2")
    bed.apply(vpa("leader", LEADER) + vpa("canary", "{matchExpressions: [{key: role, operator: In, values: [canary]}]}"))
    bed.patch("Pod", "db-2", {"metadata": {"labels": {"role": None}}})
    before = uids(bed)
    eventually(90, lambda: size(bed, "db-0")[0] > 1, "the leader is acted on")
    steady(10, lambda: all(uids(bed)[pod] == before[pod] for pod in ("db-1", "db-2")), "the others are not")
    for pod in ("db-1", "db-2"):
        assert size(bed, pod) == (0.01, 50 * MI)
        said = bed.tandem("explain", "pod", pod, "-n", bed.ns)
        assert "by no VPA" in said and "VPA canary: its selector role in (canary) does not match" in said, said
        hint = {"db-1": "the selector role In (follower)", "db-2": "the selector role DoesNotExist"}[pod]
        assert f"create one with targetRef StatefulSet db and {hint}" in said, said
    assert not bed.recommendation("canary")
    # A pod that is born without a role is admitted as it is, though VPAs know better of leaders.
    bed.delete("Pod", "db-1")
    eventually(60, lambda: uids(bed).get("db-1") not in (None, before["db-1"]), "it is reborn")
    assert size(bed, "db-1") == (0.01, 50 * MI) and "vpaUpdates" not in bed.get("Pod", "db-1")["metadata"].get("annotations", {})


@story("a demotion is a shrink, and respects eviction requirements")
def demoted(bed):
    database(bed)
    lead(bed, "db-0", "db-1", "db-2")
    keeps = "updatePolicy: {evictionRequirements: [{resources: [cpu, memory], changeRequirement: TargetHigherThanRequests}], updateMode:"
    bed.apply(vpa("leader", LEADER) + vpa("follower", FOLLOWER, "Recreate").replace("updatePolicy: {updateMode:", keeps))
    eventually(90, lambda: is_like(size(bed, "db-0"), target(bed, "leader")), "the leader is sized")
    eventually(90, lambda: all(is_like(size(bed, pod), target(bed, "follower")) for pod in ("db-1", "db-2")), "the followers are sized")
    before = uids(bed)
    lead(bed, "db-1", "db-0", "db-2")
    eventually(60, lambda: is_like(size(bed, "db-1"), target(bed, "leader")), "the promoted pod grows")
    steady(15, lambda: uids(bed) == before, "the demoted one is not evicted to shrink")
    assert "TargetHigherThanRequests" in bed.tandem("explain", "vpa", "follower", "-n", bed.ns)
    bed.patch("VerticalPodAutoscaler", "follower", {"spec": {"updatePolicy": {"evictionRequirements": None}}})
    eventually(60, lambda: uids(bed).get("db-0") not in (None, before["db-0"]), "without the requirement it is")


@story("hot shards of a Deployment, by expressions over several keys")
def shards(bed):
    bed.apply("""
apiVersion: apps/v1
kind: Deployment
metadata: {name: shard}
spec:
  replicas: 4
  selector: {matchLabels: {app: shard}}
  template:
    metadata: {labels: {app: shard, load: normal}}
    spec:
      containers: [{name: app, image: app, resources: {requests: {cpu: 10m, memory: 50Mi}}}]
""")
    hot, *rest = [pod["metadata"]["name"] for pod in bed.running("app=shard", 4)]
    bed.usage(hot, "app", "2", "2Gi")
    bed.usage("shard-*", "app", "50m", "100Mi")  # of the rows that match a pod the first counts
    bed.patch("Pod", hot, {"metadata": {"labels": {"load": "high", "tenant": "noisy"}}})
    selector = "{matchExpressions: [{key: load, operator: %s, values: [high, extreme]}%s]}"
    text = vpa("hot", selector % ("In", ", {key: tenant, operator: Exists}")) + vpa("normal", selector % ("NotIn", ""))
    bed.apply(text.replace("kind: StatefulSet, name: db", "kind: Deployment, name: shard"))
    eventually(90, lambda: size(bed, hot)[0] >= 2 and size(bed, hot)[1] >= 2**31, "the hot shard is sized for its load")
    eventually(90, lambda: all(0.01 < size(bed, pod)[0] < 0.2 for pod in rest), "the others for theirs")
    assert {pod["metadata"]["name"] for pod in bed.pods("app=shard")} == {hot, *rest}, "in place"
    # One of its two keys is gone: no VPA has it, and it keeps its size.
    bed.patch("Pod", hot, {"metadata": {"labels": {"tenant": None}}})
    assert "by no VPA" in bed.tandem("explain", "pod", hot, "-n", bed.ns)
    steady(10, lambda: size(bed, hot)[0] >= 2, "it keeps its size")


@story("with the gate closed selectors are not looked at, and the elder of two VPAs has all pods")
def closed(bed):
    bed.programs[-1].stop()
    gated = bed.run("--feature-gates=HeterogeneousWorkloads=false", name="gated")
    database(bed)
    lead(bed, "db-0", "db-1", "db-2")
    bed.apply(vpa("a-elder", LEADER))
    time.sleep(1.1)
    bed.apply(vpa("b-younger", LEADER, "Off") + vpa("c-youngest", "", "Off"))
    # Each by the recommendation of its moment, which moves while the history is young.
    eventually(120, lambda: all(size(bed, pod)[0] > 0.02 for pod in ("db-0", "db-1", "db-2")), "the elder sizes pods that its selector does not match")
    for name in ("b-younger", "c-youngest"):
        said = eventually(60, lambda: bed.condition("VerticalPodAutoscaler", name, "ConflictingSelector"), "the younger says whose the pods are")
        assert "a-elder" in said["message"], said
    assert not bed.condition("VerticalPodAutoscaler", "a-elder", "ConflictingSelector")
    assert "spec.selector (HeterogeneousWorkloads)" in eventually(60, lambda: bed.condition("VerticalPodAutoscaler", "a-elder", "FeatureGateOff"), "a field that is not looked at")["message"]
    assert not bed.condition("VerticalPodAutoscaler", "c-youngest", "FeatureGateOff")
    assert "HeterogeneousWorkloads" in bed.tandem("explain", "vpa", "a-elder", "-n", bed.ns, "--feature-gates=HeterogeneousWorkloads=false")
    gated.stop()
    bed.run()
    eventually(60, lambda: bed.condition("VerticalPodAutoscaler", "b-younger", "ConflictingSelector"), "with the gate open there is one")


main()
