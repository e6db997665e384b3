#!/usr/bin/env python3
"""The page of the example shop: each view, its numbers against the API server's and explain's, keys, sizes, colours, faults."""
import decimal
import json
import math
import re
import shlex
import sys
import time

import stories
from stories import Api, Page, eventually, equal, expect, hash_of, open_view, story

GI = 2 ** 30


def bed(stage):
    stage.up = stage.start("up", "up", f"{stories.TOP}/examples/shop", "--speed", "600", "--listen", "127.0.0.1:0", "--kubeconfig", "shop.kubeconfig",
                           "--page", "127.0.0.1:0", "--price-cpu", "22", "--price-memory", "3")
    url = stage.up.find(r"page +(http://127\.0\.0\.1:\d+)")
    stage.page = Page(url)
    stage.kubeconfig = f"{stage.folder}/shop.kubeconfig"
    stage.api = Api(stage.kubeconfig, stage.folder)
    stage.web = stage.browser()
    stage.web.open(url + "/")
    stage.web.wait("return window.tandem && tandem.ready()")
    # Some hours of the shop: a resize, a scaling and an OOM kill are among them.
    hours = 1 if stage.is_fast else 5
    eventually(lambda: len(stage.page.get("cluster")["history"]["times"]) > hours * 60, 120)
    stage.page.order(do="clock", speed=0)
    time.sleep(2.5)  # what is on its way arrives, and the metrics of now


# ---- Numbers as the page writes them ----

def trim(number, digits):
    text = str(decimal.Decimal(number).quantize(decimal.Decimal(1).scaleb(-digits), decimal.ROUND_HALF_UP))  # as toFixed() does
    return text.rstrip("0").rstrip(".") if "." in text else text


def cpu_text(milli):
    if milli == 0:
        return "0"
    return trim(milli / 1000, 2) if milli >= 1000 else trim(milli, 1 if milli < 10 else 0) + "m"


def memory_text(amount):
    if amount == 0:
        return "0"
    units = ["", "Ki", "Mi", "Gi", "Ti"]
    place = 0
    while amount >= 1000 and place < len(units) - 1:
        amount /= 1024
        place += 1
    return trim(amount, 2 if amount < 10 and place > 0 else 1 if amount < 100 and place > 2 else 0) + units[place]


def money_text(value):
    return str(int(value + 0.5)) if value >= 100 else f"{value:.2f}"


SUFFIXES = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1, "k": 1e3, "M": 1e6, "G": 1e9, "Ki": 2 ** 10, "Mi": 2 ** 20, "Gi": 2 ** 30, "Ti": 2 ** 40}


def quantity(text):
    number, suffix = re.fullmatch(r"([0-9.]+)([a-zA-Z]*)", text).groups()
    return float(number) * SUFFIXES[suffix]


# ---- What the API server says ----

