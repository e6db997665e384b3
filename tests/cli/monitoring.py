#!/usr/bin/env python3
"""What watches Tandem: a real Prometheus scrapes a run of the shop and a `tandem run` with leader election, and every query of the dashboard
returns data; rules of alerts fire and do not; names are as promtool wants them, but for those that upstream gave. Prints TAP.

Usage: monitoring.py TANDEM TOP FOLDER-OF-PROMETHEUS"""
import json
import math
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

TANDEM, TOP, PROGRAMS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3]
SECONDS_MAX = 180
# Upstream's names, which dashboards of its users know (docs/monitoring.md, Names).
UPSTREAM = {
    "vpa_recommender_aggregate_container_states_count", "vpa_recommender_metric_server_responses", "vpa_recommender_vpa_objects_count",
    "vpa_updater_controlled_pods_total", "vpa_updater_evictable_pods_total", "vpa_updater_in_place_updatable_pods_total",
    "vpa_updater_vpas_with_evictable_pods_total", "vpa_updater_vpas_with_evicted_pods_total",
    "vpa_updater_vpas_with_in_place_updatable_pods_total", "vpa_updater_vpas_with_in_place_updated_pods_total",
}
running = []
count = failed = 0


def say(name, why=""):
    global count, failed
    count += 1
    failed += bool(why)
    print(f"{'not ok' if why else 'ok'} {count} - {name}{': ' if why else ''}{why}", flush=True)


def start(*command, env=None):
    running.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **(env or {})}))


def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def get(url):
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.read().decode()
    except OSError:
        return ""


def until(what, is_there, seconds=SECONDS_MAX):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = is_there()
        if found:
            return found
        time.sleep(1)
    sys.exit(f"{what}: not within {seconds} s")


