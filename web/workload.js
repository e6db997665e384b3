// One workload: plots of the last day with what was decided, why, its pods, what other settings would have done, and YAML to copy.

import {ago, ask, clockText, copyText, count, cpu, make, makeSvg, memory, money, order, seconds, session, share} from "/ui.js";
import {drawPlot, syncPlots} from "/plot.js";

const EXPLAIN_EVERY_MS = 5000;
const KINDS = {vpa: "VerticalPodAutoscaler", hpa: "HorizontalPodAutoscaler", hvpa: "Hvpa"};
const MI = 1024 * 1024;
const LISTED = 100;

// ---- Series ----

// What is kept only when it changes (pairs of a time and a value), at each point of the others.
function spread(history, name) {
  const changes = history[name];
  const values = [];
  let at = 0;
  for (let i = 0; i < history.count; i++) {
    const end = history.start + (i + 1) * history.step;
    while (at < changes.length && changes[at][0] < end) at++;
    values.push(at > 0 ? changes[at - 1][1] : null);
  }
  return values;
}

// As of that time, and just before it.
function settingAt(history, name, time) {
  let before = null;
  let after = null;
  for (const [at, value] of history[name]) {
    if (at > time) break;
    if (at < time - history.step) before = value;
    after = value;
  }
  return {before: before ?? after, after};
}

function timesOf(history) {
  return Array.from({length: history.count}, (_, i) => history.start + i * history.step);
}

function align(times, other, name) {
  if (!other) return null;
  const values = other[name];
  return times.map((time) => {
    const i = Math.round((time - other.start) / other.step);
    return i >= 0 && i < values.length ? values[i] : null;
  });
}

// ---- What was decided ----

// The whole account of a mark: what was wanted and what there was then, what was done, and what the autoscaler said of itself next.
function accountOf(data, mark) {
  const h = data.history;
  const lines = [];
  const pair = (unit, text) => {
    const target = settingAt(h, `${unit}Target`, mark.at).after;
    const low = settingAt(h, `${unit}Lower`, mark.at).after;
    const high = settingAt(h, `${unit}Upper`, mark.at).after;
    return target === null ? null : `${unit} ${text(target)}${low === null ? "" : ` (bounds ${text(low)} – ${text(high)})`}`;
  };
  const count = settingAt(h, "wanted", mark.at).after;
  const wanted = [count === null ? null : `${count} replicas`, pair("cpu", cpu), pair("memory", memory)].filter(Boolean);
  const point = Math.floor((mark.at - h.start) / h.step) - 1;
  const request = (unit, text) => { const value = settingAt(h, `${unit}Request`, mark.at).before; return value === null ? null : `${unit} ${text(value)}`; };
  const had = [h.replicas?.[point] >= 0 ? `${h.replicas[point]} replicas` : null, request("cpu", cpu), request("memory", memory)].filter(Boolean);
  if (had.length) lines.push(`had     ${had.join(", ")}`);
  if (wanted.length) lines.push(`wanted  ${wanted.join(", ")}`);
  lines.push(`did     ${mark.text}`);
  const next = data.accounts.find((account) => account.at >= mark.at);
  if (next) lines.push("", next.text.trimEnd());
  return lines.join("\n");
}

// ---- Plots ----

