// A report of a finished run: one page from the data in it (src/web/report/report_data.h), without a program behind it.
//
// Names and texts come from scenarios, traces and clusters: they are set as text, like everywhere in web/.

import {cpu, make, makeSvg, memory, seconds, share} from "/ui.js";
import {drawPlot, formatTime, syncPlots} from "/plot.js";

const EVENTS_SHOWN = 300;
const AROUND_MS = 15 * 60000;
const HOUR = 3600000;
const BARS_MAX = 96;
const NOTABLE = 0.01; // a difference of less is none
const KINDS = {resize: "↕", scale: "⇆", evict: "×", oom: "!", event: "•"};
const UNITS = {
  cpu, memory, share, seconds, count: (value) => String(value), figure: (value) => String(Number(value.toFixed(3))), text: (value) => value,
};

// ---- Runs ----

// What tells names apart: without the beginning and the end that all of them share.
function shortNames(names) {
  if (names.length < 2) return names;
  const first = names[0];
  let start = 0;
  while (start < first.length && names.every((name) => name[start] === first[start])) start++;
  start = first.lastIndexOf("/", start - 1) + 1;
  const short = names.map((name) => name.slice(start).replace(/\.ya?ml$/, ""));
  return new Set(short).size === names.length && short.every((name) => name.length > 0) ? short : names;
}

function timesOf(run) {
  return Array.from({length: run.count}, (_, i) => run.start + i * run.step);
}

// ---- What was run ----

function factsOf(data) {
  const fact = (name, text) => make("div", {}, make("dt", {}, name), make("dd", {}, text));
  const head = make("dl", {class: "facts"}, fact("command", make("code", {}, data.command)), fact("version", data.version));
  if (data.runs.length === 1) {
    head.append(...data.runs[0].facts.map(([name, text]) => fact(name, text)));
    return [head];
  }
  const names = [...new Set(data.runs.flatMap((run) => run.facts.map(([name]) => name)))];
  const cell = (run, name) => { const found = run.facts.find((entry) => entry[0] === name); return found ? found[1] : "–"; };
  return [head, wide("Runs", make("table", {class: "plain"},
    make("thead", {}, make("tr", {}, make("th", {scope: "col"}, "run"), names.map((name) => make("th", {scope: "col"}, name)))),
    make("tbody", {}, data.runs.map((run) => make("tr", {}, make("th", {scope: "row"}, run.label), names.map((name) => make("td", {}, cell(run, name))))))))];
}

function rulesOf(data) {
  const rows = data.runs.flatMap((run) => (run.rules || []).map((rule) => make("li", {class: rule.broken ? "bad" : "good"},
    make("code", {}, rule.text), ` ${rule.broken ? "holds" : "does not hold"}: it is ${rule.value}${data.runs.length > 1 ? ` in ${run.label}` : ""}`)));
  return rows.length ? make("section", {"aria-label": "Rules"}, make("h2", {}, "Rules"), make("ul", {class: "rules"}, rows)) : null;
}

function wide(label, child) {
  return make("div", {class: "wide", tabindex: "0", role: "region", "aria-label": label}, child);
}

// ---- Scores ----

// What is different from the first row of the block: how much, and whether that is better.
function difference(column, base, value) {
  if (typeof base !== "number" || typeof value !== "number" || base === value) return null;
  const change = value - base;
  const part = base !== 0 ? change / Math.abs(base) : null;
  const isSmall = column.unit === "share" ? Math.abs(change) < NOTABLE / 2 : part !== null && Math.abs(part) < NOTABLE;
  if (isSmall) return null;
  const amount = Math.abs(column.unit === "share" ? change * 100 : part === null ? change : part * 100);
  const text = column.unit === "share" ? `${Number(amount.toFixed(amount < 10 ? 1 : 0))} pp`
    : part === null ? UNITS[column.unit](Math.abs(change)) : amount >= 1000 ? `${Math.round(amount / 100) + 1}×` : `${Math.round(amount)}%`;
  const verdict = column.better === 0 ? "" : (change > 0) === (column.better > 0) ? "better" : "worse";
  return make("span", {class: `delta ${verdict}`, title: verdict ? `${verdict} than the first` : null}, ` ${change > 0 ? "▲" : "▼"}${text}`,
    verdict ? make("span", {class: "verdict"}, verdict === "better" ? " ✓" : " ✕", make("span", {class: "sr"}, ` ${verdict}`)) : null);
}

