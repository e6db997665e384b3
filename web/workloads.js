// All workloads in one table. Only the rows in sight are in the document, so 10,000 scroll like ten; sorting and filtering work on arrays.

import {ago, ask, count, cpu, make, memory, money, session, share, workloadHref} from "/ui.js";

const narrow = window.matchMedia("(max-width: 480px)"); // where a row has a line for its workload and one for who scales it
const rowPx = () => (narrow.matches ? 44 : 30);
const SPARE_ROWS = 8;
const REFRESH_ROWS = 2000;
const SCROLL_MS = 1000; // while the user scrolls, the rows stay as they are
const GI = 2 ** 30;

const COLUMNS = [
  {id: "workload", title: "Workload", sort: (r) => r.text},
  {id: "by", title: "Scaled by", sort: (r) => r.by},
  {id: "replicas", title: "Replicas", number: true, sort: (r) => r.replicas},
  {id: "cpu", title: "CPU req / use", long: "CPU requested and used by one pod", number: true, sort: (r) => each(r, r.cpuRequest)},
  {id: "cpuTarget", of: "CPU", title: "Target", long: "CPU target of one pod", number: true, sort: (r) => r.cpuTarget ?? -1},
  {id: "cpuWaste", of: "CPU", title: "Waste", long: "CPU requested and not used by all pods", number: true, sort: (r) => r.cpuWaste},
  {id: "memory", title: "Memory req / use", long: "memory requested and used by one pod", number: true, sort: (r) => each(r, r.memoryRequest)},
  {id: "memoryTarget", of: "Memory", title: "Target", long: "memory target of one pod", number: true, sort: (r) => r.memoryTarget ?? -1},
  {id: "memoryWaste", of: "Memory", title: "Waste", long: "memory requested and not used by all pods", number: true, sort: (r) => r.memoryWaste},
  {id: "cost", title: "Cost/month", long: "cost of what is requested, a month", number: true, sort: (r) => r.cost, money: true},
  {id: "wasteCost", of: "Cost of", title: "Waste", long: "cost of what is requested and not used, a month", number: true, sort: (r) => r.wasteCost, money: true},
  {id: "ooms", title: "OOM", long: "OOM kills", number: true, sort: (r) => r.ooms},
  {id: "decision", title: "Last decision", sort: (r) => r.decidedAt ?? 0},
];

const remembered = {filter: "", sort: "workload", down: false, chosen: ""};

// What one pod has: the mean of those that there are.
function each(row, sum) { return row.pods > 0 ? sum / row.pods : 0; }

function readRows(data) {
  const {priceCpu, priceMemory} = session.info;
  return data.rows.map((values) => {
    const row = {};
    data.columns.forEach((name, i) => { row[name] = values[i]; });
    row.key = [row.ns, row.kind, row.name, row.by].join("\n");
    row.text = `${row.ns}/${row.name} ${row.kind} ${row.by}`.toLowerCase();
    row.cpuWaste = row.cpuUse === null ? 0 : Math.max(0, row.cpuRequest - row.cpuUse);
    row.memoryWaste = row.memoryUse === null ? 0 : Math.max(0, row.memoryRequest - row.memoryUse);
    row.cost = row.cpuRequest / 1000 * priceCpu + row.memoryRequest / GI * priceMemory;
    row.wasteCost = row.cpuWaste / 1000 * priceCpu + row.memoryWaste / GI * priceMemory;
    return row;
  });
}

function replicasCell(row) {
  const now = row.ready === row.replicas ? String(row.replicas) : `${row.ready} → ${row.replicas}`;
  return row.min === null ? [now] : [now, make("span", {class: "range"}, ` (${row.min}–${count(row.max)})`)];
}

