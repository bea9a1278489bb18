// Symbols and swatches. A symbol has a shape of its own. A span has one of three colours (a failure, a change, a wait) or none; who turns
// patterns on sees each look by its pattern and letter.
import { h, svg } from "./dom.js";

/** By name: what is drawn in a square of 16, back to front. */
export const SHAPES = {
  error: [{ d: "M1 1H15V15H1Z", fill: "error" }, { d: "M5 5L11 11M11 5L5 11", stroke: "paper", width: 2 }],
  warning: [{ d: "M8 0L16 15H0Z", fill: "warning" }, { d: "M8 5V10M8 12V13.5", stroke: "paper", width: 2 }],
  info: [{ d: "M15 8A7 7 0 1 1 1 8A7 7 0 1 1 15 8Z", fill: "info" }, { d: "M8 4V5.5M8 7V12", stroke: "paper", width: 2 }],
  joined: [{ d: "M4 3L12 8L4 13Z", fill: "ink" }],
  left: [{ d: "M12.5 8A4.5 4.5 0 1 1 3.5 8A4.5 4.5 0 1 1 12.5 8Z", fill: "paper", stroke: "ink", width: 2 }],
  removed: [{ d: "M3 3L13 13M13 3L3 13", stroke: "error", width: 3 }],
  gone: [{ d: "M8 2L14 8L8 14L2 8Z", fill: "dim" }],
  good: [{ d: "M2 8.5L6.5 13L14 3", stroke: "good", width: 3 }],
};
const ink = (name) => (name ? `var(--${name})` : "none");

/** The symbol of a severity, or of how a member came or went. */
export function symbol(name, label = "") {
  return svg("svg", { class: `symbol mark-${name}`, width: 16, height: 16, viewBox: "0 0 16 16", ...(label ? { role: "img", "aria-label": label } : { "aria-hidden": "true" }) },
    SHAPES[name].map(({ d, fill, stroke, width }) => svg("path", { d, fill: ink(fill), stroke: ink(stroke), "stroke-width": width })));
}

/** How patterns are laid over colours. */
const PATTERNS = { failed: "right", broker: "cross", changed: "dots", preparing: "right", completing: "left", reconciling: "right", silent: "bars", away: "wide" };

let colours = new Map();
const tiles = new Map();
const root = document.documentElement;
const patterned = () => "patterns" in root.dataset;

/** Colours of app.css, as the canvas takes them. property: of an element with these attributes. */
function computed(key, property, attributes) {
  if (!colours.has(key)) {
    const probe = h("span", attributes);
    document.body.append(probe);
    colours.set(key, getComputedStyle(probe)[property]);
    probe.remove();
  }
  return colours.get(key);
}

/** The colour of a variable. */
export const colour = (name) => computed(name, "color", { style: { color: `var(--${name})`, "forced-color-adjust": "none" } });

/** The colour of the edge of a look. */
export const edge = (name) => computed(`edge of ${name}`, "borderTopColor", { class: `look-${name}` });

addEventListener("theme", forget);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { forget(); dispatchEvent(new Event("theme")); });

function forget() {
  colours = new Map();
  tiles.clear();
}

/** What fills a span of this look on a canvas: a colour, or a pattern over it. A context with `looks` is told what it shows. */
export function fill(context, name) {
  context.looks?.add(name);
  if (!tiles.has(name)) {
    const base = computed(`fill of ${name}`, "backgroundColor", { class: `look-${name}` });
    tiles.set(name, patterned() && PATTERNS[name] ? context.createPattern(tile(PATTERNS[name], base, edge(name)), "repeat") : base);
  }
  return tiles.get(name);
}

function tile(kind, base, ink) {
  const size = { wide: 12, dots: 5, bars: 4 }[kind] ?? 7;
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = size;
  const pen = canvas.getContext("2d");
  pen.fillStyle = base;
  pen.fillRect(0, 0, size, size);
  pen.strokeStyle = pen.fillStyle = ink;
  pen.globalAlpha = kind === "wide" ? 0.3 : 0.6;
  pen.lineWidth = kind === "wide" ? 2 : 1.3;
  pen.beginPath();
  const diagonal = (rising) => {
    for (const shift of [-size, 0, size]) {
      pen.moveTo(shift - 1, rising ? size + 1 : -1);
      pen.lineTo(shift + size + 1, rising ? -1 : size + 1);
    }
  };
  if (kind === "right" || kind === "wide" || kind === "cross") diagonal(true);
  if (kind === "left" || kind === "cross") diagonal(false);
  if (kind === "bars") pen.rect(0, 0, 1, size);
  pen.stroke();
  if (kind === "dots") { pen.beginPath(); pen.arc(2.5, 2.5, 1.1, 0, 7); pen.fill(); }
  return canvas;
}

