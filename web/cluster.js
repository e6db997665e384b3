// The cluster: what is wrong now, what is asked, used and allocatable, and what happened in each hour.

import {ask, cpu, make, makeSvg, memory, money, order, session, share} from "/ui.js";
import {drawPlot, syncPlots} from "/plot.js";

// `look`: "value" or "note", whichever asks for attention.
function tile(label, value, note, look = "") {
  const part = (name, text) => make("div", {class: `tile-${name}`}, text, name === look ? make("span", {class: "look"}, " ▲") : null);
  return make("div", {class: "tile"}, make("div", {class: "tile-label"}, label), part("value", value), part("note", note));
}

const cores = (milli) => (milli >= 1000 ? `${cpu(milli)} core${milli === 1000 ? "" : "s"}` : `${cpu(milli)} CPU`);

function slack(request, use) {
  if (request <= 0) return "";
  return use <= request ? `slack ${share(1 - use / request)}` : `over by ${share(use / request - 1)}`;
}

// Bars of an hour each, the present one last: a picture that needs no axis. null: not known.
function spark(name, values, sumText, span, mostText) {
  const known = values.filter((value) => value !== null);
  const most = Math.max(0, ...known);
  const picture = makeSvg("svg", {viewBox: "0 0 96 24", class: "spark", role: "img", "aria-label": `${name} in each of the last ${values.length} hours, at most ${mostText(most)}`, preserveAspectRatio: "none"});
  values.forEach((value, i) => {
    const height = value ? Math.max(2, 23 * value / most) : 1;
    picture.append(makeSvg("rect", {x: i * 4, y: 24 - height, width: 3, height, class: value ? "spark-bar" : "spark-none"}));
  });
  return make("div", {class: "sparkline"}, make("div", {class: "spark-label"}, name, " ", make("b", {}, sumText(known)), " ", make("span", {class: "quiet"}, span)), picture, make("div", {class: "spark-axis"}, `24 hours, at most ${mostText(most)}`));
}

const sumOf = (values) => values.reduce((a, b) => a + b, 0);

function countSpark(name, values) {
  return spark(name, values, (known) => String(sumOf(known)), "in 24 h", (most) => `${most} an hour`);
}

function shareSpark(name, values) {
  return spark(name, values, (known) => (known.length ? share(known[known.length - 1]) : "–"), "this hour", (most) => `${share(most)} in one of them`);
}

function faults(getData, again) {
  const data = getData();
  const state = {webhooksDown: false, load: 1};
  const nodes = make("select", {"aria-label": "Node"}, data.nodes.map((name) => make("option", {value: name}, name)));
  const said = make("span", {class: "quiet", role: "status"});
  const act = (body, words) => async () => {
    try {
      Object.assign(state, await order("scenario", body()));
      said.textContent = words();
      webhook.textContent = state.webhooksDown ? "webhook up" : "webhook down";
      load.textContent = state.load > 1 ? "usual load" : "double the load";
    } catch (error) {
      said.textContent = error.message;
    }
    again();
  };
  const victim = () => { const pods = getData().somePods; return pods[Math.floor(Math.random() * pods.length)]; };
  let chosen = null;
  const kill = make("button", {type: "button", onclick: act(() => { chosen = victim(); if (!chosen) throw new Error("no pod is ready"); return {do: "kill-pod", ns: chosen.ns, name: chosen.name}; }, () => `${chosen.name} is killed`)}, "kill a pod");
  const lose = make("button", {type: "button", onclick: act(() => ({do: "node-loss", name: nodes.value, lost: true}), () => `${nodes.value} is silent`)}, "lose");
  const back = make("button", {type: "button", onclick: act(() => ({do: "node-loss", name: nodes.value, lost: false}), () => `${nodes.value} is back`)}, "bring back");
  const webhook = make("button", {type: "button", onclick: act(() => ({do: "webhook-down", down: !state.webhooksDown}), () => (state.webhooksDown ? "no webhook answers" : "webhooks answer"))}, "webhook down");
  const load = make("button", {type: "button", onclick: act(() => ({do: "load", factor: state.load > 1 ? 1 : 2}), () => `${state.load} times the load`)}, "double the load");
  order("scenario", {do: "look"}).then((now) => {
    Object.assign(state, now);
    webhook.textContent = state.webhooksDown ? "webhook up" : "webhook down";
    load.textContent = state.load > 1 ? "usual load" : "double the load";
  }).catch(() => {});
  return make("section", {class: "faults", "aria-label": "Break something"}, make("h2", {}, "Break something"), make("p", {class: "buttons"},
    data.somePods.length ? kill : null, load, webhook, data.nodes.length ? make("span", {class: "pair"}, nodes, lose, back) : null, said));
}

