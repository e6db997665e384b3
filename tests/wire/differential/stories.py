"""The stories. Each is a function of a Story; its name is that of its namespace."""

import time

from story import is_active, is_ready, is_waiting

NODES = {"main": "main", "daemon-1": "daemon", "daemon-2": "daemon", "daemon-3": "none", "taint-1": "taint", "taint-2": "taint"}
STORIES = {}


def story(function):
    STORIES[function.__name__.replace("_", "-")] = function
    return function


# ---- Manifests ----

def template(pool="main", restart="Always", labels=None, **more):
    spec = {"terminationGracePeriodSeconds": 5, "automountServiceAccountToken": False, "restartPolicy": restart,
            "nodeSelector": {"pool": pool},
            "containers": [{"name": "app", "image": "one", "resources": {"requests": {"cpu": "10m", "memory": "10Mi"}}}]}
    spec.update(more)
    return {"metadata": {"labels": labels or {"app": "web"}}, "spec": spec}


def workload(kind, name="web", version="apps/v1", pod=None, **spec):
    body = {"selector": {"matchLabels": {"app": "web"}}, "template": pod or template()}
    body.update(spec)
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "labels": {"made": "here"}}, "spec": body}


def deployment(replicas=4, surge=None, unavailable=None, **spec):
    if surge is not None:
        spec["strategy"] = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    return workload("Deployment", replicas=replicas, **spec)


def job(name="work", pod=None, **spec):
    body = {"template": pod or template(restart="Never", labels={"app": "work"})}
    body.update(spec)
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": body}


def budget(**spec):
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec}}


def has(kind, count):
    """Of the objects of a plane: so many of that kind."""
    return lambda objects: sum(1 for k, _ in objects if k == kind) == count


def is_placed(objects):
    """All pods of a plane have a node."""
    return all("nodeName" in pod["spec"] for (kind, _), pod in objects.items() if kind == "Pod")


def condition(kind, name, wanted, status="True"):
    def check(objects):
        item = objects.get((kind, name), {})
        return any(c["type"] == wanted and c["status"] == status for c in item.get("status", {}).get("conditions", []))
    return check


# ---- Deployments ----

def rollout(s, surge, unavailable, replicas=4):
    s.create(deployment(replicas, surge, unavailable))
    s.roll("create")
    s.image("Deployment", "web", "two")
    s.roll("update")


@story
def deployment_quarter(s):
    s.is_one_by_one = True
    rollout(s, "25%", "25%")
    s.image("Deployment", "web", "one")  # back to the first: its ReplicaSet is taken again
    s.roll("back")
    s.scale("Deployment", "web", 7)
    s.roll("scale up")
    s.scale("Deployment", "web", 2)
    s.settle("scale down")
    s.compare_history()
    s.delete("Deployment", "web", "Background")
    s.settle("deleted", until=has("Pod", 0))


@story
def deployment_no_surge(s):
    rollout(s, 0, 1, 3)


@story
def deployment_one_surge(s):
    rollout(s, 1, 0, 3)
    s.image("Deployment", "web", "three")
    s.settle("third template")
    s.scale("Deployment", "web", 6)  # in the middle of a rollout: both ReplicaSets grow
    s.settle("scaled in the middle")
    s.roll("to the end")


@story
def deployment_many(s):
    s.is_rough = True
    rollout(s, "50%", "10%", 10)


@story
def deployment_recreate(s):
    s.create(deployment(3, strategy={"type": "Recreate"}))
    s.roll("create")
    s.image("Deployment", "web", "two")
    s.roll("update")


@story
def deployment_broken(s):
    s.create(deployment(3, 1, 1, progressDeadlineSeconds=10))
    s.roll("create")
    s.patch("Deployment", "web", {"spec": {"template": {"spec": {"containers": [
        {"name": "app", "image": "huge", "resources": {"requests": {"cpu": "5000"}}}]}}}})
    s.settle("too large")
    s.settle("deadline", until=lambda objects: any(
        c.get("reason") == "ProgressDeadlineExceeded" for c in objects["Deployment", "web"]["status"]["conditions"]))
    s.patch("Deployment", "web", {"spec": {"template": {"spec": {"containers": [
        {"name": "app", "image": "one", "resources": {"requests": {"cpu": "10m", "memory": "10Mi"}}}]}}}})
    s.roll("undo")