function scoreOf(data) {
  const {columns, blocks, note, title} = data.score;
  const isCompared = blocks.some((block) => block.rows.length > 1);
  const hasBy = blocks.some((block) => block.rows.some((row) => row.detail));
  const hasAnchor = (block) => block.anchor && data.groups.some((group) => group.anchor === block.anchor);
  const cell = (block, row, i) => make("td", {class: columns[i].unit === "text" ? null : "number"}, row.cells[i] === null || row.cells[i] === undefined ? "–" : UNITS[columns[i].unit](row.cells[i]),
    row === block.rows[0] ? null : difference(columns[i], block.rows[0].cells[i], row.cells[i]));
  const line = (block, row, place) => make("tr", {class: place === 0 ? "first" : null},
    place === 0 ? make("th", {scope: "rowgroup", rowspan: block.rows.length}, hasAnchor(block) ? make("a", {href: `#${block.anchor}`}, block.name) : block.name, " ", make("span", {class: "kind"}, block.kind || "")) : null,
    isCompared ? make("th", {scope: "row"}, row.name || data.runs[row.run].label) : null,
    hasBy ? make("td", {class: "quiet"}, row.detail || "") : null,
    columns.map((_, i) => cell(block, row, i)));
  return make("section", {"aria-label": title || "Scores", id: "scores"}, make("h2", {}, title || "Scores"), wide("Table of scores", make("table", {class: "plain scores"},
    make("thead", {}, make("tr", {}, make("th", {scope: "col"}, data.score.what || "workload"), isCompared ? make("th", {scope: "col"}, data.score.side || "run") : null, hasBy ? make("th", {scope: "col"}, "by") : null,
      columns.map((column) => make("th", {scope: "col", class: column.unit === "text" ? null : "number"}, column.title)))),
    blocks.map((block) => make("tbody", {}, block.rows.map((row, place) => line(block, row, place)))))),
  note || isCompared ? make("p", {class: "quiet"}, note || "", isCompared ? ` ▲ and ▼: against the first row of the block${columns.some((column) => column.better) ? "; ✓ better, ✕ worse" : ""}.` : "") : null);
}

// ---- Plots ----

function expand(curve, run, scale) {
  const values = new Array(run.count).fill(null);
  if (curve.v) {
    curve.v.forEach((value, i) => { values[i] = value === null ? null : value * scale; });
    return values;
  }
  curve.i.forEach((from, k) => {
    const value = curve.s[k] === null ? null : curve.s[k] * scale;
    values.fill(value, from, k + 1 < curve.i.length ? curve.i[k + 1] : curve.n);
  });
  return values;
}

const MARKS_OF = {
  cpu: () => true,
  memory: (kind) => kind === "oom" || kind === "evict" || kind === "resize",
  count: (kind) => kind === "scale" || kind === "event",
};

function plotSpec(data, run, group, plot, onMark) {
  const wants = MARKS_OF[plot.unit] || (() => false);
  const series = plot.series.map((s) => ({
    name: s.name === "first run" ? `${s.name}: ${data.runs[0].label}` : s.name, kind: s.kind, color: s.color, dash: s.dash, clip: s.clip, step: s.step,
    ...(s.kind === "band" ? {low: expand(s.low, run, plot.scale), high: expand(s.high, run, plot.scale)} : {values: expand(s.curve, run, plot.scale)}),
  }));
  const marks = data.marks.filter((mark) => mark.run === run.index && mark.anchor === group.anchor && wants(mark.kind));
  return {
    title: data.runs.length > 1 ? `${plot.title} · ${run.label}` : plot.title, unit: plot.unit, times: run.times, series, marks, onMark,
    extent: [run.start, run.end], origin: run.origin ?? undefined, axis: plot.axis,
  };
}