function plotSpecs(data, whatIf, onMark) {
  const h = data.history;
  const times = timesOf(h);
  const marks = data.marks.filter((m) => m.at >= h.start).map((m) => ({at: m.at, kind: m.kind, text: m.text, detail: accountOf(data, m)}));
  const resource = (title, unit) => {
    const upper = spread(h, `${unit}Upper`);
    const other = align(times, whatIf, unit);
    return {
      title: `${title} of one pod`, unit, times, marks, onMark,
      series: [
        {name: "bounds", kind: "band", low: spread(h, `${unit}Lower`), high: upper, color: 2, step: true, clip: true, sparse: false},
        {name: "highest use", kind: "line", values: h[`${unit}Max`], color: 5, dash: [2, 2]},
        {name: "use (middle pod)", kind: "line", values: h[`${unit}P50`], color: 0},
        {name: "request", kind: "step", values: spread(h, `${unit}Request`), color: 1},
        {name: "limit", kind: "step", values: spread(h, `${unit}Limit`), color: 3, dash: [6, 3], clip: true},
        {name: "target", kind: "step", values: spread(h, `${unit}Target`), color: 2},
        ...(other ? [{name: "what if", kind: "step", values: other, color: 6, dash: [7, 2, 2, 2]}] : []),
      ],
    };
  };
  const otherCount = align(times, whatIf, "replicas");
  const list = [resource("CPU", "cpu"), resource("Memory", "memory"), {
    title: "Replicas", unit: "count", times, marks: [],
    series: [
      {name: "replicas", kind: "step", values: h.replicas, color: 1},
      {name: "ready", kind: "step", values: h.ready, color: 0},
      {name: "wanted by the HPA", kind: "step", values: spread(h, "wanted"), color: 2, dash: [4, 3]},
      ...(otherCount ? [{name: "what if", kind: "step", values: otherCount, color: 6, dash: [7, 2, 2, 2]}] : []),
    ],
  }];
  if (h.throttled.some((value) => value > 0)) {
    list.push({title: "Throttled", unit: "percent", times, marks: [], series: [{name: "share of CPU wanted", kind: "line", values: h.throttled.map((v) => (v === null ? null : v / 10)), color: 3}]});
  }
  // What there was nothing of is not named.
  const isKnown = (s) => (s.values || s.high).some((value) => value !== null);
  return list.map((spec) => (spec.series.some(isKnown) ? {...spec, series: spec.series.filter(isKnown)} : spec));
}

// ---- Why ----

// The end of the bucket that holds the percentile, as the recommender has it.
function quantileOf({starts, weights, percentile}) {
  const sum = weights.reduce((a, b) => a + b, 0);
  let so = 0;
  for (let i = 0; i < weights.length; i++) {
    so += weights[i];
    if (so >= sum * percentile) return starts[i + 1];
  }
  return 0;
}

function histogramPicture(name, unit, buckets, account) {
  const {starts, weights} = buckets;
  if (weights.length === 0) return null;
  const text = unit === "cpu" ? cpu : memory;
  const from = starts[0];
  const to = starts[starts.length - 1];
  const most = Math.max(...weights);
  const width = 320;
  const height = 90;
  const place = (value) => Math.max(0, Math.min(width, (value - from) / (to - from || 1) * width));
  const percentile = account?.target?.percentile ?? buckets.percentile;
  const base = account?.target?.base ?? quantileOf(buckets);
  const picture = makeSvg("svg", {viewBox: `0 0 ${width} ${height + 14}`, class: "histogram", role: "img", "aria-label": `${name}, histogram of use from ${text(from)} to ${text(to)}`});
  weights.forEach((weight, i) => {
    const x = place(starts[i]);
    const tall = weight / most * height;
    picture.append(makeSvg("rect", {x, y: height - tall, width: Math.max(1, place(starts[i + 1]) - x - 1), height: tall, class: "spark-bar"}));
  });
  if (base > 0) picture.append(makeSvg("line", {x1: place(base), x2: place(base), y1: 0, y2: height, class: "quantile"}));
  const left = makeSvg("text", {x: 0, y: height + 12, class: "axis"}, text(from));
  const right = makeSvg("text", {x: width, y: height + 12, class: "axis", "text-anchor": "end"}, text(to));
  picture.append(left, right);
  const margin = account ? `; with a margin of ${Math.round(account.margin * 100)} % ${text(account.target.withMargin)}` : "";
  const words = base > 0 ? `percentile ${Math.round(percentile * 100)} is ${text(base)}${margin}` : "";
  return make("figure", {}, make("figcaption", {}, make("b", {}, name), " ", make("span", {class: "quiet"}, words)), picture);
}

function histograms(answer) {
  const accounts = answer.explanation.accounts || [];
  return answer.histograms.flatMap((h) => {
    const account = accounts.find((a) => a.container === h.container);
    return [histogramPicture(`${h.container}: CPU`, "cpu", h.cpu, account?.cpu), histogramPicture(`${h.container}: memory peaks`, "memory", h.memory, account?.memory)];
  }).filter(Boolean);
}

// ---- Pods ----