@story
def deployment_paused(s):
    s.create(deployment(2, 1, 0))
    s.roll("create")
    s.patch("Deployment", "web", {"spec": {"paused": True}})
    s.settle("paused")
    s.image("Deployment", "web", "two")
    s.settle("changed while paused")
    s.scale("Deployment", "web", 3)
    s.roll("scaled while paused")
    s.patch("Deployment", "web", {"spec": {"paused": False}})
    s.roll("resumed")


@story
def deployment_history(s):
    s.create(deployment(1, 1, 0, revisionHistoryLimit=1))
    s.roll("create")
    for image in ("two", "three", "four"):
        s.image("Deployment", "web", image)
        s.roll(image)
    s.patch("Deployment", "web", {"spec": {"revisionHistoryLimit": 0}})
    s.settle("no history")


@story
def deployment_min_ready(s):
    s.create(deployment(2, 1, 0, minReadySeconds=4))
    s.settle("create")
    s.ready()
    s.settle("ready", until=condition("Deployment", "web", "Available"))
    s.image("Deployment", "web", "two")
    s.settle("update")
    s.ready()
    s.settle("first is ready", quiet=5)
    s.ready()
    s.settle("second is ready", quiet=5)


@story
def deployment_pods_lost(s):
    s.create(deployment(3, 1, 1))
    s.roll("create")
    s.delete_pods(s.chosen(is_ready, 1))
    s.settle("a pod was deleted")
    s.ready()
    s.settle("and replaced")
    s.unready(2)
    s.settle("two are not ready")
    s.finish(1, 1)
    s.settle("one failed")
    s.roll("replaced again")
    s.label(s.chosen(is_ready, 1), {"app": "other"})
    s.settle("one was let go")
    s.roll("and replaced too")


@story
def deployment_orphaned(s):
    s.create(deployment(2, 1, 1))
    s.roll("create")
    s.delete("Deployment", "web", "Orphan")
    s.settle("deployment is gone, the rest stays")
    s.create(deployment(2, 1, 1))
    s.settle("adopted")
    s.compare_history()
    s.delete("Deployment", "web", "Foreground")
    s.settle("all is gone", until=has("Pod", 0))


# ---- ReplicaSets ----

@story
def replica_set_ranking(s):
    s.create(workload("ReplicaSet", replicas=6))
    s.settle("create")
    s.mark()
    s.ready(5, ago=3600)
    s.settle("five are ready")
    for mark, cost in (("a", "-10"), ("b", "10"), ("c", "5"), ("e", "1")):  # all different: among equal ones any may go
        s.label(s.marked(mark), annotations={"controller.kubernetes.io/pod-deletion-cost": cost})
    s.settle("costs")
    for replicas, gone in ((5, "not ready first"), (4, "cheapest first"), (3, "then without a cost"), (2, "then cost 1"), (1, "then cost 5")):
        s.scale("ReplicaSet", "web", replicas)
        s.settle(gone)
    s.scale("ReplicaSet", "web", 0)
    s.settle("none")


@story
def replica_set_youngest(s):
    s.create(workload("ReplicaSet", replicas=1))
    for replicas, ago in ((2, 86400), (3, 3600), (4, 0)):
        s.settle(f"{replicas - 1}")
        s.mark()
        s.ready(ago=ago)
        s.scale("ReplicaSet", "web", replicas)
    s.settle("four")
    s.mark()
    for replicas in (3, 2, 1):
        s.scale("ReplicaSet", "web", replicas)
        s.settle(f"down to {replicas}")


@story
def replica_set_adopts(s):
    pod = template()
    s.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "alone", "labels": {"app": "web"}}, "spec": pod["spec"]})
    s.settle("a pod without owner")
    s.create(workload("ReplicaSet", replicas=2))
    s.roll("adopted")
    s.patch("Pod", "alone", {"metadata": {"labels": {"app": "other"}}})
    s.roll("let go")
    s.delete("ReplicaSet", "web", "Orphan")
    s.settle("orphans")
    s.create(workload("ReplicaSet", "again", replicas=3))
    s.roll("adopted by another")
    s.compare_history()
    s.delete("ReplicaSet", "again", "Foreground")
    s.settle("gone", until=has("Pod", 1))


