#!/usr/bin/env python3
"""Never: a secret in a log. Every kind of secret that the program is given or sees goes in, at the highest --v, on good days and on bad
ones (refused, unreadable, unreachable); then all that it ever said is searched for them: output, metrics, health pages, events,
explanations, statuses."""
from never import *

import functools
import http.server

said = {}  # where to text
secrets = {}  # name to text


def secret(name):
    secrets[name] = "hush%sx%s" % (len(secrets), base64.b16encode(os.urandom(12)).decode())
    return secrets[name]


def yaml_user(cluster, user, name):
    path = os.path.join(work, name)
    with open(path, "w") as file:
        where = "server: '%s', certificate-authority: '%s'" % (cluster.url, cluster.ca_path)
        file.write("apiVersion: v1\nkind: Config\nclusters: [{name: a, cluster: {%s}}]\n" % where)
        file.write("contexts: [{name: a, context: {cluster: a, user: a}}]\ncurrent-context: a\nusers:\n- name: a\n  user:\n%s\n" % user)
    return path


class Prometheus(http.server.BaseHTTPRequestHandler):
    """Refuses the first, breaks off the others in the middle."""

    asked = []

    def do_GET(self):
        Prometheus.asked.append(self.headers.get("Authorization", ""))
        self.send_response(401 if len(Prometheus.asked) % 2 else 500)
        self.send_header("Content-Length", "12")
        self.end_headers()
        self.wfile.write(b"no, go away\n")

    do_POST = do_GET

    def log_message(self, *args):
        pass


cluster = Cluster()
inner = secret("data of a Secret")
cluster.post("/api/v1/namespaces/default/secrets", {"metadata": {"name": "inner"}, "stringData": {"password": inner}})
cluster.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "robot"}})
bind = {"metadata": {"name": "robot"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}}
bind["subjects"] = [{"kind": "ServiceAccount", "name": "robot", "namespace": "default"}]
cluster.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", bind)
asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
token = cluster.post("/api/v1/namespaces/default/serviceaccounts/robot/token", asked)["status"]["token"]
secrets["bearer token"] = token
secrets["signature of the bearer token"] = token.split(".")[-1]

container = {"name": "app", "image": "nginx", "env": [{"name": "PASSWORD", "value": secret("environment of a pod")}]}
container["resources"] = {"requests": {"cpu": "100m", "memory": "100Mi"}}
cluster.deploy("web", containers=[container])
cluster.vpa("web")

# A good day: a token that works, a Prometheus that wants a password and a token.
prometheus = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Prometheus)
threading.Thread(target=prometheus.serve_forever, daemon=True).start()
address = "http://127.0.0.1:%d" % prometheus.server_port
good = yaml_user(cluster, "    token: %s" % token, "good")
common = ["--v", "10", "--recommender-interval", "1s", "--updater-interval", "1s", "--prometheus-address", address]
words = ["--username", "robot", "--password", secret("password by flag")]
runs = [
    Run(cluster, *common, *words, "--webhook-listen", "127.0.0.1:0", kubeconfig=good),
    Run(cluster, *common, "--prometheus-bearer-token", secret("token by flag"), "--controllers", "recommender", "--recommender-name", "second", "--logging-format", "json", kubeconfig=good),
]
for run in runs:
    run.await_start()
check("it works", soon(40 * SLOW, lambda: cluster.target("web", "cpu")), runs[0].tail())
check("Prometheus was asked with what it was given", soon(20 * SLOW, lambda: any(Prometheus.asked)), Prometheus.asked)
keys = soon(20 * SLOW, lambda: cluster.get("/api/v1/namespaces/kube-system/secrets/tandem-webhook-tls"))["data"]
for name, value in keys.items():
    if "key" in name.lower():
        secrets["webhook's " + name] = "".join(base64.b64decode(value).decode().split("\n")[1:3])[:60]
secrets["the administrator's key"] = "".join(base64.b64decode(cluster.data["client-key"]).decode().split("\n")[1:3])[:60]