function podsTable(data, nexts, pending) {
  const pair = (pod, name, text) => `${pod.request[name] > 0 ? text(pod.request[name]) : "none"} / ${pod.use[name] === null ? "–" : text(pod.use[name])}`;
  const by = data.scalers.find((s) => s.kind === "vpa" || s.kind === "hvpa");
  const kill = (pod) => make("button", {type: "button", class: "small", onclick: async (event) => {
    try { await order("scenario", {do: "kill-pod", ns: data.ns, name: pod.name}); event.target.textContent = "killed"; } catch (error) { event.target.title = error.message; }
  }}, "kill");
  return make("div", {class: "wide", tabindex: "0", role: "region", "aria-label": "Pods"}, make("table", {class: "plain pods"},
    make("thead", {}, make("tr", {}, ["Pod", "Node", "CPU req / use", "Memory req / use", "Sized by", "Restarts", "Next"].map((t, i) => make("th", {scope: "col", class: [2, 3, 5].includes(i) ? "number" : null}, t)), session.info.local ? make("th", {scope: "col"}, make("span", {class: "sr"}, "Break")) : null)),
    make("tbody", {}, data.pods.map((pod) => make("tr", {},
      make("td", {}, pod.name, pod.pending ? make("span", {class: "look"}, " pending") : pod.ready ? null : make("span", {class: "look"}, " not ready")),
      make("td", {}, pod.node || "–"), make("td", {class: "number"}, pair(pod, "cpu", cpu)), make("td", {class: "number"}, pair(pod, "memory", memory)),
      make("td", {}, by ? `${by.kind}/${by.name}` : "–"), make("td", {class: "number"}, count(pod.restarts), pod.ooms ? make("span", {class: "bad"}, ` (${pod.ooms} OOM)`) : null),
      make("td", {class: "next"}, nexts.get(pod.name) || pending || "–"), session.info.local ? make("td", {}, kill(pod)) : null)))),
  data.podCount > data.pods.length ? make("p", {class: "quiet"}, `and ${data.podCount - data.pods.length} more`) : null);
}

// ---- What if ----

const WAYS = ["VPA", "HPA", "HPA+VPA", "HPAPreferred", "HPABiased", "VPABiased", "Mixed", "RatioBased"];

function wayOf(data) {
  const has = (kind) => data.scalers.find((s) => s.kind === kind);
  if (has("hvpa")) return has("hvpa").mode;
  if (has("hpa")) return has("vpa") ? "HPA+VPA" : "HPA";
  return "VPA";
}