class Cluster:
    """Pods by the workload that they belong to, what they ask for and use; autoscalers."""

    def __init__(self, api):
        self.pods = {}
        owners = {}
        for kind, path in (("ReplicaSet", "/apis/apps/v1/replicasets"), ("Job", "/apis/batch/v1/jobs")):
            for item in api.items(path):
                above = (item["metadata"].get("ownerReferences") or [None])[0]
                owners[kind, item["metadata"]["namespace"], item["metadata"]["name"]] = (above["kind"], above["name"]) if above else None
        use = {}
        for item in api.items("/apis/metrics.k8s.io/v1beta1/pods"):
            each = [(math.ceil(round(quantity(c["usage"]["cpu"]) * 1000, 6)), quantity(c["usage"]["memory"])) for c in item["containers"]]  # as kubectl top
            use[item["metadata"]["namespace"], item["metadata"]["name"]] = tuple(map(sum, zip(*each)))
        for pod in api.items("/api/v1/pods"):
            if pod["status"]["phase"] in ("Succeeded", "Failed"):
                continue
            ns, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
            above = pod["metadata"]["ownerReferences"][0]
            top = owners.get((above["kind"], ns, above["name"])) or (above["kind"], above["name"])
            whole = (pod["spec"].get("resources") or {}).get("requests")
            lists = [whole] if whole else [c["resources"].get("requests") or {} for c in pod["spec"]["containers"]]
            request = [sum(quantity(r[name_]) for r in lists if name_ in r) for name_ in ("cpu", "memory")]
            is_ready = any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", []))
            self.pods.setdefault((ns, *top), []).append({"name": name, "labels": pod["metadata"].get("labels", {}), "ready": is_ready,
                                                         "cpu": request[0] * 1000, "memory": request[1], "use": use.get((ns, name))})
        self.replicas = {}
        for kind, path in (("Deployment", "/apis/apps/v1/deployments"), ("StatefulSet", "/apis/apps/v1/statefulsets")):
            for item in api.items(path):
                self.replicas[item["metadata"]["namespace"], kind, item["metadata"]["name"]] = item["spec"]["replicas"]
        self.scalers = {}
        for kind, path in (("vpa", "/apis/autoscaling.k8s.io/v1/verticalpodautoscalers"), ("hvpa", "/apis/autoscaling.k8s.io/v1alpha1/hvpas"),
                           ("hpa", "/apis/autoscaling/v2/horizontalpodautoscalers"), ("hpa", "/apis/autoscaling.tandem.dev/v2/horizontalpodautoscalers")):
            status, answer = api.call("GET", path)
            for item in answer["items"] if status == 200 else []:
                self.scalers[f"{kind}/{item['metadata']['name']}"] = item

    def of(self, row):
        pods = self.pods.get((row["ns"], row["kind"], row["name"]), [])
        scaler = self.scalers.get(row["by"])
        selector = (scaler or {}).get("spec", {}).get("selector") or {}
        rules = [(key, "In", [value]) for key, value in selector.get("matchLabels", {}).items()]
        rules += [(rule["key"], rule["operator"], rule["values"]) for rule in selector.get("matchExpressions", [])]
        return [pod for pod in pods if all((pod["labels"].get(key) in values) == (word == "In") for key, word, values in rules)], scaler, bool(rules)


def find_key(tree, key):
    """The first value of that key, however deep."""
    if isinstance(tree, dict):
        if tree.get(key):
            return tree[key]
        tree = list(tree.values())
    found = [find_key(value, key) for value in tree] if isinstance(tree, list) else []
    return next((value for value in found if value), None)


def targets(scaler):
    """Of one pod, CPU in millicores and memory; None: none."""
    status = (scaler or {}).get("status", {})
    pod = find_key(status, "podRecommendations") or find_key(status, "podRecommendation")
    rows = [pod] if pod else find_key(status, "containerRecommendations") or find_key(status.get("recommendation", {}), "containers") or []
    sums = {}
    for row in rows:
        for name, value in (row.get("target") or {}).items():
            sums[name] = sums.get(name, 0) + quantity(value)
    return [sums["cpu"] * 1000 if "cpu" in sums else None, sums.get("memory")]


@story("the first view loads, without complaint and from nowhere else", fast=True)
def first_view(stage):
    web = stage.web
    equal(web.text("h1"), "Cluster")
    expect("live" in web.text("#state"), "state:", web.text("#state"))
    totals = stage.page.get("cluster")["totals"]
    pods = [pod for pod in stage.api.items("/api/v1/pods") if pod["status"]["phase"] not in ("Succeeded", "Failed")]
    equal(totals["pods"], len(pods), "pods")
    room = sum(quantity(node["status"]["allocatable"]["cpu"]) for node in stage.api.items("/api/v1/nodes"))
    equal(totals["cpu"]["room"], room * 1000, "allocatable")
    shown = web.wait("return [...document.querySelectorAll('.tile-value')].map((e) => e.textContent)")
    expect(f"{cpu_text(totals['cpu']['use'])} of {cpu_text(totals['cpu']['request'])}" in shown, shown, totals)
    expect(web.run("return document.querySelectorAll('.spark').length") == 8, "eight sparklines")
    equal(web.complaints(), [], "complaints")
    strangers = [url for url in web.requests() if not url.startswith((stage.page.url, "data:"))]
    equal(strangers, [], "asked elsewhere")
    web.shot(f"{stage.shots}/cluster.png")