# Bad days: refused, unreadable, wrong.
plugin = os.path.join(work, "plugin")
with open(plugin, "w") as file:
    status = '{"token": "%s"}' % secret("token of a plugin")
    file.write('#!/bin/sh\necho "%s" >&2\n' % "a plugin's own complaint")
    file.write("echo '{\"apiVersion\": \"client.authentication.k8s.io/v1\", \"kind\": \"ExecCredential\", \"status\": %s}'\n" % status)
os.chmod(plugin, 0o755)
plugin_user = "    exec: {apiVersion: client.authentication.k8s.io/v1, command: '%s', interactiveMode: Never, env: [{name: A, value: %s}]}" % (
    plugin,
    secret("environment of a plugin"),
)
bad_days = {
    "a token that is refused": "    token: %s" % secret("refused token"),
    "a password": "    username: robot\n    password: %s" % secret("password"),
    "a plugin": plugin_user,
    "a token that is a list": "    token: [%s]" % secret("token in a list"),
    "a token with an end of line": '    token: "%s\\nX-Evil: 1"' % secret("token with an end of line"),
    "a quote without an end": '    token: "%s' % secret("token without an end"),
    "a tab before it": "\ttoken: %s" % secret("token behind a tab"),
    "a key that is none": "    client-certificate-data: %s\n    client-key-data: %s"
    % (cluster.data["client-certificate"], base64.b64encode(secret("key that is none").encode()).decode()),
    "a key that is not even text": "    client-certificate-data: %s\n    client-key-data: '%s!'" % (cluster.data["client-certificate"], secret("broken key")),
    "an unknown field": "    tokken: %s" % secret("misspelt token"),
}
def live_through(name):
    path = yaml_user(cluster, bad_days[name], name.replace(" ", "-"))
    for args in (["explain", "vpa", "web"], ["run", "--v", "10", "--address", "127.0.0.1:0", "--controllers", "recommender"]):
        try:
            done = subprocess.run([TANDEM, *args, "--kubeconfig", path], capture_output=True, text=True, timeout=2 * SLOW, cwd=work)
            status, said["%s with %s" % (args[0], name)] = done.returncode, done.stdout + done.stderr
        except subprocess.TimeoutExpired as late:  # it goes on trying, as it should
            status, said["%s with %s" % (args[0], name)] = 0, ((late.stdout or b"") + (late.stderr or b"")).decode()
        check("%s with %s says something" % (args[0], name), status in (0, 1, 2), "%s %s" % (status, said["%s with %s" % (args[0], name)]))

together(*[functools.partial(live_through, name) for name in bad_days])
in_a_url = address.replace("//", "//robot:%s@" % secret("password in a URL"))
done = subprocess.run([TANDEM, "run", "--kubeconfig", good, "--prometheus-address", in_a_url], capture_output=True, text=True, timeout=60)
said["run with a password in a URL"] = done.stdout + done.stderr
check("a password in a URL is refused", done.returncode == 2, done)
for args in (["explain", "vpa", "web"], ["explain", "deploy", "web", "-o", "json"], ["recommend"], ["recommend", "-o", "yaml"], ["manifests"]):
    more = [] if args[0] == "manifests" else ["--kubeconfig", good]
    done = subprocess.run([TANDEM, *args, *more], capture_output=True, text=True, timeout=60 * SLOW, cwd=work)
    said[" ".join(args)] = done.stdout + done.stderr
for number, run in enumerate(runs):
    for page in ("/metrics", "/readyz", "/healthz", "/livez", "/health-check", "/nope"):
        said["run %d%s" % (number, page)] = run.says(page)
for path in ("/api/v1/events", "/apis/events.k8s.io/v1/events", VPAS, CHECKPOINTS, "/apis/coordination.k8s.io/v1/leases", MUTATING):
    said[path] = cluster.call("GET", path)[1]
for program in reversed(list(started)):
    program.end()
for program in started:
    said["output of %s" % program.path.rsplit("/", 1)[1]] = program.output()
check("much was said", sum(map(len, said.values())) > 20000, {name: len(text) for name, text in said.items()})

for name, value in secrets.items():
    forms = {value, base64.b64encode(value.encode()).decode().rstrip("=")}
    found = sorted(where for where, text in said.items() if any(form in text for form in forms))
    check("%s is nowhere" % name, not found, found)
prometheus.shutdown()
finish()