function whatIfPanel(getData, onAnswer) {
  const data = getData();
  const sizes = data.scalers.find((s) => s.kind === "vpa" || s.kind === "hvpa");
  const counts = data.scalers.find((s) => s.kind === "hpa" || s.kind === "hvpa");
  const fields = {};
  const result = make("div", {class: "whatif-result", role: "status"});
  const yaml = make("pre", {class: "yaml", tabindex: "0", role: "region", "aria-label": "YAML of these settings"});
  let timer = 0;
  let asked = 0;

  const line = (name, label, input, out) => {
    fields[name] = {input, line: make("div", {class: "slider"}, make("label", {for: `whatif-${name}`}, label), input, out)};
    return fields[name].line;
  };
  const slider = (name, label, low, high, step, value, text) => {
    const input = make("input", {type: "range", min: low, max: high, step, value, id: `whatif-${name}`});
    const out = make("output", {for: `whatif-${name}`}, text(value));
    input.addEventListener("input", () => { out.textContent = text(input.value); soon(); });
    return line(name, label, input, out);
  };
  const number = (name, label, value, placeholder) => {
    const input = make("input", {type: "number", min: 0, id: `whatif-${name}`, placeholder, value: value ?? ""});
    input.addEventListener("input", soon);
    return line(name, label, input);
  };
  const choice = (name, label, words, value) => {
    const input = make("select", {id: `whatif-${name}`}, words.map((word) => make("option", {value: word, selected: word === value}, word)));
    input.addEventListener("change", () => { fit(); soon(); });
    return line(name, label, input);
  };
  const valueOf = (name) => (fields[name].input.value !== "" ? Number(fields[name].input.value) : null);

  // Only what means something for who acts.
  function fit() {
    const way = fields.mode.input.value;
    const isSized = way !== "HPA";
    const isCounted = way !== "VPA";
    const isUpstream = fields.estimator.input.value === "upstream";
    for (const name of ["estimator", "minCpu", "maxCpu", "minMemory", "maxMemory"]) fields[name].line.hidden = !isSized;
    for (const name of ["cpuPercentile", "memoryPercentile", "margin"]) fields[name].line.hidden = !isSized || !isUpstream;
    for (const name of ["utilization", "minReplicas", "maxReplicas"]) fields[name].line.hidden = !isCounted;
    fields.ratio.line.hidden = way !== "RatioBased";
  }

  function settings() {
    const scaled = (name, factor) => (fields[name].line.hidden || valueOf(name) === null ? null : valueOf(name) * factor);
    const plain = (name) => scaled(name, 1);
    return {
      ns: data.ns, kind: data.kind, name: data.name, by: data.by, mode: fields.mode.input.value, estimator: fields.estimator.input.value,
      cpuPercentile: scaled("cpuPercentile", 0.01), memoryPercentile: scaled("memoryPercentile", 0.01), margin: scaled("margin", 0.01),
      minCpu: plain("minCpu"), maxCpu: plain("maxCpu"), minMemory: scaled("minMemory", MI), maxMemory: scaled("maxMemory", MI),
      utilization: plain("utilization"), minReplicas: plain("minReplicas"), maxReplicas: plain("maxReplicas"), ratio: plain("ratio"),
    };
  }

  function costs(answer) {
    const hasMoney = session.info.priceCpu > 0 || session.info.priceMemory > 0;
    const row = (title, text, name) => make("tr", {}, make("th", {scope: "row"}, title), ["was", "is"].map((which) => make("td", {class: "number"}, text(answer[which][name]))));
    return make("table", {class: "plain costs"}, make("thead", {}, make("tr", {}, make("td"), make("th", {scope: "col"}, "as it was"), make("th", {scope: "col"}, "what if"))),
      make("tbody", {}, row("CPU requested, mean", cpu, "cpu"), row("memory requested, mean", memory, "memory"), row("replicas, mean", count, "replicas"),
        row("time with CPU use above the request", share, "cpuShort"), row("time with memory use above the request", share, "memoryShort"), hasMoney ? row("cost a month", money, "money") : null));
  }

  async function run() {
    const turn = ++asked;
    try {
      const answer = await order("whatif", settings());
      if (turn !== asked) return;
      result.replaceChildren(costs(answer));
      yaml.textContent = answer.yaml;
      onAnswer(answer);
    } catch (error) {
      if (turn === asked) result.replaceChildren(make("p", {class: "problem"}, error.message));
    }
  }

  function soon() {
    clearTimeout(timer);
    timer = setTimeout(run, 200);
  }

  const percent = (value) => `${value}%`;
  const bound = (list, name, factor) => (sizes && sizes[list][name] !== null ? sizes[list][name] / factor : null);
  const copy = make("button", {type: "button", onclick: () => copyText(yaml.textContent, copy)}, "copy YAML");
  const panel = make("details", {class: "whatif"}, make("summary", {}, make("h2", {}, "What if")), make("p", {class: "quiet"}, "The same deciders over the history on this page. Nothing is applied."),
    make("div", {class: "whatif-grid"},
      make("div", {class: "sliders"},
        choice("mode", "who acts", WAYS, wayOf(data)), slider("ratio", "ratio of size to number", 0, 4, 0.1, counts?.ratio ?? 1, String),
        choice("estimator", "policy", session.info.estimators, sizes?.estimator || "upstream"),
        slider("cpuPercentile", "CPU percentile", 50, 100, 1, 90, percent), slider("memoryPercentile", "memory percentile", 50, 100, 1, 90, percent), slider("margin", "margin", 0, 100, 1, 15, percent),
        number("minCpu", "min. CPU, millicores", bound("least", "cpu", 1), "none"), number("maxCpu", "max. CPU, millicores", bound("most", "cpu", 1), "none"),
        number("minMemory", "min. memory, Mi", bound("least", "memory", MI), "none"), number("maxMemory", "max. memory, Mi", bound("most", "memory", MI), "none"),
        slider("utilization", "target utilisation", 10, 150, 1, counts?.utilization ?? 80, percent),
        number("minReplicas", "min. replicas", counts?.min ?? 1, "1"), number("maxReplicas", "max. replicas", counts?.max ?? 10, "10")),
      make("div", {}, result, make("p", {}, copy), yaml)));
  fit();
  panel.addEventListener("toggle", () => { if (panel.open) run(); else { asked++; onAnswer(null); } });
  return panel;
}