function cells(row, now, hasMoney) {
  const pair = (request, use, text) => (row.pods === 0 ? "–" : `${request > 0 ? text(each(row, request)) : "none"} / ${use === null ? "–" : text(each(row, use))}`);
  const short = (request, use) => (use !== null && request > 0 && use > request ? make("span", {class: "look", title: "uses more than it asks for"}, " ▲") : null);
  const decision = row.decidedAt ? `${ago(row.decidedAt, now)} ago: ${row.decision}` : row.decision || "–";
  const list = {
    workload: [make("a", {href: workloadHref(row), tabindex: "-1"}, make("span", {class: "ns"}, `${row.ns}/`), row.name), make("span", {class: "kind"}, ` ${row.kind}${row.podLevel ? ", pod-level" : ""}`), row.by ? make("span", {class: "by-inline"}, ` ${row.by}`) : null],
    by: [row.by || "–"],
    replicas: replicasCell(row),
    cpu: [pair(row.cpuRequest, row.cpuUse, cpu), short(row.cpuRequest, row.cpuUse)],
    cpuTarget: [row.cpuTarget === null ? "–" : cpu(row.cpuTarget)],
    memory: [pair(row.memoryRequest, row.memoryUse, memory), short(row.memoryRequest, row.memoryUse)],
    memoryTarget: [row.memoryTarget === null ? "–" : memory(row.memoryTarget)],
    cpuWaste: [cpu(row.cpuWaste)],
    memoryWaste: [memory(row.memoryWaste)],
    cost: [money(row.cost)],
    wasteCost: [money(row.wasteCost)],
    ooms: [row.ooms > 0 ? make("span", {class: "bad"}, String(row.ooms)) : "0"],
    decision: [decision],
  };
  return COLUMNS.filter((c) => hasMoney || !c.money).map((c) => make("td", {class: `c-${c.id}${c.number ? " number" : ""}`, title: c.id === "decision" || c.id === "workload" ? (c.id === "decision" ? decision : `${row.kind} ${row.ns}/${row.name}`) : null}, list[c.id]));
}