@story
def replica_set_quota(s):
    s.create({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "small"},
              "spec": {"limits": [{"type": "Container", "max": {"cpu": "5m"}}]}})
    time.sleep(1)  # the real plane knows limits from a cache
    s.create(workload("ReplicaSet", replicas=2))
    s.settle("refused", until=condition("ReplicaSet", "web", "ReplicaFailure"))
    s.call("DELETE", "LimitRange", "small")
    s.settle("possible again", until=has("Pod", 2))


@story
def replication_controller(s):
    item = workload("ReplicationController", version="v1", replicas=2)
    item["spec"]["selector"] = {"app": "web"}
    s.create(item)
    s.roll("create")
    s.scale("ReplicationController", "web", 4)
    s.roll("scale up")
    s.delete_pods(s.chosen(is_ready, 1))
    s.settle("one was deleted")
    s.scale("ReplicationController", "web", 1)
    s.settle("scale down")
    s.delete("ReplicationController", "web")
    s.settle("deleted")


# ---- StatefulSets ----

def stateful(replicas=3, **spec):
    return workload("StatefulSet", replicas=replicas, serviceName="web", **spec)


@story
def stateful_ordered(s):
    s.create(stateful())
    s.roll("create")
    s.scale("StatefulSet", "web", 5)
    s.roll("scale up")
    s.call("DELETE", "Pod", "web-1")
    s.settle("a pod was deleted")
    s.scale("StatefulSet", "web", 3)
    s.settle("scale down waits for the one that is not ready")
    s.roll("then goes on")
    s.image("StatefulSet", "web", "two")
    s.roll("update from the end")
    s.compare_history()
    s.delete("StatefulSet", "web", "Background")
    s.settle("deleted", until=has("Pod", 0))


@story
def stateful_parallel(s):
    s.create(stateful(4, podManagementPolicy="Parallel"))
    s.settle("create")
    s.ready(2)
    s.settle("two are ready")
    s.roll("all")
    s.call("DELETE", "Pod", "web-0")
    s.settle("one deleted")
    s.call("DELETE", "Pod", "web-2")
    s.settle("two deleted")
    s.scale("StatefulSet", "web", 6)
    s.settle("scale up while some wait")
    s.scale("StatefulSet", "web", 1)
    s.roll("scale down")