// ---- YAML ----

function yamlPanel(data) {
  const box = make("div");
  const panel = make("details", {class: "yamls"}, make("summary", {}, make("h2", {}, "YAML to copy")), box);
  panel.addEventListener("toggle", async () => {
    if (!panel.open) return;
    try {
      const answer = await ask("yaml", {ns: data.ns, kind: data.kind, name: data.name, by: data.by});
      const parts = [["resources", "Requests of the containers"], ["patch", "The same as one command"], ["vpa", "VerticalPodAutoscaler"], ["hvpa", "Hvpa, in place of a pair"]];
      box.replaceChildren(...parts.filter(([name]) => answer[name]).map(([name, title]) => {
        const copy = make("button", {type: "button", class: "small", onclick: () => copyText(answer[name], copy)}, "copy");
        return make("section", {}, make("h3", {}, title, " ", copy), make("pre", {class: "yaml", tabindex: "0", "aria-label": title}, answer[name]));
      }));
    } catch (error) {
      box.replaceChildren(make("p", {class: "problem"}, error.message));
    }
  });
  return panel;
}

// ---- The view ----

function facts(data) {
  const fact = (name, value) => make("div", {}, make("dt", {}, name), make("dd", {}, value));
  const scaler = data.scalers.find((s) => s.kind !== "vpa");
  const pods = data.podCount;
  const one = (sum) => (pods > 0 ? sum / pods : 0);
  return make("dl", {class: "facts"},
    fact("Replicas", `${data.ready === data.replicas ? data.replicas : `${data.ready} → ${data.replicas}`}${scaler && scaler.min !== null ? ` (${scaler.min}–${count(scaler.max)})` : ""}`),
    fact("CPU of a pod", `${cpu(one(data.request.cpu))} requested, ${data.measured ? cpu(one(data.use.cpu)) : "–"} used${data.target.cpu === null ? "" : `, target ${cpu(data.target.cpu)}`}`),
    fact("Memory of a pod", `${memory(one(data.request.memory))} requested, ${data.measured ? memory(one(data.use.memory)) : "–"} used${data.target.memory === null ? "" : `, target ${memory(data.target.memory)}`}`),
    data.throttled !== null ? fact("Throttled", share(data.throttled)) : null, data.latency !== null ? fact("Latency", seconds(data.latency)) : null, fact("OOM kills", String(data.ooms)),
    data.decision ? fact("Last decision", `${data.decidedAt ? `${ago(data.decidedAt, data.now)} ago: ` : ""}${data.decision}`) : null);
}

