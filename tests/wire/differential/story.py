"""One story told to both planes: the same calls in the same order. After each step it waits until both have come to rest in the
same state; the next step is taken only then, so that what a controller decides depends on nothing but the story."""

import collections
import datetime
import json
import re
import threading
import time

from states import Names, events_of, events_said, sequences_of, state_of

QUIET_SECONDS = 1.2  # without a change, a plane has come to rest: twice the longest pause of a controller in the middle of its work
STUCK_SECONDS = 6.0  # at rest in different states for so long, they will not meet
STEP_SECONDS = 60.0
ROUNDS_MAX = 30
DIFF_LINES_MAX = 60
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
CLOCK = threading.Lock()


class Difference(Exception):
    """The planes went apart so far that the story cannot go on."""


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def is_ready(pod):
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod.get("status", {}).get("conditions", []))


def is_waiting(pod):
    return pod.get("status", {}).get("phase") == "Pending" and "nodeName" in pod["spec"]


def is_active(pod):
    return pod.get("status", {}).get("phase") not in ("Succeeded", "Failed") and "nodeName" in pod["spec"]


def flat(value, path=""):
    """A tree as a set of lines "path = value"."""
    if isinstance(value, dict) and value:
        return {line for key, one in value.items() for line in flat(one, f"{path}.{key}")}
    if isinstance(value, list) and value:
        return {line for number, one in enumerate(value) for line in flat(one, f"{path}[{number}]")}
    return {f"{path} = {json.dumps(value)}"}


def apart(real, ours):
    """What differs between two states, in lines: objects are paired with those that they resemble most."""
    left = list((collections.Counter(real) - collections.Counter(ours)).elements())
    right = list((collections.Counter(ours) - collections.Counter(real)).elements())
    found = []
    for kind, text in left:
        lines = flat(json.loads(text))
        near = sorted((len(lines ^ flat(json.loads(other))), other) for other_kind, other in right if other_kind == kind)
        name = json.loads(text)["metadata"]["name"]
        if not near:
            found += [f"{kind} {name}: only real"] + ["  real " + line for line in sorted(lines) if line.startswith(".status")]
            continue
        right.remove((kind, near[0][1]))
        other = flat(json.loads(near[0][1]))
        found += [f"{kind} {name}:"] + [f"  {'real' if line in lines else 'ours'} {line}" for line in sorted(lines ^ other)]
    for kind, text in right:
        found.append(f"{kind} {json.loads(text)['metadata']['name']}: only ours")
        found += ["  ours " + line for line in sorted(flat(json.loads(text))) if line.startswith(".status")]
    return found