// How often something happened, a bar for each hour, or for several where the run is long. `count` is counted since the start.
function spark(data, run, count) {
  const values = expand(count.curve, run, 1);
  const hours = Math.max(1, Math.ceil((run.end - run.start) / HOUR));
  const each = Math.ceil(hours / BARS_MAX);
  const bars = new Array(Math.ceil(hours / each)).fill(0);
  let before = 0;
  values.forEach((value, i) => {
    if (value === null || value <= before) return;
    bars[Math.min(bars.length - 1, Math.floor((run.times[i] - run.start) / HOUR / each))] += value - before;
    before = value;
  });
  const most = Math.max(1, ...bars);
  const span = each > 1 ? `${each} hours` : "hour";
  const picture = makeSvg("svg", {viewBox: `0 0 ${bars.length * 4} 24`, class: "spark", role: "img", "aria-label": `${count.name} in each ${span}, at most ${Math.max(...bars)}`, preserveAspectRatio: "none"});
  bars.forEach((value, i) => {
    const height = value === 0 ? 1 : Math.max(2, 23 * value / most);
    picture.append(makeSvg("rect", {x: i * 4, y: 24 - height, width: 3, height, class: value === 0 ? "spark-none" : "spark-bar"}));
  });
  return make("div", {class: "sparkline"}, make("div", {class: "spark-label"}, count.name, data.runs.length > 1 ? ` · ${run.label} ` : " ", make("b", {}, String(before))), picture,
    make("div", {class: "spark-axis"}, `each ${span}, at most ${Math.max(...bars)}`));
}

function sparksOf(data, group) {
  return make("div", {class: "happened"}, group.parts.filter((part) => part.counts).map((part) => make("div", {class: "sparks"}, part.counts.map((count) => spark(data, data.runs[part.run], count)))));
}

// The plots of a group; of several runs those with the same title beside each other.
function groupOf(data, group, plots, onMark) {
  const isSideBySide = data.runs.length > 1;
  const box = (part, plot) => {
    const element = make("div", {class: "plot-box"});
    plots.push(drawPlot(element, plotSpec(data, data.runs[part.run], group, plot, onMark)));
    return element;
  };
  const details = [...new Set(group.parts.map((part) => part.detail).filter(Boolean))];
  const section = make("section", {class: "group", id: group.anchor, "aria-label": group.name}, make("h2", {}, group.name, " ", make("span", {class: "kind"}, [group.kind, ...details].filter(Boolean).join(", "))));
  if (group.anchor === "cluster") section.append(sparksOf(data, group));
  if (!isSideBySide) {
    section.append(make("div", {class: "plots"}, group.parts.flatMap((part) => part.plots.map((plot) => box(part, plot)))));
    return section;
  }
  for (const title of new Set(group.parts.flatMap((part) => part.plots.map((plot) => plot.title)))) {
    const cells = data.runs.map((run) => {
      const part = group.parts.find((p) => p.run === run.index);
      const plot = part && part.plots.find((p) => p.title === title);
      return plot ? box(part, plot) : make("div", {class: "plot-box none"}, make("p", {class: "quiet"}, `${title} · ${run.label}: nothing to show`));
    });
    section.append(make("div", {class: `sides sides-${Math.min(data.runs.length, 3)}`}, cells));
  }
  return section;
}

// ---- Decisions ----

const hasNumbers = (row) => Boolean(row[7]) || row[3] === "oom" || row[3] === "evict";
const isDecision = (row) => row[3] !== "event" || Boolean(row[7]);