@story("every workload's numbers equal those of the API server")
def numbers(stage):
    web = stage.web
    cluster = Cluster(stage.api)
    open_view(web, stage.page.url, "#/workloads")
    web.look(1440)
    time.sleep(1.5)
    lines = {}
    for line in web.run("return [...document.querySelectorAll('.rows tbody tr[data-index]')].map((tr) => [tr.querySelector('a').hash, "
                        "Object.fromEntries([...tr.children].map((td) => [td.className.split(' ')[0].slice(2), td.innerText.trim()]))])"):
        lines[line[0]] = line[1]
    rows = stage.page.rows()
    expect({(row["kind"], row["name"]) for row in rows} >= {(kind, name) for _, kind, name in cluster.replicas}, "a workload is missing")
    for row in rows:
        pods, scaler, is_part = cluster.of(row)
        about = f"{row['name']} {row['by']}"
        shown = lines[hash_of(row)]
        wished = cluster.replicas.get((row["ns"], row["kind"], row["name"]))
        wished = len(pods) if is_part or wished is None else wished
        ready = sum(pod["ready"] for pod in pods)
        expect(shown["replicas"].startswith(str(wished) if ready == wished else f"{ready} → {wished}"), about, shown["replicas"], wished, ready)
        spec = (scaler or {}).get("spec", {})
        spec = spec.get("hpaSpec", spec)
        if "maxReplicas" in spec:
            expect(shown["replicas"].endswith(f"({spec.get('minReplicas', 1)}–{spec['maxReplicas']})"), about, shown["replicas"])
        if not pods:
            equal(shown["cpu"], "–", about)
            continue
        for name, text in (("cpu", cpu_text), ("memory", memory_text)):
            asked = sum(pod[name] for pod in pods)
            used = [pod["use"][name == "memory"] for pod in pods if pod["use"]]
            should = f"{text(asked / len(pods)) if asked else 'none'} / {text(sum(used) / len(pods)) if used else '–'}"
            expect(shown[name].replace(" ▲", "") == should, about, name, shown[name], should)
            waste = max(0, asked - sum(used)) if used else 0
            equal(shown[f"{name}Waste"], text(waste), about, name, "waste")
        cost = sum(pod["cpu"] for pod in pods) / 1000 * 22 + sum(pod["memory"] for pod in pods) / GI * 3
        equal(shown["cost"], money_text(cost), about, "cost")
        goal = targets(scaler) if row["by"].startswith(("vpa/", "hvpa/")) else [None, None]
        equal(shown["cpuTarget"], "–" if goal[0] is None else cpu_text(goal[0]), about, "CPU target")
        equal(shown["memoryTarget"], "–" if goal[1] is None else memory_text(goal[1]), about, "memory target")
    web.shot(f"{stage.shots}/workloads.png")
    return f"{len(rows)} rows"


def settled(tree):
    """Without the moment of the question."""
    if isinstance(tree, dict):
        return {key: settled(value) for key, value in tree.items() if key not in ("at", "decidedAt", "now")}
    if isinstance(tree, list):
        return [settled(value) for value in tree]
    return re.sub(r"decided at \S+", "decided at T", tree) if isinstance(tree, str) else tree


@story("every workload's account equals explain's, and its histogram shows the quantile")
def accounts(stage):
    web = stage.web
    count = 0
    for row in stage.page.rows():
        open_view(web, stage.page.url, hash_of(row))
        web.wait("return document.querySelector('section[aria-label=Why]').dataset.ready !== undefined")
        shown = web.run("return Object.fromEntries([...document.querySelectorAll('[data-explains]')].map((e) => [e.dataset.explains, e.textContent]))")
        scalers = stage.page.get("workload", ns=row["ns"], kind=row["kind"], name=row["name"], by=row["by"])["scalers"]
        equal(sorted(shown), sorted(f"{s['kind']}/{s['name']}" for s in scalers), row["name"])
        for scaler in scalers:
            key = f"{scaler['kind']}/{scaler['name']}"
            args = ("explain", scaler["kind"], scaler["name"], "-n", row["ns"], "--kubeconfig", stage.kubeconfig)
            status, text, problem = stage.run(*args)
            equal(status, 0, key, problem)
            equal(settled(shown[key]), settled(text), key)
            status, tree, problem = stage.run(*args, "-o", "json")
            equal(status, 0, key, problem)
            ours = stage.page.get("explain", ns=row["ns"], kind=scaler["kind"], name=scaler["name"])["explanation"]
            equal(settled(ours), settled(json.loads(tree)), key)
            count += 1
        if any(scaler["kind"] != "hpa" for scaler in scalers):
            expect(web.run("return document.querySelectorAll('.histogram .quantile').length") >= 2, row["name"], "no quantile")
            expect("percentile 90 is" in web.text(".histograms"), row["name"], web.text(".histograms"))
    return f"{count} accounts"


