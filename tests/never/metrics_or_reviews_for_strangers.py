#!/usr/bin/env python3
"""Never: metrics, or an answer of the webhook, for a stranger where that was asked for. With --metrics-tls a page of metrics goes to tokens
whose user may get it; with --webhook-client-ca-file reviews are answered to holders of a certificate of that authority."""
from never import *

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
REVIEW = {
    "request": {
        "uid": "u",
        "dryRun": True,
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "operation": "CREATE",
        "namespace": "default",
        "object": {"metadata": {"annotations": {"tandem.dev/webhook-probe": "asked"}}},
    }
}


def token_of(name):
    cluster.post(ACCOUNTS, {"metadata": {"name": name}})
    return cluster.post("%s/%s/token" % (ACCOUNTS, name), {"spec": {}})["status"]["token"]


def blind():
    """TLS without a look at the certificate: who serves is not asked here."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def status_of(port, path, token=None, context=None, method="GET", body=None):
    headers = {"Authorization": "Bearer " + token} if token else {}
    try:
        return Api("https://127.0.0.1:%d" % port, context or blind(), headers).call(method, path, body)[0]
    except (OSError, http.client.HTTPException) as error:
        return type(error).__name__


cluster = Cluster()
reader, other = token_of("reader"), token_of("other")
cluster.post(RBAC + "/clusterroles", {"metadata": {"name": "metrics"}, "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]})
cluster.post(
    RBAC + "/clusterrolebindings",
    {
        "metadata": {"name": "metrics"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "metrics"},
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "default"}],
    },
)
run = Run(cluster, "--leader-elect", "--metrics-tls", "--webhook-listen", "127.0.0.1:0", "--webhook-client-ca-file", cluster.ca_path)
run.await_start()
check("probes need no token", soon(20 * SLOW, lambda: status_of(run.port, "/livez") == 200), status_of(run.port, "/livez"))
for path in ("/readyz", "/health-check", "/healthz"):
    check("nor does %s" % path, status_of(run.port, path) in (200, 503), status_of(run.port, path))
check("nothing is served without TLS", "the request was plain HTTP" in run.says("/metrics"), run.says("/metrics"))
for name, token, expected in (("nobody", None, 401), ("a token of nobody", "abc", 401), ("an account that may not", other, 403), ("one that may", reader, 200)):
    check("metrics for %s: %d" % (name, expected), status_of(run.port, "/metrics", token) == expected, status_of(run.port, "/metrics", token))
cluster.delete(RBAC + "/clusterrolebindings/metrics")
check("a right that is taken back is gone soon", soon(20 * SLOW, lambda: status_of(run.port, "/metrics", reader) == 403), run.tail())
cluster.delete(ACCOUNTS + "/reader")
check("and so is the account", soon(20 * SLOW, lambda: status_of(run.port, "/metrics", reader) == 401), run.tail())
check("no token is in the log", reader not in run.output() and other not in run.output())

port = int(re.search(r"webhook=https://127.0.0.1:(\d+)/", run.output()).group(1))
known = blind()
known.load_cert_chain(cluster.ca_path.replace("certificate-authority", "client-certificate"), cluster.ca_path.replace("certificate-authority", "client-key"))
check("a review of a stranger is not answered", status_of(port, "/", None, None, "POST", REVIEW) == 401, status_of(port, "/", None, None, "POST", REVIEW))
check("one of the API server's authority is", status_of(port, "/", None, known, "POST", REVIEW) == 200, status_of(port, "/", None, known, "POST", REVIEW))
finish()