// What the plots of a workload said just before: the numbers that a decision was made from.
function numbersAt(data, run, anchor, at) {
  const group = data.groups.find((g) => g.anchor === anchor);
  const part = anchor === "cluster" || !group ? null : group.parts.find((p) => p.run === run.index);
  if (!part) return "";
  const place = Math.min(run.count - 1, Math.max(0, Math.ceil((at - run.start) / run.step) - 1));
  return part.plots.filter((plot) => plot.unit === "cpu" || plot.unit === "memory" || plot.unit === "count").map((plot) => {
    const said = plot.series.filter((s) => s.name !== "first run" && s.name !== "highest use" && s.name !== "ready").map((s) => {
      const values = s.kind === "band" ? [s.low, s.high] : [s.curve];
      const texts = values.map((curve) => valueOf(curve, place)).map((value) => (value === null ? null : UNITS[plot.unit](value * plot.scale)));
      return texts.includes(null) ? null : `${s.name} ${texts.join("–")}`;
    }).filter(Boolean);
    return said.length ? `${plot.unit === "count" ? "" : `${plot.title.replace(" of one pod", "")}: `}${said.join(", ")}` : null;
  }).filter(Boolean).join(" · ");
}

function valueOf(curve, place) {
  if (curve.v) return curve.v[place] ?? null;
  if (place >= curve.n) return null;
  let k = curve.i.length - 1;
  while (k >= 0 && curve.i[k] > place) k--;
  return k >= 0 ? curve.s[k] : null;
}

function eventsOf(data, zoom) {
  const names = new Map(data.groups.map((group) => [group.anchor, group.name]));
  const anchors = [...new Set(data.events.rows.map((row) => row[2]))].filter(Boolean);
  const which = make("select", {id: "events-of"}, make("option", {value: ""}, "all"), anchors.map((anchor) => make("option", {value: anchor}, names.get(anchor) || anchor)));
  const kind = make("select", {id: "events-kind"}, [["decision", "decisions"], ["", "everything"], ["resize", "resizes"], ["scale", "replica changes"], ["evict", "evictions"], ["oom", "out of memory"]].map(([value, text]) => make("option", {value}, text)));
  const words = make("input", {type: "search", id: "events-words", placeholder: "words"});
  const said = make("span", {class: "quiet", role: "status"});
  const body = make("tbody");
  const more = make("button", {type: "button"}, "show all");
  const hasRuns = data.runs.length > 1;
  let limit = EVENTS_SHOWN;

  const isWanted = (row) => {
    if (which.value && row[2] !== which.value) return false;
    if (kind.value === "decision" && !isDecision(row)) return false;
    if (kind.value && kind.value !== "decision" && row[3] !== kind.value) return false;
    const text = `${names.get(row[2]) || ""} ${row[4]} ${row[5]} ${row[6]} ${row[7]}`.toLowerCase();
    return words.value.toLowerCase().split(/\s+/).every((word) => text.includes(word));
  };
  const line = (row, index) => make("tr", {id: `event-${index}`, tabindex: "-1"},
    make("td", {class: "when"}, make("button", {type: "button", class: "link", title: "zoom all plots to it", onclick: () => zoom(row[1], row[2])}, formatTime(row[1], data.runs[row[0]].origin ?? undefined))),
    hasRuns ? make("td", {}, data.runs[row[0]].label) : null,
    make("td", {}, names.get(row[2]) || "–"),
    make("td", {class: row[3] === "oom" ? "bad" : null}, `${KINDS[row[3]] || KINDS.event} ${row[4]}`), make("td", {}, row[5]),
    make("td", {class: "words"}, row[6], row[7] ? make("div", {class: "why"}, row[7]) : null,
      hasNumbers(row) ? make("div", {class: "numbers"}, numbersAt(data, data.runs[row[0]], row[2], row[1])) : null));

  function show() {
    const found = [];
    data.events.rows.forEach((row, index) => { if (isWanted(row)) found.push(index); });
    body.replaceChildren(...found.slice(0, limit).map((index) => line(data.events.rows[index], index)));
    said.textContent = `${found.length} of ${data.events.rows.length + data.events.leftOut}${data.events.leftOut ? `, ${data.events.leftOut} were not kept` : ""}`;
    more.hidden = found.length <= limit;
    more.textContent = `show all ${found.length}`;
  }

  for (const input of [which, kind, words]) input.addEventListener("input", () => { limit = EVENTS_SHOWN; show(); });
  more.addEventListener("click", () => { limit = Infinity; show(); });
  show();
  const element = make("section", {"aria-label": "Decisions", id: "decisions"}, make("h2", {}, "Decisions and events"),
    make("p", {class: "bar"}, make("label", {for: "events-of"}, "of"), which, make("label", {for: "events-kind"}, "kind"), kind, make("label", {for: "events-words", class: "sr"}, "words"), words, said),
    wide("Table of decisions", make("table", {class: "plain events"},
      make("thead", {}, make("tr", {}, ["time", ...(hasRuns ? ["run"] : []), "workload", "what", "object", "text and reason"].map((text) => make("th", {scope: "col"}, text)))), body)),
    make("p", {}, more));

  // Shows an event, whatever is filtered now.
  function open(index) {
    which.value = words.value = "";
    kind.value = isDecision(data.events.rows[index]) ? "decision" : "";
    limit = Math.max(limit, index + 1);
    show();
    const row = element.querySelector(`#event-${index}`);
    row.scrollIntoView({block: "center"});
    row.focus({preventScroll: true});
  }
  return {element, open};
}

