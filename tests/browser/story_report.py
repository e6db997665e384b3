"""Reports of simulate and replay in Chromium, opened from the disk: nothing is asked for, nothing complains, every peak of the data is
on the screen at every zoom, names stay text, keys reach all, and it fits a phone.

python3 tests/browser/story_report.py BUILD [--fast]      # leaves screenshots in BUILD/browser; fast: without the days of the shop
"""
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time

from webdriver import Browser, missing

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SIZE_MAX = 3 << 20
DAY = 86400
results = {"passed": 0, "failed": 0}


def check(name, is_right, why=""):
    results["passed" if is_right else "failed"] += 1
    print(f"{'ok' if is_right else 'not ok'} {sum(results.values())} - {name}{'' if is_right else f': {why}'}", flush=True)


def tandem(build, *args):
    run = subprocess.run([os.path.join(build, "tandem"), *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=600, stdin=subprocess.DEVNULL)
    if run.returncode not in (0, 1):
        sys.exit(f"tandem {' '.join(args)}: {run.stderr}")
    return run.stdout


def show(browser, path):
    browser.open(f"file://{path}")
    browser.wait("return document.getElementById('report')?.dataset.ready !== undefined")


def quiet(browser, name, path):
    """Nothing was asked for but the file, and nothing complained."""
    asked = [url for url in browser.requests() if url.split("#")[0] != f"file://{path}" and not url.startswith("data:")]
    check(f"{name}: no request leaves it", not asked, asked[:3])
    complaints = [text for text in browser.complaints() if "Multiple readback operations" not in text]  # that is this test, which reads pixels
    check(f"{name}: the console is silent", not complaints, [c[:200] for c in complaints[:3]])


# ---- What is drawn ----

# The highest and the lowest value of each line in the range that a plot shows: is there ink of its colour, or of a line drawn over it?
# Returns what is missing, and how many places were looked at; with `lift` it looks that many pixels too high.
INK = """
const [number, from, to, lift] = arguments;
const plot = document.getElementById("report").plots[number];
plot.choose(from, to);
plot.body.scrollIntoView({block: "center"});
plot.see(true);
plot.redraw();
const probe = document.createElement("span");
document.body.append(probe);
const rgb = (index) => { probe.style.color = `var(--plot-${index % 8})`; return getComputedStyle(probe).color.match(/\\d+/g).map(Number); };
const canvas = [...plot.body.querySelectorAll("canvas")].find((c) => c.getContext("2d").getImageData(0, 0, c.width, c.height).data.some((v) => v > 0));
const [low, high] = plot.extent();
const scale = canvas.width / canvas.clientWidth;
const height = plot.body.clientHeight - 18;
const times = plot.spec.times;
const lost = [];
let count = 0;
plot.tracks.forEach((track, place) => {
  if (track.part !== "line") return;
  const colors = plot.spec.series.slice(track.index).map((series) => rgb(series.color || 0));
  if (lift) colors.length = 1;
  for (const wants of lift ? [Math.max] : [Math.max, Math.min]) {
    let best = -1;
    for (let i = 0; i < times.length; i++) {
      const value = track.values[i];
      if (times[i] < plot.range[0] || times[i] > plot.range[1] || value === null || value > high || value < low) continue;
      if (best < 0 || (value !== track.values[best] && wants(value, track.values[best]) === value)) best = i;
    }
    if (best < 0) continue;
    const x = plot.x(times[best]);
    const y = Math.max(1, Math.min(height - 1, height * (1 - (track.values[best] - low) / (high - low)))) - lift;
    if (y < 2) continue;
    const wide = track.series.dash ? 8 : 3; // the gaps of dashes
    const reach = 3;
    const box = canvas.getContext("2d").getImageData(Math.round((x - wide) * scale), Math.round((y - reach) * scale), Math.ceil(2 * wide * scale), Math.ceil(2 * reach * scale)).data;
    let found = false;
    for (let i = 0; i < box.length && !found; i += 4) {
      found = box[i + 3] > 40 && colors.some((c) => Math.abs(c[0] - box[i]) + Math.abs(c[1] - box[i + 1]) + Math.abs(c[2] - box[i + 2]) < 160);
    }
    count++;
    if (!found) lost.push(`${plot.spec.title} ${track.series.name} ${times[best]} ${track.values[best]}`);
  }
});
probe.remove();
return [lost, count];
"""


def peaks_of_all_plots(browser, name, zooms):
    lost, seen = [], 0
    for number in range(browser.run("return document.getElementById('report').plots.length")):
        for start, end in zooms:
            missing_ink, count = browser.run(INK, number, start, end, 0)
            lost += missing_ink
            seen += count
    check(f"{name}: every line reaches its highest and lowest value, at {len(zooms)} zooms ({seen} places)", seen > 0 and not lost, f"{len(lost)} of {seen}: {lost[:40:4]}")


# ---- Three days of the shop ----

def test_shop(build, folder):
    path = os.path.join(folder, "shop.html")
    printed = json.loads(tandem(build, "simulate", "-q", os.path.join(TOP, "examples/shop"), "-o", "json", "--report", path))
    size = os.path.getsize(path)
    check(f"three days of the shop: {size} bytes, under 3 MiB", size < SIZE_MAX, size)
    with Browser(1440, 900) as browser:
        begin = time.monotonic()
        show(browser, path)
        took = time.monotonic() - begin
        check(f"three days of the shop: there after {took:.1f} s", took < 15, took)
        time.sleep(0.5)
        quiet(browser, "three days of the shop", path)
        data = json.loads(browser.run("return document.getElementById('data').textContent"))
        compare_scores(data, printed)
        start = data["runs"][0]["start"]
        hour = 3600000
        rng = random.Random(7)
        zooms = [(start, start + 72 * hour), (start + 24 * hour, start + 48 * hour)]
        for span in (12, 3, 1):
            at = start + rng.randrange(0, 72 - span) * hour
            zooms.append((at, at + span * hour))
        peaks_of_all_plots(browser, "three days of the shop", zooms)
        raised = [browser.run(INK, number, *zooms[2], 12) for number in range(8)]
        empty, places = sum(len(found) for found, _ in raised), sum(count for _, count in raised)
        check(f"and places above them have no such ink ({empty} of {places})", empty > places / 2)
        browser.run("document.getElementById('report').plots[0].choose(-Infinity, Infinity)")
        looks(browser, build, "report")
        test_keys(browser)
        quiet(browser, "after all of that", path)


def compare_scores(data, printed):
    titles = [column["title"] for column in data["score"]["columns"]]
    wrong = []
    rows = {(row["kind"], row["name"], row.get("role", "")): row for row in printed["workloads"]}
    blocks = {(block.get("kind", ""), re.sub(r" \(.*", "", block["name"]), (re.findall(r"\((.*)\)", block["name"]) or [""])[0]): block for block in data["score"]["blocks"]}
    for key, row in rows.items():
        cells = blocks[key]["rows"][0]["cells"]
        pairs = [(cells[titles.index("CPU requested")], row["cpuRequestedMilli"]), (cells[titles.index("mem. requested")], row["memoryRequestedBytes"]),
                 (cells[titles.index("OOMs")], row["ooms"]), (cells[titles.index("resized")], row["resizes"]), (cells[0], row["replicas"])]
        wrong += [(key, shown, said) for shown, said in pairs if abs(shown - said) > 0.5]
    check(f"scores are those of the JSON, {len(rows)} workloads", rows and not wrong, wrong[:3])


def looks(browser, build, name):
    for dark in (False, True):
        for width, height in ((1440, 900), (375, 812)):
            browser.look(width, height, dark)
            browser.run("window.scrollTo(0, 0)")
            time.sleep(0.5)
            shot = os.path.join(build, "browser", f"{name}-{'dark' if dark else 'light'}-{width}.png")
            browser.shot(shot)
            wide = browser.run("return [document.documentElement.scrollWidth, window.innerWidth]")
            check(f"{name}, {'dark' if dark else 'light'}, {width} px: nothing is wider than the screen", wide[0] <= width and wide[1] == width, wide)
            browser.run("(document.getElementById('w7') || document.querySelector('.group') || document.body).scrollIntoView()")
            time.sleep(0.5)
            browser.shot(shot.replace(".png", "-plots.png"))
    browser.look(1440, 900, False)
    browser.look(media="print")
    time.sleep(0.3)
    browser.shot(os.path.join(build, "browser", f"{name}-paper.png"))
    browser.look(media="")


def test_keys(browser):
    browser.run("window.scrollTo(0, 0)")
    browser.run("document.querySelector('.group .plot-body').focus()")
    before = browser.run("return document.getElementById('report').plots.map((plot) => plot.range[1] - plot.range[0])")
    browser.press("+", "+")
    after = browser.run("return document.getElementById('report').plots.map((plot) => plot.range[1] - plot.range[0])")
    check("keys zoom all plots together", all(abs(b / 4 - a) < 2 for b, a in zip(before, after)), (before[:2], after[:2]))
    browser.press("0")
    browser.run("[...document.querySelectorAll('.group')].find((g) => g.textContent.startsWith('web')).scrollIntoView()")
    browser.wait("return document.querySelector('#w6 .plot-mark, #w7 .plot-mark')")
    browser.run("document.querySelector('#w6 .plot-mark').focus()")
    text = browser.wait("return document.querySelector('#w6 .plot-pop:not(.plot-hidden)')?.textContent")
    check("a mark tells what was decided and from which numbers", "request" in text and "→" in text or "->" in text, text[:200])
    browser.press("Enter")
    row = browser.wait("return document.activeElement.closest('.events tr')?.textContent")
    check("and leads to its row in the table", "day 1" in row, row)
    browser.run("const words = document.getElementById('events-words'); words.value = 'leader'; words.dispatchEvent(new Event('input'))")
    rows = browser.run("return [...document.querySelectorAll('.events tbody tr')].map((tr) => tr.textContent.toLowerCase())")
    check("words filter the table", rows and all("leader" in text for text in rows), len(rows))
    browser.run("document.querySelector('.events tbody button').click()")
    span = browser.run("const plot = document.getElementById('report').plots[0]; return plot.range[1] - plot.range[0]")
    check("a time in the table zooms all plots to it", span == 30 * 60000, span)
    stops = browser.run("return [...document.querySelectorAll('button, a[href], input, select, [tabindex=\"0\"], summary')].filter((e) => e.offsetParent && !e.textContent.trim() && !e.getAttribute('aria-label') && !e.labels?.length).map((e) => e.outerHTML.slice(0, 80))")
    check("everything that takes the focus has a name", not stops, stops[:3])


# ---- Two scenarios side by side ----

def test_two(build, folder):
    with open(os.path.join(TOP, "examples/shop/scenario.yaml"), encoding="utf-8") as text:
        scenario = text.read().replace("manifests: [shop.yaml]", f"manifests: [{json.dumps(os.path.join(TOP, 'examples/shop/shop.yaml'))}]")
    paths = []
    for name, peak in (("before", "240/s"), ("after", "400/s")):
        paths.append(os.path.join(folder, f"{name}.yaml"))
        with open(paths[-1], "w", encoding="utf-8") as out:
            out.write(scenario.replace("value: 160/s", f"value: {peak}"))
    path = os.path.join(folder, "two.html")
    again = os.path.join(folder, "again", "two.html")
    os.mkdir(os.path.dirname(again))
    command = ["simulate", "-q", *paths, "--for", "4h", "--fail-if", "ooms > 100000", "--report"]
    tandem(build, *command, path)
    tandem(build, *command, again)
    with open(path, "rb") as one, open(again, "rb") as two:
        first, second = one.read(), two.read().replace(again.encode(), path.encode())
    at = next((i for i, pair in enumerate(zip(first, second)) if pair[0] != pair[1]), min(len(first), len(second)))
    check("the same bytes every time", first == second, f"{len(first)} and {len(second)} bytes, first at {at}: {first[at - 60:at + 60]} {second[at - 60:at + 60]}")
    with Browser(1440, 900) as browser:
        show(browser, path)
        time.sleep(0.5)
        quiet(browser, "two scenarios", path)
        groups = browser.run("return [...document.querySelectorAll('.sides')].map((s) => s.children.length)")
        check("two scenarios: plots side by side", groups and set(groups) == {2}, groups)
        labels = browser.run("return [...document.querySelectorAll('.scores th[scope=row]')].slice(0, 2).map((th) => th.textContent)")
        check("two scenarios: named apart", labels == ["before", "after"], labels)
        marked = browser.run("return [...document.querySelectorAll('.scores tbody')].filter((b) => b.textContent.startsWith('web') && b.querySelector('.delta')).length")
        check("two scenarios: differences are marked", marked == 1, marked)
        for span in (4 * 3600000, 1800000):
            browser.run("const plots = document.getElementById('report').plots; plots[0].choose(plots[0].full[0], plots[0].full[0] + arguments[0])", span)
            axes = browser.run("""const axes = {}; for (const plot of document.getElementById('report').plots) (axes[plot.spec.axis] ||= []).push(plot.extent().join() + plot.range.join());
                return Object.entries(axes).filter(([, texts]) => texts.length !== 2 || texts[0] !== texts[1]).map(([name]) => name)""")
            check(f"two scenarios: the same axes at a zoom of {span // 60000} minutes", not axes, axes)
        looks(browser, build, "report-two")


# ---- A replay, against the raw trace ----

def write_trace(path, windows, rng):
    """A month of five-minute windows, quiet but for spikes of one window. Returns (time, CPU, memory) of the spikes."""
    spikes = []
    with open(path, "w", encoding="utf-8") as out:
        out.write("time_s,cpu_avg_cores,memory_avg_bytes,memory_max_bytes,cpu_limit_cores,memory_limit_bytes\n")
        for i in range(windows):
            cpu, memory = 0.2 + rng.random() * 0.05, (200 << 20) + rng.randrange(10 << 20)
            if i % 397 == 211:
                cpu, memory = 0.9 + rng.random() * 0.1, (700 << 20) + rng.randrange(100 << 20)
                spikes.append((i * 300, int(cpu * 1000), memory))
            out.write(f"{i * 300},{cpu:.4f},{memory},{memory},1.5,1073741824\n")
    return spikes


def test_replay(build, folder):
    traces = os.path.join(folder, "traces")
    os.mkdir(traces)
    spikes = write_trace(os.path.join(traces, "spiky.csv"), 31 * 288, random.Random(3))
    path = os.path.join(folder, "replay.html")
    printed = json.loads(tandem(build, "replay", "-q", traces, "--policy", "upstream,adaptive", "-o", "json", "--report", path))
    with Browser(1440, 900) as browser:
        show(browser, path)
        time.sleep(0.5)
        quiet(browser, "a replay", path)
        shown = browser.run("return document.getElementById('report').plots.map((plot) => plot.tracks.map((track) => [track.series.name, track.values]))")
        times = browser.run("return document.getElementById('report').plots[0].spec.times")
        step = times[1] - times[0]
        cpu, memory = dict(shown[0])["use"], dict(shown[1])["use"]
        lost = [(at, value) for at, milli, size in spikes for curve, value in ((cpu, milli), (memory, size))
                if not any(point is not None and abs(point - value) <= max(1, value * 1e-5) for t, point in zip(times, curve) if abs(t - at * 1000) <= 2 * step)]
        check(f"a replay: all {2 * len(spikes)} spikes of the raw trace are in the {len(times)} points", not lost, lost[:3])
        zooms = [(0, 31 * DAY * 1000)] + [((at - span) * 1000, (at + span) * 1000) for at, _, _ in spikes[3:20:8] for span in (4 * DAY, DAY, 7200)]
        peaks_of_all_plots(browser, "a replay", zooms)
        cells = browser.run("return [...document.querySelectorAll('.scores tbody')][0].querySelectorAll('tr')[1].textContent")
        check("a replay: policies are compared", "✓" in cells or "✕" in cells, cells)
        data = json.loads(browser.run("return document.getElementById('data').textContent"))
        rows = data["score"]["blocks"][0]["rows"]
        check("a replay: scores are those of the JSON", [abs(row["cells"][0] - policy["cpuSlack"]) < 1e-4 for row, policy in zip(rows, printed["policies"])] == [True, True])
        looks(browser, build, "report-replay")


# ---- Without a library of charts: the same in SVG ----

# The highest point of each line in view against the values: how far off it is, in pixels.
SVG = """
const [number, from, to] = arguments;
const plot = document.getElementById("report").plots[number];
plot.choose(from, to);
plot.body.scrollIntoView({block: "center"});
plot.see(true);
plot.redraw();
const [low, high] = plot.extent();
const height = plot.body.clientHeight - 18;
const lines = [...plot.body.querySelectorAll("svg svg path.plot-line")];
return plot.tracks.filter((track) => track.part === "line").map((track, place) => {
  const inView = track.values.filter((value, i) => value !== null && plot.spec.times[i] >= plot.range[0] && plot.spec.times[i] <= plot.range[1]);
  const wanted = height - (Math.max(...inView) - low) / (high - low) * height;
  const drawn = [...lines[place].getAttribute("d").matchAll(/[ML]-?[\\d.]+ (-?[\\d.]+)|V(-?[\\d.]+)/g)].map((found) => Number(found[1] ?? found[2]));
  return inView.length ? Math.min(...drawn) - wanted : 0;
});
"""


def test_svg(build, folder):
    traces = os.path.join(folder, "svg-traces")
    os.mkdir(traces)
    spikes = write_trace(os.path.join(traces, "spiky.csv"), 20 * 288, random.Random(4))
    whole = os.path.join(folder, "whole.html")
    path = os.path.join(folder, "svg.html")
    tandem(build, "replay", "-q", traces, "--policy", "upstream", "--report", whole)
    with open(whole, encoding="utf-8") as page:
        text = page.read()
    with open(path, "w", encoding="utf-8") as out:
        out.write(re.sub(r"<script>/\*! @license.*?</script>\n", "", text, count=1, flags=re.S))
    with Browser(1440, 900) as browser:
        show(browser, path)
        check("without a library: there is none", browser.run("return typeof Dygraph") == "undefined")
        zooms = [(0, 20 * DAY * 1000)] + [((at - span) * 1000, (at + span) * 1000) for at, _, _ in spikes[2:12:4] for span in (2 * DAY, 7200)]
        off = [abs(far) for number in range(2) for zoom in zooms for far in browser.run(SVG, number, *zoom)]
        check(f"without a library: every line reaches its highest value, at {len(zooms)} zooms", off and max(off) < 1.01, off)
        quiet(browser, "without a library", path)
        browser.shot(os.path.join(build, "browser", "report-svg.png"))


# ---- Names that would like to be more ----

HOSTILE = ["</script><script>window.pwned = 1</script>", "<img src=x onerror='window.pwned=1'>", "\"><svg onload=window.pwned=1>", "${window.pwned=1}", "__proto__", "javascript:window.pwned=1",
           "<!--", "]]>", "\u2028window.pwned=1", "&lt;b&gt;", "' onmouseover='window.pwned=1"]


def test_hostile(build, folder):
    def series(name, value, number):
        labels = {"__name__": name, "namespace": "n", "pod": f"{HOSTILE[number]}", "container": f"c{number} {HOSTILE[number]}"}
        return {"metric": labels, "values": [[1767225600 + i * 300, value(i)] for i in range(400)]}
    result = []
    for number in range(len(HOSTILE)):
        result.append(series("node_namespace_pod_container:container_cpu_usage_seconds_total:sum_irate", lambda i: f"{0.1 + i % 7 / 100:.3f}", number))
        result.append(series("container_memory_working_set_bytes", lambda i: str(100000000 + i % 13 * 1000), number))
    dump = os.path.join(folder, "hostile.json")
    with open(dump, "w", encoding="utf-8") as out:
        json.dump({"status": "success", "data": {"resultType": "matrix", "result": result}}, out)
    path = os.path.join(folder, "hostile.html")
    tandem(build, "replay", "-q", dump, "--policy", "upstream,krr", "--report", path)
    with Browser(1440, 900) as browser:
        show(browser, path)
        time.sleep(0.5)
        quiet(browser, "hostile names", path)
        check("hostile names: nothing of them ran", browser.run("return window.pwned === undefined"))
        names = browser.run("return [...document.querySelectorAll('.scores th[scope=rowgroup]')].map((th) => th.textContent)")
        lost = [name for name in HOSTILE if not any(name in text for text in names)]
        check(f"hostile names: all {len(HOSTILE)} are text", not lost, lost)
        check("hostile names: no element came of them", browser.run("return document.querySelectorAll('main img, main svg[onload], main script').length") == 0)


def main():
    absent = missing()
    if absent:
        print(f"# skipped: no {', '.join(absent)}; scripts/deps browser installs them")
        sys.exit(77)
    words = [word for word in sys.argv[1:] if word != "--fast"]
    build = os.path.abspath(words[0] if words else "build")
    stories = (test_replay, test_svg, test_hostile) if "--fast" in sys.argv else (test_shop, test_two, test_replay, test_svg, test_hostile)
    with tempfile.TemporaryDirectory(prefix="tandem-report-") as folder:
        for test in stories:
            test(build, folder)
    print(f"{results['passed']} passed, {results['failed']} failed")
    sys.exit(results["failed"] > 0)


main()
