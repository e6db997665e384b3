#!/usr/bin/env python3
"""`tandem page` with a Prometheus: the day before the page began, the address from the flags of the controllers, and one that does not answer."""
import http.server
import json
import re
import threading
import time
import urllib.parse

import stories
from stories import Api, Page, equal, eventually, expect, open_view, story

GONE = ("web-5d4f7b9c88-aaaaa", "web-5d4f7b9c88-bbbbb")  # pods of Deployment web that are gone
TOKEN = "prometheus-token"
PEAK = 0.9  # cores, for one step


class Prometheus(http.server.BaseHTTPRequestHandler):
    """Answers range queries: two pods of the shop that used 100m and 300m, once 900m, and 200Mi, and asked for 500m and 256Mi."""
    asked = []

    def do_GET(self):
        query = dict(urllib.parse.parse_qsl(self.path.partition("?")[2]))
        Prometheus.asked.append((self.headers.get("Authorization"), query["query"]))
        start, end, step = (float(query[name]) for name in ("start", "end", "step"))
        times = [start + i * step for i in range(int((end - start) / step + 1.5))]
        is_cpu = "cpu" in query["query"]
        result = []
        for number, pod in enumerate(GONE):
            if "requests" in query["query"]:
                values = [0.5 if is_cpu else 256 << 20 for _ in times]
            elif is_cpu:
                values = [PEAK if number and int(at / step) % 100 == 50 else 0.3 if number else 0.1 for at in times]
            else:
                values = [200 << 20 for _ in times]
            result.append({"metric": {"namespace": "shop", "pod": pod, "container": "web"}, "values": [[at, str(value)] for at, value in zip(times, values)]})
        body = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def bed(stage):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Prometheus)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    stage.ends.callback(server.shutdown)
    stage.prometheus = f"http://127.0.0.1:{server.server_address[1]}"
    up = stage.start("up", "up", f"{stories.TOP}/examples/shop", "--listen", "127.0.0.1:0", "--kubeconfig", "shop.kubeconfig", "--page", "off")
    up.find(r"API +(https://\S+)")
    stage.api = Api(f"{stage.folder}/shop.kubeconfig", stage.folder)


def serve(stage, name, *args):
    page = stage.start(name, "page", "--kubeconfig", "shop.kubeconfig", "--no-open", "--listen", "127.0.0.1:0", *args)
    address = page.find(r"page +(http://\S+)")
    url, _, token = address.partition("/#token=")
    return address, Page(url, token)


def day_of_web(page):
    """The workload's history, once the day before is in it."""
    def look():
        history = page.get("workload", ns="shop", kind="Deployment", name="web", by="hvpa/web")["history"]
        expect(history.get("count", 0) > 1200, "points:", history.get("count", 0), page.get("cluster")["problems"])
        return history
    return eventually(look, 60)


@story("the day before the page is there, with the token of a file", fast=True)
def day_before(stage):
    with open(f"{stage.folder}/token", "w", encoding="ascii") as file:
        file.write(TOKEN + "\n")
    address, page = serve(stage, "given", "--prometheus-address", stage.prometheus, "--prometheus-bearer-token-file", "token")
    history = day_of_web(page)
    equal({header for header, _ in Prometheus.asked}, {f"Bearer {TOKEN}"}, "the token")
    known = [value for value in history["cpuMax"] if value is not None]
    expect(abs(max(known) - PEAK * 1000) < 2, "the peak of one step", max(known))
    middle = sorted(value for value in history["cpuP50"] if value is not None)[len(known) // 2]
    expect(abs(middle - 100) < 1, "the middle pod", middle)
    expect([round(value) for _, value in history["cpuRequest"][:1]] == [500], history["cpuRequest"][:2])
    expect(1 in {round(value / (200 << 20)) for value in history["memoryMax"] if value is not None}, "memory")
    expect(2 in history["replicas"], "pods that were seen")
    whole = page.get("cluster")["history"]
    expect(len(whole["times"]) > 250 and max(filter(None, whole["cpuUse"][:250])) == 1000, "the cluster's day", len(whole["times"]))
    expect(time.time() * 1000 - whole["times"][0] > 23 * 3600000, "it is shorter than a day")
    with stories.webdriver.Browser() as web:
        web.open(address)
        web.wait("return window.tandem && tandem.ready()", 30)
        open_view(web, page.url, "#/workload/shop/Deployment/web/hvpa%2Fweb")
        web.wait("return document.querySelectorAll('.plot').length >= 3")
        web.shot(f"{stage.shots}/history.png")
        equal(web.complaints(), [], "complaints")


@story("the address is found in the flags of the controllers that run in the cluster")
def found(stage):
    labels = {"app": "vpa-recommender"}
    container = {"name": "recommender", "image": "recommender", "args": ["--v=4", f"--prometheus-address={stage.prometheus}"]}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "vpa-recommender", "namespace": "default"},
            "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}}}
    status, answer = stage.api.call("POST", "/apis/apps/v1/namespaces/default/deployments", body)
    equal(status, 201, answer)
    eventually(lambda: stage.api.items("/api/v1/namespaces/default/pods?labelSelector=app%3Dvpa-recommender"))
    _, page = serve(stage, "found")
    day_of_web(page)


@story("one that does not answer is told, with the next step, and the page goes on")
def silent(stage):
    _, page = serve(stage, "silent", "--prometheus-address", "http://127.0.0.1:1")
    texts = eventually(lambda: [p["text"] for p in page.get("cluster")["problems"] if p["what"] == "Prometheus"], 60)
    expect(re.search(r"^no history: .*127\.0\.0\.1:1.*next: --prometheus-address", texts[0]), texts)
    expect(page.rows(), "no workloads")


if __name__ == "__main__":
    stories.main(bed)
