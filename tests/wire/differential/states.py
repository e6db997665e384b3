"""What is compared: the state of a namespace, the sequences of what controllers decided, and the events, each with names, uids and
times normalised. Generated names become the ordinal of their appearance."""

import collections
import json
import re

TIME = re.compile(r'"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"')
VERSION = re.compile(r'"resourceVersion": "\d+"')  # of the Jobs that a CronJob has made
REFUSED = re.compile(r'(Pod \\*"[a-z0-9-]+-)[a-z0-9]{5}(\\*" is )')  # a pod that never was: no other object has its name
DROPPED = ("managedFields", "resourceVersion", "uid", "creationTimestamp", "selfLink")
COMPARED = ("Pod", "ReplicationController", "ReplicaSet", "Deployment", "StatefulSet", "DaemonSet", "ControllerRevision", "Job",
            "CronJob", "PodDisruptionBudget", "ConfigMap", "PersistentVolumeClaim")
# While it rolls out a Deployment says one of these, and which one stays depends on which of two writes of the real controller wins.
ON_THE_WAY = ("NewReplicaSetCreated", "FoundNewReplicaSet", "ReplicaSetUpdated")
# What the last rollout ended with. It stays until the real controller sees progress by two statuses that it has written, so that it may
# stay through the next rollout, with the name of the ReplicaSet of the last, when so much happens at once that no status falls between:
# three new pods in the place of three old ones, say, or several pods that become ready.
ENDED = "NewReplicaSetAvailable"
RETRIED = ("Warning FailedScheduling", "Warning FailedCreate", "Normal NoPods", "Warning UnmanagedPods")
# Told only when two of the real programs meet: a conflict that is tried again, a pod that goes while the scheduler looks at it, a
# Job that its CronJob deleted a moment ago and has not seen go, a pod of a DaemonSet on a node whose label the scheduler sees later.
RACES = ("the object has been modified", "skip schedule deleting pod", "Active job went missing", "didn't satisfy plugin(s) [NodeAffinity]")
OBSERVING = ("ReplicationController", "ReplicaSet", "Deployment", "StatefulSet", "DaemonSet", "PodDisruptionBudget")


def controller_of(item):
    for owner in item["metadata"].get("ownerReferences", []):
        if owner.get("controller"):
            return owner
    return None


class Names:
    """Texts that differ between two runs of the same story, and what stands for them."""

    def __init__(self, log, alike=()):
        self.words = {word: "@" for word in alike}
        counts = collections.Counter()
        for kind, change, item in log:
            meta = item["metadata"]
            if change != "ADDED" or kind == "Event" or meta["uid"] in self.words:
                continue
            self.words[meta["uid"]] = f"uid-of-{kind}"
            owner = controller_of(item)
            labels = meta.get("labels", {})
            if kind == "ReplicaSet" and owner and "pod-template-hash" in labels:
                self.add(counts, owner["uid"], labels["pod-template-hash"])
            elif kind == "ControllerRevision" and owner:
                self.add(counts, owner["uid"], meta["name"].removeprefix(owner["name"] + "-"))
            elif kind == "Job" and owner:
                self.add(counts, owner["uid"], meta["name"].removeprefix(owner["name"] + "-"))
            elif "generateName" in meta and not (owner and owner["kind"] == "StatefulSet"):
                self.words[meta["name"]] = meta["generateName"] + "@"
        self.ordered = sorted(self.words, key=len, reverse=True)

    def add(self, counts, owner, word):
        counts[owner] += 1
        self.words[word] = f"#{counts[owner]}"

    def normal(self, text):
        for word in self.ordered:
            if word in text:
                text = text.replace(word, self.words[word])
        return VERSION.sub('"resourceVersion": "V"', TIME.sub('"T"', REFUSED.sub(r"\1@\2", text)))


def is_rolled_out(deployment):
    wanted, status = deployment["spec"].get("replicas", 1), deployment.get("status", {})
    return all(status.get(count, 0) == wanted for count in ("replicas", "updatedReplicas", "availableReplicas"))


def plain_reason(kind, item, condition):
    reason = condition.get("reason", "")
    is_under_way = kind == "Deployment" and reason == ENDED and not is_rolled_out(item)
    return "on the way" if reason in ON_THE_WAY or is_under_way else reason


def cleaned(kind, item):
    meta = {key: value for key, value in item["metadata"].items() if key not in DROPPED}
    item = {key: value for key, value in item.items() if key not in ("metadata", "apiVersion", "kind")}
    item["metadata"] = meta
    conditions = item.get("status", {}).get("conditions")
    if kind == "Deployment" and conditions:  # in the order in which they changed last
        plain = [(c, plain_reason(kind, item, c)) for c in conditions]
        plain = [{**c, "reason": reason, "message": ""} if reason in (ENDED, "on the way") else c for c, reason in plain]
        item["status"] = {**item["status"], "conditions": sorted(plain, key=lambda c: c["type"])}
    return item


