#!/usr/bin/env python3
"""Names and texts of strangers stay text: a corpus of 100 injections in every text of every answer, and in the objects of a real cluster."""
import http.server
import json
import threading
import time

import stories
from stories import Api, Page, eventually, equal, expect, open_view, story

# What an injection would do if it became markup or code.
DOES = "window.__injected=(window.__injected||0)+1"


def corpus():
    """100 of them, each with its number in it."""
    shapes = [
        '<script>{do}</script>', '"><script>{do}</script>', "'><script>{do}</script>", '</script><script>{do}</script>', '</textarea><script>{do}</script>',
        '</title><script>{do}</script>', '</style><script>{do}</script>', '<img src=x onerror={do}>', '<img src=x onerror="{do}" data-injected>',
        '"><img src=x onerror={do}>', "' onmouseover='{do}' x='", '" onfocus="{do}" autofocus tabindex=1 x="', '<svg onload={do}>', '<svg/onload={do}>',
        '<svg><script>{do}</script></svg>', '<body onload={do}>', '<iframe srcdoc="<script>parent.{do}</script>">', '<iframe src="javascript:{do}">',
        '<a href="javascript:{do}" data-injected>x</a>', 'javascript:{do}', 'data:text/html,<script>{do}</script>', '<details open ontoggle={do}>',
        '<video><source onerror={do}></video>', '<audio src=x onerror={do}>', '<input onfocus={do} autofocus>', '<select onfocus={do} autofocus>',
        '<marquee onstart={do}>', '<object data="javascript:{do}">', '<embed src="javascript:{do}">', '<link rel=stylesheet href=/none.css data-injected>',
        '<style>@import "/none.css";</style>', '<style>*{{display:none}}</style>', '<base href=//none.example/>', '<meta http-equiv=refresh content="0;url=//none.example">',
        '<form action=//none.example><button data-injected>', '<math><mtext></mtext><script>{do}</script></math>', '<template><script>{do}</script></template>',
        '<!--<img src="--><img src=x onerror={do}>">', '<![CDATA[<script>{do}</script>]]>', '${{{do}}}', '{{{{{do}}}}}', '`;{do};`', "';{do};//", '";{do};//', '\\";{do};//',
        '\\u003cscript\\u003e{do}\\u003c/script\\u003e', '&lt;script&gt;{do}&lt;/script&gt;', '&#60;script&#62;{do}&#60;/script&#62;', '%3Cscript%3E{do}%3C/script%3E',
        '<scr\u0000ipt>{do}</script>', '\u202e<script>{do}</script>', '\ufeff<script>{do}</script>', '<ſcript>{do}</script>', '__proto__', 'constructor',
        '#/workloads/<script>{do}</script>', '../../../etc/passwd', '<p data-injected onclick={do}>', '<custom-element data-injected>', '<slot data-injected>',
    ]
    plain = [shape.format(do=DOES) for shape in shapes]
    upper = [text.replace("script", "ScRiPt").replace("img", "IMG").replace("svg", "SvG") for text in plain if "<" in text]
    return [f"{text} n{i}" for i, text in enumerate((plain + upper)[:100])]


INJECTIONS = corpus()
# Values that the page branches on, and numbers in texts.
KEPT = {"kind", "what", "charts", "columns", "topic", "by", "ns", "name", "container"}