export function workloadsView() {
  const hasMoney = session.info.priceCpu > 0 || session.info.priceMemory > 0;
  const filter = make("input", {id: "filter", type: "search", placeholder: "filter: name, namespace, kind, vpa/…", "aria-label": "Filter workloads", autocomplete: "off", spellcheck: "false"});
  const summary = make("span", {class: "quiet", role: "status"});
  const head = make("tr");
  const above = make("tr", {class: "room", "aria-hidden": "true"}, make("td"));
  const below = make("tr", {class: "room", "aria-hidden": "true"}, make("td"));
  const body = make("tbody", {}, above, below);
  const table = make("table", {class: "rows"}, make("caption", {class: "sr"}, "Workloads; arrow keys choose one, Enter opens it"), make("thead", {}, head), body);
  const scroller = make("div", {class: "scroller", tabindex: "0", role: "region", "aria-label": "Workloads"}, table);
  const element = make("div", {class: "view full"}, make("h1", {class: "sr"}, "Workloads"), make("div", {class: "bar"}, filter, summary), scroller);
  let rows = [];
  let shown = [];
  let now = 0;
  let version = -1;
  let isAsking = false;
  let isOver = false;
  let askedAt = 0;
  let drawnFrom = -1;
  let drawnTo = -1;
  let frame = 0;
  let scrolledAt = 0;
  const lines = new Map(); // those in the document, by their place

  function draw(force) {
    const top = Math.max(0, scroller.scrollTop - rowPx());
    const from = Math.max(0, Math.floor(top / rowPx()) - SPARE_ROWS);
    const to = Math.min(shown.length, Math.ceil((top + scroller.clientHeight) / rowPx()) + SPARE_ROWS);
    if (!force && from === drawnFrom && to === drawnTo) return;
    drawnFrom = from;
    drawnTo = to;
    above.firstChild.style.height = `${from * rowPx()}px`;
    below.firstChild.style.height = `${(shown.length - to) * rowPx()}px`;
    if (force) {
      for (const line of lines.values()) line.remove();
      lines.clear();
    }
    for (const [i, line] of lines) {
      if (i < from || i >= to) {
        line.remove();
        lines.delete(i);
      }
    }
    let next = below;
    for (let i = to - 1; i >= from; i--) {
      let line = lines.get(i);
      if (!line) {
        line = lineOf(i);
        lines.set(i, line);
        body.insertBefore(line, next);
      }
      next = line;
    }
  }

  function lineOf(i) {
    const row = shown[i];
    const isChosen = row.key === remembered.chosen;
    const line = make("tr", {"aria-rowindex": i + 2, "aria-selected": isChosen ? "true" : null, class: isChosen ? "chosen" : null}, cells(row, now, hasMoney));
    line.dataset.index = i;
    return line;
  }

  function drawHead() {
    head.replaceChildren(...COLUMNS.filter((c) => hasMoney || !c.money).map((c) => {
      const isSorted = remembered.sort === c.id;
      return make("th", {scope: "col", class: `c-${c.id}${c.number ? " number" : ""}`, "aria-sort": isSorted ? (remembered.down ? "descending" : "ascending") : null},
        make("button", {type: "button", title: c.long, onclick: () => {
          remembered.down = isSorted ? !remembered.down : Boolean(c.number) || c.id === "decision";
          remembered.sort = c.id;
          drawHead();
          sortRows();
        }}, c.of ? make("span", {class: "sr"}, `${c.of} `) : null, c.title, isSorted ? make("span", {"aria-hidden": "true"}, remembered.down ? " ↓" : " ↑") : null));
    }));
  }

  // Once for new rows or another column; a filter keeps the order.
  function sortRows() {
    const column = COLUMNS.find((c) => c.id === remembered.sort);
    const sign = remembered.down ? -1 : 1;
    const keyed = rows.map((row) => [column.sort(row), row]);
    keyed.sort((a, b) => (a[0] < b[0] ? -sign : a[0] > b[0] ? sign : a[1].text < b[1].text ? -1 : 1));
    rows = keyed.map((pair) => pair[1]);
    arrange();
  }

  function arrange() {
    const words = remembered.filter.toLowerCase().split(/\s+/).filter(Boolean);
    shown = words.length ? rows.filter((row) => words.every((word) => row.text.includes(word))) : rows;
    summary.textContent = words.length ? `${shown.length} of ${rows.length} workloads` : `${rows.length} workloads`;
    table.setAttribute("aria-rowcount", String(shown.length + 1));
    draw(true);
  }

  function choose(index) {
    if (shown.length === 0) return;
    const at = Math.max(0, Math.min(shown.length - 1, index));
    remembered.chosen = shown[at].key;
    const top = at * rowPx();
    if (top < scroller.scrollTop) scroller.scrollTop = top;
    else if (top + 2 * rowPx() > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = top + 2 * rowPx() - scroller.clientHeight;
    draw(true);
    summary.textContent = `${shown[at].ns}/${shown[at].name}, ${at + 1} of ${shown.length}`;
  }

  async function refresh() {
    if (isAsking) return;
    isAsking = true;
    askedAt = Date.now();
    try {
      const data = await ask("workloads");
      if (!isOver) {
        version = data.version;
        now = data.now;
        rows = readRows(data);
        sortRows();
        element.dataset.ready = "";
      }
    } catch (error) {
      summary.textContent = error.message;
    }
    isAsking = false;
  }

  function onScroll() {
    scrolledAt = Date.now();
    if (frame) return;
    frame = requestAnimationFrame(() => { frame = 0; draw(false); });
  }

  filter.value = remembered.filter;
  filter.addEventListener("input", () => { remembered.filter = filter.value; scroller.scrollTop = 0; arrange(); });
  scroller.addEventListener("scroll", onScroll, {passive: true});
  body.addEventListener("click", (event) => {
    const line = event.target.closest("tr[data-index]");
    if (line && !event.target.closest("a")) location.hash = workloadHref(shown[Number(line.dataset.index)]);
  });
  const onResize = () => draw(true);
  window.addEventListener("resize", onResize);
  drawHead();

  return {
    name: "workloads", title: "Workloads", element,
    begin: refresh,
    tick(message) {
      const rest = Math.floor(rows.length / REFRESH_ROWS) * 1000;
      if (message.version !== version && Date.now() - askedAt >= rest && Date.now() - scrolledAt > SCROLL_MS) refresh();
    },
    end() { isOver = true; window.removeEventListener("resize", onResize); cancelAnimationFrame(frame); },
    key(event) {
      const at = shown.findIndex((row) => row.key === remembered.chosen);
      const page = Math.max(1, Math.floor(scroller.clientHeight / rowPx()) - 2);
      if (event.target.closest("thead, nav, header")) return false;
      if (event.key === "ArrowDown") choose(at + 1);
      else if (event.key === "ArrowUp") choose(at < 0 ? 0 : at - 1);
      else if (event.key === "PageDown") choose(at + page);
      else if (event.key === "PageUp") choose(at - page);
      else if (event.key === "Home") choose(0);
      else if (event.key === "End") choose(shown.length - 1);
      else if (event.key === "Enter" && (at >= 0 || shown.length === 1)) location.hash = workloadHref(shown[at >= 0 ? at : 0]);
      else if (event.key === "Escape" && remembered.filter) {
        remembered.filter = "";
        filter.value = "";
        arrange();
      } else return false;
      return true;
    },
  };
}
