// Time series with marks, for the page and the report.
//
//   const plot = drawPlot(element, spec);   // fills the empty element
//   plot.update(spec); plot.setRange(from, to); plot.destroy();
//   syncPlots([plot, other]);               // zoom, pan and the cursor move together
//
// spec = {
//   title, unit: "cpu" (millicores) | "memory" (bytes) | "count" | "seconds" | "percent" (0 to 100),
//   times: [ms, ...],                       // ascending, shared by all series
//   series: [{name, kind: "line" | "step" | "band", values: [...] (band: low: [...], high: [...]), color: 0..7,
//             dash: [on, off],              // optional
//             sparse: true,                 // null means: no value of this series at that time, the line goes on; without it null is a gap
//             clip: true,                   // does not widen the value axis
//             step: true}],                 // of a band: its edges are steps
//   marks: [{at: ms, kind: "resize" | "scale" | "evict" | "oom" | "event", text, detail}],
//   onMark(mark),                           // optional: a mark was clicked or entered
//   extent: [from, to],                     // optional: the whole time axis (that of the times)
//   origin: ms,                             // optional: axes say "day 1 09:42" since then, else the time of UTC, as explain does
//   axis: "...",                            // optional: plots that move together and have the same one share the scale of values
// }
//
// Lines are drawn by dygraphs where the page has it (global Dygraph), else as SVG with the lowest and highest point of every pixel column.
// Everything else (axes' ticks, legend, cursor, zoom, keys, marks) is here, the same for both. All texts are set as text.

const MARKS = {resize: "↕", scale: "⇆", evict: "×", oom: "!", event: "•"};
const MARK_GAP = 19;
const POP_ROWS = 12;
const LEFT = 52;
const RIGHT = 8;
const BOTTOM = 18;
const MINUTE = 60000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const TIME_STEPS = [1000, 5000, 15000, 30000, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR,
  12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 28 * DAY, 91 * DAY, 364 * DAY];

const alive = new Set();

function redrawAll() {
  for (const plot of alive) plot.redraw();
}
if (typeof window !== "undefined") {
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
  window.matchMedia("print").addEventListener("change", redrawAll);
  window.addEventListener("beforeprint", () => { for (const plot of alive) plot.print(); });
}

// ---- Words ----

function trim(number, digits) {
  return String(Number(number.toFixed(digits)));
}

export function formatValue(unit, value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (size === 0 && unit !== "percent" && unit !== "seconds") return "0";
  if (unit === "cpu") return size >= 1000 ? trim(value / 1000, 2) : `${trim(value, size < 10 ? 1 : 0)}m`;
  if (unit === "memory") {
    const units = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];
    let place = 0;
    let rest = value;
    while (Math.abs(rest) >= 1000 && place < units.length - 1) { rest /= 1024; place++; }
    return trim(rest, Math.abs(rest) < 10 && place > 0 ? 2 : Math.abs(rest) < 100 && place > 2 ? 1 : 0) + units[place];
  }
  if (unit === "seconds") return size > 0 && size < 1 ? `${trim(value * 1000, size < 0.01 ? 1 : 0)}ms` : `${trim(value, 2)}s`;
  if (unit === "percent") return `${trim(value, size < 10 ? 1 : 0)}%`;
  return trim(value, size < 10 ? 2 : 0);
}

function two(number) {
  return String(number).padStart(2, "0");
}

export function formatTime(ms, origin, step = 0) {
  const seconds = step > 0 && step < MINUTE;
  if (origin !== undefined) {
    const since = Math.max(0, Math.round((ms - origin) / 1000));
    const day = Math.floor(since / 86400) + 1;
    const clock = `${two(Math.floor(since / 3600) % 24)}:${two(Math.floor(since / 60) % 60)}${seconds || step === 0 ? `:${two(since % 60)}` : ""}`;
    return step >= DAY || (step > 0 && since % 86400 === 0) ? `day ${day}` : step > 0 ? clock : `day ${day} ${clock}`;
  }
  const at = new Date(ms);
  const date = `${at.getUTCFullYear()}-${two(at.getUTCMonth() + 1)}-${two(at.getUTCDate())}`;
  const clock = `${two(at.getUTCHours())}:${two(at.getUTCMinutes())}${seconds || step === 0 ? `:${two(at.getUTCSeconds())}` : ""}`;
  const midnight = at.getUTCHours() === 0 && at.getUTCMinutes() === 0 && at.getUTCSeconds() === 0;
  return step >= DAY || (step > 0 && midnight) ? date.slice(5) : step > 0 ? clock : `${date} ${clock}`;
}

