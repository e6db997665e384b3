#!/usr/bin/env python3
"""`tandem page`: who is let in. Its token, other origins, other hosts, other sites in the same browser, DNS rebinding."""
import http.server
import json
import re
import socket
import threading
import time

import stories
from stories import Page, equal, eventually, expect, open_view, story

EVIL = "evil.example"

# A page of another site that tries what such pages try.
ATTACK = """<!doctype html><meta charset=utf-8><title>other</title><body><script>
const base = decodeURIComponent(location.hash.slice(1)).split(' ')[0];
const token = decodeURIComponent(location.hash.slice(1)).split(' ')[1];
const results = {};
const attempt = async (name, run) => { try { results[name] = await run(); } catch (error) { results[name] = 'failed'; } };
(async () => {
  await attempt('read', async () => (await fetch(base + '/api/cluster', {headers: {Authorization: 'Bearer ' + token}})).status);
  await attempt('blind', async () => (await fetch(base + '/api/cluster', {mode: 'no-cors'})).type);
  await attempt('post', async () => (await fetch(base + '/api/whatif', {method: 'POST', mode: 'no-cors', body: '{}'})).type);
  await attempt('stream', () => new Promise((done) => { const s = new EventSource(base + '/api/stream'); s.onopen = () => done('open'); s.onerror = () => done('failed'); }));
  await attempt('script', () => new Promise((done) => { const e = document.createElement('script'); e.src = base + '/dygraph.min.js'; e.onload = () => done('loaded'); e.onerror = () => done('failed'); document.body.append(e); }));
  const frame = document.createElement('iframe');
  frame.src = base + '/';
  document.body.append(frame);
  await new Promise((done) => { frame.onload = done; setTimeout(done, 2000); });
  await attempt('frame', async () => (frame.contentDocument === null ? 'closed' : 'open'));
  window.results = results;
})();
</script>"""