@story
def stateful_partition(s):
    s.create(stateful(4, updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}))
    s.roll("create")
    s.image("StatefulSet", "web", "two")
    s.roll("only from the partition on")
    s.call("DELETE", "Pod", "web-0")
    s.roll("below it the old one comes back")
    s.patch("StatefulSet", "web", {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})
    s.roll("the rest")
    s.patch("StatefulSet", "web", {"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}}})
    s.image("StatefulSet", "web", "three")
    s.settle("on delete: nothing happens")
    s.call("DELETE", "Pod", "web-3")
    s.roll("the deleted one is new")


@story
def stateful_stuck(s):
    s.create(stateful(2))
    s.roll("create")
    s.image("StatefulSet", "web", "two")
    s.settle("the last waits")
    s.image("StatefulSet", "web", "three")
    s.settle("a newer one replaces what waits not")
    s.roll("on")
    s.finish(1, where=lambda pod: pod["metadata"]["name"] == "web-0")
    s.roll("a failed pod is replaced")


@story
def stateful_start(s):
    s.create(stateful(2, ordinals={"start": 3}, minReadySeconds=3))
    s.settle("create")
    s.ready()
    s.settle("the second waits for the first", quiet=4)
    s.ready()
    s.settle("both", quiet=4)
    s.delete("StatefulSet", "web", "Orphan")
    s.settle("orphans")


@story
def stateful_claims(s):
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    s.create(stateful(2, podManagementPolicy="Parallel", volumeClaimTemplates=[claim], pod=template(schedulerName="nobody"),
                      persistentVolumeClaimRetentionPolicy={"whenDeleted": "Delete", "whenScaled": "Delete"}))
    s.settle("create")
    s.scale("StatefulSet", "web", 1)
    s.settle("scale down takes the claim along")
    s.compare_history()
    s.delete("StatefulSet", "web")
    s.settle("and deletion the other")


# ---- DaemonSets ----

@story
def daemon_nodes(s):
    s.alike = ("daemon-1", "daemon-2", "daemon-3")  # which of two nodes comes first is not determined
    s.create(workload("DaemonSet", pod=template("daemon")))
    s.roll("create")
    s.call_node("daemon-3", {"metadata": {"labels": {"pool": "daemon"}}})
    s.roll("a node is labelled in")
    s.call_node("daemon-1", {"metadata": {"labels": {"pool": "none"}}})
    s.settle("a node is labelled out")
    s.image("DaemonSet", "web", "two")
    s.roll("update, one by one")
    s.delete_pods(s.chosen(is_ready, 1))
    s.roll("one was deleted")
    s.finish(1, 1)
    s.settle("one failed", quiet=3)
    s.roll("and is replaced")
    s.call_node("daemon-3", {"metadata": {"labels": {"pool": "none"}}})
    s.call_node("daemon-1", {"metadata": {"labels": {"pool": "daemon"}}})
    s.roll("nodes as before")
    s.patch("DaemonSet", "web", {"spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}}})
    s.image("DaemonSet", "web", "three")
    s.roll("update with surge")
    s.patch("DaemonSet", "web", {"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}}})
    s.image("DaemonSet", "web", "four")
    s.settle("on delete: nothing happens")
    s.compare_history()
    s.delete("DaemonSet", "web", "Foreground")
    s.settle("deleted", until=has("Pod", 0))


# ---- Jobs ----

@story
def job_completions(s):
    s.create(job(completions=5, parallelism=2))
    s.settle("two run")
    s.ready()
    s.settle("ready")
    s.finish(0, 1)
    s.settle("one is done")
    s.finish(0)
    s.settle("two more")
    s.finish(0)
    s.settle("the last runs")
    s.finish(0)
    s.settle("complete", until=condition("Job", "work", "Complete"))


@story
def job_queue(s):
    s.create(job(parallelism=3))
    s.settle("three run")
    s.patch("Job", "work", {"spec": {"parallelism": 2}})
    s.settle("one less")
    s.finish(0, 1)
    s.settle("one is done, no new ones")
    s.finish(0)
    s.settle("complete", until=condition("Job", "work", "Complete"))


@story
def job_backoff(s):
    s.create(job(backoffLimit=1))
    s.settle("runs")
    s.finish(1)
    s.settle("failed once", until=lambda objects: has("Pod", 2)(objects))
    s.finish(1)
    s.settle("failed", until=condition("Job", "work", "Failed"))


@story
def job_indexed(s):
    s.create(job(completions=4, parallelism=3, completionMode="Indexed", backoffLimit=3))
    s.settle("runs")
    s.finish(0, where=lambda pod: is_active(pod) and pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] == "1")
    s.settle("index 1 is done")
    s.finish(1, where=lambda pod: is_active(pod) and pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] == "0")
    s.settle("index 0 failed", until=lambda objects: has("Pod", 5)(objects))
    s.finish(0)
    s.settle("complete", until=condition("Job", "work", "Complete"))


@story
def job_index_backoff(s):
    s.create(job(completions=3, parallelism=3, completionMode="Indexed", backoffLimitPerIndex=0, maxFailedIndexes=1))
    s.settle("runs")
    s.finish(1, where=lambda pod: pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] == "1")
    s.settle("index 1 failed for good")
    s.finish(0, where=lambda pod: is_active(pod) and pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] == "0")
    s.settle("index 0 is done")
    s.finish(0)
    s.settle("failed", until=condition("Job", "work", "Failed"))


@story
def job_too_many_indexes(s):
    s.create(job(completions=3, parallelism=3, completionMode="Indexed", backoffLimitPerIndex=0, maxFailedIndexes=1))
    s.settle("runs")
    s.finish(1, 2)
    s.settle("failed", until=condition("Job", "work", "Failed"))


@story
def job_index_retry(s):
    s.create(job(completions=2, parallelism=2, completionMode="Indexed", backoffLimitPerIndex=1))
    s.settle("runs")
    s.finish(1, 1)
    s.settle("tried again", until=has("Pod", 3))
    s.finish(0)
    s.settle("complete", until=condition("Job", "work", "Complete"))


@story
def job_success_policy(s):
    s.create(job(completions=3, parallelism=3, completionMode="Indexed",
                 successPolicy={"rules": [{"succeededIndexes": "0-1", "succeededCount": 1}]}))
    s.settle("runs")
    s.finish(0, where=lambda pod: pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] == "2")
    s.settle("not the one that counts")
    s.finish(0, where=lambda pod: is_active(pod) and pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] == "1")
    s.settle("complete", until=condition("Job", "work", "Complete"))