/** A small picture of how a span of this look is drawn. */
export const swatch = (name, letter = "") => h("i", { class: `wf-key look-${name}`, "data-letter": letter, "aria-hidden": "true" });

/** Draws a span: filled, edged, and with its letter where there is room if patterns are on. */
export function span(pen, name, x, y, width, height, letter = "") {
  pen.fillStyle = fill(pen, name);
  pen.fillRect(x, y, width, height);
  if (width > 3) {
    pen.strokeStyle = edge(name);
    pen.lineWidth = 1;
    pen.setLineDash(patterned() && ["startup", "unknown", "empty"].includes(name) ? [2, 2] : []);
    pen.strokeRect(x, y, width, height);
    pen.setLineDash([]);
  }
  if (letter && width > 13 && patterned()) label(pen, letter, x + width / 2, y + height / 2);
}

/** Draws a short text that can be read on any pattern. */
export function label(pen, text, x, y) {
  pen.font = "700 10px system-ui, sans-serif";
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.lineWidth = 3;
  pen.strokeStyle = colour("paper");
  pen.strokeText(text, x, y + 0.5);
  pen.fillStyle = colour("ink");
  pen.fillText(text, x, y + 0.5);
}

/** All looks in the order of the legend: [name, letter, meaning]. The name is that of a class, and of a symbol if it is one. */
const LEGEND = [
  ["error", "", "finding: error"],
  ["warning", "", "finding: warning"],
  ["info", "", "finding: note"],
  ["away", "", "a broker was down or unresponsive"],
  ["broker", "B", "rebalance: a broker was lost or unresponsive"],
  ["failed", "F", "rebalance: a member went silent, stalled or came late"],
  ["came", "J", "rebalance: a member joined or left"],
  ["changed", "C", "rebalance: topics, subscriptions or assignment changed"],
  ["startup", "S", "rebalance: start-up of a new or empty group"],
  ["unknown", "?", "rebalance: the logs do not tell its cause"],
  ["stable", "", "state Stable"],
  ["preparing", "P", "waits for members to join (PreparingRebalance, JoinGroup)"],
  ["completing", "A", "waits for the assignment (CompletingRebalance, SyncGroup)"],
  ["reconciling", "R", "members give up and take partitions (Reconciling)"],
  ["empty", "E", "state Empty"],
  ["dead", "D", "state Dead"],
  ["lag", "", "lag: records behind the committed offsets, as polled"],
  ["member", "", "in the group"],
  ["silent", "", "no heartbeat, or no poll()"],
  ["joined", "", "joined"],
  ["left", "", "left by itself, or was replaced"],
  ["removed", "", "removed: a timeout"],
  ["gone", "", "gone: with its group, or unknown how"],
];

let opened = false;

/** A legend on demand, with the switch of patterns. items: [a sample, its meaning]; more: what else is said. */
export const legendOf = (items, more = null) => h("details", { class: "key", open: opened, ontoggle: ({ target }) => { opened = target.open; } }, h("summary", { class: "note" }, "Legend"),
  h("ul", { class: "legend" }, items.map(([sample, meaning]) => h("li", {}, sample, meaning))), more,
  h("button", { type: "button", "data-key": "patterns", "aria-pressed": String(patterned()), onclick: turn }, "Patterns and letters"));

/** The legend of the looks of these names. */
export const legend = (names, more) => legendOf(LEGEND.filter(([name]) => names.has(name)).map(([name, letter, meaning]) => [name in SHAPES ? symbol(name) : swatch(name, letter), meaning]), more);

function turn({ target }) {
  const on = root.toggleAttribute("data-patterns");
  target.setAttribute("aria-pressed", String(on));
  try { localStorage.setItem("patterns", on ? "on" : ""); } catch { /* it holds for this page alone */ }
  dispatchEvent(new Event("theme"));
}