class Other(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(ATTACK.encode())

    def log_message(self, *_):
        pass


def bed(stage):
    stage.up = stage.start("up", "up", f"{stories.TOP}/examples/shop", "--speed", "60", "--listen", "127.0.0.1:0", "--kubeconfig", "shop.kubeconfig", "--page", "off")
    stage.up.find(r"API +(https://\S+)")
    stage.tandem_page = stage.start("page", "page", "--kubeconfig", "shop.kubeconfig", "--no-open", "--listen", "127.0.0.1:0", "--price-cpu", "22")
    stage.address = stage.tandem_page.find(r"page +(http://\S+)")
    url, _, token = stage.address.partition("/#token=")
    expect(len(token) >= 32, "a short token", token)
    stage.page = Page(url, token)
    stage.web = stage.browser(args=[f"--host-resolver-rules=MAP {EVIL} 127.0.0.1"])


@story("the whole address opens the page of any cluster, and the token leaves the address", fast=True)
def whole_address(stage):
    web = stage.web
    web.open(stage.address)
    web.wait("return window.tandem && tandem.ready()", 30)
    expect("token" not in web.run("return location.href"), "the token is still in the address")
    open_view(web, stage.page.url, "#/workloads")
    eventually(lambda: len(web.run("return [...document.querySelectorAll('.rows tr[data-index]')].map((e) => e.textContent)")) >= 7, 30)
    for path in ("#/workload/shop/Deployment/web/hvpa%2Fweb", "#/workload/shop/Deployment/cache/vpa%2Fcache"):
        open_view(web, stage.page.url, path)
        web.wait("return document.querySelector('section[aria-label=Why]').dataset.ready !== undefined", 30)
        expect(web.run("return document.querySelectorAll('[data-explains]').length") > 0, path, "no account")
    expect(not web.run("return document.querySelector('#speeds').getClientRects().length"), "a clock that is not ours")
    expect(not web.run("return document.querySelector('.faults') !== null"), "faults of a cluster that is not ours")
    equal(web.complaints(), [], "complaints")
    strangers = [url for url in web.requests() if not url.startswith((stage.page.url, "data:"))]
    equal(strangers, [], "asked elsewhere")
    expect(all("token=" not in url.partition("#")[0] for url in web.requests()), "a token in a request's address")


@story("decisions, marks and hours are told by the cluster's Events")
def events(stage):
    def decided():
        rows = stage.page.rows()
        return any(row["decision"] for row in rows) and rows
    rows = eventually(decided, 60)
    row = next(row for row in rows if row["decision"])
    data = stage.page.get("workload", ns=row["ns"], kind=row["kind"], name=row["name"], by=row["by"])
    expect(data["marks"], row["name"], "has no mark")
    hours = stage.page.get("cluster")["hours"]
    expect(sum(hours["resizes"]) + sum(hours["evictions"]) + sum(hours["scalings"]) > 0, hours)


@story("a missing or wrong token is refused, and the page asks for it", fast=True)
def wrong_token(stage):
    for path in ("info", "cluster", "workloads", "workload?ns=shop", "explain?ns=shop&kind=vpa&name=cache", "yaml?ns=shop", "stream"):
        for header in ({}, {"Authorization": "Bearer"}, {"Authorization": "Bearer 0"}, {"Authorization": f"Bearer {stage.page.token}0"},
                       {"Authorization": f"bearer{stage.page.token}"}, {"Cookie": f"token={stage.page.token}"}):
            status, _, body = Page(stage.page.url).raw("GET", f"/api/{path}", header)
            equal(status, 401, path, header)
            expect(b"token" in body, body)
    with stories.webdriver.Browser() as web:
        web.open(stage.page.url + "/")
        web.wait("return document.querySelector('.login') !== null")
        expect("whole address" in web.text(".login"), web.text(".login"))
        web.type(".login input[name=token]", "wrong")
        web.press("Enter")
        time.sleep(1)
        web.wait("return document.querySelector('.login') !== null")
        web.run("document.querySelector('.login input[name=token]').value = ''")
        web.type(".login input[name=token]", stage.page.token)
        web.press("Enter")
        web.wait("return window.tandem && tandem.ready()")


@story("other hosts and origins are refused, with the right token too", fast=True)
def other_hosts(stage):
    place = stage.page.place
    port = place.rpartition(":")[2]
    for host in (EVIL, f"{EVIL}:{port}", f"127.0.0.1.{EVIL}:{port}", "0.0.0.0", socket.gethostname(), f"[::2]:{port}", ""):
        status, _, _ = stage.page.raw("GET", "/api/info", {"Host": host})
        expect(status in (400, 403), host, status)
    for origin in (f"http://{EVIL}", "null", "http://127.0.0.1", f"http://localhost:{port}", f"https://{place}", "file://"):
        status, _, _ = stage.page.raw("GET", "/api/info", {"Host": place, "Origin": origin})
        equal(status, 403, origin)
    for site in ("cross-site", "same-site"):
        status, _, _ = stage.page.raw("GET", "/api/info", {"Host": place, "Sec-Fetch-Site": site})
        equal(status, 403, site)
    status, headers, _ = stage.page.raw("GET", "/api/info", {"Host": place, "Origin": f"http://{place}", "Sec-Fetch-Site": "same-origin"})
    equal(status, 200)
    expect("Access-Control-Allow-Origin" not in headers, headers)


@story("a page of another site can neither read, post, stream, embed nor frame it")
def other_site(stage):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Other)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    web = stage.web
    try:
        for host in ("127.0.0.1", "localhost", EVIL):
            web.open("about:blank")
            web.open(f"http://{host}:{server.server_address[1]}/#{stage.page.url} {stage.page.token}")
            results = web.wait("return window.results", 30)
            # What is sent blindly is answered with a refusal that nobody can read.
            allowed = {"read": ("failed",), "blind": ("opaque", "failed"), "post": ("opaque", "failed"), "stream": ("failed",), "script": ("failed",), "frame": ("closed",)}
            for name, good in allowed.items():
                expect(results.get(name) in good, host, name, results)
            expect(web.run("return typeof window.Dygraph") == "undefined", "a script of the page ran there")
    finally:
        server.shutdown()
        web.complaints(), web.requests()


@story("a name that is made to lead here (DNS rebinding) gets nothing, not even files")
def rebinding(stage):
    web = stage.web
    port = stage.page.place.rpartition(":")[2]
    web.open(f"http://{EVIL}:{port}/#token={stage.page.token}")
    text = web.text("body")
    expect("another host or origin" in text, text)
    expect(not web.run("return Boolean(window.tandem)"), "the page runs under another name")
    web.complaints(), web.requests()


@story("it only reads: no request of the page changes the cluster")
def read_only(stage):
    status, _, body = stage.page.raw("POST", "/api/scenario", {"Content-Type": "application/json"}, json.dumps({"do": "load", "factor": 2}))
    equal(status, 404, body)
    for method in ("PUT", "DELETE", "PATCH"):
        status, _, _ = stage.page.raw(method, "/api/workloads", {"Content-Type": "application/json"}, "{}")
        equal(status, 405, method)


if __name__ == "__main__":
    stories.main(bed)