function timeTicks(from, to, width, origin) {
  const room = Math.max(2, Math.floor(width / 70));
  const step = TIME_STEPS.find((s) => (to - from) / s <= room) || TIME_STEPS[TIME_STEPS.length - 1];
  const base = origin !== undefined ? origin : 0;
  const ticks = [];
  for (let at = base + Math.ceil((from - base) / step) * step; at <= to; at += step) ticks.push({v: at, label: formatTime(at, origin, step)});
  return ticks;
}

function valueTicks(unit, low, high, height) {
  const room = Math.max(2, Math.floor(height / 26));
  const span = high - low || 1;
  let step;
  if (unit === "memory") {
    const power = 2 ** Math.floor(Math.log2(span / room));
    step = [1, 1.5, 2].map((n) => n * power).find((s) => span / s <= room) || 2 * power;
  } else {
    const power = 10 ** Math.floor(Math.log10(span / room));
    step = [1, 2, 5, 10].map((n) => n * power).find((s) => span / s <= room) || 10 * power;
    if (unit === "count") step = Math.max(1, step);
  }
  const ticks = [];
  for (let n = Math.ceil(low / step - 1e-9); n * step <= high * (1 + 1e-9); n++) ticks.push({v: n * step, label: formatValue(unit, n * step)});
  return ticks;
}

// ---- Data ----

// The first index whose time is not before `at`.
function indexOf(times, at) {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] < at) low = middle + 1; else high = middle;
  }
  return low;
}

const isValue = (value) => value !== null && value !== undefined && !Number.isNaN(value);

// Points to draw of values between two times: of each of `columns` the first, the lowest, the highest and the last, so that no peak is
// lost however many points share a column; one more on either side. null: a gap.
export function thin(times, values, from, to, columns, sparse = false) {
  let first = Math.max(0, indexOf(times, from) - 1);
  let last = Math.min(times.length - 1, indexOf(times, to));
  while (sparse && first > 0 && !isValue(values[first])) first--;
  while (sparse && last < times.length - 1 && !isValue(values[last])) last++;
  const points = [];
  const wide = (to - from) / Math.max(1, columns) || 1;
  let column = NaN;
  let held = null;
  const flush = () => {
    if (!held) return;
    const picks = [...new Set([held.first, held.low, held.high, held.last])].sort((a, b) => a - b);
    for (const i of picks) points.push([times[i], values[i]]);
    held = null;
  };
  for (let i = first; i <= last; i++) {
    const value = values[i];
    if (!isValue(value)) {
      if (!sparse) {
        flush();
        if (points.length && points[points.length - 1] !== null) points.push(null);
      }
      continue;
    }
    const place = Math.floor((times[i] - from) / wide);
    if (place !== column || !held) {
      flush();
      column = place;
      held = {first: i, low: i, high: i, last: i};
    } else {
      if (value < values[held.low]) held.low = i;
      if (value > values[held.high]) held.high = i;
      held.last = i;
    }
  }
  flush();
  return points;
}

// Every series as one or two rows of values; a sparse step is filled in.
function tracksOf(spec) {
  const tracks = [];
  const fill = (values) => {
    let held = null;
    return values.map((value) => { if (isValue(value)) held = value; return held; });
  };
  spec.series.forEach((series, index) => {
    const steps = series.kind === "step" || Boolean(series.step);
    const take = (values, part) => tracks.push({
      series, index, part, steps, sparse: Boolean(series.sparse) && !steps, values: steps && series.sparse ? fill(values) : values,
    });
    if (series.kind === "band") { take(series.low, "low"); take(series.high, "high"); } else { take(series.values, "line"); }
  });
  return tracks;
}