@story("one workload: plots, marks that tell the account, pods, YAML that is accepted")
def workload(stage):
    web = stage.web
    for by in ("hvpa/web", "vpa/cache"):
        row = next(row for row in stage.page.rows() if row["by"] == by)
        open_view(web, stage.page.url, hash_of(row))
        web.wait("return document.querySelectorAll('.plot-mark').length > 0")
        expect(web.run("return document.querySelectorAll('.plot').length") >= 3, "plots")
        legend = web.run("return [...document.querySelectorAll('.plot-legend')].map((e) => e.textContent).join(' ')")
        for word in ("bounds", "highest use", "use", "request", "limit", "target"):
            expect(word in legend, legend)
        web.run("document.querySelector('.plot-mark').focus()")
        told = web.wait("return document.querySelector('.plot-pop:not(.plot-hidden)')?.textContent")
        expect("did" in told and ("wanted" in told or "had" in told), told)
        web.run("document.querySelector('.said').click()")
        told = web.text(".marked")
        expect("did " in told and "wanted " in told, told)
        pods, _, _ = Cluster(stage.api).of(row)
        names = web.run("return [...document.querySelectorAll('section[aria-label=Pods] tbody tr td:first-child')].map((e) => e.textContent.split(' ')[0])")
        equal(sorted(names), sorted(pod["name"] for pod in pods), "pods")
        web.wait("return [...document.querySelectorAll('section[aria-label=Pods] td.next')].every((e) => e.textContent.length > 5)")
        web.run("document.querySelector('.yamls').open = true")
        parts = web.wait("const p = [...document.querySelectorAll('.yamls pre')].map((e) => e.textContent); return p.length ? p : null")
        patch = next(part for part in parts if part.startswith("kubectl patch "))
        words = shlex.split(patch)
        equal(words[:4], ["kubectl", "patch", row["kind"].lower(), row["name"]])
        status, answer = stage.api.call("PATCH", f"/apis/apps/v1/namespaces/{row['ns']}/deployments/{row['name']}?dryRun=All", words[words.index("-p") + 1],
                                        "application/strategic-merge-patch+json")
        equal(status, 200, answer)
        for part in parts:
            if not part.startswith("kubectl"):
                with open(f"{stage.folder}/copied.yaml", "w", encoding="utf-8") as file:
                    file.write(part)
                status, out, problem = stage.run("validate", "copied.yaml")
                expect(status == 0 or "kind: Deployment" in part, part, out, problem)


