// Symbols have shapes. Spans have one of three colours (a failure, a change, a wait) or none, and a pattern and a letter if these are on.
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
  refused: [{ d: "M6.5 0H9.5V16H6.5Z", fill: "error" }],
  good: [{ d: "M2 8.5L6.5 13L14 3", stroke: "good", width: 3 }],
};
SHAPES.begun = SHAPES.joined;
const ink = (name) => (name ? `var(--${name})` : "none");

/** The symbol of a severity, or of how a member came or went. */
export function symbol(name, label = "") {
  return svg("svg", { class: `symbol mark-${name}`, width: 16, height: 16, viewBox: "0 0 16 16", ...(label ? { role: "img", "aria-label": label } : { "aria-hidden": "true" }) },
    SHAPES[name].map(({ d, fill, stroke, width }) => svg("path", { d, fill: ink(fill), stroke: ink(stroke), "stroke-width": width })));
}

/** What is laid over colours: [the size of a tile, a path in it]. */
const [RISING, FALLING] = ["M-1 8L8 -1M-1 1L1 -1M6 8L8 6", "M-1 -1L8 8M6 -1L8 1M-1 6L1 8"];
const PATTERNS = { failed: [7, RISING], broker: [7, RISING + FALLING], changed: [5, "M1.5 2.5H3.5"], preparing: [7, RISING], completing: [7, FALLING], reconciling: [7, RISING], silent: [4, "M.5 0V4"] };

const [inks, tiles] = [new Map(), new Map()];
const patterned = () => "patterns" in document.documentElement.dataset;

/** What app.css says of a variable, as `color`, and of a look of this name, in colours that a canvas takes. */
function inkOf(name) {
  if (!inks.has(name)) {
    const probe = h("span", { class: `look-${name}`, style: { color: `var(--${name})`, "forced-color-adjust": "none" } });
    document.body.append(probe);
    const { color, backgroundColor, borderTopColor } = getComputedStyle(probe);
    inks.set(name, { color, backgroundColor, borderTopColor });
    probe.remove();
  }
  return inks.get(name);
}

export const colour = (name) => inkOf(name).color;
export const edge = (name) => inkOf(name).borderTopColor;

addEventListener("theme", () => {
  for (const kept of [inks, tiles]) kept.clear();
  for (const button of document.querySelectorAll("[data-key=patterns]")) button.setAttribute("aria-pressed", String(patterned()));
});

/** What fills a span of this look on a canvas: a colour, or a pattern over it. A context with `looks` is told what it shows. */
export function fill(context, name) {
  context.looks?.add(name);
  if (!tiles.has(name)) {
    const base = inkOf(name).backgroundColor;
    tiles.set(name, patterned() && PATTERNS[name] ? context.createPattern(tile(...PATTERNS[name], base, edge(name)), "repeat") : base);
  }
  return tiles.get(name);
}

function tile(size, path, base, ink) {
  const canvas = h("canvas", { width: size, height: size });
  const pen = canvas.getContext("2d");
  pen.fillStyle = base;
  pen.fillRect(0, 0, size, size);
  Object.assign(pen, { strokeStyle: ink, globalAlpha: 0.6, lineWidth: 1.3 });
  pen.stroke(new Path2D(path));
  return canvas;
}

/** A small picture of how a span of this look is drawn. */
export const swatch = (name) => h("i", { class: `wf-key look-${name}`, "data-letter": letter(name), "aria-hidden": "true" });

/** Draws a span: filled, edged, and with its letter where there is room if patterns are on. */
export function span(pen, name, x, y, width, height) {
  pen.fillStyle = fill(pen, name);
  pen.fillRect(x, y, width, height);
  if (width > 3) {
    pen.strokeStyle = edge(name);
    pen.lineWidth = 1;
    pen.setLineDash(patterned() && ["startup", "unknown", "empty"].includes(name) ? [2, 2] : []);
    pen.strokeRect(x, y, width, height);
    pen.setLineDash([]);
  }
  if (width > 18 && patterned()) label(pen, letter(name), x + width / 2, y + height / 2);
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
  ["computing", "", "the assignment is computed, or a heartbeat brings a new epoch"],
  ["reconciling", "R", "members give up and take partitions (Reconciling)"],
  ["empty", "E", "state Empty"],
  ["dead", "D", "state Dead"],
  ["lag", "", "lag: records behind the committed offsets, as polled"],
  ["member", "", "in the group"],
  ["late", "", "the others wait for it: before it joined again, or for its assignment"],
  ["target", "", "waits for the assignment interval, or for the last member to begin its work"],
  ["silent", "", "no heartbeat, or no poll()"],
  ["joined", "", "joined"],
  ["begun", "", "asks for offsets: begins to work"],
  ["left", "", "left by itself, or was replaced"],
  ["removed", "", "removed: a timeout"],
  ["gone", "", "gone: with its group, or unknown how"],
  ["refused", "", "refused with an error"],
];

/** The letter of a look; "" if it has none. */
export const letter = (name) => LEGEND.find(([each]) => each === name)?.[1] ?? "";

let opened = false;

/** The names of the looks and symbols in some pictures. */
export const looksIn = (...pictures) => new Set(pictures.flatMap((each) => [...each.querySelectorAll("[class*=look-], .wf-mark > svg")].map((mark) => mark.getAttribute("class").split("-").at(-1))));

/** A legend on demand of the looks of these names, with the switch of patterns. more: what else is said. */
export const legend = (names, more = null) => h("details", { class: "key", open: opened, ontoggle: ({ target }) => { opened = target.open; } }, h("summary", { class: "note" }, "Legend"),
  h("ul", { class: "legend" }, LEGEND.filter(([name]) => names.has(name)).map(([name, , meaning]) => h("li", {}, name in SHAPES ? symbol(name) : swatch(name), meaning))), more,
  h("button", { type: "button", "data-key": "patterns", "aria-pressed": String(patterned()), onclick: turn }, "Patterns and letters"));

function turn() {
  const on = document.documentElement.toggleAttribute("data-patterns");
  try { localStorage.setItem("patterns", on ? "on" : ""); } catch { /* it holds for this page alone */ }
  dispatchEvent(new Event("theme"));
}