export function workloadView(subject) {
  const top = make("div");
  const plots = make("div", {class: "plots"});
  const marked = make("div", {class: "marked", role: "status"});
  const decisions = make("section", {class: "decisions", "aria-label": "What happened", hidden: true});
  const why = make("section", {"aria-label": "Why"}, make("h2", {}, "Why"), make("p", {class: "quiet"}, "asking …"));
  const pods = make("section", {"aria-label": "Pods"});
  const panels = make("div", {class: "panels"});
  const element = make("div", {class: "view"}, make("p", {class: "crumbs"}, make("a", {href: "#/workloads"}, "← all workloads")), make("h1", {}, `${subject.ns}/${subject.name}`, " ", make("span", {class: "kind"}, `${subject.kind}${subject.by ? `, scaled by ${subject.by}` : ""}`)), top, plots, decisions, marked, why, pods, panels);
  const nexts = new Map();
  let data = null;
  let drawn = null;
  let link = null;
  let whatIf = null;
  let version = -1;
  let isAsking = false;
  let isOver = false;
  let explainedAt = 0;
  let plotCount = 0;
  let listed = "";
  let pending = "";

  function drop() {
    if (link && link.destroy) link.destroy();
    if (drawn) drawn.forEach((plot) => plot.destroy());
    drawn = null;
    plots.replaceChildren();
  }

  function onMark(mark) {
    marked.replaceChildren(make("h2", {}, `${clockText(mark.at)} ${mark.text}`), make("pre", {class: "words"}, accountOf(data, mark)));
  }

  // The newest first; a click tells the whole account.
  function showDecisions() {
    const list = data.marks.slice(-LISTED).reverse();
    const text = JSON.stringify(list);
    if (text === listed || decisions.contains(document.activeElement)) return;
    listed = text;
    decisions.hidden = list.length === 0;
    decisions.replaceChildren(make("h2", {}, "What happened"), make("ol", {tabindex: "0", "aria-label": "What happened, the newest first"}, list.map((mark) => make("li", {},
      make("button", {type: "button", class: `said said-${mark.kind}`, onclick: () => onMark(mark)}, make("span", {class: "when"}, clockText(mark.at).slice(5, 16)), " ", mark.text)))));
  }

  function drawPlots() {
    if (!data.history.count || data.history.count < 2) {
      drop();
      plots.append(make("p", {class: "quiet"}, "Plots begin after two minutes of the cluster's time."));
      return;
    }
    const wanted = plotSpecs(data, whatIf, onMark);
    if (drawn && wanted.length !== plotCount) drop();
    if (drawn) {
      drawn.forEach((plot, i) => plot.update(wanted[i]));
      return;
    }
    plots.replaceChildren();
    plotCount = wanted.length;
    drawn = wanted.map((spec) => { const box = make("div", {class: "plot-box"}); plots.append(box); return drawPlot(box, spec); });
    link = syncPlots(drawn);
  }

  function showPods() {
    if (!pods.contains(document.activeElement)) pods.replaceChildren(make("h2", {}, "Pods"), data.pods.length ? podsTable(data, nexts, pending) : make("p", {class: "quiet"}, "No pod runs now."));
  }

  function showData() {
    top.replaceChildren(facts(data));
    drawPlots();
    showDecisions();
    showPods();
    if (panels.childElementCount === 0) panels.append(whatIfPanel(() => data, (answer) => { whatIf = answer; drawPlots(); }), yamlPanel(data));
    element.dataset.ready = "";
  }

  async function explain() {
    explainedAt = Date.now();
    const parts = [];
    for (const scaler of data.scalers) {
      try {
        const answer = await ask("explain", {ns: data.ns, kind: scaler.kind, name: scaler.name});
        for (const line of answer.explanation.says || []) {
          const found = line.topic === "pods" && /^([^:]+): (.*)$/.exec(line.text);
          if (found) nexts.set(found[1], found[2]);
        }
        if (Array.isArray(answer.explanation.account?.next)) pending = answer.explanation.account.next.join("; ") || "nothing is pending";
        parts.push(make("section", {class: "account", "aria-label": `${KINDS[scaler.kind]} ${scaler.name}`}, make("pre", {class: "words", tabindex: "0", "data-explains": `${scaler.kind}/${scaler.name}`}, answer.text), make("div", {class: "histograms"}, histograms(answer))));
      } catch (error) {
        parts.push(make("p", {class: "problem"}, `${scaler.kind}/${scaler.name}: ${error.message}`));
      }
      if (isOver) return;
    }
    if (parts.length === 0) parts.push(make("p", {class: "quiet"}, "No autoscaler acts on it."));
    if (!why.contains(document.activeElement) && !why.contains(document.getSelection()?.anchorNode ?? null)) why.replaceChildren(make("h2", {}, "Why"), ...parts);
    showPods();
    why.dataset.ready = "";
  }

  async function refresh() {
    if (isAsking) return;
    isAsking = true;
    try {
      const answer = await ask("workload", subject);
      if (!isOver) {
        data = answer;
        version = data.version;
        showData();
        if (Date.now() - explainedAt > EXPLAIN_EVERY_MS) await explain();
      }
    } catch (error) {
      if (!isOver) top.replaceChildren(make("p", {class: "problem"}, error.message, " ", make("a", {href: "#/workloads"}, "all workloads")));
    }
    isAsking = false;
  }

  return {
    name: "workload", title: subject.name, element,
    begin() { window.scrollTo(0, 0); refresh(); },
    tick(message) { if (message.version !== version) refresh(); },
    end() { isOver = true; drop(); },
  };
}