def state_of(objects, names, is_rough):
    """(kind, text of the object) of everything in the namespace, sorted; and whether all controllers have seen the newest."""
    state, has_observed = [], True
    for (kind, name), item in objects.items():
        if kind not in COMPARED or name == "kube-root-ca.crt":
            continue
        generation = item["metadata"].get("generation", 0)
        if kind in OBSERVING and item.get("status", {}).get("observedGeneration", 0) != generation:
            has_observed = False
        item = cleaned(kind, item)
        if is_rough and kind == "ReplicaSet":  # how many times it was scaled
            item["metadata"].pop("generation")
            item["status"] = {key: value for key, value in item.get("status", {}).items() if key != "observedGeneration"}
        text = names.normal(json.dumps(item, sort_keys=True))
        state.append((kind, json.dumps(json.loads(text), sort_keys=True)))
    return sorted(state), has_observed


def events_of(objects, names):
    """How often each thing was said of each object."""
    found = collections.Counter()
    for (kind, _), item in objects.items():
        if kind == "Event":
            about = item["involvedObject"]
            line = " ".join((about["kind"], about.get("name", ""), item["type"], item["reason"]))
            found[names.normal(line), names.normal(item.get("message", ""))] += item.get("count") or 1
    return found


def events_said(events, real, is_rough):
    """Collapsed where the number or the order of events is the machine's: of what a client has combined only the total is known, and
    what is tried again until it works is "some". `real` are those of the real plane, whose client combines."""
    combined = {line for line, message in real if message.startswith("(combined")}
    said = collections.Counter()
    for (line, message), count in events.items():
        if any(word in message for word in RACES):
            continue
        if is_rough and line.endswith("ScalingReplicaSet"):
            said[line, "some"] = 1
        elif line.endswith(RETRIED):
            said[line, message.removeprefix("(combined from similar events): ")] = 1
        elif line in combined:
            said[line, "in all"] += count
        else:
            said[line, message] += count
    return said


def turns(values):
    """Of a sequence of numbers those where it turns round, and its ends."""
    return [v for i, v in enumerate(values) if i in (0, len(values) - 1) or (v - values[i - 1]) * (values[i + 1] - v) < 0]


def facets_of(kind, item):
    """What a controller decides about one object, by name."""
    status, owner = item.get("status", {}), controller_of(item)
    for condition in status.get("conditions", []):
        if owner and owner["kind"] == "DaemonSet" and condition.get("reason") == "Unschedulable":
            continue  # of RACES; where it stays the state has it
        yield "condition " + condition["type"], f"{condition['status']} {plain_reason(kind, item, condition)}"
    if kind == "ReplicaSet":
        yield "spec.replicas", item["spec"]["replicas"]
    if kind in ("StatefulSet", "DaemonSet", "Deployment"):
        yield "revision", item["metadata"].get("annotations", {}).get("deployment.kubernetes.io/revision", "")
    if owner:
        yield "controller", f"{owner['kind']} {owner['name']}"


def sequences_of(log, names, is_rough):
    """Of each object (kind and normalised name) the values of each facet in their order, without repetitions. Objects that
    cannot be told apart are counted. Of each controller the sequence of its live pods. Rough: of numbers only the turns."""
    histories = {}
    live, counts = {}, {}
    for kind, change, item in log:
        if kind not in COMPARED:
            continue
        meta = item["metadata"]
        key = kind, names.normal(meta["name"]), meta["uid"]
        history = histories.setdefault(key, {})
        if change != "DELETED" and "deletionTimestamp" not in meta:  # what is left to do to it is a race with its end
            for facet, value in facets_of(kind, item):
                value = names.normal(value) if isinstance(value, str) else value
                values = history.setdefault(facet, [])
                if not values or values[-1] != value:
                    values.append(value)
        owner = controller_of(item)
        if kind == "Pod" and owner:
            owner_name = names.normal(f"{owner['kind']} {owner['name']}")
            pods = live.setdefault(owner_name, set())
            is_live = change != "DELETED" and "deletionTimestamp" not in meta
            (pods.add if is_live else pods.discard)(meta["uid"])
            values = counts.setdefault(owner_name, [])
            if not values or values[-1] != len(pods):
                values.append(len(pods))
    found = collections.Counter()
    for (kind, name, _), history in histories.items():
        if is_rough and "spec.replicas" in history:
            history["spec.replicas"] = turns(history["spec.replicas"])
        found[f"{kind} {name}", json.dumps(history, sort_keys=True)] += 1
    for owner_name, values in counts.items():
        found["live pods of " + owner_name, json.dumps(turns(values) if is_rough else values)] += 1
    return found