function valueExtent(spec, tracks, from, to) {
  const first = Math.max(0, indexOf(spec.times, from) - 1);
  const last = Math.min(spec.times.length - 1, indexOf(spec.times, to));
  let low = 0;
  let high = 0;
  let clipped = 0;
  for (const track of tracks) {
    for (let i = first; i <= last; i++) {
      const value = track.values[i];
      if (!isValue(value)) continue;
      if (track.series.clip) { clipped = Math.max(clipped, value); } else { high = Math.max(high, value); low = Math.min(low, value); }
    }
  }
  if (high <= low) high = clipped > 0 ? clipped : low + 1;
  return [low, high + (high - low) * 0.06];
}

// What a series says at a time: the step that holds, or the nearest point.
function valueAt(times, track, at) {
  let before = Math.min(times.length - 1, indexOf(times, at));
  if (before >= 0 && times[before] > at) before--;
  let after = before + 1;
  while (track.sparse && before >= 0 && !isValue(track.values[before])) before--;
  if (track.steps) return before >= 0 ? track.values[before] : null;
  while (track.sparse && after < times.length && !isValue(track.values[after])) after++;
  const near = before < 0 || (after < times.length && times[after] - at < at - times[before]) ? after : before;
  return near >= 0 && near < times.length ? track.values[near] : null;
}

// ---- Elements ----

function make(tag, name, text) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  if (text !== undefined) element.textContent = text;
  return element;
}