function problemList(data) {
  if (data.problems.length === 0) return make("p", {class: "good"}, "Nothing is wrong.");
  const more = data.problemCount - data.problems.length;
  return make("ul", {class: "problems"}, data.problems.map((p) => make("li", {}, make("b", {}, p.what), p.about ? [" ", make("span", {class: "about"}, p.about)] : null, " ", p.text)),
    more > 0 ? make("li", {class: "quiet"}, `and ${more} more`) : null);
}

export function clusterView() {
  const wrong = make("div", {class: "wrong"});
  const tiles = make("div", {class: "tiles"});
  const plots = make("div", {class: "plots"});
  const sparks = make("div", {class: "sparks"});
  const breaks = make("div");
  const element = make("div", {class: "view"}, make("h1", {class: "sr"}, "Cluster"), wrong, tiles, plots, make("section", {"aria-label": "Changes"}, make("h2", {}, "Hour by hour"), sparks), breaks);
  let drawn = null;
  let link = null;
  let version = -1;
  let isAsking = false;
  let isOver = false;
  let shown = "";
  let latest = null;

  function specs(data) {
    const h = data.history;
    const resource = (title, unit) => ({
      title, unit, times: h.times, marks: unit === "cpu" ? data.marks : [],
      series: [
        {name: "used", kind: "line", values: h[`${unit}Use`], color: 0},
        {name: "requested", kind: "step", values: h[`${unit}Request`], color: 1},
        {name: "allocatable", kind: "step", values: h[`${unit}Room`], color: 7, dash: [4, 3]},
      ],
    });
    return [resource("CPU", "cpu"), resource("Memory", "memory")];
  }

  function showTotals(data) {
    const t = data.totals;
    const h = data.hours;
    const ooms = sumOf(h.ooms);
    const cost = session.info.priceCpu || session.info.priceMemory ? [tile("Cost of requests", money(t.cpu.request / 1000 * session.info.priceCpu + t.memory.request / 2 ** 30 * session.info.priceMemory), "a month at your prices")] : [];
    tiles.replaceChildren(
      tile("CPU", `${cpu(t.cpu.use)} of ${cpu(t.cpu.request)}`, `used of requested, ${slack(t.cpu.request, t.cpu.use)}`),
      tile("Memory", `${memory(t.memory.use)} of ${memory(t.memory.request)}`, `used of requested, ${slack(t.memory.request, t.memory.use)}`),
      tile("Allocatable", `${cores(t.cpu.room)}, ${memory(t.memory.room)}`, `${t.readyNodes} of ${t.nodes} nodes ready`, t.readyNodes < t.nodes ? "note" : ""),
      tile("Pods", String(t.pods), t.pending ? `${t.pending} pending` : `${t.workloads} workloads`, t.pending ? "note" : ""),
      tile("OOM kills, 24 h", String(ooms), `${sumOf(h.evictions)} evictions`, ooms ? "value" : ""),
      ...cost);
    sparks.replaceChildren(shareSpark("CPU slack", h.cpuSlack), shareSpark("Memory slack", h.memorySlack), shareSpark("CPU overrun", h.cpuOverrun), shareSpark("Memory overrun", h.memoryOverrun),
      countSpark("OOM kills", h.ooms), countSpark("Evictions", h.evictions), countSpark("Resizes", h.resizes), countSpark("Replica changes", h.scalings));
  }

  function showData(data) {
    latest = data;
    const text = JSON.stringify(data.problems);
    if (text !== shown) wrong.replaceChildren(problemList(data));
    shown = text;
    if (data.totals) {
      showTotals(data);
      const wanted = specs(data);
      if (drawn) drawn.forEach((plot, i) => plot.update(wanted[i]));
      else if (data.history.times.length > 1) {
        plots.replaceChildren();
        drawn = wanted.map((spec) => { const box = make("div", {class: "plot-box"}); plots.append(box); return drawPlot(box, spec); });
        link = syncPlots(drawn);
      } else plots.replaceChildren(make("p", {class: "quiet"}, "Plots begin after two minutes of the cluster's time."));
      if (session.info.local && data.nodes && breaks.childElementCount === 0 && data.totals.pods > 0) breaks.append(faults(() => latest, () => { version = -1; }));
    }
    element.dataset.ready = "";
  }

  async function refresh() {
    if (isAsking) return;
    isAsking = true;
    try {
      const data = await ask("cluster");
      if (!isOver) { version = data.version; showData(data); }
    } catch (error) {
      if (!isOver && !drawn) wrong.replaceChildren(make("p", {class: "problem"}, error.message));
    }
    isAsking = false;
  }

  return {
    name: "cluster", title: "Cluster", element,
    begin: refresh,
    tick(message) { if (message.version !== version) refresh(); },
    end() { isOver = true; if (link && link.destroy) link.destroy(); if (drawn) drawn.forEach((plot) => plot.destroy()); },
  };
}