// ---- The page ----

function textsOf(data) {
  return data.texts.map((entry) => make("details", {class: "text"}, make("summary", {}, make("h2", {}, entry.title)), make("pre", {class: "yaml", tabindex: "0", "aria-label": entry.title}, entry.text)));
}

function licencesOf(data) {
  const licences = document.getElementById("licences");
  return make("footer", {class: "quiet"}, make("p", {}, `${data.version}; drawn by ${data.charts}`),
    licences ? make("details", {}, make("summary", {}, "Licences"), make("pre", {class: "words"}, licences.content.textContent)) : null);
}

function showReport(main, data) {
  const labels = shortNames(data.runs.map((run) => run.name));
  data.runs.forEach((run, index) => { run.index = index; run.label = labels[index]; run.times = timesOf(run); });
  data.events.rows.sort((a, b) => a[1] - b[1]);
  data.marks = data.events.rows.map((row, index) => ({index, run: row[0], at: row[1], anchor: row[2], kind: row[3], text: `${row[4]}${row[6] ? `: ${row[6]}` : ""}`,
    get detail() { return [row[7], hasNumbers(row) ? numbersAt(data, data.runs[row[0]], row[2], row[1]) : ""].filter(Boolean).join("\n"); }}));
  const plots = [];
  const events = data.events.rows.length ? eventsOf(data, zoom) : null;
  const onMark = (mark) => { if (events) events.open(mark.index); };
  const groups = data.groups.map((group) => groupOf(data, group, plots, onMark));
  const links = [["scores", data.score.title || "Scores"], ...data.groups.map((group) => [group.anchor, group.name]), ...(events ? [["decisions", "Decisions"]] : [])];

  function zoom(at, anchor) {
    if (plots.length) plots[0].choose(at - AROUND_MS, at + AROUND_MS);
    const place = document.getElementById(anchor);
    if (place) place.scrollIntoView();
  }

  main.replaceChildren(...[make("header", {class: "head"}, make("h1", {}, data.title), factsOf(data)), rulesOf(data),
    make("nav", {"aria-label": "Contents", class: "contents"}, links.map(([anchor, name]) => make("a", {href: `#${anchor}`}, name))),
    scoreOf(data), plots.length ? make("p", {class: "quiet hint"}, "In a plot: drag to zoom, shift and drag to move, double click to see all; marks are buttons that tell what was decided. All plots move together.") : null,
    ...groups, events && events.element, ...textsOf(data), licencesOf(data)].filter(Boolean));
  syncPlots(plots);
  main.plots = plots;
  main.dataset.ready = "";
}

showReport(document.getElementById("report"), JSON.parse(document.getElementById("data").textContent));
