#!/usr/bin/env python3
"""Never: a crash or leak on any input. Every file of the fuzzers' corpora goes where its like comes in from outside: kubeconfigs, manifests,
scenarios and traces to the commands that read them, reviews to the webhook, everything to a controller as the answers of its API server.
Nothing dies by a signal, nothing is refused without a line, and after many cycles the process is as large as before. (The parsers alone see
the same files as corpus/* tests.)"""
from never import *

import glob
import http.server

CORPUS = os.path.join(TOP, "tests/fuzz/corpus")
CYCLES = 40
GROWTH_KIB = 1024  # of noise over the last half of the cycles


def files(*names):
    return sorted(path for name in names for path in glob.glob(os.path.join(CORPUS, name, "*")) if os.path.isfile(path))


def read(path):
    with open(path, "rb") as file:
        return file.read()


# ---- Files for commands ----

faults = []


def feed(args, is_spoken=True):
    done = subprocess.run([TANDEM, *args], capture_output=True, timeout=60 * SLOW, cwd=work, stdin=subprocess.DEVNULL)
    lines = done.stderr.decode(errors="replace").strip().split("\n")
    is_good = done.returncode in (0, 1, 2) and b"anitizer" not in done.stderr and (done.returncode != 2 or len(lines) == 1)
    if not is_good:
        faults.append((args, done.returncode, done.stderr[-500:]))


def feed_files():
    sources = {
        "kubeconfig": ["explain", "vpa", "web", "--kubeconfig"],
        "yaml": ["validate"],
        "vpa": ["validate"],
        "hpa": ["validate"],
        "hvpa": ["validate"],
        "json": ["validate"],
        "scenario": ["simulate", "--for", "1m", "-q"],
        "trace": ["replay"],
    }
    for name, args in sources.items():
        faults.clear()
        paths = files(name)[:: 3 if SANITIZER else 1]
        for path in paths:
            feed(args + [path])
        check("%d files of %s to tandem %s" % (len(paths), name, args[0]), paths and not faults, faults[:2])


# ---- Reviews, over and over ----


def feed_reviews():
    cluster = Cluster()
    cluster.deploy("web")
    cluster.vpa("web")
    run = Run(cluster, "--webhook-listen", "127.0.0.1:0", "--recommender-interval", "1s", "--updater-interval", "1s").await_start().await_ready()
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    url = re.search(r"webhook=(https://127.0.0.1:\d+)", run.output()).group(1)
    bodies = [read(path) for path in files("review", "vpa", "hpa", "hvpa", "json")]
    api, statuses, sizes = Api(url, context), set(), []
    for cycle in range(CYCLES // 4 if SANITIZER else CYCLES):
        for body in bodies:
            try:
                statuses.add(api.call("POST", "/", body.decode("latin-1").encode())[0])
            except (OSError, http.client.HTTPException):
                statuses.add(0)
        run.says("/metrics")
        sizes.append(run.rss_kib())
    check("%d reviews are answered" % (len(sizes) * len(bodies)), statuses <= {0, 200, 400, 413, 415}, "%s %s" % (statuses, run.tail()))
    half = sizes[len(sizes) // 2]
    is_flat = sizes[-1] - half <= GROWTH_KIB
    check("memory is flat after them", SANITIZER or is_flat, sizes)  # a sanitizer keeps what was freed, and tells of leaks at the end


# ---- Answers of an API server ----


class Answers(http.server.BaseHTTPRequestHandler):
    """The next file of the corpora for each request, whatever was asked."""

    protocol_version = "HTTP/1.1"
    bodies, asked = [], 0

    def answer(self):
        length = int(self.headers.get("Content-Length") or 0)
        self.rfile.read(length)
        number = Answers.asked = Answers.asked + 1
        body = Answers.bodies[number % len(Answers.bodies)]
        self.send_response((200, 200, 200, 201, 404, 409, 410, 429, 500, 503, 302, 101)[number % 12])
        self.send_header("Content-Type", ("application/json", "application/vnd.kubernetes.protobuf", "text/html", "\x7f")[number % 4])
        self.send_header("Retry-After", ("0", "-1", "x", "99999999999999999999")[number % 4])
        if number % 5:
            self.send_header("Content-Length", str(len(body) + (0, 0, 0, 7, 0)[number % 5]))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = do_HEAD = answer

    def handle(self):
        try:
            super().handle()
        except OSError:
            pass

    def log_message(self, *args):
        pass


def feed_answers():
    Answers.bodies = [read(path)[:20000] for path in files("json", "watch", "proto", "vpa", "hpa", "hvpa", "patch", "review")]
    Answers.bodies += [b'{"kind":"List","items":[%s]}' % body for body in Answers.bodies[::7]]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    path = os.path.join(work, "hostile")
    with open(path, "w") as file:
        rest = "contexts: [{name: a, context: {cluster: a, user: a}}]\ncurrent-context: a\nusers: [{name: a, user: {}}]\n"
        file.write("apiVersion: v1\nkind: Config\nclusters: [{name: a, cluster: {server: 'http://127.0.0.1:%d'}}]\n%s" % (server.server_port, rest))
    hosts = ["--recommender-interval", "1s", "--updater-interval", "1s", "--hvpa-sync-period", "1s", "--horizontal", "builtin", "--leader-elect"]
    run = Run(None, *hosts, "--kube-api-qps", "0", "--webhook-listen", "127.0.0.1:0", kubeconfig=path).await_start()
    began, sizes = time.monotonic(), []
    while time.monotonic() - began < 10 and run.is_alive():
        time.sleep(0.5)
        sizes.append(run.rss_kib())
    check("%d hostile answers do not end it" % Answers.asked, run.is_alive() and run.says("/healthz") == "ok" and Answers.asked > 20, run.tail())
    check("nor make it grow", SANITIZER or sizes[-1] - sizes[len(sizes) // 2] <= 2 * GROWTH_KIB, sizes)
    for args in (["explain", "vpa", "web"], ["recommend"]):
        feed(args + ["--kubeconfig", path])
    check("nor end those who only look", not faults, faults)
    run.end()
    server.shutdown()


together(feed_reviews, feed_answers)
feed_files()
finish()