def promtool(*words, text=None):
    done = subprocess.run([f"{PROGRAMS}/promtool", *words], input=text, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def check_rules():
    code, said = promtool("test", "rules", f"{TOP}/deploy/prometheus/alerts_test.yaml")
    say("each alert fires in its case, and does not in the others", "" if code == 0 else said)
    with open(f"{TOP}/deploy/prometheus/alerts.yaml") as file:
        rules = file.read()
    with open(f"{TOP}/deploy/prometheus/alerts_test.yaml") as file:
        cases = file.read()
    with open(f"{TOP}/docs/monitoring.md") as file:
        page = file.read()
    for name in re.findall(r"alert: (\w+)", rules):
        fires = re.search(rf"alertname: {name}\n    eval_time: \w+\n    exp_alerts:\n    - exp_labels", cases)
        rests = re.search(rf"alertname: {name}, eval_time: \w+, exp_alerts: \[\]", cases)
        told = f"\n### {name}\n" in page and f"docs/monitoring.md#{name.lower()}\n" in rules
        say(f"{name} has both cases and a runbook", "" if fires and rests and told else f"fires {bool(fires)}, rests {bool(rests)}, told {told}")


def check_names(metrics):
    said = promtool("check", "metrics", text=metrics)[1]
    others = [line for line in said.splitlines() if line and line.split()[0] not in UPSTREAM]
    say("promtool has nothing to say about names of ours", "; ".join(others))


def check_kills(work):
    path = f"{work}/metrics"
    subprocess.run([TANDEM, "simulate", f"{TOP}/examples/shop", "--for", "4h", "--quiet", "--metrics", path], check=True, stdout=subprocess.DEVNULL)
    with open(path) as file:
        kills = {m[1]: float(m[2]) for m in re.finditer(r'^tandem_recommender_oom_kills_total\{sized_by="(\w+)"\} (\S+)$', file.read(), re.M)}
    # cache of the shop outgrows its maxAllowed, and its VPA resizes it in place.
    say("OOM kills of resized pods are told from others", "" if kills.get("resize", 0) > 0 and kills.get("owner") == 0 else str(kills))


def names_of(expr):
    plain = re.sub(r"\{[^}]*\}|\[[^]]*\]|\"[^\"]*\"", "", expr)
    return set(re.findall(r"\b(?:vpa|hvpa|tandem|horizontal_pod|process|leader_election)_\w+", plain))


def check_known(metrics, exprs):
    known = set(re.findall(r"^# HELP (\S+)", metrics, re.M))
    with open(f"{TOP}/deploy/prometheus/alerts.yaml") as file:
        exprs = exprs + [file.read()]
    used = set().union(*map(names_of, exprs))
    missing = sorted(name for name in used if name.removesuffix("_bucket") not in known)
    say(f"dashboard and alerts use metrics that there are ({len(used)})", ", ".join(missing))


def ask(server, expr):
    text = expr.replace("$job", ".*").replace("$namespace", "shop").replace("$__rate_interval", "2m")
    answer = json.loads(get(f"{server}/api/v1/query?" + urllib.parse.urlencode({"query": text})) or "{}")
    return [float(row["value"][1]) for row in answer.get("data", {}).get("result", [])]


def check_variables(server, variables):
    """What one chooses from at the dashboard's head."""
    for row in variables:
        if row["type"] != "query":
            continue
        selector, label = re.fullmatch(r"label_values\((.+), (\w+)\)", row["query"]).groups()
        answer = json.loads(get(f"{server}/api/v1/label/{label}/values?" + urllib.parse.urlencode({"match[]": selector})) or "{}")
        say(f"the dashboard's choice of {row['name']} has values", "" if answer.get("data") else row["query"])


def main(work):
    check_rules()
    check_kills(work)
    shop, run, api, web = port(), port(), port(), port()
    start(TANDEM, "up", f"{TOP}/examples/shop", "--speed", "600", "--listen", "127.0.0.1:0", "--page", "off", "--quiet", "--kubeconfig",
          f"{work}/shop", "--address", f"127.0.0.1:{shop}")
    start(TANDEM, "up", "--controllers", "none", "--listen", f"127.0.0.1:{api}", "--page", "off", "--quiet", "--kubeconfig", f"{work}/empty")
    until("the empty cluster", lambda: os.path.exists(f"{work}/empty"))
    start(TANDEM, "run", "--kubeconfig", f"{work}/empty", "--leader-elect", "--quiet", "--address", f"127.0.0.1:{run}", "--webhook-listen",
          f"127.0.0.1:{port()}", "--recommender-interval", "5s")
    with open(f"{work}/prometheus.yml", "w") as file:
        file.write("global: {scrape_interval: 2s}\nrule_files: [" + f"{TOP}/deploy/prometheus/alerts.yaml" + "]\nscrape_configs:\n- job_name: tandem\n"
                   f"  static_configs: [{{targets: ['127.0.0.1:{shop}', '127.0.0.1:{run}']}}]\n")
    start(f"{PROGRAMS}/prometheus", f"--config.file={work}/prometheus.yml", f"--storage.tsdb.path={work}/tsdb",
          f"--web.listen-address=127.0.0.1:{web}", "--log.level=error")
    server = f"http://127.0.0.1:{web}"
    until("Prometheus", lambda: "Ready" in get(f"{server}/-/ready"))
    with open(f"{TOP}/deploy/grafana/tandem.json") as file:
        dashboard = json.load(file)
    queries = [(panel["title"], target["expr"]) for panel in dashboard["panels"] for target in panel.get("targets", [])]
    left, end = list(queries), time.monotonic() + SECONDS_MAX
    while left and time.monotonic() < end:
        time.sleep(3)
        left = [row for row in left if not any(math.isfinite(value) for value in ask(server, row[1]))]
    for title, expr in queries:
        say(f"the dashboard's {title} has data", expr if (title, expr) in left else "")
    check_variables(server, dashboard["templating"]["list"])
    metrics = get(f"http://127.0.0.1:{shop}/metrics") + "\n"
    more = get(f"http://127.0.0.1:{run}/metrics")
    check_names(metrics)
    check_names(more)
    check_known(metrics + more, [expr for _, expr in queries])
    rules = json.loads(get(f"{server}/api/v1/rules"))["data"]["groups"][0]["rules"]
    sick = [f"{rule['name']}: {rule.get('lastError')}" for rule in rules if rule["health"] not in ("ok", "unknown")]
    say("Prometheus evaluates the alerts", "; ".join(sick))


with tempfile.TemporaryDirectory() as folder:
    try:
        main(folder)
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait(30)
print(f"1..{count}")
sys.exit(failed > 0)