def policy(*rules):
    return {"podFailurePolicy": {"rules": list(rules)}}


def on_codes(action, operator, *codes):
    return {"action": action, "onExitCodes": {"operator": operator, "values": list(codes)}}


@story
def job_policy_fail(s):
    s.create(job(completions=2, parallelism=2, backoffLimit=6, **policy(on_codes("FailJob", "In", 42))))
    s.settle("runs")
    s.finish(42, 1)
    s.settle("failed at once", until=condition("Job", "work", "Failed"))


@story
def job_policy_ignore(s):
    disruption = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    s.create(job(backoffLimit=0, **policy(disruption, on_codes("Ignore", "In", 7))))
    s.settle("runs")
    s.finish(7)
    s.settle("ignored by its code", until=has("Pod", 2))
    s.finish(1, conditions=[{"type": "DisruptionTarget", "status": "True", "reason": "Test", "lastTransitionTime": "2026-01-01T00:00:00Z"}])
    s.settle("ignored by its condition", until=has("Pod", 3))
    s.finish(1)
    s.settle("failed", until=condition("Job", "work", "Failed"))


@story
def job_policy_index(s):
    s.create(job(completions=2, parallelism=2, completionMode="Indexed", backoffLimitPerIndex=3,
                 **policy(on_codes("FailIndex", "In", 9), on_codes("Count", "NotIn", 9))))
    s.settle("runs")
    s.finish(9, 1)
    s.settle("an index failed at once")
    s.finish(0)
    s.settle("failed", until=condition("Job", "work", "Failed"))


@story
def job_suspended(s):
    s.create(job(completions=3, parallelism=2, suspend=True))
    s.settle("suspended")
    s.patch("Job", "work", {"spec": {"suspend": False}})
    s.settle("resumed")
    s.finish(0, 1)
    s.settle("one is done")
    s.patch("Job", "work", {"spec": {"suspend": True}})
    s.settle("suspended again")
    s.patch("Job", "work", {"spec": {"suspend": False}})
    s.settle("resumed again")
    s.finish(0)
    s.settle("complete", until=condition("Job", "work", "Complete"))


@story
def job_deadline(s):
    s.create(job(activeDeadlineSeconds=4, parallelism=2, completions=2))
    s.settle("runs")
    s.settle("too long", until=condition("Job", "work", "Failed"))


@story
def job_expires(s):
    s.create(job(ttlSecondsAfterFinished=3))
    s.settle("runs")
    s.finish(0)
    s.settle("gone with its pods", until=has("Job", 0))


@story
def job_pod_deleted(s):
    s.create(job(backoffLimit=3))
    s.settle("runs")
    s.delete_pods(s.chosen(is_active))
    s.settle("replaced", until=lambda objects: len([1 for (k, _), o in objects.items() if k == "Pod"
                                                   and "deletionTimestamp" not in o["metadata"]]) == 1, quiet=3)
    s.delete("Job", "work", "Background")
    s.settle("deleted", until=has("Pod", 0))


@story
def job_deleted(s):
    s.create(job(parallelism=2, completions=2))
    s.settle("runs")
    s.delete("Job", "work")
    s.settle("pods stay, for that is how Jobs have always been", until=has("Job", 0))


@story
def job_deleted_orphan(s):
    s.create(job(parallelism=2, completions=2))
    s.settle("runs")
    s.delete("Job", "work", "Orphan")
    s.settle("pods stay", until=has("Job", 0))


@story
def job_replacement(s):
    s.create(job(backoffLimit=3, podReplacementPolicy="Failed"))
    s.settle("runs")
    s.finish(1)
    s.settle("replaced", until=has("Pod", 2))
    s.finish(0)
    s.settle("complete", until=condition("Job", "work", "Complete"))