class Story:
    def __init__(self, planes, name, listed):
        self.planes = planes
        self.name = name
        self.ns = "d-" + name
        self.listed = listed  # differences that are known: see run.py
        self.equal = 0
        self.differences = []
        self.met = set()  # of the listed ones
        self.steps = []
        self.probes = 0
        self.is_compared = False
        self.alike = ()  # names that are not told apart
        self.is_one_by_one = False  # in which pods become ready
        self.is_rough = False  # several pods become ready in one step while a rollout goes on: see states.turns


    # ---- Comparing ----

    def agree(self, what, ours, theirs):
        if ours == theirs:
            self.equal += 1
        else:
            self.differences.append(f"{self.name}: {what}:\n      real: {theirs}\n      ours: {ours}")

    def forgiven(self, text):
        for number, row in enumerate(self.listed):
            for pattern, replacement in row:
                text, count = re.subn(pattern, replacement, text)
                if count:
                    self.met.add(number)
        return text

    def snapshot(self, plane):
        objects, log, changed = plane.known(self.ns)
        names = Names(log, self.alike)
        state, has_observed = state_of(objects, names, self.is_rough)
        return [(kind, self.forgiven(text)) for kind, text in state], has_observed, changed

    def settle(self, what, quiet=QUIET_SECONDS, until=None, within=STEP_SECONDS):
        """Waits until both planes are at rest, and at the same place; `until` says of the objects of a plane that it is there. Rest on a
        busy machine may be a controller that has not had its turn: it counts when the controllers have answered a probe since."""
        begin = time.monotonic()
        self.steps.append(what)
        while True:
            shots = [self.snapshot(plane) for plane in self.planes]
            at = time.monotonic()
            rest = at - max(begin, *(shot[2] for shot in shots))
            is_there = all(until is None or until(plane.known(self.ns)[0]) for plane in self.planes)
            is_same = shots[0][0] == shots[1][0]
            is_settled = is_same and is_there and all(shot[1] for shot in shots) and rest >= quiet
            is_stuck = not is_settled and is_there and rest >= max(STUCK_SECONDS, quiet)
            if any(plane.failure for plane in self.planes):
                raise Difference("; ".join(str(plane.failure) for plane in self.planes))
            if (is_settled or is_stuck) and self.probed(at - rest):
                if is_settled:
                    self.equal += 1
                    return
                break
            if at - begin > within:
                break
            time.sleep(0.1)
        diff = apart(shots[0][0], shots[1][0])
        diff = "\n".join("      " + line for line in diff[:DIFF_LINES_MAX])
        self.differences.append(f"{self.name}: state after '{what}':\n{diff or '      not observed, or never there'}")

    def probed(self, since):
        """The controllers of both planes have answered, and nothing has changed since."""
        self.probes += 1
        for plane in self.planes:
            plane.probe(self.name, self.probes)
        return all(plane.known(self.ns)[2] <= since for plane in self.planes)

    # ---- Calls ----

    def call(self, method, kind, name="", body=None, sub="", content="application/json", query=""):
        """The same call on both planes; their answers must have the same code and, when it is an error, the same words."""
        answers = []
        for plane in self.planes:
            path = plane.path(kind, self.ns, name, sub) + query
            code, answer = plane.call(method, path, body, content)
            words = (answer.get("reason"), answer.get("message"), answer.get("details", {}).get("causes")) if code >= 400 else ()
            answers.append((code, words))
        self.agree(f"answer to {method} {kind} {name} {sub}", answers[1], answers[0])
        return answers[0][0]

    def create(self, *items):
        for item in items:
            self.call("POST", item["kind"], body=item)

    def patch(self, kind, name, patch, sub=""):
        return self.call("PATCH", kind, name, patch, sub, MERGE)

    def scale(self, kind, name, replicas):
        self.patch(kind, name, {"spec": {"replicas": replicas}}, "scale")

    def delete(self, kind, name, policy=None):
        self.call("DELETE", kind, name, {"propagationPolicy": policy} if policy else None)

    def image(self, kind, name, image):
        code = self.call("PATCH", kind, name, {"spec": {"template": {"spec": {"containers": [{"name": "app", "image": image}]}}}},
                         content=STRATEGIC)
        return code

    # ---- Pods: each plane has its own names, so a choice is made by order and by what a pod says ----

    def chosen(self, where=None, count=None):
        lists = []
        for plane in self.planes:
            pods = [pod for pod in plane.pods(self.ns) if where is None or where(pod)]
            lists.append(pods if count is None else pods[:count])
        self.agree("number of chosen pods", len(lists[1]), len(lists[0]))
        if len(lists[0]) != len(lists[1]):
            raise Difference("pods to choose differ")
        return list(zip(*lists))

    def each(self, pairs, action):
        for pair in pairs:
            codes = [action(plane, pod) for plane, pod in zip(self.planes, pair)]
            self.agree("answer about a pod", codes[1], codes[0])

    def put_status(self, pairs, status):
        def action(plane, pod):
            return plane.call("PATCH", plane.path("Pod", self.ns, pod["metadata"]["name"], "status"), {"status": status},
                              STRATEGIC)[0]
        self.each(pairs, action)

    def container(self, ready, state, restarts=0):
        return [{"name": "app", "image": "app", "imageID": "", "ready": ready, "started": ready, "restartCount": restarts, "state": state}]

    def ready(self, count=None, where=is_waiting, ago=0):
        """Pods run and are ready."""
        pairs = self.chosen(where, count)
        at = (datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=ago)).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.put_status(pairs, {
            "phase": "Running", "startTime": at,
            "conditions": [{"type": t, "status": "True", "lastTransitionTime": at} for t in ("Initialized", "Ready", "ContainersReady")],
            "containerStatuses": self.container(True, {"running": {"startedAt": at}})})
        return len(pairs)

    def unready(self, count=None, where=is_ready):
        pairs = self.chosen(where, count)
        self.put_status(pairs, {
            "conditions": [{"type": t, "status": "False", "lastTransitionTime": now()} for t in ("Ready", "ContainersReady")],
            "containerStatuses": self.container(False, {"running": {"startedAt": now()}})})

    def finish(self, code, count=None, where=is_active, conditions=()):
        """Pods end with that code."""
        pairs = self.chosen(where, count)
        at = now()
        word = "Completed" if code == 0 else "Error"
        self.put_status(pairs, {
            "phase": "Succeeded" if code == 0 else "Failed", "startTime": at,
            "conditions": [{"type": t, "status": "False", "reason": "PodCompleted", "lastTransitionTime": at}
                           for t in ("Ready", "ContainersReady")] + list(conditions),
            "containerStatuses": self.container(False, {"terminated": {"exitCode": code, "reason": word, "startedAt": at, "finishedAt": at}})})

    def label(self, pairs, labels=None, annotations=None):
        def action(plane, pod):
            return plane.call("PATCH", plane.path("Pod", self.ns, pod["metadata"]["name"]),
                              {"metadata": {"labels": labels or {}, "annotations": annotations or {}}}, MERGE)[0]
        self.each(pairs, action)

    def mark(self, where=None):
        """Pods get the labels mark=a, mark=b, ...: what happens to which can be told apart from now on."""
        for number, pair in enumerate(self.chosen(where)):
            self.label([pair], {"mark": chr(ord("a") + number)})

    def marked(self, mark):
        return self.chosen(lambda pod: pod["metadata"].get("labels", {}).get("mark") == mark)

    def delete_pods(self, pairs):
        self.each(pairs, lambda plane, pod: plane.call("DELETE", plane.path("Pod", self.ns, pod["metadata"]["name"]))[0])

    def evict(self, pairs):
        def action(plane, pod):
            name = pod["metadata"]["name"]
            body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": self.ns}}
            code, answer = plane.call("POST", plane.path("Pod", self.ns, name, "eviction"), body)
            return code, answer.get("reason"), answer.get("message"), answer.get("details", {}).get("causes")
        self.each(pairs, action)

    def roll(self, what):
        """Until nothing waits any more: pods that wait become ready, and everything comes to rest. One at a time if the story says so:
        of several a controller may see any part first, and takes another step for each."""
        for number in range(ROUNDS_MAX):
            self.settle(f"{what}, round {number}")
            if self.ready(1 if self.is_one_by_one else None) == 0:
                return
        raise Difference(f"{what}: does not end")

    # ---- What has no namespace, or needs the answer of an earlier call ----

    def call_node(self, name, patch):
        codes = [plane.call("PATCH", f"/api/v1/nodes/{name}", patch, MERGE)[0] for plane in self.planes]
        self.agree(f"answer about node {name}", codes[1], codes[0])

    def create_owned(self, owner, make):
        def body(plane):
            return make(plane.call("GET", plane.path("ConfigMap", self.ns, owner))[1])
        codes = [plane.call("POST", plane.path("ConfigMap", self.ns), body(plane))[0] for plane in self.planes]
        self.agree(f"answer about what {owner} owns", codes[1], codes[0])

    def delete_namespace(self):
        codes = [plane.call("DELETE", f"/api/v1/namespaces/{self.ns}")[0] for plane in self.planes]
        self.agree("answer to the deletion of the namespace", codes[1], codes[0])

    def namespace(self, what):
        """Phase and conditions of the namespace, which the real plane writes every few seconds."""
        texts = [None, None]
        end = time.monotonic() + STUCK_SECONDS
        while time.monotonic() < end and (texts[0] is None or texts[0] != texts[1]):
            for number, plane in enumerate(self.planes):
                status = plane.call("GET", f"/api/v1/namespaces/{self.ns}")[1].get("status", {})
                conditions = sorted((c["type"], c["status"], c["reason"], c["message"]) for c in status.get("conditions", []))
                texts[number] = status.get("phase"), conditions
            time.sleep(0.2)
        self.agree(f"namespace {what}", texts[1], texts[0])

    def minute(self):
        """Waits for a moment that is not too near to the next full minute, which would come at different steps."""
        while time.time() % 60 > 50 or time.time() % 60 < 1:
            time.sleep(0.2)

    def names(self, kind):
        """Of all objects of the kind, on both planes."""
        return {name for plane in self.planes for k, name in plane.known(self.ns)[0] if k == kind}

    # ---- The whole ----

    def tell(self, script):
        begin = time.monotonic()
        for plane in self.planes:
            code, answer = plane.call("POST", "/api/v1/namespaces", {"metadata": {"name": self.ns}})
            if code != 201:
                raise AssertionError(f"{plane.name}: namespace {self.ns}: {code} {answer}")
            plane.probe_start(self.name)
        # The service account comes a moment later, and pods need it.
        for plane in self.planes:
            while plane.call("GET", plane.path("ServiceAccount", self.ns, "default"))[0] != 200:
                time.sleep(0.05)
        try:
            script(self)
        except Difference as difference:
            self.differences.append(f"{self.name}: gave up after '{self.steps[-1:]}': {difference}")
        if not self.is_compared:
            self.compare_history()
        for plane in self.planes:
            plane.call("DELETE", f"/api/v1/namespaces/{self.ns}")
        self.seconds = time.monotonic() - begin

    def compare_history(self):
        """Sequences and events until now. A story that ends with a deletion calls it before: how far a controller gets while its
        object goes is a race, and only where it ends is decided."""
        self.is_compared = True
        found = []
        for plane in self.planes:
            objects, log, _ = plane.known(self.ns)
            names = Names(log, self.alike)
            found.append((sequences_of(log, names, self.is_rough), events_of(objects, names)))
        found = [(sequences, events_said(events, found[0][1], self.is_rough)) for sequences, events in found]
        for number, what in enumerate(("sequence", "event")):
            real, ours = (self.forgiven_all(what, side[number]) for side in found)
            for key in sorted(set(real) | set(ours)):
                if real.get(key) == ours.get(key):
                    self.equal += 1
                else:
                    self.differences.append(f"{self.name}: {key[0]}: {key[1]}: real {real.get(key, 0)}, ours {ours.get(key, 0)}")

    def forgiven_all(self, what, found):
        kept = collections.Counter()
        for (key, value), count in found.items():
            line = self.forgiven(f"{what} {key}: {value}")
            if line != "":
                kept[tuple(line.split(": ", 1))] += count
        return kept
