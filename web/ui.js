// What all views share: elements made of text alone, numbers, and calls to the program.
//
// Nothing from a cluster is ever HTML: make() sets text and attributes only.

import {formatValue, formatTime} from "/plot.js";

export {formatValue, formatTime};

// make("td", {class: "number", title: "..."}, "text", otherElement)
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else element.setAttribute(name, value);
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined && child !== false) element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

export function makeSvg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  for (const child of children) element.append(child);
  return element;
}

export function cpu(value) { return formatValue("cpu", value); }
export function memory(value) { return formatValue("memory", value); }

export function count(value) { return value === null || value === undefined ? "–" : String(value); }

export function share(value) {
  if (value === null || value === undefined) return "–";
  if (value > 0 && value < 0.01) return "<1%";
  return `${Math.round(value * 100)}%`;
}

export function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value < 1) return `${Math.max(1, Math.round(value * 1000))}ms`;
  return value < 120 ? `${Number(value.toFixed(1))}s` : `${Math.round(value / 60)}m`;
}

export function money(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  return Math.abs(value) >= 100 ? String(Math.round(value)) : value.toFixed(2);
}

export function clockText(ms) {
  return ms ? new Date(ms).toISOString().replace("T", " ").slice(0, 19) : "–";
}

export function shortTime(ms) {
  return ms ? new Date(ms).toISOString().slice(11, 16) : "";
}

export function ago(ms, now) {
  const past = Math.max(0, Math.round((now - ms) / 1000));
  if (past < 60) return `${past}s`;
  if (past < 3600) return `${Math.floor(past / 60)}m`;
  if (past < 86400) return `${Math.floor(past / 3600)}h${Math.floor(past % 3600 / 60)}m`;
  return `${Math.floor(past / 86400)}d`;
}

// ---- The program ----

export const session = {token: "", namespace: "", info: null};

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export function apiHeaders() {
  return session.token ? {Authorization: `Bearer ${session.token}`} : {};
}

export function apiPath(path, parameters = {}) {
  const query = new URLSearchParams(parameters);
  if (session.namespace) query.set("in", session.namespace);
  const text = query.toString();
  return `/api/${path}${text ? `?${text}` : ""}`;
}

export async function ask(path, parameters, options = {}) {
  const response = await fetch(apiPath(path, parameters), {...options, headers: {...apiHeaders(), ...options.headers}, cache: "no-store"});
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refused(response.status, answer.error || `the program answered ${response.status}`);
  return answer;
}

export function order(path, body, options = {}) {
  return ask(path, {}, {method: "POST", body: JSON.stringify(body), ...options, headers: {"Content-Type": "application/json"}});
}

export async function copyText(text, button) {
  const words = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "copied";
  } catch {
    const area = make("textarea", {"aria-hidden": "true", class: "copy-area"});
    area.value = text;
    document.body.append(area);
    area.select();
    button.textContent = document.execCommand("copy") ? "copied" : "select it and copy";
    area.remove();
  }
  setTimeout(() => { button.textContent = words; }, 1500);
}

export function workloadHref(row) {
  return `#/workload/${[row.ns, row.kind, row.name, row.by].map(encodeURIComponent).join("/")}`;
}