def cron(**spec):
    body = {"schedule": "* * * * *", "jobTemplate": {"metadata": {"labels": {"tick": "yes"}}, "spec": job()["spec"]}}
    body.update(spec)
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "tick"}, "spec": body}


@story
def cron_job(s):
    s.minute()
    s.create(cron(successfulJobsHistoryLimit=0))
    s.create({**cron(suspend=True), "metadata": {"name": "asleep"}})
    s.create({**cron(timeZone="Etc/UTC", concurrencyPolicy="Forbid", jobTemplate={"spec": {**job()["spec"], "parallelism": 2}}),
              "metadata": {"name": "zone"}})
    s.settle("waits")
    s.settle("a minute", until=has("Job", 2), within=90)
    s.finish(0, where=lambda pod: pod["metadata"]["name"].startswith("tick"))
    s.settle("done and forgotten")
    s.compare_history()
    s.delete("CronJob", "tick", "Background")
    s.delete("CronJob", "zone", "Foreground")
    s.settle("deleted", until=has("Job", 0))


@story
def cron_job_replace(s):
    s.minute()
    s.create(cron(concurrencyPolicy="Replace"))
    s.settle("a minute", until=has("Job", 1), within=90)
    first = s.names("Job")
    s.settle("another: the first is replaced", within=90,
             until=lambda objects: has("Job", 1)(objects) and not any(("Job", name) in objects for name in first))


# ---- Budgets and evictions ----

@story
def budget_min_available(s):
    s.create(budget(minAvailable=2))
    s.settle("no pods")
    s.create(deployment(3, 1, 1))
    s.roll("pods")
    s.evict(s.chosen(is_ready, 1))
    s.settle("one was evicted")
    s.evict(s.chosen(is_ready, 1))
    s.settle("the second was refused")
    s.ready()
    s.settle("replaced")
    s.scale("Deployment", "web", 1)
    s.settle("less than allowed")
    s.evict(s.chosen(is_ready, 1))
    s.patch("PodDisruptionBudget", "web", {"spec": {"minAvailable": "50%"}})
    s.settle("a share")


@story
def budget_max_unavailable(s):
    s.create(deployment(4, 1, 1))
    s.settle("pods")
    s.create(budget(maxUnavailable="25%"))
    s.settle("nothing is ready")
    s.evict(s.chosen(is_waiting, 1))
    s.roll("pods")
    pairs = s.chosen(is_ready, 2)
    s.evict(pairs[:1])
    s.settle("one was evicted")
    s.evict(pairs[1:])
    s.patch("PodDisruptionBudget", "web", {"spec": {"maxUnavailable": 0}})
    s.roll("none any more")
    s.evict(s.chosen(is_ready, 1))
    s.patch("PodDisruptionBudget", "web", {"spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"}})
    s.unready(1)
    s.settle("one is not ready")
    s.evict(s.chosen(lambda pod: not is_ready(pod), 1))
    s.settle("and may be evicted")


@story
def budget_without_controller(s):
    for name in ("one", "two"):
        s.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "web"}}, "spec": template()["spec"]})
    s.create(budget(maxUnavailable=1))
    s.roll("cannot be judged")
    s.evict(s.chosen(is_ready, 1))
    s.patch("PodDisruptionBudget", "web", {"spec": {"maxUnavailable": None, "minAvailable": 1}})
    s.settle("can be judged")
    s.evict(s.chosen(is_ready, 1))
    s.settle("evicted")


# ---- Owners, namespaces, nodes ----

def owned(name, owner, blocks=False):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "ownerReferences": [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
         "blockOwnerDeletion": blocks}]}}


@story
def owners(s):
    for policy_name in ("Background", "Foreground", "Orphan"):
        top = policy_name.lower()
        s.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": top}})
        s.create_owned(top, lambda owner: owned(top + "-child", owner, True))
        s.create_owned(top + "-child", lambda owner: owned(top + "-grandchild", owner, True))
    s.settle("three families")
    s.delete("ConfigMap", "background", "Background")
    s.settle("background")
    s.delete("ConfigMap", "foreground", "Foreground")
    s.settle("foreground")
    s.delete("ConfigMap", "orphan", "Orphan")
    s.settle("orphan")
    s.create_owned("orphan-grandchild", lambda owner: owned("dangling", {"metadata": {
        "name": "nobody", "uid": "00000000-0000-4000-8000-000000000000"}}))
    s.settle("owned by a missing object", quiet=2.5)


