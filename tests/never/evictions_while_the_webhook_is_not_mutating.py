#!/usr/bin/env python3
"""Never: evictions while the webhook is not really mutating pods. It worked, then it is broken in one of the ways there are: within
25 s every VPA says so, and from then on not one pod is evicted, though all of them are wrong; mended, they are."""
from never import *

PROBE_PATH = "/api/v1/namespaces/kube-system/secrets/tandem-webhook-tls"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
REGISTRATION = MUTATING + "/tandem-outside-webhook-config"
OFTEN = ["--webhook-probe-interval", "3s"]  # the others show that the default is often enough
QUICK = ["--recommender-interval", "1s", "--updater-interval", "1s"]
NOTICED_S = 25
QUIET_S = 5  # five passes of the updater


def registration(cluster, url=None, bundle=None, labels=None):
    """What we would register ourselves, but for what is wrong with it."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}
    hook = {
        "name": "vpa.k8s.io",
        "clientConfig": {"url": url, "caBundle": bundle},
        "rules": [rule],
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Ignore",
        "objectSelector": {"matchLabels": labels} if labels else {},
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "tandem-outside-webhook-config"},
        "webhooks": [hook],
    }


def put(cluster, body):
    cluster.delete(REGISTRATION)
    cluster.post(MUTATING, body)


class Story:
    """A cluster of its own, with wrong pods but no VPA yet, and a webhook that works, registered by hand."""

    def __init__(self, name, *args):
        self.name, self.cluster = name, Cluster()
        self.cluster.deploy("web")
        self.cluster.deploy("db", replicas=2)
        self.run = Run(self.cluster, *QUICK, *args).await_start()

    def check(self, name, is_good, why=""):
        check("%s: %s" % (self.name, name), is_good, str(why) + ("" if is_good else self.run.tail()))

    def register(self):
        """Works, and is broken by what comes next."""
        secret = soon(20 * SLOW, lambda: self.cluster.get(PROBE_PATH))
        self.bundle = secret["data"]["caCert.pem"]
        url = soon(20 * SLOW, lambda: re.search(r"webhook=(https://\S+)", self.run.output()))
        self.url = url.group(1)
        self.right = registration(self.cluster, self.url, self.bundle)
        put(self.cluster, self.right)
        self.check("it works at first", soon(30 * SLOW, lambda: self.run.says("/readyz") == "ok"), self.run.says("/readyz"))

    def is_said(self, name):
        return self.cluster.condition(name, "WebhookNotMutating")

    def hold(self, breaks):
        """No pod is evicted while it is broken; `breaks` breaks it."""
        cluster, began = self.cluster, time.monotonic()
        before = {name: cluster.uids(name) for name in ("web", "db")}
        breaks()
        least = {"containerPolicies": [{"containerName": "*", "minAllowed": {"cpu": "500m"}}]}  # pods are wrong from the first second
        cluster.vpa("web", resourcePolicy=least)
        cluster.vpa("db", resourcePolicy=least)
        for name in ("web", "db"):
            said = soon(NOTICED_S * SLOW, lambda: self.is_said(name))
            took = time.monotonic() - began
            self.check("VPA %s says so within %d s" % (name, NOTICED_S), said and took <= NOTICED_S * SLOW, said)
        is_wanted = soon(40 * SLOW, lambda: cluster.target("web", "cpu") and cluster.target("db", "cpu"))
        self.check("there is something to do", is_wanted)
        time.sleep(QUIET_S)
        after = {name: cluster.uids(name) for name in ("web", "db")}
        self.check("not one eviction", before == after, "%s became %s" % (before, after))
        self.check("it is counted", "tandem_updater_skipped_passes_total{" in self.run.says("/metrics"))
        self.before = before

    def mend(self, mends, sizes=True):
        mends()
        cluster, first = self.cluster, self.before["web"]
        gone = soon(40 * SLOW, lambda: not first & cluster.uids("web"))
        self.check("mended, pods are evicted", gone, cluster.uids("web"))
        if sizes:
            asks = {
                pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] for pod in cluster.items(PODS + "?labelSelector=app%3Dweb")
            }
            self.check("and come back with their size", "100m" not in asks, asks)
        self.check("the VPA says it no more", soon(20 * SLOW, lambda: not self.is_said("web")), self.is_said("web"))


def by_hand(name, breaks, *args):
    story = Story(name, "--webhook-listen", "127.0.0.1:0", "--register-webhook=false", *args)
    story.register()
    story.hold(lambda: breaks(story))
    story.mend(lambda: put(story.cluster, story.right))


def not_mutating():
    by_hand("registered, but not for these pods", lambda s: put(s.cluster, registration(s.cluster, s.url, s.bundle, {"no": "body"})), *OFTEN)


def removed_for_good():
    by_hand("registration removed", lambda s: s.cluster.delete(REGISTRATION), *OFTEN)


def wrong_bundle():
    by_hand("wrong caBundle", lambda s: put(s.cluster, registration(s.cluster, s.url, s.cluster.data["certificate-authority"])), *OFTEN)


def endpoint_down():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        url = "https://127.0.0.1:%d" % listener.getsockname()[1]
    by_hand("endpoint down", lambda s: put(s.cluster, registration(s.cluster, url, s.bundle)))


def beat(cluster, is_fresh):
    now = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime(time.time() + (3600 if is_fresh else -3600)))
    path = LEASE + "/vpa-admission-controller"
    if not cluster.get(path):
        cluster.post(LEASE, {"metadata": {"name": "vpa-admission-controller"}, "spec": {}})
    cluster.patch(path, {"spec": {"holderIdentity": "somebody", "renewTime": now}})


def lease_stale():
    story = Story("lease stale", "--controllers", "recommender,updater", "--admission-controller-status-lease-timeout", "3s")
    beat(story.cluster, True)
    time.sleep(3)  # a lease that was only just made counts as fresh
    story.hold(lambda: beat(story.cluster, False))
    story.mend(lambda: beat(story.cluster, True), sizes=False)


def put_back():
    """Where we register ourselves, any change to it is undone."""
    story = Story("our registration", "--webhook-listen", "127.0.0.1:0")
    cluster = story.cluster
    story.check("it works at first", soon(30 * SLOW, lambda: story.run.says("/readyz") == "ok"), story.run.says("/readyz"))
    right = cluster.get(REGISTRATION)["webhooks"]

    def is_right():
        found = cluster.get(REGISTRATION)
        return found and found["webhooks"] == right

    cluster.delete(REGISTRATION)
    story.check("removed, it is put back", soon(NOTICED_S * SLOW, is_right), cluster.get(REGISTRATION))
    for what, wrong in (
        ("caBundle", [dict(right[0], clientConfig=dict(right[0]["clientConfig"], caBundle=cluster.data["certificate-authority"]))]),
        ("address", [dict(right[0], clientConfig=dict(right[0]["clientConfig"], url="https://127.0.0.1:1/"))]),
        ("selector", [dict(right[0], objectSelector={"matchLabels": {"no": "body"}})]),
    ):
        cluster.patch(REGISTRATION, {"webhooks": wrong})
        story.check("wrong %s, it is corrected" % what, soon(NOTICED_S * SLOW, is_right), cluster.get(REGISTRATION))


together(not_mutating, removed_for_good, wrong_bundle, endpoint_down, lease_stale, put_back)
finish()