class Proxy(http.server.BaseHTTPRequestHandler):
    """The page's server, with an injection behind every text of its answers."""
    protocol_version = "HTTP/1.1"
    page = None
    count = 0

    def spoil(self, tree, key=""):
        if isinstance(tree, dict):
            return {name: self.spoil(value, name) for name, value in tree.items()}
        if isinstance(tree, list):
            return [self.spoil(value, key) for value in tree]
        if isinstance(tree, str) and key not in self.kept:
            Proxy.count += 1
            return f"{tree} {INJECTIONS[Proxy.count % len(INJECTIONS)]}"
        return tree

    def serve(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.path.partition("?")[0]
        # The page's own names are spoilt where no later question is asked by them.
        self.kept = KEPT if path in ("/api/workloads",) else KEPT - {"container"} | ({"name"} if path == "/api/workload" else set())
        headers = {"Content-Type": self.headers["Content-Type"]} if body else {}
        if path == "/api/stream":
            status, given, answer = 200, {"Content-Type": "text/event-stream"}, b""
        else:
            status, given, answer = self.page.raw(self.command, self.path, headers, body or None)
        if path.startswith("/api/") and path != "/api/stream":
            tree = json.loads(answer)
            if path == "/api/workloads":
                at = [tree["columns"].index(name) for name in ("decision",)]
                for row in tree["rows"]:
                    for i in at:
                        row[i] = self.spoil(row[i])
                tree["rows"] += [[text, text, text, text, *tree["rows"][0][4:-2], text, False] for text in INJECTIONS]
            else:
                tree = self.spoil(tree)
            answer = json.dumps(tree).encode()
        self.send_response(status)
        for name, value in given.items():
            if name.lower() not in ("content-length", "connection", "date", "transfer-encoding"):
                self.send_header(name, value)
        if path == "/api/stream":
            self.send_header("Connection", "close")
            self.end_headers()
            try:
                for version in range(1, 3):
                    self.wfile.write(f'event: tick\ndata: {{"now":1,"version":{version},"speed":1,"workloads":1}}\n\n'.encode())
                    self.wfile.flush()
                    time.sleep(1)
                while True:
                    self.wfile.write(b":\n\n")
                    self.wfile.flush()
                    time.sleep(0.3)
            except OSError:
                return
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST = serve

    def log_message(self, *_):
        pass


def bed(stage):
    equal(len(INJECTIONS), 100, "injections")
    equal(len(set(INJECTIONS)), 100, "different ones")
    stage.up = stage.start("up", "up", f"{stories.TOP}/examples/shop", "--speed", "600", "--listen", "127.0.0.1:0", "--kubeconfig", "shop.kubeconfig",
                           "--page", "127.0.0.1:0", "--price-cpu", "22")
    stage.page = Page(stage.up.find(r"page +(http://127\.0\.0\.1:\d+)"))
    stage.api = Api(f"{stage.folder}/shop.kubeconfig", stage.folder)
    stage.web = stage.browser()
    eventually(lambda: len(stage.page.get("cluster")["history"]["times"]) > 60, 60)


def nothing_ran(web, where):
    found = web.run("""
        const strange = document.querySelectorAll('[data-injected], #main script, #main img, iframe, object, embed, video, audio, base, #main form, marquee, #main style, #main link, template');
        return {ran: window.__injected || 0, strange: [...strange].map((e) => e.outerHTML.slice(0, 100)), proto: ({}).polluted === undefined}""")
    equal(found, {"ran": 0, "strange": [], "proto": True}, where)
    # A question with a name or mode that there is not is refused, which a browser notes.
    is_refusal = lambda text: "Failed to load resource" in text and ("status of 404" in text or "status of 400" in text)  # noqa: E731
    equal([text for text in web.complaints() if not is_refusal(text)], [], where, "complaints")


@story("an injection behind every text of every answer is shown as text")
def every_text(stage):
    Proxy.page = stage.page
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    web = stage.web
    try:
        url = f"http://127.0.0.1:{server.server_address[1]}"
        web.open(url + "/")
        web.wait("return window.tandem && tandem.ready()")
        nothing_ran(web, "cluster")
        expect("window.__injected" in web.text("body"), "no injection is to be seen")
        open_view(web, url, "#/workloads")
        nothing_ran(web, "workloads")
        # Every one of the hundred names is a row, and opens a view of its own.
        missing = web.run("""
            const filter = document.getElementById('filter');
            return arguments[0].filter((text) => {
              filter.value = text.split(' ').pop();
              filter.dispatchEvent(new Event('input'));
              return ![...document.querySelectorAll('.rows tr[data-index] a')].some((a) => a.textContent.includes(text.slice(0, 10)));
            })""", INJECTIONS)
        equal(missing, [], "not shown")
        web.run("const f = document.getElementById('filter'); f.value = ''; f.dispatchEvent(new Event('input'))")
        for text in INJECTIONS[::9]:
            web.run("location.hash = arguments[0]", "#/workload/" + "/".join([stories.urllib.parse.quote(text, safe="")] * 4))
            web.wait("return document.querySelector('#main .problem') !== null")
            nothing_ran(web, text)
        for row in stage.page.rows():
            open_view(web, url, stories.hash_of(row))
            web.wait("return document.querySelector('section[aria-label=Why]').dataset.ready !== undefined")
            web.run("document.querySelectorAll('details').forEach((d) => { d.open = true; }); document.querySelector('.said')?.click(); document.querySelector('.plot-mark')?.focus()")
            web.wait("return document.querySelector('.yamls pre, .yamls .problem')")
            nothing_ran(web, row["name"])
    finally:
        server.shutdown()
    expect(Proxy.count >= 300, Proxy.count, "texts")
    return f"{Proxy.count} texts"


@story("annotations, events, conditions, targets and metric names of a cluster are shown as text")
def objects(stage):
    api = stage.api
    ns = "/namespaces/shop/"
    made = refused = 0
    # Alive, so that their status is written by us alone.
    for i, text in enumerate(INJECTIONS):
        name = f"hostile-{i}"
        vpa = {"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler", "metadata": {"name": name, "annotations": {"note": text}},
               "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "worker" if i % 2 else text}, "recommenders": [{"name": "nobody"}],
                        "updatePolicy": {"updateMode": "Off"}}}
        status, answer = api.call("POST", f"/apis/autoscaling.k8s.io/v1{ns}verticalpodautoscalers", vpa)
        made, refused = made + (status == 201), refused + (status != 201)
        if status == 201:
            answer["status"] = {"conditions": [{"type": "ConfigUnsupported", "status": "True", "reason": "x", "message": text, "lastTransitionTime": "2026-01-01T00:00:00Z"}],
                                "recommendation": {"containerRecommendations": [{"containerName": "worker", "target": {"cpu": "100m", "memory": "100Mi"}}]}}
            status, _ = api.call("PUT", f"/apis/autoscaling.k8s.io/v1{ns}verticalpodautoscalers/{name}/status", answer)
        event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": f"{name}.1"}, "involvedObject": {"kind": "Deployment", "namespace": "shop", "name": "worker", "apiVersion": "apps/v1"},
                 "reason": "EvictionBlocked", "message": text, "type": "Warning", "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z", "count": 1}
        status, _ = api.call("POST", f"/api/v1{ns}events", event)
        made, refused = made + (status == 201), refused + (status != 201)
    hpa = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "hostile"},
           "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "worker"}, "maxReplicas": 3,
                    "metrics": [{"type": "External", "external": {"metric": {"name": text}, "target": {"type": "Value", "value": "1"}}} for text in INJECTIONS[:30]]}}
    status, _ = api.call("POST", f"/apis/autoscaling/v2{ns}horizontalpodautoscalers", hpa)
    made, refused = made + (status == 201), refused + (status != 201)
    expect(made > 100, made, "made,", refused, "refused")
    web = stage.web
    web.open(stage.page.url + "/")
    web.wait("return window.tandem && tandem.ready()")
    time.sleep(3)
    open_view(web, stage.page.url, "#/cluster")
    web.wait("return document.querySelector('.problems')?.textContent.includes('window.__injected')", 30)
    nothing_ran(web, "cluster")
    open_view(web, stage.page.url, "#/workloads")
    nothing_ran(web, "workloads")
    for row in stage.page.rows():
        if row["name"] == "worker":
            open_view(web, stage.page.url, stories.hash_of(row))
            web.wait("return document.querySelector('section[aria-label=Why]').dataset.ready !== undefined", 30)
            web.run("document.querySelectorAll('details').forEach((d) => { d.open = true; }); document.querySelector('.said')?.click()")
            time.sleep(1)
            nothing_ran(web, row["by"])
    return f"{made} objects, {refused} more refused by the API server"


if __name__ == "__main__":
    stories.main(bed)
