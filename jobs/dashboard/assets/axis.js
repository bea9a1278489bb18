// A span of time on the screen: epoch ms to pixels and back, and round times along it.
import { h } from "./dom.js";
import { clock, instant } from "./format.js";
import { zone } from "./state.js";

const SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR;
const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, ...[1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800].map((s) => s * SECOND)];

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
