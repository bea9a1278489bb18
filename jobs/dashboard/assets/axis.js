// A span of time on the screen: epoch ms to pixels and back, round times along it, and the pointer over it: a line with its time through all
// pictures of the page, and a drag that chooses a time.
import { h, put } from "./dom.js";
import { clock, instant } from "./format.js";
import { zone } from "./state.js";

const DRAGGED = 8; // pixels
const FINE = 120000; // ms: longer times show no milliseconds
const SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR;
const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, ...[1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800].map((s) => s * SECOND)];

/** Some room on both sides of a time. */
export function around(from, to) {
  const room = Math.max((to - from) * 0.4, 15000);
  return { from: Math.max(0, Math.round(from - room)), to: Math.round(to + room) };
}

export class Axis {
  /** from, to: epoch ms; left, width: pixels. */
  constructor(from, to, left, width) {
    Object.assign(this, { from, to, left, width });
    this.scale = width / Math.max(to - from, 1);
  }

  x(at) { return this.left + (at - this.from) * this.scale; }

  /** Where a time is, kept near the picture: canvases draw no spans of a million pixels. */
  near(at) { return Math.min(Math.max(this.x(at), this.left - 20), this.left + this.width + 20); }

  at(x) { return this.from + (x - this.left) / this.scale; }

  /** [{at, label}], at most one for each `room` pixels. */
  ticks(room = Math.min(110, this.width / 4)) {
    const most = Math.max(2, Math.floor(this.width / room));
    const length = this.to - this.from;
    const step = STEPS.find((each) => length / each <= most) ?? Math.ceil(length / most / DAY) * DAY;
    const shift = step >= HOUR ? new Date(this.from).getTimezoneOffset() * MINUTE * Number(zone() === "local") : 0;
    const found = [];
    for (let at = Math.ceil((this.from - shift) / step) * step + shift; at <= this.to; at += step) found.push({ at, label: label(at, step) });
    return found;
  }
}

/** The texts of ticks over a picture whose axis is in percent: none breaks, and none leaves the picture. */
export const labelsOf = (axis, ticks) => ticks.map(({ at, label }) => h("span", { class: "tick-label", style: { left: `clamp(${label.length / 2}ch, ${axis.x(at)}%, 100% - ${label.length / 2}ch)` } }, label));

function label(at, step) {
  if (step >= DAY) return instant(at).slice(0, 10);
  if (step >= 3 * HOUR) return instant(at).slice(5, 16);
  if (step >= MINUTE) return clock(at, 0).slice(0, 5);
  return step >= SECOND ? clock(at, 0) : clock(at);
}

/** The axis of a picture in its own pixels. track: selector of what is as wide as the axis. */
export function axisWithin(picture, track, { from, to }) {
  const its = picture.querySelector(track).getBoundingClientRect();
  return new Axis(from, to, its.left - picture.getBoundingClientRect().left, its.width);
}

/** Says at the pointer what it is over, if anything: some lines, of which the first is their head. */
function showTip(tip, lines, { clientX, clientY } = {}) {
  tip.hidden = !lines;
  if (!lines) return;
  const [first, ...others] = lines;
  put(tip, h("b", {}, first), others.join("\n"));
  const { width, height } = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(clientX + 14, innerWidth - width - 8))}px`;
  tip.style.top = `${clientY + 18 + height > innerHeight ? clientY - height - 10 : clientY + 18}px`;
}

/** The title of a mark, at once: a browser would wait. */
function titleAt(event) {
  const mark = event?.target.closest("[title], [data-tip]");
  if (mark?.title) mark.dataset.tip = mark.title;
  mark?.removeAttribute("title");
  return mark?.dataset.tip.split("\n");
}

/**
 * axisOf(event): the axis in pixels of the picture; null where no time is under the pointer. picked(from, to): a time was dragged over.
 * tipAt(event): what is said about what is under the pointer, in lines, if it is over anything; null: it has left.
 */
export function followPointer(picture, axisOf, picked, tipAt = titleAt) {
  const line = h("i", { class: "cross", hidden: true, "aria-hidden": "true" }, h("b"));
  const box = h("i", { class: "brush", hidden: true });
  const tip = h("div", { class: "tip", hidden: true });
  let began = null;
  const place = (event) => event.clientX - picture.getBoundingClientRect().left;
  const within = (axis, x) => axis !== null && x >= axis.left && x <= axis.left + axis.width;
  const tell = (at) => { for (const each of document.querySelectorAll(".cross")) each.show(at); };
  line.show = (at) => {
    const axis = axisOf();
    const x = axis.x(at ?? NaN);
    line.hidden = !within(axis, x);
    line.style.setProperty("left", `${x}px`);
    line.firstChild.textContent = line.hidden ? "" : clock(at, axis.to - axis.from > FINE ? 0 : 3);
    line.firstChild.style.setProperty("translate", `${(-100 * (x - axis.left)) / axis.width}%`); // within the picture at both of its ends
  };
  picture.append(line, box, tip);
  picture.addEventListener("pointerdown", (event) => { began = event.pointerType === "mouse" && !event.button && !event.shiftKey && within(axisOf(event), place(event)) ? place(event) : null; });
  picture.addEventListener("pointerleave", () => { showTip(tip, tipAt(null)); tell(null); });
  picture.addEventListener("pointermove", (event) => {
    const [axis, x] = [axisOf(event), place(event)];
    showTip(tip, tipAt(event), event);
    if (event.pointerType === "mouse") tell(within(axis, x) ? axis.at(x) : null);
    if (!event.buttons) began = null;
    box.hidden = began === null || Math.abs(x - began) < DRAGGED;
    for (const [name, value] of [["left", Math.min(x, began)], ["width", Math.abs(x - began)]]) box.style.setProperty(name, `${value}px`);
  });
  picture.addEventListener("click", (event) => {
    if (box.hidden) return;
    event.stopPropagation();
    box.hidden = true;
    const axis = axisOf();
    const [from, to] = [began, place(event)].sort((a, b) => a - b).map((x) => Math.round(axis.at(Math.min(Math.max(x, axis.left), axis.left + axis.width))));
    if (to > from) picked(from, to);
  }, { capture: true });
}