@story("what if: keys move a slider, both costs and the YAML of the settings")
def what_if(stage):
    web = stage.web
    row = next(row for row in stage.page.rows() if row["by"] == "vpa/cache")
    open_view(web, stage.page.url, hash_of(row))
    web.run("document.querySelector('.whatif').open = true")
    costs = "return [...document.querySelectorAll('.costs tbody tr:first-child td')].map((e) => e.textContent)"
    before = web.wait(costs + ".length ? " + costs[7:] + " : null")
    web.run("document.getElementById('whatif-margin').focus()")
    web.press(*["ArrowRight"] * 30)
    after = web.wait(f"const now = {costs[7:]}; return now[1] !== {json.dumps(before[1])} ? now : null")
    equal(after[0], before[0], "as it was")
    yaml = web.text("pre[aria-label='YAML of these settings']")
    expect("--recommendation-margin-fraction=0.45" in yaml, yaml)
    expect("what if" in web.run("return document.querySelector('.plot-legend').textContent"), "no line")
    for mode in ("HPA", "HPA+VPA", "RatioBased", "Mixed"):
        web.run("const e = document.getElementById('whatif-mode'); e.value = arguments[0]; e.dispatchEvent(new Event('change'))", mode)
        word = {"HPA": "HorizontalPodAutoscaler", "HPA+VPA": "HorizontalPodAutoscaler"}.get(mode, f"mode: {mode}")
        web.wait(f"return document.querySelector(\"pre[aria-label='YAML of these settings']\").textContent.includes({json.dumps(word)})")
        with open(f"{stage.folder}/whatif.yaml", "w", encoding="utf-8") as file:
            file.write(web.text("pre[aria-label='YAML of these settings']"))
        status, out, problem = stage.run("validate", "whatif.yaml")
        equal(status, 0, mode, out, problem)
    equal(web.complaints(), [], "complaints")


@story("keys alone: filter, choose, open, back, help, and every control by Tab", fast=True)
def keys(stage):
    web = stage.web
    open_view(web, stage.page.url, "#/cluster")
    web.run("document.body.focus(); document.activeElement.blur()")
    web.press("?")
    web.wait("return document.getElementById('help').open")
    web.press("Escape")
    web.wait("return !document.getElementById('help').open")
    web.press("/")
    web.wait("return document.activeElement.id === 'filter'")
    web.press(*"cache")
    web.wait("return document.querySelectorAll('.rows tr[data-index]').length === 1")
    web.press("ArrowDown", "Enter")
    web.wait("return location.hash.startsWith('#/workload/shop/Deployment/cache') && document.querySelector('section[aria-label=Why]') !== null")
    web.run("document.activeElement.blur()")
    web.press("Escape")
    web.wait("return location.hash === '#/workloads'")
    web.wait("return document.getElementById('filter').value === 'cache'")
    web.press("Escape")
    web.wait("return document.querySelectorAll('.rows tr[data-index]').length > 1")
    web.press("ArrowDown", "ArrowDown", "Enter")
    web.wait("return location.hash.startsWith('#/workload/')")
    for path in ("#/cluster", "#/workloads", "#/workload/shop/Deployment/web/hvpa%2Fweb"):
        open_view(web, stage.page.url, path)
        web.run("document.querySelectorAll('details').forEach((d) => { d.open = true; }); window.scrollTo(0, 0); document.activeElement.blur()")
        time.sleep(1)
        wanted = web.run("""
            const all = [...document.querySelectorAll('a[href], button, input, select, summary, [tabindex="0"]')];
            const seen = (e) => e.tabIndex >= 0 && e.getClientRects().length > 0 && !e.closest('dialog:not([open])');
            return all.filter(seen).map((e, i) => { e.dataset.stop = String(i); return e.dataset.stop; }).length""")
        reached = set()
        for _ in range(wanted + 15):
            web.press("Tab")
            stop = web.run("return document.activeElement.dataset?.stop ?? null")
            if stop is not None:
                reached.add(stop)
        left = web.run("return [...document.querySelectorAll('[data-stop]')].filter((e) => !arguments[0].includes(e.dataset.stop)).map((e) => e.outerHTML.slice(0, 120))",
                       sorted(reached))
        expect(not left, path, "never reached:", left)


