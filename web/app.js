// The page: which view is shown, whether the program is still there, keys, and the clock of a local cluster.
//
// A view is {element, begin(), tick(message), end(), key(event)}; it asks for what it shows when a tick tells of another version.

import {ask, apiHeaders, apiPath, clockText, make, order, session} from "/ui.js";
import {clusterView} from "/cluster.js";
import {workloadsView} from "/workloads.js";
import {workloadView} from "/workload.js";

const SILENCE_MS = 1000;
const AGAIN_MS = 1000;
const SPEEDS = [[0, "pause"], [1, "1x"], [60, "60x"], [600, "600x"]];

const main = document.getElementById("main");
let view = null;
let lastTick = 0;
let lastMessage = null;
let lostSince = 0;

// ---- Who asks ----

// The token comes once, behind the #, where no server and no log sees it.
function takeToken() {
  const found = /^#token=([0-9a-f]+)(.*)$/.exec(location.hash);
  if (found) {
    sessionStorage.setItem("token", found[1]);
    history.replaceState(null, "", `${location.pathname}#/cluster`);
  }
  session.token = sessionStorage.getItem("token") || "";
  session.namespace = sessionStorage.getItem("namespace") || "";
}

function askForToken(message) {
  const form = make("form", {class: "login", onsubmit: (event) => {
    event.preventDefault();
    session.token = form.elements.token.value.trim();
    session.namespace = form.elements.namespace.value.trim();
    sessionStorage.setItem("token", session.token);
    sessionStorage.setItem("namespace", session.namespace);
    start();
  }},
  make("h1", {}, "Who are you?"),
  make("p", {}, message),
  make("label", {}, "Bearer token ", make("input", {name: "token", type: "password", autocomplete: "off", required: true})),
  make("label", {}, "Namespace ", make("input", {name: "namespace", autocomplete: "off", placeholder: "all"})),
  make("button", {}, "Look"));
  main.replaceChildren(form);
  form.elements.namespace.value = session.namespace;
  form.elements.token.value = session.token;
  form.elements.token.focus();
}

// ---- Views ----

function route() {
  const parts = location.hash.replace(/^#\/?/, "").split("/").map((part) => {
    try { return decodeURIComponent(part); } catch { return part; }
  });
  if (parts[0] === "workloads") return workloadsView();
  if (parts[0] === "workload" && parts.length >= 4) return workloadView({ns: parts[1], kind: parts[2], name: parts[3], by: parts.slice(4).join("/")});
  return clusterView();
}