@story
def namespace_deleted(s):
    s.create(deployment(2, 1, 1))
    s.roll("create")
    s.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held", "finalizers": ["example.com/hold"]}})
    s.settle("a finalizer")
    s.compare_history()
    s.delete_namespace()
    s.settle("terminating", until=lambda objects: has("Pod", 0)(objects) and has("Deployment", 0)(objects))
    s.namespace("while it terminates")
    s.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "late"}})
    s.patch("ConfigMap", "held", {"metadata": {"finalizers": None}})
    s.settle("empty", until=has("ConfigMap", 0))


@story
def taint_eviction(s):
    tolerant = [{"key": "away", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3}]
    always = [{"key": "away", "operator": "Exists", "effect": "NoExecute"}]
    s.create(workload("ReplicaSet", replicas=1, pod=template("taint", nodeSelector={"kubernetes.io/hostname": "taint-1"})))
    for name, tolerations in (("short", tolerant), ("long", always)):
        s.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
                  "spec": template("taint", nodeSelector={"kubernetes.io/hostname": "taint-1"}, tolerations=tolerations)["spec"]})
    s.roll("three pods")
    s.call_node("taint-1", {"spec": {"taints": [{"key": "away", "effect": "NoExecute", "value": "x"}]}})
    s.settle("evicted, replaced, nowhere to go; the tolerant one follows", until=lambda objects: ("Pod", "short") not in objects)
    s.call_node("taint-1", {"spec": {"taints": None}})
    s.settle("placed again", until=is_placed)  # the scheduler tries again when its patience, longer each time, is over
    s.roll("back")


@story
def unschedulable(s):
    s.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "nowhere"}, "spec": template(nodeSelector={"pool": "mars"})["spec"]})
    s.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "large"}, "spec": template(containers=[
        {"name": "app", "image": "one", "resources": {"requests": {"memory": "1Ti"}}}])["spec"]})
    s.settle("both wait")


@story
def resized(s):
    pod = template(containers=[{"name": "app", "image": "one", "resources": {
        "requests": {"cpu": "100m", "memory": "100Mi"}, "limits": {"cpu": "200m", "memory": "200Mi"}}}])
    s.create(workload("ReplicaSet", replicas=1, pod=pod))
    s.roll("create")
    s.each(s.chosen(is_ready), lambda plane, one: plane.call(
        "PATCH", plane.path("Pod", s.ns, one["metadata"]["name"], "resize"),
        {"spec": {"containers": [{"name": "app", "resources": {"requests": {"cpu": "150m"}}}]}},
        "application/strategic-merge-patch+json")[0])  # refused: a kubelet that says nothing of resources cannot resize
    given = pod["spec"]["containers"][0]["resources"]
    s.put_status(s.chosen(is_ready), {"containerStatuses": [
        {**s.container(True, {"running": {"startedAt": "2026-01-01T00:00:00Z"}})[0], "resources": given,
         "allocatedResources": given["requests"]}]})

    def resize(resources):
        def action(plane, one):
            code, answer = plane.call("PATCH", plane.path("Pod", s.ns, one["metadata"]["name"], "resize"), {"spec": {"containers": [
                {"name": "app", "resources": resources}]}}, "application/strategic-merge-patch+json")
            name = one["metadata"]["name"]
            return code, (answer.get("message", "").replace(name, "@") if code >= 400 else ""), answer.get("metadata", {}).get("generation")
        s.each(s.chosen(is_ready), action)

    resize({"requests": {"cpu": "150m"}})
    s.settle("more")
    resize({"requests": {"cpu": "150m"}})
    resize({"requests": {"memory": "50Mi"}, "limits": {"memory": "150Mi"}})
    s.settle("less memory")
    resize({"requests": {"cpu": "300m"}})
    resize({"requests": {"cpu": "200m", "memory": "150Mi"}})
    resize({"requests": {"cpu": "500"}, "limits": {"cpu": "500"}})
    resize({"requests": {"cpu": "-1"}})
    s.settle("refused")