function makeSvg(tag, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

function swatch(series) {
  const svg = makeSvg("svg", {viewBox: "0 0 18 8", "aria-hidden": "true"});
  const color = (series.color || 0) % 8;
  if (series.kind === "band") svg.append(makeSvg("rect", {x: 0, y: 0, width: 18, height: 8, class: `plot-band plot-f${color}`}));
  else svg.append(makeSvg("path", {d: "M0 4H18", class: `plot-line plot-s${color}`, "stroke-dasharray": (series.dash || []).join(" ")}));
  return svg;
}

// ---- Two ways to draw lines: draw(spec, tracks, range, extent), destroy() ----

function inkOf(element, name) {
  return getComputedStyle(element).getPropertyValue(name).trim() || "#808080";
}

class DygraphLines {
  constructor(place) {
    // Its legend would set a style attribute, which our security policy refuses; the others are not drawn either.
    const {Axes, Grid} = globalThis.Dygraph.Plugins;
    globalThis.Dygraph.PLUGINS = [Grid, Axes];
    this.place = place;
    this.graph = null;
    this.spec = null;
  }

  options(spec, tracks, range, extent) {
    const box = this.place.getBoundingClientRect();
    const series = {};
    tracks.forEach((track, i) => {
      const color = inkOf(this.place, `--plot-${(track.series.color || 0) % 8}`);
      series[`s${i}`] = {color, strokeWidth: 1.4, stepPlot: track.steps, strokePattern: track.series.dash || null};
      if (track.part === "low") series[`s${i}`].plotter = (e) => fillBand(e, track.steps, color);
      if (track.part === "high") series[`s${i}`].plotter = () => {};
    });
    return {
      series, dateWindow: range.slice(), valueRange: extent.slice(), connectSeparatedPoints: true, legend: "never", interactionModel: {},
      highlightCircleSize: 0, rightGap: RIGHT, xAxisHeight: BOTTOM, axisLabelFontSize: 11, axisLineColor: inkOf(this.place, "--plot-rule"),
      gridLineColor: inkOf(this.place, "--plot-rule"), gridLineWidth: 1, animatedZooms: false,
      axes: {
        x: {drawGrid: false, ticker: (a, b) => timeTicks(a, b, box.width - LEFT - RIGHT, spec.origin), axisLabelWidth: 64},
        y: {ticker: (a, b) => valueTicks(spec.unit, a, b, box.height - BOTTOM), axisLabelWidth: LEFT - 6},
      },
    };
  }

  draw(spec, tracks, range, extent) {
    const options = this.options(spec, tracks, range, extent);
    if (this.graph && this.spec === spec) {
      this.graph.updateOptions(options);
      return;
    }
    const last = spec.times.length - 1;
    // Of a step only its corners, or dashes would begin anew at each point.
    const cell = (track, i) => {
      const value = track.values[i];
      if (!isValue(value)) return track.sparse ? null : NaN;
      return track.steps && track.part === "line" && i > 0 && i < last && track.values[i - 1] === value ? null : value;
    };
    const rows = spec.times.map((at, i) => [at, ...tracks.map((track) => cell(track, i))]);
    options.labels = ["t", ...tracks.map((track, i) => `s${i}`)];
    options.file = rows;
    if (this.graph) this.graph.destroy();
    this.graph = new globalThis.Dygraph(this.place, rows, options);
    this.spec = spec;
  }

  resize() {
    if (this.graph) this.graph.resize();
  }

  destroy() {
    if (this.graph) this.graph.destroy();
    this.graph = null;
  }
}

// Between a band's low points and those of the series after it.
function fillBand(e, steps, color) {
  const low = e.allSeriesPoints[e.seriesIndex];
  const high = e.allSeriesPoints[e.seriesIndex + 1];
  const context = e.drawingContext;
  context.save();
  context.globalAlpha = 0.16;
  context.fillStyle = color;
  const good = (i) => high[i] && isValue(low[i].yval) && isValue(high[i].yval);
  for (let i = 0; i < low.length;) {
    if (!good(i)) { i++; continue; }
    let end = i;
    while (end + 1 < low.length && good(end + 1)) end++;
    context.beginPath();
    context.moveTo(high[i].canvasx, high[i].canvasy);
    for (let k = i + 1; k <= end; k++) {
      if (steps) context.lineTo(high[k].canvasx, high[k - 1].canvasy);
      context.lineTo(high[k].canvasx, high[k].canvasy);
    }
    for (let k = end; k >= i; k--) {
      context.lineTo(low[k].canvasx, low[k].canvasy);
      if (steps && k > i) context.lineTo(low[k].canvasx, low[k - 1].canvasy);
    }
    context.fill();
    i = end + 1;
  }
  context.restore();
}

class SvgLines {
  constructor(place) {
    this.place = place;
  }

  draw(spec, tracks, range, extent) {
    this.last = [spec, tracks, range, extent];
    const box = this.place.getBoundingClientRect();
    const width = Math.max(1, box.width - LEFT - RIGHT);
    const height = Math.max(1, box.height - BOTTOM);
    const x = (at) => (LEFT + ((at - range[0]) / (range[1] - range[0] || 1)) * width).toFixed(1);
    const y = (value) => (height - ((value - extent[0]) / (extent[1] - extent[0] || 1)) * height).toFixed(1);
    const svg = makeSvg("svg", {"aria-hidden": "true"});
    const clip = makeSvg("svg", {x: LEFT, y: 0, width, height, viewBox: `${LEFT} 0 ${width} ${height}`, preserveAspectRatio: "none", overflow: "hidden"});
    for (const tick of valueTicks(spec.unit, extent[0], extent[1], height)) {
      const at = Number(y(tick.v));
      svg.append(makeSvg("path", {d: `M${LEFT} ${at}H${LEFT + width}`, class: "plot-grid"}));
      const label = makeSvg("text", {x: LEFT - 6, y: at + 4, "text-anchor": "end"});
      label.textContent = tick.label;
      svg.append(label);
    }
    for (const tick of timeTicks(range[0], range[1], width, spec.origin)) {
      const label = makeSvg("text", {x: x(tick.v), y: height + 14, "text-anchor": "middle"});
      label.textContent = tick.label;
      svg.append(label);
    }
    const pathOf = (points, steps) => {
      let d = "";
      let before = null;
      for (const point of points) {
        if (point === null) { before = null; continue; }
        d += before === null ? `M${x(point[0])} ${y(point[1])}` : steps ? `H${x(point[0])}V${y(point[1])}` : `L${x(point[0])} ${y(point[1])}`;
        before = point;
      }
      return d;
    };
    tracks.forEach((track, i) => {
      const color = (track.series.color || 0) % 8;
      const points = thin(spec.times, track.values, range[0], range[1], width, track.sparse);
      if (track.part === "low") {
        const high = thin(spec.times, tracks[i + 1].values, range[0], range[1], width, track.sparse).filter(Boolean);
        const low = points.filter(Boolean).reverse();
        if (high.length && low.length) {
          clip.append(makeSvg("path", {d: `${pathOf(high, track.steps)}L${pathBack(low, track.steps, x, y)}Z`, class: `plot-band plot-f${color}`}));
        }
      } else if (track.part === "line") {
        clip.append(makeSvg("path", {d: pathOf(points, track.steps), class: `plot-line plot-s${color}`, "stroke-dasharray": (track.series.dash || []).join(" ")}));
      }
    });
    svg.append(makeSvg("path", {d: `M${LEFT} ${height}H${LEFT + width}`, class: "plot-grid"}), clip);
    this.place.replaceChildren(svg);
  }

  resize() {
    if (this.last) this.draw(...this.last);
  }

  destroy() {
    this.place.replaceChildren();
  }
}

function pathBack(points, steps, x, y) {
  return points.map((point, i) => (steps && i > 0 ? `${x(points[i - 1][0])} ${y(point[1])}L` : "") + `${x(point[0])} ${y(point[1])}`).join("L");
}

// ---- The plot ----

class Plot {
  constructor(element, spec) {
    this.element = element;
    this.peers = [];
    this.isShown = false;
    this.isNear = false;
    this.build();
    this.update(spec);
    alive.add(this);
    this.sizes = new ResizeObserver(() => { if (this.isShown) { this.lines.resize(); this.redraw(); } });
    this.sizes.observe(this.body);
    this.sight = new IntersectionObserver((entries) => this.see(entries[entries.length - 1].isIntersecting), {rootMargin: "300px"});
    this.sight.observe(this.body);
  }

  build() {
    this.title = make("h3", "plot-title");
    this.legend = make("ul", "plot-legend");
    this.time = make("span", "plot-time");
    const head = make("div", "plot-head");
    head.append(this.title, this.legend, this.time);
    this.body = make("div", "plot-body");
    this.body.tabIndex = 0;
    this.body.setAttribute("role", "group");
    this.canvas = make("div", "plot-canvas");
    this.ooms = make("div");
    this.cursor = make("div", "plot-cursor plot-hidden");
    this.choice = make("div", "plot-select plot-hidden");
    this.body.append(this.canvas, this.ooms, this.cursor, this.choice);
    this.strip = make("div", "plot-marks");
    this.strip.setAttribute("role", "toolbar");
    this.pop = make("div", "plot-pop plot-hidden");
    this.pop.setAttribute("role", "status");
    this.element.classList.add("plot");
    this.element.replaceChildren(head, this.body, this.strip, this.pop);
    this.lines = typeof globalThis.Dygraph === "function" ? new DygraphLines(this.canvas) : new SvgLines(this.canvas);
    this.listen();
  }

  update(spec) {
    const whole = !this.range || (this.range[0] === this.full[0] && this.range[1] === this.full[1]);
    this.spec = spec;
    this.tracks = tracksOf(spec);
    const times = spec.times;
    this.full = spec.extent || (times.length ? [times[0], times[times.length - 1]] : [0, 1]);
    if (this.full[1] <= this.full[0]) this.full = [this.full[0], this.full[0] + 1];
    if (whole) this.range = this.full.slice();
    this.title.textContent = spec.title;
    this.body.setAttribute("aria-label", `${spec.title}: ${spec.series.map((series) => series.name).join(", ")}. Arrows move, + and - zoom, 0 shows all.`);
    this.strip.setAttribute("aria-label", `Marks of ${spec.title}`);
    this.values = spec.series.map((series) => {
      const item = make("li");
      const value = make("span", "plot-value");
      item.append(swatch(series), make("span", "", series.name), value);
      return {item, value};
    });
    this.legend.replaceChildren(...this.values.map((entry) => entry.item));
    this.redraw();
  }

  // Plots far from what is on the screen wait until they come near.
  see(isNear) {
    this.isNear = isNear;
    if (!isNear || (this.isShown && !this.isStale)) return;
    this.isShown = true;
    this.redraw();
  }

  print() {
    this.isNear = true;
    this.isShown = true;
    this.redraw();
  }

  redraw() {
    this.isStale = !this.isNear;
    if (this.isStale) this.ooms.replaceChildren();
    if (!this.isShown || this.isStale || this.body.clientWidth === 0) return;
    this.lines.draw(this.spec, this.tracks, this.range, this.extent());
    this.drawMarks();
  }

  extent() {
    const alike = this.peers.filter((plot) => plot.spec.axis !== undefined && plot.spec.axis === this.spec.axis);
    const extents = [this, ...alike].map((plot) => valueExtent(plot.spec, plot.tracks, ...this.range));
    return [Math.min(...extents.map((extent) => extent[0])), Math.max(...extents.map((extent) => extent[1]))];
  }

  setRange(from, to) {
    const span = Math.min(this.full[1] - this.full[0], Math.max(1000, to - from));
    const start = Math.min(Math.max(from, this.full[0]), this.full[1] - span);
    if (start === this.range[0] && start + span === this.range[1]) return;
    this.range = [start, start + span];
    this.hidePop();
    this.redraw();
  }

  // A range that the reader chose: for the peers too.
  choose(from, to) {
    for (const plot of [this, ...this.peers]) plot.setRange(from, to);
  }

  x(at) {
    return LEFT + ((at - this.range[0]) / (this.range[1] - this.range[0])) * (this.body.clientWidth - LEFT - RIGHT);
  }

  at(x) {
    const share = Math.min(1, Math.max(0, (x - LEFT) / Math.max(1, this.body.clientWidth - LEFT - RIGHT)));
    return this.range[0] + share * (this.range[1] - this.range[0]);
  }

  setCursor(at) {
    const isOff = at === null || at < this.range[0] || at > this.range[1];
    this.cursor.classList.toggle("plot-hidden", isOff);
    this.time.textContent = isOff ? "" : formatTime(at, this.spec.origin);
    if (!isOff) this.cursor.style.left = `${this.x(at)}px`;
    this.values.forEach((entry, index) => {
      const parts = isOff ? [] : this.tracks.filter((track) => track.index === index).map((track) => valueAt(this.spec.times, track, at));
      entry.value.textContent = parts.map((value) => formatValue(this.spec.unit, value)).join("–");
    });
  }

  point(at) {
    for (const plot of [this, ...this.peers]) plot.setCursor(at);
  }

  // ---- Mouse and keys ----

  listen() {
    let from = null;
    let panned = null;
    const place = (event) => event.clientX - this.body.getBoundingClientRect().left;
    this.body.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      this.body.setPointerCapture(event.pointerId);
      if (event.shiftKey) panned = {x: place(event), range: this.range.slice()}; else from = place(event);
    });
    this.body.addEventListener("pointermove", (event) => {
      const x = place(event);
      if (panned) {
        const move = ((panned.x - x) / Math.max(1, this.body.clientWidth - LEFT - RIGHT)) * (panned.range[1] - panned.range[0]);
        this.choose(panned.range[0] + move, panned.range[1] + move);
      } else if (from !== null) {
        this.choice.classList.toggle("plot-hidden", Math.abs(x - from) < 4);
        this.choice.style.left = `${Math.max(LEFT, Math.min(from, x))}px`;
        this.choice.style.width = `${Math.abs(x - from)}px`;
      }
      this.point(this.at(x));
    });
    const drop = () => {
      from = null;
      panned = null;
      this.choice.classList.add("plot-hidden");
    };
    this.body.addEventListener("pointerup", (event) => {
      const x = place(event);
      if (from !== null && Math.abs(x - from) >= 4) this.choose(this.at(Math.min(from, x)), this.at(Math.max(from, x)));
      drop();
    });
    this.body.addEventListener("pointercancel", drop);
    this.body.addEventListener("pointerleave", () => this.point(null));
    this.body.addEventListener("dblclick", () => this.choose(...this.full));
    this.body.addEventListener("wheel", (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.at(place(event)));
    }, {passive: false});
    this.body.addEventListener("keydown", (event) => this.key(event));
    this.strip.addEventListener("keydown", (event) => this.keyMark(event));
    this.strip.addEventListener("focusout", () => this.hidePop());
    this.strip.addEventListener("mouseleave", () => { if (!this.strip.contains(document.activeElement)) this.hidePop(); });
  }

  zoom(factor, around) {
    const middle = around === undefined ? (this.range[0] + this.range[1]) / 2 : around;
    this.choose(middle - (middle - this.range[0]) * factor, middle + (this.range[1] - middle) * factor);
  }

  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const quarter = (this.range[1] - this.range[0]) / 4;
    const keys = {
      ArrowLeft: () => this.choose(this.range[0] - quarter, this.range[1] - quarter),
      ArrowRight: () => this.choose(this.range[0] + quarter, this.range[1] + quarter),
      "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2), 0: () => this.choose(...this.full), Home: () => this.choose(...this.full),
    };
    if (!keys[event.key]) return;
    keys[event.key]();
    event.preventDefault();
    event.stopPropagation();
  }

  // ---- Marks ----

  drawMarks() {
    const had = this.strip.contains(document.activeElement);
    const groups = [];
    for (const mark of this.spec.marks || []) {
      if (mark.at < this.range[0] || mark.at > this.range[1]) continue;
      const x = this.x(mark.at);
      const group = groups[groups.length - 1];
      if (group && x - group.x < MARK_GAP) group.marks.push(mark); else groups.push({x, marks: [mark]});
    }
    this.strip.replaceChildren(...groups.map((group, i) => this.markButton(group, i === 0)));
    this.ooms.replaceChildren(...groups.filter((group) => group.marks.some((mark) => mark.kind === "oom")).map((group) => {
      const line = make("div", "plot-oom");
      line.style.left = `${this.x(group.marks.find((mark) => mark.kind === "oom").at)}px`;
      return line;
    }));
    if (had && this.strip.firstChild) this.strip.firstChild.focus();
  }

  markButton(group, isFirst) {
    const kinds = [...new Set(group.marks.map((mark) => mark.kind))];
    const kind = kinds.includes("oom") ? "oom" : kinds[0];
    const count = group.marks.length;
    const button = make("button", "plot-mark", count > 1 ? String(count) : MARKS[kind] || MARKS.event);
    button.type = "button";
    button.dataset.kind = kind;
    button.tabIndex = isFirst ? 0 : -1;
    button.style.left = `${Math.max(8, group.x)}px`;
    button.setAttribute("aria-label", `${formatTime(group.marks[0].at, this.spec.origin)}: ${count > 1 ? `${count} marks` : group.marks[0].text}`);
    const show = () => this.showPop(group);
    button.addEventListener("mouseenter", show);
    button.addEventListener("focus", show);
    button.addEventListener("click", () => { if (this.spec.onMark) this.spec.onMark(group.marks[0]); });
    return button;
  }

  showPop(group) {
    const list = make("dl");
    for (const mark of group.marks.slice(0, POP_ROWS)) {
      list.append(make("dt", "", `${MARKS[mark.kind] || MARKS.event} ${formatTime(mark.at, this.spec.origin)}`), make("dd", "", mark.detail ? `${mark.text}\n${mark.detail}` : mark.text));
    }
    if (group.marks.length > POP_ROWS) list.append(make("dt", "", `and ${group.marks.length - POP_ROWS} more: zoom in`));
    this.pop.replaceChildren(list);
    this.pop.classList.remove("plot-hidden");
    this.pop.style.top = `${this.strip.offsetTop + this.strip.offsetHeight + 2}px`;
    this.pop.style.left = `${Math.max(0, Math.min(group.x - 20, this.element.clientWidth - this.pop.offsetWidth))}px`;
    this.point(group.marks[0].at);
  }

  hidePop() {
    this.pop.classList.add("plot-hidden");
  }

  keyMark(event) {
    const buttons = [...this.strip.children];
    const at = buttons.indexOf(document.activeElement);
    const moves = {ArrowLeft: Math.max(0, at - 1), ArrowRight: Math.min(buttons.length - 1, at + 1), Home: 0, End: buttons.length - 1};
    if (event.key === "Escape" && !this.pop.classList.contains("plot-hidden")) {
      this.hidePop();
      event.stopPropagation();
    } else if (event.key in moves && at >= 0) {
      buttons[at].tabIndex = -1;
      buttons[moves[event.key]].tabIndex = 0;
      buttons[moves[event.key]].focus();
      event.preventDefault();
      event.stopPropagation();
    }
  }

  destroy() {
    alive.delete(this);
    this.sizes.disconnect();
    this.sight.disconnect();
    this.lines.destroy();
    this.element.replaceChildren();
    for (const plot of this.peers) plot.peers = plot.peers.filter((peer) => peer !== this);
  }
}

export function drawPlot(element, spec) {
  return new Plot(element, spec);
}

export function syncPlots(plots) {
  for (const plot of plots) plot.peers = plots.filter((peer) => peer !== plot);
}