function show() {
  if (location.hash === "#main") return;
  if (view) view.end();
  view = route();
  main.replaceChildren(view.element);
  for (const name of ["cluster", "workloads"]) {
    const link = document.getElementById(`nav-${name}`);
    const isHere = view.name === name || (view.name === "workload" && name === "workloads");
    if (isHere) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${view.title} · tandem`;
  view.begin();
}

// ---- The stream ----

function setState() {
  if (document.hidden) return;
  const state = document.getElementById("state");
  const silent = Date.now() - lastTick > SILENCE_MS;
  if (!silent) {
    lostSince = 0;
    state.textContent = "live";
    state.className = "live";
  } else if (lastTick > 0) {
    lostSince = lostSince || lastTick;
    const text = `not connected since ${new Date(lostSince).toTimeString().slice(0, 8)}`;
    if (state.textContent !== text) state.textContent = text;
    state.className = "lost";
  }
}

function onTick(message) {
  lastMessage = message;
  document.getElementById("time").textContent = `${clockText(message.now)} UTC`;
  for (const button of document.querySelectorAll("#speeds button")) {
    button.setAttribute("aria-pressed", String(Number(button.value) === message.speed));
  }
  setState();
  if (view) view.tick(message);
}

// A page that is not seen lets go of its connection: a browser has six to one place.
function whenSeen() {
  return new Promise((done) => {
    const look = () => {
      if (document.hidden) return;
      document.removeEventListener("visibilitychange", look);
      done();
    };
    document.addEventListener("visibilitychange", look);
    look();
  });
}

async function readStream(signal) {
  const response = await fetch(apiPath("stream"), {headers: apiHeaders(), cache: "no-store", signal});
  if (!response.ok) {
    const answer = await response.json().catch(() => ({}));
    throw new Error(answer.error || `the program answered ${response.status}`);
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const {done, value} = await reader.read();
    if (done) return;
    lastTick = Date.now();
    text += value;
    const events = text.split("\n\n");
    text = events.pop();
    for (const event of events) {
      const data = /^data: (.*)$/m.exec(event);
      if (data) onTick(JSON.parse(data[1]));
    }
  }
}

async function listen() {
  for (;;) {
    await whenSeen();
    const end = new AbortController();
    const onHidden = () => { if (document.hidden) end.abort(); };
    document.addEventListener("visibilitychange", onHidden);
    try {
      await readStream(end.signal);
      document.getElementById("state").title = "";
    } catch (error) {
      document.getElementById("state").title = document.hidden ? "" : error.message; // the state says so, and it is tried again
    }
    document.removeEventListener("visibilitychange", onHidden);
    await new Promise((done) => { setTimeout(done, document.hidden ? 0 : AGAIN_MS); });
  }
}

// ---- Keys ----

function onKey(event) {
  const help = document.getElementById("help");
  const isTyping = event.target.matches("input, select, textarea");
  if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
  if (event.key === "Escape") {
    if (view && view.key && view.key(event)) event.preventDefault();
    else if (isTyping) event.target.blur();
    else if (view && view.name === "workload") location.hash = "#/workloads";
    return;
  }
  if (isTyping && !(event.target.id === "filter" && ["ArrowDown", "ArrowUp", "Enter"].includes(event.key))) return;
  if (event.key === "?") {
    event.preventDefault();
    help.showModal();
  } else if (event.key === "/") {
    event.preventDefault();
    if (!view || view.name !== "workloads") location.hash = "#/workloads";
    setTimeout(() => document.getElementById("filter")?.focus(), 0);
  } else if (view && view.key && view.key(event)) {
    event.preventDefault();
  }
}

// ---- The clock of a local cluster ----

function makeSpeeds() {
  const group = document.getElementById("speeds");
  group.hidden = false;
  group.replaceChildren(...SPEEDS.map(([speed, word]) => make("button", {type: "button", value: speed, "aria-pressed": "false", onclick: async () => {
    try {
      await order("scenario", {do: "clock", speed});
    } catch (error) {
      group.title = error.message;
      document.getElementById("time").title = error.message;
    }
  }}, word)));
}

// ---- The start ----

// The legend of dygraphs measures itself with an inline style, which the security policy of the page refuses; plot.js has its own.
function dropLegend() {
  window.Dygraph.PLUGINS = window.Dygraph.PLUGINS.filter((plugin) => plugin !== window.Dygraph.Plugins.Legend);
}

function loadCharts(charts) {
  if (!charts || window.Dygraph) return Promise.resolve();
  return new Promise((done) => {
    document.head.append(make("link", {rel: "stylesheet", href: "/dygraph.min.css"}));
    document.head.append(make("script", {src: "/dygraph.min.js", onload: () => { dropLegend(); done(); }, onerror: done}));
  });
}

let isListening = false;

async function start() {
  try {
    session.info = await ask("info");
  } catch (error) {
    if (error.status === 401 || error.status === 403) askForToken(error.message);
    else {
      main.replaceChildren(make("p", {class: "problem"}, `The program does not answer: ${error.message}`));
      setTimeout(start, AGAIN_MS);
    }
    return;
  }
  const info = session.info;
  document.getElementById("title").textContent = info.title + (info.namespace ? ` / ${info.namespace}` : "");
  if (info.local) makeSpeeds();
  await loadCharts(info.charts);
  show();
  if (!isListening) {
    isListening = true;
    listen();
    setInterval(setState, 250);
    window.addEventListener("hashchange", show);
    document.addEventListener("keydown", onKey);
  }
}

document.getElementById("help-button").addEventListener("click", () => document.getElementById("help").showModal());
document.getElementById("skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
window.tandem = {ready: () => Boolean(lastMessage && main.querySelector("[data-ready]"))};
takeToken();
start();