@story("1440 and 375 pixels, light and dark, nothing beyond the edge; axe finds nothing serious")
def looks(stage):
    web = stage.web
    axe = stories.axe_source(stage.build)
    found = []
    for name, path in (("cluster", "#/cluster"), ("workloads", "#/workloads"), ("workload", "#/workload/shop/Deployment/cache/vpa%2Fcache"),
                       ("whatif", "#/workload/shop/Deployment/web/hvpa%2Fweb")):
        for width in (1440, 375):
            for dark in (False, True):
                web.look(width, 900, dark)
                open_view(web, stage.page.url, "#/cluster")
                open_view(web, stage.page.url, path)
                if name.startswith("w") and name != "workloads":
                    web.wait("return document.querySelector('section[aria-label=Why]').dataset.ready !== undefined")
                if name == "whatif":
                    web.run("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
                    web.wait("return document.querySelector('.costs') && document.querySelector('.yamls pre')")
                time.sleep(0.5)
                beyond = web.run("return [document.scrollingElement.scrollWidth, document.getElementById('main').scrollWidth]")
                expect(max(beyond) <= width, name, width, "is", beyond, "wide")
                cut = web.run("return [...document.querySelectorAll('.rows th button, .rows tr[data-index] td:not(.c-decision)')]"
                              ".filter((e) => e.clientWidth > 0 && e.scrollWidth > e.clientWidth).map((e) => e.textContent)")
                equal(cut, [], name, width, "texts that are cut")
                web.shot(f"{stage.shots}/{name}-{width}-{'dark' if dark else 'light'}.png")
                web.run(axe)
                problems = web.run_async("const done = arguments[arguments.length - 1]; axe.run(document, {resultTypes: ['violations']}).then("
                                         "(r) => done(r.violations.map((v) => [v.impact, v.id, v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160))])), (e) => done([['critical', String(e), []]]))")
                found += [(name, width, dark, *problem) for problem in problems if problem[0] in ("serious", "critical")]
    web.look(1440, 900, False)
    expect(not found, "\n     ".join(str(problem) for problem in found))
    equal(web.complaints(), [], "complaints")


@story("on paper: no controls, all of the content")
def paper(stage):
    web = stage.web
    open_view(web, stage.page.url, "#/workload/shop/Deployment/cache/vpa%2Fcache")
    web.look(media="print")
    time.sleep(0.5)
    hidden = web.run("return ['nav', '.whatif', '.yamls', '#speeds'].filter((s) => document.querySelector(s).getClientRects().length > 0)")
    equal(hidden, [], "shown on paper")
    expect(web.run("return document.querySelector('section[aria-label=Pods]').getClientRects().length > 0"), "no pods on paper")
    web.shot(f"{stage.shots}/paper.png", whole=True)
    web.look(media="")


@story("a program that stops answering shows since when, and goes on when it does")
def silence(stage):
    web = stage.web
    open_view(web, stage.page.url, "#/cluster")
    stage.up.pause()
    try:
        web.wait("return document.getElementById('state').textContent.startsWith('not connected since')", 5)
    finally:
        stage.up.go_on()
    web.wait("return document.getElementById('state').textContent === 'live'", 20)
    web.complaints()


@story("the clock, and faults that show and mend")
def faults(stage):
    web = stage.web
    open_view(web, stage.page.url, "#/cluster")
    web.run("[...document.querySelectorAll('#speeds button')].find((b) => b.textContent === '600x').click()")
    web.wait("return document.querySelector('#speeds [aria-pressed=true]')?.textContent === '600x'")
    press = "[...document.querySelectorAll('.faults button')].find((b) => b.textContent === arguments[0]).click()"
    web.run(press, "webhook down")
    web.wait("return [...document.querySelectorAll('.faults button')].some((b) => b.textContent === 'webhook up')")
    web.run(press, "webhook up")
    web.run(press, "double the load")
    web.wait("return document.querySelector('.faults [role=status]').textContent.includes('2 times')")
    web.run(press, "usual load")
    web.run(press, "lose")
    web.wait("return [...document.querySelectorAll('.problems li')].some((e) => e.textContent.includes('2 of 3 nodes are ready') || e.textContent.includes('nodes are not ready'))", 30)
    web.run(press, "bring back")
    web.wait("return ![...document.querySelectorAll('.problems li')].some((e) => e.textContent.includes('nodes are not ready'))", 30)
    before = {pod["metadata"]["uid"] for pod in stage.api.items("/api/v1/pods")}
    web.run(press, "kill a pod")
    eventually(lambda: before - {pod["metadata"]["uid"] for pod in stage.api.items("/api/v1/pods")}, 30)
    equal(web.complaints(), [], "complaints")


if __name__ == "__main__":
    stories.main(bed)
